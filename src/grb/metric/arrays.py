"""Arrays, sequences and tensors as checked numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from grb.errors import DataError

Array = npt.NDArray[Any]


def as_array(values: Any, name: str) -> Array:
    """A numpy view or copy of an array, a sequence, or anything with torch's ``detach().cpu()``."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # numpy has no bfloat16; float32 holds it exactly
            values = values.float()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} must hold numbers, got dtype {array.dtype}")
    return array


def as_labels(values: Any, name: str, length: int | None = None) -> Array:
    """Checked integer labels, [n], n >= 1; with ``length`` checked to have that length."""
    labels = as_array(values, name)
    if labels.ndim != 1 or labels.size == 0:
        raise DataError(f"{name} must be [n] labels with n >= 1, got shape {list(labels.shape)}")
    if labels.dtype.kind == "f" and not (np.isfinite(labels) & (labels == np.rint(labels))).all():
        raise DataError(f"{name} must hold integer labels, got fractions, NaN or infinity; scores go in as [n, c]")
    if length is not None and len(labels) != length:
        raise DataError(f"{name} has {len(labels)} labels for {length} predictions; pass one label per row")
    return labels.astype(np.int64)
