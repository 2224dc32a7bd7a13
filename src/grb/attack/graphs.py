"""Parts of attacks on whole graphs: types of nodes instead of labels, and remarks about many graphs as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from grb.graph import CSR, dense


class Note(str):
    """A remark about an attack; numbers are kept beside the text, so that remarks about several graphs can be merged.

    >>> Note("{used} of {budget} edges", used=1, budget=3)
    '1 of 3 edges'
    """

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, int]

    def __new__(cls, template: str, **values: int) -> Note:
        """Fill the template with the values."""
        made = super().__new__(cls, template.format(**values) if values else template)
        made.template, made.values = template, values
        return made

    @property
    def kind(self) -> str:
        """The text without its numbers."""
        return self.template.format(**dict.fromkeys(self.values, "#")) if self.values else self.template


def node_types(x: Tensor | CSR) -> Tensor:
    """What DICE takes for the labels of nodes whose graph is classified, [n]: the type that a node's features tell.

    It is the position of the one in the columns that hold nothing but zeros and ones, if every row has exactly one there;
    else all nodes have the same type.

    >>> node_types(torch.tensor([[23.0, 1, 0], [10.0, 0, 1], [25.0, 1, 0]])).tolist()
    [0, 1, 0]
    """
    rows = dense(x)
    flags = rows[:, ((rows == 0) | (rows == 1)).all(0)]
    if not flags.shape[1] or not (flags.sum(1) == 1).all():
        return torch.zeros(len(rows), dtype=torch.int64)
    return flags.argmax(1)


def merge_notes(notes: Sequence[Sequence[Note]]) -> tuple[Note, ...]:
    """Remarks that differ in numbers alone once, with the range of every number and how many graphs they are about.

    >>> few, many = (Note("{used} of {budget} edges", used=used, budget=3) for used in (1, 2))
    >>> merge_notes([[few], [many], [], [Note("no labels")]])
    ('in 2 graphs: 1 to 2 of 3 edges', 'in 1 graph: no labels')
    """
    kinds: dict[str, list[Note]] = {}
    for own in notes:
        for kind, note in {note.kind: note for note in own}.items():
            kinds.setdefault(kind, []).append(note)
    return tuple(
        Note(f"in {len(each)} graph{'s' * (len(each) > 1)}: {_ranged(each)}") for _, each in sorted(kinds.items())
    )


def _ranged(notes: Sequence[Note]) -> str:
    ends = {name: sorted({note.values[name] for note in notes}) for name in notes[0].values}
    ranges = {name: str(own[0]) if len(own) == 1 else f"{own[0]} to {own[-1]}" for name, own in ends.items()}
    return notes[0].template.format(**ranges) if ranges else notes[0]
