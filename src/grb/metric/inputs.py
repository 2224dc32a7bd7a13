"""What metrics are computed from: decisions or scores in which an item without a valid prediction is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from grb.metric.arrays import Array, as_array
from grb.metric.ranking import log_odds


def decisions(logits: Any, decided: Any, labels: Any) -> Array:
    """Decisions where rows of logits with a NaN are -1, or for several labels per item the opposite of the truth.

    Args:
        logits: [n, c].
        decided: [n] classes, or [n, c] 0/1 decisions.
        labels: [n] classes, or [n, c] of 0, 1 or NaN = missing.
    """
    own, invalid = as_array(decided, "decisions"), _invalid(logits)
    if own.ndim == 1:
        return np.where(invalid, -1, own)
    return np.where(invalid[:, None], as_array(labels, "labels") != 1, own == 1)


def scores(logits: Any, decided: Any, labels: Any) -> Array:
    """Scores to rank by, [n, c] finite: log odds of the classes, or the logits for several labels per item.

    In a row with a NaN the true classes get the lowest scores and all others the highest.

    Args:
        logits: [n, c].
        decided: Not used; the same call serves :func:`decisions`.
        labels: [n] classes, or [n, c] of 0, 1 or NaN = missing.
    """
    table, truth, invalid = as_array(logits, "logits").astype(np.float64), as_array(labels, "labels"), _invalid(logits)
    single = truth.ndim == 1
    table[invalid] = 0.0
    # rounded, because equal probabilities differ in the last bits of their log odds, and ties must stay ties
    made = log_odds(table).round(9) if single and table.shape[1] > 1 else np.clip(table, -1e30, 1e30)
    if invalid.any():
        members = truth[invalid][:, None] == np.arange(table.shape[1]) if single else truth[invalid] == 1
        made[invalid] = np.where(members, made.min() - 1e31, made.max() + 1e31)
    return made


def _invalid(logits: Any) -> Array:
    """Rows with a NaN, [n]."""
    return np.asarray(np.isnan(as_array(logits, "logits")).any(axis=1))
