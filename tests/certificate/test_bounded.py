"""Bounded influence: exact by enumeration on small graphs, refused where the construction is another, and never broken."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import grb
from grb.certificate import NotCertifiable, build_certificate, default_certificate, locality, run_certificate
from grb.certificate.influence import fallen_together, malicious_votes
from grb.certificate.result import UNLIMITED
from grb.dataset import load_dataset
from grb.errors import DataError
from grb.graph import CSR
from grb.model.base import EvaluationView, observing, predict, prepare, run_stages
from grb.model.bounded import Bounded, votes
from grb.model.known import Known
from grb.threat import Injection, Modification

STRESS = os.environ.get("HYPOTHESIS_PROFILE") == "stress"
seeds = st.integers(0, 10**6)


def tiny():
    return load_dataset("synth-tiny")


def trained(influence: float = 2.0):
    return grb.train("gcn+bounded", tiny(), epochs=30, hidden_features=[16], influence=influence)


def injection(nodes: int = 3, edges: int = 4) -> Injection:
    return Injection(nodes, edges, tiny().feature_range)


@settings(max_examples=2000 if STRESS else 150)
@given(seeds, st.integers(2, 4), st.integers(0, 4), st.floats(0, 6))
def test_the_number_of_votes_is_exact(seed, classes, strangers, influence):
    """So many votes cannot break a label, and one more can; by trying all one-hot votes."""
    rng = np.random.default_rng(seed)
    own, said = rng.normal(size=classes), rng.dirichlet(np.ones(classes), strangers).reshape(strangers, classes)
    found = int(malicious_votes(own[None], said.sum(0)[None], [strangers], influence)[0])

    def label(extra):
        return (own + influence * (said.sum(0) + extra) / (strangers + 1 + extra.sum())).argmax()

    first = label(np.zeros(classes))
    for count in range(5):
        all_votes = itertools.combinations_with_replacement(range(classes), count)
        breaks = any(label(np.bincount(each, minlength=classes)) != first for each in map(list, all_votes))
        assert breaks == (count > found)


def test_leads_beyond_the_influence_hold_for_ever_and_ties_are_abstentions():
    assert malicious_votes([[1.0, 0.0]], [[0.0, 0.0]], [0], 1.0)[0] == UNLIMITED
    assert malicious_votes([[0.5, 0.5]], [[0.0, 0.0]], [0], 1.0)[0] == -1
    assert malicious_votes([[0.5, 0.4]], [[0.0, 0.0]], [0], 1.0, slack=0.2)[0] == -1
    assert malicious_votes([[0.5, 0.4]], [[0.0, 0.0]], [0], 0.0)[0] == UNLIMITED
    with pytest.raises(DataError, match="do not fit together"):
        malicious_votes([[0.5, 0.4]], [[0.0]], [0], 1.0)
    with pytest.raises(DataError, match="influence is -1"):
        malicious_votes([[0.5, 0.4]], [[0.0, 0.0]], [0], -1)


@settings(max_examples=1000 if STRESS else 60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 3))
def test_the_cheapest_fall_and_no_wiring_fells_more(budgets, nodes, width):
    targets = range(len(budgets))
    wirings = [own for size in range(width + 1) for own in itertools.combinations(targets, size)]
    worst = max(
        sum(sum(target in own for own in chosen) > budgets[target] for target in targets)
        for chosen in itertools.product(wirings, repeat=nodes)
    )
    # every edge may be spent as long as no node needs more ends than there are targets
    found = fallen_together(budgets, nodes=nodes, edges_per_node=width)
    assert found >= worst
    if width <= 1:
        assert found == worst


def test_a_bounded_model_is_certified_and_attacks_stay_above():
    model = trained()
    assert default_certificate(model, injection()) == "bounded-influence"
    found = grb.certify(model, tiny(), threat=injection())
    assert found.deterministic and found.own_model and found.unit == "injected nodes"
    assert found.certified_accuracy <= found.clean_accuracy
    assert found.accuracy_at(1) >= found.accuracy_at(3)
    for attack in ("rnd", "pgd"):
        more = {"iterations": 4} if attack == "pgd" else {}
        edit = grb.run_attack(attack, model, tiny(), threat=injection(), **more).edit
        assert grb.evaluate(model, tiny(), edit)["full"] >= found.certified_accuracy


def test_without_influence_it_is_memory():
    model = trained(0.0)
    graph, view = tiny().graph, EvaluationView.of(torch.cat([tiny().index_train, tiny().index_val]), tiny().num_nodes)
    assert torch.equal(predict(model, graph, view), predict(Known(model.model).eval(), graph, view))
    found = grb.certify(model, tiny(), threat=injection(20, 20))
    assert found.certified_accuracy == found.clean_accuracy


def test_stages_are_the_forward_pass_and_strangers_are_heard():
    model, graph = trained(), tiny().graph
    view = EvaluationView.of(torch.cat([tiny().index_train, tiny().index_val]), graph.n)
    with observing(model, view):
        found = run_stages(model.stages(), graph.x, prepare(model, graph.adj))
    logits = predict(model, graph, view)
    assert torch.allclose(found, logits, atol=1e-5)
    assert not torch.equal(logits, predict(model.known_part(), graph, view))
    soft = model.relaxations()["soft"]
    with observing(model, view):
        assert soft(graph.x, soft.prepare(graph.adj)).shape == logits.shape


def test_a_row_that_is_not_finite_has_no_vote():
    said = votes(torch.tensor([[torch.nan, 0.0], [torch.inf, 0.0], [1e38, -1e38]]))
    assert said.tolist() == [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]


def test_other_models_and_threats_are_refused():
    certificate = build_certificate("bounded-influence")
    with pytest.raises(NotCertifiable, match=r"'\+bounded' makes one"):
        run_certificate(certificate, grb.train("gcn", tiny(), epochs=2), tiny(), injection())
    with pytest.raises(NotCertifiable, match="is about injected nodes"):
        run_certificate(certificate, trained(), tiny(), Modification(edges=2))
    with pytest.raises(DataError, match="influence is 'much'"):
        grb.train("gcn+bounded", tiny(), epochs=2, influence="much")
    with pytest.raises(DataError, match="injections is 0"):
        build_certificate("bounded-influence", injections=0)


def test_votes_of_double_weight_and_votes_that_hear_strangers_are_refused(monkeypatch):
    class Double(Bounded):
        def prepare(self, adj):
            *parts, op = super().prepare(adj)
            return (*parts, CSR(op.pattern, 2 * op.values))

    class Whole(Bounded):
        def combined(self, state):
            return (state[0] + self.influence * state[1][:, :-1],)

    monkeypatch.setattr(locality, "check_own_code", lambda model: None)
    monkeypatch.setattr("grb.certificate.bounded.check_own_code", lambda model: None)
    inner = trained().model
    with pytest.raises(NotCertifiable, match="each of its unknown neighbours once"):
        run_certificate(build_certificate("bounded-influence"), Double(inner).eval(), tiny(), injection())
    with pytest.raises(NotCertifiable, match="bounded share of votes"):
        run_certificate(build_certificate("bounded-influence"), Whole(inner).eval(), tiny(), injection())
