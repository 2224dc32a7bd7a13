"""Raw files on disk through the classes of ``torch_geometric.datasets``, and their ``Data`` as checked arrays."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.dataset.raw_arrays import PARTS, Array, RawArrays
from grb.dataset.registry import Source
from grb.errors import DataError, GRBError

# graphs that the paper leaves out
LARGEST = {"DD": 3500}
# bytes of an edge list up to which repeated edges are counted
MAX_LISTED = 64 * 2**20


def read(source: Source, folder: Path, stage: Path) -> RawArrays:
    """A dataset from the directory that has its ``raw/``; whatever the class writes goes below ``stage``."""
    root = stage / source.loader
    _link(folder / "raw", root / source.folder / "raw")
    maker = _offline(source)
    with _quiet():
        try:
            if source.parts:
                return _in_parts([_made(maker, source, root, split=part) for part in PARTS], source)
            dataset = _made(maker, source, root)
            again = listed_again(folder / "raw")
            if len(dataset) == 1:
                found = single(dataset[0], source.title, predefined=source.splitting == "predefined")
            else:
                kept = source.options.get("use_edge_attr", False)
                found = collection(list(dataset), source.title, source.task, edge_features=kept)
            return replace(found, notes=[*found.notes, *again])
        except GRBError:
            raise
        except Exception as error:  # whatever a parser of foreign files meets
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
            raise DataError(
                f"torch_geometric's {source.loader} cannot read {folder / 'raw'} ({reason}); get the files again"
            ) from None


def listed_again(raw: Path) -> list[str]:
    """A note on edges that a raw text file lists more than once, which torch_geometric merges without a word.

    Known are the lists of Geom-GCN (``out1_graph_edges.txt``) and of TUDataset (``NAME_A.txt``); those above 64 MiB are not
    counted.
    """
    lists: list[tuple[Path, int, str | None]] = [(path, 1, None) for path in raw.glob("out1_graph_edges.txt")]
    lists += [(path, 0, ",") for path in raw.glob("*_A.txt")]
    count = 0
    for path, header, delimiter in lists:
        if path.stat().st_size <= MAX_LISTED:
            pairs = np.loadtxt(path, skiprows=header, dtype=np.int64, delimiter=delimiter, ndmin=2)
            keys = pairs[:, 0] * (int(pairs.max(initial=0)) + 1) + pairs[:, 1]
            count += len(keys) - len(np.unique(keys))
    return [f"{count} edges listed again in the raw files merged"] if count else []


def single(data: Any, name: str, *, predefined: bool, edge_features: bool = False) -> RawArrays:
    """One graph whose nodes are classified; ``predefined`` takes its splits from its masks."""
    splits, edges = _masks(data) if predefined else [], data.edge_index.numpy()
    found = RawArrays(name, int(data.num_nodes), edges, data.y, x=_array(data.x), splits=splits)
    return _with_attributes(found, [data], edge_features)


def own_splits(data: Any) -> list[dict[str, Array]]:
    """The splits that masks of a ``Data`` give, one for every column; empty without masks.

    ``val_mask`` may be missing; one of ``train_mask`` and ``test_mask`` alone is refused.
    """
    masks = {part: getattr(data, f"{part}_mask", None) for part in PARTS}
    given = {part: torch.as_tensor(mask) for part, mask in masks.items() if mask is not None}
    if not given:
        return []
    for part in ("train", "test"):
        if part not in given:
            named = ", ".join(f"{each}_mask" for each in given)
            raise DataError(
                f"the data has {named} and no {part}_mask; give train_mask and test_mask, or own_split=False to draw a split"
            )
    n = int(data.num_nodes)
    for part, mask in given.items():
        if mask.dtype != torch.bool or mask.dim() not in (1, 2) or len(mask) != n:
            raise DataError(
                f"{part}_mask has shape {list(mask.shape)} and dtype {mask.dtype}, but booleans [{n}] or [{n}, splits] are "
                "needed"
            )
    if len(given) == len(PARTS):
        return _masks(data)
    columns = {part: mask if mask.dim() == 2 else mask.unsqueeze(1) for part, mask in given.items()}
    count = max(mask.shape[1] for mask in columns.values())
    return [
        {part: mask.expand(-1, count)[:, i].nonzero().flatten().numpy() for part, mask in columns.items()}
        for i in range(count)
    ]


def collection(
    items: Sequence[Any],
    name: str,
    task: str,
    splits: Sequence[Mapping[str, Array]] = (),
    *,
    edge_features: bool = False,
) -> RawArrays:
    """Several graphs; ``task`` says whether nodes or graphs are classified."""
    sizes = np.array([int(item.num_nodes) for item in items])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    edges = np.concatenate([item.edge_index.numpy() + start for item, start in zip(items, starts)], axis=1)
    features = [_features(item) for item in items]
    x = None if any(part is None for part in features) else torch.cat(features)  # type: ignore[arg-type]
    labels = [torch.as_tensor(item.y) for item in items]
    y = torch.cat(labels) if task == "node" else torch.cat([label.reshape(1, -1) for label in labels]).squeeze(1)
    found = RawArrays(name, int(sizes.sum()), edges, y, x=_array(x), sizes=sizes, splits=splits)
    return _with_attributes(found, items, edge_features)


def _array(x: Tensor | None) -> Array | None:
    return None if x is None else x.numpy()


def _features(data: Any) -> Tensor | None:
    """Features with coordinates beside them, which superpixels have."""
    found = (getattr(data, "x", None), getattr(data, "pos", None))
    parts = [part.float() for part in found if part is not None]
    return torch.cat(parts, dim=1) if parts and sum(part.shape[1] for part in parts) else None


def _with_attributes(found: RawArrays, items: Sequence[Any], kept: bool) -> RawArrays:
    """With ``edge_attr`` as edge features if they are to be kept and every item has them, else with a note."""
    attributes = [getattr(item, "edge_attr", None) for item in items]
    first = attributes[0]
    if first is None:
        return found
    columns = 1 if first.dim() == 1 else first.shape[1]
    given = [each for each in attributes if each is not None]
    if kept and len(given) == len(items):
        rows = torch.cat([each.reshape(-1, columns) for each in given])
        return replace(found, edge_features=rows.numpy())
    return replace(found, notes=[f"edge attributes ({columns} column{'s' * (columns != 1)}) dropped"])


def _in_parts(parts: Sequence[Any], source: Source) -> RawArrays:
    """Train, validation and test graphs, one after the other, as one collection."""
    counts = [len(part) for part in parts]
    ids = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    items = [item for part in parts for item in part]
    return collection(items, source.title, source.task, [dict(zip(PARTS, ids, strict=True))])


def _masks(data: Any) -> list[dict[str, Array]]:
    masks: list[Any] = [getattr(data, f"{part}_mask", None) for part in PARTS]
    train, val, test = masks
    if any(mask is None for mask in masks):
        raise DataError("this graph has no train_mask, val_mask and test_mask, but its splits should be predefined")
    stopping = getattr(data, "stopping_mask", None)
    if stopping is not None:  # WikiCS: its validation nodes are for choosing parameters, which nobody does here
        train, val = train | val, stopping
    columns = max(mask.shape[1] if mask.dim() == 2 else 1 for mask in (train, val, test))
    wide = [(mask if mask.dim() == 2 else mask.unsqueeze(1)).expand(-1, columns) for mask in (train, val, test)]
    return [
        {part: mask[:, i].nonzero().flatten().numpy() for part, mask in zip(PARTS, wide, strict=True)}
        for i in range(columns)
    ]


def _made(maker: Any, source: Source, root: Path, **given: Any) -> Any:
    arguments = {**source.options, **given} | ({"name": source.name} if source.name else {})
    if source.name in LARGEST:
        limit = LARGEST[str(source.name)]
        arguments["pre_filter"] = lambda data: data.num_nodes < limit
    if source.loader == "MalNetTiny":
        from torch_geometric.transforms import LocalDegreeProfile

        arguments["pre_transform"] = LocalDegreeProfile()
    return maker(root=str(root), **arguments)


def _offline(source: Source) -> Any:
    """The class, except that it never downloads."""
    import torch_geometric.datasets

    def refuse(self: Any) -> None:
        missing = [Path(path).name for path in self.raw_paths if not os.path.exists(path)]
        raise DataError(
            f"the raw files of {source.title} lack {', '.join(missing[:4])}; let torch_geometric get them: {source.call}"
        )

    maker = getattr(torch_geometric.datasets, source.loader)
    return type(source.loader, (maker,), {"download": refuse})


def _link(raw: Path, target: Path) -> None:
    """The raw files as part of the stage, without copying them where the system has links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(raw.resolve(), target_is_directory=True)
    except OSError:
        shutil.copytree(raw, target)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
