"""Attacks on link prediction: edges that come and go make a model wrong about pairs that it is asked about.

The attacked pairs themselves may not be touched: who may write the answer into the graph has nothing to attack.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from grb.attack.base import Labels
from grb.attack.losses import Loss, cross_entropy
from grb.attack.modification.base import PairScores, SearchState
from grb.attack.modification.gradient import Victim
from grb.attack.modification.pairs import PairSpace, contains
from grb.attack.modification.random import KINDS, Mode
from grb.attack.modification.scores import Constant, GradientScores
from grb.attack.modification.selectors import RandomBlocks, Uniform
from grb.attack.oracle import taken_over
from grb.attack.untouched import AttackError, untouched
from grb.errors import BudgetError, DataError
from grb.graph import CSR, Adjacency, Graph, GraphEdit
from grb.threat import Modification
from grb.trainer.links import LinkGNN, LinkScore, LinkSplit, score_links


@dataclass(frozen=True, eq=False)
class LinkContext:
    """All that an attack on link prediction gets; which of the pairs are edges is not in it.

    Args:
        graph: The graph on which the model computes.
        pairs: Pairs that are attacked, in ascending order, [2, t].
        scored: Pairs that are scored, these and those of the validation, in ascending order, [2, s]: none may be added.
        threat: What is allowed.
        model: The victim (white-box) or a surrogate; None for attacks that need none.
        true_labels: 1 for pairs that are edges, [t], for the worst case alone; None for every real attacker, who aims at
            what the model says on the clean graph.
    """

    graph: Graph
    pairs: Tensor
    scored: Tensor
    threat: Modification
    model: LinkGNN | None = None
    true_labels: Tensor | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, split: LinkSplit, threat: Modification, model: LinkGNN | None = None, labels: Labels = "predicted"
    ) -> LinkContext:
        """What an attacker sees of a split."""
        if labels not in ("predicted", "true"):
            raise DataError(f"labels is '{labels}', but 'predicted' or 'true' is needed")
        order = _keys(split.test, split.message.n).argsort()
        held = split.scored[:, _keys(split.scored, split.message.n).argsort()]
        known = split.labels("test")[order] if labels == "true" else None
        return cls(replace(split.message, y=None), split.test[:, order], held, threat, model, known)

    def state(self) -> SearchState:
        """Everything that may be changed: all pairs but those that are scored."""
        space = PairSpace.everywhere(self.graph.n)
        closed = space.numbers(self.scored).sort().values
        return _LinkState(self.graph, self.threat, space, GraphEdit(n=self.graph.n), closed=closed)


@dataclass(frozen=True, eq=False)
class _LinkState(SearchState):
    """A search that may not touch some pairs: their numbers count as flipped already."""

    closed: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))

    @cached_property
    def flipped(self) -> Tensor:
        """Ascending numbers of the pairs that were flipped, or that nobody may flip."""
        own = self.space.numbers(torch.cat([self.edit.add, self.edit.drop], dim=1))
        return torch.cat([own, self.closed]).sort().values


class LinkAttack(Protocol):
    """Anything that turns a context into an edit of the graph on which the model computes."""

    def __call__(self, context: LinkContext, *, generator: torch.Generator) -> GraphEdit:
        """An edit within the limits of ``context.threat`` that adds none of ``context.scored``."""


@dataclass(frozen=True)
class RandomLinks:
    """The random baseline: any pairs but those that are scored, uniformly. Needs no model.

    Args:
        mode: ``drop`` edges, ``add`` absent pairs, or ``flip`` any pair.
    """

    mode: Mode = "flip"

    def __post_init__(self) -> None:
        if self.mode not in KINDS:
            raise DataError(f"mode is {self.mode!r}, but 'drop', 'add' or 'flip' is needed")

    def __call__(self, context: LinkContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip random pairs."""
        return Uniform()(context.state().only(*KINDS[self.mode]), Constant(), generator).edit


@dataclass(frozen=True)
class GreedyLinks:
    r"""Greedy randomised block coordinate descent on the loss of the attacked pairs.

    In every round the gradient of the mean loss over the attacked pairs, with respect to the edges of a random block of pairs,
    says which flips raise it most. Only pairs that may be flipped are in a block.

    Args:
        steps: Number of rounds, each with an equal fraction of the budget.
        block: Pairs in a block.
        loss: What is raised, per attacked pair, of logits :math:`(0, s_{uv})`.

    References:
        Geisler et al., *Robustness of Graph Neural Networks at Scale*, NeurIPS 2021 (GR-BCD, for classes of nodes).
    """

    steps: int = 20
    block: int = 50_000
    loss: Loss = cross_entropy

    def __post_init__(self) -> None:
        if self.steps < 1 or self.block < 1:
            raise DataError(f"steps is {self.steps} and block is {self.block}, but must be at least 1")

    def __call__(self, context: LinkContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip the best pairs of a new block in every round."""
        if context.model is None:
            raise DataError("this attack needs a model: the victim for a white-box attack, a surrogate for a transfer")
        state = context.state()
        if state.left <= 0 or not context.pairs.shape[1]:
            return state.edit
        model = _PairClassifier(context.model, context.pairs)
        everyone = torch.arange(context.pairs.shape[1])
        victim = Victim(model, context.graph, everyone, self.loss, context.true_labels)

        def score(state: SearchState) -> PairScores:
            return GradientScores(victim.gradient(state.adj), state.clean)

        pick = RandomBlocks(rounds=self.steps, block=max(self.block, 4 * state.left), above=0.0)
        return pick(state, score, generator).edit


class _PairClassifier(nn.Module):
    """A link predictor as a classifier of some pairs: logits (0, s), [p, 2]."""

    def __init__(self, inner: LinkGNN, pairs: Tensor) -> None:
        super().__init__()
        self.inner, self.pairs = inner, pairs

    def prepare(self, adj: Adjacency) -> Any:
        return self.inner.prepare(adj)

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        logits = self.inner(x, op, self.pairs)
        return torch.cat([torch.zeros_like(logits), logits], dim=1)


@dataclass(frozen=True, eq=False)
class LinkAttackResult:
    """A checked edit, what it used of the budget, and the scores of the model before and after it."""

    edit: GraphEdit
    budget: dict[str, float]
    clean: LinkScore
    attacked: LinkScore
    labels: Labels
    seed: int


def check_link_edit(split: LinkSplit, threat: Modification, edit: GraphEdit) -> dict[str, float]:
    """Refuse an edit beyond the limits, or one that puts a scored pair into the graph; otherwise return the budget used.

    Args:
        split: Which pairs are scored, and the graph that is attacked.
        threat: What is allowed.
        edit: Of ``split.message``.
    """
    used = threat.check(split.message, edit)
    n = split.message.n
    bad = contains(_keys(split.scored, n).sort().values, _keys(edit.add, n))
    if bool(bad.any()):
        u, v = edit.add[:, bad][:, 0].tolist()
        raise BudgetError(
            f"the edge {u}-{v} is added, but it is one of the {split.scored.shape[1]} pairs that are scored, which no attack "
            "may put into the graph"
        )
    return used


def run_link_attack(
    attack: LinkAttack,
    split: LinkSplit,
    threat: Modification,
    *,
    victim: LinkGNN,
    surrogate: LinkGNN | None = None,
    labels: Labels = "predicted",
    seed: int,
) -> LinkAttackResult:
    """Run an attack on link prediction, refuse an edit that is not allowed, and score the victim before and after it.

    Args:
        attack: What finds the edit.
        split: The divided graph; the test pairs are attacked.
        threat: What is allowed; the attack works with a copy.
        victim: The model that is scored.
        surrogate: The model that lends its gradients; the victim itself (white-box) if None.
        labels: What the attack aims at: ``predicted`` by the model, or ``true`` for the worst case.
        seed: Random seed of the attack.
    """
    model = victim if surrogate is None else surrogate
    context = LinkContext.of(split, deepcopy(threat), model, labels)
    with untouched(_lent(context, split), model), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        edit = attack(context, generator=torch.Generator().manual_seed(seed))
    if not isinstance(edit, GraphEdit):
        raise AttackError(f"the attack returned a {type(edit).__name__}, but a GraphEdit is needed")
    edit = taken_over(edit)
    budget = check_link_edit(split, threat, edit)
    return LinkAttackResult(
        edit,
        budget,
        score_links(victim, split.message, split),
        score_links(victim, split.message.apply(edit), split),
        labels,
        seed,
    )


def _lent(context: LinkContext, split: LinkSplit) -> list[Tensor]:
    """All tensors that an attack could reach beside the model's."""
    held: list[Any] = [context.pairs, context.scored, context.true_labels, split.train, split.val, split.test]
    for part in (context.graph.adj, context.graph.x):
        held += [part] if isinstance(part, Tensor) else [part.pattern.indptr, part.pattern.indices, part.values]
    return [each for each in held if isinstance(each, Tensor)]


def _keys(pairs: Tensor, n: int) -> Tensor:
    return pairs.min(0).values * n + pairs.max(0).values
