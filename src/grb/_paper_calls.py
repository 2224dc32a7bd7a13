"""Calls in the spelling of THUDM/grb: what a class or method of ours does not take is asked of :mod:`grb.compat`.

Several import paths of the papers' era are our own modules (``grb.model.torch.gcn``, ``grb.attack.injection.fgsm``), so that
their classes meet calls in both spellings. A call that fits our signature never leaves it. Any other one is looked up in
``grb.compat``, which is imported by name at that moment only: no module of ours depends on it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

HOME = "grb.compat.calls"
_Method = TypeVar("_Method", bound=Callable[..., Any])


class PaperCalls(type):
    """Metaclass of classes that may be called with THUDM/grb's arguments."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance; arguments that the class does not take are translated, or refused as Python refuses them."""
        if not _fits(cls, args, kwargs):
            return importlib.import_module(HOME).construct(cls, args, kwargs)
        return super().__call__(*args, **kwargs)

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of the constructor; inspect would show the one of ``__call__`` above."""
        return _signature(cls)


def paper_calls(ours: Callable[..., bool] | None = None) -> Callable[[_Method], _Method]:
    """Let a method take THUDM/grb's arguments too.

    Args:
        ours: Gets the arguments of a call that fits the signature; False if it is one in the other spelling all the same.
    """

    def decorate(method: _Method) -> _Method:
        own = inspect.signature(method)

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = own.bind(*args, **kwargs)
            except TypeError:
                return importlib.import_module(HOME).call(method, args, kwargs)
            if ours is not None and not ours(**bound.arguments):
                return importlib.import_module(HOME).call(method, args, kwargs)
            return method(*args, **kwargs)

        return cast(_Method, call)

    return decorate


def paper_attribute(holder: object, name: str) -> Any:
    """An attribute that models had in THUDM/grb (``adj_norm_func``, ``feat_norm``, ``model_type``, ``model_name``)."""
    if name not in ("adj_norm_func", "feat_norm", "model_type", "model_name"):
        raise AttributeError(f"'{type(holder).__name__}' object has no attribute '{name}'")
    return importlib.import_module("grb.compat.models").attribute(holder, name)


def prepare_paper_module(module: object, adj: Any) -> Any:
    """The adjacency for a plain ``forward(x, adj)`` whose attribute ``adj_norm_func`` says how it wants it."""
    return importlib.import_module("grb.compat.adjacency").prepared(module, adj)


@cache
def _signature(cls: type) -> inspect.Signature:
    own = inspect.signature(cls.__init__)  # type: ignore[misc]
    return own.replace(parameters=list(own.parameters.values())[1:], return_annotation=inspect.Signature.empty)


def _fits(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    init: Any = cls.__init__  # type: ignore[misc]
    renamed = getattr(init, "paper_names", ())  # names that the constructor itself replaces
    try:
        _signature(cls).bind(*args, **{name: value for name, value in kwargs.items() if name not in renamed})
    except TypeError:
        return False
    return True
