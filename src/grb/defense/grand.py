"""GRAND: several random propagations of the features, whose predictions must agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Adjacency, dense, normalise
from grb.model.base import LayeredModel, Propagate, Rows, Stage, State
from grb.model.layers import Dropout, Linear, linears, relu_dropout


@dataclass(eq=False, repr=False, kw_only=True)
class GRAND(LayeredModel):
    r"""A perceptron on randomly propagated features, with a loss that makes the draws agree.

    In each of ``draws`` passes whole rows of the features are dropped, :math:`\tilde X = \mathrm{diag}(\epsilon) X /
    (1 - \delta)` with :math:`\epsilon_i \sim \mathrm{Bernoulli}(1 - \delta)`, and

    .. math:: \bar X = \frac{1}{K + 1} \sum_{k=0}^{K} \hat A^k \tilde X, \qquad Z = \mathrm{MLP}(\bar X) .

    The training loss is the mean cross-entropy of the draws plus :math:`\lambda` times the consistency loss
    :math:`\frac{1}{S} \sum_s \mathrm{mean}_i \lVert p_i^{(s)} - \mathrm{sharp}(\bar p_i) \rVert^2` over all nodes of
    the training graph, where :math:`\mathrm{sharp}(p)_c \propto p_c^{1/T}` is a constant for gradients. In evaluation
    nothing is dropped and there is one pass, so it is deterministic.

    Dropping rows commutes with the first linear map, so without input dropout (and in evaluation) only the hidden
    width is propagated. Differs from THUDM/GRAND: no weight decay, as in every training here.

    Args:
        hidden_features: Hidden widths of the perceptron, or one width together with ``n_layers``.
        k: Propagations :math:`K`.
        draws: Passes :math:`S` in a training step.
        node_dropout: Rate :math:`\delta` of dropped rows.
        input_dropout: Rate of dropped entries of propagated features.
        temperature: :math:`T`; lower is sharper.
        consistency: Weight :math:`\lambda` of the consistency loss.

    References:
        Feng et al., *Graph Random Neural Networks for Semi-Supervised Learning on Graphs*, NeurIPS 2020.
    """

    hidden_features: int | Sequence[int] = field(default=(32,), kw_only=False)
    k: int = 8
    draws: int = 4
    node_dropout: float = 0.5
    input_dropout: float = 0.5
    dropout: float = 0.5
    temperature: float = 0.5
    consistency: float = 1.0
    name = "grand"

    def build(self) -> None:
        """Make the perceptron and the three kinds of dropout."""
        if self.k < 0 or self.draws < 1:
            raise DataError(f"k is {self.k} and draws is {self.draws}, but at least 0 and 1 are needed")
        if not self.temperature > 0 or not self.consistency >= 0:
            raise DataError(
                f"temperature is {self.temperature} and consistency {self.consistency}, "
                "but above 0 and at least 0 are needed"
            )
        self.linears = linears(self.widths)
        self.node_drop, self.input_drop = Dropout(self.node_dropout), Dropout(self.input_dropout)
        self._logits: Tensor | None = None

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits, [n, classes]; in training those of every draw, [draws, n, classes]."""
        if not self.training:
            return self._predicted(self._mean(self._first.transform(x), op))
        self._logits = torch.stack([self._drawn(x, op) for _ in range(self.draws)])
        return self._logits

    @property
    def _first(self) -> Linear:
        first = self.linears[0]
        assert isinstance(first, Linear)
        return first

    def _drawn(self, x: Tensor | CSR, op: CSR) -> Tensor:
        rows = self.node_drop(torch.ones(x.shape[0], 1, device=op.device))
        if self.input_drop.p == 0:
            return self._predicted(self._mean(rows * self._first.transform(x), op))
        mean = self.input_drop(self._mean(rows * dense(x), op))
        return self._predicted(self._first.transform(mean))

    def _mean(self, h: Tensor, op: CSR) -> Tensor:
        total = h
        for _ in range(self.k):
            h = op @ h
            total = total + h
        return total / (self.k + 1)

    def _predicted(self, h: Tensor) -> Tensor:
        """The perceptron from the product of its first layer on."""
        h = self._first.shift(h)
        for linear in self.linears[1:]:
            h = linear(relu_dropout(h, self.drop))
        return h

    def penalty(self) -> Tensor:
        """The consistency loss of the last training pass."""
        assert self._logits is not None, "there was no training pass"
        probs, self._logits = torch.softmax(self._logits, dim=-1), None
        target = sharpened(probs.mean(0), self.temperature).detach()
        return self.consistency * (probs - target).square().sum(-1).mean()

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""

        def started(state: State) -> State:
            h = self._first.transform(state[0])
            return h, h

        step: list[Stage] = [Propagate(), Rows(lambda state: (state[0], state[1] + state[0]))]
        return [Rows(started), *step * self.k, Rows(lambda state: (self._predicted(state[1] / (self.k + 1)),))]


def sharpened(probs: Tensor, temperature: float) -> Tensor:
    r""":math:`p_c^{1/T} / \sum_d p_d^{1/T}` of every row.

    >>> sharpened(torch.tensor([[0.6, 0.4]]), 0.5)
    tensor([[0.6923, 0.3077]])
    """
    # by logarithms, because a power of small probabilities underflows
    return torch.softmax(probs.clamp_min(1e-30).log() / temperature, dim=-1)
