"""What each side is allowed to see; made by :class:`grb.dataset.Dataset`, never from a whole dataset by hand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import Graph


@dataclass(frozen=True, eq=False)
class View:
    """A graph as one side sees it. Hidden labels are -1, hidden nodes are absent.

    Where whole graphs are classified ``graph`` is a collection, and all ids below are those of graphs.

    Args:
        graph: The visible graph; ``graph.y`` holds the visible labels.
        train: Ids (in this graph) of the training nodes.
        val: Ids of the validation nodes.
        targets: Ids of the nodes under attack; empty for a defender.
        nodes: Id in the whole dataset of every node of this graph.
        num_classes: Number of classes of the task.
        inductive: Training uses the sub-graph of the training nodes alone; otherwise the whole visible graph.
        validation_graph: Graph on which validation nodes are scored if it is another one: under poisoning, the clean one.
    """

    graph: Graph
    train: Tensor
    val: Tensor
    targets: Tensor
    nodes: Tensor
    num_classes: int
    inductive: bool = True
    validation_graph: Graph | None = None

    @property
    def labels(self) -> Tensor:
        """The visible labels; hidden ones are -1."""
        if self.graph.y is None:
            raise DataError("this view has no labels")
        return self.graph.y

    def training_graph(self) -> tuple[Graph, Tensor]:
        """The graph that training sees, and the ids of the training nodes in it."""
        if not self.inductive:
            return self.graph, self.train
        part = self.graph.subgraph if self.graph.ptr is None else self.graph.select
        return part(self.train), torch.arange(len(self.train), device=self.train.device)

    def to(self, device: torch.device | str) -> View:
        """The same view on another device."""
        return View(
            self.graph.to(device),
            self.train.to(device),
            self.val.to(device),
            self.targets.to(device),
            self.nodes,
            self.num_classes,
            self.inductive,
            None if self.validation_graph is None else self.validation_graph.to(device),
        )
