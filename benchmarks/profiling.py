"""What does one epoch of a profiling model cost, beside its bare matrix products and torch_geometric's layers?

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/profiling.py [enzymes citationfull-dblp] [--models gcn]

CPU seconds of the fastest epoch: all training steps and what evaluation adds per epoch. ``floor`` is the dense and sparse
products of the same steps and nothing else (input, convolutions, head, forward and backward); ``pyg`` the same training steps
with the layers of torch_geometric and torch. ``limit`` is the aim.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import torch
from common import row
from torch import Tensor, nn
from torch.nn import functional

from grb.dataset import Dataset, load_dataset
from grb.graph.memory import keep_memory
from grb.model.profiling import ProfilingConfig, ProfilingGNN, build_profiler, profiler
from grb.trainer.batches import Batch
from grb.trainer.loop import train_pass
from grb.trainer.objective import Objective
from grb.trainer.profile import _Batched, _Whole

LIMITS = {("enzymes", "gcn"): 0.35, ("citationfull-dblp", "gcn"): 0.45}


class Steps:
    """A dataset with a model, one epoch at a time."""

    def __init__(self, dataset: Dataset, chosen: ProfilingConfig) -> None:
        self.chosen = chosen
        self.generator = torch.Generator().manual_seed(0)
        self.objective = Objective.of(dataset.labels, dataset.num_classes)
        outputs, pool = self.objective.outputs, dataset.task == "graph"
        self.model = build_profiler(chosen, dataset.graph.num_features, outputs, pool=pool, generator=self.generator)
        maker = _Whole if dataset.graph.ptr is None else _Batched
        self.data = maker(self.model, dataset.graph, dataset.split, chosen.batch)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=chosen.lr, foreach=True)

    def ours(self) -> float:
        start = time.process_time()
        train_pass(self.model, self.batches(), self.objective.loss, self.optimizer, 0)
        trained = time.process_time()
        logits, y = self.data.evaluated("val")
        self.objective.loss(logits, y)
        self.objective.auroc(logits, y)
        return trained - start + (time.process_time() - trained) / self.chosen.eval_every

    def floor(self) -> float:
        """Dense and sparse products alone."""
        start = time.process_time()
        for batch in self.batches():
            products(self.model, batch)
        return time.process_time() - start

    def batches(self) -> Iterator[Batch]:
        return self.data.training(self.generator)


@torch.no_grad()
def products(model: ProfilingGNN, batch: Batch) -> None:
    """What no implementation of these layers can leave out, on zeros of the right shapes."""
    n, width = batch.x.shape[0], model.hidden.weight.shape[0]
    h, weight = torch.zeros(n, width), model.convs[0].linear.weight
    batch.x @ model.first.weight
    batch.x.T @ h
    for _ in model.convs:
        z = batch.op @ h
        z @ weight
        z.T @ h  # of the weights
        h @ weight.T
        batch.op.T @ h
    rows = n if batch.ptr is None else len(batch.ptr) - 1
    head = torch.zeros(rows, width)
    head @ model.hidden.weight
    head.T @ head
    head @ model.hidden.weight.T


class Usual(nn.Module):
    """The blueprint with GCN as one writes it with torch_geometric."""

    def __init__(self, in_features: int, outputs: int, *, pool: bool, norm: bool, width: int = 128) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.pool = pool
        self.first = nn.Linear(in_features, width, bias=not norm)
        self.convs = nn.ModuleList(GCNConv(width, width, bias=not norm) for _ in range(5))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) if norm else nn.Identity() for _ in range(6))
        self.hidden, self.last = nn.Linear(width, width), nn.Linear(width, outputs)

    def forward(self, x: Tensor, edges: Tensor, owner: Tensor | None) -> Tensor:
        from torch_geometric.nn import global_mean_pool

        h = functional.normalize(torch.relu(self.norms[0](self.first(x))))
        for conv, norm in zip(self.convs, self.norms[1:], strict=True):
            h = h + functional.normalize(torch.relu(norm(conv(h, edges))))
        h = functional.normalize(h)
        if self.pool:
            h = global_mean_pool(h, owner)
        out: Tensor = self.last(functional.normalize(torch.relu(self.hidden(h))))
        return out


def usual(dataset: Dataset, steps: Steps) -> float:
    """The training steps of one epoch with torch_geometric's layers; batches are made beforehand."""
    pool = dataset.task == "graph"
    model = Usual(dataset.graph.num_features, steps.objective.outputs, pool=pool, norm=steps.chosen.batch_norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=steps.chosen.lr)
    made = []
    for batch in steps.batches():
        pattern = batch.op.pattern
        rows, columns = pattern.row_ids.long(), pattern.indices.long()
        edges = torch.stack([columns, rows])[:, rows != columns]
        owner = None
        if batch.ptr is not None:
            owner = torch.repeat_interleave(torch.arange(len(batch.ptr) - 1), batch.ptr.diff())
        x = batch.x if isinstance(batch.x, Tensor) else batch.x @ torch.eye(batch.x.shape[1])
        made.append((x, edges, owner, batch.y, batch.rows))
    start = time.process_time()
    for x, edges, owner, y, ids in made:
        optimizer.zero_grad()
        logits = model(x, edges, owner)
        steps.objective.loss(logits if ids is None else logits[ids], y).backward()
        optimizer.step()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", nargs="*", default=["enzymes", "citationfull-dblp"])
    parser.add_argument("--models", default="gcn")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    for name in given.datasets:
        dataset = load_dataset(name)
        for model in given.models.split(","):
            steps = Steps(dataset, profiler(model, collection=dataset.graph.ptr is not None))
            steps.ours()
            seconds = min(steps.ours() for _ in range(given.repeats))
            more: dict[str, object] = {"floor": "", "pyg": ""}
            if model == "gcn":
                more["floor"] = min(steps.floor() for _ in range(given.repeats))
                more["pyg"] = min(usual(dataset, steps) for _ in range(max(given.repeats // 2, 1)))
            row(
                question="profiling epoch",
                dataset=name,
                model=model,
                cpu=seconds,
                **more,
                limit=LIMITS.get((name, model), ""),
            )


if __name__ == "__main__":
    main()
