"""Models on disk: weights as safetensors, how to rebuild the model as JSON in the same file; never a pickle."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from grb._version import __version__
from grb.atomic import write_atomic
from grb.catalogue import canonical, resolve
from grb.errors import DataError, GRBError
from grb.model.adapters import wrap
from grb.model.base import GraphModel, predict

if TYPE_CHECKING:
    from grb.dataset import Dataset

FORMAT = 1
# what an exported model said of its dataset, beside its weights; no module can have a weight of this name
LOGITS = "grb:logits"
# as far as other machines and numbers of threads round
RELATIVE, ABSOLUTE = 1e-3, 1e-4


def save_model(
    model: nn.Module,
    path: str | os.PathLike[str],
    *,
    module: str | None = None,
    params: Mapping[str, Any] | None = None,
    **meta: Any,
) -> Path:
    """Write a model: whole or not at all.

    Args:
        model: A catalogued model (it knows its name and parameters), or any other with ``module``.
        path: The file, by habit ``*.safetensors``.
        module: ``package.module:function`` that makes a model of others, such as one wrapped by :func:`grb.wrap`; a file names
            it, but only :func:`load_model` with the same name in ``trusted`` imports it.
        params: Its arguments as JSON values.
        meta: Plain values kept beside it (dataset, seed, score, ...).
    """
    if module is not None:
        if ":" not in module:
            raise DataError(f"module is '{module}', but package.module:function is needed, which makes the model")
        return _save(model, path, module, dict(params or {}), meta)
    if not isinstance(model, GraphModel):
        raise DataError(
            f"a {type(model).__name__} cannot be rebuilt from a file; only grb's own models can be saved whole, of others "
            "grb.trainer.save_weights(module, path) writes the weights, and `grb audit package.module:function --weights FILE` "
            "uses them"
        )
    if ":" not in model.name:
        canonical("model", model.name)  # what has no name cannot be loaded again
    return _save(model, path, model.name, dict(model.params), meta)


def export_model(
    model: nn.Module,
    path: str | os.PathLike[str],
    dataset: Dataset,
    *,
    module: str,
    params: Mapping[str, Any] | None = None,
    **meta: Any,
) -> Path:
    """Write a model of others for boards: its weights, the code that makes it, and what it says of a dataset.

    The model is made again from the file before this returns, so that one that its code does not give back is refused here.
    Whoever scores the file compares its answers with those in it once more (:func:`check_logits`).

    Args:
        model: A trained module, wrapped by :func:`grb.wrap` or not.
        path: The file, by habit ``*.safetensors``.
        dataset: What it is for; its name and fingerprint enter the file.
        module: ``package.module:function`` that makes the module, which others must have too.
        params: Arguments of that function as JSON values.
        meta: Plain values kept beside it (seed, ...).
    """
    if not isinstance(model, nn.Module):
        raise DataError(f"a {type(model).__name__} cannot be exported; a trained torch.nn.Module is needed")
    if ":" not in module:
        raise DataError(f"module is '{module}', but package.module:function is needed, which makes the model")
    own = model if hasattr(model, "prepare") else wrap(model)
    said = predict(own, dataset.graph).detach().cpu()
    about = {"dataset": dataset.name, "fingerprint": dataset.fingerprint(), **meta}
    written = _save(own, path, module, dict(params or {}), about, said)
    try:
        check_logits(written, load_model(written, trusted=module), dataset)
    except GRBError as error:
        written.unlink()
        raise DataError(f"{module} does not make this model again: {error}") from None
    return written


def named_code(path: str | os.PathLike[str]) -> str:
    """The ``package.module:function`` that a file names for its model, without importing it; empty for models of grb."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stored:
            named = str(_read_spec(Path(path), stored.metadata())["model"])
    except SafetensorError as error:
        raise _no_safetensors(path, error) from None
    return named if ":" in named else ""


def exported_logits(path: str | os.PathLike[str]) -> Tensor | None:
    """What the model of a file said of its dataset when it was exported, [n, classes]; None if the file does not say."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as stored:
        return stored.get_tensor(LOGITS) if LOGITS in stored.keys() else None  # noqa: SIM118


def check_logits(path: str | os.PathLike[str], model: nn.Module, dataset: Dataset) -> None:
    """Refuse a model that does not say of a dataset what its file says it did when it was exported.

    Args:
        path: The file.
        model: The model that was made from it.
        dataset: What it was exported for.
    """
    given = exported_logits(path)
    if given is None:
        raise DataError(f"{path} does not hold what its model says of the dataset; grb.export_model writes such a file")
    found = predict(model, dataset.graph).detach().cpu()
    if given.shape != found.shape or not torch.allclose(given.double(), found.double(), RELATIVE, ABSOLUTE):
        shapes = given.shape == found.shape
        how = f"by up to {float((given - found).abs().max()):.2g}" if shapes else f"in shape, {list(found.shape)}"
        raise DataError(
            f"the model of {path} says something else of '{dataset.name}' than when it was exported (logits differ {how}); "
            "is the code another, or is it random in evaluation?"
        )


def _save(
    model: nn.Module,
    path: str | os.PathLike[str],
    name: str,
    params: dict[str, Any],
    meta: Mapping[str, Any],
    said: Tensor | None = None,
) -> Path:
    from safetensors.torch import save

    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    if said is not None:
        tensors[LOGITS] = said.float().contiguous()
    spec: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "model": name,
        "params": params,
        "meta": dict(meta),
    }
    if getattr(model, "trained_as", None) is not None:
        spec["trained_as"] = model.trained_as
    text = json.dumps(spec, sort_keys=True, allow_nan=False)
    data = save(tensors, metadata={"grb": text})

    def write(stream: IO[bytes]) -> None:
        stream.write(data)

    return write_atomic(path, write)


def load_model(path: str | os.PathLike[str], *, trusted: str | None = None) -> GraphModel:
    """The model of a file in evaluation mode; NaN weights, wrong shapes and missing or extra weights are refused.

    Args:
        path: The file.
        trusted: The one ``package.module:Class`` that the file may name; no other code is imported because a file says so.
    """
    return load_model_with_meta(path, trusted=trusted)[0]


def load_model_with_meta(
    path: str | os.PathLike[str], *, trusted: str | None = None
) -> tuple[GraphModel, dict[str, Any]]:
    """A model of a file, as :func:`load_model` reads it, and the values kept beside it."""
    model, spec = load_model_with_spec(path, trusted=trusted)
    return model, spec["meta"]


def load_model_with_spec(
    path: str | os.PathLike[str], *, trusted: str | None = None
) -> tuple[GraphModel, dict[str, Any]]:
    """A model of a file, as :func:`load_model` reads it, and what the file says of it: ``model``, ``params``, ``meta``."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise DataError(f"no model file {path}; `grb train MODEL -o FILE` writes one")
    try:
        with safe_open(path, framework="pt") as stored:
            spec = _read_spec(path, stored.metadata())
            if ":" in spec["model"] and spec["model"] != trusted:
                code = spec["model"][:60]
                raise DataError(
                    f"{path} names code '{code}' instead of a catalogued model; it is not imported. If you trust it, "
                    f"grb.load_model(file, trusted='{code}') in Python is the model; a recipe that names it needs no file"
                )
            named = [name for name in stored.keys() if name != LOGITS]  # noqa: SIM118
            shapes = {name: list(stored.get_slice(name).get_shape()) for name in named}
            model = _rebuild(path, spec, shapes)
            expected = model.state_dict()
            tensors = {name: stored.get_tensor(name) for name in expected}
    except SafetensorError as error:
        raise _no_safetensors(path, error) from None
    for name, tensor in tensors.items():
        if tensor.dtype != expected[name].dtype:
            raise DataError(f"weight '{name}' of {path} has dtype {tensor.dtype}, but {expected[name].dtype} is needed")
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise DataError(f"weight '{name}' of {path} holds NaN or infinite values")
    model.load_state_dict(tensors, assign=True)
    model.trained_as = spec.get("trained_as")
    return model.eval(), spec


def save_weights(module: nn.Module, path: str | os.PathLike[str]) -> Path:
    """Write the weights of any module as safetensors, whole or not at all; the code that makes it is not in the file."""
    from safetensors.torch import save

    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in module.state_dict().items()}
    return write_atomic(path, save(tensors))


def load_weights(module: nn.Module, path: str | os.PathLike[str]) -> None:
    """Give a module the weights of a safetensors file; names, shapes and NaN are checked, a pickle is never read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(path)
    if not path.is_file():
        raise DataError(f"no file of weights {path}; safetensors.torch.save_file(module.state_dict(), path) writes one")
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise DataError(
            f"{path} is not a safetensors file ({str(error)[:100]}); pickled weights (.pt, .pth) are never loaded: write them "
            "again with safetensors.torch.save_file(module.state_dict(), path)"
        ) from None
    found = {name: list(tensor.shape) for name, tensor in tensors.items()}
    _check_shapes(path, found, {name: list(tensor.shape) for name, tensor in module.state_dict().items()})
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise DataError(f"weight '{name}' of {path} holds NaN or infinite values")
    module.load_state_dict(tensors)


def _no_safetensors(path: str | os.PathLike[str], error: Exception) -> DataError:
    return DataError(f"{path} is not a safetensors file ({str(error)[:100]}); pickled models are never loaded")


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
        if "trained_as" in spec and not _is_name(spec["trained_as"]):
            raise ValueError("trained_as is no name")
    except (KeyError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path} does not say which model it is ({error}); only files that grb wrote are read. Weights of a module of "
            "your own: `grb audit package.module:function --weights FILE`, or grb.wrap(module) in Python"
        ) from None
    if spec["format"] != FORMAT:
        raise DataError(f"{path} has checkpoint format {spec['format']}, but this version reads {FORMAT}; update grb")
    return spec


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[\w.:+-]{1,80}", text) is not None


def _rebuild(path: Path, spec: dict[str, Any], shapes: Mapping[str, list[int]]) -> GraphModel:
    """The model without memory for its weights, so that a file which asks for a huge one costs nothing."""
    maker = resolve("model", spec["model"])
    _check_sizes(path, spec["params"], most=sum(math.prod(shape) for shape in shapes.values()))
    try:
        with torch.device("meta"):
            made: Any = maker(**spec["params"])
        if not isinstance(made, GraphModel):  # buffers of others that are not stored must hold their values
            made = maker(**spec["params"])
            made = made if hasattr(made, "prepare") else wrap(made)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{path} has parameters that model '{spec['model']}' does not take ({str(error)[:100]})"
        ) from None
    model: GraphModel = made
    _check_shapes(path, shapes, {name: list(tensor.shape) for name, tensor in model.state_dict().items()})
    return model


def _check_sizes(path: Path, params: Mapping[str, Any], *, most: int) -> None:
    """No width and no number of layers exceeds the number of weights, so that building costs no more than reading."""
    for key, value in params.items():
        for size in value if isinstance(value, list) else [value]:
            if isinstance(size, int) and size > max(most, 2**10):
                raise DataError(f"{path} asks for {key}={size}, but holds {most} weights")


def _check_shapes(path: Path, found: Mapping[str, list[int]], expected: Mapping[str, list[int]]) -> None:
    if missing := sorted(expected.keys() - found.keys()):
        raise DataError(f"{path} lacks the weight '{missing[0]}'")
    if extra := sorted(found.keys() - expected.keys()):
        raise DataError(f"{path} has an unexpected weight '{extra[0][:60]}'")
    for name, shape in expected.items():
        if found[name] != shape:
            raise DataError(f"weight '{name}' of {path} has shape {found[name]}, but {shape} is needed")
