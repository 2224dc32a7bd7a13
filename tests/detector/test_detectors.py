"""What detectors learn, and what they notice."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

import grb
from grb.catalogue import entries
from grb.dataset import Dataset
from grb.detector import Detector, build_detector, detect
from grb.detector.base import LEVELS, normal_scores
from grb.detector.detection import changed_items
from grb.errors import DataError, UnknownName
from grb.graph import CSR, Graph, GraphEdit, Pattern, adjacency_from_edges

NAMES = list(entries("detector"))


@pytest.fixture(scope="module")
def tiny() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def fitted(tiny: Dataset) -> dict[str, Detector]:
    view = tiny.defender_view()
    return {name: build_detector(name, tiny.num_features, tiny.num_classes).fit(view, seed=3) for name in NAMES}


def split_of(dataset: Dataset) -> dict[str, torch.Tensor]:
    return {"train": dataset.index_train, "val": dataset.index_val, "full": dataset.index_test}


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_and_the_defenders_view_alone_decide_what_is_learnt(name: str, tiny: Dataset) -> None:
    features = tiny.features.clone()
    features[tiny.index_test] = 7.0  # whatever test nodes look like
    other_world = Dataset.from_arrays(tiny.adj, features.numpy(), tiny.labels.numpy(), split=split_of(tiny))
    same_world = Dataset.from_arrays(tiny.adj, tiny.features.numpy(), tiny.labels.numpy(), split=split_of(tiny))
    states = []
    for seed, world in ((5, same_world), (6, other_world)):
        torch.manual_seed(seed)  # the global generator must not matter
        made = build_detector(name, tiny.num_features, tiny.num_classes).fit(world.defender_view(), seed=1)
        states.append(made.state_dict())
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


@pytest.mark.parametrize("name", NAMES)
def test_scores_do_not_depend_on_the_order_of_nodes(name: str, fitted: dict[str, Detector], tiny: Dataset) -> None:
    graph, detector = tiny.graph, fitted[name]
    order = torch.randperm(graph.n, generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    adj, _ = adjacency_from_edges(place[graph.adj.edges()].numpy(), graph.n)
    moved = Graph(adj, graph.x[order])  # type: ignore[index]
    with torch.no_grad():
        before, after = detector.node_scores(graph), detector.node_scores(moved)
    assert torch.allclose(before[order], after, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_edges_are_as_suspicious_in_both_directions_and_nothing_is_nan(
    name: str, fitted: dict[str, Detector], tiny: Dataset
) -> None:
    edit = GraphEdit(n=tiny.graph.n, new_x=torch.zeros(2, tiny.num_features))  # two isolated rows of zeros
    graph = tiny.graph.apply(edit)
    with torch.no_grad():
        nodes, edges = fitted[name].node_scores(graph), fitted[name].edge_scores(graph)
    assert nodes.isfinite().all() and edges.isfinite().all()
    assert torch.allclose(edges, edges[graph.adj.pattern.transposed[1]], atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_twentieth_of_what_was_seen_exceeds_the_threshold(
    name: str, fitted: dict[str, Detector], tiny: Dataset
) -> None:
    view = tiny.defender_view()
    with torch.no_grad():
        scores = fitted[name].node_scores(view.graph)
    scores = scores[view.val] if fitted[name].held_out else scores
    above = float((scores > fitted[name].threshold("nodes", 0.05)).double().mean())
    assert above <= 0.05 + 1 / len(scores)
    assert above > 0 or name == "degree"  # of which many nodes have the same


def test_the_likelihood_is_that_of_scikit_learns_probabilistic_components(tiny: Dataset) -> None:
    view = tiny.defender_view()
    own = build_detector("feature-likelihood", tiny.num_features, tiny.num_classes, rank=5).fit(view)
    rows = view.graph.subgraph(view.train).x.double().numpy()  # type: ignore[union-attr]
    reference = PCA(5, svd_solver="full").fit(rows)
    with torch.no_grad():
        ours = own.node_values(tiny.graph).double().numpy()
    theirs = -2 * reference.score_samples(tiny.features.double().numpy())
    assert np.corrcoef(ours, theirs)[0, 1] > 0.999


def test_homophily_is_the_cosine_with_the_neighbours_by_hand() -> None:
    adj, _ = adjacency_from_edges(np.array([[0, 0], [1, 2]]), 4)
    graph = Graph(adj, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    own = build_detector("homophily", 2, 2)
    assert own.node_values(graph)[:3].tolist() == pytest.approx([1 / math.sqrt(2), 0.0, 1.0], abs=1e-6)
    assert own.node_values(graph)[3].isnan()  # no neighbours
    assert own.edge_values(graph).tolist() == pytest.approx([0.0, 1.0, 0.0, 1.0], abs=1e-6)


def test_consistency_is_one_minus_the_overlap_of_probabilities_by_hand() -> None:
    adj, _ = adjacency_from_edges(np.array([[0, 0], [1, 2]]), 3)
    graph = Graph(adj, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    own = build_detector("consistency", 2, 2, hidden=2)
    own.weight.copy_(torch.eye(2))  # type: ignore[operator, union-attr]
    own.out_weight.copy_(math.log(3) * torch.eye(2))  # type: ignore[operator, union-attr]
    # probabilities (3/4, 1/4), (1/4, 3/4), (3/4, 1/4); the neighbours of node 0 say (1/2, 1/2)
    halves = math.sqrt(3 / 8) + math.sqrt(1 / 8)
    across = 2 * math.sqrt(3 / 16)
    assert own.node_values(graph).tolist() == pytest.approx([1 - halves, 1 - across, 0], abs=1e-6)
    assert own.edge_values(graph).tolist() == pytest.approx([1 - across, 0, 1 - across, 0], abs=1e-6)


def test_normal_scores_are_symmetric_monotone_and_share_ties() -> None:
    quantiles = torch.linspace(-1, 1, LEVELS)
    values = torch.tensor([-9.0, -1.0, -0.3, 0.0, 0.3, 1.0, 9.0])
    scores = normal_scores(values, quantiles)
    assert (scores.diff() > 0).all() and torch.allclose(scores, -scores.flip(0), atol=1e-5)
    # a third of the nodes has each degree: the middle one is as usual as can be
    degrees = torch.tensor([1.0, 2.0, 3.0]).repeat_interleave(43)
    assert normal_scores(torch.tensor([2.0]), degrees).abs() < 1e-5
    assert normal_scores(torch.tensor([1.0]), degrees) < -0.5
    assert normal_scores(torch.tensor([4.0]), torch.full((LEVELS,), 4.0)).abs() < 1e-5


def test_an_attack_is_told_from_test_nodes_and_the_curve_is_scikit_learns(
    fitted: dict[str, Detector], tiny: Dataset
) -> None:
    attack = grb.run_attack("rnd", None, tiny)
    found = grb.detect(fitted["feature-likelihood"], tiny, attack)
    roc = found.roc["nodes"]
    unknown = tiny.graph.n - len(tiny.defender_view().nodes)
    assert int(roc.changed.sum()) == attack.edit.num_new and int((~roc.changed).sum()) == unknown
    assert roc.auroc == pytest.approx(roc_auc_score(roc.changed, roc.scores))
    false, true = roc.curve()
    assert np.trapezoid(true, false) == pytest.approx(roc.auroc) and (false[0], true[-1]) == (0, 1)
    assert roc.auroc > 0.9  # Gaussian rows are no features of this dataset
    edges = found.roc["edges"]
    assert int(edges.changed.sum()) == attack.edit.add.shape[1]


def test_changed_are_injected_nodes_or_else_the_ends_of_changed_edges() -> None:
    adj, _ = adjacency_from_edges(np.array([[0, 1], [1, 2]]), 4)
    edit = GraphEdit(n=4, add=torch.tensor([[0], [3]]), drop=torch.tensor([[1], [2]]))
    found = changed_items(edit, 4, Graph(adj, torch.zeros(4, 1)).apply(edit).adj.edges())
    assert found["nodes"].tolist() == [True] * 4 and found["edges"].tolist() == [False, True]
    injection = GraphEdit(n=4, add=torch.tensor([[0], [4]]), new_x=torch.zeros(1, 1))
    assert changed_items(injection, 5, torch.tensor([[0], [4]]))["nodes"].tolist() == [False] * 4 + [True]


def test_the_clean_graph_and_an_empty_edit_have_scores_but_no_curves(
    fitted: dict[str, Detector], tiny: Dataset
) -> None:
    for edit in (None, GraphEdit(n=tiny.graph.n)):
        found = detect(fitted["degree"], tiny, edit)
        assert found.roc == {} and len(found.nodes) == tiny.graph.n and len(found.edges) == tiny.graph.num_edges


def test_sparse_and_dense_features_are_scored_alike(tiny: Dataset) -> None:
    bits = (tiny.features > 0.5).float().numpy()
    dense = Dataset.from_arrays(tiny.adj, bits, tiny.labels.numpy(), split=split_of(tiny))
    rows = sp.csr_array(bits)
    arrays = (torch.from_numpy(part).long() for part in (rows.indptr, rows.indices))
    entries_of = CSR(Pattern(*arrays, tiny.num_features), torch.from_numpy(rows.data))
    view = dense.defender_view()
    sparse = replace(view, graph=replace(view.graph, x=entries_of.rows(view.nodes)))
    for name in NAMES:
        one, other = (
            build_detector(name, tiny.num_features, tiny.num_classes).fit(each).node_scores(each.graph)
            for each in (view, sparse)
        )
        assert torch.allclose(one.detach(), other.detach(), atol=2e-2, rtol=1e-2), name


def test_what_cannot_be_detected_is_refused_in_one_sentence(tiny: Dataset) -> None:
    with pytest.raises(UnknownName, match="homophily"):
        grb.detect("homophilly", tiny)
    with pytest.raises(DataError, match="does not take 'rank'; it takes side"):
        grb.detect("homophily", tiny, rank=3)
    with pytest.raises(DataError, match="learnt nothing yet"):
        build_detector("degree", 2, 2).node_scores(tiny.graph)
    with pytest.raises(DataError, match="go with a detector's name"):
        grb.detect(build_detector("degree", 2, 2), tiny, side="low")
    with pytest.raises(DataError, match="has graphs to classify"):
        grb.detect("degree", grb.load_dataset("synth-graphs"))
    with pytest.raises(DataError, match="a GraphEdit or an attack's result"):
        grb.detect("degree", tiny, "edit.npz")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="for 2 features"):
        build_detector("degree", 2, 2).fit(tiny.defender_view())
    for name, argument in (
        ("homophily", {"side": "middle"}),
        ("feature-likelihood", {"rank": 0}),
        ("consistency", {"hidden": True}),
    ):
        with pytest.raises(DataError, match="is needed"):
            build_detector(name, 2, 2, **argument)


def test_a_view_without_validation_nodes_or_edges_still_works(tiny: Dataset) -> None:
    view = replace(tiny.defender_view(), val=torch.empty(0, dtype=torch.int64))
    adj, _ = adjacency_from_edges(np.empty((2, 0), dtype=np.int64), view.graph.n)
    for each in (view, replace(view, graph=replace(view.graph, adj=adj))):
        for name in NAMES:
            made = build_detector(name, tiny.num_features, tiny.num_classes).fit(each)
            assert made.node_scores(tiny.graph).isfinite().all(), name
