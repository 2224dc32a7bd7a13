"""A victim that only answers: so many times, and with no more than scores or labels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from grb.attack.losses import Loss, tanh_margin, typical_margin
from grb.errors import GRBError
from grb.graph import Graph, GraphEdit
from grb.model.base import predict
from grb.threat import Answers, Threat


class QueryError(GRBError):
    """A question beyond the number of queries that the threat model allows."""


class QueryOracle:
    """Answers questions about edited graphs, counts them, and refuses the first one too many.

    A question is an edit of the clean graph that the threat model allows: an attacker can only ask about graphs that he could
    make. An edit that it does not allow is refused and not counted. Every answer costs one query, also one that was given
    before. Several threads may ask; they are answered one after another.

    Args:
        model: The victim; there is no way from here to its weights.
        graph: The clean graph.
        threat: Limits of the edits, of the number of ``queries`` and of the ``answers``.
        targets: Ids of the attacked nodes, [t], as far as limits depend on them.

    >>> from grb.graph import adjacency_from_edges
    >>> from grb.model.torch import GCN
    >>> from grb.threat import Modification
    >>> graph = Graph(adjacency_from_edges([[0], [1]], 2)[0], torch.ones(2, 3))
    >>> oracle = QueryOracle(GCN(3, 2, hidden_features=[4]), graph, Modification(edges=1, queries=1, answers="labels"))
    >>> oracle().shape, oracle.used, oracle.left
    (torch.Size([2]), 1, 0)
    """

    def __init__(self, model: nn.Module, graph: Graph, threat: Threat, targets: Tensor | None = None) -> None:
        self._answer = _answering(model, graph, threat, targets)
        self._limit, self._answers = int(threat.queries or 0), threat.answers
        self._used = 0
        self._lock = threading.Lock()

    @property
    def answers(self) -> Answers:
        """What is answered: ``scores`` or ``labels``."""
        return self._answers

    @property
    def used(self) -> int:
        """Number of questions that were answered."""
        return self._used

    @property
    def left(self) -> int:
        """Number of questions that will still be answered."""
        return self._limit - self._used

    def __call__(self, edit: GraphEdit | None = None) -> Tensor:
        """Ask about the clean graph, or an edited one.

        Args:
            edit: Within the limits of the threat model.

        Returns:
            Logarithms of the probabilities of all original nodes, [n, classes], or their labels, [n].
        """
        with self._lock:
            if self._used >= self._limit:
                raise QueryError(f"{self._limit} queries are allowed, and all of them are used; stop asking")
            found = self._answer(edit)
            self._used += 1
            return found


def _answering(
    model: nn.Module, graph: Graph, threat: Threat, targets: Tensor | None
) -> Callable[[GraphEdit | None], Tensor]:
    """A function that alone holds the model."""

    def answer(edit: GraphEdit | None) -> Tensor:
        asked = graph
        if edit is not None:
            threat.check(graph, edit, targets)
            asked = graph.apply(edit)
        logits = predict(model, asked)[: graph.n].detach()
        return logits.argmax(1) if threat.answers == "labels" else torch.log_softmax(logits.double(), dim=1)

    return answer


def oracle_of(context: Any, queries: int) -> QueryOracle:
    """The oracle of a context; where there is none but a model, one of that model.

    Args:
        context: What an attack gets.
        queries: Number of queries where the context has no oracle.
    """
    if context.oracle is not None:
        found: QueryOracle = context.oracle
        return found
    return QueryOracle(context.surrogate(), context.graph, replace(context.threat, queries=queries), context.targets)


Judge = Callable[[Tensor], tuple[Tensor, Tensor]]


def judge_of(clean: Tensor) -> tuple[Tensor, Judge]:
    """The labels that answers on the clean graph give the targets, and a judge of other answers: losses and kept labels.

    Args:
        clean: Scores [t, c] or labels [t] of the targets on the clean graph.
    """
    labels = clean if clean.dim() == 1 else clean.argmax(1)
    loss: Loss | None = None if clean.dim() == 1 else partial(tanh_margin, scale=typical_margin(clean, labels))

    def judge(told: Tensor) -> tuple[Tensor, Tensor]:
        if loss is None:
            right = told == labels
            return (~right).double(), right
        return loss(told, labels).double(), told.argmax(1) == labels

    return labels, judge
