"""RL-S2V: Q-learning over edge flips, with values from embeddings of the graph flipped so far."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.local import FlipEvaluator, note_cost
from grb.attack.modification.queried import has_too_few, search_evaluator
from grb.attack.modification.selectors import accept
from grb.attack.setting_checks import at_least, fractions, positive
from grb.graph import CSR, Adjacency, GraphEdit, dense

# decisions that are remembered
_MEMORY = 256


@dataclass(frozen=True, kw_only=True)
class RLS2V(Limits):
    r"""Play at flipping edges, hear at the end of every game what the victim says, and learn which flips pay.

    A decision is a node, then its partners: :math:`Q_1(s, u)` and :math:`Q_2(s, u, v)` are perceptrons of embeddings

    .. math:: \mu_v^{k+1} = \mathrm{relu}\Bigl( W_1 x_v + W_2 \sum_{w \in N(v)} \mu_w^k \Bigr)

    of the graph flipped so far, of their mean and of the part of the game that is over. A game flips the whole budget and
    costs one query; its reward is the mean loss of the targets, or the share that lost its label where labels are answered.
    Both values learn from remembered decisions, undiscounted: :math:`Q_1` from :math:`\max_v Q_2` of the node, :math:`Q_2` from
    :math:`\max_u Q_1` of the graph after it, or from the reward. Decisions are random with a probability that falls from 1 to
    ``explore``. The attack ends when no target keeps its label, and returns the best graph that it asked about.

    Args:
        steps: Number of games where there is no limit of queries.
        width: Width of the embeddings.
        rounds: Rounds of propagation.
        horizon: Most decisions of a game; with a larger budget a decision takes several partners, up to all nodes.
        batch: Remembered decisions to learn from after every game.
        lr: Learning rate.
        explore: Probability of a random decision in the last games.

    Differs from the paper: it learns on the graph that it attacks from that graph's queries, where theirs learns one policy for
    many graphs; one pair of values serves all decisions of a game; features of the nodes are inputs.

    References:
        Dai et al., *Adversarial Attack on Graph Structured Data*, ICML 2018.
    """

    steps: int = 200
    width: int = 16
    rounds: int = 2
    horizon: int = 10
    batch: int = 8
    lr: float = 0.01
    explore: float = 0.05
    version = 1

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps, width=self.width, horizon=self.horizon, batch=self.batch)
        at_least(0, rounds=self.rounds)
        positive(lr=self.lr)
        fractions(explore=self.explore)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Play as often as the queries allow, and return the best end of a game."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0 or has_too_few(context):
            return state.edit
        evaluator = search_evaluator(context)
        player = _Player(self, context, state, evaluator, generator)
        edit = finished(context, player(self.steps if context.oracle is None else context.oracle.left))
        note_cost(context, evaluator)
        return edit


@dataclass(frozen=True, eq=False)
class _Decision:
    """A graph, what was chosen in it, and what came of it: the next graph, or the reward at the end of the game."""

    before: SearchState
    over: float
    node: Tensor
    partners: Tensor
    after: SearchState
    over_after: float
    reward: float | None = None


class _Values(nn.Module):
    """Values of nodes and of partners, from embeddings of a graph."""

    def __init__(self, features: int, width: int, rounds: int, generator: torch.Generator) -> None:
        super().__init__()
        self.rounds = rounds

        def drawn(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) / math.sqrt(rows))

        self.own, self.heard = drawn(features + 1, width), drawn(width, width)
        self.node, self.node_out = drawn(2 * width + 1, width), drawn(width, 1)
        self.partner, self.partner_out = drawn(3 * width + 1, width), drawn(width, 1)

    def embed(self, x: Tensor, adj: Adjacency) -> Tensor:
        """Embeddings of all nodes, [n, width]; sums are divided by the root of the degree, so that hubs stay in range."""
        degrees = adj.degrees.to(x.dtype).unsqueeze(1)
        own = torch.cat([x, torch.log1p(degrees)], dim=1) @ self.own
        out, edges = torch.relu(own), CSR(adj.pattern, None)
        for _ in range(self.rounds):
            out = torch.relu(own + (edges @ out) / degrees.clamp(min=1).sqrt() @ self.heard)
        return out

    def nodes(self, embedded: Tensor, over: float) -> Tensor:
        """Value of beginning a flip at every node, [n]."""
        inputs = torch.cat([embedded, self._shared(embedded, over)], dim=1)
        return (torch.relu(inputs @ self.node) @ self.node_out).squeeze(1)

    def partners(self, embedded: Tensor, over: float, node: Tensor) -> Tensor:
        """Value of every node as the partner of one, [n]."""
        inputs = torch.cat([embedded, embedded[node].expand_as(embedded), self._shared(embedded, over)], dim=1)
        return (torch.relu(inputs @ self.partner) @ self.partner_out).squeeze(1)

    def _shared(self, embedded: Tensor, over: float) -> Tensor:
        mean = embedded.mean(0, keepdim=True).expand_as(embedded)
        return torch.cat([mean, mean.new_full((len(mean), 1), over)], dim=1)


class _Player:
    """One attack: the values learnt so far, and the best graph."""

    def __init__(
        self,
        attack: RLS2V,
        context: AttackContext,
        state: SearchState,
        evaluator: FlipEvaluator,
        generator: torch.Generator,
    ) -> None:
        self.attack, self.context, self.evaluator, self.generator = attack, context, evaluator, generator
        self.start, self.x = state, functional.normalize(dense(context.graph.x).float(), dim=0)
        self.values = _Values(self.x.shape[1], attack.width, attack.rounds, generator)
        self.optimiser = torch.optim.Adam(self.values.parameters(), lr=attack.lr)
        self.memory: list[_Decision] = []

    def __call__(self, games: int) -> SearchState:
        """The best end of a game; the clean graph if every other is worse."""
        right, targets = int(self.evaluator.right.sum()), max(len(self.evaluator.right), 1)
        best, most = self.start, (-right, float(self.evaluator.losses.sum()))
        for game in range(games):
            if most[0] == 0:
                break
            chance = self.attack.explore + (1 - self.attack.explore) * max(0.0, 1 - 2 * game / games)
            played = self._play(chance)
            if not played:
                break
            flips = played[-1].after.pairs
            found = self.evaluator.outcomes(flips, torch.zeros(flips.shape[1], dtype=torch.int64), 1)
            kept = right + int(found.kept[0])
            loss = float(self.evaluator.losses.sum()) + float(found.loss[0])
            if (-kept, loss) > most:
                best, most = played[-1].after, (-kept, loss)
            self.context.report(loss / targets, kept / targets)
            self._remember(played, float(found.loss[0]) / targets)
            self._learn()
        return best

    def _play(self, chance: float) -> list[_Decision]:
        """The decisions of one game, each random with some chance."""
        state, played = self.start, []
        decisions = max(min(self.attack.horizon, state.left), math.ceil(state.left / max(state.clean.n - 1, 1)))
        for number in range(decisions):
            if state.left <= 0:
                break
            over, over_after = number / decisions, (number + 1) / decisions
            blind = bool(torch.rand((), generator=self.generator) < chance)
            chosen = self._choose(state, over, math.ceil(state.left / (decisions - number)), blind)
            if chosen is None:
                break
            after = state.flip(torch.stack([chosen[0].expand_as(chosen[1]), chosen[1]]))
            played.append(_Decision(state, over, *chosen, after, over_after))
            state = after
        return played

    @torch.no_grad()
    def _choose(self, state: SearchState, over: float, count: int, blind: bool) -> tuple[Tensor, Tensor] | None:
        """A node and up to ``count`` partners; None if nothing can be flipped."""
        n, targets = state.clean.n, self.context.targets
        if blind:
            worth = torch.rand(n, generator=self.generator)
        else:
            embedded = self.values.embed(self.x, state.adj)
            worth = self.values.nodes(embedded, over)
        for node in targets[worth[targets].argsort(descending=True, stable=True)]:
            others = torch.arange(n)[torch.arange(n) != node]
            numbers = state.space.numbers(torch.stack([node.expand_as(others), others]))
            pairs = state.allowed(numbers.sort().values)
            if not pairs.shape[1]:
                continue
            ends = torch.where(pairs[0] == node, pairs[1], pairs[0])
            value = torch.rand(n, generator=self.generator) if blind else self.values.partners(embedded, over, node)
            order = value[ends].argsort(descending=True, stable=True)
            taken = accept(state, pairs[:, order], count)
            return node, torch.where(taken[0] == node, taken[1], taken[0])
        return None

    def _remember(self, played: list[_Decision], reward: float) -> None:
        last = played[-1]
        ended = _Decision(last.before, last.over, last.node, last.partners, last.after, last.over_after, reward)
        self.memory = [*self.memory, *played[:-1], ended][-_MEMORY:]

    def _learn(self) -> None:
        """One step on some remembered decisions."""
        chosen = torch.randperm(len(self.memory), generator=self.generator)[: self.attack.batch].tolist()
        with torch.enable_grad():
            losses = [self._error(self.memory[number]) for number in chosen]
            self.optimiser.zero_grad()
            torch.stack(losses).mean().backward()
            self.optimiser.step()

    def _error(self, decision: _Decision) -> Tensor:
        """Squared difference of both values from what they should be."""
        embedded = self.values.embed(self.x, decision.before.adj)
        first = self.values.nodes(embedded, decision.over)[decision.node]
        partners = self.values.partners(embedded, decision.over, decision.node)
        with torch.no_grad():
            if decision.reward is not None:
                wanted = first.new_tensor(decision.reward)
            else:
                then = self.values.embed(self.x, decision.after.adj)
                wanted = self.values.nodes(then, decision.over_after)[self.context.targets].max()
        second = partners[decision.partners].mean()
        return (first - partners.detach().max()).square() + (second - wanted).square()
