"""Models of whole graphs: pooled logits against a loop over graphs, stages against the forward pass, files."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grb.attack.incremental import Rewired, full_forward
from grb.attack.modification.gradient import Victim
from grb.catalogue import canonical, entry, resolve
from grb.errors import DataError, GRBError, UnknownName
from grb.graph import Adjacency, GraphEdit
from grb.graph.batching import get_example
from grb.model.base import predict, prepare, run_stages
from grb.model.build import build, settings
from grb.model.pooled import GraphLevel, Pooled, pooled, readout
from grb.trainer.checkpoint import load_model, save_model
from made_collections import random_collection

BASES = ("gcn", "gin", "mlp", "gat", "graphsage", "gcn-jaccard", "r-gcn")


def made(base: str, **params: object) -> Pooled:
    generator = torch.Generator().manual_seed(1)
    given = {"hidden_features": [8, 8], **params}
    return pooled(base)(5, 3, generator=generator, **given).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_pooled_logits_are_those_of_a_loop_over_graphs(base: str, kind: str) -> None:
    graph = random_collection(7, 2)
    model = made(base, readout=kind)
    loop = torch.cat([predict(model, get_example(graph, k)) for k in range(7)])
    assert loop.shape == (7, 3)
    torch.testing.assert_close(predict(model, graph), loop, rtol=1e-4, atol=1e-5)


def test_the_formula_by_hand() -> None:
    graph = random_collection(3, 4)
    model = made("mlp")
    assert isinstance(graph.x, Tensor) and graph.ptr is not None
    rows = torch.relu(model.backbone(graph.x * model.scale))
    sums = torch.stack([part.sum(0) for part in rows.split(graph.ptr.diff().tolist())])
    first, second = model.head
    torch.testing.assert_close(predict(model, graph), second(torch.relu(first(sums))))


def test_an_empty_graph_pools_to_zeros() -> None:
    rows = torch.ones(3, 2)
    for kind in ("sum", "mean"):
        assert readout(rows, torch.tensor([0, 0, 3]), kind)[0].tolist() == [0, 0]  # type: ignore[arg-type]


def test_columns_of_large_deviation_are_scaled_and_others_stay() -> None:
    model = made("gcn")
    x = torch.stack([torch.tensor([0.0, 200.0, -200.0, 0.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])], dim=1)
    x = torch.cat([x, torch.zeros(4, 3)], dim=1)
    model.measure(x)
    assert model.scale.tolist() == pytest.approx([1 / float(x[:, 0].std(correction=0)), 1, 1, 1, 1])


@pytest.mark.parametrize("base", ["gcn", "gin", "mlp", "gat"])
def test_every_node_of_a_graph_gets_its_logits_by_stages_too(base: str) -> None:
    graph = get_example(random_collection(4, 1), 2)
    model = GraphLevel(made(base))
    logits = predict(model, graph)
    assert logits.shape == (graph.n, 3) and (logits == logits[0]).all()
    stages = model.stages()
    assert stages is not None and isinstance(graph.x, Tensor)
    torch.testing.assert_close(run_stages(stages, graph.x, prepare(model, graph.adj)), logits)


@pytest.mark.parametrize("base", ["gcn", "gin", "mlp", "gat"])
def test_incremental_logits_and_gradients_of_injected_features_are_those_of_whole_passes(base: str) -> None:
    graph = get_example(random_collection(4, 6), 1)
    model = GraphLevel(made(base))
    n = graph.n
    wired = GraphEdit(n=n, add=torch.tensor([[0, n - 1, n], [n, n + 1, n + 1]]), new_x=torch.zeros(2, 5))
    targets, new = torch.arange(n), torch.tensor([n, n + 1])
    forward, incremental = Rewired(model, graph).forward(wired, targets)
    assert incremental
    whole = full_forward(model, graph.apply(wired), new, targets)
    x = torch.randn(2, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    torch.testing.assert_close(forward(x), whole(x), rtol=1e-4, atol=1e-5)
    grads = [torch.autograd.grad(own(x).square().sum(), x)[0] for own in (forward, whole)]
    torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("base", ["gcn", "gin"])
def test_gradients_of_edges_match_finite_differences(base: str) -> None:
    graph = get_example(random_collection(4, 9), 3)
    model = GraphLevel(made(base)).double()
    assert isinstance(graph.x, Tensor)
    wide = graph.with_features(graph.x.double())
    victim = Victim(model, wide, torch.arange(graph.n), loss=lambda logits, y: logits[:, 0])
    assert victim.closed_form
    adj = Adjacency(wide.adj.pattern, torch.ones(wide.adj.pattern.entries, dtype=torch.float64))
    pairs = adj.edges()
    found = victim.gradient(adj).of(pairs)
    for place in range(pairs.shape[1]):
        values = []
        for step in (1e-5, -1e-5):
            weights = torch.ones(adj.pattern.entries, dtype=torch.float64)
            for u, v in (pairs[:, place], pairs[:, place].flip(0)):
                weights[torch.searchsorted(adj.keys, u * adj.n + v)] += step
            values.append(victim.judge(Adjacency(adj.pattern, weights))[0])
        assert float(found[place]) == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4, abs=1e-6)


def test_a_model_of_nodes_is_no_model_of_a_graph() -> None:
    graph = get_example(random_collection(2, 0), 0)
    nodes = build(settings("gcn", "grb-cora"), 5, 3)
    with pytest.raises(DataError, match="it classifies nodes"):
        predict(GraphLevel(nodes), graph)


@pytest.mark.parametrize("base", ["gin", "gat", "gcn-jaccard"])
def test_files_give_the_same_logits(base: str, tmp_path) -> None:
    model, graph = made(base, readout="mean"), random_collection(5, 0)
    model.measure(torch.randn(20, 5) * 30)
    again = load_model(save_model(model, tmp_path / "model.safetensors"))
    assert again.name == f"{base}-pool" and torch.equal(predict(again, graph), predict(model, graph))


def test_names() -> None:
    assert canonical("model", "SAGE-pool") == "graphsage-pool"
    assert entry("model", "gin-pool").group == "graphs"
    assert settings("gat-pool+ln", "mutag").params["layer_norm"] is True
    with pytest.raises(UnknownName, match="gni"):
        canonical("model", "gni-pool")
    with pytest.raises(DataError, match="'mean' or 'sum'"):
        made("gcn", readout="max")


@pytest.mark.parametrize("name", ["sgc-pool", "grand-pool", "gin-pool-pool"])
def test_what_cannot_be_pooled_is_refused(name: str) -> None:
    with pytest.raises(GRBError):
        resolve("model", name)
