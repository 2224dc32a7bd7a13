"""Weights that THUDM/grb saved, under its names of layers: the same logits where the models are the same."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import grb
from grb.compat.weights import load_weights, read_state
from grb.defense.gcnsvd import GCNSVD
from grb.defense.robustgcn import RobustGCN
from grb.errors import DataError
from grb.graph import normalise
from grb.model.base import predict
from grb.model.torch import APPNP, GCN, GIN, MLP, SGCN, TAGCN, GraphSAGE

DATASET = grb.load_dataset("synth-tiny")
D, C = DATASET.num_features, DATASET.num_classes


def linear(name: str, rows: int, columns: int) -> dict[str, Tensor]:
    made = nn.Linear(rows, columns)
    return {f"{name}.weight": made.weight.detach(), f"{name}.bias": made.bias.detach()}


def saved(path: Path, state: dict[str, Tensor]) -> Path:
    torch.save(state, path)
    return path


def operator(kind: str = "gcn") -> Tensor:
    op = getattr(normalise, kind)(DATASET.graph.adj)
    return op @ torch.eye(DATASET.num_nodes)


def test_a_gcn_has_the_logits_of_its_dense_formula(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {**linear("layers.0.linear", D, 8), **linear("layers.1.linear", 8, C)}
    model = load_weights(GCN(D, C, 8, n_layers=2), saved(tmp_path / "gcn.pt", state))
    a, x = operator(), DATASET.features
    # the bias is added behind the sum over neighbours; THUDM/grb adds it in front
    h = torch.relu(a @ x @ state["layers.0.linear.weight"].T + state["layers.0.linear.bias"])
    wanted = a @ h @ state["layers.1.linear.weight"].T + state["layers.1.linear.bias"]
    assert torch.allclose(predict(model, DATASET.graph), wanted, atol=1e-5)


def test_a_tagcn_reads_the_hops_in_their_order(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {**linear("layers.0.linear", 3 * D, 8), **linear("layers.1.linear", 24, C)}
    model = load_weights(TAGCN(D, C, 8, n_layers=2, k=2), saved(tmp_path / "tagcn.pt", state))
    a, h = operator(), DATASET.features
    for layer in range(2):
        hops = torch.cat([h, a @ h, a @ a @ h], dim=1)
        h = hops @ state[f"layers.{layer}.linear.weight"].T + state[f"layers.{layer}.linear.bias"]
        h = torch.relu(h) if layer == 0 else h
    assert torch.allclose(predict(model, DATASET.graph), h, atol=1e-4)


def test_every_architecture_takes_all_of_its_weights(tmp_path: Path) -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8).state_dict()
    sage = [
        {
            **linear(f"layers.{i}.pool_layer", w, w),
            **linear(f"layers.{i}.linear1", w, o),
            **linear(f"layers.{i}.linear2", w, o),
        }
        for i, (w, o) in enumerate([(D, 8), (8, C)])
    ]
    gin = {**linear("layers.0.linear1", D, 8), **linear("layers.0.linear2", 8, 8), "layers.0.eps": torch.tensor([0.5])}
    gin |= {f"layers.0.norm.{key}": value for key, value in norm.items()}
    gin |= {**linear("mlp_layers.0", 8, 8), **linear("mlp_layers.1", 8, C)}
    two = [("layers.0", D, 8), ("layers.1", 8, C)]
    cases: list[tuple[nn.Module, dict[str, Tensor]]] = [
        (GraphSAGE(D, C, 8, n_layers=2), sage[0] | sage[1]),
        (GIN(D, C, 8, n_layers=2), gin),
        (APPNP(D, C, 8, n_layers=2), linear(*two[0]) | linear(*two[1])),
        (MLP(D, C, 8, n_layers=2), linear("layers.0.linear", D, 8) | linear("layers.1.linear", 8, C)),
        (GCNSVD(D, C, 8, n_layers=2), linear("layers.0.linear", D, 8) | linear("layers.1.linear", 8, C)),
        (
            RobustGCN(D, C, 8, n_layers=2),
            linear("layers.0.mean_conv", D, 8)
            | linear("layers.0.var_conv", D, 8)
            | linear("layers.1.mean_conv", 8, C)
            | linear("layers.1.var_conv", 8, C),
        ),
        (
            SGCN(D, C, 8, n_layers=3),
            linear("in_conv", D, 8) | linear("layers.0.linear", 8, 8) | linear("out_conv", 8, C),
        ),
    ]
    for model, state in cases:
        before = sum(float(value.double().sum()) for value in state.values())
        load_weights(model, saved(tmp_path / "weights.pt", state))
        fresh = {key: value for key, value in model.state_dict().items() if not key.startswith("input_norm")}
        assert sum(float(value.double().sum()) for value in fresh.values()) == pytest.approx(before, abs=1e-4)
        assert torch.isfinite(predict(model, DATASET.graph)).all()


def test_a_norm_in_front_of_the_last_convolution_is_refused(tmp_path: Path) -> None:
    state = {"layers.0.weight": torch.ones(D), "layers.0.bias": torch.zeros(D), **linear("layers.1.linear", D, 8)}
    state |= {"layers.2.weight": torch.ones(8), "layers.2.bias": torch.zeros(8), **linear("layers.3.linear", 8, C)}
    path = saved(tmp_path / "ln.pt", state)
    with pytest.raises(DataError, match="in front of the last convolution too"):
        load_weights(GCN(D, C, 8, n_layers=2, layer_norm=True), path)


class Payload:
    """Unpickling it would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, (f"open({str(self.path)!r}, 'w').close()",))


def test_no_code_of_a_file_is_run(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    torch.save({"weight": Payload(trace)}, tmp_path / "module.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Payload(trace)))
    (tmp_path / "noise.pt").write_bytes(b"\x00" * 100)
    for name in ("module.pt", "plain.pt", "noise.pt"):
        with pytest.raises(DataError, match=r"state_dict\(\), 'weights.pt'\)"):
            read_state(tmp_path / name)
    assert not trace.exists()


def test_weights_that_do_not_fit_are_refused_in_a_sentence(tmp_path: Path) -> None:
    state = {**linear("layers.0.linear", D, 9), **linear("layers.1.linear", 9, C)}
    with pytest.raises(DataError, match="does not fit the model"):
        load_weights(GCN(D, C, 8, n_layers=2), saved(tmp_path / "wide.pt", state))
    state["layers.0.linear.bias"] = torch.full((9,), torch.nan)
    with pytest.raises(DataError, match="NaN or infinite"):
        load_weights(GCN(D, C, 9, n_layers=2), saved(tmp_path / "nan.pt", state))
    with pytest.raises(DataError, match="which no gcn here has"):
        load_weights(GCN(D, C, 9, n_layers=2), saved(tmp_path / "other.pt", linear("layers.0.residual", D, 9)))
    with pytest.raises(DataError, match="no weights"):
        load_weights(GCN(D, C, 9, n_layers=2), tmp_path / "absent.pt")
