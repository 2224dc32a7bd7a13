"""How much a random search changes at a time: the Square attack's schedule, which every scenario shares."""

from __future__ import annotations

from dataclasses import dataclass

from grb.attack.setting_checks import at_least, fractions, positive

# fractions of the queries after which a proposal changes half as much
MILESTONES = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


def shrunk(share: float, step: int, steps: int) -> float:
    """The fraction of the state that a proposal changes: halved at every milestone.

    Args:
        share: Fraction that the first proposals change.
        step: Number of the proposal.
        steps: Number of all proposals.

    References:
        Andriushchenko et al., *Square Attack: a query-efficient black-box adversarial attack via random search*, ECCV 2020.

    >>> shrunk(0.5, 0, 1000), shrunk(0.5, 1, 1000), shrunk(0.5, 999, 1000) == 0.5 / 2**9
    (0.5, 0.25, True)
    """
    return share / 2 ** sum(step >= milestone * steps for milestone in MILESTONES)


@dataclass(frozen=True, kw_only=True)
class SquareSchedule:
    """Settings of a random search by this schedule.

    Args:
        steps: Number of proposals where there is no limit of queries.
        share: Fraction of the state that the first proposals change.
    """

    steps: int = 1000
    share: float = 0.5

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps)
        fractions(share=self.share)
        positive(share=self.share)
