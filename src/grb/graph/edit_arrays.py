"""Arrays of an edit's npz file: nothing is trusted before it is checked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError


def read_meta(path: object, raw: np.ndarray[Any, Any], version: int) -> dict[str, Any]:
    """Format, number of nodes and whatever else a file says about its edit."""
    try:
        if raw.dtype != np.uint8 or raw.ndim != 1 or len(raw) > 2**20:
            raise ValueError("not text")
        meta = json.loads(raw.tobytes().decode("utf-8"))
        if not isinstance(meta, dict) or not all(type(meta.get(key)) is int for key in ("format", "n", "cut")):
            raise ValueError("no format, n or cut")
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"meta of {path} cannot be read ({str(error)[:80]}); it must be JSON with format, n and cut"
        ) from None
    if meta["format"] != version:
        raise DataError(f"{path} has edit format {meta['format']}, but this version reads {version}; update grb")
    return meta


def read_pairs(path: object, array: np.ndarray[Any, Any], name: str) -> Tensor:
    """Node pairs, [2, m]."""
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[0] != 2:
        raise DataError(
            f"{name} of {path} has dtype {array.dtype} and shape {array.shape}, but integer [2, m] is needed"
        )
    return torch.from_numpy(array.astype(np.int64))


def read_rows(path: object, array: np.ndarray[Any, Any], name: str) -> Tensor | None:
    """Rows of features, [m, d]; None if there are none."""
    if array.dtype.kind != "f" or array.ndim != 2:
        raise DataError(f"{name} of {path} has dtype {array.dtype} and shape {array.shape}, but float [m, d] is needed")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused
        return torch.from_numpy(array.astype(np.float32)) if len(array) else None
