"""Datasets from what other libraries and files hold: torch_geometric, networkx, CSV, pandas, Parquet."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from grb.dataset import cleaning, frames, pyg
from grb.dataset.cleaning import CleaningOptions
from grb.dataset.original_names import OriginalNames
from grb.dataset.splits import Predefined, split_from_parts
from grb.errors import DataError
from grb.graph import convert

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset


class FromOthers:
    """Constructors of :class:`~grb.dataset.Dataset` from the formats of others."""

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        *,
        name: str = "custom",
        mode: str = "full",
        feat_norm: str | None = None,
        seed: int = 0,
        own_split: bool | None = None,
    ) -> Dataset:
        """A torch_geometric ``Data``.

        Args:
            data: With ``edge_index`` and ``y``; its ``train_mask``, ``val_mask`` and ``test_mask`` are its split, of several
                columns its splits (:meth:`with_split`).
            name: Name shown in tables.
            mode: As in :class:`Dataset`.
            feat_norm: As in :class:`Dataset`; features are left as they are by default.
            seed: Random seed of the split that is drawn where the data has none.
            own_split: True to insist on the data's masks, False to draw the paper's split in any case; by default masks are
                used where there are any, and without them a warning says that a split was drawn.
        """
        graph, notes = convert.from_pyg(data, mode="canonicalise")
        splits = [] if own_split is False else pyg.own_splits(data)
        if not splits and own_split:
            raise DataError(
                "own_split needs train_mask and test_mask in the data, but it has none of them; leave it out"
            )
        if not splits and own_split is None:
            warnings.warn(
                f"the data has no train_mask and test_mask, so that a split was drawn with seed {seed}: a model that was "
                "trained on other nodes has seen some of its test nodes; give the masks, or own_split=False if that is meant",
                stacklevel=2,
            )
        made = _class(cls)._make(
            graph, splits[0] if splits else None, notes, name=name, mode=mode, feat_norm=feat_norm, seed=seed
        )
        if len(splits) > 1:
            made.__dict__["scheme"] = Predefined([split_from_parts(split, graph.n) for split in splits])
        return made

    @classmethod
    def from_networkx(
        cls,
        source: Any,
        features: Any = None,
        labels: Any = None,
        *,
        name: str = "custom",
        mode: str = "full",
        feat_norm: str | None = None,
        seed: int = 0,
    ) -> Dataset:
        """A networkx graph; features and labels from arguments or the node attributes ``x`` and ``y``."""
        graph, notes = convert.from_networkx(source, features, labels, mode="canonicalise")
        listed = list(source.nodes)
        names = None if listed == list(range(graph.n)) else OriginalNames(nodes=[str(node) for node in listed])
        return _class(cls)._make(graph, None, notes, name=name, mode=mode, feat_norm=feat_norm, seed=seed, names=names)

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        mode: str = "full",
        header: bool | None = None,
        dangling: Literal["refuse", "drop"] = "refuse",
        leave_out: Sequence[str] = (),
        columns: Mapping[str, str | None] | None = None,
        **options: Any,
    ) -> Dataset:
        """Edge lists: a folder with edges.csv and nodes.csv (or labels.csv, features.csv, split.csv), or with Parquet files.

        Args:
            path: The folder, or the file of edges.
            name: Name shown in tables; the folder's if not given.
            mode: As in :class:`Dataset`.
            header: Whether the files have headers; detected from their first lines if None.
            dangling: Edges of nodes that no table has: ``refuse`` or ``drop``.
            leave_out: Columns that are not features.
            columns: Names of columns by role (``id``, ``label``, ``split``, ``time``, ``source``, ``target``, ``weight``) where
                they are not the usual ones, as in ``{"id": "account", "label": "fraud", "time": "opened"}``; a time column
                makes the earliest nodes train and the latest test.
            options: Those of :class:`~grb.dataset.CleaningOptions`, for instance ``components="largest"``; ``notes`` say
                what was done.
        """
        raw = frames.read_tables(path, header=header, dangling=dangling, leave_out=leave_out, columns=columns)
        raw = raw if name is None else replace(raw, name=name)
        return _class(cls).from_raw(cleaning.clean(raw, CleaningOptions(**options)).arrays).with_mode(mode)

    @classmethod
    def from_pandas(
        cls,
        nodes: Any,
        edges: Any,
        *,
        columns: Mapping[str, str | None] | None = None,
        leave_out: Sequence[str] = (),
        name: str = "custom",
        mode: str = "full",
        **options: Any,
    ) -> Dataset:
        """Two data frames of pandas; arguments as in :meth:`from_csv`, ids and names of columns are kept in ``names``."""
        raw = frames.from_frames(nodes, edges, columns=columns, leave_out=leave_out, name=name)
        return _class(cls).from_raw(cleaning.clean(raw, CleaningOptions(**options)).arrays).with_mode(mode)

    @classmethod
    def from_parquet(cls, nodes: str | os.PathLike[str], edges: str | os.PathLike[str], **options: Any) -> Dataset:
        """Two Parquet files; the other arguments are those of :meth:`from_pandas`. Needs the extra ``parquet``."""
        return cls.from_pandas(frames.read_parquet(nodes), frames.read_parquet(edges), **options)


def _class(cls: type) -> type[Dataset]:
    return cast("type[Dataset]", cls)
