"""SoftMedian: neighbours count the less the further they are from the median of the neighbourhood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from grb.defense.relaxed import Relaxed
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Pattern, dense, normalise, sampled_product
from grb.graph.attention import edge_softmax, gather_columns, gather_rows
from grb.graph.sparse import row_sums
from grb.model.base import Mix, Propagate, Rows, Stage, State, run_stages
from grb.model.layers import Linear
from grb.model.stack import ConvStack

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

# entries times features that are sorted at once
BLOCK = 2**22
# residual of personalised PageRank that is no longer passed on
RESIDUAL = 1e-4
# steps that stand for it where its gradients are wanted
DIFFUSED = 6


@dataclass(eq=False, repr=False, kw_only=True)
class SoftMedian(ConvStack):
    r"""GCN whose sums over neighbours are soft medians.

    With the weights :math:`a_v` of a row of :math:`\hat A` (or of personalised PageRank), :math:`\bar x` the weighted
    median of the rows :math:`x_v` in every dimension, :math:`c_v = \lVert \bar x - x_v \rVert` and
    :math:`s = \mathrm{softmax}_v(-c_v / (T \sqrt d))`, a node gets

    .. math:: \frac{\sum_v a_v}{\sum_v s_v a_v} \sum_v s_v a_v x_v ,

    which is the weighted sum for :math:`T \to \infty` and the total weight times the row nearest to the median for
    :math:`T \to 0`. Which neighbour is the median is a constant for gradients; they pass through its value, the
    distances and the weights. Per layer :math:`O(|E| d)` and one sort of the n rows in every dimension.

    Args:
        temperature: :math:`T`.
        teleport: Probability of returning of personalised PageRank, 0.15 in the paper, which then takes the place of
            :math:`\hat A` (SoftMedian-GDC; its weights are constants for gradients); None for :math:`\hat A`.
        neighbours: Entries of every row of personalised PageRank.
        layer_norm: Normalise rows in front of every convolution but the last.

    References:
        Geisler et al., *Robustness of Graph Neural Networks at Scale*, NeurIPS 2021.
        Gasteiger et al., *Diffusion Improves Graph Learning*, NeurIPS 2019.
    """

    hidden_features: int | Sequence[int] = field(default=(64,), kw_only=False)
    temperature: float = 0.5
    teleport: float | None = None
    neighbours: int = 64
    layer_norm: bool = False
    dropout: float = 0.5
    name = "softmedian"

    def build(self) -> None:
        """Make the convolutions and norms."""
        if not self.temperature > 0:
            raise DataError(f"temperature is {self.temperature}, but must be positive")
        if self.teleport is not None and not 0.01 <= self.teleport < 1:
            raise DataError(f"teleport is {self.teleport}, but at least 0.01 and below 1 is needed, for instance 0.15")
        if self.neighbours < 1:
            raise DataError(f"neighbours is {self.neighbours}, but at least 1 is needed")
        self.stack(layer_norm=self.layer_norm, residual=False)

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        """A convolution with soft medians."""
        return SoftMedianConv(in_features, out_features, self.temperature)

    def prepare(self, adj: Adjacency) -> CSR:
        """The normalised adjacency, or personalised PageRank with ``teleport``."""
        if self.teleport is None:
            return normalise.gcn(adj)
        return personalised_pagerank(adj, self.teleport, self.neighbours)

    @property
    def operator_cost(self) -> float:  # type: ignore[override]
        """Personalised PageRank of all nodes takes longer than what follows."""
        return 1.0 if self.teleport is None else 32.0

    def relaxations(self) -> dict[str, nn.Module]:
        """``warm``: a temperature ten times as high; ``mean``: an infinite one, where distances do not count, as in GCN.

        With personalised PageRank, whose weights have no gradients, ``mean`` also propagates step by step: :class:`_Mean`.
        """
        mean = _Mean(self.twin(temperature=math.inf))
        return (
            {"mean": mean}
            if self.teleport is not None
            else {"warm": self.twin(temperature=10 * self.temperature), "mean": mean}
        )

    def stages(self) -> list[Stage] | None:
        """None with personalised PageRank, whose pattern is not symmetric."""
        return super().stages() if self.teleport is None else None


@dataclass(eq=False, repr=False, kw_only=True)
class SoftMedianGDC(SoftMedian):
    """SoftMedian on personalised PageRank with the paper's constants: return 0.15, 64 entries per row, temperature 0.5.

    References:
        Geisler et al., *Robustness of Graph Neural Networks at Scale*, NeurIPS 2021.
    """

    teleport: float | None = 0.15
    name = "softmedian-gdc"


class _Mean(Relaxed):
    r"""The same weights without the distances: weighted sums over neighbours, whose gradients have a closed form.

    Personalised PageRank becomes a few steps :math:`Z \leftarrow (1 - \alpha) \hat A Z + \alpha X`, divided by what they make
    of a column of ones: as the model's rows, they sum to one.
    """

    model: SoftMedian

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        return run_stages(self.stages(), dense(x), op)

    def stages(self) -> list[Stage]:
        listed = ConvStack.stages(self.model)
        assert listed is not None
        along: list[Stage] = [Propagate()]
        if self.model.teleport is not None:
            along = _diffusion(self.model.teleport)
        return [part for stage in listed for part in (along if isinstance(stage, Mix) else [stage])]


def _diffusion(teleport: float) -> list[Stage]:
    """Steps of personalised PageRank on a state with one tensor."""

    def start(state: State) -> State:
        wide = torch.cat([state[0], torch.ones_like(state[0][:, :1])], dim=1)
        return wide, wide

    def back(state: State) -> State:
        return (1 - teleport) * state[0] + teleport * state[1], state[1]

    def end(state: State) -> State:
        return (state[0][:, :-1] / state[0][:, -1:].clamp_min(1e-12),)

    step: list[Stage] = [Propagate(), Rows(back)]
    return [Rows(start), *(step * DIFFUSED), Rows(end)]


class SoftMedianConv(nn.Module):
    """One convolution: a linear map, soft medians over neighbours, a bias."""

    def __init__(self, in_features: int, out_features: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.linear = Linear(in_features, out_features)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        self.linear.reset_parameters(generator)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """New rows, [n, out]."""
        return self.linear.shift(soft_median(op, self.linear.transform(x), self.temperature))

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""

        def mixed(op: CSR, sources: State, targets: State) -> State:
            return (soft_median(op, sources[0], self.temperature),)

        return [
            Rows(lambda state: (self.linear.transform(state[0]),)),
            Mix(mixed),
            Rows(lambda state: (self.linear.shift(state[0]),)),
        ]


def soft_median(op: CSR, x: Tensor, temperature: float) -> Tensor:
    """Soft medians of the rows of ``x`` over the entries of every row of ``op``, see :class:`SoftMedian`.

    Args:
        op: Weights, not negative, [rows, columns].
        x: [columns, d].
        temperature: T; infinity gives the weighted sum.

    Returns:
        [rows, d]; zero for a row without entries.

    >>> line = CSR(Pattern(torch.tensor([0, 3]), torch.tensor([0, 1, 2]), columns=3))
    >>> x = torch.tensor([[0.0], [1.0], [10.0]])
    >>> [round(float(soft_median(line, x, temperature)), 3) for temperature in (1e9, 1.0, 1e-3)]
    [11.0, 2.196, 3.0]
    """
    pattern = op.pattern
    weights = torch.ones(pattern.entries, dtype=x.dtype, device=x.device) if op.values is None else op.values
    if pattern.entries == 0 or temperature == math.inf:
        return op @ x
    median = x.gather(0, median_rows(pattern, weights.detach(), x.detach()))
    scores = -_distances(pattern, median, x) / (temperature * math.sqrt(max(x.shape[1], 1)))
    kept = edge_softmax(pattern, scores.unsqueeze(1)).squeeze(1) * weights
    # a row whose whole softmax went to entries of weight zero has nothing to scale
    scale = row_sums(pattern, weights) / row_sums(pattern, kept).clamp_min(1e-30)
    return CSR(pattern, kept * scale[pattern.row_ids]) @ x


def _distances(pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
    """Euclidean distance of ``a[row]`` and ``b[column]`` for every entry, [entries]; where it is zero, so is its slope."""
    squares = gather_rows(pattern, a.square().sum(1, keepdim=True)) + gather_columns(
        pattern, b.square().sum(1, keepdim=True)
    )
    square = squares.squeeze(1) - 2 * sampled_product(pattern, a, b)
    distinct = square > 1e-12
    return torch.where(distinct, torch.where(distinct, square, 1.0).sqrt(), 0.0)


def median_rows(pattern: Pattern, weights: Tensor, x: Tensor) -> Tensor:
    """Column whose value is the weighted median of a row's entries, in every dimension, [rows, d].

    The weighted median is the smallest value at which the cumulated weight reaches half of the total. All rows are
    sorted at once without comparing within rows: the columns are sorted by value, and a stable transposition of the
    pattern in that order leaves the entries of every row in ascending order.

    Args:
        pattern: [rows, columns].
        weights: Not negative, [entries].
        x: [columns, d].

    Returns:
        [rows, d]; what a row without entries gets means nothing.
    """
    from scipy.sparse import csr_array

    flipped, positions = pattern.transposed
    arrays = (weights.double()[positions], flipped.indices, flipped.indptr)
    who = csr_array(tuple(array.cpu().numpy() for array in arrays), shape=flipped.shape)
    width = max(1, BLOCK // max(pattern.entries, 1))
    parts = x.cpu().T.split(width)
    return torch.cat([torch.from_numpy(_medians(who, part)) for part in parts], dim=1).to(x.device)


def _medians(who: csr_array, x: Tensor) -> NDArray[np.int64]:
    """For some dimensions x, [d, columns], and the weights of the rows that have a column as an entry, [columns, rows]."""
    from scipy.sparse import csr_array

    (columns, rows), width = who.shape, len(x)
    order = x.numpy().argsort(axis=1)
    # for each dimension in turn: who has the lowest column as an entry, who the second lowest, ...
    listed = who[order.ravel()]
    owners = (listed.indices.reshape(width, -1) + np.arange(width)[:, None] * rows).ravel()
    # column d * rows + i has the entries of row i in ascending order of dimension d
    ascending = csr_array((listed.data, owners, listed.indptr), shape=(width * columns, width * rows)).tocsc()
    so_far = np.concatenate([[0.0], ascending.data.cumsum()])
    start, stop = ascending.indptr[:-1], ascending.indptr[1:]
    # a little less than half, because an even number of equal weights must not depend on rounding
    half = so_far[start] + (so_far[stop] - so_far[start]) * (0.5 - 1e-6)
    position = np.clip(np.searchsorted(so_far, half) - 1, start, np.maximum(stop - 1, start))
    found = order.ravel()[ascending.indices[np.minimum(position, len(ascending.indices) - 1)]]
    return found.reshape(width, rows).T


def personalised_pagerank(adj: Adjacency, teleport: float, neighbours: int) -> CSR:
    r"""The largest entries of every row of :math:`\alpha (I - (1 - \alpha) \hat A)^{-1}`, scaled to a sum of one.

    By passing on residuals of at least 1e-4 until there are none: sparse at any size.

    Args:
        adj: The graph; its weights are taken as constants.
        teleport: :math:`\alpha`.
        neighbours: Entries per row at most.
    """
    from scipy.sparse import csr_matrix, identity

    hat = normalise.gcn(adj)
    assert hat.values is not None
    arrays = (hat.values.double(), hat.pattern.indices, hat.pattern.indptr)
    step = csr_matrix(tuple(array.detach().cpu().numpy() for array in arrays), shape=hat.shape) * (1 - teleport)
    residual, scores = identity(adj.n, format="csr"), csr_matrix(hat.shape)
    while residual.nnz:
        scores = scores + teleport * residual
        residual = residual @ step
        residual.data[residual.data < RESIDUAL] = 0
        residual.eliminate_zeros()
    scores.sort_indices()
    rows = np.repeat(np.arange(adj.n), np.diff(scores.indptr))
    best = np.lexsort((-scores.data, rows))
    best = best[np.arange(len(best)) - scores.indptr[rows] < neighbours]
    best.sort()
    totals = np.bincount(rows[best], weights=scores.data[best], minlength=adj.n)
    values = torch.from_numpy(scores.data[best] / totals[rows[best]]).to(hat.values)
    indptr = np.concatenate([[0], np.bincount(rows[best], minlength=adj.n).cumsum()])
    kind = hat.pattern.indices.dtype
    pattern = Pattern(torch.from_numpy(indptr).to(kind), torch.from_numpy(scores.indices[best]).to(kind), adj.n)
    return CSR(pattern.to(adj.device), values)
