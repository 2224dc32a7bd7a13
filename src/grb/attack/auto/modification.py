"""Members of the standard ensemble for changed edges.

Chosen by what they leave on grb-cora and on Cora for the CPU time that they take: gradients with the masked cross-entropy
and with the margin, exact outcomes of flips proposed by gradients, by mutations and by both, and searches that ask for
outputs alone.
"""

from __future__ import annotations

from grb.attack.auto.member import Member
from grb.attack.losses import masked_cross_entropy
from grb.attack.modification.eva_plus import EvAPlus
from grb.attack.modification.fga import FGA
from grb.attack.modification.local_search import LocalSearch
from grb.attack.modification.prbcd import PRBCD
from grb.attack.modification.random_search import RandomSearch

# absent pairs that FGA looks at in a round: all there are for small graphs, a draw for others
POOL = 2**22


def _fga(level: int) -> FGA:
    return FGA(loss=masked_cross_entropy, refresh=(32, 16, 8)[level], pool=POOL)


def _fga_margin(level: int) -> FGA:
    return FGA(refresh=(32, 16, 8)[level], pool=POOL)


def _pr_bcd(level: int) -> PRBCD:
    return PRBCD(steps=(20, 60, 125)[level], search_space_size=200_000)


def _local_search(level: int) -> LocalSearch:
    return LocalSearch(candidates=(512, 1024, 4096)[level], rounds=(0, 4, 16)[level])


def _mixed_search(level: int) -> LocalSearch:
    effort = (256, 1024, 2048)[level]
    return LocalSearch(candidates=effort, mutations=effort, rounds=(0, 2, 10)[level])


def _eva_plus(level: int) -> EvAPlus:
    return EvAPlus(candidates=(512, 1024, 2048)[level], rounds=(0, 4, 16)[level], share=0.2)


def _random_search(level: int) -> RandomSearch:
    return RandomSearch(steps=(200, 2000, 5000)[level])


MEMBERS = (
    Member("fga-masked", _fga),
    Member("fga-margin", _fga_margin),
    Member("pr-bcd", _pr_bcd),
    Member("local-search", _local_search),
    Member("local-search-mixed", _mixed_search),
    Member("eva-plus", _eva_plus, gradient_free=True),
    Member("random-search", _random_search, gradient_free=True),
)
