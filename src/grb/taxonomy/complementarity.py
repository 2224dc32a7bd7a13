"""A view without training: whether features and structure of a graph put its nodes at the same distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from grb.taxonomy.profile import Array

if TYPE_CHECKING:
    from grb.graph import Graph

# rows of the distance matrices that are looked at in a component with more nodes, and graphs of a collection
ROWS, GRAPHS = 300, 500
# edges that the searches from these rows may pass in all
MOST_EDGES = 3 * 10**8
BLOCK = 64
# searches from the farthest node for a farther one
SWEEPS = 4


def complementarity(graph: Graph, *, rows: int = ROWS, graphs: int = GRAPHS, seed: int = 0) -> float:
    r"""Mode complementarity: the mean difference between normalised distances in the features and along edges.

    .. math:: \frac{1}{n^2 - n} \sum_{u \ne v}
              \Big| \frac{\lVert x_u - x_v \rVert}{\max \lVert x - x' \rVert} - \frac{d(u, v)}{\max d} \Big|

    in every connected component, their mean weighted by the number of nodes, and its mean over the graphs of a collection. 0
    says that features repeat the structure; the larger, the more each has to say. In components with more than ``rows`` nodes,
    that many rows of the distance matrices are drawn and the diameters are sought from their farthest nodes; of collections
    ``graphs`` are drawn. So nothing of size n x n is made.

    Args:
        graph: Graph or collection.
        rows: Number of rows that are looked at in a large component.
        graphs: Number of graphs that are looked at in a large collection.
        seed: Random seed of both draws.

    Differs from the reference code: its documentation says 0.5 for the path of four nodes with features 3, 1, 2, 0, but its
    formula, and this function, give 2/9.

    References:
        Coupette et al., *No Metric to Rule Them All: Toward Principled Evaluations of Graph-Learning Datasets*, ICML 2025.

    >>> import torch
    >>> from grb.graph import Graph, adjacency_from_edges
    >>> path = adjacency_from_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)[0]
    >>> complementarity(Graph(path, torch.tensor([[0.0], [1.0], [2.0], [3.0]])))
    0.0
    >>> round(complementarity(Graph(path, torch.tensor([[3.0], [1.0], [2.0], [0.0]]))), 4)
    0.2222
    """
    generator = np.random.default_rng(seed)
    matrix = _edges(graph)
    features = _features(graph)
    bounds = np.array([0, graph.n]) if graph.ptr is None else graph.ptr.cpu().numpy()
    chosen = np.arange(len(bounds) - 1)
    if len(chosen) > graphs:
        chosen = np.sort(generator.choice(chosen, graphs, replace=False))
    found = []
    for number in chosen:
        low, high = int(bounds[number]), int(bounds[number + 1])
        if high > low:
            found.append(_of_graph(matrix[low:high, low:high], features[low:high], rows, generator))
    return float(np.mean(found)) if found else 0.0


def _edges(graph: Graph) -> Any:
    from scipy.sparse import csr_matrix

    pattern = graph.adj.pattern
    indices = pattern.indices.cpu().numpy()
    return csr_matrix((np.ones(len(indices)), indices, pattern.indptr.cpu().numpy()), shape=(graph.n, graph.n))


def _features(graph: Graph) -> Any:
    """Features as a scipy matrix or an array, in double precision, so that equal rows have distance 0."""
    from scipy.sparse import csr_matrix

    from grb.graph import CSR

    if isinstance(graph.x, CSR):
        pattern, values = graph.x.pattern, graph.x.values
        indices = pattern.indices.cpu().numpy()
        own = np.ones(len(indices)) if values is None else values.detach().cpu().numpy().astype(np.float64)
        return csr_matrix((own, indices, pattern.indptr.cpu().numpy()), shape=tuple(graph.x.shape))
    return graph.x.detach().cpu().numpy().astype(np.float64)


def _of_graph(matrix: Any, features: Any, rows: int, generator: np.random.Generator) -> float:
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(matrix, directed=False)
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=count)
    starts = np.cumsum(sizes) - sizes
    scores = np.zeros(count)
    for component in np.flatnonzero(sizes > 1):
        nodes = order[starts[component] : starts[component] + sizes[component]]
        own = matrix[nodes][:, nodes] if count > 1 else matrix
        scores[component] = _of_component(own, features[nodes], rows, generator)
    return float((scores * sizes).sum() / sizes.sum())


def _of_component(matrix: Any, features: Any, rows: int, generator: np.random.Generator) -> float:
    from scipy.sparse.csgraph import shortest_path

    n = matrix.shape[0]
    rows = min(rows, max(MOST_EDGES // max(matrix.nnz, 1), 10))
    sources = np.arange(n) if n <= rows else np.sort(generator.choice(n, rows, replace=False))
    squares = _squares(features)

    def in_features(nodes: Any) -> Array:
        return _distances(features, squares, nodes)

    def in_edges(nodes: Any) -> Array:
        return np.asarray(shortest_path(matrix, directed=False, unweighted=True, indices=nodes))

    blocks = [sources[start : start + BLOCK] for start in range(0, len(sources), BLOCK)]
    parts = [(in_features(own).astype(np.float32), in_edges(own).astype(np.float32)) for own in blocks]
    widest, longest = (
        _diameter([part[k] for part in parts], None if len(sources) == n else search)
        for k, search in enumerate((in_features, in_edges))
    )
    scale = widest if widest > 0 else 1.0
    total = sum(float(np.abs(apart / scale - steps / longest).sum(dtype=np.float64)) for apart, steps in parts)
    return total / (len(sources) * (n - 1))


def _diameter(rows: list[Any], search: Callable[[Any], Array] | None) -> float:
    """The largest distance among some rows; with ``search``, also among the rows of the nodes that are farthest in turn."""
    largest = max(rows, key=lambda each: float(each.max()))
    best = float(largest.max())
    if search is None:
        return best
    node = int(np.unravel_index(int(largest.argmax()), largest.shape)[1])
    for _ in range(SWEEPS):
        row = search(np.array([node]))[0]
        node, best = int(row.argmax()), max(best, float(row.max()))
    return best


def _squares(features: Any) -> Array:
    square = features.multiply(features) if hasattr(features, "multiply") else np.square(features)
    return np.asarray(square.sum(1)).ravel()


def _distances(features: Any, squares: Array, rows: Any) -> Array:
    """Euclidean distances from some nodes to all, [rows, n]."""
    products = features[rows] @ features.T
    products = products.toarray() if hasattr(products, "toarray") else np.asarray(products)
    found = np.sqrt(np.maximum(squares[rows][:, None] + squares[None] - 2 * products, 0.0))
    found[np.arange(len(rows)), rows] = 0.0
    # what rounding leaves of equal rows is no distance
    found[found < 1e-7 * np.sqrt(max(float(squares.max(initial=0.0)), 1e-300))] = 0.0
    return np.asarray(found)
