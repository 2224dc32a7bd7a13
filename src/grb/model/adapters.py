"""Models of others: torch_geometric, DGL, CogDL and plain modules behind the two methods that grb asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from grb.errors import DataError, UnknownName
from grb.graph import CSR, Adjacency

Style = Literal["pyg", "adj", "dgl", "cogdl"]
# what a layer keeps of the last graph it saw; on an edited one that would be wrong
_CACHES = ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_cached_h")
_WEIGHTS = ("edge_weight", "edge_weights", "eweight", "weights", "weight")


def wrap(
    module: nn.Module,
    *,
    style: Style | None = None,
    edge_weight: str | bool | None = None,
    call: Callable[..., Any] | None = None,
) -> Wrapped:
    """A module of another library as a model that attacks, defenses and evaluators of grb accept.

    Args:
        module: A trained ``nn.Module``. It stays the same object, so training it further also trains the wrapped one.
        style: How its ``forward`` wants a graph: ``pyg`` (``x, edge_index`` and, if it takes one, ``edge_weight``), ``adj``
            (``x`` and the adjacency as a sparse tensor), ``dgl`` (``graph, x``) or ``cogdl`` (``graph``). Guessed from the
            names of its arguments if not given.
        edge_weight: Name of the argument that takes a weight per edge, or False if it takes none; looked for if not given.
            Attacks that follow gradients of edges need it.
        call: Called instead of ``module.forward``, with the same arguments.

    >>> class Mean(nn.Module):
    ...     def forward(self, x, adj):
    ...         return adj @ x
    >>> wrap(Mean()).style
    'adj'
    """
    if isinstance(module, Wrapped):
        return module
    if not isinstance(module, nn.Module):
        raise DataError(f"a {type(module).__name__} cannot be wrapped; a torch.nn.Module is needed")
    arguments = _arguments(call or module.forward)
    names = list(arguments)
    if style is None:
        style = _guess(module, names)
    elif style not in get_args(Style):
        raise UnknownName("style", str(style), get_args(Style), advice=f"Allowed: {', '.join(get_args(Style))}.")
    batch = "batch" in arguments and arguments["batch"].default is inspect.Parameter.empty
    return Wrapped(module, style, _weight_name(module, names, edge_weight), call, batch=batch)


class Wrapped(nn.Module):
    """A module of another library; see :func:`wrap`. It has no stages, so every evaluation is a full forward pass."""

    def __init__(
        self,
        module: nn.Module,
        style: Style,
        edge_weight: str | None,
        call: Callable[..., Any] | None = None,
        *,
        batch: bool = False,
    ) -> None:
        super().__init__()
        self.module, self.style, self.edge_weight, self.call, self.batch = module, style, edge_weight, call, batch

    @property
    def has_edge_gradients(self) -> bool:
        """Whether gradients with respect to edges come through: an adjacency carries its weights, other styles need a name."""
        return self.style == "adj" or self.edge_weight is not None

    def prepare(self, adj: Adjacency) -> Any:
        """The graph as the module wants it, made once."""
        rows, columns, values = self._entries(adj)
        if self.style == "pyg":
            return torch.stack([rows, columns]), values
        if self.style == "adj":
            weights = torch.ones(len(rows), device=rows.device) if values is None else values
            return torch.sparse_coo_tensor(
                torch.stack([rows, columns]), weights, (adj.n, adj.n), is_coalesced=True, check_invariants=True
            )
        if self.style == "dgl":
            from grb.model.dgl import graph_of

            return graph_of(rows, columns, adj.n), values
        from grb.model.cogdl import graph_of as cogdl_graph_of

        return cogdl_graph_of(rows, columns, values, adj.n)

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        """Logits, [n, classes]."""
        features = x if isinstance(x, Tensor) else x @ torch.eye(x.shape[1])
        self._forget()
        run = self.call or self.module
        if self.style == "adj":
            return _logits(run(features, op))
        if self.style == "cogdl":
            from grb.model.cogdl import with_features

            return _logits(run(with_features(op, features)))
        graph, values = op
        more = {self.edge_weight: values} if self.edge_weight is not None and values is not None else {}
        if self.batch:  # it insists on hearing that all nodes are of one graph
            more["batch"] = torch.zeros(len(features), dtype=torch.int64, device=features.device)
        return _logits(run(features, graph, **more) if self.style == "pyg" else run(graph, features, **more))

    def _entries(self, adj: Adjacency) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rows, columns and weights of all entries; weights only where the module takes any."""
        rows, columns, values = adj.pattern.row_ids.long(), adj.pattern.indices.long(), adj.values
        if values is None or self.has_edge_gradients:
            return rows, columns, values
        if values.requires_grad:
            raise DataError(
                f"{type(self.module).__name__} takes no weights of edges, so that it has no gradients with respect to them; "
                "use an attack without such gradients (dice, flip, rnd, or an injection), or a surrogate"
            )
        present = values != 0
        if not (values[present] == 1).all():
            raise DataError(f"{type(self.module).__name__} takes no weights of edges, but the graph has some")
        return rows[present], columns[present], None

    def _forget(self) -> None:
        """Drop what layers kept of another graph."""
        for layer in self.module.modules():
            for name in _CACHES:
                if getattr(layer, name, None) is not None:
                    setattr(layer, name, None)

    def __repr__(self) -> str:
        return f"Wrapped({type(self.module).__name__}, style={self.style!r}, edge_weight={self.edge_weight!r})"


def _logits(value: Any) -> Tensor:
    """Some modules give a tuple whose first part are the logits."""
    first = value[0] if isinstance(value, tuple | list) and value else value
    if not isinstance(first, Tensor):
        raise DataError(f"the wrapped module gives a {type(value).__name__}, but a tensor of logits is needed")
    return first


def _arguments(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _guess(module: nn.Module, names: list[str]) -> Style:
    homes = {cls.__module__.partition(".")[0] for cls in type(module).__mro__}
    if "cogdl" in homes:
        return "cogdl"
    if "edge_index" in names:
        return "pyg"
    if names and names[0] in ("g", "graph", "blocks", "mfgs"):
        return "dgl"
    if any(name in names for name in ("adj", "adj_t", "adjacency")) and len(names) >= 2:
        return "adj"
    raise DataError(
        f"forward({', '.join(names)}) of {type(module).__name__} does not tell how it takes a graph; "
        f"say style={', '.join(map(repr, get_args(Style)))}"
    )


def _weight_name(module: nn.Module, names: list[str], given: str | bool | None) -> str | None:
    if isinstance(given, str):
        return given
    if given is False or getattr(module, "supports_edge_weight", True) is False:
        return None
    return next((name for name in _WEIGHTS if name in names), None)
