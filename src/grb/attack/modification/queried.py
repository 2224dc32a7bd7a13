"""Searches over flips that see outcomes alone: of a model at hand, or as the answers of an oracle."""

from __future__ import annotations

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.modification.exchange import smooth_count
from grb.attack.modification.local import FlipEvaluator, Outcomes, evaluator_of, flipped
from grb.attack.modification.scores import victim_of
from grb.attack.oracle import QueryOracle, judge_of
from grb.errors import DataError
from grb.graph import GraphEdit


def has_too_few(context: AttackContext) -> bool:
    """Whether there is an oracle that answers less than twice, which no search learns from; leaves a remark if so."""
    few = context.oracle is not None and context.oracle.left < 2
    if few and context.oracle is not None:
        context.note("{queries} queries are too few for a search", queries=context.oracle.left)
    return few


def search_evaluator(context: AttackContext) -> FlipEvaluator:
    """What alternatives do to the targets, counted in lost targets first: from the oracle if there is one, else the model."""
    if context.oracle is not None:
        return QueryEvaluator(context, context.oracle)
    victim = victim_of(context, gradients=False)
    clean = victim.logits(context.graph.adj)[victim.targets]
    return evaluator_of(victim, context.graph.adj, smooth_count(victim, clean))


def still_right(evaluator: FlipEvaluator, pairs: Tensor) -> Tensor:
    """Which targets keep their label if some pairs of the current graph are flipped, [t]; one query of an oracle."""
    if isinstance(evaluator, QueryEvaluator):
        return evaluator.ask(pairs)[1]
    victim = getattr(evaluator, "victim", None)
    if victim is None:
        raise DataError(f"a {type(evaluator).__name__} has no victim to ask; give an evaluator of grb")
    logits = victim.logits(flipped(evaluator.adj, pairs))[victim.targets]
    right: Tensor = logits.argmax(1) == victim.labels
    return right


class QueryEvaluator:
    """Outcomes of flips as an oracle tells them; every graph that is looked at is one query.

    The first query is about the clean graph: what it answers are the labels that the attack aims at.

    Args:
        context: With the targets.
        oracle: What may be asked.
    """

    local = False
    cost = 1.0

    def __init__(self, context: AttackContext, oracle: QueryOracle) -> None:
        self.oracle, self.graph, self.targets = oracle, context.graph, context.targets
        self.adj = context.graph.adj
        self.flips = torch.empty(2, 0, dtype=torch.int64)
        self.passes = 0
        self.labels, self._judge = judge_of(self._answer(GraphEdit(n=self.graph.n)))
        self.losses, self.right = self.ask(self.flips, answer=self._last)
        self._known: tuple[bytes, Tensor, Tensor] | None = None

    @property
    def work(self) -> float:
        """Cost so far, in forward passes of the whole graph: one for every query."""
        return float(self.passes)

    def _answer(self, edit: GraphEdit) -> Tensor:
        self.passes += 1
        self._last = self.oracle(edit)[self.targets]
        return self._last

    def ask(self, pairs: Tensor, answer: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Losses and kept labels of the targets after some more flips, [t] each."""
        return self._judge(self._answer(self._edit(pairs)) if answer is None else answer)

    def outcomes(self, pairs: Tensor, groups: Tensor, count: int) -> Outcomes:
        """What some alternatives would do to the targets, see :class:`~grb.attack.modification.local.FlipEvaluator`."""
        found = Outcomes(torch.zeros(count, dtype=torch.int64), torch.zeros(count, dtype=torch.float64))
        for number, own in enumerate(pairs.split(torch.bincount(groups, minlength=count).tolist(), dim=1)):
            losses, right = self.ask(own)
            self._known = (_key(own), losses, right)
            found.kept[number] = right.sum() - self.right.sum()
            found.loss[number] = losses.sum() - self.losses.sum()
        return found

    def flip(self, pairs: Tensor) -> None:
        """Make some flips part of the current graph; those that were looked at last need no new query."""
        known = self._known
        if known is None or known[0] != _key(pairs):
            known = (b"", *self.ask(pairs))
        self.losses, self.right = known[1], known[2]
        self.flips, self._known = self._all(pairs), None
        self.adj = flipped(self.adj, pairs)

    def _all(self, pairs: Tensor) -> Tensor:
        """The flips so far and some more; a pair that is flipped twice is as it was."""
        together = torch.cat([self.flips, pairs], dim=1)
        keys, counts = torch.unique(together.min(0).values * self.graph.n + together.max(0).values, return_counts=True)
        keys = keys[counts % 2 == 1]
        return torch.stack([keys // self.graph.n, keys % self.graph.n])

    def _edit(self, pairs: Tensor) -> GraphEdit:
        flips = self._all(pairs)
        present = self.graph.adj.has(flips)
        return GraphEdit(n=self.graph.n, add=flips[:, ~present], drop=flips[:, present])


def _key(pairs: Tensor) -> bytes:
    return pairs.contiguous().numpy().tobytes()
