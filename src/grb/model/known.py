r"""Memory: a network in which nobody listens to unknown nodes.

In GRB's inductive injection the defender has seen most of the graph that it is tested on. If messages come from known nodes
only, and degrees and all other denominators are counted over these, then no injected node can change any other prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Adjacency
from grb.model.base import GraphModel, Stage
from grb.model.layers import Dropout
from grb.model.wrapped import Wrapper, entries_kept


class Known(Wrapper):
    r"""A model whose messages come from known nodes alone.

    With :math:`K` the nodes of the training and validation graph, the model inside works on the directed edges
    :math:`\{(v \leftarrow u) : u \in K\}`: a test node hears the known ones among its neighbours, known nodes hear each other,
    and an unknown node is heard by nobody but itself. Degrees are those of these edges. Which nodes are known is told by the
    evaluator (:class:`~grb.model.base.EvaluationView`), never found by matching features; until it is told, all are.

    In training all nodes are known, and random messages are left out so that the network copes with the fewer neighbours of a
    test node; validation nodes listen to training nodes only.

    It stays open to changes of edges between known nodes and test nodes.

    Args:
        model: A model with stages (``gcn``, ``graphsage``, ``sgcn``, ``appnp``, ``gat``, ...).
        message_dropout: Rate of messages that are left out in training.
    """

    suffix = "known"
    version = 1

    def __init__(self, model: GraphModel, message_dropout: float = 0.2) -> None:
        super().__init__(model, message_dropout=message_dropout)
        if model.stages() is None:
            raise DataError(
                f"'{model.name}' cannot be restricted to known senders, because its forward pass has no stages; choose "
                "another model, for instance graphsage+ln+known"
            )
        self.messages = Dropout(message_dropout)

    def prepare(self, adj: Adjacency) -> Any:
        """The inner model's operators of the edges whose senders are known; directed, and never marked symmetric."""
        known = self.known(adj.n)
        if not bool(known.all()):
            adj = entries_kept(adj, known.to(adj.device)[adj.pattern.indices.long()], symmetric=False)
        op = self.model.prepare(adj)
        if not all(isinstance(part, CSR) for part in (op if isinstance(op, Sequence) else [op])):
            raise DataError(
                f"'{self.name}' works on dense or low-rank operators, in which all nodes meet; choose another model, for "
                "instance graphsage+ln+known"
            )
        return op

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        """Logits of every node, [n, classes]."""
        logits: Tensor = self.model(x, self._thinned(op) if self.training and self.messages.p else op)
        return logits

    def _thinned(self, op: Any) -> Any:
        """Operators without some of the messages; what is left of a row keeps its sum in expectation."""
        if isinstance(op, Sequence):
            return type(op)(self._thinned(part) for part in op)  # type: ignore[call-arg]
        if not isinstance(op, CSR):
            return op
        ones = torch.ones(op.pattern.entries, device=op.device) if op.values is None else op.values
        own = op.pattern.row_ids == op.pattern.indices
        return CSR(op.pattern, torch.where(own, ones, self.messages(ones)))

    def stages(self) -> list[Stage] | None:
        """The inner model's stages; they run on the restricted operators."""
        return self.model.stages()
