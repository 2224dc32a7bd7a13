r"""Exact by construction: a prediction that depends only on the node itself and on known nodes cannot be changed by injection.

The certificate is nothing but the verification of four conditions:

(a) the model says by stages what every step sees, these are its forward pass, no step pools, and norms are per row or frozen;
(b) in every operator an unknown node has an entry in its own row only;
(c) rows of original nodes, of the operators and of the logits, are the same bits before and after random injections of the
    full budget, compared with a graph that has as many isolated nodes, because matrix products depend on the number of rows;
    and isolated nodes change the logits by no more than rounding;
(d) the lead of the predicted class exceeds rounding, else the model abstains.

A model that fails one of the first three has no certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from grb.certificate.base import EDGES, INJECTED, TriedByInjections, default_view, result, targets_of
from grb.certificate.locality import (
    ROUNDING,
    check_stages,
    lead_exceeds_rounding,
    messages_of,
    operators,
    title_of,
)
from grb.certificate.result import UNLIMITED, CertifiedResult, NotCertifiable
from grb.dataset import Dataset
from grb.graph import CSR, Graph, GraphEdit
from grb.model.base import EvaluationView, evaluating, observing, predict, prepare
from grb.threat import Injection, Modification, Threat


@dataclass(frozen=True, kw_only=True)
class ByConstruction(TriedByInjections):
    """Verifies that no injection can change a prediction; also of a model that uses no edges, against changed edges.

    Condition (c) is tried with random injections.
    """

    version = 1

    def __call__(
        self, model: nn.Module, dataset: Dataset, threat: Threat, *, mode: str | None = None, seed: int = 0
    ) -> CertifiedResult:
        """Certify a model whose predictions cannot depend on what the adversary changes."""
        mode, targets, labels = targets_of(dataset, mode)
        graph, generator = dataset.graph, torch.Generator().manual_seed(seed)
        view = default_view(dataset, seed)
        if isinstance(threat, Modification):
            _check_edgeless(model, dataset, threat)
            nodes, unit, budget = 0, EDGES, threat.budget(graph)
        else:
            nodes, unit, budget = threat.nodes, INJECTED, threat.nodes
        logits = predict(model, graph, view)
        with evaluating(model), observing(model, view):
            check_stages(model, graph, prepare(model, graph.adj))
            if isinstance(threat, Injection):
                check_senders(model, graph, view)
        if isinstance(threat, Injection):
            tried = self.tried(threat)
            for draw in range(self.injections if nodes else 0):
                edit = random_injection(graph, tried, generator, aim=targets if draw % 2 else None)
                check_unmoved(model, graph, edit, view, seed, clean=logits)
        sure = lead_exceeds_rounding(logits[targets])
        predicted = logits[targets].argmax(1).numpy()
        what = "uses no edges" if not messages_of(model) else "hears known nodes only"
        return result(
            "by-construction",
            f"{title_of(model)} itself, which {what}",
            dataset,
            mode,
            threat,
            budgets=np.where(sure.numpy(), UNLIMITED, -1),
            correct=predicted == labels,
            budget=budget,
            unit=unit,
            notes=self.notes(threat),
        )


def check_senders(model: nn.Module, graph: Graph, view: EvaluationView) -> None:
    """Refuse a model in one of whose operators an unknown node is heard by another node: condition (b)."""
    for op in operators(model, prepare(model, graph.adj)):
        columns = op.pattern.indices.long()
        # an entry of weight 0 is heard as well: by attention, which has weights of its own, and as 0 * inf
        heard = ~view.known[columns] & (op.pattern.row_ids.long() != columns)
        if bool(heard.any()):
            entry = int(heard.nonzero()[0])
            raise NotCertifiable(
                f"'{title_of(model)}' has no certificate by construction: node {int(op.pattern.row_ids[entry])} hears "
                f"node {int(columns[entry])}, which it does not know; '+known' makes a model that hears known nodes only"
            )


def check_unmoved(
    model: nn.Module,
    graph: Graph,
    edit: GraphEdit,
    view: EvaluationView,
    seed: int = 0,
    *,
    clean: Tensor | None = None,
) -> None:
    """Refuse a model whose operators or logits of original nodes change under an injection: condition (c).

    Args:
        model: The model.
        graph: The clean graph.
        edit: The injection.
        view: Which nodes are known.
        seed: Random seed of the keys.
        clean: Logits on the clean graph, [n, classes], to compare with as well.
    """
    n = graph.n
    known = view.known.nonzero().flatten()
    longer = EvaluationView.of(known, n + edit.num_new, seed)
    empty = torch.empty(2, 0, dtype=torch.int64)
    padded = graph.apply(GraphEdit(n, empty, empty, torch.zeros_like(edit.new_x)))  # type: ignore[arg-type]
    before, after = (predict(model, each, longer) for each in (padded, graph.apply(edit)))
    if clean is not None:
        allowed = ROUNDING / 2 * clean.abs().amax(1, keepdim=True)
        if not bool(((before[:n] - clean).abs() <= allowed).all()):
            raise NotCertifiable(
                f"'{title_of(model)}' has no certificate by construction: its logits depend on the number of nodes of the graph"
            )
    with evaluating(model), observing(model, longer):
        ops_before, ops_after = (
            _rows(operators(model, prepare(model, each.adj)), n) for each in (padded, graph.apply(edit))
        )
    same = all(torch.equal(a, b) for a, b in zip(ops_before, ops_after, strict=True))
    if not same or not torch.equal(before[:n], after[:n]):
        moved = int((before[:n] != after[:n]).any(1).sum())
        raise NotCertifiable(
            f"'{title_of(model)}' has no certificate by construction: a random injection moved the logits of {moved} original "
            "nodes; degrees and other denominators must be counted over known nodes only"
        )


def _rows(ops: Sequence[CSR], n: int) -> list[Tensor]:
    found: list[Tensor] = []
    for op in ops:
        block = op.rows(torch.arange(n))
        found += [block.pattern.indptr, block.pattern.indices]
        found += [] if block.values is None else [block.values]
    return found


def random_injection(
    graph: Graph, threat: Injection, generator: torch.Generator, *, aim: Tensor | None = None
) -> GraphEdit:
    """An injection of the full budget: random ends, or targets only; features anywhere in the range, or at its ends."""
    nodes, width = threat.nodes, min(threat.edges_per_node, graph.n if aim is None else len(aim))
    pool = torch.arange(graph.n) if aim is None else aim
    picked = torch.stack([pool[torch.randperm(len(pool), generator=generator)[:width]] for _ in range(nodes)])
    new = graph.n + torch.arange(nodes).repeat_interleave(width)
    low, high = threat.feature_range
    x = torch.rand(nodes, graph.num_features, generator=generator)
    if aim is not None:
        x = x.round()
    empty = torch.empty(2, 0, dtype=torch.int64)
    # the width of the range may be more than float32 holds
    rows = (low + (high - low) * x.double()).float()
    return GraphEdit(graph.n, torch.stack([picked.flatten(), new]), empty, rows)


def _check_edgeless(model: nn.Module, dataset: Dataset, threat: Modification) -> None:
    if threat.feature_nodes:
        raise NotCertifiable("features of test nodes may change in this threat model, which no construction withstands")
    if messages_of(model):
        raise NotCertifiable(
            f"'{title_of(model)}' uses edges, and any of them may change in this threat model; a certificate by construction "
            "is about injected nodes, or about models without edges"
        )
