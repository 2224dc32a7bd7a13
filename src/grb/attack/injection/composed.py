"""Injection attacks by parts: edges, start, loss, optimiser, rewiring, restarts and homophily, each chosen by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, TypeVar, get_args

import torch
from torch import Tensor

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.features import (
    ClippedOptimiser,
    FeatureRule,
    Schedule,
    SignAscent,
    SmoothMap,
    check_steps,
    constant,
    cosine,
)
from grb.attack.injection.apgd import AutoPGD
from grb.attack.injection.base import InjectionProblem, Limits, inject
from grb.attack.injection.edges import EDGE_RULES, EdgeRule
from grb.attack.injection.rewiring import By, Judged, judge, rewire
from grb.attack.injection.starts import STARTS, Start
from grb.attack.losses import LOSSES, Loss, tanh_margin, typical_margin
from grb.errors import DataError, UnknownName
from grb.graph import GraphEdit
from grb.model.base import relaxation

Optimiser = Literal["adam", "sine", "sign", "apgd"]
SCHEDULES: dict[str, Schedule] = {"constant": constant, "cosine": cosine}
OPTIMISERS: tuple[Optimiser, ...] = ("adam", "sine", "sign", "apgd")
_Part = TypeVar("_Part")


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class ComposedInjection(Limits):
    """An injection attack put together from named parts; the defaults are strong and cheap.

    Nodes are wired by ``edges``, their features begin at ``start`` and are optimised for ``steps`` steps. Then edges that help
    little are exchanged for edges that would help more, by the gradients of edge weights, and the features are optimised again
    for ``refine`` steps; a round of this that does not help is undone. The best of all ``restarts`` is returned.

    Args:
        edges: ``random``, ``uniform``, ``low-degree``, ``classes``, ``low-degree-classes``, ``tdgia``, or a custom rule
            (:mod:`grb.attack.injection.edges`).
        start: ``noise``, ``corners``, ``everywhere``, ``mean`` (of the targets that a node is joined with), ``other-class`` (a
            real node of another class), or a custom function (:mod:`grb.attack.injection.starts`).
        loss: ``cross-entropy``, ``masked-cross-entropy``, ``margin``, ``tanh-margin`` (in units of the median clean margin),
            ``prob-margin``, ``smooth``, or a custom loss (:mod:`grb.attack.losses`).
        optimiser: ``adam`` (clipped), ``sine`` (Adam behind TDGIA's smooth map), ``sign`` or ``apgd``.
        step_size: Learning rate of Adam, or the size of a signed step.
        schedule: ``constant`` or ``cosine``, of both kinds of Adam.
        steps: Number of steps before edges are exchanged, in each round of ``fraction``.
        fraction: Fraction of the nodes injected in one round, as in TDGIA; 1 for all at once.
        rewirings: Rounds in which edges are exchanged, at most; the attack ends early when exchanges stop to help.
        refine: Number of steps after each exchange.
        share: Fraction of the edges that one round exchanges at first.
        rewire_by: ``gradients`` (of edge weights) or ``margins`` (targets near the boundary are joined, lost ones given up); a
            model without gradients for edges goes by margins.
        restarts: Number of attempts, each with new random draws.
        homophily: Weight of HAO's term, which keeps injected nodes similar to their neighbours; 0 for none.
        relaxation: Name of one of the model's relaxations (:func:`grb.model.base.relaxations`) through which gradients are
            taken; logits stay the model's own. None for the model's own gradients.

    References:
        Zou et al., *TDGIA: Effective Injection Attacks on Graph Neural Networks*, KDD 2021.
        Chen et al., *Understanding and Improving Graph Injection Attack by Promoting Unnoticeability*, ICLR 2022.
    """

    edges: str | EdgeRule = "low-degree-classes"
    start: str | Start = "other-class"
    loss: str | Loss = "masked-cross-entropy"
    optimiser: Optimiser = "adam"
    step_size: float = 0.05
    schedule: Literal["constant", "cosine"] = "constant"
    steps: int = 200
    fraction: float = 1.0
    rewirings: int = 20
    refine: int = 60
    share: float = 0.3
    rewire_by: By = "gradients"
    restarts: int = 1
    homophily: float = 0.0
    relaxation: str | None = None
    version = 1
    paper_settings: ClassVar[bool] = False
    """The papers' steps are for other optimisers."""

    def __post_init__(self) -> None:
        for name, known in (("edges", EDGE_RULES), ("start", STARTS), ("loss", LOSSES)):
            _part(name, getattr(self, name), known)
        if self.optimiser not in OPTIMISERS:
            raise DataError(f"optimiser is {self.optimiser!r}, but one of {', '.join(OPTIMISERS)} is needed")
        if self.schedule not in SCHEDULES:
            raise DataError(f"schedule is {self.schedule!r}, but one of {', '.join(SCHEDULES)} is needed")
        if self.schedule != "constant" and self.optimiser not in ("adam", "sine"):
            raise DataError(f"schedule is {self.schedule!r}, but '{self.optimiser}' has its own; leave it out")
        check_steps(step_size=float(self.step_size), steps=self.steps, rewirings=self.rewirings, refine=self.refine)
        if self.rewire_by not in get_args(By):
            raise DataError(f"rewire_by is {self.rewire_by!r}, but one of {', '.join(get_args(By))} is needed")
        if self.restarts < 1:
            raise DataError(f"restarts is {self.restarts}, but at least 1 is needed")
        for name, value in (("fraction", self.fraction), ("share", self.share)):
            if not 0 < value <= 1:
                raise DataError(f"{name} is {value}, but must be above 0 and at most 1")
        if not 0 <= self.homophily < float("inf"):
            raise DataError(f"homophily is {self.homophily}, but must be at least 0 and finite")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """The best edit of all attempts."""
        threat = context.injection
        if not (threat.nodes and threat.edges_per_node and len(context.targets)):
            context.surrogate()
            return GraphEdit(n=context.graph.n)
        relaxed = None if self.relaxation is None else relaxation(context.surrogate(), self.relaxation)
        problem = InjectionProblem(context, relaxed)
        loss = self.loss_of(problem)
        best = self._attempt(problem, loss, generator)
        for _ in range(self.restarts - 1):
            found = self._attempt(problem, loss, generator)
            best = found if found.better_than(best) else best
        return best.edit

    def _attempt(self, problem: InjectionProblem, loss: Loss, generator: torch.Generator) -> Judged:
        edit = inject(
            problem.context,
            edges=_part("edges", self.edges, EDGE_RULES),
            features=self.optimiser_of(self.steps),
            generator=generator,
            loss=loss,
            fraction=self.fraction,
            start=_part("start", self.start, STARTS),
            homophily_weight=self.homophily,
            problem=problem,
        )
        if not self.rewirings:
            return judge(problem, edit, loss, self.homophily)
        return rewire(
            problem,
            edit,
            rounds=self.rewirings,
            features=self.optimiser_of(self.refine),
            loss=loss,
            share=self.share,
            generator=generator,
            by=self.rewire_by,
            homophily_weight=self.homophily,
        )

    def loss_of(self, problem: InjectionProblem) -> Loss:
        """The loss that was named, in units of the problem's margins where it has units."""
        if self.loss == "tanh-margin":
            return partial(tanh_margin, scale=typical_margin(problem.logits, problem.labels))
        return _part("loss", self.loss, LOSSES)

    def optimiser_of(self, steps: int) -> FeatureRule:
        """The optimiser that was named, for a number of steps."""
        if self.optimiser == "sign":
            return SignAscent(self.step_size, steps)
        if self.optimiser == "apgd":
            return AutoPGD(self.step_size, steps)
        kind = ClippedOptimiser if self.optimiser == "adam" else SmoothMap
        return kind(self._adam, steps, schedule=SCHEDULES[self.schedule])

    def _adam(self, variables: list[Tensor]) -> torch.optim.Optimizer:
        return torch.optim.Adam(variables, lr=self.step_size)


def _part(kind: str, chosen: str | _Part, known: Mapping[str, _Part]) -> _Part:
    """A part by its name, or a custom one as it is."""
    if not isinstance(chosen, str):
        return chosen
    if chosen not in known:
        raise UnknownName(f"choice of {kind}", chosen, list(known), advice=f"Allowed: {', '.join(known)}.")
    return known[chosen]
