"""A graph transformer's convolution for profiling: attention along edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR
from grb.graph.attention import attend, edge_softmax
from grb.graph.sparse import sampled_product
from grb.model.profiling.gatedgcn import GatedConv


class TransformerConv(GatedConv):
    r"""Scaled dot-product attention of every node to its neighbours, several heads side by side:

    .. math:: h_i W_s + b + \Big\Vert_{t} \sum_j \mathrm{softmax}_j\!\left(\frac{q_{it} \cdot k_{jt}}{\sqrt{d}}\right) v_{jt}.

    Keys, queries and values are linear maps with bias. Attention follows edges, so that no matrix of all pairs is made; under
    FullyConn every node attends to all others of its graph, as in a plain transformer. There are no positional encodings: what
    is said about positions is in the dataset's features, which is what perturbations take away.

    Args:
        heads: Number of heads, a divisor of the width.

    References:
        Dwivedi and Bresson, *A Generalization of Transformer Networks to Graphs*, 2021.
        Shi et al., *Masked Label Prediction: Unified Message Passing Model for Semi-Supervised Classification*, IJCAI 2021.
    """

    def __init__(self, width: int, bias: bool, heads: int | None = None, **options: Any) -> None:
        super().__init__(width, bias, **options)
        self.heads = heads if heads is not None else next(each for each in (8, 4, 2, 1) if width % each == 0)
        if self.heads < 1 or width % self.heads:
            raise DataError(f"heads is {self.heads}, but a divisor of the width {width} is needed")

    def forward(self, h: Tensor, op: CSR, first: Tensor) -> Tensor:
        """New rows, [n, out]."""
        n, width = h.shape
        size = width // self.heads
        query, key, value = (linear(h).view(n, self.heads, size) for linear in (self.query, self.key, self.value))
        products = [sampled_product(op.pattern, query[:, head], key[:, head]) for head in range(self.heads)]
        alpha = edge_softmax(op.pattern, torch.stack(products, dim=1) / size**0.5)
        out: Tensor = self.skip(h) + attend(op.pattern, alpha, value).reshape(n, width)
        return out if self.bias is None else out + self.bias
