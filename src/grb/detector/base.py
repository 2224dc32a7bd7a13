"""What a detector is: a statistic of nodes and of edges, and how usual its values were on the training graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn

from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import CSR, Graph
from grb.graph.sparse import row_sums

Side = Literal["low", "high", "both"]
Kind = Literal["nodes", "edges"]
KINDS: tuple[Kind, ...] = ("nodes", "edges")
# levels at which the values of the training graph are kept
LEVELS = 129
# with fewer held-out items than these, all of the view are compared with
FEWEST = 20
_Own = TypeVar("_Own", bound="Detector")


class Detector(nn.Module):
    r"""A statistic of every node and every edge, compared with its values on the training graph.

    The statistic :math:`s` becomes a normal score :math:`z = \Phi^{-1}(F(s))`, where :math:`F` is its distribution over the
    defender's view: over all nodes and edges or, if the statistic is learnt (``held_out``), over the validation nodes and their
    edges, which it was not learnt from. What is suspicious is a low, a high or any unusual value: :math:`-z`, :math:`z` or
    :math:`|z|`. Beyond the largest and smallest values seen, :math:`z` goes on along a straight line, so that a far outlier is
    more suspicious than a near one. A node without edges has no statistic of edges, and nothing suspicious about it:
    :math:`z = 0`.

    A subclass gives ``node_values`` and ``edge_values`` (differentiable, so that an adaptive attack can learn to pass) and,
    if it learns anything, ``learn``. Everything learnt is a buffer whose shape follows from the arguments, so that a
    defense with a detector in it is saved like any other model.

    Args:
        in_features: Number of features.
        out_features: Number of classes.
    """

    name: ClassVar[str]
    side: Side = "both"
    fitted: Tensor
    held_out: ClassVar[bool] = False
    version = 1

    def __init__(self, in_features: int, out_features: int, **own: Any) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.params: Mapping[str, Any] = own
        self.register_buffer("fitted", torch.zeros((), dtype=torch.bool))
        for kind in KINDS:
            self.register_buffer(f"{kind}_values", torch.zeros(LEVELS))
            self.register_buffer(f"{kind}_suspicion", torch.zeros(LEVELS))

    def fit(self: _Own, view: View, *, seed: int = 0) -> _Own:
        """Learn from what a defender may see what is usual; the same seed gives the same detector.

        Args:
            view: A defender's view.
            seed: Random seed of whatever is learnt.
        """
        graph = view.graph
        if graph.ptr is not None:
            raise DataError(
                "a detector compares nodes of one graph, but the dataset has graphs to classify; choose another defense"
            )
        if graph.num_features != self.in_features:
            raise DataError(f"the detector is for {self.in_features} features, but the graph has {graph.num_features}")
        with torch.no_grad():
            with torch.enable_grad():
                self.learn(view, torch.Generator().manual_seed(seed))
            usual = usual_items(view, held_out=self.held_out)
            for kind in KINDS:
                self._calibrate(kind, self._values(kind, graph), usual[kind])
            self.fitted.fill_(True)
            self.learn_scores(graph, usual)
            for kind in KINDS:
                self._quantiles(f"{kind}_suspicion", self._suspicion(kind, graph), usual[kind])
        return self

    def learn(self, view: View, generator: torch.Generator) -> None:
        """Learn what the statistic needs; nothing by default."""

    def learn_scores(self, graph: Graph, usual: Mapping[Kind, Tensor]) -> None:
        """Learn from normal scores of the usual items; nothing by default."""

    def node_values(self, graph: Graph) -> Tensor:
        """Statistic of every node, [n]; NaN where there is none."""
        raise NotImplementedError

    def edge_values(self, graph: Graph) -> Tensor:
        """Statistic of every entry of the adjacency, equal in both directions, [entries]."""
        raise NotImplementedError

    def node_scores(self, graph: Graph) -> Tensor:
        """Suspicion of every node, [n]; higher is more suspicious."""
        return self._suspicion("nodes", graph)

    def edge_scores(self, graph: Graph) -> Tensor:
        """Suspicion of every entry of the adjacency, equal in both directions, [entries]."""
        return self._suspicion("edges", graph)

    def normal_scores(self, kind: Kind, graph: Graph) -> Tensor:
        """Normal score of every node or entry, zero where there is no statistic."""
        values = self._values(kind, graph)
        defined = values.isfinite()
        scores = normal_scores(torch.where(defined, values, 0.0), getattr(self, f"{kind}_values"))
        return torch.where(defined, scores, 0.0)

    def threshold(self, kind: Kind, rate: float) -> Tensor:
        """Suspicion that a fraction ``rate`` of the usual items exceeds."""
        quantiles: Tensor = getattr(self, f"{kind}_suspicion")
        place = (1 - rate) * (LEVELS - 1)
        low = min(int(place), LEVELS - 2)
        return torch.lerp(quantiles[low], quantiles[low + 1], place - low)

    def _suspicion(self, kind: Kind, graph: Graph) -> Tensor:
        self._check_fitted()
        scores = self.normal_scores(kind, graph)
        return scores.abs() if self.side == "both" else -scores if self.side == "low" else scores

    def _check_fitted(self) -> None:
        if not bool(self.fitted):
            raise DataError(f"detector '{self.name}' has learnt nothing yet; call fit(dataset.defender_view()) first")

    def _values(self, kind: Kind, graph: Graph) -> Tensor:
        return self.node_values(graph) if kind == "nodes" else self.edge_values(graph)

    def _calibrate(self, kind: Kind, values: Tensor, usual: Tensor) -> None:
        self._quantiles(f"{kind}_values", values, usual & values.isfinite())

    def _quantiles(self, name: str, values: Tensor, usual: Tensor) -> None:
        own = values[usual]
        if len(own) < FEWEST:
            own = values[values.isfinite()]
        if len(own):
            levels = torch.linspace(0, 1, LEVELS, dtype=torch.float64)
            getattr(self, name).copy_(torch.quantile(_thinned(own).double(), levels))


# torch.quantile takes no more items than this
MOST = 2**24


def _thinned(values: Tensor) -> Tensor:
    return values if len(values) <= MOST else values.sort().values[:: -(-len(values) // MOST)]


def usual_items(view: View, *, held_out: bool) -> dict[Kind, Tensor]:
    """Which nodes, [n], and entries, [entries], a detector compares with: all, or those of validation nodes."""
    nodes = torch.full((view.graph.n,), not held_out, device=view.graph.adj.device)
    nodes[view.val] = True
    pattern = view.graph.adj.pattern
    return {"nodes": nodes, "edges": nodes[pattern.row_ids] | nodes[pattern.indices]}


def normal_scores(values: Tensor, quantiles: Tensor) -> Tensor:
    r""":math:`\Phi^{-1}(F(s))` by linear interpolation between quantiles, [m]; beyond them along a straight line.

    A value that several quantiles share gets the mean of their scores, so that counts are scored without a bias.

    Args:
        values: Finite values, [m].
        quantiles: Quantiles at equally spaced levels from 0 to 1, ascending, [levels].

    >>> normal_scores(torch.tensor([0.0, 0.5, 1.0]), torch.linspace(0, 1, 129))[1].abs() < 1e-6
    tensor(True)
    """
    count = len(quantiles)
    levels = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    scores = (math.sqrt(2) * torch.erfinv(2 * levels - 1)).to(quantiles)
    inside = values.detach()
    low = torch.searchsorted(quantiles, inside, right=False)
    high = torch.searchsorted(quantiles, inside, right=True) - 1
    shared = high >= low
    right = low.clamp(1, count - 1)
    left = right - 1
    width = (quantiles[right] - quantiles[left]).clamp_min(1e-12)
    between = scores[left] + (values - quantiles[left]) / width * (scores[right] - scores[left])
    slope = (scores[-1] - scores[0]) / (quantiles[-1] - quantiles[0]).clamp_min(1e-6)
    between = torch.where(values < quantiles[0], scores[0] + slope * (values - quantiles[0]), between)
    between = torch.where(values > quantiles[-1], scores[-1] + slope * (values - quantiles[-1]), between)
    several = shared & ((high > low) | (low == 0) | (high == count - 1))
    mean = (scores[low.clamp(max=count - 1)] + scores[high.clamp(min=0)]) / 2
    return torch.where(several, mean, between)


def degrees_of(graph: Graph) -> Tensor:
    """Sum of the weights of every node's edges, [n]; differentiable in the weights."""
    return row_sums(graph.adj.pattern, graph.adj.values).to(torch.get_default_dtype())


def neighbour_mean(graph: Graph, x: Tensor) -> Tensor:
    """Mean of the neighbours' rows, [n, d]; rows of zeros for nodes without any."""
    summed = CSR(graph.adj.pattern, graph.adj.values) @ x
    return summed / degrees_of(graph).clamp_min(1e-12).unsqueeze(1)


def of_ends(graph: Graph, values: Tensor) -> tuple[Tensor, Tensor]:
    """Values of the two ends of every entry, [entries] each."""
    pattern = graph.adj.pattern
    return values[pattern.row_ids.long()], values[pattern.indices.long()]
