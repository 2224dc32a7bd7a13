"""Defenses that recognise the evaluation, each in its own way, around one trained model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from grb.graph import Adjacency
from grb.model.base import EvaluationView, GraphModel, Stage

TRAINED_ON = 300  # nodes of synth-tiny


class Around(GraphModel):
    """The model itself, honest."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner: Any = inner
        self.params = {}

    def prepare(self, adj: Adjacency) -> Any:
        return self.inner.prepare(adj)

    def forward(self, x: Any, op: Any) -> Tensor:
        return self.answer(x, op)

    def answer(self, x: Any, op: Any) -> Tensor:
        logits: Tensor = self.inner(x, op)
        return logits


class Repeating(Around):
    """Repeats its first predictions."""

    first: Tensor | None = None

    def answer(self, x: Any, op: Any) -> Tensor:
        logits = super().answer(x, op)
        if self.first is None:
            self.first = logits
        rows = min(len(logits), len(self.first))
        return torch.cat([self.first[:rows], logits[rows:]])


class Cutting(Around):
    """Cuts the edges of ids that were not there when it was trained."""

    def prepare(self, adj: Adjacency) -> Any:
        edges = adj.edges()
        return super().prepare(adj.edited(edges[:, :0], edges[:, edges[1] >= TRAINED_ON], base=adj.n, n=adj.n))


class Caching(Around):
    """Caches its answers by the number of nodes."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__(inner)
        self.known: dict[int, Tensor] = {}

    def answer(self, x: Any, op: Any) -> Tensor:
        return self.known.setdefault(len(x), super().answer(x, op))


class Ordered(Around):
    """Trusts the first nodes more than the last ones."""

    def answer(self, x: Any, op: Any) -> Tensor:
        logits = super().answer(x, op)
        late = torch.arange(len(x)) >= len(x) // 2
        return torch.where(late[:, None], logits.roll(1, 1), logits)


class Remembering(Around):
    """Looks nodes up by their features, whatever their ids are: what it said of them first, it says for ever."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__(inner)
        self.known: dict[bytes, Tensor] = {}

    def answer(self, x: Any, op: Any) -> Tensor:
        logits = super().answer(x, op)
        rows = zip(x, logits, strict=True)
        return torch.stack([self.known.setdefault(row.numpy().tobytes(), own) for row, own in rows])


class TwoFaced(Around):
    """Shows attacks other stages than it answers by."""

    def stages(self) -> list[Stage] | None:
        other = type(self.inner)(**self.inner.params, generator=torch.Generator().manual_seed(9))
        stages: list[Stage] | None = other.eval().stages()
        return stages


class Breaking(Around):
    """Has stages that fail on any graph."""

    def stages(self) -> Any:
        return [None]


class Hidden(Cutting):
    """Cuts like its parent and hides its margins behind a large number."""

    def answer(self, x: Any, op: Any) -> Tensor:
        return 1e3 + super().answer(x, op)


class Keyed(Around):
    """Uses what it may: which nodes it knows, and keys as seeds; honest."""

    view: EvaluationView | None = None

    def observe(self, view: EvaluationView) -> None:
        self.view = view

    def answer(self, x: Any, op: Any) -> Tensor:
        logits = super().answer(x, op)
        assert self.view is not None and len(self.view.known) == len(self.view.keys) == len(x)
        noise = (self.view.keys % 1000)[:, None] / 1000 * torch.arange(logits.shape[1])
        return logits + torch.where(self.view.known[:, None], 0.0, 0.3 * noise)


class Sampling(Around):
    """Votes of random draws, which differ from pass to pass; says so."""

    samples = 1000

    def answer(self, x: Any, op: Any) -> Tensor:
        share = super().answer(x, op).softmax(1)
        votes = torch.multinomial(share, self.samples, replacement=True)
        return nn.functional.one_hot(votes, share.shape[1]).sum(1) / self.samples


class Undeclared(Sampling):
    """The same without saying so."""

    samples = 0

    def answer(self, x: Any, op: Any) -> Tensor:
        self.samples = 40
        try:
            return super().answer(x, op)
        finally:
            self.samples = 0


class Squeezed(Cutting):
    """Cuts like its parent and makes every margin small beside a class that it never predicts."""

    def answer(self, x: Any, op: Any) -> Tensor:
        logits = super().answer(x, op)
        return logits.scatter_add(1, logits.argmin(1, keepdim=True), torch.full((len(logits), 1), -1e5))


class Hesitating(Cutting):
    """Cuts like its parent and says that its answers are votes of few draws, all of them close."""

    samples = 100

    def answer(self, x: Any, op: Any) -> Tensor:
        logits = super().answer(x, op)
        best = nn.functional.one_hot(logits.argmax(1), logits.shape[1])
        return (1 + 0.1 * best) / (logits.shape[1] + 0.1)
