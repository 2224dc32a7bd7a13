"""Simplified graph convolutions: GRB's SGCN and the original SGC."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, dense, normalise
from grb.model.base import GraphModel, Propagate, Rows, Stage, State, hidden_sizes
from grb.model.layers import Dropout, Linear, relu_dropout


class SGCN(GraphModel):
    r"""GRB's variant of simplified graph convolutions: blocks of ``k`` plain propagations.

    .. math:: H_1 = \mathrm{dropout}(\mathrm{relu}(\mathrm{BN}(X) W_0 + b_0)), \qquad
              H_{l+1} = \mathrm{dropout}(\tanh(\hat A^k\, \mathrm{LN}(H_l)\, W_l + b_l)), \qquad \text{logits} = H_L W_L + b_L

    With ``layer_norm`` a layer norm takes the place of the batch norm on the input and stands in front of every block.
    :class:`SGC` is the model of the SGC paper.

    Args:
        in_features: Width of the features.
        out_features: Classes.
        hidden_features: Hidden widths, or one width together with ``n_layers``.
        n_layers: Linear layers, if one width is given.
        k: Propagations of one block.
        layer_norm: Layer norm instead of batch norm.
        dropout: Rate behind every hidden layer.
        generator: Draws the weights; torch's global one if not given.

    References:
        Wu et al., *Simplifying Graph Convolutional Networks*, ICML 2019.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks, Tables 6 to 10.
    """

    name = "sgcn"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: int | Sequence[int] = (64, 64),
        n_layers: int | None = None,
        k: int = 4,
        layer_norm: bool = False,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if k < 0:
            raise DataError(f"k is {k}, but at least 0 propagations are needed")
        hidden = hidden_sizes(hidden_features, n_layers)
        self.params = {
            "in_features": in_features,
            "out_features": out_features,
            "hidden_features": hidden,
            "k": k,
            "layer_norm": layer_norm,
            "dropout": dropout,
        }
        self.k = k
        self.input_norm = nn.LayerNorm(in_features) if layer_norm else nn.BatchNorm1d(in_features)
        widths = [in_features, *hidden, out_features]
        self.linears = nn.ModuleList(Linear(a, b) for a, b in zip(widths, widths[1:], strict=False))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in hidden[:-1]) if layer_norm else None
        self.dropout = Dropout(dropout)
        if generator is not None:
            self.reset_parameters(generator)

    def prepare(self, adj: Adjacency) -> CSR:
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        (h,) = self._first((dense(x),))
        for block in range(1, len(self.linears) - 1):
            (h,) = self._before(block).apply((h,))
            for _ in range(self.k):
                h = op @ h
            (h,) = self._after(block).apply((h,))
        logits: Tensor = self.linears[-1](h)
        return logits

    def _first(self, state: State) -> State:
        return (relu_dropout(self.linears[0](self.input_norm(state[0])), self.dropout),)

    def _before(self, block: int) -> Rows:
        norm = None if self.norms is None else self.norms[block - 1]
        return Rows(lambda state: (state[0] if norm is None else norm(state[0]),))

    def _after(self, block: int) -> Rows:
        return Rows(lambda state: (self.dropout(torch.tanh(self.linears[block](state[0]))),))

    def stages(self) -> list[Stage]:
        stages: list[Stage] = [Rows(self._first)]
        for block in range(1, len(self.linears) - 1):
            stages += [self._before(block), *[Propagate()] * self.k, self._after(block)]
        return [*stages, Rows(lambda state: (self.linears[-1](state[0]),))]


class SGC(GraphModel):
    r"""The SGC paper's model: one linear map of features that were propagated ``k`` times, :math:`\hat A^k X W + b`.

    Args:
        in_features: Width of the features.
        out_features: Classes.
        k: Propagations.
        generator: Draws the weights; torch's global one if not given.

    References:
        Wu et al., *Simplifying Graph Convolutional Networks*, ICML 2019.
    """

    name = "sgc"

    def __init__(
        self, in_features: int, out_features: int, k: int = 2, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.params = {"in_features": in_features, "out_features": out_features, "k": k}
        self.k = k
        self.linear = Linear(in_features, out_features)
        if generator is not None:
            self.reset_parameters(generator)

    def prepare(self, adj: Adjacency) -> CSR:
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        h = self.linear.transform(x)
        for _ in range(self.k):
            h = op @ h
        return self.linear.shift(h)

    def stages(self) -> list[Stage]:
        return [
            Rows(lambda state: (self.linear.transform(state[0]),)),
            *[Propagate()] * self.k,
            Rows(lambda state: (self.linear.shift(state[0]),)),
        ]
