"""The one architecture in which the taxonomy paper puts every convolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Pattern
from grb.model.layers import Linear
from grb.model.profiling.rows import BatchNorm, activated, unit_rows

WIDTH = 128
DEPTH = 5


class Dense(Linear):
    """A linear map with torch's own initial weights, uniform up to one over the root of the inputs."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        bound = self.weight.shape[0] ** -0.5 if self.weight.shape[0] else 0.0
        for parameter in self.parameters(recurse=False):
            nn.init.uniform_(parameter, -bound, bound, generator=generator)


class Conv(nn.Module):
    """A convolution of the blueprint: from rows of width d to rows of width d.

    A subclass says how the graph's edges become an operator and what it does with it; it need not know of norms, relu or skip
    connections. One that uses features of edges says so by ``takes_edge_features`` and gets their number as ``edge_features``.
    """

    takes_edge_features: ClassVar[bool] = False

    def __init__(self, width: int, bias: bool, **options: Any) -> None:
        super().__init__()
        if options:
            raise DataError(f"{type(self).__name__} does not take '{sorted(options)[0]}'")

    @staticmethod
    def prepare(adj: Adjacency) -> Any:
        """The operator that :meth:`forward` gets, made once per graph."""
        raise NotImplementedError

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        raise NotImplementedError

    def forward(self, h: Tensor, op: Any, first: Tensor) -> Tensor:
        """New rows, [n, d]; ``first`` is what the input layer gave."""
        raise NotImplementedError


class ProfilingGNN(nn.Module):
    r"""Input layer, convolutions with skip connections, pooling, head; rows have length one after every layer.

    .. math:: h_0 = \nu(\mathrm{relu}(\mathrm{BN}(x W_0))), \quad
              h_{l+1} = h_l + \nu(\mathrm{relu}(\mathrm{BN}(\mathrm{conv}_l(h_l)))), \quad
              \text{logits} = \nu(\mathrm{relu}(p W_1 + b_1)) W_2 + b_2

    with :math:`\nu` scaling rows to length one and :math:`p` the mean of :math:`\nu(h_k)` over every graph (the rows
    themselves if nodes are classified). Linear maps in front of a batch norm have no bias.

    Args:
        conv: Class of the convolutions.
        in_features: Width of the features.
        out_features: Logits.
        pool: Classify graphs.
        batch_norm: Collections have it, single graphs do not.
        width: Width of every layer.
        depth: Number of convolutions.
        edge_features: Number of features per edge, for convolutions that take them.
        generator: Draws the weights; torch's global one if not given.
        options: More arguments of the convolutions.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, section 2.3. The scaling of rows and
        the order of steps are those of the published code.
    """

    def __init__(
        self,
        conv: type[Conv],
        in_features: int,
        out_features: int,
        *,
        pool: bool,
        batch_norm: bool,
        width: int = WIDTH,
        depth: int = DEPTH,
        edge_features: int = 0,
        generator: torch.Generator | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if min(in_features, out_features, width, depth) < 1:
            raise DataError(
                f"features {in_features}, logits {out_features}, width {width}, depth {depth} must be positive"
            )
        self.pool, self.in_features = pool, in_features
        self.first = Dense(in_features, width, bias=not batch_norm)
        own = {**(options or {}), **({"edge_features": edge_features} if conv.takes_edge_features else {})}
        self.convs = nn.ModuleList(conv(width, not batch_norm, **own) for _ in range(depth))
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(depth + 1)) if batch_norm else None
        self.hidden = Dense(width, width)
        self.last = Dense(width, out_features)
        if generator is not None:
            self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        for layer in (self.first, *self.convs, *(self.norms or ()), self.hidden, self.last):
            layer.reset_parameters(generator)

    def prepare(self, adj: Adjacency) -> Any:
        """The operator of the convolutions."""
        conv = self.convs[0]
        assert isinstance(conv, Conv)
        return conv.prepare(adj)

    def forward(self, x: Tensor | CSR, op: Any, ptr: Tensor | None = None) -> Tensor:
        """Logits of every node, or of every graph of a collection with the boundaries ``ptr``."""
        h = start = activated(self.first(x), self._norm(0))
        for position, conv in enumerate(self.convs):
            h = activated(conv(h, op, start), self._norm(position + 1), residual=h)
        h = unit_rows(h)
        if self.pool:
            h = mean_of_graphs(h, ptr)
        out: Tensor = self.last(activated(self.hidden(h)))
        return out

    def _norm(self, position: int) -> BatchNorm | None:
        return None if self.norms is None else self.norms[position]  # type: ignore[return-value]


def mean_of_graphs(h: Tensor, ptr: Tensor | None) -> Tensor:
    """Mean over the nodes of every graph, [graphs, d]; an empty graph gets zeros."""
    n = len(h)
    bounds = torch.tensor([0, n], device=h.device) if ptr is None else ptr
    sizes = bounds.diff()
    weights = torch.repeat_interleave(1 / sizes.clamp(min=1).to(h.dtype), sizes, output_size=n)
    return CSR(Pattern(bounds.int(), torch.arange(n, dtype=torch.int32, device=h.device), n), weights) @ h
