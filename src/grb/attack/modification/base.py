"""A modification attack = an edge score x a pick; the famous names are compositions of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from grb._paper_calls import PaperCalls, paper_calls
from grb.attack.base import Attack, AttackContext, context_from_arrays, is_mask, run_attack
from grb.attack.modification.pairs import PairSpace, contains, without
from grb.errors import DataError
from grb.graph import Adjacency, Graph, GraphEdit, convert
from grb.threat import Change, Modification

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class SearchState:
    """A graph attacked so far, and what may still be changed in it.

    A pair is flipped at most once: edges of the clean graph may go, pairs absent from the clean graph may come.

    Args:
        clean: The graph before the attack.
        threat: What is allowed.
        space: The pairs under consideration.
        edit: What was changed so far.
        kinds: Changes that are looked at, as far as they are allowed.
        targets: Ids of the attacked nodes, which may have budgets of their own; None for all nodes.
    """

    clean: Graph
    threat: Modification
    space: PairSpace
    edit: GraphEdit
    kinds: tuple[Change, ...] = ("add", "drop")
    targets: Tensor | None = None

    @classmethod
    def of(cls, context: AttackContext, *, everywhere: bool = False) -> SearchState:
        """The clean graph of a context; pairs with an end among the targets, or all pairs."""
        graph = context.graph
        none = not len(context.targets)  # without targets there is nothing to attack, wherever the pairs are
        space = (
            PairSpace.everywhere(graph.n) if everywhere and not none else PairSpace.touching(graph.n, context.targets)
        )
        return cls(graph, context.modification, space, GraphEdit(n=graph.n), targets=context.targets)

    @cached_property
    def left(self) -> int:
        """Pairs that may still be flipped."""
        return int(self.threat.budget(self.clean, self.targets)) - self.edit.add.shape[1] - self.edit.drop.shape[1]

    @cached_property
    def adj(self) -> Adjacency:
        """Edges after the edit."""
        n = self.clean.n
        return self.clean.adj.edited(self.edit.add, self.edit.drop, base=n, n=n)

    def only(self, *kinds: Change) -> SearchState:
        """The same, looking at these kinds of change alone."""
        return self._carried(replace(self, kinds=kinds))

    @property
    def may_add(self) -> bool:
        """Whether edges may be added."""
        return "add" in self.kinds and "add" in self.threat.allow

    @property
    def may_drop(self) -> bool:
        """Whether edges may be dropped."""
        return "drop" in self.kinds and "drop" in self.threat.allow

    @cached_property
    def edges(self) -> Tensor:
        """Ascending numbers of the clean graph's edges."""
        return self.space.edges(self.clean.adj)

    @cached_property
    def room(self) -> Tensor | None:
        """How many pairs may still be flipped at every node, [n]; None without such a limit."""
        limits = self.threat.node_limits(self.clean, self.targets)
        if limits is None:
            return None
        ends = torch.cat([self.edit.add.flatten(), self.edit.drop.flatten()])
        return limits - torch.bincount(ends, minlength=self.clean.n)

    @cached_property
    def spare(self) -> Tensor | None:
        """How many neighbours every node may lose, [n]; None without such a limit."""
        return None if self.threat.allow_isolate else self.adj.degrees.long() - 1

    @cached_property
    def flipped(self) -> Tensor:
        """Ascending numbers of the pairs that were flipped."""
        return self.space.numbers(torch.cat([self.edit.add, self.edit.drop], dim=1)).sort().values

    @cached_property
    def drops(self) -> Tensor:
        """Edges that may go, [2, r]."""
        if not self.may_drop or self.left <= 0:
            return self.edit.drop[:, :0]
        pairs = self.space.pairs(without(self.edges, self.flipped))
        return pairs[:, self._open(pairs, dropped=True)]

    def absent(self, numbers: Tensor) -> Tensor:
        """Pairs among some ascending numbers that may be added, [2, a]."""
        if not self.may_add or self.left <= 0:
            return self.edit.add[:, :0]
        pairs = self.space.pairs(without(without(numbers, self.edges), self.flipped))
        return pairs[:, self._open(pairs, dropped=False)]

    def allowed(self, numbers: Tensor) -> Tensor:
        """Pairs among some ascending numbers that may be flipped, edges first, [2, p]."""
        drops = self.space.numbers(self.drops).sort().values
        return torch.cat([self.space.pairs(drops[contains(numbers, drops)]), self.absent(numbers)], dim=1)

    def _open(self, pairs: Tensor, *, dropped: bool) -> Tensor:
        """Which pairs the limits of their ends still allow to flip, [p]."""
        allowed = torch.ones(pairs.shape[1], dtype=torch.bool)
        for limit in (self.room, self.spare if dropped else None):
            if limit is not None:
                allowed &= (limit[pairs] > 0).all(0)
        return allowed

    def flip(self, pairs: Tensor) -> SearchState:
        """With some pairs flipped: edges of the clean graph dropped, others added."""
        present = self.clean.adj.has(pairs)
        edit = GraphEdit(
            n=self.clean.n,
            add=torch.cat([self.edit.add, pairs[:, ~present]], dim=1),
            drop=torch.cat([self.edit.drop, pairs[:, present]], dim=1),
        )
        return self._carried(replace(self, edit=edit))

    @property
    def pairs(self) -> Tensor:
        """The pairs that were flipped, [2, p]."""
        return torch.cat([self.edit.add, self.edit.drop], dim=1)

    def undo(self, flips: Tensor) -> SearchState:
        """Without some of the flips; ``flips`` are booleans for :attr:`pairs`, [p]."""
        gone = flips.split([self.edit.add.shape[1], self.edit.drop.shape[1]])
        edit = GraphEdit(n=self.clean.n, add=self.edit.add[:, ~gone[0]], drop=self.edit.drop[:, ~gone[1]])
        return self._carried(replace(self, edit=edit))

    def _carried(self, after: SearchState) -> SearchState:
        if "edges" in self.__dict__:  # the clean graph is the same
            after.__dict__["edges"] = self.edges
        return after


class PairScores(Protocol):
    """How much good it does to flip a pair, on one graph; higher is flipped first, -inf never."""

    def adds(self, pairs: Tensor) -> Tensor:
        """Scores of absent pairs, [p] from [2, p]."""

    def drops(self, pairs: Tensor) -> Tensor:
        """Scores of edges, [p] from [2, p]."""

    def add_block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Scores of the pairs of some nodes with others as if all were absent, [r, c]."""


class Score(Protocol):
    """A function from the graph attacked so far to the scores of its pairs."""

    def __call__(self, state: SearchState) -> PairScores:
        """Scores of the pairs of the graph attacked so far."""


class Pick(Protocol):
    """A function from a score to the flipped graph."""

    def __call__(self, state: SearchState, score: Score, generator: torch.Generator) -> SearchState:
        """The graph with the chosen pairs flipped."""


def modify(context: AttackContext, *, score: Score, pick: Pick, generator: torch.Generator) -> GraphEdit:
    """Flip the pairs that a pick chooses by their scores.

    Args:
        context: With a :class:`~grb.threat.Modification` threat model.
        score: What it is worth to flip a pair.
        pick: Which pairs to flip, all at once or in rounds.
        generator: The only source of randomness.
    """
    state = SearchState.of(context)
    if state.left <= 0 or state.space.count == 0:
        return state.edit
    return finished(context, pick(state, score, generator))


def finished(context: AttackContext, state: SearchState) -> GraphEdit:
    """The edit, with a note if budget is left over."""
    if state.left > 0:
        used = int(state.threat.budget(state.clean, state.targets)) - state.left
        context.note(
            "{used} of {budget} allowed edges were changed: no other change was worth it or allowed",
            used=used,
            budget=used + state.left,
        )
    return state.edit


@dataclass(frozen=True, kw_only=True)
class Limits(metaclass=PaperCalls):
    """The benchmark's way to give the threat model to an attack; with ``run_attack`` the context's own counts instead.

    Args:
        n_edge_mod: Maximum number of changed edges.
        n_node_mod: Maximum number of nodes whose features may change.
        feat_lim_min: Lowest changed feature.
        feat_lim_max: Highest changed feature.
        allow_isolate: Whether a node may lose all its neighbours.
    """

    n_edge_mod: int | None = None
    n_node_mod: int = 0
    feat_lim_min: float | None = None
    feat_lim_max: float | None = None
    allow_isolate: bool = True
    scenario: ClassVar[str] = "modification"

    def threat(self) -> Modification:
        """The threat model that the constructor's limits describe."""
        if self.n_edge_mod is None:
            raise DataError("attack() needs n_edge_mod in the constructor")
        limits = None
        if self.feat_lim_min is not None and self.feat_lim_max is not None:
            limits = (self.feat_lim_min, self.feat_lim_max)
        return Modification(
            edges=self.n_edge_mod,
            feature_nodes=self.n_node_mod,
            feature_range=limits,
            allow_isolate=self.allow_isolate,
        )

    @paper_calls(is_mask)
    def attack(
        self, model: nn.Module | None, adj: Any, features: Tensor, target_mask: Tensor, *, seed: int = 0
    ) -> tuple[csr_matrix, Tensor]:
        """Attack a model on arrays.

        Args:
            model: The victim or a surrogate; None for attacks without a model.
            adj: Clean adjacency, a scipy sparse matrix [n, n].
            features: Clean features, [n, d].
            target_mask: Which nodes to attack, [n] booleans.
            seed: Random seed.

        Returns:
            The attacked adjacency, [n, n], and the attacked features, [n, d].
        """
        assert isinstance(self, Attack)
        context = context_from_arrays(model, adj, features, target_mask, self.threat())
        attacked = context.graph.apply(run_attack(self, context, seed=seed).edit)
        assert isinstance(attacked.x, Tensor)
        return convert.to_scipy(attacked.adj), attacked.x
