"""Metrics of predictions, the leaderboard summaries of the GRB paper, and intervals for repeated runs.

Every function is pure and takes arrays, sequences or torch tensors; floats come back, or numpy arrays where it says so.
``get("recall:1")`` finds a metric by its name: see :mod:`grb.metric.names`.
"""

from grb.metric.concordance import concordance
from grb.metric.names import METRICS, Metric, get, get_all
from grb.metric.prediction import accuracy, balanced_accuracy, changed, f1, precision, recall
from grb.metric.ranking import auroc, average_precision, log_odds, roc_curve
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
    "METRICS",
    "Interval",
    "MeanStd",
    "Metric",
    "Side",
    "accuracy",
    "auroc",
    "average",
    "average_precision",
    "balanced_accuracy",
    "bootstrap_interval",
    "changed",
    "concordance",
    "confidence_interval",
    "f1",
    "get",
    "get_all",
    "log_odds",
    "mean_std",
    "paired_difference",
    "precision",
    "rank_weights",
    "recall",
    "roc_curve",
    "summarise",
    "three_max",
    "three_min",
    "weighted",
]
