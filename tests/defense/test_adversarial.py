from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import grb
from grb.attack.features import Objective
from grb.attack.injection import FGSM
from grb.attack.losses import cross_entropy
from grb.dataset import Dataset
from grb.defense import build_defense
from grb.defense.adversarial import FullRange, SelfTraining
from grb.errors import DataError
from grb.model.base import predict
from grb.model.layers import Dropout
from grb.threat import Injection


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_nothing_injected_is_plain_training_bit_for_bit(dataset: Dataset) -> None:
    nothing = {"threat": Injection(0, 0, (-1.0, 1.0)), "attack": FGSM(n_epoch=0), "warm_up": 0}
    plain = grb.train("mlp", dataset, epochs=8, seed=3, dropout=0.0)
    adversarial = grb.train("mlp+at", dataset, epochs=8, seed=3, dropout=0.0, **nothing)
    assert same(plain, adversarial)


def test_the_same_seed_gives_the_same_weights(dataset: Dataset) -> None:
    first, second = (grb.train("gcn+at", dataset, epochs=8, warm_up=2, seed=1) for _ in range(2))
    assert same(first, second)
    assert not same(first, grb.train("gcn", dataset, epochs=8, seed=1))


def test_dropout_is_on_in_every_step_and_off_in_every_attack(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[bool] = []
    attacks: list[bool] = []
    forward = Dropout.forward

    def spy(self: Dropout, x: Tensor) -> Tensor:
        steps.append(self.training)
        return forward(self, x)

    class Spy:
        def __call__(self, context, *, generator):
            attacks.append(context.model.training)
            return FGSM(n_epoch=1)(context, generator=generator)

    monkeypatch.setattr(Dropout, "forward", spy)
    grb.train("gat+at", dataset, epochs=6, warm_up=2, attack=Spy(), hidden_features=[8])
    assert attacks == [False] * 4
    # one hidden layer: a training pass has a dropout layer per step, and each of the six steps has it on
    assert sum(steps) >= 6


def test_the_best_epoch_is_after_the_warm_up(dataset: Dataset) -> None:
    _, fit = grb.train_with_history("gcn+at", dataset, epochs=12, warm_up=10, seed=0)
    assert fit.best_epoch >= 10


def test_injected_nodes_have_no_label(dataset: Dataset) -> None:
    defense = build_defense("gcn+at", dataset.name, warm_up=0)
    view = dataset.defender_view()
    graph, ids = view.training_graph()
    model = grb.train("gcn", dataset, epochs=2)
    attacked = defense.options()["augment"](model, graph, ids, 0, torch.Generator().manual_seed(0))
    assert attacked.n == graph.n + 3
    assert (attacked.y[graph.n :] == -1).all()
    assert torch.equal(attacked.y[: graph.n], graph.y)


def test_bad_numbers_are_refused(dataset: Dataset) -> None:
    with pytest.raises(DataError, match="warm_up is -1"):
        grb.train("gcn+at", dataset, warm_up=-1)
    with pytest.raises(DataError, match="only '\\+ln', '\\+at', '\\+at-random'"):
        grb.train("gcn+xy", dataset)


def test_a_checkpoint_remembers_how_the_model_was_trained(dataset: Dataset, tmp_path: Path) -> None:
    model = grb.train("gcn+at", dataset, epochs=2, warm_up=1)
    assert grb.load_model(grb.save_model(model, tmp_path / "model.safetensors")).title == "gcn+at"


def test_a_short_training_has_a_short_warm_up_and_one_without_attack_is_refused(dataset: Dataset) -> None:
    lengths = {epochs: build_defense("gcn+at", dataset.name, epochs=epochs).clean_epochs for epochs in (1, 10, 2000)}
    assert lengths == {1: 0, 10: 5, 2000: 50}
    with pytest.raises(DataError, match="warm_up is 8, but there are 8 epochs: none would be adversarial"):
        grb.train("gcn+at", dataset, epochs=8, warm_up=8)


def reached(dataset: Dataset, name: str, **changes: str) -> Tensor:
    """The features that the attack of a training ends with, on a large step count of its own."""
    defense = build_defense(name, dataset.name, **changes)
    graph, ids = dataset.defender_view().training_graph()
    model = grb.train("gcn", dataset, epochs=3)
    attacked = defense.options()["augment"](model, graph, ids, 10**6, torch.Generator().manual_seed(0))
    assert isinstance(attacked.x, Tensor)
    return attacked.x[graph.n :]


def test_where_the_features_of_each_variant_get(dataset: Dataset) -> None:
    """Five steps of 0.05 within [-0.9, 0.9]."""
    paper, random, full = (reached(dataset, f"gcn+{suffix}").abs() for suffix in ("at", "at-random", "at-full"))
    assert float(paper.max()) <= 0.25 + 1e-6
    assert len(paper.unique()) < len(random.unique())
    assert 0.25 < float(random.max()) < 0.9
    assert float(full.max()) == pytest.approx(0.9) and float((full > 0.5).float().mean()) > 0.3


def test_a_variant_can_be_given_by_suffix_or_by_setting(dataset: Dataset) -> None:
    for suffix, start in (("at", "zero"), ("at-random", "random"), ("at-full", "full-range")):
        assert torch.equal(reached(dataset, f"gcn+{suffix}"), reached(dataset, "gcn+at", start=start))


def test_full_range_reaches_every_corner_of_the_box(dataset: Dataset) -> None:
    """From any start the steps together are as wide as the range."""
    limits = (-0.3, 0.9)

    def logits(x: Tensor) -> Tensor:  # class 0 wins where the features are large
        return x.sum(1, keepdim=True) * torch.tensor([[1.0, -1.0]])

    objective = Objective(logits, torch.zeros(4, dtype=torch.int64), cross_entropy, lambda *_: None)
    nothing = torch.full((4, 5), torch.nan)
    x = FullRange(steps=4)._features(objective, nothing, limits, torch.Generator().manual_seed(0))
    torch.testing.assert_close(x, torch.full((4, 5), -0.3))


def test_what_contradicts_itself_is_refused(dataset: Dataset) -> None:
    for name, changes, sentence in (
        ("gcn", {"start": "random"}, "start is for adversarial training, but 'gcn' has none; add '\\+at'"),
        ("gcn+ln", {"warm_up": 3}, "warm_up is for adversarial training"),
        ("gcn+at", {"start": "everywhere"}, "start is 'everywhere', but zero, random, full-range are known"),
        ("gcn+at-full", {"start": "zero"}, "starts from full-range, but start is 'zero'"),
        ("gcn+at", {"start": "random", "attack": FGSM()}, "got a custom attack, which has its own start"),
        ("gcn+at+at-full", {}, "asks for two kinds of adversarial training"),
    ):
        with pytest.raises(DataError, match=sentence):
            build_defense(name, dataset.name, **changes)


def test_self_training_labels_what_has_no_label_by_a_clean_model() -> None:
    dataset = grb.load_dataset("synth-tiny")
    view = dataset.transductive_view()
    chosen = {"epochs": 6, "warm_up": 2, "attack": "dice", "hidden_features": [8]}
    defense = build_defense("gcn+at", dataset.name, self_training=True, **chosen)
    assert isinstance(defense, SelfTraining)
    labelled = defense.labelled(view, seed=3)
    clean = build_defense("gcn", dataset.name, epochs=6, hidden_features=[8]).fit(view, seed=3)
    hidden = (view.labels < 0).nonzero().flatten()
    assert torch.equal(labelled.labels[hidden], predict(clean, view.graph)[hidden].argmax(1))
    assert set(labelled.train.tolist()) == {*view.train.tolist(), *hidden.tolist()}
    assert not set(labelled.train.tolist()) & set(view.val.tolist())
    assert torch.equal(labelled.labels[view.train], view.labels[view.train])
    assert (view.labels[hidden] == -1).all()  # the view itself stays
    model = grb.train("gcn+at", dataset, train_mode="transductive", self_training=True, **chosen)
    plain = grb.train("gcn+at", dataset, train_mode="transductive", **chosen)
    assert not torch.equal(predict(model, dataset.graph), predict(plain, dataset.graph))
    assert not isinstance(build_defense("gcn+at", dataset.name, self_training=False, **chosen), SelfTraining)


def test_self_training_without_hidden_labels_is_refused() -> None:
    dataset = grb.load_dataset("synth-tiny")
    with pytest.raises(DataError, match="train transductively"):
        grb.train("gcn+at", dataset, epochs=4, self_training=True)
    with pytest.raises(DataError, match="is for adversarial training"):
        grb.train("gcn", dataset, epochs=4, self_training=True)
