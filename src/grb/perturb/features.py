"""Perturbations that replace the features of all nodes: constant, degrees, random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Graph, Pattern
from grb.perturb.base import Compat, Drawn, Fixed, Streams, boundaries, check_compat, owners

# one-hot entries above which they are kept sparse unless asked otherwise: 64 MB as numbers
DENSE = 2**24


@dataclass(frozen=True)
class NoNodeFtrs(Fixed):
    """The same single feature, one, for every node: what is left is the structure.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.1.
    """

    title = "NoNodeFtrs"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with the same feature on every node."""
        return graph.with_features(torch.ones(graph.n, 1, device=graph.adj.device))


@dataclass(frozen=True)
class NodeDeg(Fixed):
    """The degree of every node as a one-hot vector: a summary of the structure instead of the features.

    Args:
        encoding: ``range`` has a column for every degree from 0 to the largest of the whole collection, ``unique`` one for
            every degree that occurs. As in the paper's code, collections have the first and single graphs the second if
            nothing is given.
        cap: Larger degrees count as this one; none if not given.
        sparse: Whether the result is a sparse matrix; where the dense one would take more than 64 MB if not given.

    Differs from GTaxoGym, where isolated nodes at the end of a single graph have a row of zeros.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.1.
    """

    encoding: Literal["range", "unique"] | None = None
    cap: int | None = None
    sparse: bool | None = None
    title = "NodeDeg"

    def __post_init__(self) -> None:
        if self.encoding not in (None, "range", "unique"):
            raise DataError(f"encoding is {self.encoding!r}, but 'range' or 'unique' is needed")
        if self.cap is not None and self.cap < 1:
            raise DataError(f"cap is {self.cap}, but a degree of at least 1 is needed")

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with one-hot degrees as features."""
        degrees = graph.adj.degrees.long()
        if self.cap is not None:
            degrees = degrees.clamp(max=self.cap)
        if (self.encoding or ("unique" if graph.ptr is None else "range")) == "unique":
            known, degrees = torch.unique(degrees, return_inverse=True)
            width = len(known)
        else:
            width = int(degrees.max()) + 1 if graph.n else 1
        sparse = graph.n * width > DENSE if self.sparse is None else self.sparse
        return graph.with_features(_one_hot(degrees, width, sparse))


def _one_hot(positions: Tensor, width: int, sparse: bool) -> Tensor | CSR:
    n = len(positions)
    if sparse:
        indptr = torch.arange(n + 1, dtype=torch.int32, device=positions.device)
        return CSR(Pattern(indptr, positions.int(), width), torch.ones(n, device=positions.device))
    return torch.zeros(n, width, device=positions.device).scatter_(1, positions.unsqueeze(1), 1.0)


@dataclass(frozen=True)
class RandFtrs(Drawn):
    """One feature per node, uniform in [-1, 1]: it tells nodes apart and says nothing about them.

    Args:
        compat: ``"gtaxogym"`` gives node i of every graph the same number, as the paper's code does, which starts its
            random numbers anew for every graph: an encoding of the node's position in the file.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.1.
        Sato et al., *Random Features Strengthen Graph Neural Networks*, SDM 2021.
    """

    compat: Compat = None
    title = "RandFtrs"

    def __post_init__(self) -> None:
        check_compat(self.compat)

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with random features."""
        ptr = boundaries(graph)
        owner = owners(ptr)
        position = np.arange(graph.n) - ptr[owner]
        numbers = Streams.draw(generator).uniform(np.zeros_like(owner) if self.compat else owner, position)
        x = torch.from_numpy((2 * numbers - 1).astype(np.float32)).unsqueeze(1)
        return graph.with_features(x.to(graph.adj.device))
