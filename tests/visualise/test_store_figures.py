"""Figures that look at datasets, edits and records: degrees, process, accuracy by degree, unnoticeability."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

import grb
from grb.catalogue import entries
from grb.dataset import load_dataset
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.visualise import (
    degree_accuracy,
    degrees,
    detections,
    draw_degree_accuracy,
    draw_degrees,
    draw_process,
    draw_unnoticeability,
    homophily,
    strip,
    unnoticeability,
)
from grb.visualise.degrees import bin_edges
from grb.visualise.unnoticeability import kolmogorov


@pytest.fixture(scope="module")
def dataset():
    return load_dataset("synth-tiny")


def test_bands_of_degrees_are_those_of_the_test_nodes(dataset):
    data = degrees(dataset)
    graph = nx.from_scipy_sparse_array(dataset.adj)
    known = np.array([graph.degree(node) for node in range(dataset.num_nodes)])
    for name, band in data.bands.items():
        own = known[dataset.test_ids(name).numpy()]
        assert (band.nodes, band.mean) == (len(own), pytest.approx(own.mean()))
        assert (band.low, band.high) == (own.min(), own.max())
        assert sum(band.shares) == pytest.approx(1)
        below, upto = band.span
        assert below == pytest.approx((known < own.min()).mean()) and upto == pytest.approx((known <= own.max()).mean())
    means = [data.bands[name].mean for name in ("easy", "medium", "hard")]
    assert means == sorted(means)
    assert data.degrees[0] == known.min() and data.degrees[-1] == known.max() and data.places[-1] == 1
    assert list(data.degrees) == sorted(data.degrees)


def test_degrees_are_drawn_with_every_difficulty(dataset):
    figure = draw_degrees(degrees(dataset))
    left, right = figure.axes
    assert [text.get_text() for text in left.texts] == ["easy", "medium", "hard"]
    assert len(right.lines) == 3


@given(st.integers(0, 5000))
def test_every_degree_falls_into_exactly_one_bin(largest):
    edges = bin_edges(largest)
    assert (np.diff(edges) > 0).all() and edges[0] == 0
    counts, _ = np.histogram(np.arange(largest + 1), bins=edges)
    assert counts.sum() == largest + 1 and edges[-1] > largest
    assert counts[-1] > 0


def test_accuracy_by_degree_counts_by_hand():
    known = np.array([1, 1, 2, 2, 8, 8])
    correct = {"none": [[1, 1, 1, 1, 1, 1]], "fgsm": [[0, 0, 1, 0, 1, 1], [0, 1, 1, 0, 1, 1]]}
    data = degree_accuracy(known, correct, least=1)
    bins = dict(zip(zip(data.edges, data.edges[1:]), zip(data.counts, data.means["fgsm"], data.stds["fgsm"])))
    filled = {low: found for (low, _), found in bins.items() if found[0]}
    assert filled[1] == (2, 0.25, 0.25) and filled[2] == (2, 0.5, 0.0)
    assert list(filled.values())[-1] == (2, 1.0, 0.0)
    assert set(data.means["none"]) == {1.0}


@given(st.lists(st.integers(0, 60), min_size=1, max_size=80), st.integers(1, 10))
def test_joined_bins_hold_every_target_and_none_is_nearly_empty(known, least):
    data = degree_accuracy(known, {"none": np.ones((1, len(known)))}, least=least)
    assert sum(data.counts) == len(known)
    assert all(count >= min(least, len(known)) for count in data.counts)
    assert data.means["none"] == pytest.approx((1.0,) * len(data.counts))


def test_accuracy_by_degree_of_nobody_is_refused():
    with pytest.raises(DataError, match="at least one target"):
        degree_accuracy([], {"none": []})


def test_accuracy_by_degree_is_drawn_with_the_number_of_targets():
    data = degree_accuracy([1, 1, 5, 5], {"none": [[1, 1, 1, 1]], "fgsm": [[0, 0, 1, 1]]}, least=1, dataset="d")
    above, below = draw_degree_accuracy(data).axes
    assert above.get_legend_handles_labels()[1] == ["clean graph", "fgsm"]
    assert [bar.get_height() for bar in below.patches] == list(data.counts)


def test_a_strip_is_the_mean_of_traces_of_any_length():
    found = strip("fgsm", "full", 100, [([1.0, 3.0], [1.0, 0.5]), ([2.0, 2.0, 2.0], [1.0, 1.0, 0.5])])
    assert (found.steps, found.runs) == (100, 2)
    assert found.kept == pytest.approx((1.0, 0.875, 0.5)) and found.loss == pytest.approx((1.5, 2.0, 2.5))


def test_half_of_the_fall_is_at_the_step_where_it_is_reached():
    falling = strip("fgsm", "full", 5, [([], [1.0, 0.9, 0.6, 0.6, 0.6])])
    assert falling.half == 3 and all(math.isnan(value) for value in falling.loss)
    assert strip("rnd", "full", 3, [([], [0.5, 0.5, 0.5])]).half is None
    assert strip("one", "full", 1, [([], [0.5])]).kept == (0.5,)


def test_an_attack_without_steps_has_no_process():
    with pytest.raises(DataError, match="has no steps"):
        strip("rnd", "full", 0, [([], [])])
    with pytest.raises(DataError, match="no process to draw"):
        draw_process([])


def test_strips_are_drawn_with_words_for_what_colours_say():
    figure = draw_process([strip("fgsm", "full", 5, [([], [1.0, 0.9, 0.6, 0.6, 0.6])])])
    assert [text.get_text() for text in figure.axes[0].texts] == ["100 to 60 % in 5 steps, half of it by step 3"]
    assert list(figure.axes[0].images[0].get_array()[0]) == pytest.approx([100, 90, 60, 60, 60])


def path_graph():
    """Four nodes in a line; 0, 1 and 3 point the same way."""
    x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    return Graph(adjacency_from_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)[0], x, torch.tensor([0, 0, 1, 0]))


def test_homophily_is_the_cosine_to_the_normalised_neighbours():
    graph = path_graph()
    around = np.zeros((4, 2))
    known = graph.adj.degrees.numpy()
    for u, v in [(0, 1), (1, 2), (2, 3)]:
        for a, b in ((u, v), (v, u)):
            around[a] += graph.x[b].numpy() / np.sqrt(known[a] * known[b])
    own = graph.x.numpy()
    expected = (own * around).sum(1) / np.linalg.norm(own, axis=1) / np.linalg.norm(around, axis=1)
    assert homophily(graph).numpy() == pytest.approx(expected, abs=1e-6)


def test_an_injected_node_shifts_homophily_degree_and_features():
    graph = path_graph()
    edit = GraphEdit(n=4, add=torch.tensor([[0, 3], [4, 4]]), new_x=torch.tensor([[0.0, -8.0]]))
    data = unnoticeability(graph, edit)
    assert (data.touched, data.injected) == (2, 1)
    assert data.degree.means["after"] == 2.0 and data.degree.means["injected"] == 2.0
    assert data.degree.means["before"] == 1.5
    assert data.feature.means["injected"] == 8.0
    assert data.homophily.means["injected"] == pytest.approx(0.0, abs=1e-6)
    for shift in (data.homophily, data.degree, data.feature):
        assert all(sum(shares) == pytest.approx(1) for shares in shift.shares.values())
        assert 0 < shift.distance <= 1
    assert data.degree.distance == pytest.approx(ks_2samp([1, 2, 2, 1], [2, 2, 2, 2, 2]).statistic)


def test_an_empty_edit_cannot_be_noticed():
    data = unnoticeability(path_graph(), GraphEdit(n=4))
    assert data.homophily.distance == data.degree.distance == data.feature.distance == 0
    assert set(data.degree.shares) == {"before"} and (data.touched, data.injected) == (0, 0)


def test_replaced_features_and_dropped_edges_touch_nodes():
    edit = GraphEdit(n=4, drop=torch.tensor([[0], [1]]), set_ids=torch.tensor([3]), set_x=torch.tensor([[9.0, 0.0]]))
    data = unnoticeability(path_graph(), edit)
    assert data.touched == 3
    assert "injected" not in data.feature.shares
    assert data.feature.means["after"] == pytest.approx((1 + 2 + 9) / 3)


numbers = st.lists(st.floats(-5, 5, width=16), min_size=1, max_size=30)


@pytest.mark.filterwarnings("ignore:ks_2samp:RuntimeWarning")  # about its p-value, which is not used
@given(numbers, numbers)
def test_the_distance_is_that_of_scipy(one, other):
    assert kolmogorov(one, other) == pytest.approx(ks_2samp(one, other, method="exact").statistic)


def test_edits_are_drawn_in_lines_of_three_panels():
    edit = GraphEdit(n=4, add=torch.tensor([[0], [4]]), new_x=torch.tensor([[0.0, -8.0]]))
    figure = draw_unnoticeability(
        {"fgsm": unnoticeability(path_graph(), edit), "none": unnoticeability(path_graph(), GraphEdit(n=4))}
    )
    assert len(figure.axes) == 6
    assert [axes.get_xlabel() for axes in figure.axes[3:]] == ["homophily", "degree", "norm of features"]
    with pytest.raises(DataError, match="no edit to draw"):
        draw_unnoticeability({})


def test_what_detectors_notice_stands_beside_the_comparison_with_the_clean_graph():
    dataset = grb.load_dataset("synth-tiny")
    edit = grb.run_attack("rnd", None, dataset).edit
    found = detections(dataset, edit)
    assert set(found) == set(entries("detector"))
    assert found["homophily"] == grb.detect("homophily", dataset, edit).auroc["nodes"]
    assert detections(dataset, GraphEdit(n=dataset.graph.n)) == {}
    shown = unnoticeability(dataset.graph, edit, detected=found)
    figure = draw_unnoticeability({"rnd": shown, "none": unnoticeability(dataset.graph, GraphEdit(n=300))})
    assert len(figure.axes) == 8 and figure.axes[7].get_xlabel() == "AUROC of detectors"
    bars = figure.axes[3].patches
    assert [bar.get_x() + bar.get_width() for bar in bars] == pytest.approx(list(found.values()))
