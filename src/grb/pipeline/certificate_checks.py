"""Checks of the record of a certificate against its job, without torch: a certificate of another budget or model is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grb.errors import GRBError
from grb.evaluator.certified import EDGES, HIJACKED, INJECTED, UNLIMITED, CertifiedOutcome
from grb.evaluator.measurement import AttackInfo
from grb.names import ModelName
from grb.pipeline.artefact_checks import differences, short
from grb.pipeline.job import Job
from grb.pipeline.record import FILE, NOT_COMPUTED, SUBMISSION
from grb.pipeline.study import StudyInfo
from grb.threat import Injection, threat_from_dict

# certificates without samples, and the suffix of the models that each is about; others may be put around any model
CERTAIN = ("by-construction", "bounded-influence", "hash-vote")
# defaults of sampled ones, which jobs leave out
SAMPLED = {"samples": 10_000, "alpha": 0.01}
OWN = {
    "bounded-influence": "bounded",
    "hash-vote": "hash-vote",
    "sparse-smoothing": "smooth",
    "bi-smoothing": "smooth",
    "interception": "smooth",
    "gaussian-smoothing": "smooth",
}
# those of which the unit is a hijacked node
OF_FEATURES = ("interception", "gaussian-smoothing")


def check_certificate(job: Job, content: CertifiedOutcome) -> Iterator[str]:
    """Yield a sentence for everything that a certificate says and its job contradicts; a refusal says nothing.

    Args:
        job: The job.
        content: What its record holds.
    """
    if content.refusal:
        return
    if content.defense.train_mode == "transductive":
        yield "its model met the test nodes in training, of which there are no certificates"
    yield from _check_units(job, content)
    if job.spec.name in CERTAIN:
        yield from differences("samples", 0, content.samples)
    elif job.spec.name in OWN:
        own = {**SAMPLED, **job.method}
        made = {"samples": own["samples"], "confidence": 1 - own["alpha"]}
        yield from differences("", made, {name: getattr(content, name) for name in made})
    name = content.defense.method.name
    if job.spec.name == "by-construction":
        if set(content.budgets) - {-1, UNLIMITED}:
            yield "a certificate by construction holds for any number of changes, or there is none"
        yield from differences("own_model", True, content.own_model)
        code = content.defense.method.params.get("module") if name == SUBMISSION else name
        if code is not None and name != FILE and _is_third_party(str(code)):
            yield f"it is by construction, but of code of others ({short(code)}), whose construction nobody has verified"
    elif job.spec.name in OWN and name not in NOT_COMPUTED:
        yield from differences("own_model", OWN[job.spec.name] in name.split("+")[1:], content.own_model)


def _check_units(job: Job, content: CertifiedOutcome) -> Iterator[str]:
    threat = threat_from_dict(job.extra["threat"])
    budget: int | None = None  # what depends on the graph is compared with other records
    if isinstance(threat, Injection):
        unit, budget = INJECTED, threat.nodes
    elif job.spec.name in OF_FEATURES:
        unit, budget = HIJACKED, threat.feature_nodes
    else:
        unit, budget = EDGES, threat.edges if threat.per_target is None else None
        if threat.feature_nodes:
            yield f"it is about {EDGES}, but its threat model changes features of {threat.feature_nodes} nodes too"
    yield from differences("unit", unit, content.unit)
    if budget is not None:
        yield from differences("budget", budget, content.budget)


def check_study_limits(
    info: StudyInfo, found: Mapping[str, CertifiedOutcome], attacks: Mapping[str, AttackInfo], modes: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence if a board shows certificates under other limits than its attacks had.

    Args:
        info: The study.
        found: Certificates by their keys.
        attacks: Attacks by the keys of their scores.
        modes: Difficulties by the same keys.
    """
    for part in info.parts:
        limits = {
            modes[key]: dict(attacks[key].threat)
            for key in part.scores
            if key in attacks and not attacks[key].method.is_submission  # whose limits may be narrower
        }
        for key in part.certificates:
            own = found.get(key)
            if own is not None and limits.setdefault(own.mode, dict(own.threat)) != dict(own.threat):
                yield f"it shows certificate {key[:12]} of {own.mode} targets, which is under other limits than its attacks"


def _is_third_party(name: str) -> bool:
    try:
        return ModelName.parse(name).is_third_party
    except GRBError:
        return True
