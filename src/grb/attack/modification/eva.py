"""EvA: an evolutionary search over sets of flips that needs no gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.local import FlipEvaluator, note_cost
from grb.attack.modification.pairs import contains, first_places
from grb.attack.modification.queried import has_too_few, search_evaluator, still_right
from grb.attack.modification.selectors import accept
from grb.attack.setting_checks import at_least, fractions
from grb.graph import GraphEdit

# no flip, as the number of a pair
NONE = -1


@dataclass(frozen=True, kw_only=True)
class EvA(Limits):
    r"""A genetic algorithm whose fitness is the accuracy itself, and whose mutations push on targets not yet lost.

    An individual is a list of :math:`\Delta` pairs. In every generation two parents, each the best of a tournament, are
    crossed at several cut points, and every gene of the child is replaced with a small probability by a pair with one end
    among some targets that the best individual has not taken their label yet; parents and children compete. Pairs that stand
    twice in an individual count once and waste budget. Where nodes have limits of their own, an individual means the flips
    that fit, in the order of its genes. With an oracle (``knowledge="query"``) every individual is one query, and there are as
    many generations as the queries allow.

    Args:
        population: Number of individuals; the authors take 512 on Cora_ML, the default is for a CPU.
        steps: Number of generations; the authors take 1024.
        tournament: Individuals of which the best becomes a parent.
        cuts: Cut points of a crossover.
        mutation_rate: Probability that a gene is replaced.
        focus: Targets not yet lost that mutations of one generation may aim at.
        targeted: False gives mutations anywhere in the search space (Dai et al. 2018).

    Differs from the authors' code: the first pair of the graph can be used too, and the genes that a limit of a node rules
    out are the last ones instead of random ones.

    References:
        Akhondzadeh et al., *EvA: Evolutionary Attacks on Graphs*, ICLR 2026.
        Dai et al., *Adversarial Attack on Graph Structured Data*, ICML 2018.
    """

    population: int = 64
    steps: int = 100
    tournament: int = 2
    cuts: int = 30
    mutation_rate: float = 0.02
    focus: int = 20
    targeted: bool = True
    version = 1

    def __post_init__(self) -> None:
        at_least(1, population=self.population, steps=self.steps, tournament=self.tournament, focus=self.focus)
        at_least(0, cuts=self.cuts)
        fractions(mutation_rate=self.mutation_rate)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Evolve lists of flips and return the best."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0 or has_too_few(context):
            return state.edit
        search = _Evolution(self, context, state, generator)
        edit = finished(context, search())
        note_cost(context, search.evaluator)
        return edit


class _Evolution:
    def __init__(self, attack: EvA, context: AttackContext, state: SearchState, generator: torch.Generator) -> None:
        self.attack, self.context, self.state, self.generator = attack, context, state, generator
        self.evaluator: FlipEvaluator = search_evaluator(context)
        self.genes = min(state.left, state.space.count)
        self.size = attack.population
        if context.oracle is not None:  # so that there are some generations
            self.size = max(1, min(attack.population, context.oracle.left // 4))

    def __call__(self) -> SearchState:
        people = self._random((self.size, self.genes), self.context.targets)
        fitness = self._fitness(people)
        for _ in range(self._generations()):
            order = torch.argsort(fitness, stable=True)
            people, fitness = people[order], fitness[order]
            children = self._mutated(self._crossed(people, fitness), people[0])
            together, values = torch.cat([people, children]), torch.cat([fitness, self._fitness(children)])
            best = torch.argsort(values, stable=True)[: self.size]
            people, fitness = together[best], values[best]
            self.context.report(-float(fitness[0]), float(fitness[0]))
        return self.state.flip(self._flips(people[0]))

    def _generations(self) -> int:
        """As many as asked for, or as the queries that are left allow: one for each child, one for the best of all."""
        oracle, attack = self.context.oracle, self.attack
        return attack.steps if oracle is None else oracle.left // (self.size + attack.targeted)

    def _random(self, shape: tuple[int, int], ends: Tensor) -> Tensor:
        """Pairs with one end among some nodes and the other anywhere; one that may not be flipped is none."""
        count = shape[0] * shape[1]
        if not self.state.may_add:
            edges = self.state.edges if self.state.may_drop else self.state.edges[:0]
            chosen = torch.randint(max(len(edges), 1), shape, generator=self.generator)
            return edges[chosen] if len(edges) else torch.full(shape, NONE)
        first = ends[torch.randint(len(ends), (count,), generator=self.generator)]
        second = torch.randint(self.state.clean.n, (count,), generator=self.generator)
        numbers = torch.full((count,), NONE)
        real = first != second
        numbers[real] = self.state.space.numbers(torch.stack([first, second])[:, real])
        kind = contains(self.state.edges, numbers)
        allowed = (kind & self.state.may_drop) | (~kind & self.state.may_add)
        return torch.where(allowed, numbers, NONE).view(shape)

    def _crossed(self, people: Tensor, fitness: Tensor) -> Tensor:
        """Children of two parents each, with genes of either between two cuts, [population, genes]."""
        size, genes = people.shape
        rivals = torch.randint(size, (2, size, self.attack.tournament), generator=self.generator)
        winners = rivals.gather(2, fitness[rivals].argmin(2, keepdim=True)).squeeze(2)
        cuts = torch.randint(genes + 1, (size, self.attack.cuts), generator=self.generator)
        passed = (cuts.unsqueeze(2) <= torch.arange(genes)).sum(1)
        return torch.where(passed % 2 == 0, people[winners[0]], people[winners[1]])

    def _mutated(self, people: Tensor, best: Tensor) -> Tensor:
        ends = self.context.targets
        if self.attack.targeted:
            standing = ends[self._standing(best)]
            chosen = torch.randperm(len(standing), generator=self.generator)[: self.attack.focus]
            ends = standing[chosen] if len(standing) else ends
        replaced = torch.rand(people.shape, generator=self.generator) < self.attack.mutation_rate
        return torch.where(replaced, self._random((people.shape[0], people.shape[1]), ends), people)

    def _standing(self, individual: Tensor) -> Tensor:
        """Which targets keep their label under one individual, [t]."""
        return still_right(self.evaluator, self._flips(individual))

    def _fitness(self, people: Tensor) -> Tensor:
        """Fraction of targets that keep their label, lower is better, [population]."""
        flips = [self._flips(individual) for individual in people]
        sizes = torch.tensor([own.shape[1] for own in flips])
        groups = torch.arange(len(flips)).repeat_interleave(sizes)
        found = self.evaluator.outcomes(torch.cat(flips, dim=1), groups, len(flips))
        return (found.kept + self.evaluator.right.sum()).double() / max(len(self.evaluator.right), 1)

    def _flips(self, individual: Tensor) -> Tensor:
        """Distinct pairs that may be flipped together, [2, p]."""
        numbers = individual[individual != NONE]
        if self.state.room is None and self.state.spare is None:
            return self.state.space.pairs(numbers.unique())
        pairs = self.state.space.pairs(numbers[first_places(numbers)])
        return accept(self.state, pairs, pairs.shape[1])
