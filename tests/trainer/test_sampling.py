from __future__ import annotations

import pytest
import torch

import grb
from grb.errors import DataError
from grb.model.torch import GCN
from grb.trainer.sampling import NeighbourSampling


@pytest.fixture(scope="module")
def dataset() -> grb.Dataset:
    return grb.load_dataset("synth-cora")


def test_a_batch_of_all_nodes_with_all_neighbours_is_the_step_on_the_whole_graph(dataset: grb.Dataset) -> None:
    """Up to rounding: rows come in another order, and dropout is off because it draws in that order."""
    options = {"epochs": 3, "hidden_features": [8], "dropout": 0.0, "validate_every": 3}
    whole = grb.train("gcn", dataset, **options)
    sampled = grb.train("gcn", dataset, sampled_neighbours=10_000, batch_nodes=10_000, **options)
    for own, other in zip(sampled.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)


def test_it_learns_and_the_same_seed_gives_the_same_weights(dataset: grb.Dataset) -> None:
    options = {"epochs": 6, "sampled_neighbours": 5, "batch_nodes": 200, "validate_every": 3}
    first, second = (grb.train("gcn", dataset, **options) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert grb.evaluate(first, dataset)["full"] > 0.5


def test_as_many_hops_as_steps_along_edges() -> None:
    assert NeighbourSampling(2).hops(GCN(4, 3, hidden_features=[5, 5])) == 3


@pytest.mark.parametrize(
    ("model", "change", "sentence"),
    [
        ("gcn", {"sampled_neighbours": 0}, "sampled_neighbours is 0, but a whole number of at least 1 is needed"),
        ("gcn", {"batch_nodes": 1.5}, "batch_nodes is 1.5, but"),
        ("gatguard", {}, "'gatguard' is trained on the whole graph alone"),
        ("gcn+ln+known", {}, "is trained on the whole graph alone"),
        ("gcn+at", {"warm_up": 1}, "adversarial training attacks the whole training graph in every step"),
    ],
)
def test_what_does_not_fit_is_refused(
    dataset: grb.Dataset, model: str, change: dict[str, object], sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence):
        grb.train(model, dataset, epochs=2, **{"sampled_neighbours": 5, **change})


def test_graphs_are_refused() -> None:
    with pytest.raises(DataError, match="sampled_neighbours is for models of nodes"):
        grb.train("gin", grb.load_dataset("synth-graphs"), epochs=1, sampled_neighbours=3)
