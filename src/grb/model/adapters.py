"""Models of others: torch_geometric, DGL, CogDL and plain modules behind the two methods that grb asks for."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from grb.errors import DataError, UnknownName
from grb.graph import CSR, Adjacency
from grb.model.base import evaluating
from grb.model.counted import Counting, reweighted, tried

log = logging.getLogger(__name__)

Style = Literal["pyg", "data", "adj", "dgl", "cogdl"]
Weights = Literal["presence", "own"]
# what a layer keeps of the last graph it saw; on an edited one that would be wrong
_CACHES = ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_cached_h")
# styles whose graph carries the weights, so that no argument shows whether the module uses them
_CARRYING = ("cogdl", "data")
_WEIGHTS = ("edge_weight", "edge_weights", "eweight", "weights", "weight")


def wrap(
    module: nn.Module,
    *,
    style: Style | None = None,
    edge_weight: str | bool | None = None,
    call: Callable[..., Any] | None = None,
    self_loops: bool = False,
    weights: Weights = "presence",
    pools: bool = False,
) -> Wrapped:
    """A module of another library as a model that attacks, defenses and evaluators of grb accept.

    Args:
        module: A trained ``nn.Module``. It stays the same object, so training it further also trains the wrapped one.
        style: How its ``forward`` wants a graph: ``pyg`` (``x, edge_index`` and, if it takes one, ``edge_weight``), ``data``
            (one ``torch_geometric.data.Data``), ``adj`` (``x`` and the adjacency as a sparse tensor), ``dgl`` (``graph, x``)
            or ``cogdl`` (``graph``). Guessed from the names of its arguments if not given.
        edge_weight: Name of the argument that takes a weight per edge, or False if it takes none; looked for if not given.
            Attacks that follow gradients of edges need it. A CogDL graph and a ``Data`` carry their weights, so that there is
            no name to give; whether the module uses them is seen when gradients are asked for.
        call: Called instead of ``module.forward``, with the same arguments.
        self_loops: Add a self-loop of weight one to every node, for a module that was trained on such graphs and does not
            add them itself: most of DGL and CogDL (``dgl.add_self_loop``, ``graph.add_remaining_self_loops``).
        weights: What a weight of an edge means to a module that divides by the number of edges. ``presence``: how much of
            the edge there is, zero being none, which attacks on edges need (:mod:`grb.model.counted`). ``own``: whatever
            the module makes of it, for a module that was trained on a graph with weights of its own.
        pools: The module classifies whole graphs: it takes ``batch``, the number of every node's graph, and gives a row of
            logits for every graph.

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
    if weights not in get_args(Weights):
        raise UnknownName(
            "weights", str(weights), get_args(Weights), advice=f"Allowed: {', '.join(get_args(Weights))}."
        )
    weight = _weight_name(module, names, edge_weight)
    if style in _CARRYING and edge_weight is not False:
        weight = "edge_weight"
    if pools and (style != "pyg" or "batch" not in arguments):
        raise DataError(
            f"pools=True needs a forward(x, edge_index, batch) as in torch_geometric, but that of {type(module).__name__} is "
            f"forward({', '.join(names)})"
        )
    return Wrapped(
        module, style, weight, call, batch=batch or pools, self_loops=self_loops, weights=weights, pools=pools
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """A graph for a third-party module: one edge per entry, ascending by row and column, and what its library made of them."""

    rows: Tensor
    columns: Tensor
    values: Tensor | None
    n: int
    graph: Any

    @property
    def entries(self) -> tuple[Tensor, Tensor, Tensor, int]:
        """Rows, columns and values of all entries, and the number of nodes."""
        assert self.values is not None
        return self.rows, self.columns, self.values, self.n


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
        self_loops: bool = False,
        weights: Weights = "presence",
        pools: bool = False,
    ) -> None:
        super().__init__()
        self.module, self.style, self.edge_weight, self.call, self.batch = module, style, edge_weight, call, batch
        self.self_loops, self.weights, self.pools = self_loops, weights, pools
        self._follows = False  # weights are known to reach the logits; for CogDL, whose modules do not show it
        self._counting: Counting | None = None
        self._made_dense: tuple[CSR, Tensor] | None = None

    @property
    def has_edge_gradients(self) -> bool:
        """Whether gradients with respect to edges come through: an adjacency carries its weights, other styles need a name."""
        return self.style == "adj" or self.edge_weight is not None

    def prepare(self, adj: Adjacency) -> Any:
        """The graph as the module wants it, made once."""
        rows, columns, values = self._entries(adj)
        if self.style == "adj":
            weights = torch.ones(len(rows), device=rows.device) if values is None else values
            return torch.sparse_coo_tensor(
                torch.stack([rows, columns]), weights, (adj.n, adj.n), is_coalesced=True, check_invariants=True
            )
        return self._made(rows, columns, values, adj.n)

    def forward(self, x: Tensor | CSR, op: Any, ptr: Tensor | None = None) -> Tensor:
        """Logits, [n, classes]; of a module that pools, [graphs, classes], where graph g has the nodes ptr[g] to ptr[g + 1]."""
        features = x if isinstance(x, Tensor) else self._dense(x)
        own = next((each.dtype for each in self.module.parameters() if each.is_floating_point()), features.dtype)
        try:
            if own == features.dtype:
                return self._logits_of(features, op, ptr)
            # of another precision: asked in its own, and answered in ours
            if getattr(op, "values", None) is not None:
                op = op.to(own) if isinstance(op, Tensor) else replace(op, values=op.values.to(own))
            return self._logits_of(features.to(own), op, ptr).to(features.dtype)
        except RuntimeError as error:
            if "shapes cannot be multiplied" not in str(error):
                raise
            raise DataError(
                f"{type(self.module).__name__} was made for another number of features than the {features.shape[1]} of this "
                f"graph ({error}); give it the columns that it was trained on"
            ) from None

    def _logits_of(self, features: Tensor, op: Any, ptr: Tensor | None) -> Tensor:
        self._forget()
        if self.style == "adj":
            return _logits((self.call or self.module)(features, op))
        values = op.values
        if values is None:
            return self._run(features, op, ptr)
        if self.weights == "presence":
            if self._counting is None:
                self._counting = self._tried(features)
            op = replace(op, values=reweighted(self._counting, *op.entries))
        logits = self._run(features, op, ptr)
        if self.style in _CARRYING and values.requires_grad and torch.is_grad_enabled() and not self._follows:
            if not _depends(logits, values):
                raise DataError(self._unweighted())
            self._follows = True
        return logits

    def _dense(self, x: CSR) -> Tensor:
        """Sparse features as the other libraries want them, made once."""
        if self._made_dense is None or self._made_dense[0] is not x:
            self._made_dense = (x, x.dense())
        return self._made_dense[1]

    def _made(self, rows: Tensor, columns: Tensor, values: Tensor | None, n: int) -> Prepared:
        if self.style in ("pyg", "data"):
            return Prepared(rows, columns, values, n, torch.stack([rows, columns]))
        if self.style == "dgl":
            from grb.model.bridges import dgl_graph

            return Prepared(rows, columns, values, n, dgl_graph(rows, columns, n))
        return Prepared(rows, columns, values, n, None)

    def _run(self, features: Tensor, op: Prepared, ptr: Tensor | None = None) -> Tensor:
        run = self.call or self.module
        if self.style == "cogdl":
            from grb.model.bridges import cogdl_graph

            if op.values is not None and op.values.requires_grad and not features.requires_grad:
                # its fast product has no gradients of weights, and is used unless the features have some
                features = features.detach().requires_grad_(torch.is_grad_enabled())
            # a new graph for every pass, because CogDL normalises its weights in place
            return _logits(run(cogdl_graph(op.rows, op.columns, op.values, features)))
        if self.style == "data":
            return _logits(run(_data(features, op)))
        more = {self.edge_weight: op.values} if self.edge_weight is not None and op.values is not None else {}
        if self.batch:  # it insists on hearing of which graph a node is, even if there is one only
            bounds = torch.tensor([0, len(features)]) if ptr is None else ptr
            graphs = torch.arange(len(bounds) - 1, device=features.device)
            more["batch"] = graphs.repeat_interleave(bounds.diff().to(features.device))
        logits = _logits(run(features, op.graph, **more) if self.style == "pyg" else run(op.graph, features, **more))
        if self.pools and len(logits) != len(graphs):
            raise DataError(
                f"{type(self.module).__name__} gives {len(logits)} rows of logits for {len(graphs)} graphs, but each needs "
                "one; graphs without nodes get none from torch_geometric's pooling"
            )
        return logits

    def _tried(self, features: Tensor) -> Counting:
        """How the module counts edges of weight zero; see :mod:`grb.model.counted`."""

        def run(kind: Counting, x: Tensor, rows: Tensor, columns: Tensor, values: Tensor) -> Tensor:
            entries = _with_loops(rows, columns, values, len(x)) if self.self_loops else (rows, columns, values)
            op = self._made(*entries, len(x))
            return self._run(x.requires_grad_(), replace(op, values=reweighted(kind, *op.entries)))

        try:
            with evaluating(self), torch.enable_grad():
                found = tried(run, features.shape[1], features)
        except Exception as error:  # whatever a third-party module raises to a graph of eight nodes
            log.debug("%s does not take a small graph: %s", type(self.module).__name__, error)
            found = None
        self._forget()
        if found is None:
            log.warning(
                "%s takes an edge of weight zero for an edge, so that attacks which follow gradients of edges may be weaker "
                "on it than on others; attack it from a surrogate too",
                type(self.module).__name__,
            )
        return found or "none"

    def _entries(self, adj: Adjacency) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rows, columns and weights of all entries, ascending; weights only where the module takes any."""
        rows, columns, values = adj.pattern.row_ids.long(), adj.pattern.indices.long(), adj.values
        if values is not None and not self.has_edge_gradients:
            if values.requires_grad:
                raise DataError(self._unweighted())
            present = values != 0
            if not (values[present] == 1).all():
                raise DataError(f"{type(self.module).__name__} takes no weights of edges, but the graph has some")
            rows, columns, values = rows[present], columns[present], None
        return _with_loops(rows, columns, values, adj.n) if self.self_loops else (rows, columns, values)

    def _unweighted(self) -> str:
        return (
            f"{type(self.module).__name__} takes no weights of edges, so that it has no gradients with respect to them; "
            "use an attack without such gradients (dice, flip, rnd, or an injection), or a surrogate"
        )

    def _forget(self) -> None:
        """Drop what layers kept of another graph."""
        for layer in self.module.modules():
            for name in _CACHES:
                if getattr(layer, name, None) is not None:
                    setattr(layer, name, None)

    def __repr__(self) -> str:
        return f"Wrapped({type(self.module).__name__}, style={self.style!r}, edge_weight={self.edge_weight!r})"


def _with_loops(rows: Tensor, columns: Tensor, values: Tensor | None, n: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """With the entry (i, i) of weight one for every node, in its position among the others."""
    nodes = torch.arange(n, device=rows.device)
    order = torch.argsort(torch.cat([rows, nodes]) * n + torch.cat([columns, nodes]))
    if values is not None:
        values = torch.cat([values, values.new_ones(n)])[order]
    return torch.cat([rows, nodes])[order], torch.cat([columns, nodes])[order], values


def _data(features: Tensor, op: Prepared) -> Any:
    """A new ``Data`` for every pass: a module may write into it."""
    from torch_geometric.data import Data

    data = Data(x=features, edge_index=op.graph, num_nodes=op.n)
    if op.values is not None:
        data.edge_weight = op.values
    data.batch = torch.zeros(op.n, dtype=torch.int64, device=features.device)
    return data


def _depends(logits: Tensor, values: Tensor) -> bool:
    """Whether a gradient of the logits comes through to the weights."""
    if not logits.requires_grad:
        return False
    (found,) = torch.autograd.grad(logits.sum(), values, retain_graph=True, allow_unused=True)
    return found is not None


def _logits(value: Any) -> Tensor:
    """Some modules give a tuple whose first part are the logits."""
    first = value[0] if isinstance(value, tuple | list) and value else value
    if not isinstance(first, Tensor):
        raise DataError(
            f"the wrapped module gives a {type(value).__name__}, but a tensor of logits is needed; "
            "grb.wrap(module, call=...) takes a function that calls it and gives that"
        )
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
    # what torch_geometric.nn.to_hetero makes of a module: a layer for every type
    typed = type(module).__name__ == "GraphModule" and any(
        isinstance(each, nn.ModuleDict) for each in module.children()
    )
    typed = typed or any(type(each).__name__ in ("HeteroConv", "HGTConv", "HANConv") for each in module.modules())
    if typed or any(name.endswith("_dict") for name in names) or "hetero" in type(module).__name__.lower():
        raise DataError(
            f"forward({', '.join(names)}) of {type(module).__name__} takes nodes of several types, but grb's graphs have one; "
            "turn the data into one type first (HeteroData.to_homogeneous()), or wrap a module that does"
        )
    if "edge_index" in names:
        return "pyg"
    if names and names[0] in ("data", "batch", "pyg_data", "inputs", "sample") and "x" not in names:
        return "data"
    if names and names[0] in ("g", "graph", "blocks", "mfgs"):
        return "dgl"
    if any(name in names for name in ("adj", "adj_t", "adjacency")) and len(names) >= 2:
        return "adj"
    raise DataError(
        f"forward({', '.join(names)}) of {type(module).__name__} does not show how it takes a graph; "
        f"give style={', '.join(map(repr, get_args(Style)))}"
    )


def _weight_name(module: nn.Module, names: list[str], given: str | bool | None) -> str | None:
    if isinstance(given, str):
        return given
    if given is False or getattr(module, "supports_edge_weight", True) is False:
        return None
    return next((name for name in _WEIGHTS if name in names), None)
