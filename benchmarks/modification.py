"""What do the modification attacks cost, beside a plain way to the same numbers?

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/modification.py [SIZE ...] [--naive] [--fresh-memory]

The victim is the GCN of Tables 6 to 10 with random weights (the cost does not depend on them); all test nodes are targets.
Sizes are cora, flickr, aminer, reddit. ``cora``: whole attacks with a budget of 257 edges, 5 % of the true grb-cora's.
Larger ones: PR-BCD and GR-BCD with 5 % of the edges and a block of a million pairs, CPU seconds of an epoch: the difference
between two epochs and one, so that the set-up is counted apart; one size per process, because the peak memory is the
process's. Beside it the floor: what the sparse products of an epoch cost alone. ``--fresh-memory`` lets glibc give freed
blocks back: less memory, more page faults. ``--naive`` also measures what stands under ``peer``: full spectra and dense
gradients of n x n matrices, networkx, torch_geometric's PR-BCD.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from common import best, options, peak_gigabytes, row, sized_dataset, started, untrained
from torch import Tensor, nn

from grb.attack.base import Attack, AttackContext, run_attack
from grb.attack.modification import FGA, FLIP, GRBCD, NEA, PRBCD, STACK, Metattack
from grb.dataset import Dataset
from grb.graph import Graph, convert
from grb.model.base import predict, prepare
from grb.model.to_pyg import to_pyg
from grb.threat import Modification

BUDGET = 257
BLOCK = 1_000_000


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("sizes", nargs="*", default=["cora"])
    parser.add_argument("--only", help="attacks whose name contains this")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--naive", action="store_true", help="also the peers: minutes")
    arguments = started(parser)
    for size in arguments.sizes:
        dataset = sized_dataset(size)
        model = untrained("gcn", dataset)
        (whole if size in ("cora", "citeseer") else epochs)(size, dataset, model, arguments)


def whole(size: str, dataset: Dataset, model: nn.Module, arguments: argparse.Namespace) -> None:
    """Whole attacks; ``aim`` is what they should take at most."""
    context = AttackContext(dataset.attacker_view("full"), Modification(edges=BUDGET), model, "white-box")
    n, x = context.graph.n, dataset.features
    cases: list[tuple[str, Attack, float | str, str, Callable[[], object] | None]] = [
        ("STACK", STACK(), 0.5, "all eigenvalues once", partial(spectrum, context.graph)),
        ("NEA", NEA(), 4.0, "all eigenvalues once", partial(spectrum, context.graph)),
        ("FLIP deg", FLIP(flip_type="deg"), "", "", None),
        ("FLIP bet", FLIP(flip_type="bet"), 1.5, "networkx betweenness", partial(networkx_betweenness, context.graph)),
        ("FLIP eigen", FLIP(flip_type="eigen"), "", "", None),
        ("FGA exact", FGA(), 15.0, f"{BUDGET} dense gradients", partial(dense_gradients, model, context.graph, x)),
        ("FGA refresh=8", FGA(refresh=8), 3.0, "", None),
        (
            "PR-BCD 10 epochs",
            PRBCD(steps=10, search_space_size=BLOCK),
            4.0,
            "torch_geometric",
            partial(pyg, model, dataset, 10),
        ),
        ("GR-BCD 10 rounds", GRBCD(steps=10, search_space_size=BLOCK), "", "", None),
        ("Metattack exact, refresh=16", Metattack(refresh=16), "", "", None),
        ("Metattack first order, refresh=16", Metattack(refresh=16, order="first"), "", "", None),
    ]
    for name, attack, aim, peer, naive in cases:
        if arguments.only and arguments.only.lower() not in name.lower():
            continue
        seconds = best(lambda: run_attack(attack, context, seed=0), arguments.repeats, cpu=True)
        common = {"size": size, "nodes": n, "budget": BUDGET, "what": name, "cpu_s": seconds, "aim_s": aim}
        taken = once(naive) if arguments.naive and naive is not None else None
        ratio = "" if taken is None else f"{taken / seconds:.0f}x"
        row(**common, peer=peer, peer_s="" if taken is None else taken, ratio=ratio, peak_gb=peak_gigabytes())


def epochs(size: str, dataset: Dataset, model: nn.Module, arguments: argparse.Namespace) -> None:
    """Seconds of one more epoch."""
    threat = Modification(edge_ratio=0.05)
    context = AttackContext(dataset.attacker_view("full"), threat, model, "white-box")
    makers: dict[str, Callable[[int], Attack]] = {
        "PR-BCD": lambda count: PRBCD(
            steps=count, n_epoch_resampling=1.0, search_space_size=BLOCK, max_final_samples=1
        ),
        "GR-BCD": lambda count: GRBCD(steps=count, search_space_size=BLOCK),
    }
    floors = {name: products_of_an_epoch(model, context.graph, judged=name == "PR-BCD") for name in makers}
    for name, maker in makers.items():
        if arguments.only and arguments.only.lower() not in name.lower():
            continue
        taken = {count: once(partial(run_attack, maker(count), context, seed=0)) for count in (1, 2)}
        seconds = taken[2] - taken[1]
        common = {"size": size, "nodes": context.graph.n, "budget": threat.budget(context.graph)}
        row(
            **common,
            what=f"{name} epoch",
            cpu_s=seconds,
            aim_s=10.0,
            floor_s=floors[name],
            set_up_s=taken[1] - seconds,
            peak_gb=peak_gigabytes(),
            aim_gb=8,
        )


def products_of_an_epoch(model: nn.Module, graph: Graph, *, judged: bool) -> float:
    """Seconds of nothing but the sparse products: forward, backward but for the first layer, and forward once more."""
    op = prepare(model, graph.adj)
    seconds = 0.0
    for place, conv in enumerate(model.convs):  # type: ignore[arg-type]
        rows = torch.randn(graph.n, conv.linear.weight.shape[1], generator=torch.Generator().manual_seed(0))  # type: ignore[union-attr]
        seconds += best(lambda: op @ rows, 2, cpu=True) * (1 + judged + (place > 0))
    return seconds


def once(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


# ---------------------------------------------------------------- peers


def spectrum(graph: Graph) -> Tensor:
    """The dense eigenproblem that the spectral attacks of THUDM/grb solve."""
    a = torch.from_numpy(convert.to_scipy(graph.adj).toarray().astype(np.float64))
    scale = a.sum(1).clamp_min(1) ** -0.5
    return torch.linalg.eigh(scale.unsqueeze(1) * a * scale)[0]


def networkx_betweenness(graph: Graph) -> object:
    import networkx as nx

    return nx.betweenness_centrality(nx.from_scipy_sparse_array(convert.to_scipy(graph.adj)), normalized=False)


def dense_gradients(model: nn.Module, graph: Graph, x: Tensor) -> None:
    """As many gradients of an n x n matrix as there are flips."""
    a = torch.from_numpy(convert.to_scipy(graph.adj).toarray().astype(np.float32))
    for _ in range(BUDGET):
        leaf = a.clone().requires_grad_()
        loops = leaf + torch.eye(len(a))
        scale = loops.sum(1) ** -0.5
        op, h = scale.unsqueeze(1) * loops * scale, x
        for place, conv in enumerate(model.convs):  # type: ignore[arg-type]
            h = op @ (h @ conv.linear.weight) + conv.linear.bias  # type: ignore[union-attr]
            h = torch.relu(h) if place < len(model.convs) - 1 else h  # type: ignore[arg-type]
        (gradient,) = torch.autograd.grad(h.logsumexp(1).mean(), leaf)
        (gradient + gradient.T).argmax()


def pyg(model: nn.Module, dataset: Dataset, count: int) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.contrib.nn import PRBCDAttack
    attack = PRBCDAttack(
        to_pyg(model), block_size=BLOCK, epochs=count, epochs_resampling=3 * count // 4, loss="tanh_margin", log=False
    )
    edges = dataset.graph.adj.edges()
    labels = predict(model, dataset.graph).argmax(1)
    both = torch.cat([edges, edges.flip(0)], dim=1)
    return attack.attack(dataset.features, both, labels, BUDGET, idx_attack=dataset.index_test)


if __name__ == "__main__":
    main()
