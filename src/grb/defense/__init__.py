"""Defenses: models and trainings that resist."""

from grb import _lazy
from grb.defense.base import Defense, Training
from grb.defense.build import build_defense
from grb.defense.defended import Defended
from grb.defense.preprocess import Cosine, Jaccard, Preprocess, Transform

__all__ = [
    "Cosine",
    "Defended",
    "Defense",
    "Jaccard",
    "Preprocess",
    "Training",
    "Transform",
    "build_defense",
]
# of the papers' era: names that THUDM/grb has here
__getattr__ = _lazy.attach(
    __name__,
    {
        "AdvTrainer": "grb.compat.trainers",
        "GATGuard": "grb.defense.gnnguard",
        "GCNGuard": "grb.defense.gnnguard",
        "GCNSVD": "grb.defense.gcnsvd",
        "RobustGCN": "grb.defense.robustgcn",
    },
)[0]
