"""Adjacency matrices as scripts of the papers' era handle them: normalising functions and what a model is fed with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Pattern, convert, normalise

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Norm = Callable[[Any], Any]


def GCNAdjNorm(adj: Any, order: float = -0.5) -> Any:  # noqa: N802
    r""":math:`\tilde D^{o} (A + I) \tilde D^{o}` of a scipy matrix, or of a dense or sparse torch tensor.

    Differs from THUDM/grb: self-loops of the input do not count twice.

    Args:
        adj: Adjacency, [n, n].
        order: Exponent :math:`o` of the degrees.
    """
    return _scaled(adj, order, order)


def SAGEAdjNorm(adj: Any, order: float = -1) -> Any:  # noqa: N802
    r""":math:`\tilde D^{o} (A + I)`, the mean over a node and its neighbours for ``order=-1``; entries count as one.

    Args:
        adj: Adjacency, [n, n].
        order: Exponent :math:`o` of the degrees; 0 leaves them out.
    """
    if sp.issparse(adj):
        adj = adj.tocsr(copy=True)
        adj.data[:] = adj.data > 0
        adj.eliminate_zeros()
    else:
        adj = (adj > 0).to(torch.get_default_dtype()) if not adj.is_sparse else _ones(adj)
    return _scaled(adj, order, 0.0)


def SPARSEAdjNorm(adj: Any, order: float = -0.5) -> Any:  # noqa: N802
    """The same as :func:`GCNAdjNorm`, which takes sparse tensors too."""
    return GCNAdjNorm(adj, order)


def RobustGCNAdjNorm(adj: Any) -> tuple[Any, Any]:  # noqa: N802
    """The operators of means and of variances: :func:`GCNAdjNorm` of the orders -1/2 and -1."""
    return GCNAdjNorm(adj, -0.5), GCNAdjNorm(adj, -1)


def feature_normalize(features: Tensor) -> Tensor:
    """Rows divided by their sums; a row whose sum is zero becomes zero."""
    total = features.sum(1, keepdim=True)
    return torch.where(total == 0, 0.0, features / torch.where(total == 0, 1.0, total))


def _scaled(adj: Any, left: float, right: float) -> Any:
    if sp.issparse(adj):
        looped = _without_loops(adj) + sp.eye(adj.shape[0], dtype=np.float32, format="csr")
        degrees = np.asarray(looped.sum(1)).ravel()
        ends = (sp.diags(degrees**each if each else np.ones_like(degrees)) for each in (left, right))
        return sp.csr_matrix(next(ends) @ looped @ next(ends))
    if adj.is_sparse:
        return _scaled_sparse(adj, left, right)
    looped = adj - torch.diag(adj.diagonal()) + torch.eye(len(adj), dtype=adj.dtype, device=adj.device)
    degrees = looped.sum(1)
    return degrees.pow(left).unsqueeze(1) * looped * degrees.pow(right)


def _scaled_sparse(adj: Tensor, left: float, right: float) -> Tensor:
    adj, n = adj.coalesce(), adj.shape[0]
    apart = adj.indices()[0] != adj.indices()[1]
    nodes = torch.arange(n, device=adj.device)
    rows, columns = torch.cat([adj.indices()[:, apart], torch.stack([nodes, nodes])], dim=1)
    values = torch.cat([adj.values()[apart], torch.ones(n, dtype=adj.dtype, device=adj.device)])
    degrees = torch.zeros(n, dtype=adj.dtype, device=adj.device).index_add(0, rows, values)
    values = values * degrees.pow(left)[rows] * degrees.pow(right)[columns]
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, adj.shape, check_invariants=True).coalesce()


def _ones(adj: Tensor) -> Tensor:
    adj = adj.coalesce()
    kept = adj.values() > 0
    values = torch.ones(int(kept.sum()), device=adj.device)
    return torch.sparse_coo_tensor(adj.indices()[:, kept], values, adj.shape, check_invariants=True)


def _without_loops(adj: Any) -> csr_matrix:
    rows = sp.csr_matrix(adj, dtype=np.float32, copy=True)
    rows.setdiag(0)
    rows.eliminate_zeros()
    return rows


class PreparedAdjacency(CSR):
    """A sparse matrix that models of ours take as their operator, and functions of torch as a sparse tensor.

    ``torch.spmm(adj, x)``, ``torch.sparse.mm(adj, x)`` and ``adj @ x`` work; attributes of sparse tensors are looked up in one.
    """

    @property
    def tensor(self) -> Tensor:
        """As a coalesced sparse tensor of torch."""
        where = torch.stack([self.pattern.row_ids.long(), self.pattern.indices.long()])
        values = torch.ones(self.pattern.entries) if self.values is None else self.values
        return torch.sparse_coo_tensor(where, values, self.shape, is_coalesced=True, check_invariants=True)

    def to(self, device: torch.device | str) -> PreparedAdjacency:
        """The same matrix on another device."""
        values = None if self.values is None else self.values.to(device)
        return PreparedAdjacency(self.pattern.to(device), values)

    def remembering(self, x: Tensor) -> PreparedAdjacency:
        """The same matrix: a custom module takes it to torch's functions."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not hasattr(Tensor, name):
            raise AttributeError(name)
        return getattr(self.tensor, name)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = [each.tensor if isinstance(each, PreparedAdjacency) else each for each in args]
        return func(*plain, **(kwargs or {}))


def build_adj(attr: Any, edge_index: Any, adj_type: str = "csr") -> Any:
    """A scipy matrix from weights and ends of edges.

    Args:
        attr: Weights of the edges, [e]; None or weights without a column mean ones.
        edge_index: Ends, [2, e] or a pair of [e].
        adj_type: ``csr`` or ``coo``.
    """
    rows, columns = (np.asarray(part, dtype=np.int64) for part in edge_index)
    weights = np.ones(len(rows), dtype=np.float32) if attr is None else np.asarray(attr, dtype=np.float32)
    if weights.ndim != 1 or len(weights) != len(rows):
        weights = np.ones(len(rows), dtype=np.float32)
    if adj_type not in ("csr", "coo"):
        raise DataError(f"adj_type is {adj_type!r}, but 'csr' or 'coo' is needed")
    n = int(max(rows.max(initial=-1), columns.max(initial=-1))) + 1
    made = sp.coo_matrix((weights, (rows, columns)), shape=(n, n))
    return made.tocsr() if adj_type == "csr" else made


def adj_to_tensor(adj: Any) -> Tensor:
    """A scipy matrix as a sparse tensor of torch."""
    return _prepared(sp.csr_matrix(adj)).tensor


def adj_preprocess(
    adj: Any, adj_norm_func: Norm | None = None, mask: Any = None, model_type: str = "torch", device: str = "cpu"
) -> Any:
    """What ``model(features, adj)`` takes: a normalised adjacency, or a list of them where the function gives several.

    Differs from THUDM/grb: the sub-graph of ``mask`` is normalised by its own degrees, not by those of the whole graph.

    Args:
        adj: A scipy matrix or a tensor, [n, n].
        adj_norm_func: One of :mod:`grb.utils.normalize`, or your own; None leaves the adjacency as it is.
        mask: Nodes to keep, [n] booleans or ids.
        model_type: ``torch``, ``dgl`` or ``cogdl``; the attention of ``dgl`` models wants self-loops.
        device: Where the result is.
    """
    if isinstance(adj, PreparedAdjacency):
        return adj.to(device)
    if isinstance(adj, Tensor):
        adj = _from_tensor(adj)
    rows = sp.csr_matrix(adj)
    if mask is not None:
        kept = np.asarray(mask)
        rows = rows[kept][:, kept]
    if adj_norm_func is None and model_type == "dgl":
        rows = _without_loops(rows) + sp.eye(rows.shape[0], dtype=np.float32, format="csr")
    made = rows if adj_norm_func is None else adj_norm_func(rows)
    if isinstance(made, tuple | list):
        return [_prepared(each).to(device) for each in made]
    return _prepared(made).to(device)


def _prepared(matrix: Any) -> PreparedAdjacency:
    if isinstance(matrix, Tensor):
        matrix = _from_tensor(matrix)
    rows = sp.csr_matrix(matrix)
    rows.sum_duplicates()
    pattern = Pattern(
        torch.from_numpy(rows.indptr.astype(np.int32)), torch.from_numpy(rows.indices.astype(np.int32)), rows.shape[1]
    )
    return PreparedAdjacency(pattern, torch.from_numpy(rows.data.astype(np.float32)))


def _from_tensor(adj: Tensor) -> Any:
    adj = adj.detach().cpu()
    if not adj.is_sparse:
        return sp.csr_matrix(adj.numpy())
    adj = adj.coalesce()
    return sp.csr_matrix((adj.values().numpy(), adj.indices().numpy()), shape=tuple(adj.shape))


# normalising functions that ours equal, with gradients of edges
OURS: dict[Norm | None, Callable[[Adjacency], Any]] = {
    None: normalise.raw,
    GCNAdjNorm: normalise.gcn,
    SPARSEAdjNorm: normalise.gcn,
    SAGEAdjNorm: normalise.row,
    RobustGCNAdjNorm: lambda adj: [normalise.gcn(adj), normalise.scaled(adj, left=-1.0, right=-1.0)],
}


def prepared(module: nn.Module, adj: Adjacency) -> Any:
    """The adjacency for a plain module with an attribute ``adj_norm_func``, as the trainers of THUDM/grb feed it."""
    norm: Any = module.adj_norm_func
    if norm in OURS:
        made = OURS[norm](adj)
        return [_with_torch(each) for each in made] if isinstance(made, list) else _with_torch(made)
    if adj.values is not None and adj.values.requires_grad:
        raise DataError(
            f"{type(module).__name__} normalises by its own {getattr(norm, '__name__', norm)}, which has no gradients of "
            "edges; use grb.utils.normalize, or an attack that needs none"
        )
    return adj_preprocess(convert.to_scipy(adj), norm, model_type="torch")


def _with_torch(op: CSR) -> PreparedAdjacency:
    return PreparedAdjacency(op.pattern, op.values)
