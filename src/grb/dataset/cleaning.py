"""Cleaning of raw arrays: whatever can be repaired in more than one way is a named option, and is reported."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
import torch
from torch import Tensor

from grb.dataset.raw_arrays import Array, RawArrays, is_values, sparsify
from grb.dataset.splits import ByDegree, Scheme
from grb.errors import DataError, UnknownName
from grb.graph import CSR, FeatureScale, Graph
from grb.graph.convert import to_scipy
from grb.graph.validate import check_features


@dataclass(frozen=True)
class CleaningOptions:
    """What to do where an input may be read in more than one way; every remedy that is applied is reported.

    Args:
        directed: Edges listed in one direction only: ``symmetrise`` adds the other one, ``mutual`` keeps pairs that are
            listed both ways, ``refuse``.
        weights: Edge weights other than one: ``keep``, ``drop``, ``refuse``.
        loops: Self-loops: ``drop``, ``refuse``; models that want them add their own.
        duplicates: Edges listed twice: ``merge`` (the largest weight stays), ``refuse``.
        components: Several connected components: ``keep`` all, the ``largest``, ``refuse``.
        missing: Features that are NaN or infinite: ``refuse``, ``zero``, ``mean`` (of the column's finite ones).
        split: ``own`` takes the given one and, without one, the difficulties; ``difficulty`` draws the papers' easy,
            medium and hard test nodes in any case.
        seed: Random seed of that draw.
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
    """The allowed values of every option that has a fixed set of them, the default first.

    >>> allowed()["components"]
    ('keep', 'largest', 'refuse')
    """
    hints = get_type_hints(CleaningOptions)
    found = {field.name: get_args(hints[field.name]) for field in fields(CleaningOptions)}
    return {name: options for name, options in found.items() if options and type(None) not in options}


@dataclass(frozen=True)
class Problem:
    """Something about an input that has more than one remedy, and which one was taken.

    Args:
        what: The problem in a few words, with its number.
        count: Number of occurrences.
        choice: What was done.
        option: Name of the cleaning option; empty where there is none.
    """

    what: str
    count: int
    choice: str
    option: str = ""

    @property
    def message(self) -> str:
        """The problem and its remedy, as a dataset's notes say it."""
        return f"{self.what}: {self.option}={self.choice}" if self.option else f"{self.what}: {self.choice}"

    @property
    def others(self) -> tuple[str, ...]:
        """The other allowed values of the option."""
        return tuple(each for each in allowed().get(self.option, ()) if each != self.choice)


class Refused(DataError):
    """An input with a problem that an option refuses."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        others = " or ".join(each for each in allowed()[problem.option] if each != "refuse")
        super().__init__(f"the input has {problem.what}, which {problem.option}=refuse refuses; {others} would go on")


@dataclass(frozen=True, eq=False)
class Cleaned:
    """The result of :func:`clean`.

    Args:
        arrays: What :meth:`grb.dataset.Dataset.from_raw` makes a dataset from.
        raw: The arrays before cleaning.
        options: The options that were applied.
        problems: What was found, and what was done about it.
    """

    arrays: RawArrays
    raw: RawArrays
    options: CleaningOptions
    problems: tuple[Problem, ...]


def clean(raw: RawArrays, options: CleaningOptions | None = None) -> Cleaned:
    """Clean arrays by the options; refuses what has no remedy, and what the options refuse."""
    options = options or CleaningOptions()
    problems = find_problems(raw, options)
    for problem in problems:
        if problem.choice == "refuse":
            raise Refused(problem)
    notes = [*raw.notes, *(problem.message for problem in problems)]
    edges, weights, carried = _directed(raw, options)
    x = _features(raw, options)
    graph, _ = replace(raw, edges=edges, weights=weights, x=x, edge_features=carried).graph()
    split, scheme = raw.checked_split(), raw.scheme
    if options.components == "largest" and any(problem.option == "components" for problem in problems):
        kept = largest_component(graph)
        graph, scheme = graph.subgraph(kept), None
        raw = replace(raw, ids=raw.names.subset(kept).nodes)
        split = {part: np.flatnonzero(np.isin(kept.numpy(), ids)) for part, ids in split.items()}
    if options.feat_norm is not None:
        dense = graph.x @ torch.eye(graph.num_features) if isinstance(graph.x, CSR) else graph.x
        graph = graph.with_features(FeatureScale.fit(options.feat_norm, dense).apply(dense))
        notes.append(f"features normalised by {options.feat_norm}")
    splits = [split] if split else []
    cleaned = replace(
        raw, n=graph.n, edges=graph.adj, y=graph.y, weights=None, x=graph.x, splits=splits, edge_features=None
    )
    if scheme is None or options.split != "own":
        scheme = _scheme(cleaned, graph, options)
    notes.append(f"split: {scheme.description}")
    return Cleaned(replace(cleaned, notes=notes, scheme=scheme), raw, options, problems)


def find_problems(raw: RawArrays, options: CleaningOptions) -> tuple[Problem, ...]:
    """Everything about the arrays that has more than one remedy, with the one that the options choose."""
    found = edge_facts(raw)
    problems = [
        Problem(_counted(found["self_loops"], "self-loop"), found["self_loops"], options.loops, "loops"),
        Problem(
            f"{_counted(found['duplicates'], 'edge')} listed again",
            found["duplicates"],
            options.duplicates,
            "duplicates",
        ),
        Problem(
            f"{found['one_way']} of {_counted(found['pairs'], 'edge')} listed in one direction only",
            found["one_way"],
            options.directed,
            "directed",
        ),
    ]
    if raw.weights is not None:
        count = int((np.asarray(raw.weights) != 1).sum())
        problems.append(
            Problem(f"{_counted(count, 'edge')} with weights other than one", count, options.weights, "weights")
        )
    absent = missing_features(raw)
    problems.append(Problem(f"{_counted(absent, 'feature value')} NaN or infinite", absent, options.missing, "missing"))
    if raw.x is None:
        problems.append(Problem("no features", 1, "a constant one for every node"))
    if raw.sizes is None:
        count = _components(raw, options)
        problems.append(Problem(f"{count} connected components", max(count - 1, 0), options.components, "components"))
        hidden = int((np.asarray(raw.y) == -1).sum()) if np.ndim(raw.y) == 1 and _whole(raw.y) else 0
        problems.append(
            Problem(f"{_counted(hidden, 'node')} without a label", hidden, "kept, but in no part of a split")
        )
    return tuple(problem for problem in problems if problem.count)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def edge_facts(raw: RawArrays) -> dict[str, int]:
    """Counts of the edges as they are listed: ``listed``, ``self_loops``, ``duplicates``, ``pairs``, ``one_way``."""
    edges = raw.edge_index
    if edges.ndim != 2 or edges.shape[0] != 2 or (edges.size and edges.dtype.kind not in "iu"):
        raise DataError(f"edges have shape {list(edges.shape)} of {edges.dtype}, but [2, m] of integers are needed")
    if edges.size and (edges.min() < 0 or edges.max() >= raw.n):
        bad = edges[(edges < 0) | (edges >= raw.n)][0]
        raise DataError(f"an edge names node {bad}, but the graph has nodes 0 to {raw.n - 1}")
    u, v = edges.astype(np.int64, copy=False)
    loops = u == v
    u, v = u[~loops], v[~loops]
    keys = _distinct(u * raw.n + v)
    u, v = keys // max(raw.n, 1), keys % max(raw.n, 1)
    # a pair that is listed both ways comes twice among unordered pairs
    mutual = len(keys) - len(_distinct(np.minimum(u, v) * raw.n + np.maximum(u, v)))
    one_way = len(keys) - 2 * mutual
    return {
        "listed": edges.shape[1],
        "self_loops": int(loops.sum()),
        "duplicates": edges.shape[1] - int(loops.sum()) - len(keys),
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


def missing_features(raw: RawArrays) -> int:
    """Features that are NaN or infinite."""
    if raw.x is None or isinstance(raw.x, CSR) or raw.x.dtype.kind != "f":
        return 0
    return int((~np.isfinite(raw.x)).sum())


def largest_component(graph: Graph) -> Tensor:
    """Nodes of the largest connected component, ascending; of equal ones that with the smallest node."""
    from scipy.sparse.csgraph import connected_components

    owner = connected_components(to_scipy(graph.adj), directed=False)[1]
    return torch.from_numpy(np.flatnonzero(owner == np.bincount(owner).argmax()))


def _components(raw: RawArrays, options: CleaningOptions) -> int:
    """Number of connected components of the graph that the other options make."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not raw.n:
        return 0
    u, v = _directed(raw, options)[0]
    matrix = coo_array((np.ones(len(u), dtype=np.int8), (u, v)), shape=(raw.n, raw.n)).tocsr()
    return int(connected_components(matrix, directed=False, return_labels=False))


def _directed(raw: RawArrays, options: CleaningOptions) -> tuple[Array, Array | None, Array | None]:
    """Edges, weights and edge features after the options on weights and directions."""
    edges = raw.edge_index.astype(np.int64, copy=False)
    weights = None if options.weights == "drop" or raw.weights is None else np.asarray(raw.weights)
    carried = None if raw.edge_features is None else np.asarray(raw.edge_features)
    if carried is not None and len(carried) != edges.shape[1]:
        raise DataError(f"edge features have shape {list(carried.shape)}, but [{edges.shape[1]}, f] is needed")
    if options.directed == "mutual":
        keep = _among(edges[1] * raw.n + edges[0], _distinct(edges[0] * raw.n + edges[1]))
        kept = [None if each is None else each[keep] for each in (weights, carried)]
        return edges[:, keep], kept[0], kept[1]
    return edges, weights, carried


def _features(raw: RawArrays, options: CleaningOptions) -> Tensor | CSR:
    if raw.x is None:
        return torch.ones(raw.n, 1)
    if isinstance(raw.x, CSR):
        return raw.x
    x = raw.x
    bad = ~np.isfinite(x) if x.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if bad.any():
        x = np.where(bad, 0.0, x).astype(np.float32)
        if options.missing == "mean":
            means = x.sum(axis=0, dtype=np.float64) / np.maximum((~bad).sum(axis=0), 1)
            x = np.where(bad, means.astype(np.float32), x)
    return sparsify(check_features(x, raw.n))


def _whole(y: Any) -> bool:
    """Whether labels are whole numbers, so that -1 is a hidden one and no value."""
    array = np.asarray(y)
    return array.dtype.kind != "f" or bool((array == np.floor(array)).all())


def _scheme(raw: RawArrays, graph: Graph, options: CleaningOptions) -> Scheme:
    assert graph.y is not None
    if graph.ptr is not None and options.split == "difficulty":
        raise DataError(
            "split=difficulty ranks the nodes of one graph by their degree, but this is a collection of graphs"
        )
    if graph.ptr is not None or (raw.splits and options.split == "own"):
        own = raw.with_own_scheme().scheme
        assert own is not None
        return own
    classes = graph.y.dim() == 1 and not is_values(graph.y)
    labelled = (graph.y >= 0).nonzero().flatten() if classes else torch.arange(graph.n)
    return ByDegree(graph.adj.degrees.long(), labelled, options.seed)
