"""The attributes of a dataset under the names that the GRB papers use: matrices, counts, ids and masks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from grb.dataset.registry import check_difficulty
from grb.dataset.splits import Split
from grb.errors import DataError
from grb.graph import CSR, Graph, convert

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class DatasetAttributes:
    """What :class:`~grb.dataset.Dataset` shows of its graph and its split."""

    name: str
    mode: str
    graph: Graph
    split: Split

    @cached_property
    def adj(self) -> csr_matrix:
        """The adjacency as a scipy CSR matrix, copied; tensors may be its index, as in ``adj[test_mask]``."""
        from grb.dataset.matrix import AdjacencyMatrix

        return AdjacencyMatrix(convert.to_scipy(self.graph.adj))

    @property
    def features(self) -> Tensor:
        """Features as a dense matrix, [n, d]; ``graph.x`` may be sparse."""
        x = self.graph.x
        return x if isinstance(x, Tensor) else x @ torch.eye(x.shape[1])

    @property
    def labels(self) -> Tensor:
        """Classes of nodes (of graphs where graphs are classified), or a 0/1 matrix."""
        return cast(Tensor, self.graph.y)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.graph.n

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return self.graph.num_edges

    @property
    def num_features(self) -> int:
        """Number of feature columns."""
        return self.graph.num_features

    @property
    def feature_range(self) -> tuple[float, float]:
        """Smallest and largest feature after normalisation."""
        x = self.graph.x
        if isinstance(x, CSR):
            values = torch.ones(1) if x.values is None else x.values
            return min(float(values.min()), 0.0), max(float(values.max()), 0.0)
        return float(x.min()), float(x.max())

    @property
    def num_items(self) -> int:
        """What splits are made of: nodes, or the graphs of a collection."""
        return self.graph.n if self.graph.ptr is None else self.graph.num_graphs

    @property
    def index_train(self) -> Tensor:
        """Ids of the training nodes."""
        return self.split.train

    @property
    def index_val(self) -> Tensor:
        """Ids of the validation nodes."""
        return self.split.val

    @property
    def index_test(self) -> Tensor:
        """Ids of the test nodes of this dataset's difficulty."""
        return self.test_ids(self.mode)

    def test_ids(self, mode: str) -> Tensor:
        """Ids of the test nodes of a difficulty."""
        if check_difficulty(mode) not in self.split.test:
            raise DataError(f"dataset '{self.name}' has no {mode} test set; it has {', '.join(self.split.test)}")
        return self.split.test[mode]

    @property
    def index_test_easy(self) -> Tensor:
        """Ids of the easy test nodes."""
        return self.test_ids("easy")

    @property
    def index_test_medium(self) -> Tensor:
        """Ids of the medium test nodes."""
        return self.test_ids("medium")

    @property
    def index_test_hard(self) -> Tensor:
        """Ids of the hard test nodes."""
        return self.test_ids("hard")

    @property
    def train_mask(self) -> Tensor:
        """Boolean mask of the training nodes."""
        return self._mask(self.index_train)

    @property
    def val_mask(self) -> Tensor:
        """Boolean mask of the validation nodes."""
        return self._mask(self.index_val)

    @property
    def test_mask(self) -> Tensor:
        """Boolean mask of the test nodes of this dataset's difficulty."""
        return self._mask(self.index_test)

    @property
    def num_train(self) -> int:
        """Number of training nodes."""
        return len(self.index_train)

    @property
    def num_val(self) -> int:
        """Number of validation nodes."""
        return len(self.index_val)

    @property
    def num_test(self) -> int:
        """Number of test nodes of this dataset's difficulty."""
        return len(self.index_test)

    def _mask(self, ids: Tensor) -> Tensor:
        mask = torch.zeros(self.num_items, dtype=torch.bool)
        mask[ids] = True
        return mask
