"""PR-BCD and GR-BCD on one module of torch_geometric: ours beside torch_geometric's own.

    GRB_DATA=... python benchmarks/pyg_edges.py [planetoid-cora grb-cora] [--seeds 3] [--epochs 40]

Every seed trains a ``torch_geometric.nn.GCN`` of two layers of 64 on the dataset. Both sides attack this module, wrapped by
``grb.wrap`` for ours, on all test nodes with 5 % of the edges, the same number of epochs and blocks of the same size, with true
labels. Printed are what is left of the accuracy and the CPU seconds of an epoch (the whole attack over its epochs). Ours runs
as tuned (its refinements after the epochs are counted too) and with the paper's constants.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial

import torch
from common import options, row, started
from modification_strength import planetoid
from torch import Tensor, nn

import grb
from grb.attack.modification import GRBCD, PRBCD
from grb.threat import Modification
from grb.trainer import fit

BLOCK, RATIO = 200_000, 0.05


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("datasets", nargs="*", default=["planetoid-cora", "grb-cora"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    arguments = started(parser)
    for name in arguments.datasets:
        dataset = grb.load_dataset(name) if name.startswith("grb-") else planetoid(name)
        for seed in range(arguments.seeds):
            compare(name, dataset, seed, arguments.epochs)


def compare(name: str, dataset: grb.Dataset, seed: int, epochs: int) -> None:
    module = trained(dataset, seed)
    model = grb.wrap(module)
    few = {"search_space_size": BLOCK}
    cases: dict[str, Callable[[], Tensor]] = {
        "PR-BCD ours": partial(ours, PRBCD(steps=epochs, **few), model, dataset, seed),
        "PR-BCD ours, paper's constants": partial(ours, PRBCD.paper(steps=epochs, **few), model, dataset, seed),
        "PR-BCD torch_geometric": partial(theirs, "PRBCDAttack", module, dataset, seed, epochs),
        "GR-BCD ours": partial(ours, GRBCD(steps=epochs, **few), model, dataset, seed),
        "GR-BCD torch_geometric": partial(theirs, "GRBCDAttack", module, dataset, seed, epochs),
    }
    clean = accuracy(module, dataset, both_ways(dataset.graph.adj.edges()))
    for what, attack in cases.items():
        start = time.process_time()
        edges = attack()
        seconds = time.process_time() - start
        row(
            dataset=name,
            seed=seed,
            what=what,
            epochs=epochs,
            clean=clean,
            left=accuracy(module, dataset, edges),
            cpu_s_per_epoch=seconds / epochs,
        )


def trained(dataset: grb.Dataset, seed: int) -> nn.Module:
    from torch_geometric.nn import GCN

    torch.manual_seed(seed)
    module = GCN(dataset.num_features, 64, 2, dataset.num_classes, dropout=0.5)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    generator = torch.Generator().manual_seed(seed)
    fit(grb.wrap(module), dataset.transductive_view(), optimizer=optimizer, epochs=100, generator=generator)
    return module.eval().requires_grad_(False)


def both_ways(edges: Tensor) -> Tensor:
    return torch.cat([edges, edges.flip(0)], dim=1)


def accuracy(module: nn.Module, dataset: grb.Dataset, edges: Tensor) -> float:
    targets = dataset.test_ids("full")
    with torch.no_grad():
        said = module(dataset.features, edges)[targets].argmax(1)
    return 100 * float((said == dataset.labels[targets]).float().mean())


def ours(attack: PRBCD | GRBCD, model: nn.Module, dataset: grb.Dataset, seed: int) -> Tensor:
    threat = Modification(edge_ratio=RATIO)
    edit = grb.run_attack(attack, model, dataset, threat=threat, labels="true", seed=seed).edit
    return both_ways(dataset.graph.apply(edit).adj.edges())


def theirs(kind: str, module: nn.Module, dataset: grb.Dataset, seed: int, epochs: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.contrib import nn as peers
    torch.manual_seed(seed)
    kept = {} if kind == "GRBCDAttack" else {"epochs_resampling": 3 * epochs // 4, "loss": "tanh_margin"}
    attack = getattr(peers, kind)(module, block_size=BLOCK, epochs=epochs, log=False, **kept)
    edges = both_ways(dataset.graph.adj.edges())
    budget = int(Modification(edge_ratio=RATIO).budget(dataset.graph))
    attacked, _ = attack.attack(dataset.features, edges, dataset.labels, budget, idx_attack=dataset.test_ids("full"))
    return torch.as_tensor(attacked)


if __name__ == "__main__":
    main()
