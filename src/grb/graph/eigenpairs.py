"""The eigenvalues of largest size of a graph, and their vectors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from grb.graph.adjacency import Adjacency
from grb.graph.convert import to_scipy


def largest_eigenpairs(adj: Adjacency, rank: int) -> tuple[Tensor, Tensor]:
    """Eigenvalues of largest size, [r], and their vectors, [n, r]; the same bits for the same graph."""
    from scipy.sparse.linalg import eigsh

    matrix = to_scipy(adj).astype(np.float64)
    n = adj.n
    if n <= max(2 * rank, 64):
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        # a fixed start, because Lanczos draws a random one otherwise
        values, vectors = eigsh(matrix, k=rank, which="LM", v0=np.full(n, n**-0.5))
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    return torch.from_numpy(values[order]).float(), torch.from_numpy(np.ascontiguousarray(vectors[:, order])).float()
