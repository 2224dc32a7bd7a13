"""Threat models: what an attacker may do. ``check`` counts what an edit uses and refuses it, naming the excess.

All limits are "at most". Undirected edges count once; an edge between two injected nodes counts at both of its ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from grb.catalogue import preset
from grb.constraints import Constraints
from grb.errors import BudgetError, DataError, UnknownName
from grb.target_limits import PerTarget, check_per_target, parsed_per_target, target_limits

if TYPE_CHECKING:  # a board shows threat models without torch
    from torch import Tensor

    from grb.graph import Graph, GraphEdit

# grb-cora's row of Table 12, for datasets without one: injected nodes per target, edges per injected node
INFERRED_NODES, INFERRED_EDGES = 0.075, 20
FeatureLimits = Literal["data", "paper"]
Answers = Literal["scores", "labels"]


class HasFeatures(Protocol):
    """A dataset, as far as its limits depend on it."""

    name: str

    @property
    def feature_range(self) -> tuple[float, float]:
        """Smallest and largest feature."""


class _Limits:
    queries: int | None
    answers: Answers
    constraints: Constraints | None

    def _check_queries(self) -> None:
        number: Any = self.queries  # a recipe may hold anything
        if number is not None and (isinstance(number, bool) or not isinstance(number, Integral) or number < 0):
            raise DataError(f"queries is {number!r}, but must be a whole number and not negative")
        if self.answers not in get_args(Answers):
            raise DataError(f"answers is {self.answers!r}, but 'scores' or 'labels' is needed")
        given: Any = self.constraints
        if given is not None and not isinstance(given, Constraints):
            raise DataError(
                f"constraints are a {type(given).__name__}, but names of constraints with their values are needed"
            )

    def __repr__(self) -> str:
        """The limits that were given, and those that are never absent."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        always = {each.name for each in fields(self) if each.default is MISSING}  # type: ignore[arg-type]
        usual = {each.name: each.default for each in fields(self)}  # type: ignore[arg-type]
        shown = (f"{name}={value!r}" for name, value in given.items() if name in always or value != usual[name])
        return f"{type(self).__name__}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, read back by :func:`threat_from_dict`: a new limit without effect changes no record."""
        values: dict[str, Any] = {"kind": type(self).__name__.lower()}
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if each.default is MISSING or value != each.default:
                values[each.name] = value
        orders: dict[str, Callable[[Any], Any]] = {
            "feature_range": list,
            "allow": sorted,
            "per_target": list,
            "constraints": Constraints.to_dict,
        }
        for name, order in orders.items():
            if values.get(name) is not None and not isinstance(values[name], int):
                values[name] = order(values[name])
        return values


@dataclass(frozen=True, repr=False)
class Injection(_Limits):
    """Append nodes with edges and features of the attacker's choice; the original graph stays as it is.

    Args:
        nodes: Maximum number of injected nodes.
        edges_per_node: Maximum number of edges of one injected node.
        feature_range: Lowest and highest value of an injected feature.
        constraints: What else must hold, see :class:`~grb.constraints.Constraints`; None for nothing.
        queries: Graphs about which an attacker who may only ask can ask the victim; None for no such attacker.
        answers: What an answer holds: ``scores`` or ``labels``.

    >>> Injection(nodes=60, edges_per_node=20, feature_range=(-0.94, 0.94)).nodes
    60
    """

    nodes: int
    edges_per_node: int
    feature_range: tuple[float, float]
    constraints: Constraints | None = None
    queries: int | None = field(default=None, kw_only=True)
    answers: Answers = field(default="scores", kw_only=True)

    def __post_init__(self) -> None:
        self._check_queries()
        for name in ("nodes", "edges_per_node"):
            value = getattr(self, name)
            # not only negative ones: a limit of NaN would allow everything
            if not isinstance(value, Integral) or value < 0:
                raise DataError(f"{name} is {value}, but must be a whole number and not negative")
        _check_limits(self.feature_range)

    @classmethod
    def preset(cls, dataset: str | HasFeatures, mode: str, *, features: FeatureLimits | None = None) -> Injection:
        """The limits of the GRB paper's Table 12 for a dataset and a difficulty; synth-cora has those of grb-cora.

        Args:
            dataset: The dataset at hand, or its name.
            mode: Difficulty.
            features: ``data`` for the exact range of the dataset's features (default for a dataset), ``paper`` for the two
                decimals that the table prints, which grb-cora's own features exceed (default for a name).
        """
        name = dataset if isinstance(dataset, str) else dataset.name
        row = injection_table(name)
        if mode not in row["nodes"]:
            raise UnknownName("difficulty", mode, row["nodes"], advice=f"Allowed: {', '.join(row['nodes'])}.")
        chosen = features or ("paper" if isinstance(dataset, str) else "data")
        if chosen not in get_args(FeatureLimits):
            raise DataError(f"features is {chosen!r}, but 'data' or 'paper' is needed")
        low, high = row["feature_range"]
        if chosen == "data":
            if isinstance(dataset, str):
                raise DataError(f"features='data' needs a dataset, but got the name '{name}'; load the dataset first")
            low, high = dataset.feature_range
        return cls(row["nodes"][mode], row["edges_per_node"], (low, high))

    @classmethod
    def inferred(cls, targets: int, feature_range: tuple[float, float]) -> Injection:
        """Limits for a dataset that no table has: those of grb-cora per target, and the features that the data has.

        Table 12 gives 20 nodes of 20 edges for the 268 targets of a difficulty of grb-cora: 7.5 % of the targets, at least
        one node, and no more edges per node than there are targets.

        >>> Injection.inferred(268, (0.0, 1.0))
        Injection(nodes=20, edges_per_node=20, feature_range=(0.0, 1.0))
        """
        nodes = max(math.floor(INFERRED_NODES * targets + 1e-9), min(targets, 1))
        return cls(nodes, min(INFERRED_EDGES, targets), feature_range)

    def check(self, graph: Graph, edit: GraphEdit, targets: Tensor | None = None) -> dict[str, float]:
        """Refuse an edit beyond the limits, otherwise return the budget used; in a collection every graph has the limits.

        Args:
            graph: The graph before the attack.
            edit: What the attack changes.
            targets: Ids of the graphs under attack in a collection; None for all.
        """
        if graph.ptr is not None:
            return check_each(self, graph, edit, targets)
        _check_basis(graph, edit)
        if edit.drop.numel():
            raise BudgetError(f"{edit.drop.shape[1]} original edges are dropped, but an injection may drop none")
        if edit.set_ids is not None:
            raise BudgetError(
                f"features of {len(edit.set_ids)} original nodes are changed, but an injection may change none"
            )
        inside = int((edit.add[1] < graph.n).sum())
        if inside:
            raise BudgetError(f"{inside} edges are added among original nodes, but an injection may add none")
        if edit.num_new > self.nodes:
            raise BudgetError(f"{edit.num_new} nodes are injected, but the threat model allows nodes={self.nodes}")
        degrees = injected_degrees(edit)
        most = int(degrees.max()) if len(degrees) else 0
        if most > self.edges_per_node:
            node = int(degrees.argmax())
            raise BudgetError(
                f"injected node {node} has {most} edges, but the threat model allows edges_per_node={self.edges_per_node}"
            )
        if edit.new_x is not None:
            _check_range(edit.new_x, self.feature_range, "an injected feature")
        more = {} if self.constraints is None else self.constraints.check(graph, edit, targets)
        return {"nodes": edit.num_new, "edges": edit.add.shape[1], "most_edges_per_node": most, **more}

    def for_graph(self, graph: Graph) -> Injection:
        """The limits for one graph of a collection, which are the same for every graph."""
        return self


Change = Literal["add", "drop"]


@dataclass(frozen=True, repr=False)
class Modification(_Limits):
    """Change edges among the original nodes and, if allowed, features of some of them.

    Args:
        edges: Maximum number of changed edges; or give ``edge_ratio``, or ``per_target`` alone.
        edge_ratio: Fraction of the graph's edges that may change.
        allow: ``add``, ``drop`` or both.
        per_node: Fraction of its degree that may change at one node (rounded down); None for no such limit.
        feature_nodes: Maximum number of nodes whose features may change.
        feature_range: Lowest and highest value of a changed feature; needed if features may change.
        allow_isolate: Whether a node may lose all its neighbours.
        per_target: Maximum number of flips spent on one target: ``k``, or ``(f, k)`` for f times its degree plus k, so that
            ``(1, 2)`` is the usual degree + 2. Changed edges and changed features count, see
            :func:`~grb.target_limits.check_per_target`.
        constraints: What else must hold, see :class:`~grb.constraints.Constraints`; None for nothing.
        queries: Graphs about which an attacker who may only ask can ask the victim; None for no such attacker.
        answers: What an answer holds: ``scores`` or ``labels``.
    """

    edges: int | None = None
    edge_ratio: float | None = None
    allow: Collection[Change] = ("add", "drop")
    per_node: float | None = None
    feature_nodes: int = 0
    feature_range: tuple[float, float] | None = None
    allow_isolate: bool = True
    per_target: PerTarget | None = None
    constraints: Constraints | None = None
    queries: int | None = field(default=None, kw_only=True)
    answers: Answers = field(default="scores", kw_only=True)

    def __post_init__(self) -> None:
        self._check_queries()
        if self.per_target is not None:
            object.__setattr__(self, "per_target", parsed_per_target(self.per_target))
        given = (self.edges is not None) + (self.edge_ratio is not None)
        if given != 1 and not (given == 0 and self.per_target is not None):
            raise DataError("a modification needs either edges or edge_ratio, not both and not neither")
        for name in ("edges", "edge_ratio", "per_node", "feature_nodes"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise DataError(f"{name} is {value}, but must not be negative")
        if not set(self.allow) <= {"add", "drop"} or not self.allow:
            raise DataError(f"allow is {sorted(self.allow)}, but 'add', 'drop' or both are needed")
        isolate: Any = self.allow_isolate
        if not isinstance(isolate, bool):  # "no" would be true
            raise DataError(f"allow_isolate is {isolate!r}, but true or false is needed")
        if self.feature_nodes and self.feature_range is None:
            raise DataError("feature_nodes needs a feature_range, for instance the dataset's own")
        if self.feature_range is not None:
            _check_limits(self.feature_range)

    @classmethod
    def preset(cls, dataset: str, targets: int = 0, feature_range: tuple[float, float] | None = None) -> Modification:
        """The fraction of edges that the GRB benchmark lets an attacker change, 5 % for every dataset.

        Args:
            dataset: Dataset whose feature range (Table 12) is used.
            targets: Number of attacked nodes; the features of 5 % of that number, or of one node, may change too.
            feature_range: Feature range of a dataset that the papers do not have; without a range no feature may change.
        """
        row = preset("modification")["default"]
        if feature_range is None:
            try:
                low, high = injection_table(dataset)["feature_range"]
                feature_range = (low, high)
            except UnknownName:
                targets = 0
        nodes = max(math.floor(row["feature_ratio"] * targets + 1e-9), min(targets, 1))
        return cls(edge_ratio=row["edge_ratio"], feature_nodes=nodes, feature_range=feature_range)

    def budget(self, graph: Graph, targets: Tensor | None = None) -> int:
        """Edges that may change in this graph; of its nodes, ``targets`` are attacked, or all."""
        if self.per_target is not None:
            ids = None if targets is None else targets.unique()
            limits = int(target_limits(self.per_target, graph, ids).sum())
            return limits if self._whole is None else min(limits, self._whole.budget(graph))
        if self.edges is not None:
            return self.edges
        assert self.edge_ratio is not None
        # the small term makes 5 % of 100 edges 5 although the product may be a hair below
        return math.floor(self.edge_ratio * graph.num_edges + 1e-9)

    @property
    def _whole(self) -> Modification | None:
        """The limits of the whole graph alone; None if there are none."""
        return None if self.edges is None and self.edge_ratio is None else replace(self, per_target=None)

    def check(self, graph: Graph, edit: GraphEdit, targets: Tensor | None = None) -> dict[str, float]:
        """Refuse an edit beyond the limits, as :meth:`Injection.check` does; otherwise return the budget used."""
        if graph.ptr is not None:
            return check_each(self, graph, edit, targets)
        _check_basis(graph, edit)
        if edit.num_new:
            raise BudgetError(f"{edit.num_new} nodes are injected, but a modification may inject none")
        for kind, pairs in (("add", edit.add), ("drop", edit.drop)):
            if pairs.numel() and kind not in self.allow:
                allowed = sorted(self.allow)
                raise BudgetError(f"{pairs.shape[1]} edges: {kind}, but the threat model allows only {allowed}")
        _check_edges_exist(graph, edit)
        count, budget = edit.add.shape[1] + edit.drop.shape[1], self.budget(graph, targets)
        if count > budget:
            raise BudgetError(f"{count} edges are changed, but the threat model allows {budget}")
        if self.per_node is not None and count:
            self._check_per_node(graph, edit)
        if self.per_target is not None:
            check_per_target(self.per_target, graph, edit, targets)
        if not self.allow_isolate and edit.drop.numel():
            _check_isolated(graph, edit)
        touched = 0 if edit.set_ids is None else len(edit.set_ids)
        if touched > self.feature_nodes:
            raise BudgetError(
                f"features of {touched} nodes are changed, but the threat model allows {self.feature_nodes}"
            )
        if edit.set_x is not None and self.feature_range is not None:
            _check_range(edit.set_x, self.feature_range, "a changed feature")
        more = {} if self.constraints is None else self.constraints.check(graph, edit, targets)
        return {"edges": count, "feature_nodes": touched, **more}

    def for_graph(self, graph: Graph) -> Modification:
        """The limits for one graph of a collection: the fraction of its edges, rounded down but never below one."""
        if not self.edge_ratio:
            return self
        assert self._whole is not None
        return replace(self, edges=max(1, self._whole.budget(graph)), edge_ratio=None)

    def node_limits(self, graph: Graph, targets: Tensor | None = None) -> Tensor | None:
        """Edges that may change at every node, [n]; None for no such limit.

        Where targets have limits of their own, an edge between two of them is counted at both here, so that whoever keeps to
        these limits keeps to those of :meth:`check`.
        """
        if self.per_node is None and self.per_target is None:
            return None
        limits = graph.adj.degrees.double() * (math.inf if self.per_node is None else self.per_node)
        limits = (limits + 1e-9).nan_to_num(graph.n, posinf=graph.n).floor().long()
        if self.per_target is not None:
            ids = slice(None) if targets is None else targets
            limits[ids] = limits[ids].minimum(target_limits(self.per_target, graph, targets))
        return limits

    def _check_per_node(self, graph: Graph, edit: GraphEdit) -> None:
        counts = _ends(edit.add, graph.n) + _ends(edit.drop, graph.n)
        limits = replace(self, per_target=None, edges=0, edge_ratio=None).node_limits(graph)
        assert limits is not None
        over = (counts > limits).nonzero().flatten()
        if len(over):
            node = int(over[0])
            count, limit = int(counts[node]), int(limits[node])
            raise BudgetError(f"{count} edges of node {node} are changed, but its limit is {limit}")


Threat = Injection | Modification
# what is used of a limit per node is the largest over all graphs of a collection, not the sum
_MAXIMA = ("most_edges_per_node",)
_KINDS: dict[str, type[Threat]] = {"injection": Injection, "modification": Modification}


def threat_from_dict(values: Mapping[str, Any]) -> Threat:
    """A threat model from the values of its ``to_dict()``; anything else is refused.

    >>> threat_from_dict({"kind": "injection", "nodes": 3, "edges_per_node": 2, "feature_range": [0, 1]})
    Injection(nodes=3, edges_per_node=2, feature_range=(0, 1))
    """
    try:
        given = dict(values)
    except (TypeError, ValueError):
        given = {}
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise DataError(f"no threat model '{kind}'; 'injection' or 'modification' is needed")
    try:
        if given.get("feature_range") is not None:
            low, high = given["feature_range"]
            given["feature_range"] = (low, high)
        if isinstance(given.get("per_target"), list):
            given["per_target"] = tuple(given["per_target"])
        if "allow" in given:
            given["allow"] = frozenset(given["allow"])
        if isinstance(given.get("constraints"), Mapping):
            given["constraints"] = Constraints.from_dict(given["constraints"])
        return _KINDS[kind](**given)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the threat model '{kind}' does not take these values: {error}") from None


def change_threat(threat: Threat, changes: Mapping[str, Any]) -> Threat:
    """Return the threat model with other limits; unknown ones are refused."""
    if not changes:
        return threat
    known = [each.name for each in fields(threat)]
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise UnknownName("limit", unknown[0], known, advice=f"Allowed: {', '.join(known)}.")
    values = threat.to_dict()
    if {"edges", "per_target"} & changes.keys():  # instead of a fraction of them
        values.pop("edge_ratio", None)
    return threat_from_dict({**values, **changes})


def threat_within(theirs: Threat, ours: Threat) -> bool:
    """Whether every edit that one threat model allows is allowed by another.

    >>> threat_within(Injection(1, 5, (0.0, 1.0)), Injection(9, 5, (0.0, 1.0)))
    True
    """
    if type(theirs) is not type(ours):
        return False
    # of no changed feature the range does not matter
    unused = {"feature_range"} if isinstance(theirs, Modification) and not theirs.feature_nodes else set()
    unused |= {"queries", "answers"}  # they limit the way to an edit, not the edit
    names = [each.name for each in fields(theirs) if each.name not in unused]
    return all(_limit_within(name, getattr(theirs, name), getattr(ours, name)) for name in names)


def _limit_within(name: str, theirs: Any, ours: Any) -> bool:
    if name == "allow":
        return set(theirs) <= set(ours)
    if name == "constraints":  # which of two is narrower is not always clear
        return bool(ours is None or theirs == ours)
    if ours is None or theirs is None:  # None is no limit
        return ours is None
    if name == "feature_range":
        return bool(ours[0] <= theirs[0] and theirs[1] <= ours[1])
    if name == "per_target":
        both = [(0.0, each) if isinstance(each, int) else each for each in (theirs, ours)]
        return all(own <= other for own, other in zip(*both, strict=True))
    return bool(theirs <= ours)


def check_each(threat: Threat, graph: Graph, edit: GraphEdit, targets: Tensor | None) -> dict[str, float]:
    """Refuse an edit of a collection that breaks the limits in one of its graphs, joins two, or touches one that is no target.

    Args:
        threat: The limits of every graph.
        graph: The collection.
        edit: An edit of the collection.
        targets: Ids of the graphs under attack; None for all.
    """
    import torch

    from grb.graph import Graph, GraphEdit
    from grb.graph.batching import get_example, unbatch_edit

    _check_basis(graph, edit)
    try:
        parts = unbatch_edit(graph, edit)
    except DataError as error:
        raise BudgetError(str(error)) from None
    allowed = None if targets is None else set(targets.tolist())
    used = []
    for number, part in parts.items():
        if allowed is not None and number not in allowed:
            raise BudgetError(
                f"graph {number} of the collection is changed, but it is not among the {len(allowed)} targets"
            )
        own = get_example(graph, number)
        try:
            used.append(threat.for_graph(own).check(own, part, torch.arange(own.n)))
        except BudgetError as error:
            raise BudgetError(f"in graph {number} of the collection {error}") from None
    nothing = threat.check(Graph(graph.adj, graph.x), GraphEdit(n=graph.n))
    spent: dict[str, float] = {
        name: (max if name in _MAXIMA else sum)([zero, *(each[name] for each in used)])
        for name, zero in nothing.items()
    }
    return {"graphs": len(used), **spent, "most_edges_per_graph": max((each["edges"] for each in used), default=0)}


def injected_degrees(edit: GraphEdit) -> Tensor:
    """Edges of every injected node, [new]; one between two injected nodes counts for both."""
    ends = edit.add.flatten()
    return (ends[ends >= edit.base] - edit.base).bincount(minlength=edit.num_new)


def _ends(pairs: Tensor, n: int) -> Tensor:
    """Number of the given edges at every node, [n] from [2, m]."""
    return pairs.flatten().bincount(minlength=n)


def injection_table(dataset: str) -> dict[str, Any]:
    """A row of the GRB paper's Tables 5 and 12."""
    tables = preset("injection")
    # a fresh graph keeps the limits of the dataset that it was cut from
    name = dataset.removesuffix("-fresh")
    name = {"synth-cora": "grb-cora"}.get(name, name)
    if name not in tables:
        raise UnknownName("preset of limits for dataset", dataset, tables, advice="Give a custom Injection(...).")
    return dict(tables[name])


def _check_basis(graph: Graph, edit: GraphEdit) -> None:
    if edit.n != graph.n:
        raise BudgetError(f"the edit is for a graph of {edit.n} nodes, but the attacked one has {graph.n}")
    if edit.cut:
        raise BudgetError(f"{edit.cut} nodes are removed, but no attack may remove any")
    for rows in (edit.new_x, edit.set_x):
        if rows is not None and rows.shape[1] != graph.num_features:
            raise BudgetError(f"the edit has {rows.shape[1]} features per node, but the graph has {graph.num_features}")


def _check_edges_exist(graph: Graph, edit: GraphEdit) -> None:
    present, gone = graph.adj.has(edit.add), ~graph.adj.has(edit.drop)
    if present.any():
        raise BudgetError(f"edge {edit.add[:, present][:, 0].tolist()} is added, but the graph has it already")
    if gone.any():
        raise BudgetError(f"edge {edit.drop[:, gone][:, 0].tolist()} is dropped, but the graph has no such edge")


def _check_isolated(graph: Graph, edit: GraphEdit) -> None:
    lost, gained = _ends(edit.drop, graph.n), _ends(edit.add, graph.n)
    before = graph.adj.degrees.long()
    isolated = ((before > 0) & (before - lost + gained == 0)).nonzero().flatten()
    if len(isolated):
        node = int(isolated[0])
        raise BudgetError(f"node {node} loses all its neighbours, but the threat model has allow_isolate=False")


def _check_limits(limits: tuple[float, float]) -> None:
    low, high = limits
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise DataError(f"the feature range is [{low}, {high}], but a finite lower and upper end are needed")


def _check_range(rows: Tensor, limits: tuple[float, float], what: str) -> None:
    """Refuse a feature outside the limits as float32 holds them; nothing beyond that rounding is forgiven."""
    import torch

    if not rows.numel():
        return
    if not rows.isfinite().all():
        raise BudgetError(f"{what} is NaN or infinite, but must be finite")
    # features are float32, and so is what a clip to the limits gives: 0.94 is 0.93999999762 there
    lowest, highest = (float(end) for end in torch.tensor(limits, dtype=torch.float32))
    low, high = float(rows.min()), float(rows.max())
    if low < lowest or high > highest:
        bad = low if low < lowest else high
        raise BudgetError(f"{what} is {bad:.9g}, but the threat model allows {limits[0]:.9g} to {limits[1]:.9g}")
