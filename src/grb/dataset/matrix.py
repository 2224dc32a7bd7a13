"""The adjacency that a dataset shows: a scipy matrix whose rows can also be picked by torch's masks and ids."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_matrix
from torch import Tensor


class AdjacencyMatrix(csr_matrix):  # type: ignore[misc]
    """A scipy CSR matrix that takes tensors as an index, as in ``dataset.adj[dataset.test_mask]``; scipy alone refuses them."""

    def __getitem__(self, key: Any) -> Any:
        parts = tuple(_plain(part) for part in key) if isinstance(key, tuple) else _plain(key)
        return super().__getitem__(parts)


def _plain(part: Any) -> Any:
    return part.detach().cpu().numpy() if isinstance(part, Tensor) else part
