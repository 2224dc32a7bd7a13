"""Models on disk: weights as safetensors, how to rebuild the model as JSON in the same file; never a pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from grb._version import __version__
from grb.catalogue import resolve
from grb.errors import DataError
from grb.graph.files import write_atomic
from grb.model.base import GraphModel

FORMAT = 1
MAX_PARAM_BYTES = 8 * 2**30


def save_model(model: nn.Module, path: str | os.PathLike[str], **meta: Any) -> Path:
    """Write a model of ours: whole or not at all.

    Args:
        model: A catalogued model (it knows its name and parameters).
        path: The file, by habit ``*.safetensors``.
        meta: Plain values kept beside it (dataset, seed, score, ...).
    """
    from safetensors.torch import save

    if not isinstance(model, GraphModel):
        raise DataError(f"a {type(model).__name__} cannot be rebuilt from a file; only grb's own models can be saved")
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    spec = {"format": FORMAT, "version": __version__, "model": model.name, "params": dict(model.params), "meta": meta}
    text = json.dumps(spec, sort_keys=True, allow_nan=False)
    data = save(tensors, metadata={"grb": text})
    return write_atomic(path, lambda stream: stream.write(data) and None)


def load_model(path: str | os.PathLike[str]) -> GraphModel:
    """The model of a file in evaluation mode; NaN weights, wrong shapes and missing or extra weights are refused."""
    return load_model_with_meta(path)[0]


def load_model_with_meta(path: str | os.PathLike[str]) -> tuple[GraphModel, dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise DataError(f"no model file {path}; `grb train MODEL --save FILE` writes one")
    try:
        with safe_open(path, framework="pt") as stored:
            spec = _read_spec(path, stored.metadata())
            model = _rebuild(path, spec)
            expected = model.state_dict()
            _check_names(path, set(stored.keys()), set(expected))
            for name, tensor in expected.items():
                shape = stored.get_slice(name).get_shape()
                if list(shape) != list(tensor.shape):
                    raise DataError(f"weight '{name}' of {path} has shape {shape}, but {list(tensor.shape)} is needed")
            tensors = {name: stored.get_tensor(name) for name in expected}
    except SafetensorError as error:
        raise DataError(
            f"{path} is not a safetensors file ({str(error)[:100]}); pickled models are never loaded"
        ) from None
    for name, tensor in tensors.items():
        if tensor.dtype != expected[name].dtype:
            raise DataError(f"weight '{name}' of {path} has dtype {tensor.dtype}, but {expected[name].dtype} is needed")
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise DataError(f"weight '{name}' of {path} holds NaN or infinite values")
    model.load_state_dict(tensors)
    return model.eval(), spec["meta"]


def _read_spec(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    try:
        spec = json.loads((metadata or {})["grb"])
        if (
            not isinstance(spec, dict)
            or not isinstance(spec.get("params"), dict)
            or not isinstance(spec.get("meta"), dict)
        ):
            raise ValueError("no params or meta")
        if not isinstance(spec.get("model"), str) or not isinstance(spec.get("format"), int):
            raise ValueError("no model or format")
    except (KeyError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path} does not say which model it is ({error}); only files that grb wrote are read"
        ) from None
    if spec["format"] != FORMAT:
        raise DataError(f"{path} has checkpoint format {spec['format']}, but this version reads {FORMAT}; update grb")
    if ":" in spec["model"]:
        raise DataError(f"{path} names code '{spec['model'][:60]}' instead of a catalogued model; it is not imported")
    return spec


def _rebuild(path: Path, spec: dict[str, Any]) -> GraphModel:
    maker = resolve("model", spec["model"])
    try:
        # without memory of its own, so that a file which asks for a huge model costs nothing
        with torch.device("meta"):
            probe = maker(**spec["params"])
        size = sum(tensor.numel() * tensor.element_size() for tensor in probe.state_dict().values())
        if size > MAX_PARAM_BYTES:
            raise DataError(f"{path} asks for a model of {size} bytes, but at most {MAX_PARAM_BYTES} are allowed")
        model: GraphModel = maker(**spec["params"])
    except DataError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{path} has parameters that model '{spec['model']}' does not take ({str(error)[:100]})"
        ) from None
    return model


def _check_names(path: Path, found: set[str], expected: set[str]) -> None:
    if missing := sorted(expected - found):
        raise DataError(f"{path} lacks the weight '{missing[0]}'")
    if extra := sorted(found - expected):
        raise DataError(f"{path} has an unexpected weight '{extra[0][:60]}'")
