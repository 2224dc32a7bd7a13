"""PGD: signed gradient steps from a random start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from grb.attack.base import accepts_paper_names
from grb.attack.injection.fgsm import FGSM


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class PGD(FGSM):
    """Random edges, features by projected gradient ascent from N(0, (hi / 10)^2); otherwise as FGSM.

    ``hi`` is the larger end of the feature range.

    References:
        Madry et al., *Towards Deep Learning Models Resistant to Adversarial Attacks*, ICLR 2018.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks.
    """

    start: ClassVar[float] = 0.1
