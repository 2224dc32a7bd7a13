"""One way to score: against hand-worked numbers, scikit-learn, and for every kind of task."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse as sp
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from torch import Tensor, nn

import grb
from grb.dataset import Dataset
from grb.errors import DataError, UnknownName
from grb.evaluator import Prediction, predict_checked, score
from grb.graph import CSR, Graph, GraphEdit
from grb.graph.sparse import Pattern

N = 60
EVERY = "balanced-accuracy,macro-f1,micro-recall,f1:1,recall:0,auroc,average-precision,auroc:1"


class Said(nn.Module):
    """A third-party model that gives the same logits whatever the graph is, a row for every node."""

    def __init__(self, logits: Any) -> None:
        super().__init__()
        self.logits = torch.as_tensor(logits, dtype=torch.float32)

    def prepare(self, adj: object) -> None: ...

    def forward(self, x: Tensor, op: object) -> Tensor:
        return self.logits[: len(x)].repeat(math.ceil(len(x) / len(self.logits)), 1)[: len(x)]


def made(y: Any, features: Any = None) -> Dataset:
    upper = np.triu(np.random.default_rng(0).random((N, N)) < 0.1, 1)
    adj = sp.csr_matrix((upper | upper.T).astype(float))
    x = np.random.default_rng(1).random((N, 4)) if features is None else features
    return Dataset.from_arrays(adj, x, y, name="made")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return made(np.arange(N) % 3)


@pytest.fixture(scope="module")
def several() -> Dataset:
    return made(np.random.default_rng(2).integers(0, 2, size=(N, 3)))


@pytest.fixture(scope="module")
def logits() -> Tensor:
    return torch.randn(N, 3, generator=torch.Generator().manual_seed(0))


def test_accuracy_is_the_mean_of_the_correct_bits(dataset: Dataset, logits: Tensor) -> None:
    found = score(Said(logits), dataset)
    assert found.primary == "accuracy" and list(found.values) == ["accuracy"]
    assert list(found.values["accuracy"]) == ["easy", "medium", "hard", "full"] == list(found.correct)
    for name, bits in found.correct.items():
        ids = dataset.test_ids(name)
        assert torch.equal(bits, logits[ids].argmax(1) == dataset.labels[ids])
        assert found.values["accuracy"][name] == float(bits.double().mean())
    assert set(found.changed.values()) == {0.0} and set(found.invalid.values()) == {0}


def test_metrics_of_classes_are_those_of_scikit_learn(dataset: Dataset, logits: Tensor) -> None:
    found = score(Said(logits), dataset, metrics=EVERY, difficulties=["full"])
    ids = dataset.test_ids("full")
    y, chances = dataset.labels[ids].numpy(), torch.softmax(logits[ids].double(), 1).numpy()
    expected = {
        "macro-f1": f1_score(y, chances.argmax(1), average="macro"),
        "f1:1": f1_score(y, chances.argmax(1), labels=[1], average="macro"),
        "auroc": roc_auc_score(y, chances, multi_class="ovr"),
        "auroc:1": roc_auc_score(y == 1, chances[:, 1]),
        "average-precision": average_precision_score(np.eye(3)[y], chances),
    }
    assert list(found.values) == ["accuracy", *EVERY.split(",")]
    for name, value in expected.items():
        assert found.values[name] == {"full": pytest.approx(value, abs=1e-12)}
    json.dumps(found.values, allow_nan=False)


def test_several_labels_are_ranked_by_micro_f1(several: Dataset, logits: Tensor) -> None:
    found = score(Said(logits), several, metrics=f"accuracy,{EVERY}")
    ids = several.test_ids("full")
    y, decided = several.labels[ids].numpy(), (logits[ids] > 0).numpy()
    assert found.primary == "micro-f1" == next(iter(found.values))
    assert found.values["micro-f1"]["full"] == pytest.approx(f1_score(y, decided, average="micro"), abs=1e-12)
    assert found.values["auroc"]["full"] == pytest.approx(roc_auc_score(y, logits[ids].numpy()), abs=1e-12)
    assert torch.equal(found.correct["full"], torch.from_numpy((decided == y).all(1)))
    assert found.values["accuracy"]["full"] == float(found.correct["full"].double().mean())


@pytest.mark.parametrize("mark", [-1.0, math.nan])
def test_missing_labels_of_several_are_skipped(logits: Tensor, mark: float) -> None:
    y = np.random.default_rng(2).integers(0, 2, size=(N, 3)).astype(float)
    y[::2, 0] = mark
    data = made(y)
    found, ids = score(Said(logits), data, metrics="auroc", difficulties=["full"]), data.test_ids("full")
    decided, truth = (logits[ids] > 0).numpy(), y[ids]
    known = (truth == 0) | (truth == 1)
    assert found.values["micro-f1"]["full"] == pytest.approx(f1_score(truth[known], decided[known]), abs=1e-12)
    assert torch.equal(found.correct["full"], torch.from_numpy(((decided == truth) | ~known).all(1)))


def test_a_nan_counts_as_wrong_and_as_changed(dataset: Dataset, several: Dataset, logits: Tensor) -> None:
    for data in (dataset, several):
        ids = data.test_ids("full")
        truth = nn.functional.one_hot(data.labels, 3) if data.labels.dim() == 1 else data.labels
        right = (2 * truth - 1).float()
        broken = right.clone()
        broken[ids[0], 1] = math.nan
        before = predict_checked(Said(right), data.graph, data)
        found = score(Said(broken), data, metrics=f"accuracy,{EVERY}", difficulties=["full"], before=before)
        assert before.invalid.sum() == 0 and found.invalid == {"full": 1}
        assert found.correct["full"].tolist() == [False] + [True] * (len(ids) - 1)
        assert found.changed["full"] == pytest.approx(1 / len(ids))
        assert all(0 < found.values[name]["full"] < 1 for name in ("accuracy", "macro-f1", "auroc", "micro-recall"))


def test_an_item_without_labels_is_wrong_and_changed_if_it_is_nan() -> None:
    data = made(np.repeat([[0, 1, 0], [1, 0, 0]], N // 2, axis=0) * (np.arange(N) % 2)[:, None])
    ids = data.test_ids("full")
    empty = int(ids[(data.labels[ids] == 0).all(1)][0])
    before = predict_checked(Said(-torch.ones(N, 3)), data.graph, data)
    broken = -torch.ones(N, 3)
    broken[empty] = math.nan
    found = score(Said(broken), data, metrics="accuracy", difficulties=["full"], before=before)
    right = (data.labels[ids] == 0).all(1) & (ids != empty)
    assert torch.equal(found.correct["full"], right) and found.changed["full"] == pytest.approx(1 / len(ids))
    assert found.values["accuracy"]["full"] == float(right.double().mean())


def test_labels_of_a_nan_are_no_class(dataset: Dataset, several: Dataset) -> None:
    rows = torch.zeros(N, 3)
    rows[0, 1], rows[1, 2] = math.nan, 1.0
    assert predict_checked(Said(rows), dataset.graph, dataset).labels[:3].tolist() == [-1, 2, 0]
    rows[0, 0] = 1.0
    found = predict_checked(Said(rows), several.graph, several)
    assert found.labels[:2].tolist() == [[False] * 3, [False, False, True]] and found.invalid[:2].tolist() == [
        True,
        False,
    ]


def test_an_edit_a_graph_and_a_prediction_give_the_same(dataset: Dataset) -> None:
    model = grb.train("gcn", dataset, epochs=3)
    targets = dataset.test_ids("full")
    edit = GraphEdit(n=N, add=torch.stack([targets, torch.full_like(targets, N)]), new_x=torch.full((1, 4), 9.0))
    attacked = dataset.graph.apply(edit)
    before, after = predict_checked(model, dataset.graph, dataset), predict_checked(model, attacked, dataset)
    assert len(after.logits) == len(before.logits) + 1
    results = [
        score(model, dataset, edit, before=before),
        score(model, dataset, graph=attacked, before=before),
        score(None, dataset, after=after, before=before),
    ]
    assert (
        results[0].values == results[1].values == results[2].values == {"accuracy": grb.evaluate(model, dataset, edit)}
    )
    differs = before.labels[targets] != after.labels[targets]
    assert [each.changed["full"] for each in results] == [float(differs.double().mean())] * 3


def test_an_attacks_result_is_its_edit() -> None:
    data = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", data, epochs=3)
    result = grb.run_attack("rnd", None, data)
    assert score(model, data, result).values == score(model, data, result.edit).values


def test_graphs_are_scored() -> None:
    data = grb.load_dataset("synth-graphs")
    model = grb.train("gin", data, epochs=2)
    found = score(model, data, metrics="auroc,macro-f1")
    assert found.values["accuracy"] == grb.evaluate(model, data)
    assert len(found.correct["full"]) == len(data.test_ids("full"))
    with pytest.raises(DataError, match="graphs to classify"):
        score(Said(torch.zeros(4, 2)), data)


def test_sparse_features_are_scored_and_protected(logits: Tensor) -> None:
    wide = made(np.arange(N) % 3)
    features = torch.eye(N)[:, :4].to_sparse_csr()
    pattern = Pattern(features.crow_indices(), features.col_indices(), 4, symmetric=False)
    sparse = Graph(wide.graph.adj, CSR(pattern, features.values().clone()), wide.graph.y)
    dense = Graph(wide.graph.adj, torch.eye(N)[:, :4], wide.graph.y)
    model = grb.train("gcn", wide, epochs=3)
    assert score(model, wide, graph=sparse).values == score(model, wide, graph=dense).values
    spoiling = Said(logits)
    spoiling.forward = lambda x, op: (x.values.add_(1), logits)[1]  # type: ignore[method-assign]
    with pytest.raises(DataError, match="changes its input in place"):
        score(spoiling, wide, graph=sparse)


def rank_of_first(logits: Tensor, decisions: Tensor, labels: Tensor) -> float:
    logits.zero_()
    decisions.zero_()
    return float(len(labels))


def test_a_custom_metric_gets_the_targets_and_cannot_spoil_others(dataset: Dataset, logits: Tensor) -> None:
    name = f"{__name__}:rank_of_first"
    found = score(Said(logits), dataset, metrics=[rank_of_first, "macro-f1"])
    assert found.values[name] == {key: float(len(dataset.test_ids(key))) for key in found.correct}
    alone = score(Said(logits), dataset, metrics="macro-f1")
    assert found.values["macro-f1"] == alone.values["macro-f1"]
    assert score(Said(logits), dataset, metrics=f"{name},macro-f1").values == found.values


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"metrics": "recall:3"}, "names class 3, but 'made' has the classes 0 to 2"),
    ({"metrics": [lambda logits, decisions, labels: math.nan]}, "is nan for the easy targets of 'made'"),
    ({"metrics": [lambda logits, decisions, labels: 1 / 0]}, "fails for the easy targets .*ZeroDivisionError"),
    ({"metrics": [lambda logits, decisions, labels: "good"]}, "fails for the easy targets .*ValueError"),
    ({"edit": "edit.npz"}, "edit is a str, but a GraphEdit"),
    ({"edit": GraphEdit(n=N), "graph": 5}, "edit and graph were both given"),
    ({"difficulties": ["hardest"]}, "hardest"),
    ({"model": None}, "model is a NoneType, but a trained model is needed"),
    ({"model": Said(torch.zeros(4, 2))}, r"gives logits of shape \[60, 2\], but 'made' has 3 classes, each of which"),
]


@pytest.mark.parametrize(("changes", "sentence"), REFUSALS, ids=[sentence for _, sentence in REFUSALS])
def test_refusals(dataset: Dataset, logits: Tensor, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises((DataError, UnknownName), match=sentence) as caught:
        score(**{"model": Said(logits), "dataset": dataset, **changes})
    assert "\n" not in str(caught.value)


def test_a_metric_without_a_value_is_refused(logits: Tensor) -> None:
    y = np.zeros(N, dtype=int)
    y[0] = 2
    data = Dataset.from_arrays(
        sp.csr_matrix((N, N)),
        np.ones((N, 2)),
        y,
        split={"train": range(20), "val": range(20, 30), "test": range(30, N)},
    )
    with pytest.raises(DataError, match="metric 'auroc' is undefined for the full targets of 'custom': y has only one"):
        score(Said(logits), data, metrics="auroc")
    assert score(Said(logits), data, metrics="recall:1,precision:2").values["recall:1"] == {"full": 0.0}


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (lambda x: [1, 2], "gives a list, but one row of logits for each of 60 nodes"),
        (lambda x: torch.zeros(len(x) - 1, 3), r"shape \[59, 3\], but one row for each of 60 nodes"),
        (lambda x: torch.zeros(len(x)), r"shape \[60\], but one row for each of 60 nodes"),
        (lambda x: x.add_(1)[:, :3], "changes its input in place"),
    ],
)
def test_a_model_that_breaks_the_contract_is_refused(dataset: Dataset, output: Any, sentence: str) -> None:
    model = Said(torch.zeros(1, 3))
    model.forward = lambda x, op: output(x)  # type: ignore[method-assign]
    before = dataset.fingerprint()
    with pytest.raises(DataError, match=sentence):
        predict_checked(model, dataset.graph, dataset)
    assert dataset.fingerprint() == before


def test_a_wrapped_module_is_held_to_the_contract(dataset: Dataset) -> None:
    """The wrapper is ours, what it wraps is not."""

    class InPlace(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return x.mul_(2)[:, :3]

    with pytest.raises(DataError, match="changes its input in place"):
        score(grb.wrap(InPlace()), dataset)


def test_a_model_may_reuse_its_buffer(dataset: Dataset, logits: Tensor) -> None:
    model = Said(logits)
    model.forward = lambda x, op: model.logits  # type: ignore[method-assign]
    first = predict_checked(model, dataset.graph, dataset)
    kept = Prediction(first.logits.clone(), first.labels.clone(), first.invalid.clone())
    model.logits.neg_()
    assert torch.equal(first.logits, kept.logits) and torch.equal(first.labels, kept.labels)
    model.logits.neg_()
