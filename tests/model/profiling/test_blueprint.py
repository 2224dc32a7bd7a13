from __future__ import annotations

import numpy as np
import pytest
import torch

from grb.dataset.raw_arrays import sparsify
from grb.errors import DataError, UnknownName
from grb.graph import CSR, Graph, adjacency_from_edges
from grb.model.profiling import build_profiler, profiler
from grb.model.profiling.gatedgcn import _Gated
from grb.model.profiling.network import mean_of_graphs
from made_collections import random_collection

MODELS = {"gcn": 5, "gin": 5, "gin-2l": 2, "chebnet": 5, "gatedgcn": 5, "gcnii": 5, "transformer": 5}


def path(n: int) -> Graph:
    adj, _ = adjacency_from_edges(np.stack([np.arange(n - 1), np.arange(1, n)]), n)
    return Graph(adj, torch.randn(n, 3, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("name", MODELS)
def test_a_logit_depends_on_exactly_the_nodes_within_the_depth(name: str) -> None:
    graph = path(16)
    chosen = profiler(name, collection=False, width=16)
    model = build_profiler(chosen, 3, 2, pool=False, generator=torch.Generator().manual_seed(1))
    x = graph.x.clone().requires_grad_()
    model(x, model.prepare(graph.adj))[0].sum().backward()
    reached = x.grad.abs().sum(1) > 0
    assert reached.tolist() == [place <= MODELS[name] for place in range(16)]


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_gets_a_gradient(name: str) -> None:
    graph = random_collection(graphs=6, seed=1)
    model = build_profiler(profiler(name, collection=True), 5, 3, pool=True, generator=torch.Generator().manual_seed(0))
    model(graph.x, model.prepare(graph.adj), graph.ptr).square().sum().backward()
    silent = [key for key, value in model.named_parameters() if value.grad is None or not value.grad.abs().sum() > 0]
    # a bias in front of a batch norm cancels out, and so does that of the keys in a softmax over them
    idle = "key.bias" if name == "transformer" else "outer.bias"
    assert [key for key in silent if not (key.startswith("convs") and key.endswith(idle))] == []


@pytest.mark.parametrize("name", MODELS)
def test_equal_generators_give_equal_weights_and_leave_the_global_state(name: str) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, second = (
        build_profiler(profiler(name, collection=True), 4, 2, pool=True, generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_paper_s_blueprint_has_the_size_of_its_tables() -> None:
    """128 wide: input 21, five convolutions and their norms, head."""
    model = build_profiler(profiler("gcn", collection=True), 21, 6, pool=True)
    layers = 21 * 128 + 5 * 128 * 128 + 6 * 2 * 128
    assert sum(each.numel() for each in model.parameters()) == layers + (128 * 128 + 128) + (128 * 6 + 6)


def test_sparse_features_give_the_same_logits() -> None:
    graph = path(6)
    x = torch.zeros(6, 100)
    x[torch.arange(6), torch.arange(6) * 3] = torch.arange(1.0, 7.0)
    sparse = sparsify(x)
    assert isinstance(sparse, CSR)
    model = build_profiler(profiler("gcn", collection=False), 100, 2, pool=False)
    op = model.prepare(graph.adj)
    torch.testing.assert_close(model(sparse, op), model(x, op))


def test_mean_over_graphs_of_which_one_is_empty() -> None:
    h = torch.tensor([[1.0], [3.0], [5.0]])
    assert mean_of_graphs(h, torch.tensor([0, 2, 2, 3])).tolist() == [[2.0], [0.0], [5.0]]
    assert mean_of_graphs(h, None).tolist() == [[3.0]]


def test_gradients_of_the_gated_sum(monkeypatch) -> None:
    monkeypatch.setattr("grb.model.profiling.gatedgcn.CHUNK", 3)  # several blocks of rows
    graph = random_collection(graphs=2, seed=2, isolated=True)
    given = [torch.randn(graph.n, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(lambda *parts: _Gated.apply(graph.adj.pattern, *parts), given)


def test_settings_of_the_paper() -> None:
    many, one = profiler("gcn", collection=True), profiler("gcn", collection=False)
    assert (many.lr, many.epochs, many.plateau, many.batch_norm, many.eval_every) == (1e-3, 300, 15, True, 1)
    assert (one.lr, one.epochs, one.plateau, one.batch_norm, one.eval_every) == (1e-2, 5000, 100, False, 5)
    assert profiler("ChebNet", collection=True).lr == 1e-2
    assert profiler("gatedgcn", collection=True).schedule == "cosine"
    assert profiler("gcnii", collection=True, alpha=0.5).options == {"alpha": 0.5}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: profiler("gcnn", collection=True), "no profiler 'gcnn'. Did you mean 'gcn'?"),
        (lambda: profiler("gcn", collection=True, epochs=0), "epochs of a profiling model is 0"),
        (lambda: profiler("gcn", collection=True, lr=-1.0), "lr of a profiling model is -1.0"),
        (lambda: profiler("gcn", collection=True, schedule="step"), "schedule of a profiling model is 'step'"),
        (lambda: build_profiler(profiler("gcn", collection=True, order=2), 1, 2, pool=True), "does not take 'order'"),
        (lambda: build_profiler(profiler("gcnii", collection=True, alpha=2), 1, 2, pool=True), "alpha of GCNII is 2"),
        (lambda: build_profiler(profiler("torch.nn:Linear", collection=True), 1, 2, pool=True), "no convolution"),
    ],
)
def test_what_is_refused(make, sentence: str) -> None:
    with pytest.raises((DataError, UnknownName)) as caught:
        make()
    assert sentence in str(caught.value)
