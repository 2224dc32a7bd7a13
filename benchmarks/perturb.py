"""How long do the perturbations take, beside plain networkx and numpy?

    OMP_NUM_THREADS=1 python benchmarks/perturb.py [large small] [--ours] [--plain-fiedler SECONDS] [--repeats 3]

CPU seconds of the fastest run; ``aim`` is what was asked for and ``within`` whether that holds. ``large`` is one graph of
20,000 nodes and 90,000 edges with communities and power-law degrees and 128 features, ``small`` a collection of 1,000
graphs of 10 to 60 nodes with 18 features. The plain version of FiedlerFrag on the large graph is stopped after some
seconds (60 if not given), and the row says how many cuts it had made.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import networkx as nx
import numpy as np
import torch
from common import best, row
from scalable import scale_graph

from grb.graph import Graph, adjacency_from_csr, adjacency_from_edges
from grb.perturb import FiedlerFrag, Frag, FullyConn, HighPass, LowPass, MidPass, RandRewire

AIMS = {
    ("large", "RandRewire"): 0.2,
    **{("large", f"Frag-k{k}"): 0.1 for k in (1, 2, 3)},
    **{("large", f"{band}Pass"): 0.1 for band in ("Low", "Mid", "High")},
    ("large", "FiedlerFrag"): 20.0,
    **{("small", f"{band}Pass"): 0.5 for band in ("Low", "Mid", "High")},
    ("small", "FiedlerFrag"): 3.0,
    **{("small", f"Frag-k{k}"): 0.3 for k in (1, 2, 3)},
    ("small", "FullyConn"): 0.05,
}
ALL = (RandRewire(), Frag(1), Frag(2), Frag(3), LowPass(), MidPass(), HighPass(), FullyConn(), FiedlerFrag())


def large() -> Graph:
    made = scale_graph(20_000, 90_000, 128, 7, 0)
    adj = adjacency_from_csr(made.indptr, made.indices, None, (20_000, 20_000))[0]
    return Graph(adj, torch.from_numpy(np.ascontiguousarray(made.features, dtype=np.float32)))


def small(count: int = 1000) -> Graph:
    rng = np.random.default_rng(0)
    sizes = rng.integers(10, 61, count)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    edges = [start + np.array(nx.gnm_random_graph(int(size), 2 * int(size), seed=i).edges()).T
             for i, (start, size) in enumerate(zip(ptr, sizes, strict=False))]  # fmt: skip
    adj = adjacency_from_edges(np.concatenate(edges, axis=1), int(ptr[-1]))[0]
    x = torch.from_numpy(rng.standard_normal((int(ptr[-1]), 18)).astype(np.float32))
    return Graph(adj, x, torch.arange(count) % 2, torch.from_numpy(ptr))


def as_networkx(graph: Graph) -> list[tuple[nx.Graph, np.ndarray]]:
    """Every graph of a collection with its features, which the plain versions start from."""
    found = []
    for place in range(graph.num_graphs):
        one = graph if graph.ptr is None else graph.graphs(place, place + 1)
        source = nx.Graph()
        source.add_nodes_from(range(one.n))
        source.add_edges_from(one.adj.edges().T.tolist())
        found.append((source, one.x.numpy()))
    return found


def plain_rewire(source: nx.Graph, x: np.ndarray) -> nx.Graph:
    moved = source.copy()
    swaps = moved.number_of_edges() // 4
    if moved.number_of_nodes() > 3 and swaps:
        nx.double_edge_swap(moved, swaps, max_tries=1000 * swaps, seed=0)
    return moved


def plain_frag(k: int) -> Callable[[nx.Graph, np.ndarray], nx.Graph]:
    def cut(source: nx.Graph, x: np.ndarray) -> nx.Graph:
        left, whole = source.copy(), nx.Graph()
        for node in np.random.default_rng(0).permutation(list(source.nodes)).tolist():
            if node in left:
                ball = nx.ego_graph(left, node, radius=k)
                whole.update(ball)
                left.remove_nodes_from(list(ball))
        return whole

    return cut


def plain_hard(band: int) -> Callable[[nx.Graph, np.ndarray], np.ndarray]:
    def keep(source: nx.Graph, x: np.ndarray) -> np.ndarray:
        _, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(source).toarray())
        own = np.array_split(vectors, 3, axis=1)[band]
        return own @ (own.T @ x)

    return keep


def plain_wavelet(band: int) -> Callable[[nx.Graph, np.ndarray], np.ndarray]:
    def keep(source: nx.Graph, x: np.ndarray) -> np.ndarray:
        import scipy.sparse as sp

        adjacency = nx.adjacency_matrix(source).astype(np.float64)
        roots = sp.diags_array(1 / np.sqrt(np.maximum(adjacency.sum(1), 1)))
        t = 0.5 * (sp.eye_array(adjacency.shape[0]) + roots @ adjacency @ roots)
        once = t @ x
        twice = t @ once
        return (twice, once - twice, x - once)[band]

    return keep


def plain_full(source: nx.Graph, x: np.ndarray) -> np.ndarray:
    nodes = list(source.nodes)
    return np.array([(u, v) for u in nodes for v in nodes if u != v]).T


def plain_cuts(source: nx.Graph) -> Iterator[nx.Graph]:
    """One cut after the other at the Fiedler vector that networkx finds."""
    left = source.copy()
    for _ in range(200):
        largest = max(nx.connected_components(left), key=len)
        if len(largest) < 20:
            return
        part = left.subgraph(largest)
        side = dict(zip(part.nodes, nx.fiedler_vector(part, method="tracemin_lu", seed=0) > 0, strict=True))
        left.remove_edges_from([(u, v) for u, v in list(part.edges) if side[u] != side[v]])
        yield left


def plain_versions(size: str) -> dict[str, Callable[[nx.Graph, np.ndarray], object]]:
    bands = plain_wavelet if size == "large" else plain_hard
    found: dict[str, Callable[[nx.Graph, np.ndarray], object]] = {"RandRewire": plain_rewire}
    found |= {f"Frag-k{k}": plain_frag(k) for k in (1, 2, 3)}
    found |= {f"{name}Pass": bands(place) for place, name in enumerate(("Low", "Mid", "High"))}
    if size == "small":
        found["FullyConn"] = plain_full
        found["FiedlerFrag"] = lambda source, x: list(plain_cuts(source))
    return found


def plain_fiedler(source: nx.Graph, seconds: float) -> tuple[float, int]:
    """CPU seconds and cuts until the time is over; a cut that has begun is finished."""
    start = time.process_time()
    cuts = 0
    for _ in plain_cuts(source):
        cuts += 1
        if time.process_time() - start > seconds:
            break
    return time.process_time() - start, cuts


def once(run: Callable[[], object]) -> float:
    """CPU seconds of a run that is too long to be repeated."""
    start = time.process_time()
    run()
    return time.process_time() - start


def measure(size: str, arguments: argparse.Namespace) -> None:
    graph = large() if size == "large" else small()
    sources, plain = [] if arguments.ours else as_networkx(graph), plain_versions(size)
    for perturbation in ALL:
        title = perturbation.title
        slow = title == "FiedlerFrag" and size == "large"

        def run() -> Graph:
            return perturbation(graph, torch.Generator().manual_seed(0))

        ours = once(run) if slow else best(run, arguments.repeats, cpu=True)
        theirs: float | str = ""
        note = ""
        if arguments.ours:
            pass
        elif slow and arguments.plain_fiedler:
            theirs, cuts = plain_fiedler(sources[0][0], arguments.plain_fiedler)
            note = f"plain version stopped after {cuts} of 200 cuts"
        elif title in plain:
            start = time.process_time()
            for source, x in sources:
                plain[title](source, x)
            theirs = time.process_time() - start
        aim = AIMS.get((size, title))
        ratio = theirs / ours if isinstance(theirs, float) else ""
        within = "" if aim is None else str(ours <= aim)
        row(size=size, perturbation=title, seconds=ours, plain=theirs, ratio=ratio, aim=aim, within=within, note=note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=["large", "small"], choices=["large", "small"])
    parser.add_argument(
        "--plain-fiedler", type=float, default=60.0, help="seconds for it on the large graph; 0 leaves it out"
    )
    parser.add_argument("--ours", action="store_true", help="without the plain versions")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for size in arguments.sizes:
        measure(size, arguments)


if __name__ == "__main__":
    main()
