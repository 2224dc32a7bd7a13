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
from grb.model.base import check_features, prepare

# of the largest logit
SAME_LOGITS = 1e-4
# lengths of the steps by which a slope is measured, in standard deviations of the features: long ones meet kinks, short
# ones rounding, so the best of them counts
LENGTHS = (3e-2, 1e-2, 3e-3, 1e-3)


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
        """A probe of some drawn nodes of a graph."""
        drawn = ids[torch.randperm(len(ids), generator=generator)[: 2 * samples].to(ids.device)]
        own, seen = drawn[:samples], drawn
        count, n = len(own), graph.n
        new = torch.arange(n, n + count, device=own.device)
        # each injected node is joined with the target that it copies and with another one
        pairs = [torch.stack([new, own])]
        if len(seen) > count:
            others = seen[count:].repeat(2)[:count]
            pairs.append(torch.stack([new[: len(others)], others]))
        assert isinstance(graph.x, Tensor)
        edit = GraphEdit(n=n, add=torch.cat(pairs, dim=1), new_x=graph.x[own].cpu())
        wired = graph.to("cpu").apply(edit).to(own.device)
        op, x, moved = prepare(model, wired.adj), wired.x, torch.cat([own, new])
        assert isinstance(x, Tensor)

        def logits(rows: Tensor) -> Tensor:
            # the same noise in every pass of a model that has some: differences are the rows' own
            torch.default_generator.manual_seed(0)
            result: Tensor = model(x.index_copy(0, moved, rows), op)
            return result[seen]

        with torch.no_grad():
            labels = logits(x[moved]).argmax(1)

        def loss(rows: Tensor) -> Tensor:
            # in double precision, because differences of it are taken
            return functional.cross_entropy(logits(rows).double(), labels, reduction="sum")

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


def checkable(model: nn.Module, view: View) -> tuple[Graph, Tensor]:
    """The graph with dense features where the model is, and the nodes to look at."""
    graph = view.graph
    if graph.ptr is not None:
        raise DataError("a collection cannot be checked at once; check a model on one of its graphs (graphs(i, i + 1))")
    check_features(model, graph)
    everyone = torch.arange(graph.n)
    ids = next((ids for ids in (view.targets, view.val, everyone) if len(ids)), None)
    if ids is None:
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
