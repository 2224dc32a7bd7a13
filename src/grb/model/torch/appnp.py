"""Personalised propagation of neural predictions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, dense, normalise
from grb.model.base import GraphModel, Propagate, Rows, Stage, State, hidden_sizes
from grb.model.layers import Dropout, Linear, relu_dropout


class APPNP(GraphModel):
    r"""A perceptron whose predictions travel ``k`` steps and keep returning to where they started.

    .. math:: Z_0 = \mathrm{MLP}(X), \qquad Z_{i+1} = (1 - \alpha)\, \hat A Z_i + \alpha Z_0, \qquad \text{logits} = Z_k

    Differs from THUDM/grb, which returns to the current instead of the initial prediction and applies relu to logits.

    Args:
        in_features: Width of the features.
        out_features: Classes.
        hidden_features: Hidden widths of the perceptron, or one width together with ``n_layers``.
        n_layers: Linear layers, if one width is given.
        alpha: Share of the initial prediction in every step; GRB uses 0.01, the APPNP paper 0.1.
        k: Steps.
        layer_norm: Normalise rows in front of every linear layer.
        dropout: Rate behind every hidden layer.
        generator: Draws the weights; torch's global one if not given.

    References:
        Gasteiger et al., *Predict then Propagate: Graph Neural Networks meet Personalized PageRank*, ICLR 2019.
    """

    name = "appnp"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: int | Sequence[int] = (64,),
        n_layers: int | None = None,
        alpha: float = 0.01,
        k: int = 10,
        layer_norm: bool = False,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= alpha <= 1 or k < 0:
            raise DataError(f"alpha is {alpha} and k is {k}, but alpha in [0, 1] and k >= 0 are needed")
        hidden = hidden_sizes(hidden_features, n_layers)
        self.params = {
            "in_features": in_features,
            "out_features": out_features,
            "hidden_features": hidden,
            "alpha": alpha,
            "k": k,
            "layer_norm": layer_norm,
            "dropout": dropout,
        }
        self.alpha, self.k = alpha, k
        widths = [in_features, *hidden, out_features]
        self.linears = nn.ModuleList(Linear(a, b) for a, b in zip(widths, widths[1:], strict=False))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[:-1]) if layer_norm else None
        self.dropout = Dropout(dropout)
        if generator is not None:
            self.reset_parameters(generator)

    def prepare(self, adj: Adjacency) -> CSR:
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        state = self._predicted((x,))  # type: ignore[arg-type]
        for _ in range(self.k):
            state = self._returned((op @ state[0], state[1]))
        return state[0]

    def _predicted(self, state: State) -> State:
        h = state[0]
        for place, linear in enumerate(self.linears):
            if self.norms is not None:
                h = self.norms[place](dense(h))
            h = linear(h)
            if place < len(self.linears) - 1:
                h = relu_dropout(h, self.dropout)
        return h, h

    def _returned(self, state: State) -> State:
        return torch.lerp(state[0], state[1], self.alpha), state[1]

    def stages(self) -> list[Stage]:
        step: list[Stage] = [Propagate(), Rows(self._returned)]
        return [Rows(self._predicted), *step * self.k, Rows(lambda state: (state[0],))]
