"""Moving a few rows of features and looking at what a model and its gradients say about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, dense
from grb.graph.edit import owners
from grb.model.base import check_features, prepare

# of the largest logit
SAME_LOGITS = 1e-4
# lengths of the steps by which a slope is measured, in standard deviations of the features: long ones meet kinks, short
# ones rounding, so the best of them counts
LENGTHS = (3e-2, 1e-2, 3e-3, 1e-3)
# largest difference of two logits of a graph in the loss: sums over nodes make models of graphs so sure that a loss is all
# rounding
GRAPH_SPREAD = 10.0


@dataclass(frozen=True, eq=False)
class Probe:
    """Some rows of a graph that may move, and the summed cross-entropy of the targets around them."""

    loss: Callable[[Tensor], Tensor]  # of the rows
    logits: Callable[[Tensor], Tensor]
    rows: Tensor  # [2 s, d]: s targets, then s injected nodes
    gradient: Tensor
    targets: int
    scale: float
    generator: torch.Generator

    @classmethod
    def make(cls, model: nn.Module, graph: Graph, ids: Tensor, samples: int, generator: torch.Generator) -> Probe:
        """A probe of some drawn nodes of a graph, or of a node in each of some drawn graphs of a collection."""
        seen = ids[torch.randperm(len(ids), generator=generator)[: 2 * samples].to(ids.device)]
        own, others = _nodes(graph, seen, samples, generator)
        count = len(own)
        wired, moved = _wired(graph, own, others)
        op, x, bounds = prepare(model, wired.adj), wired.x, pooling_bounds(model, wired)
        assert isinstance(x, Tensor)

        def logits(rows: Tensor) -> Tensor:
            # the same noise in every pass of a model that has some: differences are the rows' own
            torch.default_generator.manual_seed(0)
            result: Tensor = model(x.index_copy(0, moved, rows), op, *bounds)
            return result[seen]

        with torch.no_grad():
            first = logits(x[moved])
            labels = first.argmax(1)
            spread = float((first.amax(1) - first.amin(1)).max())
        scale = max(1.0, spread / GRAPH_SPREAD) if bounds else 1.0

        def loss(rows: Tensor) -> Tensor:
            # in double precision, because differences of it are taken
            return functional.cross_entropy(logits(rows).double() / scale, labels, reduction="sum")

        rows = x[moved].clone().requires_grad_()
        value = loss(rows)
        gradient = torch.autograd.grad(value, rows, allow_unused=True)[0] if value.requires_grad else None
        rows = rows.detach()
        gradient = torch.zeros_like(rows) if gradient is None else gradient
        return cls(loss, logits, rows, gradient, count, float(x.std(correction=0)) or 1.0, generator)

    def matters(self, row: int) -> bool:
        """Whether the logits change when this row becomes another one, or grows if all are equal."""
        moved = self.rows.clone()
        moved[row] = self.rows.roll(1, 0)[row] + self.scale * self._signs(1)[0]
        with torch.no_grad():
            before, after = self.logits(self.rows), self.logits(moved)
        return float((after - before).abs().max()) > SAME_LOGITS * float(before.abs().max())

    def directions(self) -> Iterator[Tensor]:
        """Signed gradients of the targets and of the injected nodes, and random signs in two rows of either kind."""
        signs = torch.where(self.gradient == 0, self._signs(len(self.rows)), self.gradient.sign())
        for kind in (slice(0, self.targets), slice(self.targets, None)):
            direction = torch.zeros_like(self.rows)
            direction[kind] = signs[kind]
            yield direction
            for row in torch.arange(len(self.rows))[kind][:2]:
                direction = torch.zeros_like(self.rows)
                direction[row] = self._signs(1)[0]
                yield direction

    def slope(self, direction: Tensor) -> float | None:
        """Relative error of the gradient's prediction, 0 to 2; None if neither says that anything moves."""
        predicted = float((self.gradient.double() * direction).sum()) * self.scale
        errors = []
        with torch.no_grad():
            for length in LENGTHS:
                step = length * self.scale * direction
                measured = float(self.loss(self.rows + step) - self.loss(self.rows - step)) / (2 * length)
                larger = max(abs(measured), abs(predicted))
                if not math.isfinite(larger):
                    errors.append(2.0)
                elif larger:
                    errors.append(abs(measured - predicted) / larger)
        return min(errors, default=None)

    def _signs(self, count: int) -> Tensor:
        drawn = torch.randint(2, (count, self.rows.shape[1]), generator=self.generator)
        return (2 * drawn - 1).to(self.rows)


def _nodes(graph: Graph, seen: Tensor, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Nodes that move, and others that nodes injected beside them are joined with too; of one graph each in a collection."""
    if graph.ptr is None:
        own = seen[:samples]
        return own, seen[samples:].repeat(2)[: len(own)]
    ptr = graph.ptr.to(seen.device)
    sizes = ptr.diff()[seen]
    drawn = [torch.randint(2**31, sizes.shape, generator=generator).to(sizes) for _ in range(2)]
    ends = [ptr[seen] + numbers % sizes.clamp_min(1) for numbers in drawn]
    full = sizes > 0
    own, others = (nodes[full][:samples] for nodes in ends)
    return own, torch.where(others == own, -1, others)


def _wired(graph: Graph, own: Tensor, others: Tensor) -> tuple[Graph, Tensor]:
    """The graph with a copy of every node of ``own`` joined with it and with another node, and where both are in it."""
    n, count = graph.n, len(own)
    new = torch.arange(n, n + count, device=own.device)
    joined = others >= 0  # -1 where there is no other node
    pairs = torch.cat([torch.stack([new, own]), torch.stack([new[: len(others)][joined], others[joined]])], dim=1)
    assert isinstance(graph.x, Tensor)
    edit = GraphEdit(n=n, add=pairs.cpu(), new_x=graph.x[own].cpu())
    cpu = graph.to("cpu")
    wired = cpu.apply(edit).to(own.device)
    moved = torch.cat([own, new])
    if graph.ptr is None:
        return wired, moved
    # in a collection every node moves to the nodes of its graph
    order = torch.argsort(owners(cpu, edit), stable=True)
    return wired, torch.argsort(order).to(own.device)[moved]


def pooling_bounds(model: nn.Module, graph: Graph) -> tuple[Tensor | None, ...]:
    """What a model that pools takes besides features and edges: where the graphs of a collection begin."""
    return (graph.ptr,) if getattr(model, "pools", False) else ()


def checkable(model: nn.Module, view: View) -> tuple[Graph, Tensor]:
    """The graph with dense features where the model is, and the nodes, or the graphs of a collection, to look at."""
    graph = view.graph
    if (graph.ptr is not None) != bool(getattr(model, "pools", False)):
        raise DataError(
            "a model that pools is checked on a collection of graphs, and one that does not on a single graph; "
            "check it on a dataset of its task, or on one graph of the collection (graphs(i, i + 1))"
        )
    check_features(model, graph)
    everyone = torch.arange(graph.n if graph.ptr is None else graph.num_graphs)
    ids = next((ids for ids in (view.targets, view.val, everyone) if len(ids)), None)
    if ids is None or not graph.n:
        raise DataError("the graph has no nodes, but at least one is needed to check a model")
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    return graph.with_features(dense(graph.x)).to(device), ids.to(device)


@contextmanager
def at_rest(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients of weights; these and torch's random state are as before afterwards."""
    modes = {module: module.training for module in model.modules()}
    flags = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    model.eval()
    model.requires_grad_(False)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
        for parameter, flag in flags:
            parameter.requires_grad_(flag)
