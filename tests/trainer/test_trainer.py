"""The paper's Trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse as sp
from torch.nn import functional

from grb import metric
from grb.dataset import Dataset
from grb.errors import DataError
from grb.model.base import predict
from grb.model.torch import GCN
from grb.trainer import Fit, Trainer, load_model
from grb.trainer.loop import TrainingError

N = 60


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    upper = np.triu(rng.random((N, N)) < np.where(y[:, None] == y[None, :], 0.2, 0.02), 1)
    x = np.eye(3)[y] + rng.standard_normal((N, 3))
    return Dataset.from_arrays(sp.csr_matrix((upper | upper.T).astype(float)), x, y)


def made(dataset: Dataset, seed: int = 0, **options: Any) -> tuple[GCN, torch.optim.Optimizer]:
    model = GCN(3, 3, [8], generator=torch.Generator().manual_seed(seed), **options)
    return model, torch.optim.Adam(model.parameters(), lr=0.02)


def trained(dataset: Dataset, *, seed: int = 0, how: dict[str, Any] | None = None, **options: Any) -> tuple[GCN, Fit]:
    model, adam = made(dataset)
    trainer = Trainer(dataset=dataset, optimizer=adam, loss=functional.nll_loss, seed=seed, **options)
    return model, trainer.train(model=model, **{"n_epoch": 10, "dropout": 0.5} | (how or {}))


def same(a: GCN, b: GCN) -> bool:
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_same_seed_same_weights(dataset: Dataset) -> None:
    assert same(trained(dataset)[0], trained(dataset)[0])
    assert not same(trained(dataset)[0], trained(dataset, seed=1)[0])


def test_dropout_is_for_this_run_alone(dataset: Dataset) -> None:
    model, adam = made(dataset, dropout=0.25)
    rates: list[float] = []
    trainer = Trainer(dataset, adam)
    trainer.train(model, 2, dropout=0.5, on_epoch=lambda epoch: rates.append(model.drop.p))
    trainer.train(model, 1, on_epoch=lambda epoch: rates.append(model.drop.p))
    assert rates == [0.5, 0.5, 0.25] and model.drop.p == 0.25

    broken = Trainer(dataset, adam, loss=lambda logits, y: logits.sum() * float("nan"))
    with pytest.raises(TrainingError):
        broken.train(model, 2, dropout=0.75)
    assert model.drop.p == 0.25
    with pytest.raises(DataError, match="dropout"):
        trainer.train(model, 2, dropout=1.0)


def test_dropout_changes_training(dataset: Dataset) -> None:
    assert not same(trained(dataset)[0], trained(dataset, how={"dropout": 0.0})[0])


def test_train_modes(dataset: Dataset) -> None:
    inductive = trained(dataset, how={"train_mode": "inductive"})[0]
    transductive = trained(dataset, how={"train_mode": "transductive"})[0]
    assert not same(inductive, transductive)
    with pytest.raises(DataError, match="'inductive' or 'transductive'"):
        trained(dataset, how={"train_mode": "both"})


def test_optimizer_of_another_model_is_refused(dataset: Dataset) -> None:
    model, _ = made(dataset)
    _, other = made(dataset)
    with pytest.raises(DataError, match="none of this model's parameters"):
        Trainer(dataset, other).train(model, 1)


def test_early_stop_and_schedule(dataset: Dataset) -> None:
    options: dict[str, Any] = {"eval_metric": lambda logits, y: 0.5, "early_stop": True, "early_stop_patience": 3}
    _, result = trained(dataset, how={"n_epoch": 2000}, **options)
    assert result.epochs < 2000 and "3 epochs" in result.stopped
    _, result = trained(
        dataset, lr_scheduler=True, lr_patience=1, lr_factor=0.5, lr_min=0.005, eval_metric=lambda logits, y: 0.5
    )
    rates = [epoch.lr for epoch in result.history]
    assert rates[0] == 0.02 and min(rates) == 0.005 and rates == sorted(rates, reverse=True)


def test_inference_and_evaluation_on_the_whole_graph(dataset: Dataset) -> None:
    model, adam = made(dataset)
    trainer = Trainer(dataset, adam)
    trainer.train(model, 5)
    logits = trainer.inference(model)
    assert torch.equal(logits, predict(model, dataset.graph)) and not logits.requires_grad
    expected = (logits.argmax(1) == dataset.labels)[dataset.test_mask].float().mean()
    assert trainer.evaluate(model) == pytest.approx(float(expected))
    train = (logits.argmax(1) == dataset.labels)[dataset.train_mask].float().mean()
    assert trainer.evaluate(model, dataset.train_mask) == pytest.approx(float(train))
    own = Trainer(dataset, adam, eval_metric=lambda logits, y: metric.accuracy(logits, y) / 2)
    assert own.evaluate(model) == pytest.approx(float(expected) / 2)


def test_trained_model_is_saved_where_asked(dataset: Dataset, tmp_path: Path) -> None:
    model, _ = trained(dataset, how={"save_dir": tmp_path / "models", "save_name": "gcn.safetensors"})
    loaded = load_model(tmp_path / "models" / "gcn.safetensors")
    assert torch.equal(predict(loaded, dataset.graph), predict(model, dataset.graph))


def test_an_assigned_graph_is_what_evaluate_and_inference_meet(dataset: Dataset) -> None:
    model, adam = made(dataset)
    trainer = Trainer(dataset, adam)
    trainer.train(model, 20)
    clean = trainer.evaluate(model)
    assert (trainer.adj != dataset.adj).nnz == 0 and torch.equal(trainer.features, dataset.features)
    trainer.features = torch.flip(dataset.features, [1])
    worse = trainer.evaluate(model)
    assert worse < clean
    trainer.adj = sp.csr_matrix((N, N))
    x = torch.flip(dataset.features, [1])
    alone = x @ model.state_dict()["convs.0.linear.weight"] + model.state_dict()["convs.0.linear.bias"]
    alone = alone.relu() @ model.state_dict()["convs.1.linear.weight"] + model.state_dict()["convs.1.linear.bias"]
    assert torch.allclose(trainer.inference(model), alone, atol=1e-5)


def test_nodes_behind_those_of_the_dataset_do_not_count(dataset: Dataset) -> None:
    model, adam = made(dataset)
    trainer = Trainer(dataset, adam)
    trainer.train(model, 5)
    clean = trainer.evaluate(model)
    trainer.features = torch.cat([dataset.features, torch.zeros(2, 3)])
    trainer.adj = sp.block_diag([dataset.adj, sp.csr_matrix((2, 2))]).tocsr()
    assert trainer.inference(model).shape == (N + 2, 3)
    assert trainer.evaluate(model) == clean


def test_training_on_an_assigned_graph_is_refused_and_other_parts_cannot_be_assigned(dataset: Dataset) -> None:
    model, adam = made(dataset)
    trainer = Trainer(dataset, adam)
    trainer.features = dataset.features + 1
    with pytest.raises(DataError, match="CustomDataset"):
        trainer.train(model, 1)
    for name in ("labels", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(getattr(trainer, name), getattr(dataset, name))
        with pytest.raises(AttributeError):
            setattr(trainer, name, getattr(dataset, name))


def test_a_device_that_is_not_there_is_refused_in_a_sentence(dataset: Dataset) -> None:
    _, adam = made(dataset)
    with pytest.raises(DataError, match=r"device 'cuda:99' cannot be used here .*`grb doctor`"):
        Trainer(dataset, adam, device="cuda:99")
