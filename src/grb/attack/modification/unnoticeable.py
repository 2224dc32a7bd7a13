"""Tests that Nettack's changes must pass: degrees stay those of a power law, words stay with words they go with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from grb.graph import CSR

# degrees below this are left out of the fit, and the largest statistic that passes: the authors' values
SMALLEST_DEGREE = 2
LARGEST_STATISTIC = 0.004


def power_law_likelihood(count: Tensor, logs: Tensor) -> Tensor:
    r"""Log-likelihood of degrees under the power law that fits them best; 0 where there are none.

    :math:`\alpha = 1 + n / (S - n \ln(d_{min} - 1/2))` and
    :math:`l = n \ln \alpha + n \alpha \ln d_{min} - (\alpha + 1) S`.

    Args:
        count: Number :math:`n` of degrees that are at least :math:`d_{min}`.
        logs: Sum :math:`S` of their logarithms.
    """
    some = count > 0
    n, total = torch.where(some, count, 1.0), torch.where(some, logs, 1.0)
    alpha = 1 + n / (total - n * math.log(SMALLEST_DEGREE - 0.5))
    value = n * alpha.log() + n * alpha * math.log(SMALLEST_DEGREE) - (alpha + 1) * total
    return torch.where(some, value, 0.0)


class DegreeTest:
    r"""Whether the degrees after a flip could come from the power law of those before.

    :math:`\Lambda = -2\, l(D \cup D') + 2\, (l(D) + l(D'))` with the clean degrees :math:`D` and those after the flip,
    :math:`D'`; a flip passes if :math:`\Lambda < 0.004`. Only the two ends change the sums, so it takes a few operations per
    candidate.

    Args:
        degrees: Degrees of the clean graph, [n].

    References:
        Zügner, Akbarnejad and Günnemann, *Adversarial Attacks on Neural Networks for Graph Data*, KDD 2018, section 4.1.
    """

    def __init__(self, degrees: Tensor) -> None:
        self.start = _sums(degrees.double())
        self.now = self.start

    def statistic(self, first: Tensor, second: Tensor, sign: Tensor) -> Tensor:
        r""":math:`\Lambda` after one flip each.

        Args:
            first: Degree of one end now, [k].
            second: Degree of the other, [k].
            sign: 1 where an edge comes, -1 where one goes, [k].
        """
        ends = torch.stack([first, second]).double()
        before, after = _parts(ends), _parts(ends + sign)
        now = [own + (new - old).sum(0) for own, old, new in zip(self.now, before, after, strict=True)]
        both = [a + b for a, b in zip(self.start, now, strict=True)]
        return 2 * (power_law_likelihood(*self.start) + power_law_likelihood(*now) - power_law_likelihood(*both))

    def passes(self, first: Tensor, second: Tensor, sign: Tensor) -> Tensor:
        """Which flips pass, [k]; arguments as of :meth:`statistic`."""
        return self.statistic(first, second, sign) < LARGEST_STATISTIC

    def flip(self, first: float, second: float, sign: float) -> None:
        """Make a flip of two ends with these degrees part of the graph."""
        ends = torch.tensor([first, second], dtype=torch.float64)
        before, after = _parts(ends), _parts(ends + sign)
        count, logs = (own + (new - old).sum() for own, old, new in zip(self.now, before, after, strict=True))
        self.now = (count, logs)

    def reset(self) -> None:
        """Forget all flips."""
        self.now = self.start


def _parts(degrees: Tensor) -> tuple[Tensor, Tensor]:
    counts = degrees >= SMALLEST_DEGREE
    return counts.double(), torch.where(counts, degrees.clamp(min=1).log(), 0.0)


def _sums(degrees: Tensor) -> tuple[Tensor, Tensor]:
    count, logs = _parts(degrees)
    return count.sum(), logs.sum()


@dataclass(frozen=True, eq=False)
class CoOccurrence:
    r"""Words that a node may gain: those that a random walk from its words could reach in one step.

    Words are linked if a node of the clean graph has both. With :math:`w_j` one over the number of words that word
    :math:`j` is linked to (0 if none), a node with the words :math:`S` may gain word :math:`i` if
    :math:`\sum_{j \in S, j \sim i} w_j > \frac12 \sum_{j \in S} w_j`. A word may always go.

    Args:
        links: Which words are linked, [d, d] sparse.
        weights: :math:`w`, [d].
        words: The clean nodes' words, [n, d] sparse.
    """

    links: csr_matrix
    weights: np.ndarray[tuple[int], np.dtype[np.float64]]
    words: csr_matrix

    @classmethod
    def of(cls, x: Tensor | CSR) -> CoOccurrence:
        """Links of the words of a binary table, [n, d]."""
        if isinstance(x, CSR):
            pattern = x.pattern
            values = np.ones(pattern.entries) if x.values is None else x.values.double().numpy()
            words = csr_matrix((values, pattern.indices.numpy(), pattern.indptr.numpy()), shape=x.shape)
            words.eliminate_zeros()
        else:
            words = csr_matrix(x.double().numpy())
        links = (words.T @ words).tocsr()
        links.setdiag(0)
        links.eliminate_zeros()
        links.data[:] = 1
        degrees = np.diff(links.indptr)
        weights = np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0)
        return cls(links, weights, words)

    def allowed(self, node: int) -> Tensor:
        """Words that a node may gain, [d] booleans; those that it has are not among them."""
        own = self.words.indices[self.words.indptr[node] : self.words.indptr[node + 1]]
        reached = self.links[own].T @ self.weights[own] if len(own) else np.zeros(len(self.weights))
        # exactly half is not enough, and may be a hair above half when added up in another order
        allowed = reached > 0.5 * self.weights[own].sum() + 1e-12
        allowed[own] = False
        return torch.from_numpy(allowed)


def is_binary(x: Tensor | CSR) -> bool:
    """Whether all features are 0 or 1."""
    values = x if isinstance(x, Tensor) else x.values
    return values is None or bool(((values == 0) | (values == 1)).all())
