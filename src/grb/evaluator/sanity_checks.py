"""Can an evaluation be trusted? Signs that a model is not robust but only hard to attack with gradients.

A model that looks robust because its gradients lead nowhere is a trap for its author and for every reader of a
leaderboard. These checks measure the known signs and say what to do about them. They find traps, they do not prove that
there is none. :func:`check_model` looks at a model, :func:`check_trace` at the steps of one attack,
:func:`check_scores` at accuracies alone.

References:
    Athalye et al., *Obfuscated Gradients Give a False Sense of Security*, ICML 2018.
    Croce and Hein, *Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse Parameter-free
    Attacks*, ICML 2020: the flags of AutoAttack.
    Mujkanovic et al., *Are Defenses for Graph Neural Networks Robust?*, NeurIPS 2022.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from grb.attack.base import Step
from grb.dataset import Dataset
from grb.dataset.view import View
from grb.errors import DataError
from grb.evaluator.probe import SAME_LOGITS, Probe, at_rest, checkable, pooling_bounds
from grb.evaluator.score_checks import Flag, at
from grb.graph import Graph
from grb.model.base import prepare

PASSES = 5
# fraction of rows whose gradient may be exactly zero although they matter
DEAD_ROWS = 0.1
# relative difference of a slope and the gradient's prediction of it
SAME_SLOPE = 0.1


# ---------------------------------------------------------------- a model


def check_model(
    model: nn.Module, data: Dataset | View, *, mode: str | None = None, samples: int = 8, seed: int = 0
) -> list[Flag]:
    """Is the evaluation deterministic, are the outputs logits, and do gradients show what the model reacts to?

    For the gradients a few nodes are injected beside the targets, each a copy of one that it is wired to, so that defenses
    which cut edges between unlike nodes keep theirs. The features of these nodes and of some targets are then moved.
    Model, gradients and torch's random state are left as they were.

    Args:
        model: Trained; anything with ``prepare`` and ``forward``.
        data: A dataset, or a view with targets; without any the validation nodes are taken, or else all.
        mode: Difficulty of a dataset's targets; its own if not given.
        samples: Targets, and injected nodes, whose gradients are looked at.
        seed: Random seed of what is drawn.

    Returns:
        ``not-finite``, ``random-forward``, ``probabilities-not-logits``, ``zero-gradient``, ``masked-gradient``; nothing
        if nothing is suspicious.
    """
    if samples < 1:
        raise DataError(f"samples is {samples}, but at least 1 is needed")
    view = data.attacker_view(mode) if isinstance(data, Dataset) else data
    graph, ids = checkable(model, view)
    with at_rest(model):
        logits = [_logits(model, graph)[ids] for _ in range(PASSES)]
        broken = next((each for each in logits if not torch.isfinite(each).all()), None)
        if broken is not None:
            return [_not_finite(broken)]
        found = random_forward(logits) + probabilities(logits[0])
        probe = Probe.make(model, graph, ids, samples, torch.Generator().manual_seed(seed))
        return found + zero_gradient(probe) + masked_gradient(probe)


def random_forward(passes: Sequence[Tensor]) -> list[Flag]:
    """Do several evaluation passes over the same graph give the same logits, [t, c] each?"""
    first = passes[0]
    largest = float(first.abs().max().clamp_min(1e-12))
    difference = max(float((other - first).abs().max()) / largest for other in passes)
    changed = max(int((other.argmax(1) != first.argmax(1)).sum()) for other in passes)
    if difference <= SAME_LOGITS and not changed:
        return []
    return [
        Flag(
            "random-forward",
            f"{len(passes)} evaluation passes over one graph differ by {difference:.2g} of the largest logit and in "
            f"{changed} of {len(first)} predictions, but at most {SAME_LOGITS:g} and 0 are allowed; make evaluation "
            "deterministic, or attack the mean of many passes",
            {"difference": difference, "changed": changed, "passes": len(passes)},
        )
    ]


def probabilities(logits: Tensor) -> list[Flag]:
    """Are these probabilities, rows [t, c] from 0 to 1 with the sum 1? Their softmax is nearly flat, and so is its slope."""
    total = float((logits.sum(1) - 1).abs().max())
    if float(logits.min()) < 0 or float(logits.max()) > 1 or total > 1e-5:
        return []
    return [
        Flag(
            "probabilities-not-logits",
            f"all outputs lie between 0 and 1 and every row sums to 1 up to {total:.1g}, as probabilities do, but "
            "losses and attacks take logits; return what goes into the softmax",
            {"lowest": float(logits.min()), "highest": float(logits.max()), "sum_error": total},
        )
    ]


def zero_gradient(probe: Probe) -> list[Flag]:
    """Rows whose gradient is exactly zero although the logits change when they are moved."""
    silent = (probe.gradient == 0).all(1).nonzero().flatten().tolist()
    dead = [row for row in silent if probe.matters(row)]
    count, half = len(probe.rows), probe.targets
    if len(dead) <= DEAD_ROWS * count:
        return []
    shares = {"targets": sum(row < half for row in dead) / half, "injected": sum(row >= half for row in dead) / half}
    return [
        Flag(
            "zero-gradient",
            f"the gradient is exactly zero for {shares['targets']:.0%} of the targets and {shares['injected']:.0%} of "
            f"the injected nodes looked at although their features change the logits, but at most {DEAD_ROWS:.0%} are "
            "allowed; look for detach(), no_grad, rounding or hard decisions in forward, and give attacks a smooth "
            "path instead",
            {**shares, "rows": count},
        )
    ]


def masked_gradient(probe: Probe) -> list[Flag]:
    r"""Does the loss rise as its gradient says?

    Along random and along signed-gradient directions :math:`d` of the moved rows,

    .. math:: \frac{L(x + h d) - L(x - h d)}{2 h} \quad \text{beside} \quad \langle \nabla L, d \rangle

    where the best of several lengths :math:`h` counts. It warns if more than half of the directions disagree.
    """
    slopes = [slope for direction in probe.directions() if (slope := probe.slope(direction)) is not None]
    wrong = [slope for slope in slopes if slope > SAME_SLOPE]
    if 2 * len(wrong) <= len(slopes):
        return []
    middle = float(np.median(slopes))
    return [
        Flag(
            "masked-gradient",
            f"along {len(wrong)} of {len(slopes)} directions the loss does not rise as its gradient says (off by "
            f"{middle:.0%}, while {SAME_SLOPE:.0%} is allowed); look for detach() or a custom backward pass in "
            "forward, or attack without gradients",
            {"directions": len(slopes), "wrong": len(wrong), "median_error": middle},
        )
    ]


def _logits(model: nn.Module, graph: Graph) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(graph.x, prepare(model, graph.adj), *pooling_bounds(model, graph))
    return logits


def _not_finite(logits: Tensor) -> Flag:
    bad = int((~torch.isfinite(logits)).any(1).sum())
    return Flag(
        "not-finite",
        f"logits of {bad} of {len(logits)} nodes are NaN or infinite, but must be finite; train again with a smaller "
        "learning rate",
        {"nodes": bad},
    )


# ---------------------------------------------------------------- an attack


def check_trace(steps: Sequence[Step], *, where: str = "") -> list[Flag]:
    """``flat-loss`` if the loss of an attack never rises above that of its first step.

    Args:
        steps: Steps of an :class:`~grb.attack.base.AttackResult`.
        where: What was attacked, for the sentence.
    """
    if len(steps) < 2:
        return []
    losses = [step.loss for step in steps]
    rise = max(losses) - losses[0]
    if rise > 1e-6 * max(1.0, abs(losses[0])):
        return []
    return [
        Flag(
            "flat-loss",
            f"{at(where)}the loss rose by {max(rise, 0.0):.2g} in {len(steps)} steps, but an attack that sees its "
            "target raises it; start elsewhere than at zero, change the step, or check the model's gradients",
            {"rise": rise, "steps": len(steps)},
        )
    ]
