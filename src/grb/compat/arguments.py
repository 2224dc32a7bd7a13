"""What becomes of an argument of the papers' era: taken over, said to be without effect, or refused with the new spelling."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from grb.errors import DataError

PACKAGE = str(Path(__file__).parents[1])


class PaperEraWarning(UserWarning):
    """An argument of THUDM/grb that has no effect here; each is told once per process."""


@cache
def say_once(text: str) -> None:
    """Warn the first time that a text comes up."""
    warnings.warn(text, PaperEraWarning, stacklevel=_outside())


def _outside() -> int:
    """How many frames up the caller is who is not part of grb."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def bind(order: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments by name, where ``order`` names the positional ones; None if the call does not fit.

    >>> bind("n_edge_mod ratio_delete device", (10, 0.5), {"device": "cpu"})
    {'n_edge_mod': 10, 'ratio_delete': 0.5, 'device': 'cpu'}
    """
    names = order.split()
    given = dict(zip(names, args))
    if len(args) > len(names) or given.keys() & kwargs.keys():
        return None
    return {**given, **kwargs}


def without_effect(owner: str, given: dict[str, Any], name: str, why: str, *, quiet: Iterable[Any] = ()) -> None:
    """Take an argument that changes nothing out of ``given`` and say so, unless its value asks for nothing."""
    if name not in given:
        return
    value = given.pop(name)
    if not any(value is each or (isinstance(each, bool | int | float | str) and value == each) for each in quiet):
        say_once(f"{owner}: {name} has no effect, {why}")


def refuse_unless(owner: str, given: dict[str, Any], name: str, allowed: Callable[[Any], bool], advice: str) -> None:
    """Take an argument out of ``given`` whose only allowed values are what happens anyway; refuse others with advice."""
    if name not in given:
        return
    value = given.pop(name)
    if not allowed(value):
        shown = getattr(value, "__name__", None) or repr(value)
        raise DataError(f"{owner} got {name}={shown[:60]}, but {advice}")


def take_patience(given: dict[str, Any]) -> int | None:
    """``early_stop`` and its companions as one number; None never stops early."""
    stop, patience = given.pop("early_stop", None), given.pop("early_stop_patience", 1000)
    if given.pop("early_stop_epsilon", 1e-5) != 1e-5:
        say_once("early_stop_epsilon has no effect, any improvement counts as one")
    return int(getattr(stop, "patience", patience)) if stop else None


def is_cross_entropy(loss: Any) -> bool:
    """Whether a loss is cross-entropy on logits under one of torch's names."""
    return loss in (None, functional.cross_entropy, functional.nll_loss) or isinstance(
        loss, torch.nn.CrossEntropyLoss | torch.nn.NLLLoss
    )
