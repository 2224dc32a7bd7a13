r"""The certificate of bounded influence: deterministic, collective, for injected nodes of any features.

It holds if code verifies, for the model at hand, that

(a) without unknown nodes it is exact by construction (the conditions of :mod:`grb.certificate.by_construction`);
(b) its last operator joins every node with its unknown neighbours and nobody else, with weight one, and is used once;
(c) the vote of a row is of the simplex whatever the row is, and logits are own logits plus the bounded share of the votes;
(d) random injections of the full budget break nothing that is certified.

Otherwise there is no certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from grb.certificate.base import INJECTED, TriedByInjections, default_view, injection_of, result, targets_of
from grb.certificate.by_construction import check_senders, check_unmoved, random_injection
from grb.certificate.confidence import Ints
from grb.certificate.influence import fallen_together, malicious_votes, survives
from grb.certificate.locality import ROUNDING, check_own_code, check_stages, title_of
from grb.certificate.result import CertifiedResult, NotCertifiable
from grb.dataset import Dataset
from grb.graph import CSR, Graph, GraphEdit
from grb.model.base import EvaluationView, evaluating, observing, predict, prepare
from grb.model.bounded import Bounded, votes
from grb.threat import Threat


@dataclass(frozen=True, kw_only=True)
class BoundedInfluence(TriedByInjections):
    """How many injected neighbours every prediction of a ``+bounded`` model survives; see :mod:`grb.certificate.influence`.

    Conditions (a) and (d) are tried with random injections.
    """

    version = 1

    def __call__(
        self, model: nn.Module, dataset: Dataset, threat: Threat, *, mode: str | None = None, seed: int = 0
    ) -> CertifiedResult:
        """Verify the construction, count votes, and solve for the cheapest targets."""
        mode, targets, labels = targets_of(dataset, mode)
        given = injection_of(threat, "bounded influence")
        if not isinstance(model, Bounded):
            raise NotCertifiable(
                f"bounded influence is about models in which unknown nodes have a vote each, but got '{title_of(model)}'; "
                "'+bounded' makes one"
            )
        graph, generator = dataset.graph, torch.Generator().manual_seed(seed)
        view = default_view(dataset, seed)
        check_own_code(model)
        logits, part = predict(model, graph, view), model.known_part()
        own = predict(part, graph, view)
        with evaluating(model), observing(model, view):
            check_stages(model, graph, prepare(model, graph.adj))
            heard = check_votes(model, graph, view, own, logits)
        with evaluating(part), observing(part, view):
            check_stages(part, graph, prepare(part, graph.adj))
            check_senders(part, graph, view)
        budgets = _budgets(model, own, heard, logits)
        sure = budgets >= 0
        tried = self.tried(given)
        for draw in range(self.injections if given.nodes else 0):
            edit = random_injection(graph, tried, generator, aim=targets if draw % 2 else None)
            check_unmoved(part, graph, edit, view, seed, clean=own)
            check_survivors(model, graph, edit, view, seed, logits.argmax(1), budgets)
        chosen = targets.numpy()
        right = (logits[targets].argmax(1).numpy() == labels) & sure[chosen]
        fallen = fallen_together(budgets[chosen][right], nodes=given.nodes, edges_per_node=given.edges_per_node)
        return result(
            "bounded-influence",
            f"{title_of(model)} itself, in which all unknown nodes together have an influence of {model.influence:g}",
            dataset,
            mode,
            threat,
            budgets=budgets[chosen],
            correct=right,
            budget=given.nodes,
            unit=INJECTED,
            collective=int(right.sum()) - fallen,
            notes=self.notes(given),
        )


def _budgets(model: Bounded, own: Tensor, heard: Tensor, logits: Tensor) -> Ints:
    slack = ROUNDING * torch.maximum(logits.abs().amax(1), own.abs().amax(1)).double().numpy()
    sums, count = heard[:, :-1].double().numpy(), heard[:, -1].round().long().numpy()
    found = malicious_votes(own.double().numpy(), sums, count, model.influence, slack)
    # two ways of summation may say two labels where the lead is rounding: nothing is claimed there
    label = (own.double() + model.influence * heard[:, :-1].double() / (heard[:, -1:].double() + 1)).argmax(1)
    return np.where((label == logits.argmax(1)).numpy(), found, -1)


def check_votes(model: Bounded, graph: Graph, view: EvaluationView, own: Tensor, logits: Tensor) -> Tensor:
    """Sums of the votes of unknown nodes, [n, classes + 1]; refuses a model in which they are not what they should be.

    Args:
        model: The model, which has observed the view.
        graph: The clean graph.
        view: Which nodes are known.
        own: Logits without unknown nodes, [n, classes].
        logits: Logits of the model, [n, classes].
    """
    op, name = prepare(model, graph.adj)[-1], title_of(model)
    columns = graph.adj.pattern.indices.long()
    rows = graph.adj.pattern.row_ids.long()
    unknown = ~view.known[columns]
    found = op.pattern.row_ids.long(), op.pattern.indices.long()
    same = isinstance(op, CSR) and all(torch.equal(a, b[unknown]) for a, b in zip(found, (rows, columns), strict=True))
    if not same or (op.values is not None and not bool((op.values == 1).all())):
        raise NotCertifiable(f"'{name}' does not hear each of its unknown neighbours once")
    wild = torch.cat([own, own * 1e30, own * 1e38 * 1e38, torch.full_like(own[:1], torch.nan)])
    said = votes(wild)
    shares = said[:, :-1]
    if not bool((shares >= 0).all() & (shares.sum(1) <= 1 + 1e-5).all() & (said[:, -1] == 1).all()):
        raise NotCertifiable(f"a vote in '{name}' is more than one")
    heard: Tensor = op @ votes(own)
    expected = own + model.influence * heard[:, :-1] / (heard[:, -1:] + 1)
    allowed = ROUNDING / 2 * logits.abs().amax(1, keepdim=True).clamp_min(1e-6)
    if not bool(((expected - logits).abs() <= allowed).all()):
        raise NotCertifiable(f"the logits of '{name}' are not own logits with a bounded share of votes")
    return heard


def check_survivors(
    model: Bounded,
    graph: Graph,
    edit: GraphEdit,
    view: EvaluationView,
    seed: int,
    labels: Tensor,
    budgets: Ints,
) -> None:
    """Refuse a model in which an injection breaks what is certified: condition (d)."""
    n = graph.n
    longer = EvaluationView.of(view.known.nonzero().flatten(), n + edit.num_new, seed)
    after = predict(model, graph.apply(edit), longer)[:n].argmax(1)
    malicious = torch.bincount(edit.add.min(0).values[edit.add.min(0).values < n], minlength=n).numpy()
    broken = int((survives(budgets, malicious) & (budgets >= 0) & (after != labels).numpy()).sum())
    if broken:
        raise NotCertifiable(
            f"'{title_of(model)}' has no bounded influence: a random injection changed {broken} labels that must not change"
        )
