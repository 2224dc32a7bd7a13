"""GCN-SVD: the graph is replaced by its low-rank part, which attacks can hardly change."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from grb.defense.relaxed import Relaxed
from grb.errors import DataError
from grb.graph import CSR, Adjacency
from grb.graph.eigenpairs import largest_eigenpairs
from grb.graph.operators import LowRank
from grb.model.base import Stage
from grb.model.stack import ConvStack
from grb.model.torch.gcn import GCNConv

# a truncated matrix can have degrees of zero or below
LOWEST_DEGREE = 1e-5


@dataclass(eq=False, repr=False, kw_only=True)
class GCNSVD(ConvStack):
    r"""GCN on the rank-r part of the adjacency, kept as factors and computed once per graph.

    With the r eigenpairs of largest :math:`|\lambda|`, :math:`A_r = U \Lambda U^T` and :math:`d = A_r 1 + 1` (at least
    1e-5), the convolution's operator is :math:`D^{-1/2} (A_r + I) D^{-1/2}`: never densified, :math:`O(n r h)` per layer.

    Args:
        rank: r.

    References:
        Entezari et al., *All You Need Is Low (Rank): Defending Against Adversarial Attacks on Graphs*, WSDM 2020.
    """

    rank: int = 50
    name = "gcn-svd"
    operator_cost = 32

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        """A graph convolution."""
        if self.rank < 1:
            raise DataError(f"rank is {self.rank}, but at least 1 is needed")
        return GCNConv(in_features, out_features)

    def prepare(self, adj: Adjacency) -> LowRank:
        """The normalised low-rank approximation of the adjacency."""
        values, vectors = self.eigenpairs(adj)
        return _normalised(vectors * values, vectors)

    def eigenpairs(self, adj: Adjacency) -> tuple[Tensor, Tensor]:
        """Eigenvalues that are kept, [r], and their vectors, [n, r]."""
        return largest_eigenpairs(adj, self.rank)

    def relaxations(self) -> dict[str, nn.Module]:
        """``full-rank``: all of the adjacency; ``projected``: see :class:`_Projected`."""
        return {"full-rank": _FullRank(self), "projected": _Projected(self)}


def _normalised(weighted: Tensor, vectors: Tensor) -> LowRank:
    """With :math:`A_r = W V^T`, the operator :math:`D^{-1/2} (A_r + I) D^{-1/2}`."""
    degrees = (weighted @ vectors.sum(0) + 1).clamp_min(LOWEST_DEGREE)
    scale = degrees.rsqrt().unsqueeze(1)
    return LowRank(weighted * scale, vectors * scale, 1 / degrees)


class _FullRank(Relaxed):
    """The same convolutions on the whole adjacency, as a plain GCN has them."""

    model: GCNSVD

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        logits: Tensor = self.model(x, op)
        return logits

    def stages(self) -> list[Stage] | None:
        return self.model.stages()


class _Projected(_FullRank):
    r"""The rank-r part with eigenvectors held constant, :math:`A_r = V V^T A V V^T`: edges have gradients.

    The logits are the model's own. Where an eigenvalue is apart from the others, the gradient is nearly that of the model.
    """

    operator_cost = 32

    def prepare(self, adj: Adjacency) -> LowRank:  # type: ignore[override]
        values = None if adj.values is None else adj.values.detach()
        _, vectors = largest_eigenpairs(Adjacency(adj.pattern, values), self.model.rank)
        inner = vectors.T @ (CSR(adj.pattern, adj.values, symmetric=True) @ vectors)
        return _normalised(vectors @ inner, vectors)

    def stages(self) -> None:
        return None
