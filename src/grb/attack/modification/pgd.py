"""PGD on features of a few targets, and PGD on all edges at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from grb.attack.base import Attack, AttackContext, accepts_paper_names, clean_labels
from grb.attack.features import Objective, SignAscent, check_steps
from grb.attack.incremental import forward_of_features
from grb.attack.losses import Loss, cross_entropy
from grb.attack.modification.base import Limits, SearchState
from grb.attack.modification.relaxation import Relaxation
from grb.attack.setting_checks import check_rounding
from grb.errors import DataError
from grb.graph import GraphEdit, dense

# one number per pair is kept: above this, PR-BCD does the same on blocks
MOST_PAIRS = 2**24


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class PGD(Limits):
    r"""Signed gradient steps on the features of some targets.

    .. math:: x \leftarrow \mathrm{clip}(x + \epsilon\, \mathrm{sign}(\nabla_x L))

    As many targets as the threat model lets change are drawn at random, without replacement; all other rows stay as they
    are. The best iterate is kept.

    Args:
        step_size: Size of one step.
        steps: Number of steps.
        radius: Largest change of any feature, beside the threat model's range; None for no such limit.
        patience: Stop after this number of steps without a lower accuracy of the attacked model; None to never stop early.
        loss: What is raised, per target.
        edges: A modification attack that changes edges first, such as ``RND()`` in THUDM/grb; None leaves them.

    Differs from THUDM/grb, which clips the features of all nodes and draws the same target twice.

    References:
        Madry et al., *Towards Deep Learning Models Resistant to Adversarial Attacks*, ICLR 2018.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks.
    """

    step_size: float = 0.01
    steps: int = 500
    radius: float | None = None
    patience: int | None = None
    loss: Loss = cross_entropy
    edges: Attack | None = None
    version = 1

    def __post_init__(self) -> None:
        check_steps(step_size=float(self.step_size), steps=self.steps, patience=self.patience)
        if self.radius is not None and not (math.isfinite(self.radius) and self.radius >= 0):
            raise DataError(f"radius is {self.radius}, but must be finite and not negative")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Change the features of some targets, after the edges if ``edges`` is given."""
        threat = context.modification
        edit = GraphEdit(n=context.graph.n) if self.edges is None else self.edges(context, generator=generator)
        count = min(int(threat.feature_nodes), len(context.targets))
        if count == 0 or threat.feature_range is None:
            if len(context.targets):
                context.note("no features were changed: the threat model allows feature_nodes=0")
            return edit
        chosen = torch.randperm(len(context.targets), generator=generator)[:count]
        nodes = context.targets[chosen].sort().values
        _, labels = clean_labels(context)
        forward, incremental = forward_of_features(
            context.surrogate(), context.graph.apply(edit), nodes, context.targets
        )
        if not incremental:
            context.note("full forward pass in every step: the model has no stages")
        start = dense(context.graph.x)[nodes].clamp(*threat.feature_range)
        rule = SignAscent(self.step_size, self.steps, patience=self.patience)
        objective = Objective(forward, labels, self.loss, context.report)
        x = rule(objective, start, self._box(start, threat.feature_range), generator)
        return GraphEdit(n=edit.n, add=edit.add, drop=edit.drop, set_ids=nodes, set_x=x.detach())

    def _box(self, start: Tensor, limits: tuple[float, float]) -> Any:
        """Ends of the range, or of the part of it around each feature."""
        if self.radius is None:
            return limits
        return (start - self.radius).clamp(*limits), (start + self.radius).clamp(*limits)


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class FGSM(PGD):
    r"""One signed gradient step on the features of some targets, :math:`x + \epsilon\, \mathrm{sign}(\nabla_x L)`, clipped.

    :class:`PGD` with a single step; give ``steps`` for the iterated method.

    Args:
        step_size: Size of the step.
        steps: Number of steps.

    References:
        Goodfellow et al., *Explaining and Harnessing Adversarial Examples*, ICLR 2015.
    """

    step_size: float = 0.1
    steps: int = 1


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class TopologyPGD(Relaxation, Limits):
    r"""Projected gradient ascent on all pairs with an end among the targets at once, for small graphs.

    .. math:: s \leftarrow \Pi\left(s + \epsilon\, \frac{B}{\sqrt t}\, \nabla L\right)

    with a weight :math:`s` in [0, 1] for every pair and the projection onto the budget :math:`B`; then the heaviest pairs
    and random roundings.

    Args:
        step_size: Size of one step, relative to the budget.
        steps: Number of steps.

    Differs from the paper, whose kind :meth:`paper` gives: fewer steps, and refined flips.

    References:
        Xu et al., *Topology Attack and Defense for Graph Neural Networks: An Optimization Perspective*, IJCAI 2019.
    """

    step_size: float = 0.1
    steps: int = 20
    version = 3
    constants: ClassVar[Mapping[str, Any]] = {**Relaxation.constants, "steps": 200}

    def __post_init__(self) -> None:
        check_steps(step_size=float(self.step_size), steps=self.steps)
        check_rounding(self.max_final_samples, self.refinements)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Optimise the weights of all pairs and round them."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        if state.space.count > MOST_PAIRS:
            raise DataError(
                f"the targets have {state.space.count} pairs, but PGD on all of them is for {MOST_PAIRS} at most; "
                "use pr-bcd, which looks at blocks"
            )

        def rate(epoch: int) -> float:
            return self.step_size * state.left / math.sqrt(epoch + 1)

        return self.searched(context, state, state.space.count, self.steps, rate, generator)
