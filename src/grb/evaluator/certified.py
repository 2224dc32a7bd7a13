"""What the record of a certificate holds, and the bracket: nothing that is certified with certainty was ever broken.

No torch here: whoever shows a board reads this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from grb import serial
from grb.errors import DataError, IntegrityError
from grb.evaluator.estimates import Estimate, estimate_of
from grb.evaluator.measurement import DatasetInfo, DefenseInfo, Measurement, unpack_bits
from grb.serial import Count, Fraction, Range

if TYPE_CHECKING:
    from grb.certificate import CertifiedResult

FORMAT = 1
# budgets at which a board shows the certified accuracy, beside that of its threat model
BUDGETS = (1, 5, 10)
INJECTED, EDGES, HIJACKED = "injected nodes", "changed edges", "hijacked nodes"
# budgets of a curve, as far as the threat model goes, or ten
CURVE = (0, 1, 2, 3, 5, 10, 20, 60)
# a budget that no adversary exceeds
UNLIMITED = 2**31 - 1
Budget = Annotated[int, Range(-1)]


@dataclass(frozen=True)
class CertifiedOutcome:
    """A certificate of one trained defense on the targets of one difficulty, or why there is none.

    Args:
        certificate: Name of the certificate.
        params: Its settings.
        model: Which model is certified, in words; empty if none is.
        own_model: Whether that is the defense itself, not a vote or a smoothing put around it.
        dataset: What it was computed on.
        defense: The trained model.
        mode: Difficulty of the targets.
        threat: The threat model.
        unit: What is counted.
        budget: Units that the threat model allows.
        targets: Number of targets.
        budgets: Largest number of units that each target survives; -1 where the model abstains.
        correct: Which predictions on the clean graph are right, packed.
        samples: Number of votes; 0 if nothing was sampled.
        confidence: Probability that all statements hold together.
        collective: Right predictions that are left after any one edit; None if unknown.
        notes: Remarks.
        refusal: Why there is no certificate; empty if there is one.
    """

    certificate: str
    dataset: DatasetInfo
    defense: DefenseInfo
    mode: str
    threat: Mapping[str, Any]
    targets: Count
    params: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    own_model: bool = False
    unit: str = ""
    budget: Count = 0
    budgets: tuple[Budget, ...] = ()
    correct: str = ""
    samples: Count = 0
    confidence: Fraction = 1.0
    collective: Count | None = None
    notes: tuple[str, ...] = ()
    refusal: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; :meth:`from_dict` reads it back."""
        return serial.to_versioned(self, FORMAT)

    @classmethod
    def from_dict(cls, values: Any) -> CertifiedOutcome:
        """Back from :meth:`to_dict`; anything else, and what contradicts itself, is refused."""
        found = serial.from_versioned(cls, values, FORMAT, "a certificate")
        if found.refusal:
            if found.budgets or found.correct or found.collective is not None:
                raise DataError("a certificate that was refused says something all the same")
            return found
        if len(found.budgets) != found.targets:
            raise DataError(f"a certificate of {found.targets} targets has {len(found.budgets)} budgets")
        right = int(found.right.sum())
        if found.collective is not None and found.collective > right:
            raise DataError(f"a certificate keeps {found.collective} predictions, but {right} are right at all")
        if not found.samples and found.confidence != 1:
            raise DataError(f"a certificate without samples has confidence {found.confidence}")
        return found

    @property
    def right(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which predictions on the clean graph are right and no abstention, [targets]."""
        return unpack_bits(self.correct, self.targets).astype(bool) & (np.array(self.budgets) >= 0)

    def safe(self, budget: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which targets are right and survive this number of units, [targets]."""
        return self.right & (np.array(self.budgets) >= budget)

    def accuracy(self, budget: int | None = None) -> float:
        """Certified accuracy at a budget; at the threat model's own, the collective bound counts too."""
        if self.refusal or not self.targets:
            return 0.0
        own = float(self.safe(self.budget if budget is None else budget).mean())
        return own if budget is not None or self.collective is None else max(own, self.collective / self.targets)

    def curve(self) -> dict[int, float]:
        """Certified accuracy over the budget; at that of the threat model the collective bound counts too."""
        if self.refusal:
            return {}
        budgets = sorted({*(each for each in CURVE if each <= max(self.budget, 10)), self.budget})
        return {each: self.accuracy(None if each == self.budget else each) for each in budgets}


def outcome_of(
    found: CertifiedResult, dataset: DatasetInfo, defense: DefenseInfo, params: Mapping[str, Any]
) -> CertifiedOutcome:
    """A certificate as its record holds it."""
    from grb.evaluator.measurement import pack_bits

    return CertifiedOutcome(
        found.certificate,
        dataset,
        defense,
        found.mode,
        dict(found.threat),
        len(found.budgets),
        dict(params),
        found.model,
        found.own_model,
        found.unit,
        found.budget,
        tuple(int(value) for value in found.budgets),
        pack_bits(found.correct),
        found.samples,
        found.confidence,
        found.collective,
        found.notes,
    )


def summaries(
    outcomes: Iterable[CertifiedOutcome], common: Mapping[str, Any] | None = None
) -> dict[tuple[str, str], dict[str, Estimate]]:
    """Certified accuracy by (defense, difficulty): ``certified`` and ``certified_1`` to ``certified_10``.

    Certificates of the defense itself count; one of a vote or smoothing put around it is about another model, and stands in
    the list of certificates only. Of several certificates of one training the best counts at every budget.

    Args:
        outcomes: Certificates under one threat model.
        common: Settings that all trainings share, which are no part of a defense's label.
    """
    best: dict[tuple[str, str, int], dict[str, float]] = {}
    for each in outcomes:
        if each.refusal or not each.own_model:
            continue
        method = each.defense.method
        own = best.setdefault((method.label(common), each.mode, method.seed), {})
        values = {"certified": each.accuracy(), **{f"certified_{budget}": each.accuracy(budget) for budget in BUDGETS}}
        for name, value in values.items():
            own[name] = max(own.get(name, 0.0), value)
    tables: dict[tuple[str, str], dict[str, dict[tuple[int, int], float]]] = {}
    for (label, mode, seed), values in best.items():
        for name, value in values.items():
            tables.setdefault((label, mode), {}).setdefault(name, {})[seed, 0] = value
    return {where: {name: estimate_of(table) for name, table in own.items()} for where, own in tables.items()}


def may_be_certain(name: str) -> bool:
    """Whether a defense of this name can have a certificate without samples of its own.

    >>> may_be_certain("gcn+ln+known"), may_be_certain("mlp"), may_be_certain("gcn")
    (True, True, False)
    """
    head, *suffixes = name.split("+")
    return head == "mlp" or bool({"known", "bounded", "hash-vote"} & set(suffixes))


def check_bracket(outcomes: Mapping[str, CertifiedOutcome], scores: Mapping[str, Measurement]) -> None:
    """Refuse records in which an edit broke what is certified with certainty: one of them is wrong."""
    for key, sentence in broken(outcomes, scores):
        raise IntegrityError(f"score {key[:12]} contradicts a certificate: {sentence}; compute both again")


def broken(outcomes: Mapping[str, CertifiedOutcome], scores: Mapping[str, Measurement]) -> Iterator[tuple[str, str]]:
    """Key of a score and a sentence for every prediction that is certified with certainty and broken all the same.

    Compared are certificates of the defense itself without samples: target by target with the units that an edit really used,
    and, where a collective bound covers the edit, the number of right predictions.
    """
    for key, name, each, right, used in _compared(outcomes, scores, sampled=False):
        lost = int((each.safe(used) & ~right).sum())
        if lost:
            yield (
                key,
                (
                    f"{lost} {each.mode} targets are wrong after {used} {each.unit}, but certificate {name[:12]} "
                    f"({each.certificate}) holds for them with certainty"
                ),
            )
        kept = int((right & (np.array(each.budgets) >= 0)).sum())
        if each.collective is not None and _within(each, scores[key]) and kept < each.collective:
            yield (
                key,
                (
                    f"{kept} {each.mode} targets are right after {used} {each.unit}, but certificate {name[:12]} "
                    f"({each.certificate}) keeps {each.collective}"
                ),
            )


@dataclass(frozen=True)
class Suspicion:
    """A score in which targets are wrong that a sampled certificate holds for.

    The score has fewer samples than the certificate, and either may be among the few that are wrong by chance: so the targets
    are sampled again before anything is said (:mod:`grb.pipeline.sampled_bracket`).

    Args:
        score: Key of the score.
        certificate: Key of the certificate.
        targets: Positions of these targets among those of the difficulty.
        used: Units that the edit used.
    """

    score: str
    certificate: str
    targets: tuple[int, ...]
    used: int


def suspected(outcomes: Mapping[str, CertifiedOutcome], scores: Mapping[str, Measurement]) -> Iterator[Suspicion]:
    """Scores that seem to contradict a sampled certificate of the same training."""
    for key, name, each, right, used in _compared(outcomes, scores, sampled=True):
        lost = np.flatnonzero(each.safe(used) & ~right)
        if len(lost):
            yield Suspicion(key, name, tuple(int(place) for place in lost), used)


def _compared(
    outcomes: Mapping[str, CertifiedOutcome], scores: Mapping[str, Measurement], *, sampled: bool
) -> Iterator[tuple[str, str, CertifiedOutcome, np.ndarray[Any, np.dtype[np.bool_]], int]]:
    """Score and certificate of the same defense, which targets are right in the score, and the units that its edit used."""
    own: dict[str, list[tuple[str, CertifiedOutcome]]] = {}
    for key, each in outcomes.items():
        if not each.refusal and bool(each.samples) == sampled and each.own_model:
            own.setdefault(each.defense.method.key, []).append((key, each))
    for key, score in scores.items():
        for name, each in own.get(score.defense.method.key, ()):
            outcome, used = score.outcomes.get(each.mode), _used(each, score)
            if outcome is None or used is None or outcome.targets != each.targets or score.objective != "evasion":
                continue
            if score.dataset.targets != each.dataset.targets:  # as many others
                continue
            yield key, name, each, outcome.bits().astype(bool), used


def _within(certificate: CertifiedOutcome, score: Measurement) -> bool:
    """Whether the edit behind a score is within the threat model that a collective bound is about.

    Injected nodes of more edges than that threat model allows reach more targets together, though none of them sooner.
    """
    used = _used(certificate, score)
    if used is None or used > certificate.budget:
        return False
    if score.attack is None or certificate.unit != INJECTED:
        return True
    return _as_many_edges(certificate, score.attack.budget)


def _as_many_edges(certificate: CertifiedOutcome, budget: Mapping[str, float]) -> bool:
    """Whether no injected node has more edges than the certificate's threat model allows; unknown is no."""
    most = int(certificate.threat.get("edges_per_node", 0))
    return int(budget.get("most_edges_per_node", most + 1)) <= most


def _used(certificate: CertifiedOutcome, score: Measurement) -> int | None:
    """Units that the edit behind a score used; None if the certificate says nothing about it."""
    attack = score.attack
    if attack is None:
        return 0
    if certificate.unit == INJECTED and attack.scenario == "injection":
        if certificate.samples and not _as_many_edges(certificate, attack.budget):
            return None
        return int(attack.budget.get("nodes", 0))
    if certificate.unit == EDGES and attack.scenario == "modification" and not attack.budget.get("feature_nodes", 0):
        if certificate.samples and certificate.threat.get("allow", attack.threat.get("allow")) != attack.threat.get(
            "allow"
        ):
            return None  # a certificate of deletions says nothing of additions
        return int(attack.budget.get("edges", 0))
    if certificate.unit == HIJACKED and attack.scenario == "modification" and not attack.budget.get("edges", 0):
        # other limits of features, or other columns that are fixed, make changes of another length
        if any(certificate.threat.get(name) != attack.threat.get(name) for name in ("feature_range", "constraints")):
            return None
        return int(attack.budget.get("feature_nodes", 0))
    return None
