"""Pro-GNN: the weights of the training graph's edges are learnt together with a GCN."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.dataset.view import View
from grb.defense.relaxed import Relaxed
from grb.defense.structure import (
    DenseStructure,
    SparseStructure,
    Structure,
    Weighting,
    matrix_of,
    most_similar,
    normalised,
    upper,
)
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Pattern, normalise
from grb.graph.operators import Dense
from grb.model.base import EvaluationView, Stage
from grb.model.stack import ConvStack
from grb.model.torch.gcn import GCN

Parametrisation = Literal["auto", "dense", "sparse"]
Variant = Literal["paper", "code"]
# nodes of the largest graph whose pairs all get a weight
MOST_DENSE = 5000


@dataclass(eq=False, repr=False, kw_only=True)
class ProGNN(GCN):
    r"""GCN on a graph whose weights are learnt with it: sparse, of low rank, and smooth in the features.

    From :math:`S = A` on, every ``inner_steps`` steps of the GCN one step on the weights lowers

    .. math:: \lVert S - A \rVert_F + \gamma\, L_{GCN}(S) + \lambda\, \mathrm{tr}(X^T \hat L X)
              + \alpha \lVert S \rVert_1 + \beta \lVert S \rVert_* , \qquad 0 \le S_{ij} \le 1,

    or the square of the first norm in ``variant="paper"``: by momentum on what is differentiable, a proximal step for the
    singular values and one for the entries. Weights and GCN of the best validation epoch are kept together.

    **Tied to its training graph.** The weights belong to pairs of that graph's nodes, so it is trained transductively and
    refuses to be trained inductively. On another graph of the same nodes it uses :math:`S + (A' - A)`: an edge that is still
    there has its learnt weight, one that was added counts in full, one that was removed is gone, a new node has the edges it
    has. Which node is which is told by the evaluator (``trained_ids``); until it is told, nodes are those of the training graph
    in their order, and on a smaller graph it is a GCN.

    Args:
        alpha: :math:`\alpha`.
        beta: :math:`\beta`.
        gamma: :math:`\gamma`.
        smoothness: :math:`\lambda`.
        graph_lr: Learning rate of the weights.
        inner_steps: Steps of the GCN for one of the weights.
        parametrisation: ``dense``: all pairs, as the authors do it, for at most 5,000 nodes; ``sparse``: the graph's edges and
            ``candidates``, in memory linear in their number; ``auto``: dense where that is allowed.
        rank: Singular values that a step on sparse weights shrinks exactly
            (:class:`~grb.defense.structure.SparseStructure`).
        candidates: Most similar nodes that each node may be joined with in the sparse form; to find them takes time
            quadratic in the nodes.
        variant: ``code`` as above, which the authors ran; ``paper``, where the distance from the graph is squared and holds
            weights near it.
        learnt_pairs: Number of weights that were learnt; set by training.

    Differs from ChandlerBang/Pro-GNN: one weight per undirected pair, so that the penalty of asymmetry is zero; no weights on
    the diagonal; unweighted graphs alone; what becomes of another graph is ours, there is none in the paper.

    References:
        Jin et al., *Graph Structure Learning for Robust Graph Neural Networks*, KDD 2020.
    """

    hidden_features: int | Sequence[int] = field(default=(16,), kw_only=False)
    alpha: float = 5e-4
    beta: float = 1.5
    gamma: float = 1.0
    smoothness: float = 1e-3
    graph_lr: float = 0.01
    inner_steps: int = 2
    parametrisation: Parametrisation = "auto"
    rank: int = 50
    candidates: int = 0
    variant: Variant = "code"
    learnt_pairs: int = 0
    dropout: float = 0.5
    name = "pro-gnn"
    tied_to_training_graph = True

    def build(self) -> None:
        """Make the convolutions, and room for the weights that were learnt."""
        strengths = (self.alpha, self.beta, self.gamma, self.smoothness)
        if not all(0 <= value < math.inf for value in strengths) or not 0 < self.graph_lr < math.inf:
            raise DataError(
                f"alpha, beta, gamma and smoothness are {strengths} and graph_lr is {self.graph_lr}, but finite numbers of at "
                "least 0, and above 0 for graph_lr, are needed"
            )
        if self.inner_steps < 1 or self.rank < 1 or min(self.candidates, self.learnt_pairs) < 0:
            raise DataError(
                f"inner_steps is {self.inner_steps}, rank {self.rank}, candidates {self.candidates}, but at least 1, 1 and 0 "
                "are needed"
            )
        if self.parametrisation not in get_args(Parametrisation):
            raise DataError(
                f"parametrisation is {self.parametrisation!r}, but {', '.join(get_args(Parametrisation))} are known"
            )
        if self.variant not in get_args(Variant):
            raise DataError(f"variant is {self.variant!r}, but {' or '.join(get_args(Variant))} is needed")
        super().build()
        listed = 0 if self.parametrisation == "dense" else self.learnt_pairs
        self.register_buffer("pairs", torch.zeros(2, listed, dtype=torch.int64))
        self.register_buffer("weights", torch.zeros(self.learnt_pairs))
        self.register_buffer("linked", torch.zeros(self.learnt_pairs, dtype=torch.bool))
        self.register_buffer("trained_nodes", torch.zeros((), dtype=torch.int64))
        self._told: Tensor | None = None

    # training

    def graph_learner(self, view: View, loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[int], bool]:
        """What learns the weights of a view's graph: called with every epoch, it says whether they changed.

        Args:
            view: A transductive view.
            loss: Function of logits and labels.
        """
        graph, ids = view.training_graph()
        self._check(view)
        x, y, n = graph.x, view.labels[ids], graph.n
        how = Weighting(self.alpha, self.beta, self.gamma, self.smoothness, self.graph_lr, self.variant == "paper")
        if self.parametrisation == "auto":
            self._set("parametrisation", "dense" if n <= MOST_DENSE else "sparse")
        structure: Structure
        if self.parametrisation == "dense":
            structure = DenseStructure(graph.adj, x, how)
            pairs, linked = graph.adj.edges()[:, :0], structure.weights > 0
        else:
            pairs = graph.adj.edges()
            if self.candidates:
                keys = torch.cat([pairs, most_similar(x, self.candidates)], dim=1)
                keys = (keys[0] * n + keys[1]).unique()
                pairs = torch.stack([keys // n, keys % n])
            linked = graph.adj.has(pairs)
            structure = SparseStructure(pairs, linked.to(torch.get_default_dtype()), x, how, self.rank)
        self._set("learnt_pairs", len(linked))
        self.pairs, self.linked, self.weights = pairs, linked, structure.weights.clone()
        self.trained_nodes = torch.tensor(n, device=graph.adj.device)

        def task(op: CSR | Dense) -> Tensor:
            return loss(ConvStack.forward(self, x, op)[ids], y)

        def learn(epoch: int) -> bool:
            if epoch % self.inner_steps:
                return False
            self.eval()  # the step of the GCN switches to training mode again
            structure.step(task)
            with torch.no_grad():
                self.weights.copy_(structure.weights)
            return True

        return learn

    def _check(self, view: View) -> None:
        """Refuse views whose graph is not one whose pairs can have weights."""
        graph, seen = view.training_graph()[0], view.validation_graph
        if view.inductive or (seen is not None and seen.n > graph.n):
            raise DataError(
                "'pro-gnn' learns weights for the edges of its training graph, which say nothing of nodes that it never met; "
                "train it with train_mode 'transductive'"
            )
        if graph.adj.values is not None and not bool((graph.adj.values == 1).all()):
            raise DataError(
                "'pro-gnn' learns the weights of edges itself, but this graph has some; choose another defense"
            )
        if self.parametrisation == "dense" and graph.n > MOST_DENSE:
            raise DataError(
                f"a dense Pro-GNN gives every pair of nodes a weight, which are {graph.n} x {graph.n} here, and takes at most "
                f"{MOST_DENSE} nodes; choose parametrisation 'sparse'"
            )

    def _set(self, name: str, value: object) -> None:
        setattr(self, name, value)
        self.params = {**self.params, name: value}

    # evaluation

    def observe(self, view: EvaluationView) -> None:
        """Take note of which node is which."""
        self._told = view.trained_ids

    def forget(self) -> None:
        """Forget that again: nodes are those of the training graph in their order."""
        self._told = None

    def trained_ids(self, n: int) -> Tensor:
        """The number that every node had in the training graph, [n]; -1 for others."""
        ids = torch.full((n,), -1)
        if self._told is not None:
            count = min(n, len(self._told))
            ids[:count] = self._told[:count].cpu()
        elif n >= int(self.trained_nodes):
            ids[: int(self.trained_nodes)] = torch.arange(int(self.trained_nodes))
        return ids

    def prepare(self, adj: Adjacency) -> CSR | Dense:  # type: ignore[override]
        """The normalised weights of the graph's edges."""
        if not self.learnt_pairs:
            return normalise.gcn(adj)
        self._check_weights()
        ids = self.trained_ids(adj.n).to(adj.device)
        if bool((ids >= self.trained_nodes).any()):
            raise DataError("trained_ids names nodes that the training graph of this model did not have")
        if not bool((ids >= 0).any()):
            return normalise.gcn(adj)
        if self.parametrisation == "dense":
            return normalised(self._matrix(adj, ids))
        return normalise.gcn(self._weighted(adj, ids))

    def _weighted(self, adj: Adjacency, ids: Tensor) -> Adjacency:
        """The graph with learnt weights where its pairs had some in training."""
        n, pattern = int(self.trained_nodes), adj.pattern
        values = torch.ones(pattern.entries, device=adj.device) if adj.values is None else adj.values
        left, right = ids[pattern.row_ids.long()], ids[pattern.indices.long()]
        keys = self.pairs[0] * n + self.pairs[1]
        wanted = torch.where(
            (left >= 0) & (right >= 0), torch.minimum(left, right) * n + torch.maximum(left, right), -1
        )
        place = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
        found, weight = keys[place] == wanted, self.weights[place].to(values.dtype)
        changed = torch.where(self.linked[place], values * weight, (values + weight).clamp(max=1.0))
        weighted = Adjacency(pattern, torch.where(found, changed, values))
        return self._with_candidates(weighted, ids)

    def _with_candidates(self, adj: Adjacency, ids: Tensor) -> Adjacency:
        """The graph with the pairs that are no edges, but were given a weight."""
        extra = ~self.linked & (self.weights > 0)
        if not bool(extra.any()):
            return adj
        assert adj.values is not None
        inside = ids >= 0
        place = torch.full((int(self.trained_nodes),), -1, device=adj.device)
        place[ids[inside]] = inside.nonzero().flatten()
        ends, weights = place[self.pairs[:, extra]], self.weights[extra].to(adj.values.dtype)
        fresh = (ends >= 0).all(0) & ~adj.has(ends)
        ends, weights = ends[:, fresh], weights[fresh]
        keys = torch.cat([adj.keys, ends[0] * adj.n + ends[1], ends[1] * adj.n + ends[0]])
        keys, order = keys.sort()
        values = torch.cat([adj.values, weights, weights])[order]
        kind = adj.pattern.indices.dtype
        indptr = functional.pad((keys // adj.n).bincount(minlength=adj.n).cumsum(0), (1, 0)).to(kind)
        return Adjacency(Pattern(indptr, (keys % adj.n).to(kind), adj.n, symmetric=True), values)

    def _matrix(self, adj: Adjacency, ids: Tensor) -> Tensor:
        """Weights of all pairs of the graph, [n, n]."""
        given = matrix_of(adj, self.weights.dtype)
        n = int(self.trained_nodes)
        above = upper(n, adj.device)
        learnt, linked = given.new_zeros(n, n), torch.zeros(n, n, dtype=torch.bool, device=adj.device)
        learnt[above], linked[above] = self.weights.to(given.dtype), self.linked
        learnt, linked = learnt + learnt.T, linked | linked.T
        inside = ids >= 0
        both = inside[:, None] & inside[None]
        place = ids.clamp_min(0)
        learnt, linked = learnt[place][:, place] * both, linked[place][:, place] & both
        changed = torch.where(linked, learnt * given, (learnt + given).clamp(max=1.0))
        return torch.where(linked | (learnt > 0), changed, given)

    def _check_weights(self) -> None:
        """Refuse weights that no training leaves, as a file may hold them."""
        n = int(self.trained_nodes)
        if self.parametrisation == "dense":
            sound = 2 * self.learnt_pairs == n * (n - 1) and 0 < n <= MOST_DENSE
        else:
            left, right = self.pairs
            keys = left * n + right
            sound = bool((left >= 0).all() and (left < right).all() and (right < n).all() and (keys.diff() > 0).all())
        if not sound or not bool(((self.weights >= 0) & (self.weights <= 1)).all()):
            raise DataError("the learnt weights of this pro-gnn do not fit any graph; train it again")

    def stages(self) -> list[Stage] | None:
        """None: an edge counts by what was learnt of it, which no closed form knows."""
        return None

    def relaxations(self) -> dict[str, nn.Module]:
        """``unweighted``: the same GCN on the edges as they are, whose gradients also see edges that were weighed down."""
        return {"unweighted": _Unweighted(self)}


class _Unweighted(Relaxed):
    """The GCN of the model on the plain adjacency."""

    model: ProGNN

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        return ConvStack.forward(self.model, x, op)

    def stages(self) -> list[Stage] | None:
        return ConvStack.stages(self.model)
