"""Gradients of a loss with respect to edges, for pairs that exist and for pairs that do not, without an n x n matrix.

One backward pass gives the gradient of any pair for an inner product (:mod:`grb.attack.modification.low_rank_gradients`).
Models with weights along edges that depend on the rows, such as attention, get the pairs as entries of weight zero instead,
and autograd does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from grb.attack.incremental import Rewired
from grb.attack.losses import Loss, tanh_margin, typical_margin
from grb.attack.modification.captured import Captured
from grb.attack.modification.low_rank_gradients import (
    PAIRS_AT_ONCE,
    ByFactors,
    Part,
    Scaling,
    backward,
    degrees_of,
    probe_graph,
    through,
)
from grb.attack.modification.masks import MaskedGradient, mask_of
from grb.attack.passes import counted
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, normalise
from grb.model.base import Propagate, Rows, Stage, State, prepare


class Gradient(Protocol):
    """Derivatives of one loss on one graph."""

    @property
    def loss(self) -> float:
        """The loss at the current graph."""

    @property
    def kept(self) -> float:
        """Fraction of targets that keep their clean label."""

    def of(self, pairs: Tensor) -> Tensor:
        """Gradients of undirected pairs, [p] from [2, p]."""

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Gradients of the pairs of some nodes with others, [r, c]; the diagonal has no meaning."""


class Victim:
    """A model on one set of features whose edges vary: logits and gradients for any edges.

    Args:
        model: In evaluation mode.
        graph: The clean graph.
        targets: Nodes that the loss sees, [t].
        loss: What is raised, per target; the tanh-margin in units of the median clean margin if not given.
        labels: Labels that the loss compares with, [t]; what the model says on the clean graph if not given.
    """

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        targets: Tensor,
        loss: Loss | None = None,
        labels: Tensor | None = None,
    ) -> None:
        self.graph, self.targets = graph, targets
        self.mask = mask_of(model, graph)
        self.model = model = model if self.mask is None else self.mask.model
        rewired = Rewired(model, graph)
        self.stages: Sequence[Stage] = (rewired.stages or [])[len(rewired.lead) :]
        self.state = rewired.state
        self.scalings = self._scalings() if self.state else None
        self.captured = Captured.of(model, graph.x) if self.scalings is None else None
        if labels is None or loss is None:
            clean = self.logits(graph.adj)[targets]
            labels = clean.argmax(1) if labels is None else labels
            loss = loss or partial(tanh_margin, scale=typical_margin(clean, labels))
        self.labels, self.loss_of = labels, loss

    def _scalings(self) -> list[Scaling] | None:
        """How every operator comes from the edges; None if gradients have no closed form."""
        if not all(isinstance(stage, Rows | Propagate) for stage in self.stages):
            return None
        return self.operator_scalings()

    def operator_scalings(self) -> list[Scaling] | None:
        """How every operator of the stages comes from the edges; None if one does in a way of its own."""
        if not self.state:
            return None
        probe = probe_graph(self.state[0].dtype)
        found = [Scaling.of(op, probe) for op in _listed(prepare(self.model, probe))]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def seen(self, adj: Adjacency) -> Adjacency:
        """The edges that reach the model: all of them, but for a model with a mask."""
        return adj if self.mask is None else self.mask.cut(adj)

    def operators(self, adj: Adjacency) -> Sequence[CSR]:
        """What the model makes of some edges for its stages."""
        return _listed(prepare(self.model, self.seen(adj)))

    @property
    def closed_form(self) -> bool:
        """Whether the gradient of every pair has a closed form, so that no pair has to be an edge."""
        return self.scalings is not None or self.captured is not None

    def logits(self, adj: Adjacency) -> Tensor:
        """Logits of all nodes, [n, classes], without gradients."""
        with torch.no_grad():
            if self.scalings is None:
                return counted(self.model(self.graph.x, prepare(self.model, self.seen(adj))))
            ops, state = self.operators(adj), self.state
            for stage in self.stages:
                state = stage.apply(state) if isinstance(stage, Rows) else _moved(_propagate(stage), ops, state)
            return counted(state[0])

    def judge(self, adj: Adjacency) -> tuple[float, float]:
        """Loss, and share of the targets that keep their label."""
        logits = self.logits(adj)[self.targets]
        return float(self.loss_of(logits, self.labels).mean()), self._kept(logits)

    def _kept(self, logits: Tensor) -> float:
        return float((logits.detach().argmax(1) == self.labels).float().mean())

    def gradient(self, adj: Adjacency) -> Gradient:
        """Derivatives of the mean loss of the targets with respect to edges, at these edges and weights."""
        if self.scalings is not None:
            found: Gradient = self._closed_form(self.seen(adj), self.scalings)
        elif self.captured is not None:
            found = self.captured.gradient(self.seen(adj), self.graph.x, self.targets, self.labels, self.loss_of)
        else:
            return _ByAutograd(self, adj)
        return found if self.mask is None else MaskedGradient(found, self.mask)

    def _closed_form(self, adj: Adjacency, scalings: Sequence[Scaling]) -> Gradient:
        ops = _listed(prepare(self.model, adj))
        degrees = {
            loops: degrees_of(adj, loops, self.state[0].dtype) for loops in {each.self_loops for each in scalings}
        }
        parts: list[Part] = []
        start = state = tuple(each.detach() for each in self.state)
        rows: list[Rows] = []
        for stage in self.stages:
            if isinstance(stage, Rows):
                rows.append(stage)
            else:
                with torch.no_grad():
                    state = _moved(_propagate(stage), ops, through(rows, state))
                state = tuple(each.detach().requires_grad_() for each in state)
                parts.append(Part(_propagate(stage), rows, state))
                rows = []
        with torch.enable_grad():
            logits = counted(through(rows, state)[0][self.targets])
            loss = self.loss_of(logits, self.labels).mean()
        value, kept = float(loss.detach()), self._kept(logits)
        factors, shift = backward(loss, start, parts, ops, scalings, degrees)
        return ByFactors(factors, shift, value, kept)


def of_propagated(adj: Adjacency, x: Tensor, times: int, judge: Callable[[Tensor], tuple[Tensor, float]]) -> Gradient:
    r"""Derivatives of any function of the propagated features :math:`\hat A^k X`, with respect to edges.

    Args:
        adj: The edges.
        x: Features, [n, d].
        times: :math:`k`, at least 1.
        judge: Function of the propagated features, [n, d]: the loss to raise and the fraction of kept labels.
    """
    op = normalise.gcn(adj)
    parts: list[Part] = []
    start = state = x.detach()
    for _ in range(times):
        state = (op @ state.detach()).requires_grad_()
        parts.append(Part(Propagate(), (), (state,)))
    with torch.enable_grad():
        loss, kept = judge(state)
    value = float(loss.detach())
    degrees = {True: degrees_of(adj, True, x.dtype)}
    factors, shift = backward(loss, (start,), parts, [op], [Scaling(-0.5, -0.5, True)], degrees)
    return ByFactors(factors, shift, value, kept)


class _ByAutograd:
    """Gradients of entries of the adjacency itself; absent pairs become entries of weight zero."""

    def __init__(self, victim: Victim, adj: Adjacency) -> None:
        self.victim, self.adj = victim, adj
        self.loss, self.kept = victim.judge(adj)

    def of(self, pairs: Tensor) -> Tensor:
        if not pairs.shape[1]:
            return torch.zeros(0)
        return torch.cat([self._of(some) for some in pairs.split(4 * PAIRS_AT_ONCE, dim=1)])

    def _of(self, pairs: Tensor) -> Tensor:
        adj, n = self.adj, self.adj.n
        absent = pairs[:, ~adj.has(pairs)]
        wide = adj.edited(absent, absent[:, :0], base=n, n=n)
        dtype = next((p.dtype for p in self.victim.model.parameters()), torch.get_default_dtype())
        values = torch.ones(wide.pattern.entries, dtype=dtype) if wide.values is None else wide.values.clone()
        both = torch.cat([absent, absent.flip(0)], dim=1)
        values[torch.searchsorted(wide.keys, both[0] * n + both[1])] = 0.0
        leaf = values.requires_grad_()
        with torch.enable_grad():
            logits = self._logits(Adjacency(wide.pattern, leaf))
            loss = self.victim.loss_of(logits, self.victim.labels).mean()
        if not loss.requires_grad:
            raise self._no_gradients()
        found: tuple[Tensor | None, ...] = torch.autograd.grad(loss, leaf, allow_unused=True)
        gradient = found[0]
        if gradient is None:  # a model that sees no edges
            return torch.zeros(pairs.shape[1], dtype=dtype)
        keys = torch.stack([pairs[0] * n + pairs[1], pairs[1] * n + pairs[0]])
        return gradient[torch.searchsorted(wide.keys, keys)].sum(0)

    def _logits(self, adj: Adjacency) -> Tensor:
        try:
            op = prepare(self.victim.model, self.victim.seen(adj))
        except RuntimeError as error:  # a preparation outside torch cannot take weights that ask for gradients
            raise self._no_gradients() from error
        logits: Tensor = self.victim.model(self.victim.graph.x, op)
        return counted(logits[self.victim.targets])

    def _no_gradients(self) -> DataError:
        return DataError(
            f"a {type(self.victim.model).__name__} gives no gradients for edges; "
            "attack a surrogate that does, for instance gcn, and score this model as victim"
        )

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        pairs = torch.stack([rows.repeat_interleave(len(columns)), columns.repeat(len(rows))])
        # the diagonal is no pair, and a pair that stands there twice is asked for once
        low, high = pairs.min(0).values, pairs.max(0).values
        keys, back = torch.unique(low * self.adj.n + high, return_inverse=True)
        distinct = torch.stack([keys // self.adj.n, keys % self.adj.n])
        real = distinct[0] != distinct[1]
        gradients = self.of(distinct[:, real])
        found = gradients.new_zeros(len(keys))
        found[real] = gradients
        return found[back].view(len(rows), len(columns))


def _listed(op: Any) -> Sequence[Any]:
    return op if isinstance(op, Sequence) else [op]


def _propagate(stage: Stage) -> Propagate:
    assert isinstance(stage, Propagate), "a closed form is for rows and propagations alone"
    return stage


def _moved(stage: Propagate, ops: Sequence[CSR], state: State) -> State:
    moved = ops[stage.op] @ state[stage.slot]
    return (*state[: stage.slot], moved, *state[stage.slot + 1 :])
