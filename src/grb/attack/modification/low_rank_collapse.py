"""Flips that let a degree of a low-rank graph vanish: the adaptive attack on GCN-SVD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.gradient import Victim
from grb.attack.modification.scores import victim_of
from grb.attack.modification.selectors import accept, best
from grb.errors import DataError
from grb.graph import Adjacency, GraphEdit
from grb.graph.eigenpairs import largest_eigenpairs

Eigenpairs = Callable[[Adjacency], tuple[Tensor, Tensor]]
# absent pairs that are looked at: all there are for small graphs, a draw for others
POOL = 2**23
# a proposal is this fraction of the budget, halved up to five times
LARGEST, HALVINGS = 4, 5


@dataclass(frozen=True, kw_only=True)
class LowRankCollapse(Limits):
    r"""Lowers the smallest degree of a model's low-rank graph until the normalisation by it takes over all rows.

    A model that keeps :math:`A_r = V \Lambda V^T` of the adjacency divides by the roots of :math:`d = A_r 1 + 1`, and nothing
    keeps these positive. With constant eigenvectors, :math:`A_r = V V^T A V V^T`, adding the pair :math:`(a, b)` changes

    .. math:: \Delta d_u = P_{ua} (P 1)_b + P_{ub} (P 1)_a, \qquad P = V V^T ,

    so the pairs that lower the degree of one node most are known without a gradient. A proposal flips some of these for one of
    the nodes of least degree; it stays if fewer targets keep their label on the true model, or as many with a larger loss.
    Where the budget is spent, a proposal takes back random flips first.

    Args:
        steps: Number of proposals; each costs one forward pass and one more set of eigenpairs.
        nodes: Nodes of least degree of which a proposal takes one.
        rank: Rank of the low-rank graph, where the model (a surrogate, say) has none of its own.

    References:
        Ours. That GCN-SVD breaks down altogether under adaptive attacks was found by Mujkanovic et al., *Are Defenses for Graph
        Neural Networks Robust?*, NeurIPS 2022.
    """

    steps: int = 64
    nodes: int = 8
    rank: int = 50
    version = 1

    def __post_init__(self) -> None:
        if min(self.steps, self.nodes, self.rank) < 1:
            raise DataError(
                f"steps is {self.steps}, nodes {self.nodes} and rank {self.rank}, but all must be at least 1"
            )

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Climb by flips that lower degrees of the low-rank graph."""
        eigenpairs = eigenpairs_of(context) or partial(largest_eigenpairs, rank=self.rank)
        now = SearchState.of(context)
        if now.left <= 0 or now.space.count == 0:
            return now.edit
        victim, budget = victim_of(context, gradients=False), now.left
        value = _value(victim, now)
        for step in range(self.steps):
            wanted = max(1, budget // LARGEST // 2 ** (step % (HALVINGS + 1)))
            tried = self._proposal(now, eigenpairs, wanted, generator)
            found = _value(victim, tried)
            if found > value:
                now, value = tried, found
            context.report(value[1], 1.0 - value[0])
        return finished(context, now)

    def _proposal(
        self, state: SearchState, eigenpairs: Eigenpairs, wanted: int, generator: torch.Generator
    ) -> SearchState:
        if state.left < wanted and state.spare is None:
            gone = torch.zeros(state.pairs.shape[1], dtype=torch.bool)
            gone[torch.randperm(len(gone), generator=generator)[: wanted - state.left]] = True
            state = state.undo(gone)
        values, vectors = eigenpairs(state.adj)
        ones = vectors.sum(0)
        degrees = (vectors * values) @ ones
        lowest = degrees.topk(min(self.nodes, len(degrees)), largest=False).indices
        node = lowest[torch.randint(len(lowest), (1,), generator=generator)]
        scores = _Falls((vectors @ vectors[node].T).squeeze(1), vectors @ ones)
        salt = int(torch.randint(2**62, (1,), generator=generator))
        listed = best(state, scores, 4 * wanted, POOL, 0.0, salt, generator)
        return state.flip(accept(state, listed.pairs, min(wanted, state.left)))


def eigenpairs_of(context: AttackContext) -> Eigenpairs | None:
    """The function from edges to the eigenpairs that a model keeps; None for a model that keeps all of the graph."""
    found: Eigenpairs | None = getattr(context.model, "eigenpairs", None)
    return found


def _value(victim: Victim, state: SearchState) -> tuple[float, float]:
    """Fraction of targets that lost their label, then the mean loss."""
    loss, kept = victim.judge(state.adj)
    return 1.0 - kept, loss


@dataclass(frozen=True, eq=False)
class _Falls:
    """How far a flip lowers the degree of one node."""

    row: Tensor  # of the projection, [n]
    sums: Tensor  # of its rows, [n]

    def adds(self, pairs: Tensor) -> Tensor:
        """Of absent pairs, [p]."""
        a, b = pairs
        return -(self.row[a] * self.sums[b] + self.row[b] * self.sums[a])

    def drops(self, pairs: Tensor) -> Tensor:
        """Of edges, [p]."""
        return -self.adds(pairs)

    def add_block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Of the pairs of some nodes with others, [r, c]."""
        one = self.row[rows].unsqueeze(1) * self.sums[columns]
        return -(one + self.sums[rows].unsqueeze(1) * self.row[columns])
