"""How likely every class of every target is the true one, as an attacker without test labels may hold it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from grb.dataset.view import View

# temperatures that are looked at, and the fewest labelled nodes that say anything about one
COLDEST, WARMEST = 0.05, 1e4
FEWEST_NODES = 10


def beliefs(logits: Tensor, view: View) -> Tensor:
    r"""Calibrated clean probabilities of the targets, in double precision.

    .. math:: p_v = \mathrm{softmax}(z_v / T)

    with the temperature :math:`T` that makes the labels of the validation nodes most likely, which an attacker knows; 1 where
    fewer than ten of them have a label. Networks that are trained until they are sure say nothing about their mistakes
    otherwise: in single precision whole rows round to 0 and 1.

    Args:
        logits: Of all nodes on the clean graph, [n, c].
        view: Has the targets, the validation nodes and the labels that the attacker may see.

    Returns:
        [t, c] doubles whose rows sum to one.

    References:
        Guo et al., *On Calibration of Modern Neural Networks*, ICML 2017.
    """
    temperature = 1.0
    if view.graph.y is not None and view.graph.y.ndim == 1:
        known = view.val[view.graph.y[view.val] >= 0]
        labels = view.graph.y[known]
        inside = labels < logits.shape[1]
        temperature = fitted_temperature(logits[known[inside]], labels[inside])
    scaled = logits[view.targets].double().nan_to_num() / temperature
    return torch.softmax(scaled, dim=1)


def fitted_temperature(logits: Tensor, labels: Tensor) -> float:
    """The temperature of the softmax under which some labels are most likely; 1 with fewer than ten of them.

    Args:
        logits: [v, c].
        labels: [v].

    >>> sure = torch.tensor([[9.0, 0.0]]).repeat(20, 1)  # right in three of four cases
    >>> labels = (torch.arange(20) % 4 == 0).long()
    >>> round(fitted_temperature(sure, labels), 2)  # 9 / log(3)
    8.19
    """
    from scipy.optimize import minimize_scalar

    if len(labels) < FEWEST_NODES:
        return 1.0
    given = logits.detach().double().nan_to_num()

    def surprise(log_temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(given / math.exp(log_temperature), labels))

    found = minimize_scalar(
        surprise, bounds=(math.log(COLDEST), math.log(WARMEST)), method="bounded", options={"xatol": 1e-6}
    )
    return math.exp(float(found.x))
