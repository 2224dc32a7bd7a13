"""From a name to what it stands for; imported only when it is used.

A full ``"package.module:Attribute"`` is accepted wherever a name is. The names are listed in :mod:`grb.entries`, composed
ones such as ``gat-jaccard`` are read by :mod:`grb.names`.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import redirect_stdout
from functools import cache
from importlib import resources
from typing import Any

from grb.entries import DEFENDED, KINDS, Entry, entries, find, kinds
from grb.errors import DataError, GRBError
from grb.names import ModelName, is_import_path, perturbation_parts, unknown_name

__all__ = [
    "KINDS",
    "Entry",
    "canonical",
    "entries",
    "entry",
    "is_third_party",
    "kinds",
    "preset",
    "resolve",
    "spelling",
]

_POOLED = "grb.model.pooled:pooled"
_WRAPPED = "grb.model.wrapped:wrapped"


def canonical(kind: str, name: str) -> str:
    """The catalogue's spelling of a name or alias; unknown names are refused with the nearest one."""
    own = find(kind, str(name))
    if own is not None:
        return own
    composed = ModelName.parse(name) if kind == "model" else None
    if composed is None or composed.has_training_options or composed.has_import_path:
        raise unknown_name(kind, str(name))
    return composed.architecture


def spelling(kind: str, name: str) -> str:
    """The catalogue's spelling of a name or alias; an import path stays as it is."""
    return name if is_import_path(name) else canonical(kind, name)


def entry(kind: str, name: str) -> Entry:
    """The entry behind a name; a composed model that is not listed gets one made up."""
    own = canonical(kind, name)
    listed = entries(kind).get(own)
    if listed is not None:
        return listed
    composed = ModelName.parse(own)
    if composed.wrapper:
        return Entry(_WRAPPED, f"{composed.inner}, {entries('defense')[composed.wrapper].summary}", group="defense")
    if composed.pooled:
        return Entry(_POOLED, f"{composed.node_classifier}, pooled over the nodes of every graph", group="graphs")
    return Entry(DEFENDED, "a model behind graph preprocessing", group="defense")


def resolve(kind: str, name: str) -> Any:
    """The class or function behind a name or a ``"package.module:Attribute"``."""
    if is_import_path(str(name)):
        return _imported(kind, name, name)
    own = canonical(kind, name)
    found = _imported(kind, name, entry(kind, own).target)
    composed = ModelName.parse(own) if kind == "model" else None
    if composed is not None and composed.wrapper:
        return found(composed.inner.architecture, composed.wrapper)
    if composed is not None and composed.pooled:
        return found(composed.node_classifier.architecture)
    if composed is not None and composed.preprocess:
        *inner, part = composed.preprocess
        return found(ModelName(composed.base, tuple(inner)).architecture, part)
    return found


@cache
def is_third_party(kind: str, name: str) -> bool:
    """Whether a name leads to code that does not come with grb.

    >>> is_third_party("model", "gat-jaccard+at"), is_third_party("model", "my_package.models:Net+ln")
    (False, True)
    """
    try:
        if kind == "model":
            return ModelName.parse(name).is_third_party
        parts = perturbation_parts(name) if kind == "perturbation" else (name,)
        targets = [part if is_import_path(part) else entry(kind, part).target for part in parts]
    except GRBError:  # the user's data, which is no code; or a name that leads nowhere
        return is_import_path(name)
    return not all(target.startswith("grb.") for target in targets)


def _imported(kind: str, name: str, target: str) -> Any:
    module, _, attribute = target.partition(":")
    if not attribute.isidentifier():  # before the module is imported, which runs it
        raise DataError(
            f"{kind} '{name}' points to '{attribute}', but a name behind the colon is needed, as in package:Class"
        )
    try:
        with redirect_stdout(sys.stderr):  # whatever a module says is not our output
            return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name and not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists but one of its own imports is missing: that is the sentence to show
        raise DataError(
            f"{kind} '{name}' points to module '{module}', which cannot be found; install it, or run grb in its folder"
        ) from None
    except AttributeError:
        raise DataError(f"{kind} '{name}' points to '{attribute}', which module '{module}' does not have") from None
    except Exception as error:
        if target.startswith("grb."):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DataError(f"{kind} '{name}' points to module '{module}', which cannot be imported ({reason})") from error


@cache
def preset(name: str) -> Any:
    """A table of the papers from the package's own ``presets/<name>.yaml``; treat it as read-only."""
    import yaml

    text = resources.files("grb").joinpath("presets").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)
