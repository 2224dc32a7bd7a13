r"""What an attacker makes larger; logits [t, c] and labels [t] in, one number per target out, [t].

With logits :math:`z`, :math:`p = \mathrm{softmax}(z)`, the label :math:`y` and the margin
:math:`m = z_y - \max_{c \ne y} z_c`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    r""":math:`-\log p_y`."""
    return functional.cross_entropy(logits, y, reduction="none")


def margin(logits: Tensor, y: Tensor) -> Tensor:
    r""":math:`-m`; grows without bound for nodes already lost."""
    own = logits.gather(1, y.unsqueeze(1)).squeeze(1)
    if logits.shape[1] == 1:
        return -own
    rest = logits.scatter(1, y.unsqueeze(1), -torch.inf)
    return rest.max(1).values - own


def tanh_margin(logits: Tensor, y: Tensor, scale: float = 1.0) -> Tensor:
    r""":math:`\tanh(-m / s)`: nodes near the boundary count most (Geisler et al., NeurIPS 2021, with :math:`s = 1`).

    Args:
        logits: [t, c].
        y: [t].
        scale: Margins far beyond it hardly count; :func:`typical_margin` measures what is far for a model.
    """
    return torch.tanh(margin(logits, y) / scale)


def typical_margin(logits: Tensor, y: Tensor) -> float:
    """The median margin, at least 1: logits of deep models are large, and a hyperbolic tangent of them is flat."""
    return max(1.0, float(margin(logits.detach(), y).neg().median())) if len(y) else 1.0


def masked_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    r""":math:`-\log p_y` of the nodes that still get their label, scaled so that their mean comes out; all if none does."""
    right = logits.detach().argmax(1) == y
    if not right.any():
        return cross_entropy(logits, y)
    return torch.where(right, cross_entropy(logits, y), 0.0) * (len(y) / int(right.sum()))


def prob_margin(logits: Tensor, y: Tensor) -> Tensor:
    r""":math:`\max_{c \ne y} p_c - p_y`: as the margin, of probabilities."""
    return margin(torch.softmax(logits, dim=1), y)


def smooth(logits: Tensor, y: Tensor, threshold: float = 4.0) -> Tensor:
    r"""TDGIA's :math:`-\max(r + \log p_y, 0)^2`: nodes with :math:`p_y < e^{-r}` are left alone (Zou et al., KDD 2021)."""
    return -functional.relu(threshold - cross_entropy(logits, y)).square()


LOSSES: dict[str, Loss] = {
    "cross-entropy": cross_entropy,
    "masked-cross-entropy": masked_cross_entropy,
    "margin": margin,
    "tanh-margin": tanh_margin,
    "prob-margin": prob_margin,
    "smooth": smooth,
}
