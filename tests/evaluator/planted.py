"""Methods with one defect each, for the suite that must find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grb.attack import AttackContext
from grb.graph import Adjacency, Graph, GraphEdit, normalise
from grb.model.base import GraphModel
from grb.model.torch import GCN


@dataclass(frozen=True)
class Honest:
    """Joins one new node with the first target."""

    value: float = 0.0

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        n, d = context.graph.n, context.graph.num_features
        add = torch.tensor([[int(context.targets[0])], [n]])
        return GraphEdit(n, add=add, new_x=self.rows(generator, d))

    def rows(self, generator: torch.Generator, d: int) -> Tensor:
        return torch.full((1, d), self.value)


class Greedy(Honest):
    def rows(self, generator: torch.Generator, d: int) -> Tensor:
        return torch.full((1, d), 100.0)


class Moody(Honest):
    calls = 0

    def rows(self, generator: torch.Generator, d: int) -> Tensor:
        Moody.calls += 1
        return torch.full((1, d), 0.01 * Moody.calls)


class Crowding(Honest):
    """Keeps the limits of large graphs only."""

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        n, d = context.graph.n, context.graph.num_features
        count = min(5, len(context.targets))
        add = torch.stack([context.targets[:count], torch.full((count,), n)])
        return GraphEdit(n, add=add, new_x=torch.zeros(1, d))


class Tuple(Honest):
    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> Any:
        return context.graph.adj, context.graph.x


class Vandal(Honest):
    """Writes into the graph."""

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        context.graph.x.mul_(1.5)  # type: ignore[union-attr]
        return super().__call__(context, generator=generator)


class Good(GraphModel):
    """One propagation."""

    def __init__(self, in_features: int, out_features: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.params = {"in_features": in_features, "out_features": out_features}
        self.name = "evaluator.planted:" + type(self).__name__
        self.weight = nn.Parameter(torch.linspace(-1, 1, in_features * out_features).view(in_features, out_features))

    def prepare(self, adj: Adjacency) -> Any:
        return normalise.scaled(adj, left=-0.5, right=-0.5, self_loops=True)

    def forward(self, x: Any, op: Any) -> Tensor:
        return op @ (x @ self.weight)


class Noisy(Good):
    def forward(self, x: Any, op: Any) -> Tensor:
        return super().forward(x, op) + torch.rand(1)


class Wrecking(Good):
    def forward(self, x: Any, op: Any) -> Tensor:
        with torch.no_grad():
            x.add_(1.0)
        return super().forward(x, op)


class Idle(Good):
    def __init__(self, in_features: int, out_features: int, generator: torch.Generator | None = None) -> None:
        super().__init__(in_features, out_features)
        self.spare = nn.Parameter(torch.zeros(3))


class Masked(Good):
    """Its logits have gradients, but not at the features."""

    def forward(self, x: Any, op: Any) -> Tensor:
        return super().forward(x.detach(), op)


class Ordered(Good):
    def forward(self, x: Any, op: Any) -> Tensor:
        return super().forward(x, op) + torch.arange(len(x)).unsqueeze(1)


class Blind(Good):
    def forward(self, x: Any, op: Any) -> Tensor:
        return super().forward(x, op) * torch.nan


class Narrow(Good):
    def forward(self, x: Any, op: Any) -> Tensor:
        return super().forward(x, op)[:, :1]


class Restaged(GCN):
    """Another forward pass, which the stages that it inherits know nothing of."""

    name = "evaluator.planted:Restaged"

    def forward(self, x: Any, op: Any) -> Tensor:
        return super().forward(x.clamp(-0.1, 0.1), op)


class Unnamed(GCN):
    """Has the name of its base class, as which it would come back from a file."""

    def forward(self, x: Any, op: Any) -> Tensor:
        return super().forward(x.clamp(-0.1, 0.1), op)

    def stages(self) -> None:
        return None


@dataclass(frozen=True)
class Fitted:
    """Trains nothing much: the mean of every class."""

    def fit(self, view: Any, *, seed: int) -> nn.Module:
        model = Good(view.graph.num_features, view.num_classes)
        x, y = view.graph.x[view.train], view.graph.y[view.train]
        with torch.no_grad():
            for label in range(view.num_classes):
                model.weight[:, label] = x[y == label].mean(0) - x.mean(0)
        return model.eval()


class Lucky(Fitted):
    def fit(self, view: Any, *, seed: int) -> nn.Module:
        model = super().fit(view, seed=seed)
        with torch.no_grad():
            model.weight.add_(torch.rand_like(model.weight))  # type: ignore[operator, union-attr]
        return model


class Lazy(Fitted):
    def fit(self, view: Any, *, seed: int) -> nn.Module:
        model = super().fit(view, seed=seed)
        with torch.no_grad():
            model.weight.zero_()  # type: ignore[operator, union-attr]
        return model


class Nothing(Fitted):
    def fit(self, view: Any, *, seed: int) -> Any:
        return None


@dataclass(frozen=True)
class Shuffled:
    """Features of other nodes."""

    def __call__(self, graph: Graph, generator: torch.Generator) -> Graph:
        return Graph(graph.adj, graph.x[torch.randperm(graph.n, generator=generator)], graph.y)  # type: ignore[index]


class Drawing(Shuffled):
    def __call__(self, graph: Graph, generator: torch.Generator) -> Graph:
        return super().__call__(graph, torch.Generator().manual_seed(int(torch.randint(10**6, (1,)))))


class Dirty(Shuffled):
    def __call__(self, graph: Graph, generator: torch.Generator) -> Graph:
        graph.x.zero_()  # type: ignore[union-attr]
        return graph


class Losing(Shuffled):
    def __call__(self, graph: Graph, generator: torch.Generator) -> Graph:
        return graph.subgraph(torch.arange(graph.n // 2))


class Poisonous(Shuffled):
    def __call__(self, graph: Graph, generator: torch.Generator) -> Graph:
        return Graph(graph.adj, graph.x * torch.nan, graph.y)  # type: ignore[operator]


class Relabelling(Shuffled):
    def __call__(self, graph: Graph, generator: torch.Generator) -> Graph:
        assert graph.y is not None
        return Graph(graph.adj, graph.x, graph.y.flip(0))
