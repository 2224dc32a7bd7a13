"""Certificates by name: ``hash-vote``, ``bi-smoothing``, ``by-construction``."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from grb.catalogue import canonical, resolve
from grb.certificate.base import Certificate
from grb.errors import DataError
from grb.model.bounded import Bounded
from grb.model.hash_vote import HashVote
from grb.model.smoothed import Smoothed
from grb.threat import Injection, Threat


def build_certificate(name: str, **params: Any) -> Certificate:
    """A certificate by its name (``grb ls certificates``) with other values for some of its arguments.

    >>> build_certificate("hash-vote", groups=10)
    HashVoteCertificate(groups=10, collective=True)
    """
    maker = resolve("certificate", canonical("certificate", name))
    accepted = list(inspect.signature(maker).parameters)
    unknown = sorted(set(params) - set(accepted))
    if unknown:
        raise DataError(f"certificate '{name}' does not take '{unknown[0]}'; it takes {', '.join(accepted)}")
    made: Certificate = maker(**params)
    return made


def default_certificate(model: nn.Module, threat: Threat) -> str:
    """The certificate that fits a model and a threat model best: that of its own construction, else a hash vote."""
    if isinstance(model, HashVote):
        return "hash-vote"
    if isinstance(model, Bounded):
        return "bounded-influence"
    if isinstance(model, Smoothed):
        if isinstance(threat, Injection):
            return "bi-smoothing"
        if model.noise.sigma:
            return "gaussian-smoothing"
        return "interception" if model.noise.p_ablate else "sparse-smoothing"
    if getattr(model, "suffix", "") == "known" or getattr(model, "name", "") == "mlp":
        return "by-construction"
    return "hash-vote"
