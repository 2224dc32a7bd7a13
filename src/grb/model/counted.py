r"""Modules that divide by the number of edges instead of by their weights, and what that does to gradients of edges.

An attack on edges gives every candidate a weight :math:`w \in [0, 1]`, zero meaning that there is none. DGL's ``GraphConv``
and CogDL's ``GCN`` normalise by :math:`D_i = |\{j\}|`, so that candidates of weight zero dilute every sum, and the gradient
belongs to a graph that nobody will evaluate. With :math:`d_i = \sum_j w_{ij}`, the weights

.. math:: w'_{ij} = w_{ij} \sqrt{\frac{D_i D_j}{d_i d_j}}

undo that: the module then gives what it gives on the graph without the candidates, and its gradient sees degrees. A module
that averages needs :math:`w_{ij} D_i / d_i`. Which one a module needs is tried out on a small graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

Counting = Literal["none", "both", "rows", "columns"]
Run = Callable[[Counting, Tensor, Tensor, Tensor, Tensor], Tensor]

SIZE, CLOSE = 8, 1e-4


def reweighted(kind: Counting, rows: Tensor, columns: Tensor, values: Tensor, n: int) -> Tensor:
    """Weights with which a module that counts edges does not count those of weight zero, [entries].

    >>> rows, columns = torch.tensor([0, 0, 1, 2]), torch.tensor([1, 2, 0, 0])
    >>> reweighted("rows", rows, columns, torch.tensor([1.0, 0.0, 1.0, 0.0]), 3)[0].item()
    2.0
    """
    if kind == "none":
        return values
    ratio = {}
    for name, ends in (("rows", rows), ("columns", columns)):
        counts = torch.bincount(ends, minlength=n).to(values.dtype)
        sums = values.new_zeros(n).index_add(0, ends, values)
        # nobody's sum is below this but that of a node without neighbours, where nothing is multiplied
        ratio[name] = (counts / sums.clamp(min=1e-12))[ends]
    if kind == "both":
        return values * (ratio["rows"] * ratio["columns"]).clamp(max=1e12).sqrt()
    return values * ratio[kind]


def tried(run: Run, d: int, like: Tensor) -> Counting | None:
    """How a module counts edges; None if it knows edges of weight zero from absent ones in yet another way.

    Args:
        run: Logits from features, rows, columns and weights, the latter reweighted for a way of counting.
        d: Number of features.
        like: A tensor of the dtype and on the device to use.
    """
    ring = torch.arange(SIZE)
    chords = torch.stack([torch.tensor([0, 1, 2]), torch.tensor([4, 6, 5])])
    pairs = torch.stack([ring, (ring + 1) % SIZE])
    wide = torch.cat([pairs, chords], dim=1).to(like.device)
    present = torch.cat([torch.ones(SIZE), torch.zeros(chords.shape[1])]).to(like)
    x = torch.randn(SIZE, d, generator=torch.Generator().manual_seed(0)).to(like)
    rows, columns, values = _both_ways(wide, present)
    there = values > 0
    wanted = run("none", x, rows[there], columns[there], values[there]).detach()
    kinds: tuple[Counting, ...] = get_args(Counting)
    for kind in kinds:
        found = run(kind, x, rows, columns, values).detach()
        if torch.allclose(found, wanted, rtol=CLOSE, atol=CLOSE * max(1.0, float(wanted.abs().max()))):
            return kind
    return None


def _both_ways(pairs: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both directions, ascending."""
    rows, columns = torch.cat([pairs, pairs.flip(0)], dim=1)
    order = torch.argsort(rows * SIZE + columns)
    return rows[order], columns[order], torch.cat([values, values])[order]
