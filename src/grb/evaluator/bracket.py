"""What is certified and what attacks leave, over the budget: the truth lies between the two. No torch here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grb.errors import DataError, IntegrityError
from grb.evaluator.board import CLEAN, Board


@dataclass(frozen=True)
class Bracket:
    """Certified and attacked accuracy of one model at the same budgets.

    Args:
        unit: What is counted, for instance injected nodes.
        budgets: Numbers of them, ascending.
        certified: Accuracy that no attack can undercut.
        attacked: Lowest accuracy that an attack within the budget left.
    """

    unit: str
    budgets: tuple[int, ...]
    certified: tuple[float, ...]
    attacked: tuple[float, ...]

    @property
    def gap(self) -> tuple[float, ...]:
        """What is not known at every budget: attacked - certified."""
        return tuple(high - low for low, high in zip(self.certified, self.attacked, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it: one point per budget."""
        points = zip(self.budgets, self.certified, self.attacked, self.gap, strict=True)
        names = ("budget", "certified", "attacked", "gap")
        return {"unit": self.unit, "points": [dict(zip(names, point, strict=True)) for point in points]}


def bracket(
    certified: Mapping[int, float], attacked: Mapping[int, float], *, unit: str, certain: bool = True
) -> Bracket:
    """The bracket at all budgets that either side has.

    An edit within a smaller budget is one within a larger budget, and what survives a larger budget survives a smaller one: so
    each side says something at budgets at which it was not computed.

    Args:
        certified: Certified accuracy by budget, as ``CertifiedResult.curve`` gives it.
        attacked: Accuracy after attacks by budget; 0 is the clean graph, which must be there.
        unit: What is counted.
        certain: Whether the certificate holds with certainty, so that an attack below it is an integrity error.

    >>> bracket({1: 0.8, 5: 0.6}, {0: 0.9, 5: 0.7}, unit="injected nodes").attacked
    (0.9, 0.9, 0.7)
    """
    if 0 not in attacked:
        raise DataError("attacked has no budget 0; give the accuracy on the clean graph there")
    budgets = sorted({*certified, *attacked})
    low = [max((value for at, value in certified.items() if at >= budget), default=0.0) for budget in budgets]
    high = [min(value for at, value in attacked.items() if at <= budget) for budget in budgets]
    for budget, sure, left in zip(budgets, low, high, strict=True):
        if certain and left < sure - 1e-9:
            raise IntegrityError(
                f"an attack left {100 * left:.2f} % at {budget} {unit}, but {100 * sure:.2f} % are certified; redo both"
            )
    return Bracket(unit, tuple(budgets), tuple(low), tuple(high))


def board_brackets(boards: Sequence[Board], difficulty: str) -> dict[str, Bracket]:
    """The bracket of every defense that has a certificate of its own, from one board or from those of a varied limit.

    Certified: the best certificate at every budget, the mean over trainings. Attacked: the clean accuracy and the lowest that a
    single edit left at the budget of every board.

    Args:
        boards: Boards of one study.
        difficulty: Which targets.

    Returns:
        Brackets by the names of defenses; empty without certificates.
    """
    low: dict[str, dict[int, dict[int, float]]] = {}
    high: dict[str, dict[int, float]] = {}
    units: dict[str, str] = {}
    for board in boards:
        for each in _certificates(board, difficulty):
            name, summaries = each["defense"], board.by_defense[difficulty].get(each["defense"])
            if (
                summaries is None
                or "worst_graph" not in summaries
                or units.setdefault(name, each["unit"]) != each["unit"]
            ):
                continue
            for budget, value in each["curve"].items():
                own = low.setdefault(name, {}).setdefault(int(budget), {})
                own[each["seed"]] = max(own.get(each["seed"], 0.0), value)
            attacked = high.setdefault(name, {})
            worst, clean = summaries["worst_graph"].mean, board.cell(CLEAN, name, difficulty)
            attacked[each["budget"]] = min(attacked.get(each["budget"], 1.0), worst)
            attacked[0] = max(attacked.get(0, 0.0), worst if clean is None else clean.score.mean)
    return {
        # trainings on both sides may differ in a study that is not finished: targets are compared one by one elsewhere
        name: bracket(
            {budget: sum(values.values()) / len(values) for budget, values in own.items()},
            high[name],
            unit=units[name],
            certain=False,
        )
        for name, own in low.items()
    }


def _certificates(board: Board, difficulty: str) -> Iterator[Mapping[str, Any]]:
    """What a board says of certificates of its defenses themselves; a board from a file may say anything."""
    kinds: dict[str, type] = {"defense": str, "unit": str, "budget": int, "seed": int, "curve": dict}
    listed = board.meta.get("certificates")
    for each in listed if isinstance(listed, list | tuple) else ():
        if not isinstance(each, Mapping) or any(not isinstance(each.get(name), kind) for name, kind in kinds.items()):
            continue
        points = each["curve"].items()
        sane = all(str(at).isdecimal() and isinstance(value, int | float) and 0 <= value <= 1 for at, value in points)
        own = each.get("own_model") is True and not each.get("refusal")
        if sane and own and each["budget"] >= 0 and each.get("difficulty") == difficulty:
            yield each
