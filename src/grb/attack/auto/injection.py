"""Members of the standard ensemble for injections.

Chosen by what they leave on grb-cora for the CPU time that they take: classes apart and low degrees first against models that
average, uniform and TDGIA's edges against normalised ones, starts at real nodes, at noise and at the mean of the targets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grb.attack.auto.member import Member
from grb.attack.injection.composed import ComposedInjection
from grb.attack.injection.pgd import PGD
from grb.attack.injection.random_search import InjectionRandomSearch

# steps before edges are exchanged, rounds of exchange, and steps after each of them, by level
EFFORT = ((60, 4, 20), (150, 12, 40), (300, 30, 60))


def _composed(**parts: Any) -> Callable[[int], ComposedInjection]:
    def build(level: int) -> ComposedInjection:
        steps, rewirings, refine = EFFORT[level]
        return ComposedInjection(steps=steps, rewirings=rewirings, refine=refine, **parts)

    return build


def _pgd(level: int) -> PGD:
    return PGD(step_size=0.01, steps=(100, 400, 1000)[level])


def _random_search(level: int) -> InjectionRandomSearch:
    return InjectionRandomSearch(steps=(150, 1000, 4000)[level])


MEMBERS = (
    Member("classes-real", _composed(edges="low-degree-classes", start="other-class")),
    Member("classes-noise-apgd", _composed(edges="low-degree-classes", start="noise", optimiser="apgd")),
    Member("classes-margin", _composed(edges="low-degree-classes", start="other-class", loss="tanh-margin")),
    Member("uniform-real", _composed(edges="uniform", start="other-class")),
    Member("tdgia-real", _composed(edges="tdgia", start="other-class")),
    Member("classes-mean", _composed(edges="low-degree-classes", start="mean")),
    Member(
        "tdgia-smooth", _composed(edges="tdgia", start="everywhere", loss="smooth", optimiser="sine", step_size=0.1)
    ),
    Member("pgd", _pgd),
    Member("random-search", _random_search, gradient_free=True),
)
