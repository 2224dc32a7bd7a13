"""Perturbations by name, one after the other, and none at all."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from grb.catalogue import resolve
from grb.errors import DataError, UnknownName
from grb.graph import Graph
from grb.names import perturbation_parts
from grb.perturb.base import Fixed, Perturbation

# what the published tables call the unperturbed dataset
ORIGINAL = "-"


@dataclass(frozen=True)
class Original(Fixed):
    """The graph as it is: what every other perturbation is compared with."""

    title = ORIGINAL

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """The graph as it is."""
        return graph


@dataclass(frozen=True)
class Compose:
    """One perturbation after the other, each with its own random numbers.

    Args:
        parts: Perturbations in the order in which they are applied.

    >>> from grb.perturb import NoEdges, NoNodeFtrs
    >>> Compose((NoNodeFtrs(), NoEdges())).title
    'NoNodeFtrs+NoEdges'
    """

    parts: tuple[Perturbation, ...]
    version: ClassVar[int] = 1

    @property
    def random(self) -> bool:
        """Whether any part draws random numbers."""
        return any(part.random for part in self.parts)

    @property
    def title(self) -> str:
        """Names of the parts as in the published tables."""
        return "+".join(part.title for part in self.parts) or ORIGINAL

    def costly(self, graph: Graph) -> bool:
        """Whether the result is worth keeping on disk."""
        return any(costly(part, graph) for part in self.parts)

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """The graph after all parts, applied from left to right."""
        for part in self.parts:
            graph = part(graph, generator)
        return graph


def costly(perturbation: Perturbation, graph: Graph) -> bool:
    """Whether it takes longer to compute than to read from a disk; False for those that do not say."""
    own = getattr(perturbation, "costly", None)
    return bool(own(graph)) if own is not None else False


def remarks(perturbation: Perturbation, graph: Graph, perturbed: Graph) -> list[str]:
    """What a perturbation did other than asked for, in sentences; nothing for those that do not say.

    >>> from grb import load_dataset
    >>> from grb.perturb import NoEdges
    >>> graph = load_dataset("synth-tiny").graph
    >>> remarks(NoEdges(), graph, NoEdges()(graph))
    []
    """
    own = getattr(perturbation, "remarks", None)
    return list(own(graph, perturbed)) if own is not None else []


def build_perturbation(name: str, **changes: Any) -> Perturbation:
    """A perturbation by its catalogue name, by its name in the published tables or in the paper's code, or several of them.

    ``changes`` go to its constructor. Names joined by a plus are applied from left to right; then a change goes to every
    part that takes it.

    >>> build_perturbation("Frag-k2")
    FragK2(k=2, compat=None)
    >>> build_perturbation("NoNodeFtrs+frag-k1", compat="gtaxogym").title
    'NoNodeFtrs+Frag-k1'
    """
    parts = perturbation_parts(name)
    makers = {part: resolve("perturbation", part) for part in parts}
    takes = {part: list(inspect.signature(maker).parameters) for part, maker in makers.items()}
    for change in changes:
        known = sorted({each for names in takes.values() for each in names})
        if change not in known:
            allowed = f"Allowed: {', '.join(known)}." if known else "It takes none."
            raise UnknownName(f"parameter of perturbation '{name}'", change, known, advice=allowed)
    made = []
    for part in parts:
        own = {key: value for key, value in changes.items() if key in takes[part]}
        try:
            made.append(makers[part](**own))
        except TypeError as error:
            raise DataError(f"perturbation '{part}' cannot be made: {error}") from None
    return made[0] if len(made) == 1 else Compose(tuple(made))
