r"""Bounded influence: memory, and one bounded vote for every unknown node.

A network that hears known nodes only (:mod:`grb.model.known`) cannot be changed by injection, but it does not use what test
nodes know of each other. Here unknown nodes are heard again, by one vote each: an injected node changes a prediction by as much
as one vote can, which is a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, adjacency_from_edges
from grb.model.base import GraphModel, Propagate, Rows, Stage, State
from grb.model.known import Known
from grb.model.wrapped import Relaxation, entries_kept

# temperature of the votes of the relaxation
SOFT = 10.0


class Bounded(Known):
    r"""A model that hears known nodes as it likes and unknown ones by a bounded vote.

    With :math:`z` the logits of the model that hears known nodes :math:`K` only, and :math:`S_v` the unknown neighbours of a
    node,

    .. math:: s_v = z_v + c\, \frac{\sum_{u \in S_v} \mathrm{softmax}(z_u)}{|S_v| + 1} .

    The vote of an unknown node depends on its own row and on known nodes alone, so that influence travels one hop only;
    all unknown nodes together move a lead by less than :math:`c`, and :math:`k` injected neighbours move it from
    :math:`z_{va} - z_{vb} + c D / N` to no less than :math:`z_{va} - z_{vb} + c\,(D - k) / (N + k)`.
    :mod:`grb.certificate.influence` says how many of them a prediction survives.

    It is trained like ``+known``; where validation nodes are met for the first time they vote for each other, so that the
    best epoch is chosen with votes.

    Args:
        model: A model with stages (``gcn``, ``graphsage``, ``sgcn``, ``appnp``, ``gat``, ...).
        message_dropout: Rate of messages that are left out in training.
        influence: Largest change of a logit by all unknown nodes together, c; 0 is ``+known``.
    """

    suffix = "bounded"
    version = 1

    def __init__(self, model: GraphModel, message_dropout: float = 0.2, influence: float = 0.5) -> None:
        super().__init__(model, message_dropout)
        given: Any = influence  # a recipe may hold anything
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < math.inf:
            raise DataError(f"influence is {influence!r}, but a finite number of at least 0 is needed")
        self.influence = float(influence)
        self.params = {**self.params, "influence": influence}

    def prepare(self, adj: Adjacency) -> tuple[Any, ...]:
        """The operators of ``+known``, and that of the unknown nodes among every node's neighbours, which is the last one."""
        known = self.known(adj.n)
        inner = super().prepare(adj)
        parts = tuple(inner) if isinstance(inner, Sequence) else (inner,)
        heard = ~known.to(adj.device)[adj.pattern.indices.long()]
        unknown = entries_kept(adj, heard, symmetric=False)
        return (*parts, CSR(unknown.pattern, torch.ones(unknown.pattern.entries, device=adj.device)))

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        """Logits of every node, [n, classes]."""
        own = super().forward(x, self._inner(op))
        return self.combined((own, op[-1] @ votes(own)))[0]

    def stages(self) -> list[Stage] | None:
        """The inner model's stages, then the votes of unknown nodes."""
        inner = self.model.stages()
        if inner is None:
            return None
        return [*inner, Rows(_with_votes), Propagate(1, -1), Rows(self.combined)]

    def combined(self, state: State) -> State:
        """Logits with the votes of unknown nodes, [n, classes], from own logits and sums of votes, [n, classes + 1]."""
        own, heard = state
        return (own + self.influence * heard[:, :-1] / (heard[:, -1:] + 1),)

    def known_part(self) -> Known:
        """The same network without unknown nodes."""
        part = Known(self.model, self.messages.p)
        part._known, part._keys = self._known, self._keys
        return part.train(self.training)

    def relaxations(self) -> dict[str, nn.Module]:
        """``soft``: votes of a high temperature, whose gradients do not vanish where an unknown node is sure of its class."""
        return {"soft": SoftVotes(self)}

    def _inner(self, op: Any) -> Any:
        """What the inner model prepared: a list or tuple of operators, or a single one."""
        if len(op) == 2 and not isinstance(self.model.prepare(_pair()), Sequence):
            return op[0]
        return op[:-1]


class SoftVotes(Relaxation[Bounded]):
    """A bounded model whose unknown nodes vote with a high temperature."""

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        """Logits of every node, [n, classes]."""
        own: Tensor = self.exact.model(x, self.exact._inner(op))
        return self.exact.combined((own, op[-1] @ votes(own, SOFT)))[0]


def votes(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """A vote per row, [n, classes + 1]: probabilities, and a one for being there.

    A row that is not finite is there, but says nothing.

    >>> votes(torch.tensor([[0.0, 0.0], [0.0, float("inf")]])).tolist()
    [[0.5, 0.5, 1.0], [0.0, 0.0, 1.0]]
    """
    shares = (logits / temperature).softmax(1)
    sane = torch.isfinite(logits).all(1, keepdim=True) & torch.isfinite(shares).all(1, keepdim=True)
    return torch.cat([torch.where(sane, shares, 0.0), torch.ones_like(shares[:, :1])], 1)


def _with_votes(state: State) -> State:
    return state[0], votes(state[0])


def _pair() -> Adjacency:
    with torch.device("cpu"):
        return adjacency_from_edges(torch.tensor([[0], [1]]), 2)[0]
