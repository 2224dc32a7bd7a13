"""From arrays as given to a dataset: whatever has more than one remedy is a choice with a name, and is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
import torch
from torch import Tensor

from grb.dataset import raw
from grb.dataset.dataset import Dataset
from grb.dataset.given import Given, checked_split
from grb.dataset.partition import given_parts
from grb.dataset.scheme import ByDegree, Folds, Predefined, Random, Scheme
from grb.errors import DataError, UnknownName
from grb.graph import CSR, FeatureScale, Graph, adjacency_from_edges
from grb.graph.validate import check_features, check_labels, check_ptr

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Choices:
    """What to do where an input may be read in more than one way.

    Args:
        directed: Edges listed in one direction only: ``symmetrise`` adds the other one, ``mutual`` keeps pairs that are
            listed both ways, ``refuse``.
        weights: Edge weights other than one: ``keep``, ``drop``, ``refuse``.
        loops: Self-loops: ``drop``, ``refuse``; models that want them add their own.
        duplicates: Edges listed twice: ``merge`` (the largest weight stays), ``refuse``.
        components: Several of them: ``keep`` all, the ``largest``, ``refuse``.
        missing: Features that are NaN or infinite: ``refuse``, ``zero``, ``mean`` (of the column's finite ones).
        split: ``own`` takes the given one and, without one, the difficulties; ``difficulty`` draws the papers' easy,
            medium and hard test nodes in any case.
        seed: Of that draw.
        feat_norm: Normalisation of features, as in :class:`~grb.dataset.Dataset`; None leaves them as they are.
    """

    directed: Literal["symmetrise", "mutual", "refuse"] = "symmetrise"
    weights: Literal["keep", "drop", "refuse"] = "keep"
    loops: Literal["drop", "refuse"] = "drop"
    duplicates: Literal["merge", "refuse"] = "merge"
    components: Literal["keep", "largest", "refuse"] = "keep"
    missing: Literal["refuse", "zero", "mean"] = "refuse"
    split: Literal["own", "difficulty"] = "own"
    seed: int = 0
    feat_norm: str | None = None

    def __post_init__(self) -> None:
        for name, options in allowed().items():
            if getattr(self, name) not in options:
                raise UnknownName(name, str(getattr(self, name)), options, advice=f"Allowed: {', '.join(options)}.")


def allowed() -> dict[str, tuple[str, ...]]:
    """The options of every choice that has a few, the default first.

    >>> allowed()["components"]
    ('keep', 'largest', 'refuse')
    """
    hints = get_type_hints(Choices)
    found = {field.name: get_args(hints[field.name]) for field in fields(Choices)}
    return {name: options for name, options in found.items() if options and type(None) not in options}


@dataclass(frozen=True)
class Problem:
    """Something about an input that has more than one remedy, and which one was taken.

    Args:
        what: In words, with its number.
        count: How often.
        choice: What was done.
        option: Name of the choice; empty where there is none.
    """

    what: str
    count: int
    choice: str
    option: str = ""

    @property
    def words(self) -> str:
        """For a dataset's notes."""
        return f"{self.what}: {self.option}={self.choice}" if self.option else f"{self.what}: {self.choice}"

    @property
    def others(self) -> tuple[str, ...]:
        """What could have been chosen instead."""
        return tuple(each for each in allowed().get(self.option, ()) if each != self.choice)


class Refused(DataError):
    """What an input has, a choice refuses."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        others = " or ".join(each for each in allowed()[problem.option] if each != "refuse")
        super().__init__(f"the input has {problem.what}, which {problem.option}=refuse refuses; {others} would go on")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A dataset and what was found on the way to it."""

    dataset: Dataset
    given: Given
    choices: Choices
    problems: tuple[Problem, ...]


def prepare(given: Given, choices: Choices | None = None) -> Prepared:
    """A dataset from arrays as given, by the choices; refuses what has no remedy or is to be refused."""
    choices = choices or Choices()
    problems = look(given, choices)
    for problem in problems:
        if problem.choice == "refuse":
            raise Refused(problem)
    notes = [*given.notes, *(problem.words for problem in problems)]
    graph = _graph(given, choices)
    split, own = checked_split(given), given.scheme
    if choices.components == "largest" and any(problem.option == "components" for problem in problems):
        kept = largest_component(graph)
        graph, own = graph.subgraph(kept), None
        split = {part: np.flatnonzero(np.isin(kept.numpy(), ids)) for part, ids in split.items()}
    if choices.feat_norm is not None:
        if isinstance(graph.x, CSR):
            graph = graph.with_features(graph.x @ torch.eye(graph.num_features))
        assert isinstance(graph.x, Tensor)
        graph = graph.with_features(FeatureScale.fit(choices.feat_norm, graph.x).apply(graph.x))
        notes.append(f"features normalised by {choices.feat_norm}")
    task: Literal["node", "graph"] = "node"
    if graph.ptr is not None and graph.y is not None and len(graph.y) == graph.num_graphs:
        task = "graph"
    scheme = own if own is not None and choices.split == "own" else _scheme(graph, split, choices)
    notes.append(f"split: {scheme.words}")
    dataset = Dataset.of_graph(graph, scheme, name=given.name, task=task, notes=notes)
    return Prepared(dataset, given, choices, problems)


def look(given: Given, choices: Choices) -> tuple[Problem, ...]:
    """Everything about the arrays that has more than one remedy, with the one that the choices take."""
    found = edge_facts(given)
    told = [
        Problem(_counted(found["self_loops"], "self-loop"), found["self_loops"], choices.loops, "loops"),
        Problem(
            f"{_counted(found['duplicates'], 'edge')} listed again",
            found["duplicates"],
            choices.duplicates,
            "duplicates",
        ),
        Problem(
            f"{found['one_way']} of {_counted(found['pairs'], 'edge')} listed in one direction only",
            found["one_way"],
            choices.directed,
            "directed",
        ),
    ]
    if given.weights is not None:
        count = int((np.asarray(given.weights) != 1).sum())
        told.append(
            Problem(f"{_counted(count, 'edge')} with weights other than one", count, choices.weights, "weights")
        )
    absent = missing_features(given)
    told.append(Problem(f"{_counted(absent, 'feature value')} NaN or infinite", absent, choices.missing, "missing"))
    if given.x is None:
        told.append(Problem("no features", 1, "a constant one for every node"))
    if given.sizes is None:
        count = _components(given, choices)
        told.append(Problem(f"{count} connected components", max(count - 1, 0), choices.components, "components"))
        hidden = int((np.asarray(given.y) == -1).sum()) if np.ndim(given.y) == 1 else 0
        told.append(Problem(f"{_counted(hidden, 'node')} without a label", hidden, "kept, but in no part of a split"))
    return tuple(problem for problem in told if problem.count)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def edge_facts(given: Given) -> dict[str, int]:
    """Counts of the edges as they are listed: ``listed``, ``self_loops``, ``duplicates``, ``pairs``, ``one_way``."""
    edges = np.asarray(given.edges)
    if edges.ndim != 2 or edges.shape[0] != 2 or (edges.size and edges.dtype.kind not in "iu"):
        raise DataError(f"edges have shape {list(edges.shape)} of {edges.dtype}, but [2, m] of integers are needed")
    if edges.size and (edges.min() < 0 or edges.max() >= given.n):
        bad = edges[(edges < 0) | (edges >= given.n)][0]
        raise DataError(f"an edge names node {bad}, but the graph has nodes 0 to {given.n - 1}")
    u, v = edges.astype(np.int64, copy=False)
    loops = u == v
    u, v = u[~loops], v[~loops]
    keys = _distinct(u * given.n + v)
    both = _among(keys % max(given.n, 1) * given.n + keys // max(given.n, 1), keys)
    mutual = int(both.sum()) // 2
    one_way = len(keys) - int(both.sum())
    return {
        "listed": edges.shape[1],
        "self_loops": int(loops.sum()),
        "duplicates": len(u) - len(keys),
        "pairs": mutual + one_way,
        "one_way": one_way,
    }


def _distinct(keys: Array) -> Array:
    """Ascending and each once; by sorting, because np.unique hashes since numpy 2.3, which is slower by far here."""
    keys = np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys


def _among(keys: Array, known: Array) -> Array:
    """Whether each key is one of ``known``, which ascend."""
    if not len(known):
        return np.zeros(len(keys), dtype=bool)
    return np.asarray(known[np.searchsorted(known, keys).clip(max=len(known) - 1)] == keys)


def missing_features(given: Given) -> int:
    """Features that are NaN or infinite."""
    if given.x is None or isinstance(given.x, CSR) or given.x.dtype.kind != "f":
        return 0
    return int((~np.isfinite(given.x)).sum())


def largest_component(graph: Graph) -> Tensor:
    """Nodes of the largest connected component, ascending; of equal ones that with the smallest node."""
    owner = _owners(graph)
    return torch.from_numpy(np.flatnonzero(owner == np.bincount(owner).argmax()))


def _owners(graph: Graph) -> Array:
    from scipy.sparse.csgraph import connected_components

    from grb.graph.convert import to_scipy

    return np.asarray(connected_components(to_scipy(graph.adj), directed=False)[1])


def _components(given: Given, choices: Choices) -> int:
    """Of the graph that the other choices make."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not given.n:
        return 0
    u, v = _directed(given, choices)[0]
    matrix = coo_array((np.ones(len(u), dtype=np.int8), (u, v)), shape=(given.n, given.n)).tocsr()
    return int(connected_components(matrix, directed=False, return_labels=False))


def _directed(given: Given, choices: Choices) -> tuple[Array, Array | None]:
    """Edges and weights after the choices of weights and directions."""
    edges = np.asarray(given.edges).astype(np.int64, copy=False)
    weights = None if choices.weights == "drop" or given.weights is None else np.asarray(given.weights)
    if choices.directed == "mutual":
        keep = _among(edges[1] * given.n + edges[0], _distinct(edges[0] * given.n + edges[1]))
        return edges[:, keep], None if weights is None else weights[keep]
    return edges, weights


def _graph(given: Given, choices: Choices) -> Graph:
    edges, weights = _directed(given, choices)
    adj, _ = adjacency_from_edges(edges, given.n, values=weights, mode="canonicalise", directed=True)
    ptr = None
    if given.sizes is not None:
        ptr = check_ptr(np.concatenate([[0], np.cumsum(given.sizes)]), given.n)
    count = given.n if ptr is None or len(given.y) == given.n else len(ptr) - 1
    graph = Graph(adj, _features(given, choices), check_labels(given.y, count), ptr)
    graph._check_boundaries()
    return graph


def _features(given: Given, choices: Choices) -> Tensor | CSR:
    if given.x is None:
        return torch.ones(given.n, 1)
    if isinstance(given.x, CSR):
        return given.x
    x = given.x
    bad = ~np.isfinite(x) if x.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if bad.any():
        x = np.where(bad, 0.0, x).astype(np.float32)
        if choices.missing == "mean":
            means = x.sum(axis=0, dtype=np.float64) / np.maximum((~bad).sum(axis=0), 1)
            x = np.where(bad, means.astype(np.float32), x)
    return raw.thin(check_features(x, given.n))


def _scheme(graph: Graph, split: Mapping[str, Array], choices: Choices) -> Scheme:
    if graph.ptr is not None:
        if choices.split == "difficulty":
            raise DataError(
                "split=difficulty ranks the nodes of one graph by their degree, but this is a collection of graphs"
            )
        return Predefined([given_parts(split, graph.num_graphs)]) if split else _whole_graphs(graph)
    if split and choices.split == "own":
        return Predefined([given_parts(split, graph.n)])
    return by_degree_scheme(graph, choices.seed)


def _whole_graphs(graph: Graph) -> Scheme:
    """Folds where graphs are classified; random splits of whole graphs where their nodes are."""
    assert graph.y is not None
    return Folds(graph.y) if len(graph.y) == graph.num_graphs else Random(graph.num_graphs)


def by_degree_scheme(graph: Graph, seed: int = 0) -> ByDegree:
    """The papers' difficulties on the nodes of one graph that have labels."""
    assert graph.y is not None
    labelled = torch.arange(graph.n) if graph.y.dim() > 1 else (graph.y >= 0).nonzero().flatten()
    return ByDegree(graph.adj.degrees.long(), labelled, seed)


def with_difficulty(dataset: Dataset, seed: int = 0) -> Dataset:
    """The same dataset under the papers' easy, medium and hard test nodes instead of its own split."""
    from grb.dataset.given import of_dataset

    choices = replace(Choices(), split="difficulty", seed=seed)
    return prepare(of_dataset(dataset), choices).dataset
