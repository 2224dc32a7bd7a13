"""Models around a model of nodes: what ``+known``, ``+bounded``, ``+hash-vote`` and ``+smooth`` share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from grb._documentation import argument_docs, arguments_section
from grb.catalogue import entries, resolve
from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import Adjacency, Pattern
from grb.model.base import EvaluationView, GraphModel
from grb.names import ModelName

Exact = TypeVar("Exact", bound="Wrapper")


class Wrapper(GraphModel):
    """A model of nodes inside another one that decides what it gets to see.

    Args:
        model: The model inside.
        own: The wrapper's own arguments as JSON values, which must not be those of the model.
    """

    suffix: ClassVar[str]

    def __init__(self, model: GraphModel, **own: Any) -> None:
        super().__init__()
        if isinstance(model, Wrapper) or getattr(model, "pools", False):
            raise DataError(f"'+{self.suffix}' goes around a plain model of nodes, but got '{model.name}'")
        if hasattr(model, "graph_learner"):
            raise DataError(
                f"'{getattr(model, 'name', '')}' learns weights for the edges of its training graph, which "
                f"'+{self.suffix}' would hide from it; choose another model, for instance gcn"
            )
        if clash := sorted(own.keys() & dict(getattr(model, "params", {})).keys()):
            raise DataError(f"both {model.name} and '+{self.suffix}' take '{clash[0]}'; choose another model")
        self.model = model
        self.params = {**getattr(model, "params", {}), **own}
        self.name = f"{getattr(model, 'name', type(model).__name__)}+{self.suffix}"
        self._known: Tensor | None = None
        self._keys: Tensor | None = None

    def observe(self, view: EvaluationView) -> None:
        """Take note of which nodes are known, and of the keys of all nodes; nodes beyond them are unknown."""
        self._known, self._keys = view.known.cpu(), view.keys.cpu()

    def forget(self) -> None:
        """Forget what was observed: all nodes are known, and keys are positions."""
        self._known = self._keys = None

    def known(self, n: int) -> Tensor:
        """Which nodes of a graph are known, [n]; all of them if nothing was observed."""
        if self._known is None:
            return torch.ones(n, dtype=torch.bool)
        mask = torch.zeros(n, dtype=torch.bool)
        mask[: len(self._known)] = self._known[:n]
        return mask

    def keys(self, n: int) -> Tensor:
        """A number for every node of a graph, [n]: the evaluator's if there are any, else its position."""
        keys = torch.arange(n) + 2**62
        if self._keys is not None:
            keys[: len(self._keys)] = self._keys[:n]
        return keys

    def before_training(self, view: View, *, seed: int) -> None:
        """Let what is in front of the inner model learn from the view that it will be trained on, if there is such a thing."""
        inner = getattr(self.model, "before_training", None)
        if inner is not None:
            inner(view, seed=seed)

    def penalty(self) -> Tensor | float:
        """The inner model's own addition to the training loss, if it has one."""
        inner = getattr(self.model, "penalty", None)
        return 0.0 if inner is None else inner()


class Relaxation(nn.Module, Generic[Exact]):
    """A simplified version of a wrapped model on the same operators, for an attacker's gradients alone.

    Args:
        exact: The model that is simplified.
    """

    def __init__(self, exact: Exact) -> None:
        super().__init__()
        self.exact = exact

    def prepare(self, adj: Adjacency) -> Any:
        """What the exact model prepares."""
        return self.exact.prepare(adj)


def entries_kept(adj: Adjacency, keep: Tensor, *, symmetric: bool) -> Adjacency:
    """Only some entries of an adjacency, [entries] booleans; ``symmetric`` if both directions of an edge are kept together."""
    pattern = adj.pattern
    kept = keep.to(pattern.device)
    ends = torch.nn.functional.pad(kept.cumsum(0, dtype=pattern.indptr.dtype), (1, 0))
    values = None if adj.values is None else adj.values[kept]
    indptr = ends.index_select(0, pattern.indptr)
    return Adjacency(Pattern(indptr, pattern.indices[kept], adj.n, symmetric=symmetric and pattern.symmetric), values)


def wrapped(base: str, suffix: str) -> Callable[..., Wrapper]:
    """A maker of the model ``BASE+SUFFIX``; takes what the model takes and what the wrapper takes.

    >>> wrapped("gcn", "known")(4, 2).name
    'gcn+known'
    """
    make_model, make_outer = resolve("model", base), resolve("defense", suffix)
    own = {name: each for name, each in inspect.signature(make_outer).parameters.items() if name != "model"}

    def make(in_features: int, out_features: int, generator: Any = None, **params: Any) -> Wrapper:
        chosen = {key: params.pop(key) for key in own if key in params}
        inner: nn.Module = make_model(in_features, out_features, **params, generator=generator)
        return make_outer(inner, **chosen)

    both = {**inspect.signature(make_model).parameters, **own}
    listed = sorted(both.values(), key=lambda each: (each.kind, each.default is not inspect.Parameter.empty))
    make.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    make.version = getattr(make_model, "version", 1) + getattr(make_outer, "version", 1) - 1  # type: ignore[attr-defined]
    what = entries("defense")[suffix].summary
    docs = argument_docs(make_model) | {
        name: text for name, text in argument_docs(make_outer).items() if name != "model"
    }
    make.__doc__ = f"{ModelName.parse(base).architecture}, {what}\n\n{arguments_section(docs)}\n"
    return make
