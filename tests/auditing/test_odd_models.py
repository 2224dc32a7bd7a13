"""Odd models and odd data: a true answer, or one clear sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, csr_array, eye_array
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv, to_hetero

import grb
from grb.auditing.victim import as_victim
from grb.dataset import Dataset
from grb.errors import GRBError

QUICK: dict[str, Any] = {"effort": "quick", "corrupt": False, "surrogates": (), "scenarios": ["injection"]}


def ring(n: int = 24, **changes: Any) -> Dataset:
    """Every node knows the one two steps ahead; two classes in turn."""
    x = np.random.default_rng(0).normal(size=(n, 3)) + (np.arange(n) % 2)[:, None]
    adj = coo_array((np.ones(n), (np.arange(n), (np.arange(n) + 2) % n)), shape=(n, n))
    split = {"train": range(n // 3), "val": range(n // 3, n // 2), "test": range(n // 2, n)}
    given = {"adj": adj + adj.T, "x": x, "y": np.arange(n) % 2, "split": split, **changes}
    return Dataset.from_arrays(given["adj"], given["x"], given["y"], split=given["split"], name="ring")


class Sums(nn.Module):
    """A linear map of the sum over a node and its neighbours, and then something odd."""

    def __init__(self, odd: Callable[..., Any] = lambda module, z: z, classes: int = 2) -> None:
        super().__init__()
        self.layer = nn.Linear(3, classes)
        with torch.no_grad():
            self.layer.weight.copy_(torch.arange(3.0 * classes).reshape(classes, 3) % 5 - 2)
            self.layer.bias.zero_()
        self.odd = odd

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        around = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return self.odd(self, self.layer(x + around))


class Normed(Sums):
    """Batch norm whose statistics are those of training."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.norm.running_mean.fill_(0.5)  # type: ignore[union-attr, operator]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.norm(super().forward(x, edge_index))  # type: ignore[no-any-return]


def dropped(module: nn.Module, z: Tensor) -> Tensor:
    return nn.functional.dropout(z, 0.5, training=module.training)


def accuracy(dataset: Dataset, module: nn.Module) -> float:
    """Of the module itself, called as its author would call it."""
    edges = torch.stack([dataset.graph.adj.pattern.row_ids, dataset.graph.adj.pattern.indices]).long()
    kind = next(module.parameters()).dtype
    with torch.no_grad():
        said = module.eval()(dataset.features.to(kind), edges)
    said = said[0] if isinstance(said, tuple) else said
    return float((said.argmax(1) == dataset.labels)[dataset.index_test].double().mean())


ANSWERED: dict[str, Callable[[], nn.Module]] = {
    "a tuple with the logits first": lambda: Sums(lambda module, z: (z, z.mean())),
    "double precision": lambda: Sums().double(),
    "dropout, left in training": lambda: Sums(dropped).train(),
    "batch norm, left in training": lambda: Normed().train(),
    "frozen weights": lambda: Sums().requires_grad_(False),
}


@pytest.mark.parametrize("what", ANSWERED)
def test_odd_models_get_the_answers_that_they_give_themselves(what: str) -> None:
    dataset = ring()
    module = ANSWERED[what]()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    training = module.training
    report = grb.audit(module, dataset, metrics="accuracy", **QUICK)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert module.training == training or not module.training
    assert report.values["clean"]["values"]["accuracy"] == pytest.approx(accuracy(dataset, ANSWERED[what]().eval()))
    assert report.values["scenarios"][0]["points"][-1]["value"] <= report.values["clean"]["values"]["accuracy"]


@pytest.mark.parametrize("shape", [(-1, 1), (-1,)])
@pytest.mark.parametrize("kind", ["logit", "probability"])
def test_one_score_per_node_is_that_of_the_second_of_two_classes(shape: tuple[int, ...], kind: str) -> None:
    """As a model that was trained with a binary loss has it: the same curve as from two columns."""
    dataset = ring()

    def one(module: nn.Module, z: Tensor) -> Tensor:
        score = z[:, 1] - z[:, 0]
        return (torch.sigmoid(score) if kind == "probability" else score).reshape(shape)

    options = {**QUICK, "budgets": {"injection": [2]}}
    single, both = (grb.audit(module, dataset, **options) for module in (Sums(one), Sums()))
    curves = [[point["value"] for point in each.values["scenarios"][0]["points"]] for each in (single, both)]
    assert curves[0] == pytest.approx(curves[1], abs=0.1) and curves[0][0] == curves[1][0]
    assert any(f"read as the {kind} of class '1'" in note for note in single.values["notes"])
    if kind == "logit":
        edges = torch.stack([dataset.graph.adj.pattern.row_ids, dataset.graph.adj.pattern.indices]).long()
        said = as_victim(lambda x, e: Sums(one)(torch.from_numpy(x), torch.from_numpy(e)).detach().numpy(), dataset)
        with torch.no_grad():
            assert torch.allclose(said.clean[:, 1], Sums(one)(dataset.features, edges).flatten(), atol=1e-5)
        assert said.black_box


def test_precision_of_a_module_is_its_own_for_weights_of_edges_too() -> None:
    class Weighted(Sums):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
            weight = x.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight
            around = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]] * weight[:, None])
            return self.layer(x + around)  # type: ignore[no-any-return]

    dataset = ring()
    single, double = (
        grb.audit(module, dataset, **{**QUICK, "scenarios": ["modification"], "budgets": {"modification": [2]}})
        for module in (Weighted(), Weighted().double())
    )
    points = [[point["value"] for point in each.values["scenarios"][0]["points"]] for each in (single, double)]
    assert points[0] == points[1] and points[0][-1] < points[0][0]
    trials = double.values["scenarios"][0]["points"][-1]["trials"]
    assert not any("error" in trial for trial in trials)


def test_a_model_that_no_attack_changes_stays_where_it_is() -> None:
    class Blind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.layer(x)  # type: ignore[no-any-return]

    torch.manual_seed(0)
    report = grb.audit(Blind(), ring(), **QUICK)
    values = [point["value"] for point in report.values["scenarios"][0]["points"]]
    assert len(set(values)) == 1 and "stays at" in report.headline and "falls from" not in report.headline


def test_randomness_in_evaluation_is_flagged() -> None:
    def always(module: nn.Module, z: Tensor) -> Tensor:
        return nn.functional.dropout(z, 0.5, training=True)

    report = grb.audit(Sums(always), ring(), **QUICK)
    assert any("random" in flag["name"] for flag in report.values["flags"]), report.values["flags"]


class Conv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = SAGEConv(3, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index)  # type: ignore[no-any-return]


def raising(module: nn.Module, z: Tensor) -> Tensor:
    raise ValueError("out of\nluck")


SAID: dict[str, tuple[Callable[[], Any], str]] = {
    "a graph of one node": (
        lambda: ring(1, adj=csr_array((1, 1)), split={"train": [], "val": [], "test": [0]}),
        "at least one training node",
    ),
    "no test nodes": (
        lambda: grb.audit(Sums(), ring(split={"train": range(12), "val": range(12, 24), "test": []}), **QUICK),
        "no test nodes to audit; give a split",
    ),
    "a column of NaN": (lambda: ring(x=np.c_[np.full(24, np.nan), np.ones((24, 2))]), "clean with missing='mean'"),
    "words as labels": (lambda: ring(y=np.array(["no", "yes"] * 12)), "numpy.unique"),
    "a label that is hidden": (lambda: ring(y=np.r_[-1, np.arange(23) % 2]), "leave it out or give its label"),
    "a dictionary": (
        lambda: grb.audit(Sums(lambda module, z: {"logits": z}), ring(), **QUICK),
        r"gives a dict, .*grb.wrap\(module, call",
    ),
    "one column of scores for three classes": (
        lambda: grb.audit(Sums(classes=1), ring(y=np.arange(24) % 3), **QUICK),
        "each of which needs a column",
    ),
    "more columns than classes": (lambda: grb.audit(Sums(classes=4), ring(), **QUICK), "each of which needs a column"),
    "NaN": (lambda: grb.audit(Sums(lambda module, z: z / 0 * 0), ring(), **QUICK), "gives NaN for all 12 targets"),
    "an exception": (lambda: grb.audit(Sums(raising), ring(), **QUICK), "'Sums' fails .*ValueError: out of luck"),
    "an exception of a function": (
        lambda: grb.audit(lambda x, edge_index: 1 / 0, ring(), **QUICK),
        "fails on 'ring' .*ZeroDivisionError",
    ),
    "a weight for every node": (
        lambda: grb.audit(Sums(lambda module, z: z + torch.zeros(24, 2)), ring(), **QUICK),
        r"no attack .*scenarios=\['modification'\] leaves them out",
    ),
    "rows of another graph": (
        lambda: grb.audit(Sums(lambda module, z: z[:24]), ring(), **QUICK),
        "24 rows for the 25 nodes",
    ),
    "several types of nodes": (
        lambda: grb.wrap(to_hetero(Conv(), (["a"], [("a", "to", "a")]))),
        r"takes nodes of several types.*to_homogeneous\(\)",
    ),
    "a class instead of a model": (lambda: grb.audit(Sums, ring(), **QUICK), r"Sums is a class.*Sums\(\.\.\.\)"),
    "budgets that are one number": (
        lambda: grb.audit(Sums(), ring(), budgets={"injection": 5}, **QUICK),
        r"as in \[1, 2, 4\]",
    ),
    "a class that no test node has": (
        lambda: grb.audit(Sums(), ring(y=np.r_[np.arange(12) % 2, np.zeros(12, int)]), metrics="recall:1", **QUICK),
        "which no test node of 'ring' has; choose another",
    ),
    "no targets": (lambda: grb.audit(Sums(), ring(), targets=[], **QUICK), "not empty"),
    "a file as store": (lambda: grb.audit(Sums(), ring(), store=__file__, **QUICK), "a directory for the steps"),
}


@pytest.mark.parametrize("what", SAID)
def test_what_cannot_be_audited_is_one_sentence(what: str) -> None:
    call, words = SAID[what]
    with pytest.raises(GRBError, match=words) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 1


def test_directed_edges_and_loops_are_repaired_and_told() -> None:
    dataset = ring(adj=eye_array(24, k=1) + eye_array(24))
    report = grb.audit(Sums(), dataset, **QUICK)
    assert any("self-loop" in note or "direct" in note for note in report.values["dataset"]["notes"])
