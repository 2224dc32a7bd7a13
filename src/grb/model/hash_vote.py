r"""Hash vote: the graph is divided into groups by a hash, every group is classified by itself, and the majority decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from grb.errors import DataError
from grb.graph import CSR, Adjacency
from grb.model.base import GraphModel
from grb.model.layers import Dropout
from grb.model.wrapped import Relaxation, Wrapper, entries_kept

Divide = Literal["edges", "senders"]
# groups behind a validation in training
VALIDATION_GROUPS = 6


@dataclass(eq=False)
class Groups:
    """The edges of a graph and the group of every entry; what the model makes of a group is made when it is asked for.

    Args:
        adj: All edges.
        group: Group of every entry, [entries].
        symmetric: Whether both directions of an edge are in one group.
        prepare: The inner model's own.
    """

    adj: Adjacency
    group: Tensor
    symmetric: bool
    prepare: Callable[[Adjacency], Any] = field(repr=False)

    def op(self, number: int) -> Any:
        """The inner model's operator of one group."""
        return self.prepare(entries_kept(self.adj, self.group == number, symmetric=self.symmetric))


class HashVote(Wrapper):
    r"""A majority of groups, each of which sees its share of the edges and all features.

    ``edges``: an undirected edge belongs to the group :math:`h(k_u, k_v) \bmod T` of its ends' keys, so that one changed edge
    reaches one group. ``senders``: the message :math:`u \to v` belongs to :math:`h(k_u) \bmod T`, so that whatever one node
    sends, with any features over any number of edges, reaches one group; a node's own features are used in all of them. Ties
    go to the smaller class. :mod:`grb.certificate.votes` says how many changes a majority survives, with certainty.

    Logits are fractions of votes. Where gradients are asked for, they are those of the mean probabilities over the groups.
    Training draws a group in every step, by a hash of its own, and is validated on a few.

    Args:
        model: Any model of nodes; with ``senders`` one whose operators may be directed.
        groups: Number of groups, T.
        divide: ``edges`` or ``senders``.

    References:
        Xia et al., *GNNCert: Deterministic Certification of Graph Neural Networks against Adversarial Perturbations*,
        ICLR 2024.
    """

    suffix = "hash-vote"
    version = 2

    def __init__(self, model: GraphModel, groups: int = 30, divide: Divide = "edges") -> None:
        super().__init__(model, groups=groups, divide=divide)
        if divide not in get_args(Divide):
            raise DataError(f"divide is {divide!r}, but 'edges' or 'senders' is needed")
        count: Any = groups  # a recipe may hold anything
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise DataError(f"groups is {groups!r}, but a whole number of at least 1 is needed")
        if divide == "senders" and model.stages() is None:
            raise DataError(
                f"'{model.name}' cannot hear senders of one group alone, because its forward pass has no stages; choose "
                "another model, or divide='edges'"
            )
        self.groups, self.divide = groups, divide
        self.random = Dropout(0.0)  # holds the generator of a training

    def prepare(self, adj: Adjacency) -> Groups:
        """The edges and their groups."""
        return Groups(adj, self.divided(adj, self.keys(adj.n)), self.divide == "edges", self.model.prepare)

    def divided(self, adj: Adjacency, keys: Tensor) -> Tensor:
        """Group of every entry, [entries]; depends on the keys of its ends and on nothing else."""
        own = keys.numpy().astype(np.uint64)
        sender = own[adj.pattern.indices.cpu().numpy()]
        if self.divide == "senders":
            hashed = mixed(sender)
        else:
            receiver = own[adj.pattern.row_ids.cpu().numpy()]
            low, high = np.minimum(sender, receiver), np.maximum(sender, receiver)
            hashed = mixed(mixed(low) ^ (high + np.uint64(0x9E3779B97F4A7C15)))
        return torch.from_numpy((hashed % np.uint64(self.groups)).astype(np.int64)).to(adj.device)

    def forward(self, x: Tensor | CSR, op: Groups) -> Tensor:
        """Fractions of votes for every class, [n, classes]; in training the logits of a random group."""
        if self.training:
            return self._training_logits(x, op)
        if self.random.generator is not None:  # a validation between two epochs
            some = [self.model(x, op.op(number)).softmax(1) for number in range(min(self.groups, VALIDATION_GROUPS))]
            return torch.stack(some).mean(0).log()
        total: Any = 0.0
        for logits in self.group_logits(x, op):
            total = total + functional.one_hot(logits.argmax(1), logits.shape[1]).to(logits.dtype)
            if logits.requires_grad:  # the value of a vote with the slope of a probability
                soft = logits.softmax(1)
                total = total + (soft - soft.detach())
        fractions: Tensor = total / self.groups
        return fractions

    def group_logits(self, x: Tensor | CSR, op: Groups) -> Iterator[Tensor]:
        """What the inner model says in every group, one after the other, [n, classes] each."""
        for number in range(self.groups):
            yield self.model(x, op.op(number))

    def group_labels(self, x: Tensor | CSR, op: Groups) -> Tensor:
        """Class that every group says, [groups, n]."""
        return torch.stack([logits.argmax(1) for logits in self.group_logits(x, op)])

    def _training_logits(self, x: Tensor | CSR, op: Groups) -> Tensor:
        generator = self.random.generator
        keys = torch.randint(2**62, (op.adj.n,), generator=generator)
        drawn = Groups(op.adj, self.divided(op.adj, keys), op.symmetric, self.model.prepare)
        logits: Tensor = self.model(x, drawn.op(0))
        return logits

    def relaxations(self) -> dict[str, nn.Module]:
        """``mean``: the mean probabilities over the groups instead of their votes."""
        return {"mean": MeanVote(self)}


class MeanVote(Relaxation[HashVote]):
    """A hash vote whose groups give probabilities instead of votes."""

    def forward(self, x: Tensor | CSR, op: Groups) -> Tensor:
        """Logarithm of the mean probabilities, [n, classes]."""
        total: Any = sum(logits.softmax(1) for logits in self.exact.group_logits(x, op))
        return torch.log(total / self.exact.groups + 1e-12)


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 bits stirred so that every bit depends on all (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        z = words + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
