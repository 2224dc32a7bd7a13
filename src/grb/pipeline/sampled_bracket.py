"""Sampled certificates against scores of the same training: what seems broken is sampled again before it counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

from grb.certificate.smoothing import SmoothingCertificate
from grb.errors import IntegrityError
from grb.evaluator.certified import CertifiedOutcome, Suspicion, suspected
from grb.evaluator.measurement import Measurement
from grb.pipeline import gate
from grb.pipeline.record import Record
from grb.pipeline.store import Store
from grb.pipeline.worker import Worker


def check_sampled(store: Store, keys: Iterable[str] | None = None, *, trust_code: bool = False) -> int:
    """Refuse a store in which an edit broke what a sampled certificate holds for, also in new samples.

    Args:
        store: The store; datasets must be on this machine if anything has to be sampled again.
        keys: Scores and certificates to look at; all if None.
        trust_code: Whether to import what a record names as ``package.module:Class``.

    Returns:
        Number of targets that were sampled again, none of which was broken.
    """
    found: dict[str, Record] = {record.key: record for record in _records(store, keys)}
    scores: dict[str, Measurement] = {
        key: gate.content_of(record) for key, record in found.items() if record.job.kind == "score"
    }
    outcomes: dict[str, CertifiedOutcome] = {
        key: gate.content_of(record) for key, record in found.items() if record.job.kind == "certify"
    }
    worker, total = Worker(store), 0
    for each in suspected(outcomes, scores):
        record = found[each.score]
        for needed in (record.job.inputs["model"], *record.job.needs):
            gate.admit(store.read(needed), trust_code=trust_code)
        lost = broken_again(worker, record, each, outcomes[each.certificate])
        if lost:
            raise IntegrityError(
                f"score {each.score[:12]} contradicts a certificate: {lost} targets are wrong after {each.used} changes, also "
                f"in {outcomes[each.certificate].samples} new samples, but certificate {each.certificate[:12]} holds for them "
                f"with probability {outcomes[each.certificate].confidence:g}; compute both again"
            )
        total += len(each.targets)
    return total


def broken_again(worker: Worker, score: Record, found: Suspicion, certificate: CertifiedOutcome) -> int:
    """Targets whose true class is not the leading one in as many new samples as the certificate has.

    With the certificate's family-wise error: another class must lead by more than chance explains.

    Args:
        worker: Loads the model and the attacked graph.
        score: Record of the score.
        found: What seems broken.
        certificate: The certificate.
    """
    generator = torch.Generator().manual_seed(int(found.score[:15], 16))
    votes, targets, labels = worker.sampled(score.job, certificate.mode, certificate.samples, generator)
    own = torch.tensor(found.targets)
    alpha = (1 - certificate.confidence) / max(certificate.targets, 1)
    bounds = SmoothingCertificate.bounds(votes[targets[own]].numpy(), alpha)
    wrong = (bounds.label != labels[targets[own]].numpy()) & (bounds.low > bounds.high)
    return int(wrong.sum())


def _records(store: Store, keys: Iterable[str] | None) -> Iterator[Record]:
    if keys is None:
        yield from (record for record in store.records() if record.job.kind in ("score", "certify"))
    else:
        yield from (store.read(key) for key in keys if store.has(key))
