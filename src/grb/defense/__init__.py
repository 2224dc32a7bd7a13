"""Defenses: models and trainings that resist."""

from grb.defense.base import Defense, Training
from grb.defense.build import build_defense

__all__ = ["Defense", "Training", "build_defense"]
