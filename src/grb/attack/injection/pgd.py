"""PGD: signed gradient steps from a random start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from grb.attack.injection.fgsm import FGSM


@dataclass(frozen=True, kw_only=True)
class PGD(FGSM):
    """Random edges, features by projected gradient ascent from N(0, (hi / 10)^2); otherwise as FGSM.

    ``hi`` is the larger end of the feature range.

    Args:
        epsilon: Step.
        n_epoch: Steps.
        patience: Stop after so many steps without a lower accuracy of the attacked model; None never.
        edges: Rule that wires the injected nodes.

    References:
        Madry et al., *Towards Deep Learning Models Resistant to Adversarial Attacks*, ICLR 2018.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks.
    """

    start: ClassVar[float] = 0.1
