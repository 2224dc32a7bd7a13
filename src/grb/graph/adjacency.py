"""The adjacency of an undirected simple graph as a frozen CSR value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from grb.graph.sparse import Pattern


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Undirected, no self-loops, no duplicates; columns ascending in each row.

    Build one with :func:`grb.graph.adjacency_from_csr` or :func:`grb.graph.adjacency_from_edges`, which check these
    properties; the constructor trusts its arguments.

    Args:
        pattern: Both directions of every edge, [n, n].
        values: Weight of every entry (equal in both directions), [entries]; None means that all are one.
        features: Features of every entry (equal in both directions), [entries, f]; None where edges have none.
    """

    pattern: Pattern
    values: Tensor | None = None
    features: Tensor | None = None

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.pattern.shape[0]

    @property
    def num_edges(self) -> int:
        """Undirected edges, each counted once."""
        return self.pattern.entries // 2

    @property
    def device(self) -> torch.device:
        """Device of the arrays."""
        return self.pattern.device

    @property
    def num_edge_features(self) -> int:
        """Number of features per edge; 0 where edges have none."""
        return 0 if self.features is None else int(self.features.shape[1])

    @property
    def degrees(self) -> Tensor:
        """Neighbours of every node, [n]."""
        return self.pattern.counts

    @cached_property
    def keys(self) -> Tensor:
        """``row * n + column`` of every entry, ascending, [entries]."""
        return self.pattern.row_ids.long() * self.n + self.pattern.indices.long()

    def separate(self, *, copy: bool = False) -> Adjacency:
        """A value of its own, without what is kept about this one; with ``copy`` it shares no array either."""
        values = self.values.detach().clone() if copy and self.values is not None else self.values
        return Adjacency(self.pattern.separate(copy=copy), values)

    def edges(self) -> Tensor:
        """Every undirected edge once as (u, v) with u < v, [2, num_edges]."""
        rows, cols = self.pattern.row_ids.long(), self.pattern.indices.long()
        upper = rows < cols
        return torch.stack([rows[upper], cols[upper]])

    def has(self, pairs: Tensor) -> Tensor:
        """Whether each pair (u, v) is an edge, [p] from [2, p]; ids outside the graph are not."""
        inside = ((pairs >= 0) & (pairs < self.n)).all(0)
        wanted = pairs[0] * self.n + pairs[1]
        if not len(self.keys):
            return torch.zeros_like(inside)
        position = torch.searchsorted(self.keys, wanted).clamp(max=len(self.keys) - 1)
        return inside & (self.keys[position] == wanted)

    def crosses(self, owner: Tensor) -> bool:
        """Whether an edge joins nodes of different owners, ``owner`` being [n]."""
        rows, cols = self.pattern.row_ids.long(), self.pattern.indices.long()
        return bool((owner[rows] != owner[cols]).any())

    def neighbours(self, node: int) -> Tensor:
        """Ascending ids of the neighbours of one node."""
        start, stop = self.pattern.indptr[node], self.pattern.indptr[node + 1]
        return self.pattern.indices[start:stop].long()

    def edited(self, add: Tensor, drop: Tensor, *, base: int, n: int) -> Adjacency:
        """With edges added (weight one, features zero) and dropped and ``n`` nodes; trusts its arguments, see ``Graph.apply``.

        Args:
            add: [2, a], absent pairs of ids below ``n``.
            drop: [2, r], existing pairs.
            base: Nodes that stay; all later ones are cut off with their edges.
            n: New number of nodes, those after ``base`` being new.
        """
        kept = self._kept(drop, base)
        if not add.numel() and n <= kept.n:
            return kept
        both = torch.cat([add, add.flip(0)], dim=1)
        both = both[:, torch.argsort(both[0] * n + both[1])]
        positions = kept._positions(both) + torch.arange(both.shape[1])
        entries = kept.pattern.entries + both.shape[1]
        old = torch.ones(entries, dtype=torch.bool)
        old[positions] = False
        indices = torch.empty(entries, dtype=kept.pattern.indices.dtype)
        indices[old] = kept.pattern.indices
        indices[positions] = both[1].to(indices.dtype)
        counts = functional.pad(kept.pattern.counts, (0, n - kept.n)).long() + torch.bincount(both[0], minlength=n)
        indptr = functional.pad(counts.cumsum(0), (1, 0)).to(kept.pattern.indptr.dtype)
        values = kept.values
        if values is not None:
            values = values.new_ones(entries).masked_scatter(old, values)
        features = kept.features
        if features is not None:
            features = features.new_zeros(entries, features.shape[1]).index_copy(0, old.nonzero().flatten(), features)
        return Adjacency(Pattern(indptr, indices, n, symmetric=True), values, features)

    def _kept(self, drop: Tensor, base: int) -> Adjacency:
        """Without the dropped edges and without the nodes from ``base`` on."""
        if not drop.numel() and base == self.n:
            return self
        rows, cols = self.pattern.row_ids.long(), self.pattern.indices.long()
        keep = (rows < base) & (cols < base)
        if drop.numel():
            both = torch.cat([drop, drop.flip(0)], dim=1)
            keep[torch.searchsorted(self.keys, both[0] * self.n + both[1])] = False
        pattern = _pattern(rows[keep], cols[keep], base, self.pattern.indices.dtype)
        return Adjacency(pattern, *self.carried(keep))

    def carried(self, entries: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Weights and features of some entries, given by their numbers or by a mask; None where there are none."""
        values, features = (None if each is None else each[entries] for each in (self.values, self.features))
        return values, features

    def _positions(self, pairs: Tensor) -> Tensor:
        """Where new entries (row, column) go among the present ones; new nodes come last in every row."""
        rows, cols = pairs
        ends = self.pattern.indptr.long()[(rows + 1).clamp(max=self.n)]
        inside = (rows < self.n) & (cols < self.n)
        if inside.any():
            ends[inside] = torch.searchsorted(self.keys, rows[inside] * self.n + cols[inside])
        return ends

    def subgraph(self, nodes: Tensor) -> Adjacency:
        """Induced by ``nodes`` (distinct ids), renumbered 0.. in the order given."""
        new_id = torch.full((self.n,), -1, dtype=torch.int64, device=self.device)
        new_id[nodes] = torch.arange(len(nodes), device=self.device)
        rows, cols = new_id[self.pattern.row_ids.long()], new_id[self.pattern.indices.long()]
        keep = (rows >= 0) & (cols >= 0)
        rows, cols = rows[keep], cols[keep]
        if not (nodes.diff() > 0).all():  # ascending nodes keep the entries in order
            order = torch.argsort(rows * max(len(nodes), 1) + cols)
            rows, cols = rows[order], cols[order]
            keep = keep.nonzero().flatten()[order]
        pattern = _pattern(rows, cols, len(nodes), self.pattern.indices.dtype)
        return Adjacency(pattern, *self.carried(keep))

    def to(self, device: torch.device | str) -> Adjacency:
        """The same edges on another device."""
        values, features = (None if each is None else each.to(device) for each in (self.values, self.features))
        return Adjacency(self.pattern.to(device), values, features)


def _pattern(rows: Tensor, cols: Tensor, n: int, dtype: torch.dtype) -> Pattern:
    counts = torch.bincount(rows, minlength=n)
    indptr = functional.pad(counts.cumsum(0), (1, 0)).to(dtype)
    return Pattern(indptr, cols.to(dtype), n, symmetric=True)
