"""One entrant of the standard ensemble: a named attack that can be run cheaply, thoroughly or deeply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from grb.attack.base import Attack
from grb.graph import GraphEdit

LEVELS = 3


@dataclass(frozen=True)
class Member:
    """A named attack at several levels of effort.

    Args:
        name: Name in the record, for instance ``"pgd-classes"``.
        build: Function from a level of effort to the attack: 0 a cheap probe, 1 the usual effort, 2 as deep as it pays.
        gradient_free: Whether the attack asks for outputs alone.
        reference: An attack of the package with its own settings and the draws that it makes alone with the same seed; it runs
            whatever becomes of the others, so that the race never leaves more than it does.
        relaxed: Whether it runs through the relaxations of a model alone, through each of them.
        resume: Function from an edit to an attack that continues from it, which ends the race; None if it cannot.
    """

    name: str
    build: Callable[[int], Attack] = field(repr=False)
    gradient_free: bool = False
    reference: bool = False
    relaxed: bool = False
    resume: Callable[[GraphEdit], Attack] | None = field(default=None, repr=False)
