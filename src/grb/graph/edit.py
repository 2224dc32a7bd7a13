"""What an attack returns: not a graph but the difference to one, O(budget) in size."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import edit_export
from grb.graph.edit_arrays import read_meta, read_pairs, read_rows
from grb.graph.files import FREE_EDIT_BYTES, MAX_EDIT_RATIO, read_npz, write_npz
from grb.graph.graph import Graph, in_blocks
from grb.graph.sparse import CSR, Pattern, dense

FORMAT = 1
MAX_EDIT_BYTES = 2 * 2**30
MAX_NODES = 2**31
_ARRAYS = ("add", "drop", "new_x", "set_ids", "set_x", "meta")


def _no_pairs() -> Tensor:
    return torch.empty(2, 0, dtype=torch.int64)


@dataclass(frozen=True, eq=False)
class GraphEdit:
    """Edges added and dropped, nodes appended, feature rows replaced, in a graph of ``n`` nodes.

    Undirected edges are kept once, as (u, v) with u < v, in ascending order; the constructor puts them so.
    Appended nodes have the ids ``n - cut``, ``n - cut + 1``, ...; in a collection they join the graph that their edges
    lead to, see :mod:`~grb.graph.batching`.

    Args:
        n: Nodes of the graph that this edits.
        add: New edges, [2, a].
        drop: Removed edges, [2, r].
        new_x: Features of the appended nodes, [m, d].
        set_ids: Nodes whose features are replaced, [k].
        set_x: Their new features, [k, d].
        cut: How many of the last nodes are removed, with their edges; 0 for every attack, the inverse of an
            injection needs it.

    >>> edit = GraphEdit(n=3, add=torch.tensor([[3], [0]]), new_x=torch.ones(1, 2))
    >>> edit.add.tolist(), edit.num_new
    ([[0], [3]], 1)
    """

    n: int
    add: Tensor = field(default_factory=_no_pairs)
    drop: Tensor = field(default_factory=_no_pairs)
    new_x: Tensor | None = None
    set_ids: Tensor | None = None
    set_x: Tensor | None = None
    cut: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.n < MAX_NODES or self.num_new >= MAX_NODES - self.n:
            raise DataError(
                f"an edit is for {self.n} nodes and {self.num_new} new ones, but 0 to {MAX_NODES - 1} are possible"
            )
        if not 0 <= self.cut <= self.n:
            raise DataError(f"an edit cuts {self.cut} nodes, but the graph has {self.n}")
        object.__setattr__(self, "add", _canonical(self.add, self.n_after, "add"))
        object.__setattr__(self, "drop", _canonical(self.drop, self.base, "drop"))
        if self.new_x is not None:
            rows = _checked_rows(self.new_x, "new_x")
            object.__setattr__(self, "new_x", rows if len(rows) else None)
        if (self.set_ids is None) != (self.set_x is None):
            raise DataError("set_ids and set_x go together: give both or neither")
        if self.set_ids is not None and self.set_x is not None:
            self._sort_rows(self.set_ids, self.set_x)
        if self.add.numel() and self.drop.numel() and torch.isin(_keys(self.add), _keys(self.drop)).any():
            raise DataError("an edit both adds and drops the same edge")

    def _sort_rows(self, ids: Tensor, rows: Tensor) -> None:
        rows = _checked_rows(rows, "set_x")
        if ids.dim() != 1 or not _whole(ids) or len(ids) != len(rows):
            raise DataError(f"set_ids has shape {list(ids.shape)}, but one integer id per row of set_x is needed")
        if len(ids) and (ids.min() < 0 or ids.max() >= self.base or len(ids.unique()) != len(ids)):
            raise DataError(f"set_ids must be distinct nodes 0 to {self.base - 1}")
        order = torch.argsort(ids)
        object.__setattr__(self, "set_ids", ids[order].long() if len(ids) else None)
        object.__setattr__(self, "set_x", rows[order] if len(ids) else None)

    @property
    def base(self) -> int:
        """Nodes that stay: ids from here on are appended ones."""
        return self.n - self.cut

    @property
    def num_new(self) -> int:
        """Number of appended nodes."""
        return 0 if self.new_x is None else len(self.new_x)

    @property
    def n_after(self) -> int:
        """Number of nodes after the edit."""
        return self.base + self.num_new

    @property
    def is_empty(self) -> bool:
        """Whether the edit changes nothing."""
        return not (self.add.numel() or self.drop.numel() or self.num_new or self.cut or self.set_ids is not None)

    @property
    def nbytes(self) -> int:
        """Size of the arrays in memory."""
        parts = (self.add, self.drop, self.new_x, self.set_ids, self.set_x)
        return sum(part.numel() * part.element_size() for part in parts if part is not None)

    def then(self, later: GraphEdit) -> GraphEdit:
        """One edit that does this one and afterwards ``later``.

        An edge dropped here and added by ``later`` is left alone, so in a weighted graph it keeps its weight.
        """
        if later.n != self.n_after:
            raise DataError(f"the later edit is for {later.n} nodes, but this one leaves {self.n_after}")
        base = min(self.base, later.base)
        alive = later.base
        add1, drop1 = self.add[:, self.add[1] < alive], self.drop[:, self.drop[1] < base]
        kept_new = None if self.new_x is None else self.new_x[: max(0, alive - self.base)].clone()
        set_ids, set_x = _merge_rows(self, later, base, kept_new)
        return GraphEdit(
            n=self.n,
            add=torch.cat([_without(add1, later.drop), _without(later.add, drop1)], dim=1),
            drop=torch.cat([_without(drop1, later.add), _without(later.drop, add1)], dim=1),
            new_x=_stack(kept_new, later.new_x),
            set_ids=set_ids,
            set_x=set_x,
            cut=self.n - base,
        )

    def inverse(self, graph: Graph) -> GraphEdit:
        """The edit that leads from ``graph.apply(self)`` back to ``graph``; labels of cut nodes do not come back."""
        return GraphEdit.between(graph.apply(self), graph)

    @classmethod
    def between(cls, before: Graph, after: Graph, *, tolerance: float = 0.0) -> GraphEdit:
        """The edit that makes ``after`` of ``before``; nodes are matched by id, so either may have more at its end.

        Args:
            before: The clean graph.
            after: The attacked one.
            tolerance: Largest difference of a feature of an original node that is taken for rounding: files of others
                hold features of another precision. Such a row counts as unchanged; edges and weights must be equal.
        """
        if not 0 <= tolerance < float("inf"):
            raise DataError(f"tolerance is {tolerance}, but a finite number that is not negative is needed")
        if before.num_features != after.num_features:
            raise DataError(
                f"the graphs have {before.num_features} and {after.num_features} features, but must have equal"
            )
        base = min(before.n, after.n)
        if before.ptr is not None and before.n != after.n:
            raise DataError("nodes of collections of different size cannot be matched by id; compare graph by graph")
        old, new = before.adj, after.adj
        old_edges, new_edges = old.edges(), new.edges()
        add = new_edges[:, ~old.has(new_edges) | (new_edges[1] >= base)]
        gone = old_edges[:, old_edges[1] < base]
        drop = gone[:, ~new.has(gone)]
        _refuse_weight_changes(before, after, add, drop, base)
        old_x, new_x = dense(before.x), dense(after.x)
        changed = (old_x[:base] != new_x[:base]).any(1).nonzero().flatten()
        # negated, because a difference of NaN is none that may be forgiven
        changed = changed[(~((new_x[changed] - old_x[changed]).abs() <= tolerance)).any(1)]
        return cls(
            n=before.n,
            add=add,
            drop=drop,
            new_x=new_x[base:].clone() if after.n > base else None,
            set_ids=changed if len(changed) else None,
            set_x=new_x[changed] if len(changed) else None,
            cut=before.n - base,
        )

    def save(self, path: str | os.PathLike[str], **meta: Any) -> Path:
        """Write the one npz layout of grb: add, drop, new_x, set_ids, set_x, and meta as JSON text."""
        text = json.dumps({**meta, "format": FORMAT, "n": self.n, "cut": self.cut}, sort_keys=True, allow_nan=False)
        empty = np.zeros((0, 0), dtype=np.float32)
        arrays = {
            "add": self.add.numpy(),
            "drop": self.drop.numpy(),
            "new_x": empty if self.new_x is None else self.new_x.detach().numpy(),
            "set_ids": np.zeros(0, dtype=np.int64) if self.set_ids is None else self.set_ids.numpy(),
            "set_x": empty if self.set_x is None else self.set_x.detach().numpy(),
            "meta": np.frombuffer(text.encode(), dtype=np.uint8),
        }
        return write_npz(path, arrays, free_bytes=FREE_EDIT_BYTES)

    def to_csv(self, path: str | os.PathLike[str], names: Any = None) -> Path:
        """Write a row per change; ``names`` (``dataset.names``) gives nodes and columns the ids of the user's files."""
        return edit_export.to_csv(self, path, getattr(names, "nodes", None), getattr(names, "features", None))

    def to_networkx(self, names: Any = None) -> Any:
        """The changed edges as a networkx graph with ``change`` on edges and ``injected`` on nodes."""
        return edit_export.to_networkx(self, getattr(names, "nodes", None))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GraphEdit:
        """Read an edit; anything but plain finite arrays of the right shapes is refused."""
        return cls.load_with_meta(path)[0]

    @classmethod
    def load_with_meta(cls, path: str | os.PathLike[str]) -> tuple[GraphEdit, dict[str, Any]]:
        """An edit and its metadata from a npz file; anything malformed is refused."""
        arrays = read_npz(
            path,
            required=_ARRAYS,
            allowed=_ARRAYS,
            max_bytes=MAX_EDIT_BYTES,
            max_ratio=MAX_EDIT_RATIO,
            free_bytes=FREE_EDIT_BYTES,
        )
        meta = read_meta(path, arrays["meta"], FORMAT)
        pairs = {name: read_pairs(path, arrays[name], name) for name in ("add", "drop")}
        ids = arrays["set_ids"]
        if ids.dtype.kind not in "iu" or ids.ndim != 1:
            raise DataError(
                f"set_ids of {path} has dtype {ids.dtype} and shape {ids.shape}, but a list of ids is needed"
            )
        rows = {name: read_rows(path, arrays[name], name) for name in ("new_x", "set_x")}
        try:
            edit = cls(
                n=meta["n"],
                cut=meta["cut"],
                new_x=rows["new_x"],
                set_ids=torch.from_numpy(ids.astype(np.int64)) if len(ids) or rows["set_x"] is not None else None,
                set_x=rows["set_x"],
                **pairs,
            )
        except DataError as error:
            raise DataError(f"{path} is not a valid edit: {error}") from None
        return edit, meta

    def applied_to(self, graph: Graph) -> Graph:
        """The edited graph; refuses to add an edge that exists or to drop one that does not."""
        return _apply(self, graph)

    def __repr__(self) -> str:
        changed = 0 if self.set_ids is None else len(self.set_ids)
        return (
            f"GraphEdit(n={self.n}, add={self.add.shape[1]}, drop={self.drop.shape[1]}, new={self.num_new}, "
            f"set={changed}" + (f", cut={self.cut})" if self.cut else ")")
        )


def _apply(edit: GraphEdit, graph: Graph) -> Graph:
    if edit.n != graph.n:
        raise DataError(f"the edit is for a graph of {edit.n} nodes, but this one has {graph.n}")
    inside = edit.add[:, edit.add[1] < edit.base]
    present, gone = graph.adj.has(inside), ~graph.adj.has(edit.drop)
    if present.any():
        raise DataError(f"the edit adds edge {inside[:, present][:, 0].tolist()}, but the graph has it already")
    if gone.any():
        raise DataError(f"the edit drops edge {edit.drop[:, gone][:, 0].tolist()}, but the graph has no such edge")
    for rows in (edit.new_x, edit.set_x):
        if rows is not None and rows.shape[1] != graph.num_features:
            raise DataError(f"the edit has {rows.shape[1]} features per node, but the graph has {graph.num_features}")
    owner = None if graph.ptr is None else owners(graph, edit)
    adj = (
        graph.adj.edited(edit.add, edit.drop, base=edit.base, n=edit.n_after) if _touches_structure(edit) else graph.adj
    )
    x, y = _edited_features(edit, graph.x), _edited_labels(edit, graph)
    if owner is None or not edit.num_new:
        return Graph(adj, x, y, graph.ptr)
    return in_blocks(adj, x, y, owner, graph.num_graphs)


def owners(graph: Graph, edit: GraphEdit) -> Tensor:
    """The graph of every node of a collection after an edit, [n + new]; refuses an edge between two graphs.

    Args:
        graph: A collection.
        edit: An edit of it; every appended node must be joined with an old one, directly or by way of other new ones.
    """
    if edit.n != graph.n or edit.cut:
        raise DataError(f"the edit is for {edit.n} nodes and cuts {edit.cut}, but the collection has {graph.n} to keep")
    owner = torch.cat([graph.owner, torch.full((edit.num_new,), -1)])
    both = torch.cat([edit.add, edit.add.flip(0)], dim=1)
    # a round reaches the new nodes one hop further away from the old ones
    for _ in range(edit.num_new):
        open_ = both[:, (owner[both[0]] >= 0) & (owner[both[1]] < 0)]
        if not open_.shape[1]:
            break
        owner[open_[1]] = owner[open_[0]]
    isolated = (owner < 0).nonzero().flatten()
    if len(isolated):
        raise DataError(
            f"injected node {int(isolated[0]) - graph.n} has no edge that leads to a graph of the collection; join it with one"
        )
    crossing = owner[edit.add[0]] != owner[edit.add[1]]
    if crossing.any():
        raise DataError(f"the edit joins two graphs of the collection by edge {edit.add[:, crossing][:, 0].tolist()}")
    return owner


def _touches_structure(edit: GraphEdit) -> bool:
    return bool(edit.add.numel() or edit.drop.numel() or edit.num_new or edit.cut)


def _edited_features(edit: GraphEdit, x: Tensor | CSR) -> Tensor | CSR:
    if not (edit.num_new or edit.cut or edit.set_ids is not None):
        return x
    if isinstance(x, CSR):
        changed = _edited_features(edit, dense(x))
        assert isinstance(changed, Tensor)
        return sparse_features(changed)
    x = x[: edit.base]
    if edit.set_ids is not None and edit.set_x is not None:
        x = x.index_copy(0, edit.set_ids, edit.set_x.to(x.dtype))
    return x if edit.new_x is None else torch.cat([x, edit.new_x.to(x.dtype)])


def _edited_labels(edit: GraphEdit, graph: Graph) -> Tensor | None:
    y = graph.y
    if y is None or not (edit.num_new or edit.cut) or len(y) != graph.n:
        return y
    hidden = y.new_full((edit.num_new, *y.shape[1:]), -1)
    return torch.cat([y[: edit.base], hidden])


def sparse_features(x: Tensor) -> CSR:
    """Dense features as a sparse matrix."""
    rows, cols = x.nonzero(as_tuple=True)
    counts = torch.bincount(rows, minlength=len(x))
    indptr = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
    return CSR(Pattern(indptr, cols.to(torch.int32), x.shape[1]), x[rows, cols])


def _refuse_weight_changes(before: Graph, after: Graph, add: Tensor, drop: Tensor, base: int) -> None:
    """An edit carries no weights, so a difference in weights must not be lost in silence."""
    if before.adj.values is None and after.adj.values is None:
        return
    expected = before.adj.edited(add, drop, base=base, n=after.n).values
    seen = after.adj.values
    ones = torch.ones(after.adj.pattern.entries)
    if not torch.equal(ones if expected is None else expected, ones if seen is None else seen):
        raise DataError("the graphs differ in edge weights, which an edit cannot express; edit an unweighted graph")


def _canonical(pairs: Tensor, n: int, what: str) -> Tensor:
    if pairs.dim() != 2 or pairs.shape[0] != 2 or not _whole(pairs):
        raise DataError(
            f"{what} has shape {list(pairs.shape)} and dtype {pairs.dtype}, but integer pairs [2, m] are needed"
        )
    pairs = pairs.detach().cpu().long()
    if not pairs.numel():
        return _no_pairs()
    if pairs.min() < 0 or pairs.max() >= n:
        bad = pairs[(pairs < 0) | (pairs >= n)][0]
        raise DataError(f"{what} names node {int(bad)}, but there are nodes 0 to {n - 1}")
    low, high = torch.minimum(*pairs), torch.maximum(*pairs)
    if (low == high).any():
        raise DataError(f"{what} joins node {int(low[low == high][0])} with itself")
    keys, order = torch.sort(low * n + high)
    again = keys[1:] == keys[:-1]
    if again.any():
        twice = order[1:][again][0]
        raise DataError(f"{what} names edge {[int(low[twice]), int(high[twice])]} twice")
    return torch.stack([low[order], high[order]])


def _whole(ids: Tensor) -> bool:
    """Integers; not a boolean mask, which would be read as the ids 0 and 1."""
    return not (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool)


def _checked_rows(rows: Tensor, what: str) -> Tensor:
    """Rows as float32, like the features that they join: finite in float64 is not enough."""
    if rows.dim() != 2 or not rows.is_floating_point():
        raise DataError(f"{what} has shape {list(rows.shape)} and dtype {rows.dtype}, but float rows [m, d] are needed")
    rows = rows.to(torch.float32)
    if not torch.isfinite(rows).all():
        raise DataError(f"{what} holds NaN or infinite features, but features must be finite")
    return rows


def _keys(pairs: Tensor) -> Tensor:
    return pairs[0] * MAX_NODES + pairs[1]


def _without(pairs: Tensor, others: Tensor) -> Tensor:
    return pairs[:, ~torch.isin(_keys(pairs), _keys(others))]


def _stack(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    parts = [part for part in (first, second) if part is not None and len(part)]
    return torch.cat(parts) if parts else None


def _merge_rows(
    earlier: GraphEdit, later: GraphEdit, base: int, kept_new: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Replaced rows of both edits, the later one winning; rows of nodes that the earlier one appended go there."""
    rows: dict[int, Tensor] = {}
    if earlier.set_ids is not None and earlier.set_x is not None:
        rows.update(zip(earlier.set_ids.tolist(), earlier.set_x, strict=True))
    if later.set_ids is not None and later.set_x is not None:
        rows.update(zip(later.set_ids.tolist(), later.set_x, strict=True))
    for node in [node for node in rows if node >= earlier.base]:
        assert kept_new is not None
        kept_new[node - earlier.base] = rows.pop(node)
    staying = sorted(node for node in rows if node < base)
    if not staying:
        return None, None
    return torch.tensor(staying), torch.stack([rows[node] for node in staying])
