"""A sensitivity profile in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from grb.errors import UnknownName

# AUROC that is left: above the first a perturbation does next to nothing, below the second it hurts much
LITTLE, MUCH = 0.97, 0.85
# fraction of what was lost that has to come back to count as replaced
REPLACED = 0.6
# AUROC below which a model hardly beats guessing
GUESSING = 0.6

MEANINGS: Mapping[str, str] = {
    "I-1": "In I-1 features decide: without them little is left, degrees hardly replace them, and edges can go.",
    "I-2": "In I-2 features know the structure: they matter, but degrees or edges replace much of them, and edges can go "
    "while the features stay.",
    "I-3": "In I-3 structure decides: without edges most is lost, in one part of the group features matter too.",
    "T-1": "In T-1 neighbours are unlike: features decide, degrees do not replace them, and averaging over neighbours "
    "hurts more than taking differences.",
    "T-2": "In T-2 features matter, but degrees replace most of them, and edges are of little use.",
    "T-3": "In T-3 nothing matters much alone: features and structure say the same, or there is little to lose.",
}
"""What the paper's groups have in common, as sentences."""


def meaning(group: str) -> str:
    """What the datasets of a published group have in common."""
    if group not in MEANINGS:
        raise UnknownName("published group", group, MEANINGS, advice=f"There are {', '.join(MEANINGS)}.")
    return MEANINGS[group]


def describe_profile(ratios: Mapping[str, float], original: float | None = None) -> list[str]:
    """Sentences about features, edges, range and frequencies; nothing about perturbations that are missing.

    Args:
        ratios: AUROC that is left, as a fraction of the unperturbed one, by perturbation.
        original: AUROC on the unperturbed dataset, if known.

    >>> describe_profile({"NoNodeFtrs": 0.58, "NodeDeg": 0.71, "NoEdges": 1.01})[0]
    'Features matter much: without them 58 % of the AUROC is left, with degrees in their place 71 %.'
    """
    sentences = [_trust(original), _features(ratios), _edges(ratios), _range(ratios), _bands(ratios)]
    return [sentence for sentence in sentences if sentence]


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"


def _trust(original: float | None) -> str:
    if original is None:
        return ""
    if original < GUESSING:
        return (
            f"The model hardly beats guessing on the unperturbed dataset (AUROC {original:.2f}), so there is little to lose "
            "and the profile says little."
        )
    return f"AUROC on the unperturbed dataset is {original:.2f}; guessing would leave {_percent(0.5 / original)} of it."


def _how_much(fraction: float) -> str:
    return "hardly matter" if fraction > LITTLE else "matter much" if fraction < MUCH else "matter somewhat"


def _features(ratios: Mapping[str, float]) -> str:
    known = [ratios[name] for name in ("NoNodeFtrs", "RandFtrs") if name in ratios]
    if not known:
        return ""
    left = known[0]
    sentence = f"Features {_how_much(left)}: without them {_percent(left)} of the AUROC is left"
    degrees = ratios.get("NodeDeg")
    if degrees is None:
        return f"{sentence}."
    if left < LITTLE and degrees - left > REPLACED * (1 - left):
        return f"{sentence}, but degrees in their place bring back {_percent(degrees)}: a summary of the structure will do."
    return f"{sentence}, with degrees in their place {_percent(degrees)}."


def _edges(ratios: Mapping[str, float]) -> str:
    left = ratios.get("NoEdges")
    if left is None:
        return ""
    sentence = f"Edges {_how_much(left)}: without them {_percent(left)} is left"
    moved = ratios.get("RandRewire")
    if moved is not None and left <= LITTLE:
        who = "who is joined with whom counts" if moved < LITTLE else "degrees are what counts"
        return f"{sentence}, with half of them rewired {_percent(moved)}: {who}."
    return f"{sentence}."


def _range(ratios: Mapping[str, float]) -> str:
    known = {k: ratios[f"Frag-k{k}"] for k in (1, 2, 3) if f"Frag-k{k}" in ratios}
    if not known or ratios.get("NoEdges", 0.0) > LITTLE:
        return ""
    enough = [k for k in known if all(fraction > LITTLE for other, fraction in known.items() if other >= k)]
    if enough:
        return f"Balls of radius {enough[0]} keep {_percent(known[enough[0]])}: paths longer than that are not needed."
    k = max(known)
    return f"Even balls of radius {k} keep only {_percent(known[k])}: longer paths are needed."


def _bands(ratios: Mapping[str, float]) -> str:
    if "LowPass" not in ratios or "HighPass" not in ratios:
        return ""
    low, high = ratios["LowPass"], ratios["HighPass"]
    if min(low, high) > LITTLE:
        return ""
    numbers = f"LowPass keeps {_percent(low)}, HighPass {_percent(high)}"
    if low - high > 0.03:
        return f"{numbers}: the signal is smooth, neighbours are alike."
    if high - low > 0.03:
        return f"{numbers}: the signal is in differences, neighbours are unlike."
    return f"{numbers}: the signal is spread over the frequencies."
