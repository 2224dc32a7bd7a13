"""Attention of all nodes to all nodes in linear time: no matrix of nodes by nodes is ever made."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.errors import DataError
from grb.model.layers import Linear


def simple_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    r"""SGFormer's attention, [n, d]; costs O(n d^2).

    .. math:: D^{-1} \Big( V + \frac{1}{n} \tilde Q (\tilde K^\top V) \Big), \qquad
              D = \mathrm{diag}\Big(1 + \frac{1}{n} \tilde Q (\tilde K^\top 1)\Big), \qquad
              \tilde Q = \frac{Q}{\lVert Q \rVert_F}, \; \tilde K = \frac{K}{\lVert K \rVert_F}

    Args:
        query: Q, [n, d].
        key: K, [n, d].
        value: V, [n, d].

    References:
        Wu et al., *SGFormer: Simplifying and Empowering Transformers for Large-Graph Representations*, NeurIPS 2023.
    """
    n = max(len(query), 1)
    query, key = (each / each.norm().clamp_min(1e-12) for each in (query, key))
    total = n * value + query @ (key.T @ value)
    weight = n + query @ key.sum(0)
    return total / weight.clamp_min(1e-6).unsqueeze(1)


def kernel_attention(query: Tensor, key: Tensor, value: Tensor, heads: int = 1) -> Tensor:
    r"""Attention with the kernel :math:`\varphi(q)^\top \varphi(k)`, :math:`\varphi(x) = \mathrm{elu}(x) + 1`, [n, d].

    .. math:: \frac{\varphi(q_i)^\top \sum_j \varphi(k_j) v_j^\top}{\varphi(q_i)^\top \sum_j \varphi(k_j)}

    Args:
        query: [n, d].
        key: [n, d].
        value: [n, d].
        heads: Number of heads; a divisor of d.

    References:
        Katharopoulos et al., *Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention*, ICML 2020.
    """
    n, width = query.shape
    q, k = ((functional.elu(each) + 1).view(n, heads, -1) for each in (query, key))
    v = value.view(n, heads, -1)
    context = torch.einsum("nhd,nhe->hde", k, v)
    weight = torch.einsum("nhd,hd->nh", q, k.sum(0)).clamp_min(1e-12)
    return (torch.einsum("nhd,hde->nhe", q, context) / weight.unsqueeze(2)).reshape(n, width)


class GlobalAttention(nn.Module):
    """Query, key and value of every row, and the attention of all rows to all rows.

    Args:
        width: Width of the rows.
        heads: Number of heads with the kernel of :func:`kernel_attention`; None for :func:`simple_attention`.
    """

    def __init__(self, width: int, heads: int | None = None) -> None:
        super().__init__()
        if heads is not None and (heads < 1 or width % heads):
            raise DataError(f"heads is {heads}, but a divisor of the width {width} is needed")
        self.heads = heads
        self.query, self.key, self.value = (Linear(width, width) for _ in range(3))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        for each in (self.query, self.key, self.value):
            each.reset_parameters(generator)

    def forward(self, h: Tensor) -> Tensor:
        """New rows, [n, width]."""
        parts = self.query(h), self.key(h), self.value(h)
        return simple_attention(*parts) if self.heads is None else kernel_attention(*parts, heads=self.heads)
