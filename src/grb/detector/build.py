"""Detectors by name: ``homophily``, ``feature-likelihood``, ``joint``."""

from __future__ import annotations

import inspect
from typing import Any

from grb.catalogue import canonical, resolve
from grb.detector.base import Detector
from grb.errors import DataError

_SIZES = ("in_features", "out_features")


def build_detector(name: str, in_features: int, out_features: int, **params: Any) -> Detector:
    """A detector by its name (``grb ls detectors``) that has learnt nothing yet.

    Args:
        name: The name.
        in_features: Number of features.
        out_features: Number of classes.
        params: Other values for some of its arguments.

    >>> build_detector("homophily", 4, 2, side="both").side
    'both'
    """
    maker = resolve("detector", canonical("detector", name))
    accepted = [key for key in inspect.signature(maker).parameters if key not in _SIZES]
    if unknown := sorted(set(params) - set(accepted)):
        takes = f"it takes {', '.join(accepted)}" if accepted else "it takes no parameters"
        raise DataError(f"detector '{name}' does not take '{unknown[0]}'; {takes}")
    made: Detector = maker(in_features, out_features, **params)
    return made
