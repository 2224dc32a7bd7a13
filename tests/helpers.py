"""Parts that several test files share; import them with `from helpers import needs_grb_cora`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def find_dataset(relative: str) -> Path | None:
    """The first directory `relative` below a root of GRB_DATA, or None."""
    roots = (Path(root) for root in os.environ.get("GRB_DATA", "").split(os.pathsep) if root)
    return next((root / relative for root in roots if (root / relative).is_dir()), None)


needs_grb_cora = pytest.mark.skipif(
    find_dataset("GRB/grb-cora") is None,
    reason="needs the true grb-cora: no root of GRB_DATA holds GRB/grb-cora",
)
