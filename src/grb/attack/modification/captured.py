"""Gradients with respect to edges of modules of torch_geometric, without passing messages along pairs that are no edges.

A propagation of ``GCNConv``, ``SGConv``, ``APPNP`` and others multiplies rows by an operator that comes from the edges by a
known scaling. Its inputs, its outputs and the gradients of its outputs are caught by hooks while the module runs on the edges
that are there; the closed form (:mod:`~grb.attack.modification.low_rank_gradients`) gives the gradient of any other pair.
Whether a module is such a one is tried out on a graph of five nodes, against autograd.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grb.attack.losses import Loss
from grb.attack.modification.low_rank_gradients import ByFactors, Scaling, degrees_of, factor_of, probe_graph
from grb.attack.passes import counted
from grb.graph import CSR, Adjacency, Pattern, normalise
from grb.model.adapters import Wrapped
from grb.model.base import prepare

log = logging.getLogger(__name__)

CLOSE = 1e-3


@dataclass(frozen=True, eq=False)
class _Caught:
    """One propagation: rows before and after it."""

    before: Tensor
    after: Tensor


@dataclass(frozen=True, eq=False)
class Captured:
    """A module whose propagations are all known.

    Args:
        model: The wrapped module.
        scalings: How the operator of every propagation comes from the edges, in the order in which they run.
    """

    model: Wrapped
    scalings: Sequence[Scaling]

    @classmethod
    def of(cls, model: nn.Module, x: Tensor | CSR) -> Captured | None:
        """The module's propagations; None if it has others than those known, or none at all.

        Args:
            model: In evaluation mode.
            x: Features of the graph, for their number and kind.
        """
        if not isinstance(model, Wrapped) or model.style != "pyg" or not model.edge_weight or model.batch:
            return None
        if model.self_loops or model.weights != "presence" or not _layers(model):
            return None
        dtype = next((each.dtype for each in model.parameters()), torch.get_default_dtype())
        small = probe_graph(dtype)
        rows = torch.randn(small.n, x.shape[1], generator=torch.Generator().manual_seed(0)).to(dtype)
        try:
            model(rows, prepare(model, small))  # the first pass of a wrapped module tries out how it counts edges
            with _catching(model) as caught, torch.enable_grad():
                model(rows, prepare(model, small))
            scalings = [_scaling(each, small) for each in caught]
            known = [each for each in scalings if each is not None]
            made = cls(model, known)
            if known and len(known) == len(scalings) and made._agrees(small, rows):
                return made
        except Exception as error:  # whatever a third-party module raises to a graph of five nodes
            log.debug("%s does not take a small graph: %s", type(model.module).__name__, error)
        return None

    def gradient(self, adj: Adjacency, x: Tensor | CSR, targets: Tensor, labels: Tensor, loss_of: Loss) -> ByFactors:
        """Derivatives of the mean loss of the targets with respect to any pair, at these edges and weights."""
        with _catching(self.model) as caught, torch.enable_grad():
            logits = counted(self.model(x, prepare(self.model, adj))[targets])
            loss = loss_of(logits, labels).mean()
        kept = float((logits.detach().argmax(1) == labels).float().mean())
        return self._closed_form(adj, loss, caught, kept)

    def _closed_form(self, adj: Adjacency, loss: Tensor, caught: list[_Caught], kept: float) -> ByFactors:
        grads: list[Tensor | None] = [None] * len(caught)
        if loss.requires_grad:
            grads = list(torch.autograd.grad(loss, [each.after for each in caught], allow_unused=True))
        dtype = caught[0].before.dtype
        degrees = {loops: degrees_of(adj, loops, dtype) for loops in {each.self_loops for each in self.scalings}}
        ops = {
            each: normalise.scaled(adj, left=each.left, right=each.right, self_loops=each.self_loops)
            for each in set(self.scalings)
        }
        shift, factors = torch.zeros(adj.n, dtype=dtype), []
        for rows, grad, scaling in zip(caught, grads, self.scalings, strict=True):
            if grad is None:
                continue
            factor, own = factor_of(
                rows.before.detach(), rows.after.detach(), grad, ops[scaling], scaling, degrees[scaling.self_loops]
            )
            factors.append(factor)
            shift = shift + own
        return ByFactors(factors, shift, float(loss.detach()), kept)

    def _agrees(self, small: Adjacency, x: Tensor) -> bool:
        """Whether the closed form gives what autograd gives for all pairs of a small graph."""
        n = small.n
        grid = torch.ones(n, n, dtype=torch.bool).fill_diagonal_(False).nonzero()
        pattern = Pattern(torch.arange(0, n * n, n - 1)[: n + 1], grid[:, 1].contiguous(), n, symmetric=True)
        assert small.values is not None
        leaf = torch.zeros(n, n, dtype=x.dtype)
        leaf[small.pattern.row_ids.long(), small.pattern.indices.long()] = small.values
        values = leaf[grid[:, 0], grid[:, 1]].requires_grad_()
        with torch.enable_grad():
            wide: Tensor = self.model(x, prepare(self.model, Adjacency(pattern, values)))
            toward = torch.randn(wide.shape, generator=torch.Generator().manual_seed(1)).to(wide)
            (expected,) = torch.autograd.grad((wide * toward).sum(), values)
            with _catching(self.model) as caught:
                logits: Tensor = self.model(x, prepare(self.model, small))
            found = self._closed_form(small, (logits * toward).sum(), caught, 0.0)
        pairs = torch.triu_indices(n, n, 1)
        both = torch.zeros(n, n, dtype=x.dtype)
        both[grid[:, 0], grid[:, 1]] = expected
        return torch.allclose(found.of(pairs), (both + both.T)[pairs[0], pairs[1]], rtol=CLOSE, atol=CLOSE / 10)


def _layers(model: Wrapped) -> list[Any]:
    return [each for each in model.module.modules() if hasattr(each, "register_propagate_forward_hook")]


@contextmanager
def _catching(model: Wrapped) -> Iterator[list[_Caught]]:
    """Catch all propagations that run inside; their outputs have gradients."""
    caught: list[_Caught] = []

    def hook(layer: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> Tensor:
        after = out if out.requires_grad else out.detach().requires_grad_()
        before = inputs[-1].get("x")
        if not isinstance(before, Tensor):
            raise ValueError("a propagation of something else than rows")
        caught.append(_Caught(before, after))
        return after

    handles = [layer.register_propagate_forward_hook(hook) for layer in _layers(model)]
    try:
        yield caught
    finally:
        for handle in handles:
            handle.remove()


def _scaling(caught: _Caught, adj: Adjacency) -> Scaling | None:
    """How the operator of a propagation comes from the edges; None if no known one gives its result."""
    for known in Scaling.all():
        op = normalise.scaled(adj, left=known.left, right=known.right, self_loops=known.self_loops)
        if caught.before.dim() == 2 and len(caught.before) == adj.n:
            expected = op @ caught.before.detach()
            if expected.shape == caught.after.shape and torch.allclose(
                expected, caught.after.detach(), rtol=CLOSE, atol=CLOSE / 100
            ):
                return known
    return None
