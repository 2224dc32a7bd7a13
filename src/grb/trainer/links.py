"""Link prediction with the profiling models: which of some pairs of nodes are joined by an edge that the model never saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.errors import DataError
from grb.graph import CSR, Adjacency, CompleteAdjacency, Graph
from grb.graph.validate import adjacency_from_edges
from grb.model.base import evaluating
from grb.model.profiling import ProfilingConfig, ProfilingGNN, build_profiler
from grb.trainer.batches import Batch
from grb.trainer.objective import Objective
from grb.trainer.profile import Point, Profiled, run_course

VAL, TEST = 0.1, 0.2
"""Fractions of the edges that are held out to validate and to test."""
ASKED = 0.5
"""Fraction of the other edges that a model learns from. It computes without them: what it computes with it could look up."""
FEWEST = 20
# first scale of the cosine
SCALE = 5.0


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """Edges of a graph, divided: what the model sees, and what it is asked about.

    Args:
        message: The graph on which a model computes, with none of the edges below.
        train: Edges to learn from, [2, t]; other pairs are drawn anew in every epoch.
        val: Held-out edges and as many pairs that are no edges, [2, 2 v].
        test: The same for the test, [2, 2 w].
        edges: Keys u n + v, u < v, of all edges of the graph, ascending.
    """

    message: Graph
    train: Tensor
    val: Tensor
    test: Tensor
    edges: Tensor

    def labels(self, part: str) -> Tensor:
        """1 for edges, 0 for the other pairs of ``val`` or ``test``."""
        count = getattr(self, part).shape[1] // 2
        return torch.cat([torch.ones(count, dtype=torch.int64), torch.zeros(count, dtype=torch.int64)])

    @property
    def scored(self) -> Tensor:
        """Pairs that the model is asked about, [2, s]: no attack and no perturbation may put them into the graph."""
        return torch.cat([self.val, self.test], dim=1)


def split_links(graph: Graph, seed: int) -> LinkSplit:
    """Hold out a tenth of the edges to validate and a fifth to test, with as many pairs that are no edges.

    Of the others a model computes with one half and learns from the other, as with ``disjoint_train_ratio`` of torch_geometric.

    Args:
        graph: A single graph.
        seed: Random seed of the split.
    """
    if graph.ptr is not None:
        raise DataError("link prediction needs a single graph, but this is a collection")
    edges = graph.adj.edges().cpu()
    m = edges.shape[1]
    if m < FEWEST:
        raise DataError(f"the graph has {m} edges, but at least {FEWEST} are needed to hold some out")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(m, generator=generator)
    val, test = int(VAL * m), int(TEST * m)
    keys = (edges.min(0).values * graph.n + edges.max(0).values).sort().values
    others = draw_pairs(graph.n, keys, val + test, generator)
    rest = order[val + test :]
    asked = int(ASKED * len(rest))
    train = edges[:, rest[:asked]]
    message = replace(graph, adj=adjacency_from_edges(edges[:, rest[asked:]].numpy(), graph.n)[0])
    return LinkSplit(
        message,
        train,
        val=torch.cat([edges[:, order[:val]], others[:, :val]], dim=1),
        test=torch.cat([edges[:, order[val : val + test]], others[:, val:]], dim=1),
        edges=keys,
    )


def draw_pairs(n: int, edges: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Distinct random pairs of different nodes that are no edges, [2, count].

    Args:
        n: Number of nodes.
        edges: Keys u n + v, u < v, of all edges, ascending.
        count: Number of pairs.
        generator: Draws them.
    """
    room = n * (n - 1) // 2 - len(edges)
    if count > room:
        raise DataError(f"{count} pairs that are no edges are needed, but the graph has only {room}: it is too dense")
    found = torch.zeros(0, dtype=torch.int64)
    while len(found) < count:
        drawn = torch.randint(n, (2, 2 * (count - len(found)) + 16), generator=generator)
        keys = drawn.min(0).values * n + drawn.max(0).values
        keys = keys[(drawn[0] != drawn[1]) & ~_among(keys, edges)]
        # the first of equal ones, in the order in which they were drawn
        pool = torch.cat([found, keys]).numpy()
        found = torch.from_numpy(pool[np.sort(np.unique(pool, return_index=True)[1])])
    keys = found[:count]
    return torch.stack([keys // n, keys % n])


def _among(keys: Tensor, known: Tensor) -> Tensor:
    """Whether each key is one of the known ones, which are ascending."""
    if not len(known):
        return torch.zeros(len(keys), dtype=torch.bool)
    return known[torch.searchsorted(known, keys).clamp(max=len(known) - 1)] == keys


def without_pairs(graph: Graph, pairs: Tensor) -> Graph:
    """The graph without some pairs as edges, in case a perturbation, or an attack, put them there."""
    if isinstance(graph.adj, CompleteAdjacency):
        raise DataError("a complete graph holds the pairs that are asked about; FullyConn is not for link prediction")
    edges = graph.adj.edges().cpu()
    keys = edges.min(0).values * graph.n + edges.max(0).values
    asked = (pairs.min(0).values * graph.n + pairs.max(0).values).sort().values
    bad = _among(keys, asked)
    if not bool(bad.any()):
        return graph
    return replace(graph, adj=adjacency_from_edges(edges[:, ~bad].numpy(), graph.n)[0])


class LinkGNN(nn.Module):
    r"""A profiling model whose outputs are embeddings; the logit of a pair is the cosine of their angle, scaled.

    .. math:: s_{uv} = a \cos(z_u - \bar z, z_v - \bar z) + b

    with learnt :math:`a` and :math:`b`. Differs from the inner product of graph auto-encoders: rows of the profiling models
    have length one after every layer and point in nearly one direction at first, so that the mean is taken off.

    References:
        Kipf and Welling, *Variational Graph Auto-Encoders*, 2016.
    """

    def __init__(self, inner: ProfilingGNN) -> None:
        super().__init__()
        self.inner = inner
        self.scale, self.bias = nn.Parameter(torch.tensor(SCALE)), nn.Parameter(torch.tensor(0.0))

    def prepare(self, adj: Adjacency) -> Any:
        """The operator of the convolutions."""
        return self.inner.prepare(adj)

    def forward(self, x: Tensor | CSR, op: Any, pairs: Tensor) -> Tensor:
        """Logits of pairs of nodes [2, p], [p, 1]."""
        z = self.inner(x, op)
        z = functional.normalize(z - z.mean(0), dim=1)
        return self.scale * (z[pairs[0]] * z[pairs[1]]).sum(1, keepdim=True) + self.bias


class _Pairs:
    """Pairs of one graph: training edges with other pairs that are drawn anew, and those that are asked about."""

    def __init__(self, model: LinkGNN, graph: Graph, split: LinkSplit) -> None:
        self.model, self.graph, self.split = model, graph, split
        self.op = model.prepare(graph.adj)
        seen = torch.cat([split.train, split.message.adj.edges().cpu()], dim=1)
        self.seen = (seen.min(0).values * graph.n + seen.max(0).values).sort().values

    def training(self, generator: torch.Generator) -> Iterator[Batch]:
        # held-out edges may be drawn too: who never draws them tells the model which pairs they are
        others = draw_pairs(self.graph.n, self.seen, self.split.train.shape[1], generator)
        y = torch.cat([torch.ones(others.shape[1]), torch.zeros(others.shape[1])]).long()
        yield Batch(self.graph.x, self.op, y, ptr=torch.cat([self.split.train, others], dim=1))

    def evaluated(self, part: str) -> tuple[Tensor, Tensor]:
        with evaluating(self.model):
            return self.model(self.graph.x, self.op, getattr(self.split, part)), self.split.labels(part)


def fit_links(
    split: LinkSplit,
    chosen: ProfilingConfig,
    *,
    seed: int,
    perturb: Callable[[Graph], Graph] = lambda graph: graph,
    on_evaluation: Callable[[Point], None] = lambda point: None,
) -> Profiled:
    """Train a profiling model to tell edges from other pairs, and score it by the AUROC of pairs that it never saw.

    The perturbation is of the graph that the model computes on, in which nothing is asked about. It must not bring back what
    is asked about: such pairs are taken out again.

    Args:
        split: The divided graph.
        chosen: The model and its settings.
        seed: Random seed of weights and of pairs that are no edges.
        perturb: What is done to the graph that the model computes on.
        on_evaluation: Called after every evaluation.
    """
    return fit_link_model(split, chosen, seed=seed, perturb=perturb, on_evaluation=on_evaluation)[1]


def fit_link_model(
    split: LinkSplit,
    chosen: ProfilingConfig,
    *,
    seed: int,
    perturb: Callable[[Graph], Graph] = lambda graph: graph,
    on_evaluation: Callable[[Point], None] = lambda point: None,
) -> tuple[LinkGNN, Profiled]:
    """Train as :func:`fit_links` does, and return the model with the weights of its best epoch too."""
    if chosen.neighbours is not None:
        raise DataError("link prediction computes on the whole graph; leave out neighbours")
    begin = time.perf_counter()
    generator = torch.Generator().manual_seed(seed)
    graph = without_pairs(perturb(split.message), torch.cat([split.train, split.scored], dim=1))
    edges = graph.num_edge_features
    inner = build_profiler(
        chosen, graph.num_features, chosen.width, pool=False, edge_features=edges, generator=generator
    )
    model = LinkGNN(inner)
    best: dict[str, Tensor] = {}

    def watch(point: Point) -> None:
        if point.auroc is not None:  # the best so far
            best.update({name: value.clone() for name, value in model.state_dict().items()})
        on_evaluation(point)

    done = run_course(model, _Pairs(model, graph, split), Objective("binary", 1), chosen, generator, begin, watch)
    model.load_state_dict(best)
    return model.eval(), done


@dataclass(frozen=True)
class LinkScore:
    """How well held-out edges are told from other pairs.

    Args:
        auroc: Area under the ROC curve.
        mrr: Mean reciprocal rank of the edges among the pairs that are none.
    """

    auroc: float
    mrr: float


def score_links(model: LinkGNN, graph: Graph, split: LinkSplit, part: str = "test") -> LinkScore:
    """Score a model that computes on a graph by the pairs of one part of a split.

    Args:
        model: The trained model.
        graph: What it computes on: ``split.message``, or a perturbed or attacked version of it.
        split: Which pairs are asked about.
        part: ``val`` or ``test``.
    """
    with evaluating(model):
        logits = model(graph.x, model.prepare(graph.adj), getattr(split, part))
    y = split.labels(part)
    return LinkScore(Objective("binary", 1).auroc(logits, y), mean_reciprocal_rank(logits, y))


def mean_reciprocal_rank(logits: Tensor, y: Tensor) -> float:
    """Mean of 1 / rank of every edge among all pairs that are no edges; of equal logits half count as larger.

    >>> mean_reciprocal_rank(torch.tensor([3.0, 1.0, 2.0, 0.0]), torch.tensor([1, 1, 0, 0]))
    0.75
    """
    edges, others = logits[y == 1].flatten().double(), logits[y == 0].flatten().double().sort().values
    if not len(edges) or not len(others):
        raise DataError("a reciprocal rank needs at least one edge and one pair that is none")
    above = len(others) - torch.searchsorted(others, edges, right=True)
    equal = torch.searchsorted(others, edges, right=True) - torch.searchsorted(others, edges)
    return float((1 / (1 + above + equal / 2)).mean())
