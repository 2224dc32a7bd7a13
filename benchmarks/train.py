"""What does one training epoch with validation cost, for each model and size, beside a plain torch loop?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/train.py [cora flickr aminer] [--models gcn,gat] [--epochs 10] [--plain]

CPU seconds per epoch (the fastest of several runs of a few epochs, set-up taken out by the difference of two lengths) with
the settings of Tables 6 to 10, and peak memory of the process; ``gemm_bound_ms`` is what the dense products alone take at the
rate of a large one in the same run. ``--plain`` adds the usual loop for GCN: torch.sparse
product, ``F.dropout``, Adam, validation in every epoch.
"""

from __future__ import annotations

import time

import torch
from common import gemm_bound, options, peak_gigabytes, row, sized_dataset, started
from torch import Tensor, nn
from torch.nn import functional

from grb.dataset import Dataset
from grb.graph import Graph, normalise
from grb.model.build import build, settings
from grb.trainer import fit


def ours(dataset: Dataset, name: str, epochs: int) -> float:
    """CPU seconds of a fit."""
    generator = torch.Generator().manual_seed(0)
    chosen = settings(name, dataset.name)
    model = build(chosen, dataset.num_features, dataset.num_classes, generator)
    view = dataset.defender_view()
    optimizer = torch.optim.Adam(model.parameters(), lr=chosen.lr, fused=True)
    start = time.process_time()
    fit(model, view, optimizer=optimizer, epochs=epochs, generator=generator)
    return time.process_time() - start


class PlainGCN(nn.Module):
    """The usual GCN on a torch.sparse COO matrix."""

    def __init__(self, widths: list[int], dropout: float) -> None:
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:], strict=False))
        self.dropout = dropout

    def forward(self, x: Tensor, adj: Tensor) -> Tensor:
        for place, linear in enumerate(self.linears):
            x = torch.sparse.mm(adj, linear(x))
            if place < len(self.linears) - 1:
                x = functional.dropout(torch.relu(x), self.dropout, self.training)
        return x


def plain(dataset: Dataset, epochs: int) -> float:
    """CPU seconds of the plain loop with the same widths, graph and number of steps."""
    chosen = settings("gcn", dataset.name)
    widths = [dataset.num_features, *chosen.params["hidden_features"], dataset.num_classes]
    model = PlainGCN(widths, chosen.params["dropout"])
    optimizer = torch.optim.Adam(model.parameters(), lr=chosen.lr)
    view = dataset.defender_view()
    graph, _ = view.training_graph()
    train, held_out = _sparse(graph), _sparse(view.graph)
    start = time.process_time()
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        functional.cross_entropy(model(graph.x, train), graph.y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            (model(view.graph.x, held_out)[view.val].argmax(1) == view.labels[view.val]).float().mean().item()
    return time.process_time() - start


def _sparse(graph: Graph) -> Tensor:
    op = normalise.gcn(graph.adj)
    index = torch.stack([op.pattern.row_ids.long(), op.pattern.indices.long()])
    return torch.sparse_coo_tensor(index, op.values, op.shape, check_invariants=False).coalesce()


def per_epoch(run: object, epochs: int, repeats: int) -> float:
    """Fastest difference of a long and a short run, per epoch."""
    times = [(run(2 * epochs) - run(epochs)) / epochs for _ in range(repeats)]  # type: ignore[operator]
    return min(value for value in times if value > 0)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("sizes", nargs="*", default=["cora"])
    parser.add_argument("--models", default="gcn")
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--plain", action="store_true")
    arguments = started(parser)
    for size in arguments.sizes:
        dataset = sized_dataset(size)
        epochs = arguments.epochs or (100 if size in ("cora", "citeseer") else 2)
        base = None
        for name in arguments.models.split(","):
            seconds = per_epoch(lambda count, name=name: ours(dataset, name, count), epochs, arguments.repeats)
            base = base or seconds
            bound = gemm_bound(lambda name=name: ours(dataset, name, 3)) - gemm_bound(
                lambda name=name: ours(dataset, name, 2)
            )
            row(
                size=size,
                model=name,
                loop="grb",
                cpu_ms_per_epoch=1000 * seconds,
                gemm_bound_ms=bound,
                ratio="",
                peak_gb=peak_gigabytes(),
            )
        if arguments.plain:
            seconds = per_epoch(lambda count: plain(dataset, count), epochs, arguments.repeats)
            ratio = f"grb/plain={base / seconds:.2f}"
            row(
                size=size,
                model="gcn",
                loop="plain",
                cpu_ms_per_epoch=1000 * seconds,
                gemm_bound_ms="",
                ratio=ratio,
                peak_gb=peak_gigabytes(),
            )


if __name__ == "__main__":
    main()
