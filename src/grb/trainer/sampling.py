"""Training a model of nodes in mini-batches, each with a sampled neighbourhood: memory is that of a batch, not of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import Graph
from grb.model.base import Rows, prepare
from grb.trainer.neighbours import induced, sampled_nodes


@dataclass(frozen=True)
class NeighbourSampling:
    r"""Steps on batches of training nodes, on the graph that their sampled neighbours have among each other.

    As many hops are drawn as the model has steps along edges, and degrees are those of the sampled graph; see
    :class:`grb.trainer.neighbours.SampledNodes`. Validation sees the whole graph, as in any training.

    Args:
        neighbours: Neighbours drawn per node and hop.
        batch: Training nodes per step.
    """

    neighbours: int
    batch: int = 1024

    def __post_init__(self) -> None:
        given: list[tuple[str, Any]] = [("sampled_neighbours", self.neighbours), ("batch_nodes", self.batch)]
        for name, value in given:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise DataError(f"{name} is {value}, but a whole number of at least 1 is needed")

    def hops(self, model: nn.Module) -> int:
        """How far a model sees; one that does not say it is refused."""
        stages = getattr(model, "stages", lambda: None)()
        if stages is None or hasattr(model, "observe") or hasattr(model, "graph_learner"):
            name = getattr(model, "name", type(model).__name__)
            raise DataError(
                f"'{name}' is trained on the whole graph alone, because its steps along edges are not listed or it learns "
                "the graph; leave sampled_neighbours out"
            )
        return sum(not isinstance(stage, Rows) for stage in stages)

    def epoch(
        self,
        model: nn.Module,
        graph: Graph,
        ids: Tensor,
        loss: Callable[[Tensor, Tensor], Tensor],
        optimizer: torch.optim.Optimizer,
        generator: torch.Generator,
    ) -> float:
        """One step per batch of the nodes ``ids`` in a new order; the mean loss, not finite if one was not."""
        assert graph.y is not None
        hops, penalty = self.hops(model), getattr(model, "penalty", None)
        new_id = torch.full((graph.n,), -1, dtype=torch.int64)
        order = ids[torch.randperm(len(ids), generator=generator)]
        total = 0.0
        model.train()
        for seeds in order.split(self.batch):
            nodes = sampled_nodes(graph.adj, seeds, self.neighbours, hops, generator)
            x = graph.x[nodes] if isinstance(graph.x, Tensor) else graph.x.rows(nodes)
            optimizer.zero_grad(set_to_none=True)
            logits = model(x, prepare(model, induced(graph.adj, nodes, new_id)))
            rows = torch.searchsorted(nodes, seeds)
            if logits.dim() == 3:  # several draws of one model
                value = torch.stack([loss(draw[rows], graph.y[seeds]) for draw in logits]).mean()
            else:
                value = loss(logits[rows], graph.y[seeds])
            whole = value if penalty is None else value + penalty()
            total += float(value.detach()) * len(seeds)
            if not math.isfinite(total):
                break
            whole.backward()
            optimizer.step()
        return total / max(len(ids), 1)
