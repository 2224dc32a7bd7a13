"""The best edit there is, by trying every set of flips: for graphs of a dozen nodes."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from grb.attack import AttackContext
from grb.attack.losses import tanh_margin
from grb.attack.modification.gradient import Victim
from grb.attack.modification.local import evaluator_of
from grb.graph import GraphEdit
from grb.model.base import predict


def kept(context: AttackContext, edit: GraphEdit) -> int:
    """Targets that keep the label that the attack aims at, by whole forward passes."""
    model = context.surrogate()
    aimed = context.aimed_labels(predict(model, context.graph)[context.targets])
    return int((predict(model, context.graph.apply(edit))[context.targets].argmax(1) == aimed).sum())


def edit_of(context: AttackContext, pairs: Tensor) -> GraphEdit:
    there = context.graph.adj.has(pairs)
    return GraphEdit(n=context.graph.n, add=pairs[:, ~there], drop=pairs[:, there])


def fewest(context: AttackContext, budget: int) -> int:
    """Fewest targets that keep their label under any set of at most ``budget`` flips of any pairs."""
    n = context.graph.n
    pairs = torch.triu_indices(n, n, 1)
    model = context.surrogate().eval()
    victim = Victim(model, context.graph, context.targets, tanh_margin, context.true_labels)
    evaluator = evaluator_of(victim, context.graph.adj, tanh_margin)
    best = 0
    for size in range(1, budget + 1):
        sets = torch.tensor(list(itertools.combinations(range(pairs.shape[1]), size)))
        groups = torch.arange(len(sets)).repeat_interleave(size)
        found = evaluator.outcomes(pairs[:, sets.flatten()], groups, len(sets)).kept
        best = min(best, int(found.min()))
        # the shortcut is checked against whole passes where it matters
        winner = edit_of(context, pairs[:, sets[int(found.argmin())]])
        assert kept(context, winner) == int(evaluator.right.sum()) + int(found.min())
    return int(evaluator.right.sum()) + best
