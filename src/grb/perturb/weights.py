"""Perturbations of what edges carry: no weights and features, or those of other edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from grb.errors import DataError
from grb.graph import Adjacency, Graph
from grb.perturb.base import Drawn, Fixed, Streams, ranks
from grb.perturb.edges import Edges


def check_weighted(graph: Graph) -> None:
    """Refuse a graph whose edges carry nothing: a perturbation that changes nothing would look like an indifferent model."""
    if graph.adj.features is None and (graph.adj.values is None or bool((graph.adj.values == 1).all())):
        raise DataError(
            "all edges have weight 1 and no features, so there are no edge features to take away; leave out this perturbation"
        )


@dataclass(frozen=True)
class NoEdgeFtrs(Fixed):
    """The same weight, one, for every edge and no edge features: what is left is who is joined with whom.

    Edge features are taken by ``gine`` alone, weights by most models; one that takes neither loses nothing.
    """

    title = "NoEdgeFtrs"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with edges that are all the same."""
        check_weighted(graph)
        return replace(graph, adj=Adjacency(graph.adj.pattern))


@dataclass(frozen=True)
class RandEdgeFtrs(Drawn):
    """Every edge has the weight and the features of a random edge of its graph, each as often as before."""

    title = "RandEdgeFtrs"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with weights and edge features that changed places."""
        check_weighted(graph)
        edges = Edges.of(graph)
        order, _ = ranks(edges.owner, Streams.draw(generator).uniform(edges.owner, edges.position))
        # edges are listed graph by graph, and so are the ranks: position by position an edge of the same graph
        return edges.replaced(edges.ends, *edges.carried(order))
