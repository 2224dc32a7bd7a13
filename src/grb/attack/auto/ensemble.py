"""GraphAutoAttack: a race of attacks whose winner is the measure of the worst case."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from grb.attack.auto.belief import beliefs
from grb.attack.auto.member import LEVELS, Member
from grb.attack.base import AttackContext, Trial, project
from grb.attack.losses import margin
from grb.attack.passes import count_passes
from grb.errors import DataError, GRBError
from grb.graph import GraphEdit
from grb.model.base import predict, relaxations
from grb.threat import Injection

# entrants of a later round for one of the round before
SURVIVORS = (1 / 3, 1 / 6)
# fewest entrants of the second round
FEWEST = 3
# members that attack through each of a model's relaxations
ADAPTIVE = 4
# letters of a relaxation's name in reports
LONGEST = 40


@dataclass(frozen=True, eq=False)
class Entrant:
    """One member of the race on the model itself, or on a simplified twin of it."""

    member: Member
    relaxation: str
    model: nn.Module


@dataclass(frozen=True, eq=False)
class Judged:
    """An edit of the race and what the true model makes of it."""

    edit: GraphEdit
    kept: Tensor
    expected: float
    margin: float
    entrant: Entrant | None = None

    @property
    def order(self) -> tuple[float, float]:
        """The strongest edit has the lowest: least expected accuracy, then the largest mean margin of wrong classes."""
        return self.expected, -self.margin


@dataclass(frozen=True, kw_only=True)
class GraphAutoAttack:
    r"""The standard ensemble: a fixed, versioned race without parameters that returns the single strongest legal edit.

    Every member runs as a cheap probe, the best third again with its usual effort and the best sixth of those as deep as it
    pays (successive halving). The best of them then continues from the strongest edit of all, if it can, and after it a
    random search, which no hidden gradient misleads. An edit is judged by the true model: by the accuracy that the attacker
    expects it to leave, and among equals by the mean margin :math:`\max_{c \ne y} z_c - z_y`. Against true labels, and for
    changed edges, which reach few targets, that accuracy is the fraction of targets that keep the label which the attack
    aims at. An injection can take all labels away, also from targets that were wrong before and may be right afterwards:
    with the clean probabilities :math:`p`, one that aims at predicted labels expects
    :math:`\frac{1}{t} \sum_v p_{v, \hat y_v}`, where :math:`\hat y_v` is predicted under attack.

    The clean probabilities are calibrated on the validation nodes (:func:`~grb.attack.auto.belief.beliefs`). The strongest
    single attack of the package runs as well, with its own settings and draws, whatever became of the others: no edit of it
    is missing in the race.

    A model that names simplified twins (``relaxations()``, name to module) is attacked through each of them as well, by the
    best four of the members that use gradients and by those that watch the model itself meanwhile, and judged itself. Edits
    that were made for other models join as they are (``pool``), if the threat model allows them. A race ends early when an
    edit leaves nothing. The threat model decides between the members for injection and for modification.

    Args:
        pool: Edits to replay, for instance those that were made on other victims.

    References:
        Croce and Hein, *Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse Parameter-free Attacks*,
        ICML 2020; Mujkanovic et al., *Are Defenses for Graph Neural Networks Robust?*, NeurIPS 2022.
    """

    pool: Sequence[GraphEdit] = field(default=(), repr=False)
    scenario: ClassVar[str] = "injection"
    version: ClassVar[int] = 3

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """The strongest edit that any entrant of the race found; the clean graph's if none does any harm."""
        if not _anything_allowed(context):
            return GraphEdit(n=context.graph.n)
        race = _Race(context, generator)
        alone = generator.get_state()
        race.judge(GraphEdit(n=context.graph.n), "clean graph")
        for number, edit in enumerate(self.pool):
            race.judge(edit, f"pool {number}")
        racing = [member for member in members(context) if not member.reference and not member.relaxed]
        entrants = race.run([Entrant(member, "", context.surrogate()) for member in racing])
        # the best first, then those that the model's own operations stop
        listed = dict.fromkeys((*(each.member for each in entrants), *racing))
        adaptive = [member for member in listed if not member.gradient_free][:ADAPTIVE]
        adaptive += [member for member in members(context) if member.relaxed]
        entrants += race.run(
            [Entrant(member, name, twin) for name, twin in race.twins().items() for member in adaptive]
        )
        if not entrants and not race.is_over:
            raise DataError(
                f"none of the {len(racing)} attacks of the ensemble can attack a "
                f"{type(context.model).__name__}; attack a surrogate that gives gradients, for instance gcn"
            )
        references = [Entrant(member, "", context.surrogate()) for member in members(context) if member.reference]
        race.run(references, 1, state=alone)
        for level in range(1, LEVELS):
            entrants = race.run(race.best_of(entrants, level), level)
        if race.best.edit.num_new:
            race.run([each for each in entrants if each.member.resume is not None][:1], LEVELS - 1, resume=True)
            # and once more without gradients, which a defense may hide
            searches = [each for each in racing if each.gradient_free and each.resume is not None]
            race.run([Entrant(each, "", context.surrogate()) for each in searches], LEVELS - 1, resume=True)
        return race.best.edit


class EdgeAutoAttack(GraphAutoAttack):
    """The standard ensemble under a modification threat model, for which the catalogue's default limits are chosen."""

    scenario: ClassVar[str] = "modification"
    version: ClassVar[int] = 2


def members(context: AttackContext) -> tuple[Member, ...]:
    """The fixed list of attacks for the threat model of a context."""
    if isinstance(context.threat, Injection):
        from grb.attack.auto.injection import MEMBERS

        return MEMBERS
    from grb.attack.auto.modification import members_for

    return members_for(context)


def _anything_allowed(context: AttackContext) -> bool:
    threat = context.threat
    if isinstance(threat, Injection):
        return bool(len(context.targets) and threat.nodes and threat.edges_per_node)
    return bool(
        len(context.targets) and (int(threat.budget(context.graph, context.targets)) > 0 or threat.feature_nodes)
    )


class _Race:
    """Runs entrants and keeps the strongest edit."""

    def __init__(self, context: AttackContext, generator: torch.Generator) -> None:
        self.context, self.generator = context, generator
        whole = predict(context.surrogate(), context.graph)
        logits = whole[context.targets]
        self.labels = context.aimed_labels(logits)
        # how likely the attacker holds every class of every target to be the true one, [t, c]
        certain = context.labels == "true" or not isinstance(context.threat, Injection)
        self.belief = one_hot(self.labels, logits.shape[1]).double() if certain else beliefs(whole, context.view)
        self.found: list[Judged] = []

    @property
    def best(self) -> Judged:
        return min(self.found, key=lambda each: each.order)

    @property
    def is_over(self) -> bool:
        """Whether an edit leaves nothing to gain."""
        return bool(self.found) and self.best.expected == 0

    def twins(self) -> dict[str, nn.Module]:
        """The relaxations of the model, in evaluation mode; none, and a report, if it cannot give them."""
        try:
            return {
                str(name)[:LONGEST]: twin.eval().requires_grad_(False)
                for name, twin in relaxations(self.context.surrogate()).items()
            }
        except Exception as error:  # code of others may fail in any way
            self._report(Trial("relaxations", error=_reason(error)))
            return {}

    def run(
        self, entrants: Sequence[Entrant], level: int = 0, *, resume: bool = False, state: Tensor | None = None
    ) -> list[Entrant]:
        """Run all entrants at one level and return those that found a legal edit, the best first.

        Args:
            entrants: Who runs.
            level: Level of effort.
            resume: Whether they continue from the best edit so far instead of starting anew.
            state: State of the generator that each of them gets; drawn anew for each if not given.
        """
        results: list[Judged] = []
        for entrant in entrants:
            if self.is_over:
                break
            name = entrant.member.name + (f" through {entrant.relaxation}" if entrant.relaxation else "")
            name += " continued" if resume else ""
            start = time.process_time()
            own = torch.Generator()
            if state is None:
                own.manual_seed(int(torch.randint(2**62, (1,), generator=self.generator)))
            else:
                own.set_state(state)
            with count_passes() as passes:
                try:
                    edit = self._attempt(entrant, level, own, resume=resume)
                except Exception as error:
                    # a relaxation may fail in any way; what is wrong with the model itself or with us should be seen
                    if not entrant.relaxation and not isinstance(error, GRBError | RuntimeError):
                        raise
                    self._report(Trial(name, level, error=_reason(error), relaxation=entrant.relaxation))
                    continue
            seconds = time.process_time() - start
            judged = self.judge(edit, name, level, seconds, passes.forward, passes.backward, entrant=entrant)
            if judged is not None:
                results.append(judged)
        return self._ordered(results)

    def best_of(self, entrants: Sequence[Entrant], level: int) -> list[Entrant]:
        """Those of the entrants of the level before that go on, the best first."""
        chosen = {id(entrant) for entrant in entrants}
        ordered = self._ordered([each for each in self.found if id(each.entrant) in chosen])
        return list(dict.fromkeys(ordered))[: self._survivors(len(entrants), level - 1)]

    @staticmethod
    def _ordered(results: Sequence[Judged]) -> list[Entrant]:
        ordered = sorted(results, key=lambda each: each.order)
        return [each.entrant for each in ordered if each.entrant is not None]

    def _attempt(self, entrant: Entrant, level: int, generator: torch.Generator, *, resume: bool) -> GraphEdit:
        # a simplified twin may predict other labels than the model: all entrants aim at the same
        quiet = replace(
            self.context,
            model=entrant.model,
            true_labels=self.labels,
            judge=self.context.surrogate() if entrant.relaxation else None,
            on_step=lambda step: None,
            on_note=lambda note: None,
        )
        member, best = entrant.member, self.best.edit
        attack = member.resume(best) if resume and member.resume is not None else member.build(level)
        return project(self.context, attack(quiet, generator=generator))

    @staticmethod
    def _survivors(count: int, level: int) -> int:
        if level >= len(SURVIVORS):
            return 0
        fewest = FEWEST if level == 0 else 1
        return min(count, max(fewest, round(SURVIVORS[level] * count)))

    def judge(
        self,
        edit: GraphEdit,
        name: str,
        level: int = 0,
        cpu_seconds: float = 0.0,
        forward: int = 0,
        backward: int = 0,
        *,
        entrant: Entrant | None = None,
    ) -> Judged | None:
        """Score an edit on the true model and report it; None, with the reason in the report, if it is not allowed."""
        context = self.context
        through = "" if entrant is None else entrant.relaxation
        try:
            context.threat.check(context.graph, edit, context.targets)
        except GRBError as error:
            self._report(Trial(name, level, cpu_seconds, forward, backward, error=str(error), relaxation=through))
            return None
        with torch.no_grad():
            logits = predict(context.surrogate(), context.graph.apply(edit))[context.targets]
        given = logits.argmax(1)
        kept = given == self.labels
        expected = float(self.belief.gather(1, given.unsqueeze(1)).mean())
        judged = Judged(edit, kept, expected, float(margin(logits, self.labels).mean()), entrant)
        self.found.append(judged)
        self._report(Trial(name, level, cpu_seconds, forward, backward, kept, relaxation=through, edit=edit))
        return judged

    def _report(self, trial: Trial) -> None:
        self.context.on_trial(trial)
        if self.found:
            best = self.best
            self.context.report(best.margin, float(best.kept.float().mean()))


def _reason(error: Exception) -> str:
    """The first line of an error, for a report."""
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def strength_over_cost(trials: Sequence[Trial]) -> Iterator[tuple[float, float]]:
    """CPU seconds so far and the lowest accuracy left by then, after every trial of a race: its curve."""
    spent, lowest = 0.0, 1.0
    for trial in trials:
        spent += trial.cpu_seconds
        if trial.kept is not None:
            lowest = min(lowest, float(trial.kept.float().mean()))
        yield spent, lowest
