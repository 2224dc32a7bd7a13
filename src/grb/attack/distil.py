"""Distillation: a surrogate learnt from an oracle's answers, attacked with gradients, the edit transferred."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.attack.base import AttackContext
from grb.attack.build import build_attack
from grb.attack.injection.base import Limits as InjectionLimits
from grb.attack.modification.base import Limits as EdgeLimits
from grb.attack.oracle import QueryOracle, judge_of, oracle_of
from grb.attack.setting_checks import at_least
from grb.graph import Graph, GraphEdit
from grb.model.base import prepare, use_generator
from grb.model.build import build, settings
from grb.threat import Modification

RATE = 0.01


@dataclass(frozen=True, kw_only=True)
class _Distillation:
    """What both scenarios share; see :class:`Distil`.

    Args:
        attack_name: Attack on the surrogate.
        surrogate: Model that is learnt.
        asks: Number of graphs to learn from, the clean one among them.
        tries: Number of attacks on the surrogate, each with one query at the end.
        steps: Number of training steps of the surrogate.
        attack_steps: Iterations of the attack on the surrogate; its own number if not given.
    """

    attack_name: str = ""
    surrogate: str = "gcn"
    asks: int = 10
    tries: int = 3
    steps: int = 200
    attack_steps: int | None = None
    random_attack: ClassVar[str] = ""
    version = 1

    def __post_init__(self) -> None:
        at_least(1, asks=self.asks, tries=self.tries, steps=self.steps)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Ask, learn, attack what was learnt, and ask which of the edits is the best."""
        # refuses another scenario before anything is asked
        empty = GraphEdit(n=context.graph.n)
        threat = context.modification if self.random_attack == "rnd-edges" else context.injection
        if isinstance(threat, Modification):
            idle = threat.budget(context.graph, context.targets) <= 0
        else:
            idle = not (threat.nodes and threat.edges_per_node)
        if idle or not len(context.targets):
            return empty
        oracle = oracle_of(context, self.asks + self.tries)
        if oracle.left < 1:
            context.note("there were no queries to learn from")
            return empty
        blind = replace(context, model=None, oracle=None, knowledge="none")
        baseline = build_attack(self.random_attack, "custom")
        first = oracle()
        answers = [(context.graph, first)]
        for _ in range(min(self.asks - 1, oracle.left - self.tries)):
            edit = baseline(blind, generator=generator)
            answers.append((context.graph.apply(edit), oracle(edit)))
        model = _learnt(self.surrogate, answers, context.view.num_classes, self.steps, generator)
        changes = {} if self.attack_steps is None else {"iterations": self.attack_steps}
        attack = build_attack(self.attack_name, "custom", **changes)
        lent = replace(context, model=model, oracle=None, knowledge="transfer")
        edits = [attack(lent, generator=generator) for _ in range(max(1, min(self.tries, oracle.left)))]
        return _best(edits, oracle, first[context.targets], context.targets)


@dataclass(frozen=True, kw_only=True)
class Distil(_Distillation, InjectionLimits):
    """Learn a surrogate from answers, inject against it, and keep the best of a few edits by asking.

    The clean graph and some graphs with random injections are asked about; the surrogate is trained to give the same answers
    for all original nodes, by cross-entropy with the scores or the labels. A white-box attack on the surrogate is run a few
    times, and the victim is asked which edit leaves the fewest targets.

    References:
        After Papernot et al., *Practical Black-Box Attacks against Machine Learning*, ASIA CCS 2017.
    """

    attack_name: str = "tdgia"
    random_attack: ClassVar[str] = "rnd"


@dataclass(frozen=True, kw_only=True)
class EdgeDistil(_Distillation, EdgeLimits):
    """The same as :class:`Distil` with changed edges: random flips to learn from, PR-BCD on the surrogate."""

    attack_name: str = "pr-bcd"
    random_attack: ClassVar[str] = "rnd-edges"
    version = 3  # PR-BCD, which attacks the surrogate, has another version


def _learnt(
    name: str, answers: list[tuple[Graph, Tensor]], classes: int, steps: int, generator: torch.Generator
) -> nn.Module:
    """A model that gives the answers that an oracle gave, by full-batch steps over the graphs in turn."""
    graph, first = answers[0]  # labels show which classes there are only as far as nodes have them
    classes = max(classes, 2, int(first.max()) + 1) if first.dim() == 1 else first.shape[1]
    model = build(settings(name, "custom"), graph.num_features, classes, generator)
    parts = [(each, prepare(model, each.adj), answer) for each, answer in answers]
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    model.train()
    use_generator(model, generator)
    with torch.enable_grad():
        for step in range(steps):
            each, op, answer = parts[step % len(parts)]
            logits = model(each.x, op)[: len(answer)]
            wanted = answer if answer.dim() == 1 else answer.exp().to(logits.dtype)
            optimiser.zero_grad()
            functional.cross_entropy(logits, wanted).backward()
            optimiser.step()
    use_generator(model, None)
    return model.eval().requires_grad_(False)


def _best(edits: list[GraphEdit], oracle: QueryOracle, clean: Tensor, targets: Tensor) -> GraphEdit:
    """The edit under which the fewest targets keep their label, by asking; the first if nothing can be asked."""
    _, judge = judge_of(clean)
    best, least = edits[0], (float("inf"), float("inf"))
    for edit in edits[: oracle.left]:
        losses, right = judge(oracle(edit)[targets])
        found = (float(right.sum()), -float(losses.sum()))
        if found < least:
            best, least = edit, found
    return best
