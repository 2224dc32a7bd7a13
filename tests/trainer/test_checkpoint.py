"""Checkpoints: round trips, and hostile files that run nothing and allocate nothing."""

from __future__ import annotations

import json
import os
import pickle
import random
import resource
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save
from torch import Tensor, nn

from grb.errors import DataError, GRBError, UnknownName
from grb.model.torch import GCN, MLP
from grb.trainer import load_model, save_model
from grb.trainer.checkpoint import load_model_with_meta


def gcn(**options: Any) -> GCN:
    return GCN(5, 3, [4, 4], generator=torch.Generator().manual_seed(0), **options)


def spec(**changes: Any) -> dict[str, Any]:
    params = {"in_features": 5, "out_features": 3, "hidden_features": [4, 4]}
    return {"format": 1, "version": "0", "model": "gcn", "params": params, "meta": {}} | changes


def write(path: Path, weights: dict[str, Tensor] | None = None, said: Any = None) -> Path:
    tensors = dict(gcn().state_dict()) if weights is None else weights
    text = said if isinstance(said, str) else json.dumps(spec() if said is None else said)
    path.write_bytes(save(tensors, metadata={"grb": text}))
    return path


def refused(path: Path, words: str) -> None:
    with pytest.raises(GRBError, match=words) as refusal:
        load_model(path)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 600


@pytest.mark.parametrize(
    "model",
    [
        gcn(),
        gcn(layer_norm=True, dropout=0.5),
        gcn(residual=True),
        MLP(5, 3, [4], layer_norm=True),
        GCN(5, 3, 6, n_layers=3),
    ],
    ids=["plain", "layer norm", "residual", "mlp", "one width"],
)
def test_round_trip(model: Any, tmp_path: Path) -> None:
    path = save_model(model, tmp_path / "deep" / "model.safetensors", dataset="grb-cora", seed=3, score=0.5)
    loaded, meta = load_model_with_meta(path)
    assert type(loaded) is type(model) and loaded.params == model.params
    assert meta == {"dataset": "grb-cora", "seed": 3, "score": 0.5}
    assert not loaded.training and all(parameter.requires_grad for parameter in loaded.parameters())
    before, after = model.state_dict(), loaded.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert all(tensor.device.type == "cpu" for tensor in after.values())


def test_loaded_model_can_be_trained_on(tmp_path: Path) -> None:
    loaded = load_model(save_model(gcn(), tmp_path / "m"))
    adam = torch.optim.Adam(loaded.parameters(), lr=0.1)
    before = [parameter.detach().clone() for parameter in loaded.parameters()]
    sum(parameter.sum() for parameter in loaded.parameters()).backward()  # type: ignore[union-attr]
    adam.step()
    assert all(not torch.equal(a, b) for a, b in zip(before, loaded.parameters(), strict=True))
    again = load_model(tmp_path / "m")
    assert all(torch.equal(a, b) for a, b in zip(before, again.parameters(), strict=True))


def test_same_model_same_bytes(tmp_path: Path) -> None:
    one, two = save_model(gcn(), tmp_path / "1", seed=1), save_model(gcn(), tmp_path / "2", seed=1)
    assert one.read_bytes() == two.read_bytes()


def test_loading_leaves_the_random_state_alone(tmp_path: Path) -> None:
    path = save_model(gcn(), tmp_path / "m")
    before = torch.get_rng_state()
    load_model(path)
    assert torch.equal(torch.get_rng_state(), before)


def test_other_modules_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only grb's own models"):
        save_model(nn.Linear(2, 2), tmp_path / "m")
    with pytest.raises(ValueError):
        save_model(gcn(), tmp_path / "m", score=float("nan"))
    assert os.listdir(tmp_path) == []


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    for value in (float("nan"), float("inf"), -float("inf")):
        weights = dict(gcn().state_dict())
        weights["convs.1.linear.weight"] = weights["convs.1.linear.weight"].clone()
        weights["convs.1.linear.weight"][2, 1] = value
        refused(write(tmp_path / "m", weights), "convs.1.linear.weight.*NaN or infinite")


def test_missing_extra_misshapen_and_mistyped_weights_are_refused(tmp_path: Path) -> None:
    good = dict(gcn().state_dict())
    name = "convs.0.linear.weight"
    refused(write(tmp_path / "m", {key: value for key, value in good.items() if key != name}), f"lacks.*{name}")
    refused(write(tmp_path / "m", good | {"backdoor": torch.ones(1)}), "unexpected weight 'backdoor'")
    refused(write(tmp_path / "m", good | {name: torch.ones(4, 5)}), r"shape \[4, 5\], but \[5, 4\]")
    refused(write(tmp_path / "m", good | {name: torch.ones(5, 4, 1)}), "shape")
    refused(write(tmp_path / "m", good | {name: torch.ones(5, 4, dtype=torch.float64)}), "dtype torch.float64")
    refused(write(tmp_path / "m", good | {name: torch.ones(5, 4, dtype=torch.int32)}), "dtype torch.int32")
    refused(write(tmp_path / "m", {}), "lacks the weight")


class Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    path = tmp_path / "model.pt"
    path.write_bytes(pickle.dumps(Canary(canary)))
    refused(path, "never loaded")
    torch.save({"weight": torch.ones(2), "canary": Canary(canary)}, path)
    refused(path, "never loaded")
    assert not canary.exists()


def test_code_named_in_a_file_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil_grb_module.py").write_text("import os; os.mkdir(os.environ['CANARY']); Model = dict")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    for name in ("os:system", "evil_grb_module:Model", "grb.model.torch.gcn:GCN", "evil_grb_module:"):
        refused(write(tmp_path / "m", said=spec(model=name)), "not imported")
    for name in ("evil_grb_module", "../gcn", ""):
        with pytest.raises(UnknownName):
            load_model(write(tmp_path / "m", said=spec(model=name)))
    assert "evil_grb_module" not in sys.modules and not (tmp_path / "canary").exists()


def params(**changes: Any) -> dict[str, Any]:
    return spec(params=spec()["params"] | changes)


HOSTILE: dict[str, Any] = {
    "no JSON": "model: gcn",
    "nested without end": "[" * 100_000,
    "a list": [1, 2],
    "no model": {"format": 1, "params": {}, "meta": {}},
    "params are a list": spec(params=[5, 3]),
    "meta is text": spec(meta="x"),
    "model is a number": spec(model=3),
    "format of the future": spec(format=2),
    "format is text": spec(format="1"),
    "unknown parameter": params(backdoor=True),
    "missing parameter": spec(params={"in_features": 5}),
    "self as a parameter": params(self=1),
    "text for a number": params(in_features="5"),
    "float for a number": params(in_features=5.0),
    "null for a number": params(in_features=None),
    "negative width": params(in_features=-5),
    "no hidden layer": params(hidden_features=[]),
    "dropout of one": params(dropout=1.0),
    "dropout is NaN": params(dropout=float("nan")),
    "dictionary of widths": params(hidden_features={"a": 1}),
    "widths that differ": params(hidden_features=[4, 5]),
    "one layer fewer": params(hidden_features=[4]),
    "one layer more": params(hidden_features=[4, 4, 4]),
    "huge width": params(hidden_features=[10**9, 10**9]),
    "width beyond 64 bits": params(hidden_features=[2**70]),
    "overflowing product": params(in_features=2**40, hidden_features=[2**40]),
    "a billion layers": params(hidden_features=4, n_layers=10**9),
    "wide but allowed by the header": params(hidden_features=[900, 900]),
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_hostile_specs_are_refused_without_memory(fault: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m", said=HOSTILE[fault])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(path, str(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_file_without_our_spec_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(save(dict(gcn().state_dict())))
    refused(path, "does not say which model")
    path.write_bytes(save(dict(gcn().state_dict()), metadata={"format": "pt"}))
    refused(path, "does not say which model")


def test_missing_directory_empty_and_foreign_files_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "absent", "no model file")
    refused(tmp_path, "no model file")
    path = tmp_path / "m"
    for data in (b"", b"x", b"<!DOCTYPE html><html>", struct.pack("<Q", 2**62) + b"{}", bytes(100)):
        path.write_bytes(data)
        refused(path, "not a safetensors file")


def test_every_truncation_and_trailing_junk_is_refused(tmp_path: Path) -> None:
    data = save_model(gcn(), tmp_path / "good").read_bytes()
    path = tmp_path / "m"
    for length in range(0, len(data), 29):
        path.write_bytes(data[:length])
        refused(path, "m")
    path.write_bytes(data + b"x")
    refused(path, "not a safetensors file")


def test_random_damage_is_refused_or_gives_finite_weights(tmp_path: Path) -> None:
    rng = random.Random(0)
    data = save_model(gcn(), tmp_path / "good").read_bytes()
    path = tmp_path / "m"
    for _ in range(400):
        broken = bytearray(data)
        broken[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(broken)
        try:
            model = load_model(path)
        except GRBError:
            continue
        assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def test_unwritable_target_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot write"):
        save_model(gcn(), tmp_path / "file" / "m")
    assert os.listdir(tmp_path) == ["file"]
