"""Defenses: models and trainings that resist."""

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
