"""Members of the standard ensemble for injections.

Chosen by what they leave on grb-cora for the CPU time that they take: classes apart and low degrees first against models that
average, uniform and TDGIA's edges against normalised ones, starts at real nodes, at noise and at the mean of the targets.
"""

from __future__ import annotations

from typing import Any

from grb.attack.auto.member import LEVELS, Member
from grb.attack.injection.composed import ComposedInjection
from grb.attack.injection.continued import ContinuedInjection, ContinuedSearch
from grb.attack.injection.pgd import PGD
from grb.attack.injection.random_search import InjectionRandomSearch
from grb.graph import GraphEdit

# steps before edges are exchanged, rounds of exchange, and steps after each of them, by level
EFFORT = ((60, 4, 20), (150, 12, 40), (300, 30, 60))


def _composed(name: str, **parts: Any) -> Member:
    def build(level: int) -> ComposedInjection:
        steps, rewirings, refine = EFFORT[level]
        return ComposedInjection(steps=steps, rewirings=rewirings, refine=refine, **parts)

    def resume(edit: GraphEdit) -> ContinuedInjection:
        return ContinuedInjection(edit=edit, parts=build(LEVELS - 1))

    return Member(name, build, resume=resume)


def _pgd(level: int) -> PGD:
    return PGD(step_size=0.01, steps=(100, 400, 1000)[level])


def _random_search(level: int) -> InjectionRandomSearch:
    return InjectionRandomSearch(steps=(150, 1000, 4000)[level], credit=False)


MEMBERS = (
    _composed("classes-real", edges="low-degree-classes", start="other-class"),
    _composed("classes-noise-apgd", edges="low-degree-classes", start="noise", optimiser="apgd"),
    _composed("classes-margin", edges="low-degree-classes", start="other-class", loss="tanh-margin"),
    _composed("uniform-real", edges="uniform", start="other-class"),
    _composed("tdgia-real", edges="tdgia", start="other-class"),
    _composed("classes-mean", edges="low-degree-classes", start="mean"),
    _composed("tdgia-smooth", edges="tdgia", start="everywhere", loss="smooth", optimiser="sine", step_size=0.1),
    Member("pgd", _pgd),
    Member("composed-injection", lambda level: ComposedInjection(), reference=True),
    Member("random-search", _random_search, gradient_free=True, resume=lambda edit: ContinuedSearch(edit=edit)),
)
