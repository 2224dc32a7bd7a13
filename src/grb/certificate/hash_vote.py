"""The certificate of a hash vote: deterministic, for changed edges or for injected nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from grb.certificate.base import EDGES, INJECTED, default_view, edge_budget, result, targets_of
from grb.certificate.locality import (
    check_local,
    check_own_code,
    lead_exceeds_rounding,
    local_stages,
    not_wrapped,
    title_of,
)
from grb.certificate.result import CertifiedResult, NotCertifiable
from grb.certificate.votes import collective_broken, count_votes, vote_budget, winner
from grb.dataset import Dataset
from grb.model.base import evaluating, observing, prepare
from grb.model.hash_vote import Divide, HashVote
from grb.threat import Injection, Threat


@dataclass(frozen=True, kw_only=True)
class HashVoteCertificate:
    """How many changes the majority of a hash vote survives; see :mod:`grb.certificate.votes`.

    Changed edges are certified for a vote of groups of edges, injected nodes for one of groups of senders. A model that does
    not vote is made to; one that was trained for it (``+hash-vote``) is better at it.

    Args:
        groups: Number of groups of a model that does not vote yet.
        collective: Whether to bound how many predictions fall together as well.
    """

    groups: int = 30
    collective: bool = True
    version = 1

    def __call__(
        self, model: nn.Module, dataset: Dataset, threat: Threat, *, mode: str | None = None, seed: int = 0
    ) -> CertifiedResult:
        """Count the votes of all groups and what they survive."""
        mode, targets, labels = targets_of(dataset, mode)
        injection = isinstance(threat, Injection)
        budget = threat.nodes if isinstance(threat, Injection) else edge_budget(threat, dataset, "a hash vote")
        vote = self.voting(model, "senders" if injection else "edges")
        check_own_code(vote)  # a model that remembers one group in the next lets an edit into all of them
        if injection:
            # a step that pools, or an operator that joins all nodes, would let a sender into every group
            check_local(vote.model, dataset.graph)
        view = default_view(dataset, seed)
        with evaluating(vote), observing(vote, view):
            op, each = prepare(vote, dataset.graph.adj), []
            again = next(vote.group_logits(dataset.graph.x, op))
            for number, logits in enumerate(vote.group_logits(dataset.graph.x, op)):
                if not number and not torch.allclose(logits, again, rtol=0, atol=0, equal_nan=True):
                    raise NotCertifiable(
                        f"'{title_of(vote.model)}' says two things of one graph, so that what it says once certifies nothing"
                    )
                own = logits[targets]
                each.append((own.argmax(1).numpy(), lead_exceeds_rounding(own).numpy()))
        said, sure = np.stack([own[0] for own in each]), np.stack([own[1] for own in each])
        counts = count_votes(said, dataset.num_classes)
        # a group whose lead is no more than rounding may say something else on a graph of another size
        unsure = (~sure).sum(0)
        budgets = np.maximum(vote_budget(counts) - unsure, -1)
        right = (winner(counts) == labels) & (budgets >= 0)
        together = None
        if self.collective:
            firm = right & (unsure == 0)
            together = int(firm.sum()) - collective_broken(said[:, firm], budget, classes=dataset.num_classes)
        return result(
            "hash-vote",
            f"hash vote of {vote.groups} groups of {vote.divide} with {title_of(vote.model)} inside",
            dataset,
            mode,
            threat,
            budgets=budgets,
            correct=right,
            budget=budget,
            unit=INJECTED if injection else EDGES,
            collective=together,
            own_model=isinstance(model, HashVote),
            notes=() if isinstance(model, HashVote) else ("the model was not trained to vote; '+hash-vote' trains it",),
        )

    def voting(self, model: nn.Module, divide: Divide) -> HashVote:
        """The model as a hash vote by ``divide``."""
        if isinstance(model, HashVote):
            if model.divide != divide:
                what = "injected nodes" if divide == "senders" else "changed edges"
                raise NotCertifiable(
                    f"'{title_of(model)}' votes by groups of {model.divide}, but {what} are certified for groups of {divide}; "
                    f"train it with divide={divide}"
                )
            return model
        inner = not_wrapped(model, "a hash vote")
        if divide == "senders":
            local_stages(inner)
        return HashVote(inner, self.groups, divide)
