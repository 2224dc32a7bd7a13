"""A dataset by whatever names it."""

from __future__ import annotations

import os
from typing import Literal

from grb.catalogue import canonical, resolve
from grb.dataset import own
from grb.dataset.dataset import Dataset
from grb.dataset.sources import SOURCES
from grb.errors import UnknownName


def load_dataset(
    name: str,
    *,
    mode: str = "full",
    feat_norm: str | None = "arctan",
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["own", "difficulty"] = "own",
) -> Dataset:
    """A dataset by its name, by ``"package.module:Class"``, from a plug-in, or from a path.

    What files may hold is told by :mod:`grb.dataset.own`.
    ``feat_norm`` is for the datasets of GRB; all others keep the features that they have.
    ``split="difficulty"`` draws the paper's easy, medium and hard test nodes (seed 0) instead of the split that it has.
    """
    if split not in ("own", "difficulty"):
        raise UnknownName("split", str(split), ("own", "difficulty"), advice="Allowed: own, difficulty.")
    if split == "difficulty":
        loaded = load_dataset(name, feat_norm=feat_norm, data_dir=data_dir)
        return loaded.with_difficulty().with_mode(mode)
    if own.is_path(name):
        return own.from_path(name).with_mode(mode)
    loader = resolve("dataset", name)
    if loader is Dataset or (":" not in name and canonical("dataset", name) in SOURCES):
        return Dataset(name, data_dir, mode=mode, feat_norm=feat_norm)
    dataset = loader()
    if not isinstance(dataset, Dataset):
        dataset = own.from_pyg(dataset, name.rpartition(":")[2])
    return dataset.with_mode(mode)
