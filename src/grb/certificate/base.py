"""The protocol of certificates, and what they share."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from grb.certificate.confidence import Bools, Ints
from grb.certificate.result import EDGES, HIJACKED, INJECTED, CertifiedResult, NotCertifiable
from grb.dataset import Dataset
from grb.errors import DataError
from grb.graph import Adjacency
from grb.model.base import EvaluationView, check_features
from grb.threat import Injection, Modification, Threat

# nodes of a random injection; what is verified holds for any number
MOST_TRIED = 5000


class Certificate(Protocol):
    """Anything that says which predictions of a model hold under a threat model; the same object that attacks get."""

    def __call__(
        self, model: nn.Module, dataset: Dataset, threat: Threat, *, mode: str | None = None, seed: int = 0
    ) -> CertifiedResult:
        """Certify a trained model; a threat model that is not covered is refused with the reason.

        Args:
            model: A trained model; one that does not vote yet is made to.
            dataset: The dataset with true labels.
            threat: What an adversary may do.
            mode: Difficulty of the targets; the dataset's own if None.
            seed: Random seed of sampling and of keys.
        """


@dataclass(frozen=True, kw_only=True)
class TriedByInjections:
    """A certificate that verifies how a model is built, and tries what it verified.

    Args:
        injections: Random injections of the full budget (of 5,000 nodes if it is larger) that the conditions are tried with.
    """

    injections: int = 4

    def __post_init__(self) -> None:
        if self.injections < 1:
            raise DataError(f"injections is {self.injections}, but at least 1 is needed")

    @staticmethod
    def tried(threat: Injection) -> Injection:
        """The threat model that random injections are drawn for: with as many nodes as a machine can hold."""
        return replace(threat, nodes=min(threat.nodes, MOST_TRIED))

    @staticmethod
    def notes(threat: Threat) -> tuple[str, ...]:
        """What is said of that."""
        if not isinstance(threat, Injection) or threat.nodes <= MOST_TRIED:
            return ()
        return (f"what was verified was tried with random injections of {MOST_TRIED} nodes, not of {threat.nodes}",)


def run_certificate(
    certificate: Certificate,
    model: nn.Module,
    dataset: Dataset,
    threat: Threat,
    *,
    mode: str | None = None,
    seed: int = 0,
) -> CertifiedResult:
    """Certify a model with checks of the input and the time it took."""
    if not isinstance(threat, Injection | Modification):
        raise DataError(f"threat is a {type(threat).__name__}, but an Injection or a Modification is needed")
    if dataset.task != "node" or dataset.graph.ptr is not None or dataset.labels.dim() != 1:
        raise NotCertifiable(
            f"certificates are for nodes of one graph with one label each, but '{dataset.name}' has others"
        )
    if dataset.num_classes < 2:
        raise NotCertifiable(f"'{dataset.name}' has a single class, which every prediction keeps whatever happens")
    check_features(model, dataset.graph)
    start = time.process_time()
    with torch.random.fork_rng(devices=[]):
        found = certificate(model, dataset, threat, mode=mode, seed=seed)
    return replace(found, seconds=time.process_time() - start)


def edge_budget(threat: Threat, dataset: Dataset, name: str) -> int:
    """Edges that a threat model lets change; refuses injections and changed features."""
    if not isinstance(threat, Modification):
        raise NotCertifiable(f"{name} is about changed edges, but the threat model injects nodes")
    if threat.feature_nodes:
        raise NotCertifiable(
            f"{name} is about changed edges, but the threat model changes the features of {threat.feature_nodes} nodes too"
        )
    return threat.budget(dataset.graph)


def injection_of(threat: Threat, name: str) -> Injection:
    """An injection; any other threat model is refused."""
    if not isinstance(threat, Injection):
        raise NotCertifiable(f"{name} is about injected nodes, but the threat model changes the original graph")
    return threat


def hijacked_of(threat: Threat, dataset: Dataset, name: str) -> int:
    """Nodes whose features may change, if nothing else may."""
    if not isinstance(threat, Modification) or threat.budget(dataset.graph):
        raise NotCertifiable(f"{name} is about features of hijacked nodes, but the threat model changes edges")
    return threat.feature_nodes


def targets_of(dataset: Dataset, mode: str | None) -> tuple[str, Tensor, Ints]:
    """Difficulty, ids and labels of the targets."""
    chosen = mode or dataset.mode
    ids = dataset.test_ids(chosen)
    if not len(ids):
        raise DataError(f"dataset '{dataset.name}' has no {chosen} targets to certify")
    return chosen, ids, dataset.labels[ids].numpy()


def default_view(dataset: Dataset, seed: int, n: int | None = None) -> EvaluationView:
    """Training and validation nodes are known; keys of the seed, the same for the first nodes of a longer graph."""
    known = torch.cat([dataset.index_train, dataset.index_val])
    return EvaluationView.of(known, dataset.graph.n if n is None else n, seed)


def result(
    certificate: str,
    model: str,
    dataset: Dataset,
    mode: str,
    threat: Threat,
    *,
    budgets: Ints,
    correct: Bools,
    budget: int,
    unit: str,
    **more: Any,
) -> CertifiedResult:
    """A result with the names of dataset and threat model filled in."""
    return CertifiedResult(
        certificate,
        model,
        dataset.name,
        mode,
        threat.to_dict(),
        unit,
        budget,
        np.asarray(budgets, dtype=np.int64),
        np.asarray(correct, dtype=bool),
        **more,
    )


def scipy_of(adj: Adjacency) -> Any:
    """The adjacency as a scipy CSR matrix of ones."""
    from scipy import sparse

    indices, indptr = adj.pattern.indices.cpu().numpy(), adj.pattern.indptr.cpu().numpy()
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(adj.n, adj.n))


__all__ = ["EDGES", "HIJACKED", "INJECTED", "Certificate", "run_certificate"]
