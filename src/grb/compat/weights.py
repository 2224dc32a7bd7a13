"""Weights that THUDM/grb saved: state dicts are read without running code, pickled modules are not read at all."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.model.base import GraphModel

_Model = TypeVar("_Model", bound=nn.Module)
# its modules inside one layer, and ours, per model; "" is the layer itself
LAYERS: dict[str, tuple[str, dict[str, str]]] = {
    "gcn": ("convs", {"linear": "linear"}),
    "gcn-svd": ("convs", {"linear": "linear"}),
    "tagcn": ("convs", {"linear": "linear"}),
    "graphsage": ("convs", {"pool_layer": "pool", "linear1": "own", "linear2": "neighbours"}),
    "gin": ("convs", {"linear1": "first", "linear2": "second", "norm": "batch_norm", "eps": "eps"}),
    "appnp": ("linears", {"": ""}),
    "mlp": ("linears", {"linear": ""}),
    "sgcn": ("linears", {"linear": ""}),
    "gcnguard": ("linears", {"linear": ""}),
    "r-gcn": ("", {"mean_conv": "means", "var_conv": "variances"}),
}
ADVICE = (
    "in the environment that wrote it run torch.save(torch.load(FILE, weights_only=False).state_dict(), 'weights.pt'), and "
    "give that file"
)


def load_weights(model: _Model, path: str | os.PathLike[str]) -> _Model:
    """The model with the weights of a ``.pt`` file of THUDM/grb, in evaluation mode.

    Args:
        model: Made with the arguments of the saved one. Where its layers differ by design (docs/compat.md says how), so do its
            logits: GCN adds its bias behind the sum over neighbours, THUDM/grb in front of it.
        path: A state dict; a pickled module is refused.
    """
    found = read_state(path)
    state = (
        found
        if not isinstance(model, GraphModel) or found.keys() == model.state_dict().keys()
        else _ours(model, found, path)
    )
    for name, value in state.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise DataError(f"weight '{name}' of {path} holds NaN or infinite values")
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise DataError(f"{path} does not fit the model: {' '.join(str(error).split())[:200]}") from None
    return model.eval()


def read_state(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a ``.pt`` file by name; nothing in the file is run."""
    if not Path(path).is_file():
        raise DataError(f"no weights {path}; give the .pt file that torch.save wrote")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        what = (
            "a pickled module, which runs code when it is read"
            if "weights_only" in str(error)
            else "no file of torch.save"
        )
        raise DataError(f"{path} holds {what}; {ADVICE}") from None
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not all(isinstance(value, Tensor) for value in found.values()):
        raise DataError(f"{path} holds a {type(found).__name__}, but a state dict of tensors is needed; {ADVICE}")
    return dict(found)


def _ours(model: GraphModel, found: Mapping[str, Tensor], path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The weights under our names; a linear map is kept transposed here."""
    if model.name not in LAYERS:
        raise DataError(f"weights of a {model.name} cannot be taken over from THUDM/grb; train it again")
    renamed: dict[str, Tensor] = {}
    numbers = _numbers(found)
    for key, value in found.items():
        for name, tensor in _renamed(model, key, value, numbers, path).items():
            renamed[name] = tensor
    wanted = model.state_dict()
    if model.name == "sgcn":  # its input has no norm there: one that changes nothing
        renamed = {**{key: value for key, value in wanted.items() if key.startswith("input_norm")}, **renamed}
    if extra := sorted(renamed.keys() - wanted.keys()):
        hint = (
            "; THUDM/grb normalises in front of the last convolution too, which no model here does"
            if "norms" in extra[0]
            else ""
        )
        raise DataError(f"{path} has a weight for '{extra[0]}', which the model has not{hint}")
    return {**{key: value for key, value in wanted.items() if "num_batches" in key}, **renamed}


def _numbers(found: Mapping[str, Tensor]) -> dict[int, tuple[str, int]]:
    """What every entry of ``layers`` is, a norm or a layer, and the how manieth of its kind."""
    places: dict[int, list[str]] = {}
    for key in found:
        if match := re.match(r"layers\.(\d+)\.(.*)", key):
            places.setdefault(int(match[1]), []).append(match[2])
    counts, kinds = {"norm": 0, "layer": 0}, dict[int, tuple[str, int]]()
    for place in sorted(places):
        weight = found.get(f"layers.{place}.weight")
        kind = "norm" if weight is not None and weight.dim() == 1 else "layer"
        kinds[place] = kind, counts[kind]
        counts[kind] += 1
    return kinds


def _renamed(
    model: GraphModel, key: str, value: Tensor, numbers: Mapping[int, tuple[str, int]], path: object
) -> dict[str, Tensor]:
    home, parts = LAYERS[model.name]
    match = re.match(r"layers\.(\d+)\.(.*)", key)
    if match is None:
        return _outer(model, key, value, path)
    kind, number = numbers[int(match[1])]
    if kind == "norm":
        return {f"norms.{number}.{match[2]}": value}
    inner, _, leaf = match[2].rpartition(".")
    if inner == "" and match[2] in parts:  # a bare parameter such as eps
        return {f"{home}.{number}.{parts[match[2]]}": value.reshape(1)}
    if inner not in parts:
        raise DataError(f"{path} has the weight '{key}', which no {model.name} here has")
    if not home:
        place = f"{parts[inner]}.{number}"
    else:
        number += model.name == "sgcn"  # the first linear map is not among its layers
        place = ".".join(part for part in (home, str(number), parts[inner]) if part)
    return {f"{place}.{leaf}": _turned(value, leaf)}


def _outer(model: GraphModel, key: str, value: Tensor, path: object) -> dict[str, Tensor]:
    """Weights that stand outside the list of layers."""
    leaf = key.rpartition(".")[2]
    if model.name == "sgcn" and key.startswith(("in_conv.", "out_conv.")):
        number = 0 if key.startswith("in_conv.") else len(model.linears) - 1
        return {f"linears.{number}.{leaf}": _turned(value, leaf)}
    if model.name == "sgcn" and key.startswith("batch_norm."):
        return {f"input_norm.{key.partition('.')[2]}": value}
    if model.name == "gin" and (match := re.match(r"mlp_layers\.(\d+)\.", key)):
        return {f"head.{match[1]}.{leaf}": _turned(value, leaf)}
    if model.name == "gcnguard" and key.startswith("drop_learn."):
        return {f"gate.linear.{leaf}": value}
    raise DataError(f"{path} has the weight '{key}', which no {model.name} here has")


def _turned(value: Tensor, leaf: str) -> Tensor:
    return value.T.contiguous() if leaf == "weight" and value.dim() == 2 else value
