"""Better edges for injected nodes: exchange the edges that help least for those that would help most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from grb.attack.features import FeatureRule
from grb.attack.injection.base import InjectionProblem
from grb.attack.losses import Loss, margin
from grb.attack.modification.gradient import Victim
from grb.errors import DataError
from grb.graph import GraphEdit

# pairs of injected nodes and targets that are scored in one round
CANDIDATES = 2**18
# new edges that one target gets in one round
PER_TARGET = 2
By = Literal["gradients", "margins"]


@dataclass(frozen=True, eq=False)
class Judged:
    """An edit with the fraction of targets that keep their label under it, and the value that the attack raises."""

    edit: GraphEdit
    accuracy: float
    value: float

    def better_than(self, other: Judged) -> bool:
        """Fewer labels are kept, or as many at a higher value."""
        return (self.accuracy, -self.value) < (other.accuracy, -other.value)


def judge(problem: InjectionProblem, edit: GraphEdit, loss: Loss, homophily_weight: float = 0.0) -> Judged:
    """Measure an edit on the victim."""
    assert edit.new_x is not None
    with torch.no_grad():
        value, accuracy = problem.objective(edit, loss, homophily_weight)(edit.new_x)
    return Judged(edit, accuracy, float(value))


def rewire(
    problem: InjectionProblem,
    edit: GraphEdit,
    *,
    rounds: int,
    features: FeatureRule,
    loss: Loss,
    share: float,
    generator: torch.Generator,
    by: By = "gradients",
    homophily_weight: float = 0.0,
) -> Judged:
    """Exchange edges and optimise the features again, round after round.

    A round exchanges at most ``share`` of the edges. A round that does not lower the accuracy (or, at the same accuracy,
    raise the loss) is undone, and the next one exchanges half as many.

    Args:
        problem: The context and what its wirings share.
        edit: Where to begin: injected nodes with edges and features.
        rounds: Number of rounds at most.
        features: Optimiser of the features after every exchange, from those of the round before.
        loss: What to raise, per target.
        share: Fraction of the edges that a round exchanges at first.
        generator: The only source of randomness.
        by: What says which edges to exchange, ``gradients`` or ``margins``.
        homophily_weight: As in :func:`~grb.attack.injection.base.inject`.
    """
    best = judge(problem, edit, loss, homophily_weight)
    limits = problem.context.injection.feature_range
    for _ in range(rounds):
        assert best.edit.new_x is not None
        swaps = int(share * best.edit.add.shape[1])
        if swaps < 1:
            break
        pairs = exchanged(problem, best.edit, loss, swaps, generator, by)
        if pairs is None:
            break
        wired = GraphEdit(n=edit.n, add=pairs, new_x=best.edit.new_x)
        objective = problem.objective(wired, loss, homophily_weight)
        x = features(objective, best.edit.new_x, limits, generator)
        found = judge(problem, GraphEdit(n=edit.n, add=pairs, new_x=x.detach()), loss, homophily_weight)
        if found.better_than(best):
            best = found
        else:
            share /= 2
    return best


def exchanged(
    problem: InjectionProblem, edit: GraphEdit, loss: Loss, swaps: int, generator: torch.Generator, by: By = "gradients"
) -> Tensor | None:
    """The edges after the most promising exchanges, [2, e]; None if no exchange promises anything.

    Where there are more pairs of injected nodes and targets than :data:`CANDIDATES`, a random part of the targets takes
    part in the round.
    """
    n, m, targets = edit.n, edit.num_new, problem.context.targets
    positions = torch.arange(len(targets))
    if m * len(targets) > CANDIDATES:
        positions = torch.randperm(len(targets), generator=generator)[: max(2, CANDIDATES // m)].sort().values
    numbers = torch.full((n + m,), -1, dtype=torch.int64)
    numbers[targets[positions]] = torch.arange(len(positions))
    low, high = edit.add.min(0).values, edit.add.max(0).values
    inside = numbers[low] >= 0
    joined = torch.zeros(m, len(positions), dtype=torch.bool)
    joined[high[inside] - n, numbers[low[inside]]] = True
    scores = edge_scores(problem, edit, loss, positions, by)
    after = exchange(joined, scores, swaps)
    if torch.equal(after, joined):
        return None
    node, position = after.nonzero().T
    changed = torch.stack([targets[positions[position]], node + n])
    return torch.cat([torch.stack([low, high])[:, ~inside], changed], dim=1)


def edge_scores(
    problem: InjectionProblem, edit: GraphEdit, loss: Loss, positions: Tensor, by: By = "gradients"
) -> Tensor:
    """What an edge is worth, for every injected node and the targets at some positions, [m, p].

    The gradient of the loss with respect to the weight of the edge, where that is wanted and the model gives one;
    :func:`scores_by_margin` elsewhere.
    """
    context = problem.context
    targets = context.targets[positions]
    if by == "gradients":
        attacked = context.graph.apply(edit)
        try:
            victim = Victim(problem.gradient_model, attacked, context.targets, loss, problem.labels)
            return victim.gradient(attacked.adj).block(torch.arange(edit.n, attacked.n), targets).detach()
        except DataError:
            context.note("edges by margins: the model gives no gradients for edges")
    assert edit.new_x is not None
    with torch.no_grad():
        logits = problem.forward(edit)(edit.new_x)
    return scores_by_margin(edit, targets, margin(logits, problem.labels).neg()[positions], problem.labels[positions])


def scores_by_margin(edit: GraphEdit, targets: Tensor, margins: Tensor, labels: Tensor) -> Tensor:
    r"""Scores without gradients: targets that are nearly lost first, those far beyond the boundary last, [m, p].

    A target with margin m scores :math:`1 / (1 + m)` if it keeps its label and :math:`m` if not; an injected node scores
    one more for targets of the label that most of its own have, because its features are made for them.

    Args:
        edit: Injected nodes with their edges.
        targets: Ids, [p].
        margins: Logit of the label minus the largest other one, [p].
        labels: [p].
    """
    score = torch.where(margins > 0, 1 / (1 + margins.clamp_min(0)), margins.clamp(-1, 0))
    classes = int(labels.max()) + 1
    own = torch.full((edit.n + edit.num_new,), -1, dtype=torch.int64)
    own[targets] = labels
    low, high = edit.add.min(0).values, edit.add.max(0).values
    known = own[low] >= 0
    keys = (high[known] - edit.n) * classes + own[low[known]]
    votes = torch.bincount(keys, minlength=edit.num_new * classes).view(edit.num_new, classes)
    return score + (votes.argmax(1).unsqueeze(1) == labels)


def exchange(joined: Tensor, scores: Tensor, swaps: int, per_target: int = PER_TARGET) -> Tensor:
    """Give up edges with low scores for absent ones with high scores; every row keeps its number of edges.

    In every row the k-th worst edge is paired with the k-th best absent one. Of all these exchanges those that gain most
    are made, at most ``swaps`` in total and ``per_target`` new edges for each target.

    Args:
        joined: Which injected node has an edge to which target, [m, t] booleans.
        scores: What an edge is worth, [m, t].
        swaps: Exchanges at most.
        per_target: New edges of one target at most.

    >>> joined = torch.tensor([[True, False, False]])
    >>> exchange(joined, torch.tensor([[1.0, 3.0, 2.0]]), 1)
    tensor([[False,  True, False]])
    """
    width = min(int(joined.sum(1).max()), int((~joined).sum(1).max()), swaps) if joined.numel() else 0
    if not width:
        return joined
    lost, old = scores.masked_fill(~joined, torch.inf).topk(width, dim=1, largest=False)
    won, new = scores.masked_fill(joined, -torch.inf).topk(width, dim=1)
    gain, old, new = (won - lost).flatten(), old.flatten(), new.flatten()
    rows = torch.arange(len(joined)).repeat_interleave(width)
    best = torch.argsort(gain, descending=True, stable=True)
    best = best[gain[best] > 0]
    best = best[_occurrence(new[best]) < per_target][:swaps]
    after = joined.clone()
    after[rows[best], old[best]] = False
    after[rows[best], new[best]] = True
    return after


def _occurrence(items: Tensor) -> Tensor:
    """How often an item stood in the list before, [k]."""
    order = torch.argsort(items, stable=True)
    counts = torch.bincount(items)
    starts = counts.cumsum(0) - counts
    seen = torch.empty_like(items)
    seen[order] = torch.arange(len(items)) - starts[items[order]]
    return seen
