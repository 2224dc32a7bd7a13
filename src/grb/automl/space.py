"""Search spaces: which values of which settings a search may try."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from grb.catalogue import canonical, preset
from grb.errors import DataError, UnknownName
from grb.names import ModelName

Kind = Literal["models", "attacks"]


class Trial(Protocol):
    """What a sampler offers; Optuna's trials do."""

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """Suggest one of several values."""

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """Suggest a whole number of a range."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """Suggest a number of a range."""


@dataclass(frozen=True)
class Dimension:
    """One setting: a list of choices, or a range.

    Args:
        choice: Values to choose from; a range if empty.
        low: Lower end of the range.
        high: Upper end.
        log: Whether equal ratios count as equal steps.
        whole: Whether only whole numbers are allowed.
    """

    choice: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if self.choice:
            return
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise DataError(f"a range is from {self.low} to {self.high}, but a lower and a higher end are needed")
        if self.log and self.low <= 0:
            raise DataError(f"a range with log begins at {self.low}, but must begin above 0")

    @classmethod
    def of(cls, name: str, given: Any) -> Dimension:
        """Read JSON values as in ``{choice: [1, 2]}`` or ``{low: 0.1, high: 1, log: true}``."""
        known = ("choice", "low", "high", "log", "step")
        if not isinstance(given, Mapping):
            raise DataError(
                f"the space of {name} is {given!r}, but {{choice: [...]}} or {{low: ..., high: ...}} is needed"
            )
        for key in given:
            if key not in known:
                raise UnknownName(
                    f"key in the space of {name}", str(key), known, advice=f"Allowed: {', '.join(known)}."
                )
        if "choice" in given and len(given) > 1:
            raise DataError(f"the space of {name} has a choice and a range; give one of them")
        if "step" in given and given["step"] != 1:
            raise DataError(
                f"the step of {name} is {given['step']!r}, but only 1, for whole numbers, is known; list a choice"
            )
        if not isinstance(given.get("log", False), bool):
            raise DataError(f"log of {name} is {given['log']!r}, but true or false is needed")
        if "choice" in given:
            choice = given["choice"]
            if not isinstance(choice, list | tuple) or not choice:
                raise DataError(f"the choices of {name} are {choice!r}, but a list of values is needed")
            return cls(choice=tuple(choice))
        try:
            low, high = float(given["low"]), float(given["high"])
        except (KeyError, TypeError, ValueError):
            raise DataError(f"the space of {name} needs a choice, or a low and a high end") from None
        return cls(low=low, high=high, log=bool(given.get("log", False)), whole=given.get("step") == 1)

    def suggest(self, trial: Trial, name: str) -> Any:
        """Let a trial suggest a value of this setting."""
        if self.choice:
            return trial.suggest_categorical(name, list(self.choice))
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


Space = Mapping[str, Dimension]


def space_of(values: Mapping[str, Any]) -> dict[str, Dimension]:
    """Read a space from JSON values.

    >>> space_of({"lr": {"choice": [0.1, 0.01]}})["lr"].choice
    (0.1, 0.01)
    """
    return {name: Dimension.of(name, given) for name, given in values.items() if given is not None}


def default_space(kind: Kind, name: str) -> dict[str, Dimension]:
    """Return the space that comes with grb for a model, a defense or an attack."""
    table = preset("spaces")[kind]
    base = canonical("attack", name) if kind == "attacks" else ModelName.parse(name).architecture
    values = {**table["default"], **table.get(base, {})}
    if not {key for key, value in values.items() if value is not None}:
        raise DataError(
            f"there is no space for {kind[:-1]} '{name}'; give one, as in {{lr: {{low: 0.001, high: 0.1, log: true}}}}"
        )
    return space_of(values)


def settings_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for a model or an attack: a width and a number of layers become ``hidden_features``.

    >>> settings_of({"width": 64, "layers": 3, "lr": 0.01})
    {'lr': 0.01, 'hidden_features': [64, 64]}
    """
    given = dict(values)
    width, layers = given.pop("width", None), given.pop("layers", None)
    if layers is not None and layers < 1:
        raise DataError(f"layers is {layers}, but at least 1 is needed")
    if width is not None:
        given["hidden_features"] = [width] * ((2 if layers is None else layers) - 1)
    return given
