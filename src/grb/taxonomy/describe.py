"""A sensitivity profile in sentences: only what the runs support, and nothing that contradicts the group's meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grb.errors import UnknownName

Ratios = Mapping[str, float]
Drawn = Mapping[str, NDArray[np.float64]]

# AUROC that is left: above the first a perturbation does next to nothing, below the second it hurts much
LITTLE, MUCH = 0.97, 0.85
# fraction of what was lost that has to come back to count as replaced
REPLACED = 0.6
# difference of two bands from which on one of them counts as the one with the signal
BAND = 0.03
# AUROC below which a model hardly beats guessing
GUESSING = 0.6
# fraction of the draws in which something must hold to be said
SUPPORT = 0.95
# draws that are looked at
LOOKED_AT = 500


class Claim(NamedTuple):
    """One thing that the datasets of a group have in common.

    Args:
        clause: The claim.
        denial: What to say about a dataset of that group for which it surely does not hold.
        holds: Whether it holds for a profile; None if the perturbations that decide it are missing.
    """

    clause: str
    denial: str
    holds: Callable[[Ratios], bool | None]


def _level(fraction: float) -> str:
    return "hardly" if fraction > LITTLE else "much" if fraction < MUCH else "somewhat"


def _at(name: str, *levels: str) -> Callable[[Ratios], bool | None]:
    return lambda ratios: _level(ratios[name]) in levels if name in ratios else None


def _replaced(ratios: Ratios) -> bool | None:
    if "NoNodeFtrs" not in ratios or "NodeDeg" not in ratios:
        return None
    left = ratios["NoNodeFtrs"]
    return left < LITTLE and ratios["NodeDeg"] - left > REPLACED * (1 - left)


def _not_replaced(ratios: Ratios) -> bool | None:
    found = _replaced(ratios)
    return None if found is None else not found


def _band(ratios: Ratios) -> str | None:
    """Which band has the signal: low, high, both, or none where neither is missed."""
    if "LowPass" not in ratios or "HighPass" not in ratios:
        return None
    low, high = ratios["LowPass"], ratios["HighPass"]
    if min(low, high) > LITTLE:
        return "none"
    return "low" if low - high > BAND else "high" if high - low > BAND else "both"


def _differences(ratios: Ratios) -> bool | None:
    found = _band(ratios)
    return None if found is None else found == "high"


def _nothing_alone(ratios: Ratios) -> bool | None:
    return min(ratios.values()) >= MUCH if ratios else None


_FEATURES_DECIDE = Claim(
    "features decide, without them little is left", "features do not decide here", _at("NoNodeFtrs", "much")
)
_FEATURES_MATTER = Claim("features matter", "features hardly matter here", _at("NoNodeFtrs", "somewhat", "much"))
_NOT_REPLACED = Claim("degrees hardly replace them", "degrees replace features here", _not_replaced)
_REPLACED = Claim("degrees replace most of them", "degrees do not replace features here", _replaced)
_EDGES_CAN_GO = Claim("edges can go", "edges are missed here", _at("NoEdges", "hardly"))

CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    "I-1": (_FEATURES_DECIDE, _NOT_REPLACED, _EDGES_CAN_GO),
    "I-2": (
        _FEATURES_MATTER,
        Claim("degrees or edges replace much of them", "degrees do not replace features here", _replaced),
        Claim("edges can go while the features stay", "edges are missed here", _at("NoEdges", "hardly")),
    ),
    "I-3": (
        Claim(
            "structure decides, without edges most is lost",
            "less is lost without edges here",
            _at("NoEdges", "much"),
        ),
        Claim("in one part of the group features matter too", "", lambda ratios: None),
    ),
    "T-1": (
        _FEATURES_DECIDE,
        Claim("degrees do not replace them", "degrees replace features here", _not_replaced),
        Claim(
            "averaging over neighbours hurts more than taking differences, neighbours are unlike",
            "taking differences between neighbours is no better than averaging here",
            _differences,
        ),
    ),
    "T-2": (_FEATURES_MATTER, _REPLACED, _EDGES_CAN_GO),
    "T-3": (
        Claim(
            "nothing matters much alone, features and structure say the same or there is little to lose",
            "something matters much alone here",
            _nothing_alone,
        ),
    ),
}
"""What the datasets of the paper's groups have in common, claim by claim."""
MEANINGS = tuple(CLAIMS)


def meaning(group: str, ratios: Ratios | None = None, drawn: Drawn | None = None) -> str:
    """What the datasets of a published group have in common, as far as it holds for a profile.

    Args:
        group: Name of the group.
        ratios: AUROC that is left by perturbation; claims that it contradicts are left out. All claims if not given.
        drawn: Draws of these ratios, [draws] each; a claim that fails in nearly all of them is denied.

    >>> meaning("T-2")
    'In T-2 features matter; degrees replace most of them; edges can go.'
    >>> meaning("T-2", {"NoNodeFtrs": 0.7, "NodeDeg": 0.95, "NoEdges": 0.8})
    'In T-2 features matter; degrees replace most of them. Unlike most of T-2, edges are missed here.'
    """
    if group not in CLAIMS:
        raise UnknownName("published group", group, CLAIMS, advice=f"There are {', '.join(CLAIMS)}.")
    own = {} if ratios is None else ratios
    kept = [claim.clause for claim in CLAIMS[group] if claim.holds(own) is not False]
    denied = [
        claim.denial
        for claim in CLAIMS[group]
        if claim.holds(own) is False and _support(claim.holds, own, drawn) >= SUPPORT
    ]
    parts = [f"In {group} {'; '.join(kept)}."] if kept else []
    parts += [f"Unlike most of {group}, {' and '.join(denied)}."] if denied else []
    return " ".join(parts)


def _support(judge: Callable[[Ratios], Any], ratios: Ratios, drawn: Drawn | None) -> float:
    """Fraction of the draws in which the judgement is that of the means; 1 if there are no draws."""
    if drawn is None:
        return 1.0
    wanted = judge(ratios)
    return _share(drawn, lambda own: judge(own) == wanted)


def _share(drawn: Drawn, holds: Callable[[Ratios], bool]) -> float:
    columns = {name: values[:LOOKED_AT].tolist() for name, values in drawn.items()}
    rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
    return sum(holds(row) for row in rows) / max(len(rows), 1)


def describe_profile(ratios: Ratios, original: float | None = None, drawn: Drawn | None = None) -> list[str]:
    """Sentences about features, edges, range and frequencies; nothing about perturbations that are missing.

    Args:
        ratios: AUROC that is left, as a fraction of the unperturbed one, by perturbation.
        original: AUROC on the unperturbed dataset, if known.
        drawn: Draws of the ratios that the runs do not rule out, [draws] each. What does not hold in 95 % of them is not said;
            a sentence says that it is not decided.

    >>> describe_profile({"NoNodeFtrs": 0.58, "NodeDeg": 0.71, "NoEdges": 1.01})[0]
    'Features matter much: without them 58 % of the AUROC is left, with degrees in their place 71 %.'
    """
    if original is not None and original < GUESSING:
        return [_trust(original)]
    sentences = [
        _trust(original),
        _features(ratios, drawn),
        _edges(ratios, drawn),
        _range(ratios, drawn),
        _bands(ratios, drawn),
    ]
    return [sentence for sentence in sentences if sentence]


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"


def _with_interval(name: str, ratios: Ratios, drawn: Drawn | None) -> str:
    """What is left in per cent, and its interval where there is one."""
    if drawn is None or name not in drawn:
        return _percent(ratios[name])
    low, high = np.quantile(drawn[name], [0.025, 0.975])
    return f"{_percent(ratios[name])} ({100 * low:.0f} to {100 * high:.0f})"


def _trust(original: float | None) -> str:
    if original is None:
        return ""
    if original < GUESSING:
        return (
            f"The model hardly beats guessing on the unperturbed dataset (AUROC {original:.2f}), so there is little to lose "
            "and the profile says little."
        )
    return f"AUROC on the unperturbed dataset is {original:.2f}; guessing would leave {_percent(0.5 / original)} of it."


def _matter(what: str, name: str, ratios: Ratios, drawn: Drawn | None) -> tuple[str, bool]:
    """How much something matters, if the runs decide it, and whether they do."""
    level = _level(ratios[name])
    if _support(lambda own: _level(own[name]), ratios, drawn) >= SUPPORT:
        return f"{what} {'hardly matter' if level == 'hardly' else f'matter {level}'}", True
    if level != "hardly" and _support(lambda own: _level(own[name]) == "hardly", ratios, drawn) >= SUPPORT:
        return f"{what} matter", True
    return f"Whether {what.lower()} matter is not decided by these runs", False


def _features(ratios: Ratios, drawn: Drawn | None) -> str:
    name = next((each for each in ("NoNodeFtrs", "RandFtrs") if each in ratios), None)
    if name is None:
        return ""
    how, decided = _matter("Features", name, ratios, drawn)
    sentence = f"{how}: without them {_with_interval(name, ratios, drawn)} of the AUROC is left"
    if "NodeDeg" not in ratios:
        return f"{sentence}."
    degrees = _with_interval("NodeDeg", ratios, drawn)
    if decided and name == "NoNodeFtrs" and _replaced(ratios) and _support(_replaced, ratios, drawn) >= SUPPORT:
        return f"{sentence}, but degrees in their place bring back {degrees}: a summary of the structure will do."
    return f"{sentence}, with degrees in their place {degrees}."


def _edges(ratios: Ratios, drawn: Drawn | None) -> str:
    if "NoEdges" not in ratios:
        return ""
    how, decided = _matter("Edges", "NoEdges", ratios, drawn)
    sentence = f"{how}: without them {_with_interval('NoEdges', ratios, drawn)} is left"
    if "RandRewire" not in ratios or not decided or ratios["NoEdges"] > LITTLE:
        return f"{sentence}."
    moved = f"{sentence}, with half of them rewired {_with_interval('RandRewire', ratios, drawn)}"
    if _support(lambda own: own["RandRewire"] < LITTLE, ratios, drawn) < SUPPORT:
        return f"{moved}."
    return (
        f"{moved}: {'who is joined with whom counts' if ratios['RandRewire'] < LITTLE else 'degrees are what counts'}."
    )


def _enough(ratios: Ratios) -> int | None:
    """The smallest radius from which on nothing is lost; None if there is none."""
    known = {k: ratios[f"Frag-k{k}"] for k in (1, 2, 3) if f"Frag-k{k}" in ratios}
    return next((k for k in known if all(left > LITTLE for other, left in known.items() if other >= k)), None)


def _range(ratios: Ratios, drawn: Drawn | None) -> str:
    known = [k for k in (1, 2, 3) if f"Frag-k{k}" in ratios]
    if not known or ratios.get("NoEdges", 0.0) > LITTLE or _support(_enough, ratios, drawn) < SUPPORT:
        return ""
    enough = _enough(ratios)
    if enough is not None:
        left = _with_interval(f"Frag-k{enough}", ratios, drawn)
        return f"Balls of radius {enough} keep {left}: paths longer than that are not needed."
    left = _with_interval(f"Frag-k{known[-1]}", ratios, drawn)
    return f"Even balls of radius {known[-1]} keep only {left}: longer paths are needed."


def _bands(ratios: Ratios, drawn: Drawn | None) -> str:
    found = _band(ratios)
    if found in (None, "none"):
        return ""
    numbers = " and ".join(f"{name} keeps {_with_interval(name, ratios, drawn)}" for name in ("LowPass", "HighPass"))
    if _support(_band, ratios, drawn) < SUPPORT:
        return f"{numbers}: which frequencies carry the signal is not decided by these runs."
    meanings = {
        "low": "the signal is smooth, neighbours are alike",
        "high": "the signal is in differences, neighbours are unlike",
        "both": "the signal is spread over the frequencies",
    }
    return f"{numbers}: {meanings[str(found)]}."
