"""A model behind a preprocess part: the part sees every graph before the model does, in training and evaluation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from grb._documentation import argument_docs, arguments_section
from grb.catalogue import entries, resolve
from grb.dataset.view import View
from grb.defense.preprocess import Preprocess, Pruning
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph
from grb.model.base import EdgeMask, GraphModel, prepare, relaxations
from grb.names import SUFFIXES

SIZES = ("in_features", "out_features")


@dataclass(eq=False)
class Edges:
    """The edges of a graph as they are, and what the part and the model made of them with the last features."""

    adj: Adjacency
    _last: tuple[Tensor | CSR, tuple[int, ...], Graph, Any] | None = field(default=None, repr=False)

    def seen(self, part: Preprocess, model: nn.Module, x: Tensor | CSR) -> tuple[Graph, Any]:
        """The preprocessed graph and the model's operator of it; made once while the features stay the same."""
        constants = [value for value in (x, self.adj.values) if isinstance(value, Tensor)]
        versions = tuple(value._version for value in constants)
        if self._last is not None and self._last[0] is x and self._last[1] == versions:
            return self._last[2:]
        graph = part(Graph(self.adj, x))
        made = graph, prepare(model, graph.adj)
        learnt = any(value.requires_grad for value in constants)
        self._last = None if learnt else (x, versions, *made)
        return made


class Defended(GraphModel):
    """A model that sees graphs only through a preprocess part.

    The part decides from features and edges, so ``prepare`` keeps the edges as they are and ``forward`` makes the
    model's operator when it knows the features; it is remembered while these stay the same object, as in training.
    Gradients are those of the model on the preprocessed graph: exact wherever no decision is about to change. They
    are zero for an injected node all of whose edges are cut, as is one with zero features, the start of FGSM; start
    elsewhere (PGD), or attack :meth:`relaxed`.

    Args:
        model: Any model of grb.
        part: Function from a graph to a graph, see :mod:`grb.defense.preprocess`.
        name: Name of the part in the catalogue; a part that is not in it works, but the model cannot be saved.
    """

    def __init__(self, model: GraphModel, part: Preprocess, name: str | None = None) -> None:
        super().__init__()
        self.model, self.part = model, part
        own = _plain_values(part)
        if hasattr(model, "graph_learner"):
            raise DataError(
                f"'{model.name}' learns weights for the edges of its training graph, so nothing can stand in front of it; "
                "choose another model, for instance gcn"
            )
        if clash := sorted(own.keys() & model.params.keys()):
            raise DataError(
                f"both {model.name} and its preprocess part take '{clash[0]}'; put the part on another model"
            )
        if model.name == "mlp" and _cuts(part):
            raise DataError("an mlp uses no edges, so cutting some changes nothing; choose a model that uses them")
        self.params = {**model.params, **own}
        self.name = f"{model.name}-{name or _name_of(part)}"

    def prepare(self, adj: Adjacency) -> Edges:
        """The edges as they are; they are preprocessed once the features are known."""
        return Edges(adj)

    def forward(self, x: Tensor | CSR, op: Edges) -> Tensor:
        """Logits of every node, [n, classes]."""
        graph, inner = op.seen(self.part, self.model, x)
        logits: Tensor = self.model(graph.x, inner)
        return logits

    def penalty(self) -> Tensor | float:
        """The model's own addition to the training loss, if it has one."""
        inner = getattr(self.model, "penalty", None)
        return 0.0 if inner is None else inner()

    def before_training(self, view: View, *, seed: int) -> None:
        """Let a part that learns do so, from the view that the model will be trained on; then the parts inside."""
        learn = getattr(self.part, "fit", None)
        if learn is not None:
            learn(view, seed=seed)
        inner = getattr(self.model, "before_training", None)
        if inner is not None:
            inner(replace(view, graph=self.part(view.graph)), seed=seed)

    def relaxations(self) -> dict[str, nn.Module]:
        """What an attacker's gradients may go through, where the part only cuts edges.

        ``uncut`` is the model without its part; ``soft`` weighs edges down instead of cutting them, where the part can; and
        there is what the model itself has.
        """
        if not _cuts(self.part):
            return {}
        soften = getattr(self.part, "relaxed", None)
        soft = {} if soften is None else {"soft": Defended(self.model, soften(), "detect").eval()}
        return {"uncut": self.model, **soft, **relaxations(self.model)}

    def edge_mask(self) -> EdgeMask | None:
        """The part as a mask, where it decides about every pair by the features of its ends."""
        part = self.part
        if not isinstance(part, Pruning) or not part.pairwise:
            return None
        return EdgeMask(self.model, part, part.visible, part.visible_block)

    def relaxed(self) -> Relaxed:
        """For adaptive attacks: the same logits, but gradients as if no edge were cut."""
        return Relaxed(self)


def _cuts(part: Preprocess) -> bool:
    """Whether a part does nothing but cut edges."""
    return isinstance(part, Pruning) or bool(getattr(part, "cuts", False))


def _name_of(part: Preprocess) -> str:
    """The part's name in the catalogue; one in brackets, which no catalogue has, for a custom part."""
    own = type(part).__name__.lower()
    known = own in entries("defense") and own not in SUFFIXES
    return own if known and resolve("defense", own) is type(part) else f"({own})"


def _plain_values(part: Any) -> dict[str, Any]:
    if isinstance(part, nn.Module):
        return dict(getattr(part, "params", {}))
    return asdict(part) if is_dataclass(part) and not isinstance(part, type) else {}


class Relaxed(nn.Module):
    r"""A defended model whose gradients ignore the cuts.

    The logits are the defended model's. Backwards the part's cuts are replaced by the identity (features it maps stay
    mapped), so that an attack gets a direction also where all edges of a node are cut.

    References:
        Athalye et al., *Obfuscated Gradients Give a False Sense of Security*, ICML 2018.
        Mujkanovic et al., *Are Defenses for Graph Neural Networks Robust?*, NeurIPS 2022.
    """

    def __init__(self, defended: Defended) -> None:
        super().__init__()
        self.defended = defended

    def prepare(self, adj: Adjacency) -> tuple[Edges, Any]:
        """The defended model's edges, and the inner model's operator of all edges."""
        return self.defended.prepare(adj), prepare(self.defended.model, adj)

    def forward(self, x: Tensor | CSR, op: tuple[Edges, Any]) -> Tensor:
        """Logits of every node, [n, classes]."""
        edges, uncut = op
        with torch.no_grad():
            logits: Tensor = self.defended(x, edges)
        rough: Tensor = self.defended.model(self.defended.part(Graph(edges.adj, x)).x, uncut)
        return logits + (rough - rough.detach())


def defended(model: str, part: str) -> Callable[..., Defended]:
    """A maker of the catalogue's model ``MODEL-PART``; takes what the model takes and what the part takes."""
    make_model, make_part = resolve("model", model), resolve("defense", part)
    taken = inspect.signature(make_part).parameters
    own = {key: each for key, each in taken.items() if key not in SIZES}

    def make(in_features: int, out_features: int, generator: Any = None, **params: Any) -> Defended:
        chosen = {key: params.pop(key) for key in own if key in params}
        # a part that learns knows how many features and classes there are
        sizes = {key: value for key, value in zip(SIZES, (in_features, out_features), strict=True) if key in taken}
        inner = make_model(in_features, out_features, **params, generator=generator)
        return Defended(inner, make_part(**sizes, **chosen), part)

    both = {**inspect.signature(make_model).parameters, **own}
    # a keyword may stand anywhere, but a signature wants those without a default first
    listed = sorted(
        both.values(), key=lambda parameter: (parameter.kind, parameter.default is not inspect.Parameter.empty)
    )
    make.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    what = (inspect.getdoc(make_part) or "").partition("\n\n")[0]
    make.__doc__ = f"{what}\n\n{arguments_section(argument_docs(make_model) | argument_docs(make_part))}\n"
    return make
