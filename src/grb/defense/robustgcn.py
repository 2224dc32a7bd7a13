"""RobustGCN: hidden states are Gaussians, and uncertain neighbours count less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from grb.graph import CSR, Adjacency, normalise
from grb.model.base import LayeredModel, Propagate, Rows, Stage, State
from grb.model.layers import linears

# the root of zero has an infinite slope, the logarithm of zero is infinite
TINY = 1e-8


@dataclass(eq=False, repr=False, kw_only=True)
class RobustGCN(LayeredModel):
    r"""Convolutions over means and variances with attention to certainty.

    In every layer :math:`M = \mathrm{elu}(M W_m + b_m)`, :math:`V = \mathrm{relu}(V W_v + b_v)`,
    :math:`\alpha = e^{-\gamma V}`, and

    .. math:: M \leftarrow \tilde D^{-1/2} \tilde A \tilde D^{-1/2} (M \circ \alpha), \qquad
              V \leftarrow \tilde D^{-1} \tilde A \tilde D^{-1} (V \circ \alpha \circ \alpha).

    The first layer makes both from the features x. ``floored`` adds the positive part of the mean's own pre-activation,
    :math:`V = \mathrm{relu}(x W_v + b_v) + \mathrm{relu}(x W_m + b_m)`, so that a state cannot be large and certain at once:
    :math:`z e^{-\gamma z}` is bounded. Without it an injected node with large features passes wherever its variance is zero,
    and the published robustness of R-GCN is not reached (docs/differences.md has the numbers).

    Training draws the logits :math:`M + \xi \circ \sqrt{V}` with :math:`\xi \sim N(0, 1)` and adds
    :math:`\beta \sum_i \mathrm{mean}_j \frac12 (m^2 + v - \log v - 1)` of the first layer to the loss. Evaluation uses
    :math:`\xi = 0`, so it is deterministic.

    Differs from THUDM/grb: no noise in evaluation, activations whatever the dropout, the KL term of the paper is there.

    Args:
        gamma: How fast attention falls with variance.
        beta: Weight of the KL term.
        floored: Whether the first layer's variance is at least the positive part of the mean's pre-activation.

    References:
        Zhu et al., *Robust Graph Convolutional Networks Against Adversarial Attacks*, KDD 2019.
    """

    gamma: float = 1.0
    beta: float = 5e-4
    floored: bool = False
    name = "r-gcn"

    def build(self) -> None:
        """Make the linear maps of means and variances."""
        self.means = linears(self.widths)
        self.variances = linears(self.widths)
        self._first: State = ()

    def prepare(self, adj: Adjacency) -> list[CSR]:
        """The operators of means and of variances."""
        return [normalise.gcn(adj), normalise.scaled(adj, left=-1.0, right=-1.0)]

    def forward(self, x: Tensor | CSR, op: Sequence[CSR]) -> Tensor:
        """Logits of every node, [n, classes]."""
        state: State = (x,)  # type: ignore[assignment]
        for layer in range(len(self.means)):
            state = self._attended(self._gaussian(state, layer))
            state = (op[0] @ state[0], op[1] @ state[1])
            if layer < len(self.means) - 1:
                state = (self.drop(state[0]), self.drop(state[1]))
        mean, variance = state
        if not self.training:
            return mean
        noise = torch.randn(mean.shape, generator=self.drop.generator, device=mean.device)
        return mean + noise * torch.sqrt(variance + TINY)

    def _gaussian(self, state: State, layer: int) -> State:
        """Means and variances of a layer before attention; the first layer makes both from the features."""
        mean, variance = state if layer else (state[0], state[0])
        before = self.means[layer](mean)
        spread = torch.relu(self.variances[layer](variance))
        if layer == 0 and self.floored:
            spread = spread + torch.relu(before)
        both = (functional.elu(before), spread)
        if layer == 0 and self.training:
            self._first = both
        return both

    def _attended(self, state: State) -> State:
        mean, variance = state
        attention = torch.exp(-self.gamma * variance)
        return mean * attention, variance * attention * attention

    def penalty(self) -> Tensor:
        """The KL term of the last training pass."""
        mean, variance = self._first
        self._first = ()
        divergence = 0.5 * (mean.square() + variance - torch.log(variance + TINY) - 1)
        return self.beta * divergence.mean(1).sum()

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        stages: list[Stage] = []
        for layer in range(len(self.means)):
            stages += [self._before(layer), Propagate(slot=0, op=0), Propagate(slot=1, op=1)]
        return [*stages, Rows(lambda state: (state[0],))]

    def _before(self, layer: int) -> Rows:
        return Rows(lambda state: self._attended(self._gaussian(state, layer)))
