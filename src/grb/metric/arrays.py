"""Whatever callers have, as numpy arrays."""

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
