"""Sparse Bayesian linear regression: few weights matter, and the data say which."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

# weights whose prior deviation falls below its square root are zero, and bounds of the noise, in deviations of the outcomes
_PRUNED, _QUIET, _LOUD = 1e-10, 1e-4, 1.0


@dataclass(frozen=True, eq=False)
class SparseRegression:
    r"""Linear regression with a prior variance of its own for every weight, chosen by the evidence of the data.

    .. math:: y = \Phi w + \varepsilon, \qquad w_i \sim \mathcal N(0, a_i), \qquad \varepsilon \sim \mathcal N(0, s^2)

    With :math:`K = \Phi A \Phi^T + s^2 I` the posterior has the mean :math:`m = A \Phi^T K^{-1} y` and the variances
    :math:`v_i = a_i - a_i^2 \phi_i^T K^{-1} \phi_i`; :math:`a_i` becomes :math:`m_i^2 / (1 - v_i / a_i)` in every round, by
    which those of useless weights vanish. There are fewer observations than features here, so that no matrix is larger than
    the observations.

    Args:
        inputs: Centred features that were seen, [m, p].
        outcomes: Centred and scaled outcomes, [m].
        prior: Prior variance of every weight, [p].
        noise: Variance of the noise.
        shift: Mean of the features, [p].
        centre: Mean of the outcomes.
        scale: Deviation of the outcomes.

    References:
        Tipping, *Sparse Bayesian Learning and the Relevance Vector Machine*, JMLR 2001.
    """

    inputs: Tensor
    outcomes: Tensor
    prior: Tensor
    noise: float
    shift: Tensor
    centre: float
    scale: float

    @classmethod
    def fitted(cls, inputs: Tensor, outcomes: Tensor, rounds: int = 30) -> SparseRegression:
        """The regression of outcomes [m] on features [m, p]."""
        shift, centre = inputs.mean(0), float(outcomes.mean())
        scale = float(outcomes.std(correction=0)) or 1.0
        seen, told = inputs - shift, (outcomes - centre) / scale
        spread = seen.square().sum().item() / max(len(told), 1)
        prior, noise = torch.full((seen.shape[1],), 1 / max(spread, 1e-12), dtype=torch.float64), 0.01
        for _ in range(rounds):
            made = cls(seen, told, prior, noise, shift, centre, scale)
            weights, used = made.weights, made._used
            error = float((told - seen @ weights).square().sum())
            noise = min(max(error / max(len(told) - float(used.sum()), 1e-3), _QUIET), _LOUD)
            prior = torch.where(prior > _PRUNED, weights.square() / used.clamp(min=1e-12), 0.0)
        return cls(seen, told, prior, noise, shift, centre, scale)

    @property
    def weights(self) -> Tensor:
        """Means of the weights, of scaled outcomes, [p]."""
        return self.prior * (self.inputs.T @ self._solved(self.outcomes.unsqueeze(1)).squeeze(1))

    @property
    def _used(self) -> Tensor:
        """How far the data say what every weight is, 0 to 1, [p]."""
        return self.prior * (self.inputs * self._solved(self.inputs)).sum(0)

    def _solved(self, right: Tensor) -> Tensor:
        whole = (self.inputs * self.prior) @ self.inputs.T
        whole.diagonal().add_(self.noise)
        return torch.cholesky_solve(right, torch.linalg.cholesky(whole))

    def predict(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Means and deviations of the outcomes of some features [k, p], [k] each; without the noise."""
        rows = inputs - self.shift
        cross = (rows * self.prior) @ self.inputs.T
        variances = (rows.square() * self.prior).sum(1) - (cross * self._solved(cross.T).T).sum(1)
        means = cross @ self._solved(self.outcomes.unsqueeze(1)).squeeze(1)
        return self.centre + self.scale * means, self.scale * variances.clamp(min=0).sqrt()


def expected_improvement(means: Tensor, deviations: Tensor, best: float) -> Tensor:
    r"""How much more than the best so far a normally distributed outcome is expected to be, [k].

    .. math:: \mathrm{EI} = \sigma \bigl( z \Phi(z) + \varphi(z) \bigr), \qquad z = (\mu - y^*) / \sigma

    >>> expected_improvement(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), 0.5)
    tensor([0.5000, 0.1978])
    """
    gain = means - best
    z = gain / deviations.clamp(min=1e-12)
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    return torch.where(deviations > 0, gain * torch.special.ndtr(z) + deviations * density, gain.clamp(min=0))
