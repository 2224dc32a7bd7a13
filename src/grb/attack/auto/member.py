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
        resume: Function from an edit to an attack that continues from it; then the deepest level continues from the best
            edit of the race instead of starting anew.
    """

    name: str
    build: Callable[[int], Attack] = field(repr=False)
    gradient_free: bool = False
    resume: Callable[[GraphEdit], Attack] | None = field(default=None, repr=False)
