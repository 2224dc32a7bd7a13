"""Certificates as a user meets them: models, threat models, refusals, and the bracket with attacks."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
import torch

import grb
from grb.catalogue import entries
from grb.certificate import NotCertifiable, build_certificate, default_certificate, locality, run_certificate
from grb.certificate.by_construction import check_senders, check_unmoved, random_injection
from grb.certificate.confidence import bounds_of, lower_bound
from grb.certificate.locality import local_stages, reach_of
from grb.dataset import load_dataset
from grb.defense.gcnsvd import GCNSVD
from grb.errors import DataError
from grb.graph import CSR
from grb.model.base import EvaluationView, GraphModel, Rows, observing, predict
from grb.model.hash_vote import HashVote
from grb.model.known import Known
from grb.model.smoothed import Noise, Smoothed
from grb.model.torch.gcn import GCN
from grb.threat import Injection, Modification

STEPS = {name: {"iterations": 4} for name in ("pgd", "tdgia", "pr-bcd")}


@cache
def tiny():
    return load_dataset("synth-tiny")


@cache
def trained(name: str, **params) -> GraphModel:
    return grb.train(name, tiny(), epochs=60, hidden_features=[16], **dict(params))


def injection(nodes: int = 3, edges: int = 4) -> Injection:
    return Injection(nodes, edges, tiny().feature_range)


def test_a_model_that_hears_known_nodes_only_keeps_its_accuracy():
    found = grb.certify(trained("gcn+known"), tiny(), threat=injection())
    assert found.certificate == "by-construction"
    assert found.deterministic
    assert found.certified_accuracy == found.clean_accuracy > 0.4
    for attack in ("rnd", "pgd", "tdgia"):
        edit = grb.run_attack(attack, trained("gcn+known"), tiny(), threat=injection(), **STEPS.get(attack, {})).edit
        assert grb.evaluate(trained("gcn+known"), tiny(), edit)["full"] == found.clean_accuracy


def test_a_plain_gcn_has_no_certificate_by_construction():
    with pytest.raises(NotCertifiable, match=r"hears node \d+, which it does not know"):
        run_certificate(build_certificate("by-construction"), trained("gcn"), tiny(), injection())


@pytest.mark.parametrize("name", [name for name in entries("model") if name != "mlp"])
def test_any_model_is_either_refused_or_certified(name):
    """With known senders only: no model slips through with an operator, norm or median that counts strangers."""
    try:
        model = grb.train(f"{name}+known", tiny(), epochs=2)
    except DataError as error:
        assert any(reason in str(error) for reason in ("stages", "operators", "edges of its training graph"))
        return
    found = grb.certify(model, tiny(), threat=injection(6, 8))
    assert found.certified_accuracy == found.clean_accuracy
    # gradients go through directed operators
    edit = grb.run_attack("fgsm", model, tiny(), threat=injection(2, 4), iterations=2).edit
    assert grb.evaluate(model, tiny(), edit)["full"] == found.clean_accuracy


def test_masked_senders_with_whole_degrees_are_refused(monkeypatch):
    """Senders are known ones, but degrees count everybody: the mistake that looks right."""

    class WholeDegrees(Known):
        def prepare(self, adj):
            op = self.model.prepare(adj)
            columns = op.pattern.indices.long()
            heard = self.known(adj.n)[columns] | (op.pattern.row_ids.long() == columns)
            return CSR(op.pattern, op.values * heard)

    monkeypatch.setattr(locality, "check_own_code", lambda model: None)
    graph = tiny().graph
    model = WholeDegrees(trained("gcn")).eval()
    known = torch.cat([tiny().index_train, tiny().index_val])
    view = EvaluationView.of(known, graph.n)
    with observing(model, view), pytest.raises(NotCertifiable, match="hears node"):
        check_senders(model, graph, view)  # with a weight of 0, which is no weight in attention and NaN times infinity
    edit = random_injection(graph, injection(10, 10), torch.Generator().manual_seed(0))
    with pytest.raises(NotCertifiable, match="moved the logits"):
        check_unmoved(model, graph, edit, view)


def test_a_row_wise_step_that_sees_other_rows_is_refused(monkeypatch):
    class Centred(Known):
        def stages(self):
            return [Rows(lambda state: (state[0] - state[0].mean(0),)), *super().stages()]

        def forward(self, x, op):
            return super().forward(x - x.mean(0), op)

    monkeypatch.setattr(locality, "check_own_code", lambda model: None)
    with pytest.raises(NotCertifiable, match="sees other rows"):
        run_certificate(build_certificate("by-construction"), Centred(trained("gcn")).eval(), tiny(), injection())


def test_code_of_others_is_refused():
    class Mine(type(trained("gcn"))):
        pass

    model = Mine(**trained("gcn").params)
    with pytest.raises(NotCertifiable, match="code of others"):
        local_stages(model)


class Liar(Known):
    """A wrapper of others that says that it is ours."""


def hooked():
    model = Known(trained("gcn"))
    model.register_forward_hook(
        lambda module, args, logits: logits.roll(1, 0) if len(logits) > tiny().graph.n else logits
    )
    return model


def replaced(name):
    model = Known(trained("gcn"))
    method = getattr(model, name)
    setattr(model, name, lambda *args: method(*args))
    return model


@pytest.mark.parametrize(
    "make",
    [lambda: Liar(trained("gcn")), hooked, *(partial(replaced, name) for name in ("forward", "prepare", "stages"))],
    ids=["module", "hook", "forward", "prepare", "stages"],
)
def test_a_model_that_only_pretends_to_be_ours_is_refused(make, monkeypatch):
    monkeypatch.setattr(Liar, "__module__", "grb.model.known")
    with pytest.raises(NotCertifiable, match=r"code of others|has a hook|than its class"):
        run_certificate(build_certificate("by-construction"), make().eval(), tiny(), injection())


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("hash-vote", lambda: HashVote(Remembers(**trained("gcn").params), 5)),
        ("hash-vote", lambda: Remembers(**trained("gcn").params)),
        ("sparse-smoothing", lambda: Remembers(**trained("gcn").params)),
    ],
)
def test_votes_of_a_model_that_may_remember_other_votes_are_not_counted(name, make):
    with pytest.raises(NotCertifiable, match="code of others"):
        run_certificate(build_certificate(name), make().eval(), tiny(), Modification(edges=1))


class Remembers(GCN):
    """A model of others: nobody knows whether it answers every group by itself."""


def test_a_model_that_counts_the_nodes_of_a_graph_is_refused(monkeypatch):
    class Counts(Known):
        def prepare(self, adj):
            op = super().prepare(adj)
            return CSR(op.pattern, op.values * (1 if adj.n == tiny().graph.n else -1))

    monkeypatch.setattr(locality, "check_own_code", lambda model: None)
    with pytest.raises(NotCertifiable, match="depend on the number of nodes"):
        run_certificate(build_certificate("by-construction"), Counts(trained("gcn")).eval(), tiny(), injection())


def test_a_feature_range_wider_than_float32_is_tried_to_its_ends():
    threat = Injection(2, 3, (-3e38, 3e38))
    found = grb.certify(trained("gcn+known"), tiny(), threat=threat)
    assert found.certified_accuracy == found.clean_accuracy


@pytest.mark.parametrize(
    ("name", "threat", "more"),
    [
        ("hash-vote", injection(), {"collective": False}),
        ("bi-smoothing", injection(), {"collective": False, "samples": 9}),
        ("interception", Modification(edges=0, feature_nodes=1, feature_range=(0.0, 1.0)), {"samples": 9}),
    ],
)
def test_an_operator_in_which_all_nodes_meet_has_no_certificate_about_nodes(name, threat, more):
    """One injected node changed certified votes of a low-rank operator: it is in the factors of every group that it hears."""
    model = GCNSVD(tiny().graph.num_features, tiny().num_classes, [16], rank=3).eval()
    with pytest.raises(NotCertifiable, match="in which all nodes meet"):
        run_certificate(build_certificate(name, **more), model, tiny(), threat)


def test_an_mlp_survives_everything_about_edges():
    for threat in (injection(), Modification(edge_ratio=0.5)):
        found = grb.certify(trained("mlp"), tiny(), threat=threat)
        assert found.certified_accuracy == found.clean_accuracy


@pytest.mark.parametrize(
    ("certificate", "threat", "sentence"),
    [
        ("by-construction", Modification(edges=1), "uses edges"),
        ("hash-vote", Modification(edges=1, feature_nodes=2, feature_range=(0, 1)), "features of 2 nodes"),
        ("sparse-smoothing", Injection(1, 1, (0, 1)), "injects nodes"),
        ("bi-smoothing", Modification(edges=1), "changes the original graph"),
        ("interception", Modification(edges=1), "changes edges"),
    ],
)
def test_a_threat_model_that_is_not_covered_is_refused_in_one_sentence(certificate, threat, sentence):
    with pytest.raises(NotCertifiable, match=sentence):
        run_certificate(build_certificate(certificate), trained("gcn"), tiny(), threat)


THREATS = {
    "nodes": injection(1, 2),
    "edges": Modification(edges=1),
    "features": Modification(edges=0, feature_nodes=1, feature_range=(0, 1)),
    "both": Modification(edges=1, feature_nodes=1, feature_range=(0, 1)),
}
# model that it is about, and what it covers
COVERED = {
    "by-construction": ("gcn+known", {"nodes"}),
    "bounded-influence": ("gcn+bounded", {"nodes"}),
    "hash-vote": ("gcn", {"nodes", "edges"}),
    "sparse-smoothing": ("gcn", {"edges"}),
    "bi-smoothing": ("gcn", {"nodes"}),
    "interception": ("gcn", {"features"}),
    "gaussian-smoothing": ("gcn", {"features"}),
}


@pytest.mark.parametrize("name", list(entries("certificate")))
@pytest.mark.parametrize("kind", list(THREATS))
def test_every_threat_model_is_covered_or_refused_in_one_sentence(name, kind):
    defense, covered = COVERED[name]
    certificate = build_certificate(
        name, **({"samples": 20} if name.endswith("smoothing") or name == "interception" else {})
    )
    if kind in covered:
        found = run_certificate(certificate, trained(defense), tiny(), THREATS[kind])
        assert found.threat == THREATS[kind].to_dict() and found.budget == 1
    else:
        with pytest.raises(NotCertifiable) as refused:
            run_certificate(certificate, trained(defense), tiny(), THREATS[kind])
        assert "\n" not in str(refused.value) and not str(refused.value).endswith(".")


@pytest.mark.parametrize("name", list(entries("certificate")))
def test_every_certificate_gives_the_same_result_twice_and_less_for_more(name):
    hijack = Modification(edges=0, feature_nodes=1, feature_range=(0, 1))
    threats = {
        "by-construction": injection(),
        "bounded-influence": injection(1, 2),
        "bi-smoothing": injection(1, 2),
        "interception": hijack,
        "gaussian-smoothing": hijack,
    }
    params = {"samples": 200} if "smoothing" in name or name == "interception" else {}
    wrapper = {"by-construction": "+known", "bounded-influence": "+bounded"}.get(name, "")
    model = trained(f"gcn{wrapper}")
    made = build_certificate(name, **params)
    threat = threats.get(name, Modification(edges=2))
    first, again = (run_certificate(made, model, tiny(), threat, seed=3) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    accuracies = [first.accuracy_at(budget) for budget in range(6)]
    assert accuracies == sorted(accuracies, reverse=True)
    assert first.certified_accuracy <= first.clean_accuracy
    assert len(first.budgets) == len(first.correct) == len(tiny().test_ids("full"))
    assert first.deterministic == (first.confidence == 1)
    assert "gcn" in first.model


@pytest.mark.parametrize("divide", ["edges", "senders"])
def test_attacks_stay_above_the_certificate_of_a_hash_vote(divide):
    model = trained("gcn+hash-vote", groups=12, divide=divide)
    threat = injection(2, 6) if divide == "senders" else Modification(edges=2)
    found = grb.certify(model, tiny(), threat=threat)
    safe = torch.from_numpy(found.certified & found.correct)
    assert safe.any()
    attacks = ("rnd", "pgd") if divide == "senders" else ("dice", "pr-bcd")
    ids, known = tiny().test_ids("full"), torch.cat([tiny().index_train, tiny().index_val])
    for attack in attacks:
        edit = grb.run_attack(attack, model, tiny(), threat=threat, **STEPS.get(attack, {})).edit
        graph = tiny().graph.apply(edit)
        labels = predict(model, graph, EvaluationView.of(known, graph.n))[ids].argmax(1)
        right = labels == tiny().labels[ids]
        assert right[safe].all()
        assert int(right.sum()) >= found.collective


def test_a_vote_by_edges_says_nothing_about_injection():
    with pytest.raises(NotCertifiable, match="divide=senders"):
        grb.certify(trained("gcn+hash-vote", groups=5), tiny(), threat=injection())


def test_reach_counts_the_degree_of_senders():
    assert reach_of(trained("gcn")) == 3
    assert reach_of(trained("graphsage", aggregate="mean")) == 2
    assert reach_of(trained("gat")) == 2
    assert reach_of(trained("mlp")) == 0


def test_default_certificates():
    assert default_certificate(trained("gcn+known"), injection()) == "by-construction"
    assert default_certificate(trained("gcn+smooth"), injection()) == "bi-smoothing"
    assert default_certificate(trained("gcn+smooth"), Modification(edges=1)) == "sparse-smoothing"
    assert default_certificate(trained("gcn"), injection()) == "hash-vote"


def test_noise_of_a_smoothed_model_is_its_own():
    with pytest.raises(DataError, match="leave p_drop out"):
        grb.certify(trained("gcn+smooth"), tiny(), threat=injection(), certificate="bi-smoothing", p_drop=0.1)


def test_unknown_certificates_and_arguments_are_refused():
    with pytest.raises(DataError, match="does not take 'votes'"):
        build_certificate("hash-vote", votes=3)
    with pytest.raises(grb.errors.UnknownName, match="hash-vote"):
        build_certificate("hash-votes")


def test_votes_of_unequal_numbers_are_refused():
    with pytest.raises(DataError, match="same number"):
        bounds_of(np.array([[3, 2], [3, 3]]), 0.1)
    with pytest.raises(DataError, match="alpha"):
        lower_bound(np.array([1]), 2, float("nan"))


def test_what_was_observed_is_forgotten():
    model, graph = trained("gcn+known"), tiny().graph
    alone = predict(model, graph)
    grb.evaluate(model, tiny())
    grb.run_attack("rnd", model, tiny(), threat=injection())
    assert torch.equal(predict(model, graph), alone)
    told = predict(model, graph, EvaluationView.of(torch.arange(0), graph.n))
    assert not torch.equal(told, alone)


def test_noise_changes_what_it_says():
    adj = tiny().graph.adj
    generator = torch.Generator().manual_seed(0)
    copies, n = 40, adj.n
    changed = Noise(p_add=0.01, p_drop=0.25).edges(adj, copies, generator)
    assert changed.n == copies * n
    ends = changed.edges()
    assert (ends[0] // n == ends[1] // n).all()
    old = adj.has(ends % n)
    kept = int(old.sum()) / (copies * adj.num_edges)
    added = int((~old).sum()) / (copies * (n * (n - 1) // 2 - adj.num_edges))
    assert kept == pytest.approx(0.75, abs=0.02)
    assert added == pytest.approx(0.01, abs=0.001)
    assert Noise(p_node=1.0).edges(adj, 2, generator).num_edges == 0
    assert Noise(p_drop=0.0).edges(adj, 1, generator).num_edges == adj.num_edges


def test_smoothing_without_noise_is_the_model_itself():
    model = trained("gcn")
    smoothed = Smoothed(model, p_drop=0.0, samples=3).eval()
    assert torch.equal(predict(smoothed, tiny().graph).argmax(1), predict(model, tiny().graph).argmax(1))


def test_batches_of_copies_equal_one_copy_after_the_other(monkeypatch):
    from grb.model import smoothed as module

    for name, params in (("gcn", {}), ("gat", {}), ("gcn-svd", {})):
        inner = trained(name, **params)
        smoothed = Smoothed(inner, p_drop=0.0, p_ablate=0.0)
        graph = tiny().graph
        with torch.no_grad():
            one = smoothed._logits(graph.x, graph.adj, 1, torch.Generator(), smoothed._lead(graph.x))
        assert torch.allclose(one[0], predict(inner, graph), atol=1e-4)
        if name == "gcn-svd":
            continue
        monkeypatch.setattr(module, "ROWS", graph.n * 4)
        votes = smoothed.votes(graph.x, graph.adj, 10, torch.Generator())
        assert torch.equal(votes.argmax(1), predict(inner, graph).argmax(1))
        assert (votes.sum(1) == 10).all()


def test_noise_that_certifies_nothing_says_so():
    """With half of the edges kept, or fewer dropped, not even a unanimous vote survives one edge more."""
    little = grb.certify(trained("gcn+smooth"), tiny(), threat=Modification(edges=1), samples=200)
    assert little.budgets.max() < 1
    assert "not even a unanimous vote survives one change" in little.notes[-1] and "p_drop=0.8" in little.notes[-1]
    enough = grb.certify(
        trained("gcn"), tiny(), threat=Modification(edges=1), certificate="sparse-smoothing", samples=200
    )
    assert enough.budgets.max() >= 1
    assert not any("unanimous" in note for note in enough.notes)
