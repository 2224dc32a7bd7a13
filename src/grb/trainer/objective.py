"""Losses and scores of the profiling models: classes, labels, values; weighted, and with labels missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from grb import metric
from grb.errors import DataError

Kind = Literal["binary", "classes", "labels", "values"]
# scores that differ by less are equal: what two rows get from the same inputs differs in the last bits of float32
DECIMALS = 4


@dataclass(frozen=True)
class Objective:
    """What is learnt and how it is scored.

    Args:
        kind: Two classes (one logit), several classes, several labels at once, or a value to predict (regression).
        outputs: Logits per row.
        weighted: Classes weigh by the fraction of all others in a batch.
        centre: Mean of the values, which are learnt in units of their deviation.
        scale: Standard deviation of the values.
    """

    kind: Kind
    outputs: int
    weighted: bool = False
    centre: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, y: Tensor, classes: int, *, weighted: bool = False) -> Objective:
        """For labels [n] of a number of classes (-1 is missing), [n, labels] of 0, 1 and missing, or values [n] of floats."""
        if y.dim() == 1 and y.is_floating_point():
            known = y[torch.isfinite(y)].double()
            if len(known) < 2 or not float(known.std()) > 0:
                raise DataError(
                    "the values to predict are all the same, but a regression needs at least two different ones"
                )
            return cls("values", 1, centre=float(known.mean()), scale=float(known.std()))
        if y.dim() == 2:
            return cls("labels", int(y.shape[1]))
        if classes < 2:
            raise DataError(f"the labels have {classes} class, but at least 2 are needed")
        return cls("binary", 1, weighted) if classes == 2 else cls("classes", classes, weighted)

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean over all labels that are there; zero without any."""
        known = known_labels(y)
        if self.kind == "labels":
            # a missing label takes part with weight 0, so that shapes stay
            each = functional.binary_cross_entropy_with_logits(logits, torch.where(known, y, 0.0), reduction="none")
            return (each * known).sum() / known.sum().clamp(min=1)
        if not bool(known.all()):
            logits, y = logits[known], y[known]
        if self.kind == "values":
            aims = (y - self.centre) / self.scale
            return functional.mse_loss(logits.squeeze(1), aims.to(logits.dtype)) if len(y) else logits.sum() * 0
        if not len(y):
            return logits.sum() * 0
        weights = self._weights(y) if self.weighted else None
        if self.kind == "binary":
            own = None if weights is None else weights[y]
            return functional.binary_cross_entropy_with_logits(logits.squeeze(1), y.to(logits.dtype), weight=own)
        return functional.cross_entropy(logits, y, weight=weights)

    def _weights(self, y: Tensor) -> Tensor:
        r""":math:`(n - n_c) / n` of every class that occurs, [classes]."""
        counts = torch.bincount(y, minlength=max(self.outputs, 2))
        return torch.where(counts > 0, (len(y) - counts) / len(y), 0.0).to(torch.get_default_dtype())

    def auroc(self, logits: Tensor, y: Tensor) -> float:
        """Area under the ROC curve, mean over classes or labels; ties count as ties, up to the noise of float32.

        Of values it is their concordance (:func:`grb.metric.concordance`), which is the AUROC where there are two of them.
        """
        if self.kind == "values":
            known = known_labels(y)
            return metric.concordance(rounded(logits[known]).squeeze(1), y[known])
        if self.kind == "labels":
            return metric.auroc(rounded(logits), torch.where(known_labels(y), y, torch.nan))
        known = known_labels(y)
        logits, y = logits[known], y[known]
        if self.kind == "classes":
            logits = log_odds(logits)
        return metric.auroc(rounded(logits), y)


def known_labels(y: Tensor) -> Tensor:
    """Which labels are there: not -1, not NaN."""
    if y.dim() == 1:
        return torch.isfinite(y) if y.is_floating_point() else y >= 0
    return torch.isfinite(y) & (y >= 0)


def log_odds(logits: Tensor) -> Tensor:
    r"""Log odds of every class against the rest, [n, c]; in the order of the probabilities, but not squeezed towards 0 and 1.

    .. math:: \log \frac{p_c}{1 - p_c} = z_c - \log \sum_{k \ne c} e^{z_k}
    """
    wide = logits.double()
    others = (
        wide.unsqueeze(1)
        .expand(-1, wide.shape[1], -1)
        .masked_fill(torch.eye(wide.shape[1], dtype=torch.bool), -torch.inf)
    )
    return wide - others.logsumexp(2)


def rounded(scores: Tensor) -> Tensor:
    """Scores rounded, so that ties do not depend on the last bits."""
    return scores.double().round(decimals=DECIMALS)
