"""What a model is to grb, and the small base class that our own models share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from grb._paper_calls import PaperCalls, paper_attribute, prepare_paper_module
from grb.errors import DataError, UnknownName
from grb.graph import CSR, Adjacency, Graph
from grb.model.layers import Dropout

if TYPE_CHECKING:
    from grb.dataset import Dataset

State = tuple[Tensor, ...]
_Configured = TypeVar("_Configured", bound="ConfiguredModel")


@runtime_checkable
class Model(Protocol):
    """Any ``nn.Module`` with these two methods; ``stages`` is optional and buys incremental evaluation."""

    def prepare(self, adj: Adjacency) -> Any:
        """What ``forward`` needs of a graph's edges, made once per graph."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        """Logits, [n, classes]."""


@dataclass(frozen=True)
class Rows:
    """A step in which every row of the result depends on the same row of the state alone."""

    apply: Callable[[State], State]


@dataclass(frozen=True)
class Propagate:
    """A step that replaces one tensor of the state by its product with one of the prepared operators."""

    slot: int = 0
    op: int = 0


@dataclass(frozen=True)
class Mix:
    """A step with weights along edges that depend on the rows themselves, such as attention.

    ``apply(op, sources, targets)`` gives the new state of the rows of ``op`` from the state of its columns (``sources``)
    and the old state of its rows (``targets``).
    """

    apply: Callable[[CSR, State, State], State]
    op: int = 0


@dataclass(frozen=True)
class Pool(Rows):
    """A step that sees all rows of a graph at once, such as a mean over them; where rows were left out, they must come back."""


Stage = Rows | Propagate | Mix


@dataclass(frozen=True, eq=False)
class EdgeMask:
    """A model behind a filter of edges that looks at the features of both ends alone.

    Flipping a pair that the filter cuts changes nothing, and the gradient of any other is that of the model behind it: an
    attack that knows the mask wastes nothing on the filter.

    Args:
        model: The model behind the filter.
        cut: The filter, a function from a graph to a graph.
        visible: Function from features and pairs, [2, p], to which of them the filter lets through, [p] booleans.
        visible_block: Function from features, rows and columns to the same for all their pairs, [r, c] booleans.
    """

    model: nn.Module
    cut: Callable[[Graph], Graph]
    visible: Callable[[Tensor | CSR, Tensor], Tensor]
    visible_block: Callable[[Tensor | CSR, Tensor, Tensor], Tensor]


class GraphModel(nn.Module, metaclass=PaperCalls):
    """Base of our models: remembers how it was made, so that a checkpoint can rebuild it.

    A subclass sets ``name`` (its catalogue name) and ``params`` (its constructor's arguments as JSON values).
    """

    name: str
    params: Mapping[str, Any]
    trained_as: str | None = None
    """The full name that the training was asked for, such as ``gcn+ln+at``."""
    operator_cost: float = 1
    """What :meth:`prepare` costs, about, in forward passes; searches look at fewer graphs where it is much."""

    def prepare(self, adj: Adjacency) -> Any:
        """What ``forward`` needs of a graph's edges, made once per graph."""
        raise NotImplementedError(
            f"{type(self).__name__} needs prepare(adj), which makes what forward(x, op) gets as op"
        )

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        """Logits of every node, [n, classes]."""
        raise NotImplementedError(f"{type(self).__name__} needs forward(x, op), which gives a row of logits per node")

    def stages(self) -> list[Stage] | None:
        """The forward pass in evaluation mode as row-wise and propagating steps, or None."""
        return None

    def edge_mask(self) -> EdgeMask | None:
        """The filter of edges in front of the model, if that is all that it adds to another model; see :class:`EdgeMask`."""
        return None

    def relaxations(self) -> dict[str, nn.Module]:
        """Smoother or simplified versions of the model by name, for an attacker's gradients alone; see :func:`relaxations`."""
        return {}

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return paper_attribute(self, name)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights; without a generator torch's global one is used, as usual in torch."""
        for module in self.children():
            _reset(module, generator)

    @property
    def title(self) -> str:
        """Name for tables: how it was trained, or at least whether it has the layer norm."""
        return self.trained_as or (f"{self.name}+ln" if self.params.get("layer_norm") else self.name)

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters())


@dataclass(eq=False, repr=False)
class ConfiguredModel(GraphModel):
    """A model whose constructor arguments are dataclass fields; ``params`` is filled from them.

    A subclass is a dataclass too, adds its own fields, and makes its layers in :meth:`build`.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        generator: Random generator of the initial weights; torch's global one if not given.
    """

    in_features: int
    out_features: int
    generator: InitVar[torch.Generator | None] = field(default=None, kw_only=True)

    def __post_init__(self, generator: torch.Generator | None) -> None:
        super().__init__()
        self.params = self.arguments()
        self.build()
        if generator is not None:
            self.reset_parameters(generator)

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments as JSON values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def build(self) -> None:
        """Make the layers; all arguments are attributes by now."""
        raise NotImplementedError(f"{type(self).__name__} needs build(), which makes its layers")

    def twin(self: _Configured, **changes: Any) -> _Configured:
        """The same weights in a model with other arguments, in evaluation mode; its weights are copies that do not learn."""
        made = type(self)(**{**self.params, **changes})
        made.load_state_dict(self.state_dict())
        return made.eval().requires_grad_(False)


@dataclass(eq=False, repr=False)
class LayeredModel(ConfiguredModel):
    """A model with hidden layers.

    Args:
        hidden_features: Hidden widths, or one width together with ``n_layers``.
        n_layers: Number of layers, if one width is given; one more than hidden widths.
        dropout: Dropout rate behind every hidden layer.
    """

    hidden_features: int | Sequence[int] = (64, 64)
    n_layers: int | None = None
    dropout: float = field(default=0.0, kw_only=True)

    def __post_init__(self, generator: torch.Generator | None) -> None:
        self.hidden = hidden_sizes(self.hidden_features, self.n_layers)
        self.widths = [self.in_features, *self.hidden, self.out_features]
        super().__post_init__(generator)
        self.drop = Dropout(self.dropout)

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments as JSON values, with the hidden widths as a list."""
        own = super().arguments()
        del own["n_layers"]
        return {**own, "hidden_features": self.hidden}


def _reset(module: nn.Module, generator: torch.Generator | None) -> None:
    if isinstance(module, nn.ModuleList | nn.Sequential | nn.ModuleDict):
        for child in module.children():
            _reset(child, generator)
    elif isinstance(module, nn.LayerNorm | nn.BatchNorm1d):
        module.reset_parameters()
    else:
        reset = getattr(module, "reset_parameters", None)
        if reset is not None:
            reset(generator)


def run_stages(stages: Sequence[Stage], x: Tensor, ops: Any) -> Tensor:
    """The full forward pass by its stages; what a model's own ``forward`` must equal."""
    listed = ops if isinstance(ops, Sequence) else [ops]
    state: State = (x,)
    for stage in stages:
        if isinstance(stage, Rows):
            state = stage.apply(state)
        elif isinstance(stage, Mix):
            state = stage.apply(listed[stage.op], state, state)
        else:
            moved = listed[stage.op] @ state[stage.slot]
            state = (*state[: stage.slot], moved, *state[stage.slot + 1 :])
    return state[0]


def hidden_sizes(hidden_features: int | Sequence[int], n_layers: int | None) -> list[int]:
    """Hidden widths from a list, or from one width and the number of convolutions (one more than hidden layers)."""
    if isinstance(hidden_features, int):
        if n_layers is None:
            n_layers = 2
        sizes = [hidden_features] * (n_layers - 1)
    else:
        sizes = _whole(hidden_features)
        if n_layers is not None and n_layers != len(sizes) + 1:
            raise DataError(
                f"n_layers={n_layers} does not fit {len(sizes)} hidden sizes, which make {len(sizes) + 1} layers"
            )
    if not sizes or min(sizes) < 1:
        raise _no_sizes(sizes)
    return sizes


def _whole(sizes: Sequence[int]) -> list[int]:
    try:
        return [operator.index(size) for size in sizes]
    except TypeError:
        raise _no_sizes(sizes) from None


def _no_sizes(given: object) -> DataError:
    return DataError(f"hidden sizes are {given!r}, but one or more positive whole numbers are needed, as in [64, 64]")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients inside; the training mode of every module is restored afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@dataclass(frozen=True, eq=False)
class EvaluationView:
    """What a defender may know of a graph that it is asked about; a model with ``observe(view)`` gets it before ``prepare``.

    If the model has ``forget()``, that is called after the question, so that no answer depends on a question before.

    Test nodes and injected nodes look the same in it, and both tensors are permuted with the nodes.

    Args:
        known: Which nodes the model saw in training, [n] booleans; never the test nodes alone, which a model of the whole
            graph saw, but which must look like injected ones.
        keys: Random numbers, one per node and drawn for this evaluation, [n]: seeds of hashes and of sampling.
        trained_ids: Only for a model of ours that is tied to its training graph (``tied_to_training_graph``): the number that
            every node had there, -1 for nodes that it did not have, [n]. None for all other models, which get no identity.
    """

    known: Tensor
    keys: Tensor
    trained_ids: Tensor | None = None

    @classmethod
    def of(cls, known: Tensor, n: int, keys: torch.Generator | int = 0) -> EvaluationView:
        """The view of a graph of ``n`` nodes of which some ids are known; a longer graph has the same keys first.

        Args:
            known: Ids of the known nodes, [k].
            n: Number of nodes.
            keys: Random generator of the keys, or its seed.
        """
        mask = torch.zeros(n, dtype=torch.bool)
        mask[known.cpu()] = True
        generator = keys if isinstance(keys, torch.Generator) else torch.Generator().manual_seed(keys)
        return cls(mask, torch.randint(2**62, (n,), generator=generator))


@contextmanager
def observing(model: nn.Module, view: EvaluationView | None) -> Iterator[None]:
    """Tell a model with a method ``observe`` what it may know inside; one with a method ``forget`` forgets it afterwards.

    Without a view nothing happens, so that a question in the middle of an attack is answered as the attack's own.
    """
    method, forget = (getattr(model, name, None) for name in ("observe", "forget"))
    try:
        if method is not None and view is not None:
            method(view)
        yield
    finally:
        if forget is not None and view is not None:
            forget()


def predict(model: nn.Module, graph: Graph, view: EvaluationView | None = None) -> Tensor:
    """Logits of every node in evaluation mode, [n, classes]; a model made for other features is refused.

    A model that pools (``pools = True``) takes the boundaries of a collection too and gives a row for every graph. One with
    a method ``observe`` gets ``view`` first, if there is one.
    """
    check_features(model, graph)
    bounds = (graph.ptr,) if getattr(model, "pools", False) else ()
    with evaluating(model), observing(model, view):
        logits: Tensor = model(graph.x, prepare(model, graph.adj), *bounds)
    return logits


def check_features(model: nn.Module, graph: Graph) -> None:
    """Refuse a model of ours that was made for another number of features, before torch complains about a product."""
    needed = model.params.get("in_features") if isinstance(model, GraphModel) else None
    if isinstance(model, GraphModel) and needed not in (None, graph.num_features):
        raise DataError(
            f"the model is a {model.name} for {needed} features, but the graph has {graph.num_features}; "
            "give it the dataset it was trained on"
        )


def check_task(model: nn.Module, dataset: Dataset) -> None:
    """Refuse a model of nodes where graphs are classified, and the other way round."""
    pools = bool(getattr(model, "pools", False))
    if pools != (dataset.task == "graph"):
        own, wanted = ("graphs", "nodes") if pools else ("nodes", "graphs")
        name = getattr(model, "name", type(model).__name__)
        raise DataError(
            f"the model '{name}' classifies {own}, but '{dataset.name}' has {wanted} to classify; grb.train makes one that fits"
        )


def prepare(model: nn.Module, adj: Adjacency) -> Any:
    """The model's own view of a graph's edges; a module that has none is refused with advice."""
    method = getattr(model, "prepare", None)
    if method is None and hasattr(model, "adj_norm_func"):
        return prepare_paper_module(model, adj)
    if method is None:
        raise DataError(
            f"a {type(model).__name__} has no prepare(adj); a module of torch_geometric, DGL or CogDL becomes a model by "
            "grb.wrap(model), your own needs that method"
        )
    return method(adj)


def relaxations(model: nn.Module) -> dict[str, nn.Module]:
    """What a model offers to attackers whose gradients its own operations hide; empty for most models.

    A defense that cuts, thresholds or truncates gives gradients that are zero or misleading, and an attack that follows them
    says little about its robustness. Such a model may have a method ``relaxations()`` that gives models with the same weights
    and the same inputs in evaluation mode, by name: without the cuts, with a softer threshold, with a fixed low-rank part. An
    adaptive attack takes gradients from them and scores every edit on the true model. Models of others may have it too.

    References:
        Mujkanovic et al., *Are Defenses for Graph Neural Networks Robust?*, NeurIPS 2022.
    """
    method = getattr(model, "relaxations", None)
    return {} if method is None else dict(method())


def relaxation(model: nn.Module, name: str) -> nn.Module:
    """One of a model's relaxations by name; refuses a name that it does not have."""
    known = relaxations(model)
    if name not in known:
        title = getattr(model, "name", type(model).__name__)
        advice = f"It has {', '.join(known)}." if known else "It has none: attack it by its own gradients."
        raise UnknownName(f"relaxation of '{title}'", name, known, advice=advice)
    return known[name]


def use_generator(model: nn.Module, generator: torch.Generator | None) -> None:
    """Let all dropout layers of ours draw from ``generator`` (None: torch's global one)."""
    for module in model.modules():
        if isinstance(module, Dropout):
            module.generator = generator


@contextmanager
def dropout_rate(model: nn.Module, rate: float | None) -> Iterator[None]:
    """Another dropout rate inside; None keeps each layer's own."""
    layers = [module for module in model.modules() if isinstance(module, Dropout | nn.Dropout)]
    before = [layer.p for layer in layers]
    if rate is not None:
        if not 0 <= rate < 1:
            raise DataError(f"dropout is {rate}, but must be at least 0 and below 1")
        for layer in layers:
            layer.p = rate
    try:
        yield
    finally:
        for layer, rate_before in zip(layers, before, strict=True):
            layer.p = rate_before
