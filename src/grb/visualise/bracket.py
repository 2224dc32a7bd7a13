"""What is certified and what attacks leave, over the budget: the truth lies between the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grb.errors import DataError, IntegrityError
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def draw_bracket(brackets: Mapping[str, Bracket], *, title: str | None = None) -> Figure:
    """A band for every model: certified below, attacked above, over the budget."""
    if not brackets:
        raise DataError("there are no brackets to draw")

    def draw(axes: Any, name: str, data: Bracket, look: Mapping[str, Any]) -> None:
        low, high = ([100 * value for value in side] for side in (data.certified, data.attacked))
        axes.fill_between(data.budgets, low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(data.budgets, high, label=f"{name}: attacked", **look)
        axes.plot(data.budgets, low, ls="--", label=f"{name}: certified", **look)

    units = " or ".join(dict.fromkeys(data.unit for data in brackets.values()))
    return style.percentages(brackets, draw, xlabel=units, ylabel="accuracy (%)", title=title)
