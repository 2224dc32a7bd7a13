"""Refusals of settings that an attack cannot work with, one sentence per setting."""

from __future__ import annotations

from typing import Any

from grb.errors import DataError


def at_least(least: float, **settings: Any) -> None:
    """Refuse numbers below a bound.

    >>> at_least(1, steps=20, rounds=0)
    Traceback (most recent call last):
    grb.errors.DataError: rounds is 0, but at least 1 is needed
    """
    for name, value in settings.items():
        if not value >= least:
            raise DataError(f"{name} is {value}, but at least {least} is needed")


def fractions(**settings: float) -> None:
    """Refuse numbers outside of [0, 1]."""
    for name, value in settings.items():
        if not 0 <= value <= 1:
            raise DataError(f"{name} is {value}, but 0 to 1 is needed")


def positive(**settings: float) -> None:
    """Refuse numbers that are not above 0."""
    for name, value in settings.items():
        if not value > 0:
            raise DataError(f"{name} is {value}, but a positive number is needed")


def check_rounding(max_final_samples: int, refinements: int) -> None:
    """Refuse a number of roundings below one, or of refinements below zero."""
    if max_final_samples < 1 or refinements < 0:
        raise DataError(
            f"max_final_samples is {max_final_samples} and refinements {refinements}, but at least 1 and 0 are needed"
        )
