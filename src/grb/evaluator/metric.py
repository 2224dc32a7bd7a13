"""Metrics by the papers' names; :mod:`grb.compat.metrics` has them, :mod:`grb.metric` has ours."""

from __future__ import annotations

from grb import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    dict.fromkeys(
        ("eval_acc", "eval_f1multilabel", "eval_rocauc", "get_weights_arithmetic", "get_weights_polynomial"),
        "grb.compat.metrics",
    ),
)
