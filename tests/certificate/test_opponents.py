"""Attempts to get a certificate that does not hold: weighted graphs, parts that pool, features of any size, shared draws."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from scipy.stats import binom
from torch import nn

import grb
from grb.catalogue import entries
from grb.certificate import NotCertifiable, build_certificate, run_certificate
from grb.certificate.base import default_view
from grb.certificate.bismoothing import certified_soundly, injected_nodes
from grb.certificate.collective import collective_attacked
from grb.certificate.confidence import bounds_of, lower_bound, upper_bound
from grb.certificate.influence import malicious_votes
from grb.certificate.locality import check_along_edges, check_own_code, messages_of, reach_of
from grb.dataset import Dataset, load_dataset
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.model.base import EvaluationView, predict
from grb.model.build import build
from grb.model.build import settings as settings_of
from grb.model.hash_vote import HashVote, mixed
from grb.model.known import Known
from grb.model.smoothed import Noise, Smoothed
from grb.model.torch.gcn import GCN
from grb.threat import Injection, Modification

EMPTY = torch.empty(2, 0, dtype=torch.int64)
HIJACK = Modification(edges=0, feature_nodes=1, feature_range=(0, 1))
seeds = st.integers(0, 10**6)


@cache
def tiny() -> Dataset:
    return load_dataset("synth-tiny")


@cache
def weighted(weight: float) -> Dataset:
    """The same graph with one weight on all edges."""
    own = tiny()
    split = {"train": own.index_train, "val": own.index_val, "test": own.test_ids("full")}
    return Dataset.from_arrays(own.adj * weight, own.graph.x, own.labels, split=split, name="weighted")


@cache
def trained(name: str, **params):
    return grb.train(name, tiny(), epochs=40, hidden_features=[16], **params)


def injection(nodes: int = 3, edges: int = 4) -> Injection:
    return Injection(nodes, edges, tiny().feature_range)


# what is drawn is what is certified


@pytest.mark.parametrize("noise", [{"p_drop": 0.3}, {"p_add": 0.01, "p_drop": 0.5}, {"p_drop": 0.4, "p_node": 0.5}])
def test_weighted_graphs_are_changed_as_others_are(noise):
    """Deleted edges are gone, not of weight zero, which attention would hear; added ones are added."""
    plain, heavy = tiny().graph.adj, weighted(2.0).graph.adj
    assert heavy.values is not None
    drawn, same = (Noise(**noise).edges(adj, 3, torch.Generator().manual_seed(5)) for adj in (plain, heavy))
    assert torch.equal(drawn.keys, same.keys)
    ends = same.edges() % plain.n
    upper = same.values[same.pattern.row_ids < same.pattern.indices]
    assert torch.equal(upper, torch.where(plain.has(ends), 2.0, 1.0))


@pytest.mark.parametrize("name", ["gat", "gcn"])
@pytest.mark.parametrize("noise", [{"p_drop": 1.0}, {"p_drop": 0.0, "p_ablate": 1.0}])
def test_a_smoothed_model_of_a_weighted_graph_loses_what_is_deleted(name, noise):
    """All edges, or all features: the same votes as on the graph where they never were."""
    graph = weighted(2.0).graph
    smoothed = Smoothed(trained(name), **noise).eval()
    votes = smoothed.votes(graph.x, graph.adj, 2, torch.Generator())
    x = torch.zeros_like(graph.x) if "p_ablate" in noise else graph.x
    adj = graph.adj if "p_ablate" in noise else adjacency_from_edges(EMPTY, graph.n)[0]
    assert torch.equal(votes.argmax(1), predict(trained(name), Graph(adj, x)).argmax(1))


def test_random_additions_carry_a_deletion_anywhere_so_that_nothing_is_said_of_all_together():
    threat = Modification(edges=1, allow=("drop",))
    for p_add, known in ((0.0, True), (0.001, False)):
        certificate = build_certificate("sparse-smoothing", samples=50, p_add=p_add, p_drop=0.8)
        found = run_certificate(certificate, trained("gcn"), tiny(), threat)
        assert (found.collective is not None) == known


def test_noise_that_adds_edges_says_nothing_of_weighted_graphs():
    """An edge of weight two that is dropped comes back with weight one: a model that tells them apart breaks any vote."""
    threat = Modification(edges=1)
    for weight, p_add, refused in ((2.0, 0.01, True), (2.0, 0.0, False), (1.0, 0.01, False)):
        certificate = build_certificate("sparse-smoothing", samples=20, p_add=p_add, p_drop=0.6)
        if refused:
            with pytest.raises(NotCertifiable, match="noise adds edges of weight one"):
                run_certificate(certificate, trained("gcn"), weighted(weight), threat)
        else:
            assert run_certificate(certificate, trained("gcn"), weighted(weight), threat).samples == 20


def test_bounds_chosen_by_the_same_votes_hold_together():
    """Lower bounds of all classes and upper bounds of all classes: twice as many statements as with separate votes."""
    votes = np.array([[60, 30, 10]])
    own, separate = bounds_of(votes, 0.01), bounds_of(votes, 0.005, choose=votes)
    assert own.low == separate.low and own.high == separate.high


def test_unanimous_votes_beside_the_threshold_are_not_certified():
    """Probabilities of a generator are right to about 1e-7; a lead of less is none."""
    bounds = bounds_of(np.array([[1000, 0]]), 0.01)
    certificate = build_certificate("sparse-smoothing", samples=1000)
    assert certificate.bounds(np.array([[1000, 0]]), 0.01).low < bounds.low - 1e-7


@pytest.mark.parametrize("name", ["gcn", "gcn-svd", "gps", "sgformer", "pooling"])
def test_draws_of_a_batch_do_not_see_each_other(name, monkeypatch):
    """A model that looks at all rows would make one draw depend on the next: votes that no binomial bound is about."""
    own = tiny()
    model = pooling(PARTS[0]) if name == "pooling" else trained(name)
    asked = []
    inner = model.forward
    smoothed = Smoothed(model, p_drop=0.5).eval()
    monkeypatch.setattr(model, "forward", lambda x, op: (asked.append(len(x)), inner(x, op))[1])
    if model.stages() is not None:
        monkeypatch.setattr(model, "stages", lambda: None)  # so that every draw goes through the forward pass
    asked.clear()
    votes = smoothed.votes(own.graph.x, own.graph.adj, 8, torch.Generator().manual_seed(2))
    assert asked[-1] == (8 * own.num_nodes if name == "gcn" else own.num_nodes)
    assert (votes.sum(1) == 8).all()


# every step must be row-wise or along edges, in every certificate that says so


def pooling(part: nn.Module) -> GCN:
    """A network of grb's own and torch's own classes, of which one looks at all rows."""
    own = tiny()
    model = GCN(own.num_features, own.num_classes, [16], layer_norm=True, generator=torch.Generator().manual_seed(0))
    model.norms[0] = part
    return model.eval()


PARTS = [
    nn.Softmax(dim=0),
    nn.Sequential(nn.Softmax(dim=0), nn.LayerNorm(24)),
    nn.BatchNorm1d(24, track_running_stats=False),
    nn.Flatten(0, 0),  # no pooling: the one that is not refused
]


@pytest.mark.parametrize("part", PARTS[:3], ids=lambda part: type(part).__name__)
@pytest.mark.parametrize(
    ("name", "threat", "params"),
    [
        ("by-construction", injection(), {}),
        ("hash-vote", injection(), {"groups": 5}),
        ("bi-smoothing", injection(), {"samples": 20}),
        ("interception", HIJACK, {"samples": 20}),
    ],
)
def test_a_part_that_pools_over_rows_has_no_certificate(part, name, threat, params):
    model = pooling(part)
    given = Known(model).eval() if name == "by-construction" else model
    with pytest.raises(NotCertifiable, match="other rows|all rows|moved"):
        run_certificate(build_certificate(name, **params), given, tiny(), threat)


def test_what_pools_reaches_anywhere_so_that_nothing_is_said_of_all_together():
    threat = Modification(edges=1, allow=("drop",))
    certificate = build_certificate("sparse-smoothing", samples=20)
    assert run_certificate(certificate, pooling(PARTS[0]), tiny(), threat).collective is None
    assert run_certificate(certificate, pooling(PARTS[3]), tiny(), threat).collective is not None


@pytest.mark.parametrize("name", list(entries("model")))
def test_no_model_reaches_further_than_its_certificates_say(name):
    """A path of sixteen nodes, of which the first changes: its features, its edge, or a node injected before it."""
    model = build(settings_of(name, "synth-tiny"), 4, 3, torch.Generator().manual_seed(1)).eval()
    try:
        far, hops = reach_of(model), messages_of(model)
    except NotCertifiable as error:
        assert any(reason in str(error) for reason in ("stages", "low-rank", "attention over all nodes"))
        return
    n = 16
    adj, _ = adjacency_from_edges(torch.stack([torch.arange(n - 1), torch.arange(1, n)]), n)
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(n, 4, generator=generator) * (1 + 3 * (seed % 2))
        other = x.clone()
        other[0] = 10 * torch.randn(4, generator=generator)
        graph, strange = Graph(adj, x), 10 * torch.randn(1, 4, generator=generator)
        dropped = graph.apply(GraphEdit(n, EMPTY, torch.tensor([[0], [1]])))
        lonely = graph.apply(GraphEdit(n, EMPTY, EMPTY, torch.zeros(1, 4)))
        joined = graph.apply(GraphEdit(n, torch.tensor([[0], [n]]), EMPTY, strange))
        for before, after, most in (
            (graph, Graph(adj, other), hops),
            (graph, dropped, far),
            (lonely, joined, far - 1),  # the first node of the path is one hop from the injected one
        ):
            old, new = predict(model, before)[:n], predict(model, after)[:n]
            moved = ((old - new).abs() > 1e-5 * old.abs().amax(1, keepdim=True)).any(1).nonzero()
            assert not len(moved) or int(moved.max()) <= max(most, 0)


@pytest.mark.parametrize("name", list(entries("model")))
def test_what_an_injected_node_sends_reaches_one_group_of_senders(name):
    model = build(settings_of(name, "synth-tiny"), 4, 3, torch.Generator().manual_seed(1)).eval()
    try:
        vote = HashVote(model, 5, "senders").eval()
        check_along_edges(model)
    except (DataError, NotCertifiable):
        return
    n = 10
    pairs = torch.combinations(torch.arange(n)).T
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        adj, _ = adjacency_from_edges(pairs[:, torch.rand(pairs.shape[1], generator=generator) < 0.3], n)
        graph = Graph(adj, torch.randn(n, 4, generator=generator))
        ends = torch.randperm(n, generator=generator)[: 1 + seed % 5]
        x = torch.randn(1, 4, generator=generator) * 10.0 ** (seed % 4)
        joined = graph.apply(GraphEdit(n, torch.stack([ends, torch.full_like(ends, n)]), EMPTY, x))
        lonely = graph.apply(GraphEdit(n, EMPTY, EMPTY, torch.zeros(1, 4)))
        view = EvaluationView.of(torch.arange(0), n + 1, seed)
        hit = int(mixed(view.keys.numpy().astype(np.uint64))[n] % np.uint64(5))
        vote.observe(view)
        with torch.no_grad():
            before, after = (list(vote.group_logits(each.x, vote.prepare(each.adj))) for each in (lonely, joined))
        for group, (old, new) in enumerate(zip(before, after, strict=True)):
            if group != hit:
                assert torch.allclose(old[:n], new[:n], rtol=1e-4, atol=1e-5 * float(old.abs().max()))


# code that nobody sees, and models that say one thing now and another thing then


class Wrapped:
    """Code of others that is no module: it says another thing of larger graphs."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, h):
        return self.inner(h) + (h.roll(1, 0) if len(h) > tiny().num_nodes + 8 else 0)


class Sly(torch.Tensor):
    """Weights with code of others."""


def beside(make) -> GCN:
    """A network whose norms are in a plain list, which neither evaluation mode nor a list of its parts reaches."""
    model = pooling(nn.LayerNorm(24))
    norms = list(model.norms)
    del model.norms
    model.norms = [make(norm) for norm in norms]
    return model.eval()


def nested() -> GCN:
    model = pooling(nn.LayerNorm(24))
    model.notes = {"norms": [nn.LayerNorm(24)]}
    return model


def sly() -> GCN:
    model = pooling(nn.LayerNorm(24))
    model.norms[0]._parameters["weight"] = model.norms[0].weight.detach().as_subclass(Sly)
    return model


@pytest.mark.parametrize(
    "make",
    [
        lambda: beside(Wrapped),
        lambda: beside(lambda norm: nn.Sequential(norm, nn.Dropout(0.5))),
        lambda: nested(),
        sly,
    ],
    ids=["code", "dropout", "nested", "tensor"],
)
def test_what_a_model_keeps_beside_its_parts_is_refused(make):
    with pytest.raises(
        NotCertifiable, match=r"keeps a (Wrapped|Sequential|LayerNorm|Sly) in the (norms|notes|weights) of its"
    ):
        run_certificate(build_certificate("hash-vote"), make(), tiny(), Modification(edges=1))
    with pytest.raises(NotCertifiable, match="keeps a"):
        run_certificate(build_certificate("by-construction"), Known(make()).eval(), tiny(), injection())


def test_a_hook_on_all_modules_is_refused():
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out)
    try:
        with pytest.raises(NotCertifiable, match="hook on all modules"):
            run_certificate(build_certificate("hash-vote"), trained("gcn"), tiny(), Modification(edges=1))
    finally:
        handle.remove()


def test_every_model_keeps_plain_values_alone():
    """So that no model of grb is refused for what it keeps."""
    for name in entries("model"):
        for suffix in ("", "+known", "+bounded", "+hash-vote", "+smooth"):
            try:
                model = build(settings_of(name + suffix, "synth-tiny"), 4, 3, torch.Generator().manual_seed(1))
            except DataError:
                continue
            check_own_code(model)


def test_a_model_that_says_two_things_of_one_graph_has_no_hash_vote():
    """A part of torch that draws at random in evaluation mode too."""
    part = nn.Sequential(
        nn.Unflatten(1, (1, 4, 6)), nn.FractionalMaxPool2d(2, (2, 4)), nn.AdaptiveAvgPool2d((4, 6)), nn.Flatten(1)
    )
    with pytest.raises(NotCertifiable, match="two things of one graph"):
        run_certificate(build_certificate("hash-vote"), pooling(part), tiny(), Modification(edges=1))


# what a solver says


@settings(max_examples=40)
@given(seeds, st.floats(0, 1e-2))
def test_a_program_is_bounded_from_above_whatever_the_solver_finds(seed, error):
    """A solver that stops too early, with wrong prices: the bound is looser, but never below the optimum."""
    rng = np.random.default_rng(seed)
    budgets, seen = rng.integers(1, 4, 12), sparse.csr_array((rng.random((12, 9)) < 0.4).astype(float))
    best = collective_attacked(budgets, seen, 3)
    true = optimize.linprog

    def early(*args, **more):
        found = true(*args, **more)
        found.fun *= 1 - error
        found.ineqlin.marginals = found.ineqlin.marginals * (
            1 + error * rng.standard_normal(found.ineqlin.marginals.shape)
        )
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimize, "linprog", early)
        assert collective_attacked(budgets, seen, 3) >= best - 1e-9


def test_bounds_of_tiny_error_levels_hold():
    """1 - alpha is not what it says where alpha is smaller than floating point: by the tail itself."""
    for alpha in (1e-3, 1e-12, 0.8e-16, 1e-30, 1e-200):
        for successes, samples in ((0, 5), (3, 50), (40, 1000)):
            high = float(upper_bound(np.array(successes), samples, alpha))
            low = float(lower_bound(np.array(samples - successes), samples, alpha))
            assert binom.cdf(successes, samples, high) <= alpha * (1 + 1e-6)
            assert low == pytest.approx(1 - high, abs=1e-12)


def test_a_single_class_is_refused_in_one_sentence():
    own = tiny()
    split = {"train": own.index_train, "val": own.index_val, "test": own.test_ids("full")}
    one = Dataset.from_arrays(own.adj, own.graph.x, own.labels * 0, split=split, name="one")
    for name in ("by-construction", "bounded-influence", "hash-vote", "sparse-smoothing", "bi-smoothing"):
        with pytest.raises(NotCertifiable, match="'one' has a single class"):
            run_certificate(build_certificate(name), trained("gcn"), one, injection())


# features of every size, and graphs of every shape


@pytest.mark.parametrize("value", [0.0, -1.0, 1e30, 3e38, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["gcn+known", "gat+known", "graphsage+bounded", "gcn+hash-vote"])
def test_features_of_any_size_leave_what_is_certified(name, value):
    params = {"divide": "senders", "groups": 9} if "vote" in name else {"influence": 3.0} if "bounded" in name else {}
    model, own = trained(name, **params), tiny()
    found = grb.certify(model, own, threat=injection(2, 40))
    ids, n = own.test_ids("full"), own.num_nodes
    add = torch.stack([ids[:40].repeat(2), n + torch.arange(2).repeat_interleave(40)])
    edit = GraphEdit(n, add, EMPTY, torch.zeros(2, own.num_features))
    graph = own.graph.apply(edit)
    graph.x[n:] = value  # what an edit may not hold
    graph.x[n + 1, ::2] *= -1
    view = EvaluationView.of(torch.cat([own.index_train, own.index_val]), graph.n)
    right = (predict(model, graph, view)[ids].argmax(1) == own.labels[ids]).numpy()
    safe = found.correct & (found.budgets >= 2)
    assert safe.any() and right[safe].all()


@pytest.mark.parametrize("name", ["gcn+known", "graphsage+bounded", "gcn+hash-vote", "gcn+smooth"])
def test_graphs_of_isolated_nodes_are_certified(name):
    params = {"divide": "senders"} if "vote" in name else {"p_drop": 0.9, "p_node": 0.8} if "smooth" in name else {}
    own = tiny()
    split = {"train": own.index_train, "val": own.index_val, "test": own.test_ids("full")}
    empty = own.adj * 0
    empty.eliminate_zeros()
    lonely = Dataset.from_arrays(empty, own.graph.x, own.labels, split=split, name="lonely")
    model = grb.train(name, lonely, epochs=5, hidden_features=[8], **params)
    more = {"samples": 50} if "smooth" in name else {}
    found = grb.certify(model, lonely, threat=injection(), **more)
    assert found.clean_accuracy >= found.certified_accuracy >= found.accuracy_at(3)


@settings(max_examples=40)
@given(seeds)
def test_certificates_follow_renumbered_nodes(seed):
    """Nodes in another order, with their keys: the same budgets, except where two ways of summation disagree."""
    own, generator = tiny(), torch.Generator().manual_seed(seed)
    order = torch.randperm(own.num_nodes, generator=generator)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    split = {
        "train": place[own.index_train].sort().values,
        "val": place[own.index_val].sort().values,
        "test": place[own.test_ids("full")].sort().values,
    }
    graph = own.graph.subgraph(order)
    moved = Dataset.from_arrays(graph.adj, graph.x, own.labels[order], split=split, name="moved")
    model = trained("graphsage+bounded", influence=3.0)
    first, second = (grb.certify(model, each, threat=injection()) for each in (own, moved))
    back = torch.argsort(order[moved.test_ids("full")])
    ids = own.test_ids("full").argsort()
    assert (first.budgets[ids.numpy()] == second.budgets[back.numpy()]).mean() > 0.98


def test_whole_numbers_of_votes_are_never_one_too_many():
    """Leads and influences for which the quotient is a whole number, or would be but for rounding, by exact fractions."""
    tight = 0
    for lead, influence, strangers, ahead in itertools.product(range(1, 21), range(1, 21), range(4), range(-3, 4)):
        if abs(ahead) > strangers:
            continue
        margin, weight, seats = Fraction(lead, 20), Fraction(influence, 20), strangers + 1
        if margin * seats + weight * ahead <= 0:
            continue
        most = 0
        while most < 50 and margin + weight * Fraction(ahead - most - 1, seats + most + 1) > 0:
            most += 1
        votes = np.array([[max(ahead, 0), max(-ahead, 0)]], dtype=float)
        found = int(malicious_votes([[lead / 20, 0.0]], votes, [strangers], influence / 20)[0])
        assert min(found, 50) <= most
        assert found >= most - 1
        tight += min(found, 50) == most
    assert tight > 1000


# limits that nobody reaches


def test_noise_that_leaves_nothing_of_the_graph_survives_any_number_at_once():
    """All edges dropped, all nodes, or all features: found without counting to a limit of a thousand millions."""
    own, many = tiny(), 10**9
    hijack = Modification(edges=0, feature_nodes=many, feature_range=(0, 1))
    for noise, threat in (
        ({"p_drop": 1.0}, Modification(edges=many)),
        ({"p_add": 0.25, "p_drop": 0.75}, Modification(edges=many)),
        ({"p_drop": 1.0, "p_node": 0.5}, Injection(many, 5, own.feature_range)),
        ({"p_drop": 0.5, "p_node": 1.0}, Injection(many, 5, own.feature_range)),
        ({"p_ablate": 1.0}, hijack),
    ):
        found = grb.certify(Smoothed(trained("gcn"), **noise).eval(), own, threat=threat, samples=200)
        assert (found.budgets[~found.abstained] >= many).all()
        assert (~found.abstained).any()


@pytest.mark.parametrize("name", ["gcn+known", "graphsage+bounded"])
def test_a_thousand_million_injected_nodes_are_tried_with_fewer_and_said_so(name):
    own = tiny()
    found = grb.certify(trained(name), own, threat=Injection(10**9, 1, own.feature_range))
    assert found.budget == 10**9 and "5000 nodes, not of 1000000000" in found.notes[0]
    assert grb.certify(trained(name), own, threat=injection()).notes == ()


def test_halving_finds_what_counting_finds():
    low = np.linspace(0.4, 1, 40)
    high = 1 - low
    own = {"p_edge": 0.9, "p_node": 0.8}
    found = injected_nodes(low, high, edges_per_node=3, most=60, **own)
    for number, (a, b) in enumerate(zip(low, high, strict=True)):
        held = [certified_soundly(a, b, count, 3, **own) for count in range(1, 61)]
        assert found[number] == (sum(held) if a > b else -1)
        assert held == sorted(held, reverse=True)


def test_a_vote_of_other_groups_than_those_that_are_evaluated_says_so():
    own, vote = tiny(), trained("gcn+hash-vote", groups=3)
    ids = own.test_ids("full")
    right = (predict(vote, own.graph, default_view(own, 0))[ids].argmax(1) == own.labels[ids]).numpy()
    same, other = (grb.certify(vote, own, threat=Modification(edges=1), seed=seed) for seed in (0, 5))
    assert not (same.correct & ~right).any() and not same.notes
    assert (same.budgets != other.budgets).any()
    assert "the groups are those of seed 5" in other.notes[0]
