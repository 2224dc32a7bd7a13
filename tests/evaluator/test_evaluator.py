from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import grb
from grb.attack.base import AttackResult
from grb.attack.injection import FGSM
from grb.dataset import Dataset
from grb.errors import BudgetError, DataError
from grb.evaluator import AttackEvaluator, DefenseEvaluator
from grb.graph import GraphEdit
from grb.threat import Injection


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def models(dataset: Dataset) -> dict[str, nn.Module]:
    return {name: grb.train(name, dataset, epochs=10) for name in ("gcn", "mlp", "sgc", "appnp")}


@pytest.fixture(scope="module")
def result(dataset: Dataset, models: dict[str, nn.Module]) -> AttackResult:
    return grb.run_attack("fgsm", models["gcn"], dataset, iterations=5)


@pytest.fixture(scope="module")
def threat(dataset: Dataset) -> Injection:
    return Injection.preset("synth-tiny", "full")


def weigh(ordered: list[float]) -> float:
    weights = [1 / (place + 1) ** 2 for place in range(len(ordered))]
    return sum(a * b for a, b in zip(weights, ordered, strict=True)) / sum(weights)


def test_an_attack_is_as_strong_as_the_accuracy_it_leaves(
    dataset: Dataset, models: dict[str, nn.Module], result: AttackResult, threat: Injection
) -> None:
    found = AttackEvaluator(dataset, threat=threat).evaluate(models, result)
    own = {name: grb.evaluate(model, dataset, result)["full"] for name, model in models.items()}
    assert {name: found[name] for name in models} == own
    values = sorted(own.values(), reverse=True)
    assert found["average"] == pytest.approx(sum(values) / 4)
    assert found["three_max"] == pytest.approx(sum(values[:3]) / 3)
    assert found["weighted"] == pytest.approx(weigh(values))


def test_a_defense_is_as_robust_as_its_accuracy_under_every_attack(
    dataset: Dataset, models: dict[str, nn.Module], result: AttackResult, threat: Injection
) -> None:
    random = grb.run_attack("rnd", None, dataset)
    found = DefenseEvaluator(dataset, threat=threat).evaluate(models["gcn"], {"fgsm": result, "rnd": random.edit})
    own = {
        "none": grb.evaluate(models["gcn"], dataset)["full"],
        "fgsm": grb.evaluate(models["gcn"], dataset, result)["full"],
        "rnd": grb.evaluate(models["gcn"], dataset, random)["full"],
    }
    assert {name: found[name] for name in own} == own
    assert found["three_min"] == pytest.approx(sum(own.values()) / 3) == found["average"]
    assert found["weighted"] == pytest.approx(weigh(sorted(own.values())))


def test_each_difficulty_has_targets_of_its_own(dataset: Dataset, models: dict[str, nn.Module]) -> None:
    for mode in ("easy", "medium", "hard", "full"):
        found = AttackEvaluator(dataset, mode).evaluate(models)
        assert found["gcn"] == grb.evaluate(models["gcn"], dataset)[mode]
    assert AttackEvaluator(dataset).evaluate(models)["gcn"] == grb.evaluate(models["gcn"], dataset)[dataset.mode]


def test_models_may_be_files(dataset: Dataset, models: dict[str, nn.Module], tmp_path: Path) -> None:
    path = grb.save_model(models["gcn"], tmp_path / "gcn.safetensors")
    given: list[Any] = [models["gcn"], path, str(path)]
    scores = [AttackEvaluator(dataset).evaluate({"gcn": model})["gcn"] for model in given]
    assert len(set(scores)) == 1
    assert DefenseEvaluator(dataset).evaluate(path, {})["none"] == scores[0]


def test_an_edit_beyond_the_limits_does_not_count(
    dataset: Dataset, models: dict[str, nn.Module], result: AttackResult
) -> None:
    small = Injection(1, 1, (-1.0, 1.0))
    with pytest.raises(BudgetError, match="the threat model allows"):
        AttackEvaluator(dataset, threat=small).evaluate(models, result)
    with pytest.raises(BudgetError, match="the threat model allows"):
        DefenseEvaluator(dataset, threat=small).evaluate(models["gcn"], {"fgsm": result})


def test_the_papers_arrays_are_turned_back_into_an_edit_and_checked(
    dataset: Dataset, models: dict[str, nn.Module], threat: Injection
) -> None:
    attack = FGSM(
        epsilon=0.1,
        n_epoch=5,
        n_inject_max=threat.nodes,
        n_edge_max=threat.edges_per_node,
        feat_lim_min=threat.feature_range[0],
        feat_lim_max=threat.feature_range[1],
    )
    adj, features = attack.attack(
        model=models["gcn"], adj=dataset.adj, features=dataset.features, target_mask=dataset.test_mask
    )
    evaluator = AttackEvaluator(dataset, threat=threat)
    found = evaluator.eval_attack(models, adj, features)
    assert found["gcn"] <= evaluator.evaluate(models)["gcn"]
    assert found["mlp"] == evaluator.evaluate(models)["mlp"]
    with pytest.raises(BudgetError):
        AttackEvaluator(dataset, threat=Injection(1, 1, (-1.0, 1.0))).eval_attack(models, adj, features)
    whole = torch.cat([dataset.features, features])
    assert evaluator.eval_attack(models, adj, whole) == found
    whole[0] += 1  # a feature of an original node
    with pytest.raises(BudgetError, match="features of 1 original nodes are changed"):
        evaluator.eval_attack(models, adj, whole)


@pytest.mark.parametrize("models", [{}, {"gcn": None}, {"gcn": 5}])
def test_what_is_no_model_is_refused(dataset: Dataset, models: Any) -> None:
    with pytest.raises(DataError, match="model"):
        AttackEvaluator(dataset).evaluate(models)


def test_an_edit_of_nothing_is_the_clean_graph(dataset: Dataset, models: dict[str, nn.Module]) -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    evaluator = AttackEvaluator(dataset)
    assert evaluator.evaluate(models, GraphEdit(dataset.num_nodes, none, none)) == evaluator.evaluate(models)


def test_a_model_of_other_classes_is_refused(dataset: Dataset) -> None:
    from torch_geometric.nn.models import GCN

    two = grb.wrap(GCN(dataset.num_features, 4, num_layers=1, out_channels=2))
    with pytest.raises(DataError, match="each of which needs a column"):
        AttackEvaluator(dataset).evaluate({"two": two})
