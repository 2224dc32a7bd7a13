"""Pruning by a detector: fitted with the model, saved with it, and relaxed for attackers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import grb
from grb.dataset import Dataset
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.model.base import predict, prepare, relaxations
from grb.trainer.checkpoint import load_model


@pytest.fixture(scope="module")
def tiny() -> Dataset:
    return grb.load_dataset("synth-cora")  # of synth-tiny a defender has seen 30 validation nodes


@pytest.fixture(scope="module")
def model(tiny: Dataset) -> nn.Module:
    return grb.train("gcn-detect", tiny, seed=1, epochs=10)


def injected(tiny: Dataset) -> GraphEdit:
    """One node unlike any other beside one that copies a test node."""
    targets = tiny.index_test[:6]
    add = torch.cat([torch.stack([targets, torch.full((6,), tiny.graph.n)])], 1)
    return GraphEdit(n=tiny.graph.n, add=add, new_x=torch.full((1, tiny.num_features), 5.0))


def test_edges_of_an_unlikely_node_are_cut_and_most_others_stay(model: nn.Module, tiny: Dataset) -> None:
    attacked = tiny.graph.apply(injected(tiny))
    seen = model.part(attacked)  # type: ignore[operator]
    assert int(seen.adj.degrees[-1]) == 0
    assert seen.num_edges > 0.8 * tiny.graph.num_edges
    assert torch.equal(seen.adj.pattern.transposed[0].indices, seen.adj.pattern.indices)  # still undirected


def test_an_injection_that_is_cut_as_a_whole_changes_nobody_but_by_its_effect_on_suspicion(
    model: nn.Module, tiny: Dataset
) -> None:
    before, after = predict(model, tiny.graph), predict(model, tiny.graph.apply(injected(tiny)))
    same = (before.argmax(1) == after[: tiny.graph.n].argmax(1)).double().mean()
    assert same > 0.97


def test_enough_edges_make_a_target_suspicious_so_that_it_loses_its_own_neighbours(tiny: Dataset) -> None:
    """What pruning by nodes costs: to isolate a target an attacker need not be heard."""
    made = grb.train("gcn-detect", tiny, seed=1, epochs=2, detector="degree")
    degrees = made.part(tiny.graph).adj.degrees[tiny.index_test]  # type: ignore[operator]
    target = int(tiny.index_test[((degrees >= 2) & (degrees <= 4)).nonzero()[0, 0]])
    new = torch.arange(60) + tiny.graph.n
    copies = tiny.features[target].expand(60, -1)
    edit = GraphEdit(n=tiny.graph.n, add=torch.stack([torch.full((60,), target), new]), new_x=copies)
    seen = made.part(tiny.graph.apply(edit))  # type: ignore[operator]
    assert int(seen.adj.degrees[target]) == 0


def test_the_detector_is_saved_with_the_model(model: nn.Module, tiny: Dataset, tmp_path: Path) -> None:
    path = grb.save_model(model, tmp_path / "model.safetensors")
    again = load_model(path)
    assert bool(again.part.detector.fitted)  # type: ignore[union-attr]
    assert torch.equal(predict(model, tiny.graph), predict(again, tiny.graph))


def test_the_detector_adds_no_trainable_weights(model: nn.Module, tiny: Dataset) -> None:
    plain = grb.train("gcn", tiny, seed=1, epochs=1)
    assert model.num_parameters == plain.num_parameters


def test_relaxations_have_a_slope_where_the_part_cuts(model: nn.Module, tiny: Dataset) -> None:
    attacked = tiny.graph.apply(injected(tiny))
    offered = relaxations(model)
    assert list(offered) == ["uncut", "soft"]
    x = attacked.x.clone().requires_grad_()  # type: ignore[union-attr]
    for name, twin in {"": model, **offered}.items():
        (slope,) = torch.autograd.grad(twin(x, prepare(twin, attacked.adj)).square().sum(), x)
        others = twin(x, prepare(twin, attacked.adj))[: tiny.graph.n]
        (heard,) = torch.autograd.grad(others.square().sum(), x)
        assert slope.isfinite().all()
        if name != "":
            assert heard[-1].abs().sum() > 0, name
        else:
            assert heard[-1].abs().sum() == 0


def test_parts_in_front_are_seen_by_the_detector(tiny: Dataset) -> None:
    model = grb.train("gcn-detect-transform", tiny, seed=1, epochs=2)
    inner = model.model.part.detector  # type: ignore[union-attr]
    view = tiny.defender_view()
    squashed = torch.atan(view.graph.x[view.train]) * 2 / torch.pi  # type: ignore[index]
    likelihood = next(part for part in inner.detectors if part.name == "feature-likelihood")
    assert torch.allclose(likelihood.mean, squashed.mean(0), atol=1e-5)


def test_other_detectors_and_rates_are_settings(tiny: Dataset) -> None:
    model = grb.train("gcn-detect", tiny, seed=0, epochs=2, detector="homophily", false_positives=0.2)
    assert model.params["detector"] == "homophily"
    assert model.part(tiny.graph).num_edges < 0.9 * tiny.graph.num_edges  # type: ignore[operator]
    nothing = grb.train("gcn-detect", tiny, seed=0, epochs=2, detector="degree", false_positives=0.0)
    view = tiny.defender_view()
    assert nothing.part(view.graph).num_edges > 0.9 * view.graph.num_edges  # type: ignore[operator]
    with pytest.raises(DataError, match="false_positives is 1"):
        grb.train("gcn-detect", tiny, epochs=1, false_positives=1)
    with pytest.raises(DataError, match="uses no edges"):
        grb.train("mlp-detect", tiny, epochs=1)
