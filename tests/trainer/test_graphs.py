"""Training on graphs: it learns, repeats itself, sees no test graph, and refuses what does not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import grb
from grb.dataset import Dataset
from grb.defense import build_defense
from grb.errors import DataError
from grb.graph import Graph
from grb.model.base import predict
from made_collections import tiny_graphs


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return tiny_graphs()


def test_it_learns_and_repeats_itself(dataset: Dataset) -> None:
    state = torch.get_rng_state()
    models = [grb.train("gin", dataset, seed=seed, epochs=40) for seed in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), state)
    first, again, other = (predict(model, dataset.graph) for model in models)
    assert torch.equal(first, again) and not torch.equal(first, other)
    # told apart by the first feature
    assert (first.argmax(1) == dataset.labels).double().mean() > 0.9


def test_the_best_epoch_is_kept_and_patience_stops() -> None:
    dataset = grb.load_dataset("synth-graphs")
    training = build_defense("gcn-pool", dataset.name, epochs=200, patience=5)
    model, fit = training.fit_with_history(dataset.defender_view(), seed=0)
    assert fit.epochs < 200 and fit.epochs == fit.best_epoch + 6 and "5 epochs" in fit.stopped
    assert fit.best_score == max(epoch.val_score or 0 for epoch in fit.history)
    ids = dataset.split.val
    assert (predict(model, dataset.graph)[ids].argmax(1) == dataset.labels[ids]).double().mean() == fit.best_score


def test_test_graphs_are_not_seen(dataset: Dataset) -> None:
    view = dataset.defender_view()
    assert view.graph.num_graphs == dataset.num_train + dataset.num_val
    hidden = torch.ones(dataset.num_items, dtype=torch.bool)
    hidden[view.nodes] = False
    assert torch.equal(hidden.nonzero().flatten(), dataset.test_ids("full").sort().values)
    seen, ids = view.training_graph()
    assert seen.num_graphs == len(ids) == dataset.num_train
    # other test graphs, the same weights
    x = dataset.graph.x.clone()  # type: ignore[union-attr]
    x[hidden[dataset.graph.owner]] = 7.0
    graph = Graph(dataset.graph.adj, x, dataset.graph.y, dataset.graph.ptr)
    assert dataset.scheme is not None
    changed = Dataset.of_graph(graph, dataset.scheme, name=dataset.name, task="graph")
    weights = [grb.train("gcn", own, epochs=3).state_dict() for own in (dataset, changed)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_attackers_see_no_label_of_a_test_graph(dataset: Dataset) -> None:
    view = dataset.attacker_view()
    ids = dataset.test_ids("full")
    assert view.graph.ptr is not None and torch.equal(view.targets, ids)
    assert (view.labels[ids] == -1).all() and (view.labels[dataset.split.train] >= 0).all()


def test_what_does_not_fit_is_refused_in_words(dataset: Dataset) -> None:
    nodes = grb.load_dataset("synth-tiny")
    with pytest.raises(DataError, match="'gcn' classifies nodes.*'gcn-pool' classifies graphs"):
        build_defense("gcn", dataset.name).fit(dataset.defender_view(), seed=0)
    with pytest.raises(DataError, match="leave '-pool' out"):
        build_defense("gcn-pool", nodes.name).fit(nodes.defender_view(), seed=0)
    with pytest.raises(DataError, match="leave '-pool' out"):
        grb.train("gin-pool", nodes)
    with pytest.raises(DataError, match=r"leave '\+at' out"):
        grb.train("gcn+at", dataset)
    with pytest.raises(DataError, match="transductive"):
        grb.train("gcn", dataset, train_mode="transductive")
    model = grb.train("gcn", nodes, epochs=1)
    with pytest.raises(DataError, match="classifies nodes, but 'tiny-graphs' has graphs"):
        grb.evaluate(model, dataset)
    with pytest.raises(DataError, match="classifies nodes, but 'tiny-graphs' has graphs"):
        grb.run_attack("fga", model, dataset)
    with pytest.raises(DataError, match="a whole number of at least 1 is needed"):
        build_defense("gcn-pool", dataset.name, epochs=0).fit(dataset.defender_view(), seed=0)
    with pytest.raises(grb.errors.GRBError, match="became nan"):
        broken = Graph(dataset.graph.adj, dataset.graph.x * 1e38, dataset.graph.y, dataset.graph.ptr)  # type: ignore[operator]
        assert dataset.scheme is not None
        huge = Dataset.of_graph(broken, dataset.scheme, name="huge", task="graph")
        model = build_defense("gcn-pool", "huge", epochs=2)
        replace(model).fit(huge.defender_view(), seed=0)
