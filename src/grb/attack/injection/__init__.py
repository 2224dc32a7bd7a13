"""Injection attacks: nodes are added, the original graph stays as it is."""

from grb.attack.injection.base import inject
from grb.attack.injection.composed import ComposedInjection
from grb.attack.injection.edges import EdgeRule, TargetState
from grb.attack.injection.fgsm import FGSM
from grb.attack.injection.pgd import PGD
from grb.attack.injection.random import RAND, RND
from grb.attack.injection.random_search import InjectionRandomSearch
from grb.attack.injection.speit import SPEIT
from grb.attack.injection.tdgia import TDGIA

__all__ = [
    "FGSM",
    "PGD",
    "RAND",
    "RND",
    "SPEIT",
    "TDGIA",
    "ComposedInjection",
    "EdgeRule",
    "InjectionRandomSearch",
    "TargetState",
    "inject",
]
