"""Every catalogued defense keeps the same promises."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional

import grb
from grb.attack.incremental import full_forward
from grb.catalogue import entries
from grb.dataset import Dataset
from grb.graph import GraphEdit
from grb.model.base import predict, relaxation
from grb.model.build import settings
from grb.names import SUFFIXES, TRANSDUCTIVE, ModelName

MODELS = [name for name, entry in entries("model").items() if entry.group == "defense"]
PARTS = [name for name in entries("defense") if name not in SUFFIXES]
NAMES = [
    *MODELS,
    *(f"{name}+at" for name in MODELS),
    *(f"gcn+{suffix}" for suffix in SUFFIXES),
    *(f"gat-{part}" for part in PARTS),
    "gcn-jaccard+ln",
    "egnnguard+ln",
    "softmedian+ln",
    "r-gcn-cosine+at-full",
    "grand-transform-jaccard",
]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@cache
def dataset() -> Dataset:
    own = grb.load_dataset("synth-tiny")
    return on_arrays(own, own.adj, own.features.numpy(), own.labels.numpy())


def on_arrays(like: Dataset, adj: Any, features: Any, labels: Any) -> Dataset:
    split = {"train": like.index_train, "val": like.index_val, "full": like.index_test}
    return Dataset.from_arrays(adj, features, labels, split=split, name="synth-tiny")


def small(name: str) -> dict[str, Any]:
    """Few epochs, narrow layers; adversarial from the second epoch on, against two steps."""
    changes: dict[str, Any] = {"epochs": 3, "hidden_features": [8] if name.startswith("grand") else [8, 6]}
    if ModelName.parse(name).base in TRANSDUCTIVE:
        changes["train_mode"] = "transductive"
    return changes | ({"warm_up": 1} if settings(name, "synth-tiny").adversarial else {})


@cache
def fitted(name: str) -> nn.Module:
    return grb.train(name, dataset(), seed=1, **small(name))


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_a_seed_decides_the_weights(name: str) -> None:
    torch.manual_seed(99)  # the global generator must not matter
    assert same_weights(fitted(name), grb.train(name, dataset(), seed=1, **small(name)))
    if not ModelName.parse(name).adversarial:
        assert not same_weights(fitted(name), grb.train(name, dataset(), seed=2, **small(name)))


def test_a_defender_sees_nothing_of_a_test_node(name: str) -> None:
    if ModelName.parse(name).base in TRANSDUCTIVE:
        pytest.skip("it is trained on the whole graph; the labels of test nodes are hidden by the view")
    assert same_weights(grb.train(name, with_other_test_nodes(), seed=1, **small(name)), fitted(name))


@cache
def with_other_test_nodes() -> Dataset:
    """Other features, edges and labels of test nodes, and other edges from test nodes to the rest."""
    own, rng = dataset(), np.random.default_rng(0)
    test = own.index_test.numpy()
    seen = np.setdiff1d(np.arange(own.num_nodes), test)
    features, labels = own.features.numpy().copy(), own.labels.numpy().copy()
    features[test] = rng.uniform(-0.9, 0.9, features[test].shape)
    labels[test] = rng.permutation(labels[test])
    adj = sp.lil_matrix(own.adj)
    adj[test, :] = 0
    adj[:, test] = 0
    ends = np.stack([rng.choice(test, 200), rng.choice(own.num_nodes, 200)])
    ends = ends[:, ends[0] != ends[1]]
    adj[ends[0], ends[1]] = adj[ends[1], ends[0]] = 1
    changed = on_arrays(own, adj.tocsr(), features, labels)
    assert (changed.adj[seen][:, seen] != own.adj[seen][:, seen]).nnz == 0
    assert (changed.adj[test] != own.adj[test]).nnz > 0
    return changed


def test_evaluation_is_deterministic(name: str) -> None:
    first, second = (predict(fitted(name), dataset().graph) for _ in range(2))
    assert torch.equal(first, second) and torch.isfinite(first).all()


def test_gradients_reach_every_parameter(name: str) -> None:
    model = copy.deepcopy(fitted(name))
    graph, ids = dataset().defender_view().training_graph()
    assert graph.y is not None
    model.train().zero_grad()
    logits = model(graph.x, model.prepare(graph.adj))  # type: ignore[operator]
    loss = functional.cross_entropy(
        logits.flatten(0, -2), graph.y.repeat(logits.numel() // graph.n // logits.shape[-1])
    )
    penalty = getattr(model, "penalty", None)
    (loss if penalty is None else loss + penalty()).backward()
    unmoved = [key for key, value in model.named_parameters() if value.grad is None or not value.grad.abs().sum() > 0]
    assert unmoved == [] and len(ids)


@pytest.mark.parametrize("training", [True, False])
def test_an_attack_leaves_the_model_as_it_was(name: str, training: bool) -> None:
    model = fitted(name)
    model.train(training)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    try:
        grb.run_attack("pgd", model, dataset(), iterations=1)
        assert all(module.training is training for module in model.modules())
        assert all(parameter.requires_grad for parameter in model.parameters())
        assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    finally:
        model.eval()


def opened(name: str) -> nn.Module:
    """The model, or what it offers to an attacker where its own gradient ends: a detector cuts random nodes off as a whole."""
    return relaxation(fitted(name), "soft") if "detect" in name else fitted(name)


def test_a_white_box_attack_goes_through_the_defense(name: str) -> None:
    model, own = opened(name), dataset()
    targets = own.index_test[:12]
    pairs = torch.stack([targets, own.num_nodes + torch.arange(12) % 4])
    x = torch.rand(4, own.num_features, generator=torch.Generator().manual_seed(0)) - 0.5
    attacked = own.graph.apply(GraphEdit(n=own.num_nodes, add=pairs, new_x=x))
    forward = full_forward(model, attacked, torch.arange(own.num_nodes, own.num_nodes + 4), targets)
    leaf = x.clone().requires_grad_()
    loss = functional.cross_entropy(forward(leaf), own.labels[targets])
    (gradient,) = torch.autograd.grad(loss, leaf)
    assert torch.isfinite(gradient).all() and gradient.abs().sum() > 0


def test_pgd_raises_the_loss(name: str) -> None:
    steps = grb.run_attack("pgd", opened(name), dataset(), iterations=6, step=0.1).steps
    losses = [step.loss for step in steps]
    if name.endswith("+known"):  # nobody hears injected nodes
        assert len(set(losses)) == 1
    else:
        assert max(losses[1:]) > losses[0]


def test_a_checkpoint_gives_the_same_logits(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    loaded = grb.load_model(grb.save_model(model, tmp_path / "model.safetensors"))
    assert torch.equal(predict(loaded, dataset().graph), predict(model, dataset().graph))
    assert loaded.title == name
