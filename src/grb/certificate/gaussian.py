r"""Features of hijacked nodes within a range, by Gaussian noise: on all rows, or hierarchically on randomly selected ones.

A threat model that lets :math:`r` nodes take any features between two limits moves the features by no more than

.. math:: \epsilon_r = \Big(\sum_{i \le r} \rho_{(i)}^2\Big)^{1/2}, \qquad
          \rho_v^2 = \sum_j \max(x_{vj} - l_j,\; h_j - x_{vj})^2

with the largest :math:`\rho`; columns that are fixed do not count. :func:`grb.certificate.hierarchical.gaussian_certified` says
which votes survive that. It is a certificate for narrow ranges and few columns: against any features of hijacked nodes
:mod:`grb.certificate.interception` is the better one.

References:
    Cohen et al., *Certified Adversarial Robustness via Randomized Smoothing*, ICML 2019.
    Scholten et al., *Hierarchical Randomized Smoothing*, NeurIPS 2023; a network that does not look at which rows were
    selected is one of those that the theorem is about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grb.certificate.base import HIJACKED, hijacked_of
from grb.certificate.confidence import Floats, Ints, VoteBounds
from grb.certificate.hierarchical import gaussian_certified
from grb.certificate.result import NotCertifiable
from grb.certificate.smoothing import SmoothingCertificate
from grb.dataset import Dataset
from grb.graph import dense
from grb.model.smoothed import Noise, Smoothed
from grb.threat import Modification, Threat


@dataclass(frozen=True, kw_only=True)
class GaussianSmoothing(SmoothingCertificate):
    """Features of hijacked nodes within the limits of the threat model; see :mod:`grb.certificate.gaussian`."""

    name = "gaussian-smoothing"
    noise = Noise(sigma=1.0)

    @property
    def advice(self) -> str:
        """What to do where nothing can be certified."""
        return "fix columns or narrow their limits, train with a larger sigma, or draw more samples"

    def covered(self, threat: Threat, dataset: Dataset) -> tuple[int, str]:
        """Changed features alone."""
        return hijacked_of(threat, dataset, self.name), HIJACKED

    def check(self, smoothed: Smoothed, dataset: Dataset) -> None:
        """Features are moved, and nothing else happens."""
        self._only(smoothed, "sigma", "p_keep")
        if not smoothed.noise.sigma or smoothed.noise.p_keep >= 1:
            raise NotCertifiable(f"{self.name} needs noise on features, but sigma is {smoothed.noise.sigma:g}")

    def survived(self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Ints, bounds: VoteBounds) -> Ints:
        """Largest number of hijacked nodes that every target survives, [t]."""
        assert isinstance(threat, Modification)
        most = min(max(hijacked_of(threat, dataset, self.name), 10), dataset.num_nodes)
        lengths = np.sort(farthest(dense(dataset.graph.x).double().numpy(), threat))[::-1]
        if not np.isfinite(lengths[:most]).all():
            raise NotCertifiable(f"{self.name} needs finite features and limits")
        distances = np.sqrt((lengths[:most] ** 2).cumsum())
        found = np.where(bounds.low > bounds.high, 0, -1).astype(np.int64)
        alive = found >= 0
        sigma, p = smoothed.noise.sigma, round(1 - smoothed.noise.p_keep, 12)
        for count, length in enumerate(distances, 1):
            alive &= gaussian_certified(bounds.low, bounds.high, sigma=sigma, distance=float(length), p=p, rows=count)
            if not alive.any():
                break
            found[alive] = count
        return found


def farthest(x: Floats, threat: Modification) -> Floats:
    """Euclidean distance of every row from the farthest row that a threat model allows in its place, [n].

    Args:
        x: Features, [n, d].
        threat: Limits of features, of columns, and columns that are fixed.

    >>> farthest(np.array([[0.0, 1.0]]), Modification(edges=0, feature_nodes=1, feature_range=(-3, 5))).round(3).tolist()
    [6.403]
    """
    assert threat.feature_range is not None
    low, high = (np.full(x.shape[1], float(end)) for end in threat.feature_range)
    free = np.ones(x.shape[1], dtype=bool)
    if threat.constraints is not None:
        for column, least, most in threat.constraints.ranges:
            low[column], high[column] = max(low[column], least), min(high[column], most)
        free[list(threat.constraints.fixed)] = False
    moved = np.maximum(np.abs(x - low), np.abs(high - x))[:, free]
    found: Floats = np.sqrt((moved**2).sum(1))
    return found
