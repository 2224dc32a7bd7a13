"""Simplified graph convolutions: GRB's SGCN and the original SGC."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, dense, normalise
from grb.model.base import ConfiguredModel, LayeredModel, Propagate, Rows, Stage, State
from grb.model.layers import Linear, layer_norms, linears, relu_dropout


@dataclass(eq=False, repr=False, kw_only=True)
class SGCN(LayeredModel):
    r"""GRB's variant of simplified graph convolutions: blocks of ``k`` plain propagations.

    .. math:: H_1 = \mathrm{dropout}(\mathrm{relu}(\mathrm{BN}(X) W_0 + b_0)), \qquad
              H_{l+1} = \mathrm{dropout}(\tanh(\hat A^k\, \mathrm{LN}(H_l)\, W_l + b_l)), \qquad \text{logits} = H_L W_L + b_L

    With ``layer_norm`` a layer norm takes the place of the batch norm on the input and stands in front of every block.
    :class:`SGC` is the model of the SGC paper.

    Args:
        k: Propagations of one block.
        layer_norm: Layer norm instead of batch norm.

    References:
        Wu et al., *Simplifying Graph Convolutional Networks*, ICML 2019.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks, Tables 6 to 10.
    """

    k: int = 4
    layer_norm: bool = False
    name = "sgcn"

    def build(self) -> None:
        """Make the norm of the input and the linear layers."""
        if self.k < 0:
            raise DataError(f"k is {self.k}, but at least 0 propagations are needed")
        self.input_norm = nn.LayerNorm(self.in_features) if self.layer_norm else nn.BatchNorm1d(self.in_features)
        self.linears = linears(self.widths)
        self.norms = layer_norms(self.hidden[:-1], self.layer_norm)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        (h,) = self._first((dense(x),))
        for block in range(1, len(self.linears) - 1):
            (h,) = self._before(block).apply((h,))
            for _ in range(self.k):
                h = op @ h
            (h,) = self._after(block).apply((h,))
        logits: Tensor = self.linears[-1](h)
        return logits

    def _first(self, state: State) -> State:
        return (relu_dropout(self.linears[0](self.input_norm(state[0])), self.drop),)

    def _before(self, block: int) -> Rows:
        norm = None if self.norms is None else self.norms[block - 1]
        return Rows(lambda state: (state[0] if norm is None else norm(state[0]),))

    def _after(self, block: int) -> Rows:
        return Rows(lambda state: (self.drop(torch.tanh(self.linears[block](state[0]))),))

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        stages: list[Stage] = [Rows(self._first)]
        for block in range(1, len(self.linears) - 1):
            stages += [self._before(block), *[Propagate()] * self.k, self._after(block)]
        return [*stages, Rows(lambda state: (self.linears[-1](state[0]),))]


@dataclass(eq=False, repr=False)
class SGC(ConfiguredModel):
    r"""The SGC paper's model: one linear map of features that were propagated ``k`` times, :math:`\hat A^k X W + b`.

    Args:
        k: Propagations.

    References:
        Wu et al., *Simplifying Graph Convolutional Networks*, ICML 2019.
    """

    k: int = 2
    name = "sgc"

    def build(self) -> None:
        """Make the linear map."""
        self.linear = Linear(self.in_features, self.out_features)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        h = self.linear.transform(x)
        for _ in range(self.k):
            h = op @ h
        return self.linear.shift(h)

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        return [
            Rows(lambda state: (self.linear.transform(state[0]),)),
            *[Propagate()] * self.k,
            Rows(lambda state: (self.linear.shift(state[0]),)),
        ]
