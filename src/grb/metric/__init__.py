"""Scores of predictions, the leaderboard summaries of the GRB paper, and intervals for repeated runs.

Every function is pure and takes arrays, sequences or torch tensors; floats come back, or numpy arrays where it says so.
"""

from grb.metric.prediction import accuracy, auroc, changed, f1
from grb.metric.summary import (
    Interval,
    MeanStd,
    Side,
    average,
    bootstrap_interval,
    confidence_interval,
    mean_std,
    paired_difference,
    rank_weights,
    summarise,
    three_max,
    three_min,
    weighted,
)

__all__ = [
    "Interval",
    "MeanStd",
    "Side",
    "accuracy",
    "auroc",
    "average",
    "bootstrap_interval",
    "changed",
    "confidence_interval",
    "f1",
    "mean_std",
    "paired_difference",
    "rank_weights",
    "summarise",
    "three_max",
    "three_min",
    "weighted",
]
