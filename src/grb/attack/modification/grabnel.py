"""GRABNEL: Bayesian optimisation of edge flips, for attackers who may only ask about whole graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.local import FlipEvaluator, note_cost
from grb.attack.modification.pairs import first_places, without
from grb.attack.modification.queried import has_too_few, search_evaluator
from grb.attack.modification.random_search import drawn_flips
from grb.attack.modification.selectors import accept
from grb.attack.modification.sparse_regression import SparseRegression, expected_improvement
from grb.attack.modification.weisfeiler_lehman import WLFeatures, wl_features
from grb.attack.setting_checks import at_least, fractions
from grb.graph import GraphEdit

# the best alternatives so far that are changed to get new ones
_PARENTS = 5
# the latest answers that the surrogate is fitted to
_OBSERVED = 128
# alternatives that were looked at: kept targets, negated, and the loss; then what they flip
Asked = list[tuple[tuple[int, float], Tensor]]


@dataclass(frozen=True, kw_only=True)
class GRABNEL(Limits):
    r"""Learn from answers which subtrees a victim minds, and ask next about the flip that promises most.

    The flips are made in stages of one flip each (of several where queries are few), and the queries are shared out among
    the stages. A stage asks about some random flips first. Then a sparse Bayesian linear regression
    (:class:`~grb.attack.modification.sparse_regression.SparseRegression`) of the loss on Weisfeiler-Lehman features
    (:func:`~grb.attack.modification.weisfeiler_lehman.wl_features`) of all graphs asked about so far gives every
    alternative a mean :math:`\mu` and a deviation :math:`\sigma`, and the one with the largest expected improvement

    .. math:: \mathrm{EI} = \sigma \bigl( z \Phi(z) + \varphi(z) \bigr), \qquad z = (\mu - y^*) / \sigma

    is asked about, until the stage's queries are used. Its best flip stays. The attack ends when no target keeps its label, and
    returns the best graph that it asked about. The loss is the mean over the targets: for the graph classifiers that it is
    made for, the margin of the graph.

    Args:
        steps: Number of graphs to look at where there is no limit of queries.
        initial: Random flips that a stage begins with; at most half of its queries.
        rounds: Rounds of Weisfeiler-Lehman refinement.
        candidates: Alternatives that an acquisition looks at; all there are, if they are not more.
        mutated: Fraction of them that are changes of the best flips so far; the others are random.

    Differs from the authors' code: where a graph has few pairs all of them are candidates, so that nothing has to be evolved;
    the regression keeps what it learnt in earlier stages, up to the last 128 answers; node features that are no types are
    averaged after propagation beside the counts of labels; a pair is flipped at most once.

    References:
        Wan et al., *Adversarial Attacks on Graph Classification via Bayesian Optimisation*, NeurIPS 2021.
    """

    steps: int = 200
    initial: int = 10
    rounds: int = 2
    candidates: int = 400
    mutated: float = 0.5
    version = 1

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps, initial=self.initial, candidates=self.candidates)
        at_least(0, rounds=self.rounds)
        fractions(mutated=self.mutated)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip, stage by stage, what the surrogate expects most of."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0 or has_too_few(context):
            return state.edit
        evaluator = search_evaluator(context)
        queries = self.steps if context.oracle is None else context.oracle.left
        search = _Optimisation(self, context, state, evaluator, generator)
        edit = finished(context, search(queries))
        note_cost(context, evaluator)
        return edit


@dataclass(frozen=True, eq=False)
class _Pool:
    """Alternatives to one graph: the pairs that each of them flips, and its features."""

    pairs: Tensor
    groups: Tensor
    features: WLFeatures

    def flips(self, number: int) -> Tensor:
        """The pairs of one alternative, [2, k]."""
        return self.pairs[:, self.groups == number]


class _Optimisation:
    """One attack: what was answered so far, and the flips that stay."""

    def __init__(
        self,
        attack: GRABNEL,
        context: AttackContext,
        state: SearchState,
        evaluator: FlipEvaluator,
        generator: torch.Generator,
    ) -> None:
        self.attack, self.context, self.evaluator, self.generator = attack, context, evaluator, generator
        self.state = state
        self.kept, self.loss = int(evaluator.right.sum()), float(evaluator.losses.sum())
        clean = self._features(state.pairs, torch.empty(0, dtype=torch.int64), 1)
        self.labels, self.means, self.losses = clean.labels, clean.means, [self.loss]

    def __call__(self, queries: int) -> SearchState:
        """The best graph that was looked at; the clean one if every other is worse."""
        best, most = self.state, (-self.kept, self.loss)
        while queries > 0 and self.state.left > 0 and most[0] < 0:
            stages = max(1, min(self.state.left, queries // 2))
            asked = self._stage(math.ceil(queries / stages), math.ceil(self.state.left / stages))
            if not asked:
                break
            queries -= len(asked)
            found, chosen = max(asked, key=_result)
            self.state = self.state.flip(chosen)
            if found > most:
                best, most = self.state, found
        return best

    def _stage(self, queries: int, size: int) -> Asked:
        """Look at alternatives of ``size`` flips each: what they leave, and what they flip."""
        asked: Asked = []
        initial = min(self.attack.initial, max(1, queries // 2))
        every = self._every() if size == 1 and self.state.space.count <= self.attack.candidates else None
        open_ones = torch.ones(0 if every is None else len(every.features.labels), dtype=torch.bool)
        while len(asked) < queries and (every is None or bool(open_ones.any())):
            pool = every if every is not None else self._drawn(asked, size)
            if pool is None:
                break
            promise = self._promise(
                pool, max(map(_result, asked))[1] if asked else self.loss, blind=len(asked) < initial
            )
            if every is not None:
                promise = torch.where(open_ones, promise, -math.inf)
            number = int(promise.argmax())
            if every is not None:
                open_ones[number] = False
            asked.append((self._ask(pool, number), pool.flips(number)))
            if asked[-1][0][0] == 0:  # no target keeps its label
                break
        return asked

    def _promise(self, pool: _Pool, best: float, blind: bool) -> Tensor:
        """How much is expected of every alternative; random numbers while nothing is known, [c]."""
        chance = torch.rand(len(pool.features.labels), generator=self.generator, dtype=torch.float64)
        if blind:
            return chance
        told = WLFeatures(self.labels[-_OBSERVED:], self.means[-_OBSERVED:])
        known = told.labels.unique()
        seen, asked = (torch.cat([each.counts(known), each.means], dim=1) for each in (told, pool.features))
        varied = (seen != seen[:1]).any(0)
        losses = torch.tensor(self.losses[-_OBSERVED:], dtype=torch.float64)
        if not varied.any() or bool((losses == losses[0]).all()):
            return chance
        regression = SparseRegression.fitted(seen[:, varied], losses)
        promise = expected_improvement(*regression.predict(asked[:, varied]), best)
        return promise + 1e-12 * chance  # alternatives that look the same are equally likely

    def _ask(self, pool: _Pool, number: int) -> tuple[int, float]:
        """What one alternative leaves: targets that keep their label, negated, and the loss; higher is better."""
        flips = torch.cat([self.state.pairs, pool.flips(number)], dim=1)
        found = self.evaluator.outcomes(flips, torch.zeros(flips.shape[1], dtype=torch.int64), 1)
        kept, loss = self.kept + int(found.kept[0]), self.loss + float(found.loss[0])
        self.labels = torch.cat([self.labels, pool.features.labels[number : number + 1]])
        self.means = torch.cat([self.means, pool.features.means[number : number + 1]])
        self.losses.append(loss)
        targets = max(len(self.evaluator.right), 1)
        self.context.report(loss / targets, kept / targets)
        return -kept, loss

    def _features(self, pairs: Tensor, groups: Tensor, count: int) -> WLFeatures:
        """Features of alternatives to the graph with the flips that stay."""
        return wl_features(self.state.adj, self.context.graph.x, pairs, groups, count, self.attack.rounds)

    def _pool(self, pairs: Tensor, groups: Tensor) -> _Pool | None:
        if not len(groups):
            return None
        return _Pool(pairs, groups, self._features(pairs, groups, int(groups.max()) + 1))

    def _every(self) -> _Pool | None:
        """All single flips that are allowed."""
        pairs = self.state.allowed(torch.arange(self.state.space.count))
        return self._pool(pairs, torch.arange(pairs.shape[1]))

    def _drawn(self, asked: Asked, size: int) -> _Pool | None:
        """Random alternatives, and changes of one flip of the best so far."""
        best = [flips for _, flips in sorted(asked, key=_result, reverse=True)[:_PARENTS]]
        if size == 1:
            pairs = self._single(best, [flips for _, flips in asked])
            return self._pool(pairs, torch.arange(pairs.shape[1]))
        count = max(1, self.attack.candidates // size)
        changed = round(count * self.attack.mutated) if best else 0
        made = [self._mutated(best[number % len(best)], size) for number in range(changed)]
        made += [drawn_flips(self.state, self.context.targets, size, self.generator) for _ in range(count - changed)]
        made = [flips for flips in made if flips.shape[1]]
        sizes = torch.tensor([flips.shape[1] for flips in made], dtype=torch.int64)
        return self._pool(torch.cat(made, dim=1), torch.arange(len(made)).repeat_interleave(sizes)) if made else None

    def _single(self, best: list[Tensor], asked: list[Tensor]) -> Tensor:
        """Pairs that may be flipped and were not asked about, some of them with an end of the best ones, [2, c]."""
        state, space = self.state, self.state.space
        changed = round(self.attack.candidates * self.attack.mutated) if best else 0
        numbers = space.draw(self.attack.candidates - changed, self.generator)
        if best:
            parents = torch.cat(best, dim=1).flatten()
            ends = parents[torch.isin(parents, self.context.targets)]
            first = ends[torch.randint(len(ends), (changed,), generator=self.generator)]
            second = torch.randint(state.clean.n, (changed,), generator=self.generator)
            pairs = torch.stack([first, second])[:, first != second]
            numbers = torch.cat([numbers, space.numbers(pairs)])
        numbers = numbers.unique()
        if asked:
            numbers = without(numbers, space.numbers(torch.cat(asked, dim=1)))
        return state.allowed(numbers)

    def _mutated(self, flips: Tensor, size: int) -> Tensor:
        """One flip exchanged for another one at one of its ends."""
        gone = int(torch.randint(flips.shape[1], (), generator=self.generator))
        ends = flips[:, gone]
        new = drawn_flips(self.state, ends[torch.isin(ends, self.context.targets)], 1, self.generator)
        rest = torch.cat([flips[:, :gone], flips[:, gone + 1 :], new], dim=1)
        return accept(self.state, rest[:, first_places(self.state.space.numbers(rest))], size)


def _result(asked: tuple[tuple[int, float], Tensor]) -> tuple[int, float]:
    return asked[0]
