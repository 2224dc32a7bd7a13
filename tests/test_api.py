"""grb in five lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse as sp
from torch import Tensor, nn

import grb
from grb.api import Scores
from grb.errors import DataError, UnknownName
from grb.graph import GraphEdit
from grb.model.base import predict
from helpers import needs_grb_cora

N = 80
SMALL: dict[str, Any] = {"epochs": 6, "hidden_features": [8]}


def dataset(**options: Any) -> grb.Dataset:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    upper = np.triu(rng.random((N, N)) < np.where(y[:, None] == y[None, :], 0.15, 0.02), 1)
    x = np.eye(3)[y] + rng.standard_normal((N, 3))
    return grb.Dataset.from_arrays(sp.csr_matrix((upper | upper.T).astype(float)), x, y, **options)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([tensor.detach().double().flatten() for tensor in model.state_dict().values()])


@pytest.mark.parametrize("name", ["gcn", "gcn+ln", "mlp"])
def test_same_seed_same_bits(name: str) -> None:
    made = dataset()
    once, again, other = (weights(grb.train(name, made, seed=seed, **SMALL)) for seed in (1, 1, 2))
    assert torch.equal(once, again) and not torch.equal(once, other)


def test_global_random_state_is_untouched() -> None:
    before = torch.get_rng_state()
    grb.train("gcn", dataset(), **SMALL)
    assert torch.equal(torch.get_rng_state(), before)


def test_global_random_state_does_not_matter() -> None:
    torch.manual_seed(1)
    once = weights(grb.train("gcn", dataset(), **SMALL))
    torch.manual_seed(2)
    assert torch.equal(once, weights(grb.train("gcn", dataset(), **SMALL)))


def test_history_tells_how_it_went() -> None:
    seen: list[int] = []
    model, fit = grb.train_with_history("gcn", dataset(), on_epoch=lambda epoch: seen.append(epoch.number), **SMALL)
    assert seen == list(range(6)) and fit.epochs == 6 and not model.training


def test_training_modes_and_their_names() -> None:
    made = dataset()
    inductive = grb.train("gcn", made, train_mode="inductive", **SMALL)
    transductive = grb.train("gcn", made, train_mode="transductive", **SMALL)
    assert not torch.equal(weights(inductive), weights(transductive))
    with pytest.raises(DataError, match="train_mode"):
        grb.train("gcn", made, train_mode="semi", **SMALL)  # type: ignore[arg-type]


def test_unknown_models_and_parameters_are_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean"):
        grb.train("gnc", dataset())
    with pytest.raises(DataError, match="no_such_option"):
        grb.train("gcn", dataset(), no_such_option=1)
    with pytest.raises(DataError, match="at least 1"):
        grb.train("gcn", dataset(), epochs=0)


def test_scores_by_hand() -> None:
    made = dataset()
    model = grb.train("gcn", made, **SMALL)
    logits = predict(model, made.graph)
    scores = grb.evaluate(model, made)
    assert list(scores) == ["easy", "medium", "hard", "full"]
    for name, value in scores.items():
        ids = made.split.test[name]
        expected = (logits[ids].argmax(1) == made.labels[ids]).float().mean()
        assert value == pytest.approx(float(expected))


def test_scores_under_an_edit_are_those_of_the_edited_graph() -> None:
    made = dataset()
    model = grb.train("gcn", made, epochs=40, hidden_features=[8])
    targets = made.split.test["full"]
    edit = GraphEdit(
        n=N,
        add=torch.stack([targets, torch.full_like(targets, N)]),
        new_x=torch.tensor([[50.0, -50.0, -50.0]]),
    )
    before = made.fingerprint()
    attacked = grb.evaluate(model, made, edit)
    logits = predict(model, made.graph.apply(edit))[targets]
    assert attacked["full"] == pytest.approx(float((logits.argmax(1) == made.labels[targets]).float().mean()))
    assert attacked["full"] < grb.evaluate(model, made)["full"]
    assert made.fingerprint() == before
    with pytest.raises(DataError, match="nodes"):
        grb.evaluate(model, made, GraphEdit(n=3))


def test_evaluation_does_not_disturb_the_model() -> None:
    made = dataset()
    model = grb.train("gcn", made, **SMALL)
    model.train()
    before = weights(model)
    assert grb.evaluate(model, made) == grb.evaluate(model, made)
    assert model.training and torch.equal(weights(model), before)


def test_dataset_without_test_nodes_cannot_be_evaluated_on() -> None:
    made = dataset(split={"train": range(40), "val": range(40, 60)})
    model = grb.train("gcn", made, **SMALL)
    with pytest.raises(DataError, match="no test nodes"):
        grb.evaluate(model, made)


def test_scores_print_in_per_cent() -> None:
    assert str(Scores(easy=0.12345, full=1.0)) == "easy 12.35  full 100.00"
    assert Scores(easy=0.5) == {"easy": 0.5}


def test_public_names_exist() -> None:
    for name in grb.__all__:
        assert getattr(grb, name) is not None
    assert set(grb.__all__) <= {*dir(grb), "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        grb.nothing


@needs_grb_cora
def test_five_lines_on_grb_cora() -> None:
    made = grb.load_dataset("grb-cora")
    model = grb.train("gcn", made, seed=0, epochs=60)
    scores = grb.evaluate(model, made)
    assert scores["easy"] < scores["medium"] < scores["hard"] and scores["full"] > 0.8


def test_a_model_for_other_features_is_refused_in_one_sentence() -> None:
    model = grb.train("gcn", dataset(), **SMALL)
    other = grb.load_dataset("synth-tiny")
    with pytest.raises(DataError, match="a gcn for 3 features, but the graph has 24"):
        grb.evaluate(model, other)
    with pytest.raises(DataError, match="a gcn for 3 features, but the graph has 24"):
        grb.run_attack("fgsm", model, other, iterations=1)


def test_names_in_place_of_values_are_refused_with_advice() -> None:
    made = dataset()
    model = grb.train("gcn", made, **SMALL)
    wrong: Any = "synth-tiny"
    for call in (
        lambda: grb.train("gcn", wrong),
        lambda: grb.evaluate(model, wrong),
        lambda: grb.run_attack("rnd", model, wrong),
    ):
        with pytest.raises(DataError, match=r"dataset is a str, but a grb Dataset is needed; grb.load_dataset"):
            call()
    file: Any = "model.safetensors"
    with pytest.raises(DataError, match=r"model is a str, but a trained model is needed; grb.load_model"):
        grb.evaluate(file, made)
    edit: Any = "edit.npz"
    with pytest.raises(DataError, match=r"edit is a str, but a GraphEdit .* is needed; grb.GraphEdit.load"):
        grb.evaluate(model, made, edit)


def test_an_unknown_kind_of_knowledge_is_refused() -> None:
    model = grb.train("gcn", grb.load_dataset("synth-tiny"), **SMALL)
    with pytest.raises(DataError, match="knowledge is 'black-box', but 'white-box', 'transfer' or 'query' is needed"):
        grb.run_attack("rnd", model, grb.load_dataset("synth-tiny"), knowledge="black-box")  # type: ignore[arg-type]


def test_a_class_in_place_of_a_name_and_a_device_that_is_not_there_are_refused() -> None:
    made, wrong = dataset(), nn.Linear
    with pytest.raises(DataError, match=r"model is a type, but a name such as 'gcn' is needed; grb.trainer.fit trains"):
        grb.train(wrong, made)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="device 'gpu' cannot be used here"):
        grb.train("gcn", made, device="gpu", **SMALL)
    for name in (None, 3):
        for load in (grb.load_dataset, grb.Dataset):
            with pytest.raises(UnknownName, match=f"no dataset '{name}'"):
                load(name)  # type: ignore[arg-type]


def test_metrics_come_by_name_with_the_primary_one_first() -> None:
    made = dataset()
    model = grb.train("gcn", made, **SMALL)
    found = grb.evaluate(model, made, metrics="macro-f1,recall:1")
    assert list(found) == ["accuracy", "macro-f1", "recall:1"] and found["accuracy"] == grb.evaluate(model, made)
    assert str(found).splitlines()[0].startswith(f"accuracy: easy {found['accuracy']['easy']:.4f}  medium ")
    assert list(grb.evaluate(model, made, metrics=[])) == ["accuracy"]
    edit = GraphEdit(n=N, drop=made.graph.adj.edges())
    assert grb.evaluate(model, made, edit, metrics=["auroc"])["accuracy"] == grb.evaluate(model, made, edit)


def test_a_misspelt_argument_of_evaluate_is_answered() -> None:
    made = dataset()
    with pytest.raises(
        DataError,
        match=r"evaluate has no argument 'metric'; did you mean metrics=\? It has model, dataset, edit, metrics and targets",
    ):
        grb.evaluate(grb.train("gcn", made, **SMALL), made, metric="auroc")  # type: ignore[call-overload]


def test_true_labels_are_for_white_box_attacks_of_grb() -> None:
    data = dataset()
    model = grb.train("gcn", data, **SMALL)
    assert grb.run_attack("fgsm", model, data, iterations=2, labels="true").labels == "true"
    assert grb.run_attack("fgsm", model, data, iterations=2).labels == "predicted"

    def mine(context: Any, *, generator: torch.Generator) -> GraphEdit:
        return GraphEdit(n=context.graph.n)

    with pytest.raises(DataError, match="mine is no attack of grb; attacks of others aim at predicted labels"):
        grb.run_attack(mine, model, data, threat=grb.threat.Injection(1, 1, (-1.0, 1.0)), labels="true")
    with pytest.raises(DataError, match="only a white-box attack may aim at true labels"):
        grb.run_attack("fgsm", model, data, knowledge="transfer", labels="true")
    with pytest.raises(DataError, match="labels is 'odd', but 'predicted' or 'true' is needed"):
        grb.run_attack("fgsm", model, data, labels="odd")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model, dataset: grb.train("gcn", dataset, epoch=5), "'epoch'; did you mean 'epochs'"),
        (lambda model, dataset: grb.train("gcn", dataset, hiden_features=[8]), "did you mean 'hidden_features'"),
        (lambda model, dataset: grb.evaluate(model, dataset, metric="auroc"), "did you mean metrics="),
        (lambda model, dataset: grb.evaluate(model, dataset.to_pyg()), r"grb.Dataset.from_pyg\(data\) makes one of it"),
        (lambda model, dataset: grb.train("gcn", "synth-tiny"), r"grb.load_dataset\('synth-tiny'\) makes one"),
    ],
)
def test_misspelt_arguments_and_wrong_kinds_name_the_right_one(call: Any, words: str) -> None:
    dataset = grb.load_dataset("synth-tiny")
    with pytest.raises(DataError, match=words):
        call(grb.train("mlp", dataset, epochs=1), dataset)


def test_scores_of_targets_and_collateral_damage() -> None:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, epochs=20)
    result = grb.run_attack("fgsm", model, dataset, targets="class=1", iterations=10)
    scores = grb.evaluate(model, dataset, result, targets="class=1", metrics="recall:1")
    y, tests = dataset.labels, dataset.index_test
    said = predict(model, dataset.graph.apply(result.edit)).argmax(1)
    right = said[tests] == y[tests]
    ones = y[tests] == 1
    assert scores["accuracy"]["targets"] == pytest.approx(float(right[ones].float().mean()))
    assert scores["accuracy"]["others"] == pytest.approx(float(right[~ones].float().mean()))
    assert list(scores["recall:1"]) == ["targets"]  # the others have no node of class 1
    edges = result.edit.add
    assert set(edges[0].tolist()) <= set(tests[ones].tolist())
