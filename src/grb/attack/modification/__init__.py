"""Modification attacks: edges among the original nodes go and come, features of some of them change."""

from grb.attack.modification.base import SearchState, modify
from grb.attack.modification.dice import DICE
from grb.attack.modification.eva import EvA
from grb.attack.modification.eva_plus import EvAPlus
from grb.attack.modification.fga import FGA
from grb.attack.modification.flip import FLIP
from grb.attack.modification.grabnel import GRABNEL
from grb.attack.modification.local_search import LocalSearch
from grb.attack.modification.low_rank_collapse import LowRankCollapse
from grb.attack.modification.lrbcd import LRBCD
from grb.attack.modification.metapgd import MetaPGD
from grb.attack.modification.metattack import Metattack
from grb.attack.modification.nea import NEA
from grb.attack.modification.nettack import Nettack
from grb.attack.modification.pgd import FGSM, PGD, TopologyPGD
from grb.attack.modification.poisoning import poisoned
from grb.attack.modification.prbcd import GRBCD, PRBCD
from grb.attack.modification.random import RAND, RND
from grb.attack.modification.random_search import RandomSearch
from grb.attack.modification.rl_s2v import RLS2V
from grb.attack.modification.stack import STACK

__all__ = [
    "DICE",
    "EvA",
    "EvAPlus",
    "FGA",
    "FGSM",
    "FLIP",
    "GRABNEL",
    "GRBCD",
    "LRBCD",
    "LocalSearch",
    "LowRankCollapse",
    "NEA",
    "PGD",
    "PRBCD",
    "RAND",
    "RLS2V",
    "RND",
    "RandomSearch",
    "STACK",
    "SearchState",
    "MetaPGD",
    "Metattack",
    "Nettack",
    "TopologyPGD",
    "modify",
    "poisoned",
]
