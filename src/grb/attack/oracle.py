"""A victim that only answers: a limited number of times, and with no more than scores or labels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules import module as module_calls
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from grb.attack.losses import Loss, tanh_margin, typical_margin
from grb.errors import DataError, GRBError
from grb.graph import Graph, GraphEdit
from grb.model.base import predict
from grb.threat import Answers, Threat


class QueryError(GRBError):
    """A question beyond the number of queries that the threat model allows."""


class QueryOracle:
    """Answers questions about edited graphs, counts them, and refuses the first one too many.

    A question is an edit of the clean graph that the threat model allows: an attacker can only ask about graphs that he could
    make. An edit that it does not allow is refused and not counted. Every answer costs one query, also one that was given
    before. Several threads may ask; they are answered one after another. When the attack is over, nobody is answered any more.

    Limit, count and victim are no attributes: nothing that can be set here buys a question. Code that looks into the cells of
    closures or into frames finds the victim all the same, as anything in one Python process;
    :func:`~grb.attack.base.run_attack` therefore counts what the victim itself answers, and refuses an attack that asked it
    in another way.

    Args:
        model: The victim.
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

    __slots__ = ("_parts",)
    _parts: _Parts

    def __init__(self, model: nn.Module, graph: Graph, threat: Threat, targets: Tensor | None = None) -> None:
        object.__setattr__(self, "_parts", _answering(model, graph, deepcopy(threat), targets))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("an oracle has nothing that can be set")

    @property
    def answers(self) -> Answers:
        """What is answered: ``scores`` or ``labels``."""
        return self._parts.answers

    @property
    def used(self) -> int:
        """Number of questions that were answered."""
        return self._parts.used()

    @property
    def left(self) -> int:
        """Number of questions that will still be answered."""
        return self._parts.limit - self._parts.used()

    def __call__(self, edit: GraphEdit | None = None) -> Tensor:
        """Ask about the clean graph, or an edited one.

        Args:
            edit: Within the limits of the threat model.

        Returns:
            Logarithms of the probabilities of all original nodes, [n, classes], or their labels, [n].
        """
        try:
            return self._parts.ask(edit)
        except GRBError as error:
            raise error.with_traceback(None) from None  # its frames hold the victim

    def close(self) -> None:
        """Answer no more."""
        self._parts.close()


class _Parts(NamedTuple):
    """What an oracle can do: functions that alone hold the model and the count."""

    ask: Callable[[GraphEdit | None], Tensor]
    used: Callable[[], int]
    close: Callable[[], None]
    limit: int
    answers: Answers


def _answering(model: nn.Module, graph: Graph, threat: Threat, targets: Tensor | None) -> _Parts:
    limit, answers, lock = int(threat.queries or 0), threat.answers, threading.Lock()
    used, closed, usual = 0, False, _listeners()
    # whoever asks holds the graph too, and could change it for the time of a question
    graph, targets = graph.separate(copy=True), None if targets is None else targets.clone()

    def ask(edit: GraphEdit | None) -> Tensor:
        nonlocal used
        own = None if edit is None else taken_over(edit)  # code of the edit's maker may run here, so not under the lock
        with lock:
            if closed:
                raise QueryError("the attack is over, and with it the queries")
            if used >= limit:
                raise QueryError(f"{limit} queries are allowed, and all of them are used; stop asking")
            if _listeners() - usual:
                raise QueryError(
                    "a mode or hook of torch listens, but nobody may while the victim answers; leave it first"
                )
            asked = graph
            if own is not None:
                threat.check(graph, own, targets)
                asked = graph.apply(own)
            used += 1  # whatever the victim says to it, also nothing
            logits = predict(model, asked)[: graph.n].detach()
            return logits.argmax(1) if answers == "labels" else torch.log_softmax(logits.double(), dim=1)

    def close() -> None:
        nonlocal closed
        with lock:
            closed = True

    return _Parts(ask, lambda: used, close, limit, answers)


def taken_over(edit: GraphEdit) -> GraphEdit:
    """The edit built anew, so that neither its maker nor a subclass can change it once it is checked.

    Its arrays are copied, and must be plain tensors: a subclass of them would be told what is computed with it.
    """
    if not isinstance(edit, GraphEdit):
        raise DataError(f"the edit is a {type(edit).__name__}, but a GraphEdit is needed")
    parts: dict[str, Any] = {}
    for name in ("add", "drop", "new_x", "set_ids", "set_x"):
        part = getattr(edit, name)
        if part is not None and type(part) not in (Tensor, nn.Parameter):
            raise DataError(f"the edit's {name} is a {type(part).__name__}, but a plain tensor is needed")
        parts[name] = None if part is None else part.detach().clone()
    return GraphEdit(n=int(edit.n), cut=int(edit.cut), **parts)


def _listeners() -> set[int]:
    """Whatever in this thread or process is told what torch computes, or which modules are called."""
    hooks = module_calls._global_forward_pre_hooks, module_calls._global_forward_hooks
    modes = [*_get_current_function_mode_stack(), *_get_current_dispatch_mode_stack()]
    return {id(each) for each in (*modes, *(hook for held in hooks for hook in held.values()))}


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

    def judge(answer: Tensor) -> tuple[Tensor, Tensor]:
        if loss is None:
            right = answer == labels
            return (~right).double(), right
        return loss(answer, labels).double(), answer.argmax(1) == labels

    return labels, judge
