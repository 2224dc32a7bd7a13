"""Models under their arguments of the papers' era: those that ours do not have become small variants of ours.

A variant keeps what was asked for in ``params``, so that a saved model is rebuilt the same by ``grb.load_model``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.compat.adjacency import OURS, GCNAdjNorm, Norm, RobustGCNAdjNorm, SAGEAdjNorm, SPARSEAdjNorm
from grb.compat.arguments import refuse_unless, say_once
from grb.errors import DataError
from grb.graph import CSR, Adjacency, dense
from grb.model.base import GraphModel
from grb.model.layers import Dropout
from grb.model.pooled import Pooled, pooled
from grb.model.torch.appnp import APPNP
from grb.model.torch.gat import GAT, GATConv
from grb.model.torch.gin import GIN, GINConv
from grb.model.torch.sgcn import SGCN

NORMS: dict[str, Norm | None] = {
    "GCNAdjNorm": GCNAdjNorm,
    "SPARSEAdjNorm": SPARSEAdjNorm,
    "SAGEAdjNorm": SAGEAdjNorm,
    "RobustGCNAdjNorm": RobustGCNAdjNorm,
    "None": None,
}
# what each model does with its adjacency, under the name that THUDM/grb has for it, and what else is taken for the same
OWN_NORM: dict[str, Norm | None] = {
    **dict.fromkeys(
        ("gcn", "appnp", "sgcn", "tagcn", "gcn-svd", "gcnguard", "gatguard", "grand", "gcn-pool"), GCNAdjNorm
    ),
    **dict.fromkeys(("gin", "mlp", "gat"), None),
    "graphsage": SAGEAdjNorm,
    "r-gcn": RobustGCNAdjNorm,
}
SAME_NORM: dict[str, tuple[Norm | None, ...]] = {
    "gcn-svd": (None,),
    "grand": (None,),
    "gatguard": (None,),
    "gat": (GCNAdjNorm,),
}
OWN_ACTIVATION = {"sgcn": "tanh", "gat": "elu", "gatguard": "elu"}
SUBCLASS = "write a subclass of it that overrides"


def attribute(model: Any, name: str) -> Any:
    """``adj_norm_func``, ``feat_norm``, ``model_type`` or ``model_name`` of a model of ours."""
    if name == "adj_norm_func":
        changed = getattr(type(model), "changes", {})
        return NORMS[changed["adj_norm_func"]] if "adj_norm_func" in changed else OWN_NORM.get(model.name)
    return {"feat_norm": None, "model_type": "torch", "model_name": model.name}[name]


def model_arguments(cls: type[GraphModel], given: dict[str, Any]) -> tuple[type[GraphModel], dict[str, Any]]:
    """The class or a variant of it, and the arguments that it takes."""
    owner, changes = cls.__name__, dict[str, Any]()
    refuse_unless(
        owner,
        given,
        "feat_norm",
        lambda value: value is None,
        "features are normalised once, by the dataset: Dataset(name, feat_norm='arctan')",
    )
    _heads(given)
    _norm(cls, given, changes)
    _activation(cls, given, changes)
    _fixed_layers(cls, given, changes)
    _dropouts(cls, given, changes)
    _renamed(cls, given)
    made = variant(cls, tuple(sorted(changes.items()))) if changes else cls
    return made, given


def _heads(given: dict[str, Any]) -> None:
    for old in ("n_heads", "num_heads"):
        if old in given:
            given["heads"] = given.pop(old)


def _norm(cls: type[GraphModel], given: dict[str, Any], changes: dict[str, Any]) -> None:
    if "adj_norm_func" not in given:
        return
    asked = given.pop("adj_norm_func")
    norm = NORMS.get(asked, asked) if isinstance(asked, str) else asked
    if norm is SPARSEAdjNorm:
        norm = GCNAdjNorm
    if norm is OWN_NORM.get(cls.name) or norm in SAME_NORM.get(cls.name, ()):
        return
    name = next((name for name, known in NORMS.items() if known is norm), None)
    if (
        name is None
        or cls.name not in ("gcn", "appnp", "sgcn", "tagcn", "graphsage", "gin")
        or norm is RobustGCNAdjNorm
    ):
        own = OWN_NORM.get(cls.name)
        raise DataError(
            f"{cls.__name__} got adj_norm_func={getattr(asked, '__name__', asked)}, but it normalises by "
            f"{getattr(own, '__name__', own)}; for another normalisation {SUBCLASS} prepare(adj)"
        )
    changes["adj_norm_func"] = name


def _activation(cls: type[GraphModel], given: dict[str, Any], changes: dict[str, Any]) -> None:
    if "activation" not in given:
        return
    asked = given.pop("activation")
    name = asked if isinstance(asked, str) else _function_name(asked)
    own = OWN_ACTIVATION.get(cls.name, "relu")
    if name == own:
        return
    own_method = hasattr(cls, "activation")
    if name is None or not own_method:
        shown = name or getattr(asked, "__name__", repr(asked))
        raise DataError(
            f"{cls.__name__} got activation={shown}, but it has {own} between layers; for another one {SUBCLASS} "
            + ("activation(h)" if own_method else "forward(x, op)")
        )
    changes["activation"] = name


def _function_name(asked: Any) -> str | None:
    """The name by which torch has a function, such as ``leaky_relu``; None if it is a custom one."""
    name = getattr(asked, "__name__", type(asked).__name__).lower()
    for home in (functional, torch):
        if getattr(home, name, None) is asked:
            return name
    return name if isinstance(asked, nn.Module) and callable(getattr(functional, name, None)) else None


def _fixed_layers(cls: type[GraphModel], given: dict[str, Any], changes: dict[str, Any]) -> None:
    owner = cls.__name__
    if cls.name == "gin":
        refuse_unless(owner, given, "n_mlp_layers", lambda v: v == 2, "its perceptrons have two linear maps")
        refuse_unless(owner, given, "eps", lambda v: v == 0, "eps is learnt here and begins at 0")
        if not given.pop("batch_norm", True):
            changes["batch_norm"] = False
    elif cls.name == "sgcn":
        if not given.pop("batch_norm", True) and not given.get("layer_norm"):
            changes["batch_norm"] = False
    else:
        refuse_unless(
            owner, given, "batch_norm", lambda v: not v, f"it has none; use layer_norm=True, or {SUBCLASS} make_conv"
        )
    if cls.name == "graphsage":
        refuse_unless(
            owner, given, "mu", lambda v: v == 2, "pooling is a quadratic mean (mu=2); aggregate='mean' is the mean"
        )
    if cls.name in ("gcnguard", "gatguard", "gcn-svd"):
        refuse_unless(owner, given, "layer_norm", lambda v: not v, "it has no layer norm, as in the paper's tables")
        refuse_unless(owner, given, "residual", lambda v: not v, "it has no residual connections")
    if cls.name in ("gcnguard", "gatguard"):
        refuse_unless(owner, given, "attention", lambda v: bool(v), "without attention it is a plain model: GCN or GAT")
        if given.pop("drop", None) not in (None, True):
            say_once(f"{owner}: drop has no effect, pruning is always learnt and begins with keeping every edge")
        if given.get("dropout") is True:
            given["dropout"] = 0.5
            say_once(f"{owner}: dropout=True is taken for 0.5, give a rate")


def _dropouts(cls: type[GraphModel], given: dict[str, Any], changes: dict[str, Any]) -> None:
    if cls.name == "gat":
        if "attn_dropout" in given:
            given["attention_dropout"] = given.pop("attn_dropout")
        if rate := given.pop("feat_dropout", 0.0):
            changes["feat_dropout"] = _rate("feat_dropout", rate)
    if cls.name == "appnp" and (rate := given.pop("edge_drop", 0.0)):
        changes["edge_drop"] = _rate("edge_drop", rate)


def _rate(name: str, value: Any) -> float:
    if not 0 <= float(value) < 1:
        raise DataError(f"{name} is {value}, but must be at least 0 and below 1")
    return float(value)


def _renamed(cls: type[GraphModel], given: dict[str, Any]) -> None:
    names = {
        "gcn-svd": {"k": "rank"},
        "grand": {"s": "draws", "temp": "temperature", "lam": "consistency", "hidden_dropout": "dropout"},
    }.get(cls.name, {})
    for old, new in names.items():
        if old in given:
            given[new] = given.pop(old)


@cache
def variant(cls: type[GraphModel], changes: tuple[tuple[str, Any], ...]) -> type[GraphModel]:
    """A subclass of a model with some changes; the same object for the same changes, under the model's own name."""
    body = {"changes": dict(changes), "paper_base": cls, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    mixins = [MIXINS.get(name) or MIXINS[f"{cls.name} {name}"] for name, _ in changes]
    metaclass: Any = type(cls)
    made: type[GraphModel] = metaclass(cls.__name__, (*mixins, _Changed, cls), {**body, "__doc__": cls.__doc__})
    return made


class _Changed:
    """What all variants share: ``params`` has the changes beside the arguments of the model."""

    changes: dict[str, Any]

    def arguments(self) -> dict[str, Any]:
        own: dict[str, Any] = super().arguments()  # type: ignore[misc]
        return {**own, **self.changes}


class _Activation:
    changes: dict[str, Any]

    def activation(self, h: Tensor) -> Tensor:
        name = self.changes["activation"]
        function: Callable[[Tensor], Tensor] = getattr(functional, name, None) or getattr(torch, name)
        return function(h)


class _Normalised:
    changes: dict[str, Any]

    def prepare(self, adj: Adjacency) -> Any:
        return OURS[NORMS[self.changes["adj_norm_func"]]](adj)


class _Unnormed(nn.Identity):
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """There is nothing to draw."""


class _WithoutInputNorm(SGCN):
    def build(self) -> None:
        super().build()
        self.input_norm = _Unnormed()  # type: ignore[assignment]


class _WithoutBatchNorm(GIN):
    def build(self) -> None:
        super().build()
        for conv in self.convs:
            assert isinstance(conv, GINConv)
            conv.batch_norm = _Unnormed()  # type: ignore[assignment]


class _DroppedInput(GATConv):
    """An attention layer whose input features are dropped in training."""

    def __init__(self, *args: Any, rate: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.input_dropout = Dropout(rate)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        return super().forward(self.input_dropout(dense(x)), op)


class _FeatureDropout(GAT):
    changes: dict[str, Any]

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        rate = self.changes["feat_dropout"]
        return _DroppedInput(
            in_features, out_features, self.heads, average=last, dropout=self.attention_dropout, rate=rate
        )


class _EdgeDrop(APPNP):
    """In training every step travels along a random part of the edges, drawn anew; what is left weighs more."""

    changes: dict[str, Any]

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        if not self.training:
            return super().forward(x, op)
        edges = Dropout(self.changes["edge_drop"], self.drop.generator)
        assert op.values is not None
        state = self._predicted((x,))  # type: ignore[arg-type]
        for _ in range(self.k):
            state = self._returned((CSR(op.pattern, edges(op.values)) @ state[0], state[1]))
        return state[0]


MIXINS: dict[str, type] = {
    "activation": _Activation,
    "adj_norm_func": _Normalised,
    "gin batch_norm": _WithoutBatchNorm,
    "sgcn batch_norm": _WithoutInputNorm,
    "edge_drop": _EdgeDrop,
    "feat_dropout": _FeatureDropout,
}


class GCNGC(pooled("gcn")):  # type: ignore[misc]
    """GCN for whole graphs under its old name: sum over nodes, then a perceptron; ``gcn-pool`` of the catalogue.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        hidden_features: Hidden widths, or one width together with ``n_layers``.
        n_layers: Number of convolutions, if one width is given.
        options: ``layer_norm``, ``residual`` and ``dropout`` of the convolutions; ``activation``, ``feat_norm`` and
            ``adj_norm_func`` as far as they are what happens anyway.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: Any = (64, 64),
        n_layers: int | None = None,
        **options: Any,
    ) -> None:
        refuse_unless(
            "GCNGC", options, "activation", lambda v: _function_name(v) == "relu", "it has relu between layers"
        )
        refuse_unless("GCNGC", options, "feat_norm", lambda v: v is None, "features are normalised by the dataset")
        refuse_unless(
            "GCNGC", options, "adj_norm_func", lambda v: v in (GCNAdjNorm, None), "it normalises by GCNAdjNorm"
        )
        given = {"hidden_features": hidden_features, "n_layers": n_layers, "readout": "sum", **options}
        super().__init__(in_features, out_features, **given)

    def forward(self, x: Tensor | CSR, op: Any, ptr: Tensor | None = None, batch_index: Tensor | None = None) -> Tensor:
        """Logits of every graph, [graphs, classes]; ``batch_index`` has the ascending number of every node's graph."""
        if batch_index is not None:
            if len(batch_index) and bool((batch_index.diff() < 0).any()):
                raise DataError("batch_index must be ascending: nodes of one graph stand together")
            counts = torch.bincount(batch_index)
            ptr = functional.pad(counts.cumsum(0), (1, 0))
        return super().forward(x, op, ptr)


assert issubclass(GCNGC, Pooled)
