"""Edits of a collection, graph by graph: which graph a change belongs to, one edit as many, and many as one.

Nodes that an edit appends to a collection have the ids ``n``, ``n + 1``, ... in the edit, as in a single graph; they belong
to the graph that their edges lead to, and stand at its end once the edit is applied.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph.edit import GraphEdit, owners
from grb.graph.graph import Graph, _rows


def get_example(graph: Graph, number: int) -> Graph:
    """One graph of a collection as a single graph, with its labels if they are those of nodes."""
    ptr = _bounds(graph)
    start, stop = int(ptr[number]), int(ptr[number + 1])
    nodes = torch.arange(start, stop)
    y = graph.y[start:stop] if graph.y is not None and len(graph.y) == graph.n else None
    return Graph(graph.adj.subgraph(nodes), _rows(graph.x, nodes), y)


def unbatch_edit(graph: Graph, edit: GraphEdit) -> dict[int, GraphEdit]:
    """What an edit of a collection does to each graph that it touches, with ids of nodes within that graph."""
    owner, ptr = owners(graph, edit), _bounds(graph)
    new = torch.arange(graph.n, edit.n_after)
    sets = torch.empty(0, dtype=torch.int64) if edit.set_ids is None else edit.set_ids
    touched = torch.cat([owner[edit.add[0]], owner[edit.drop[0]], owner[new], owner[sets]]).unique()
    found = {}
    for number in touched.tolist():
        start, stop = int(ptr[number]), int(ptr[number + 1])
        own_new = new[owner[new] == number]
        add, drop = (pairs[:, owner[pairs[0]] == number] for pairs in (edit.add, edit.drop))
        # new nodes are numbered behind the graph's own, in the order that they have
        later = stop - start + torch.searchsorted(own_new, add)
        own_sets = owner[sets] == number
        found[number] = GraphEdit(
            n=stop - start,
            add=torch.where(add < graph.n, add - start, later),
            drop=drop - start,
            new_x=None if edit.new_x is None or not len(own_new) else edit.new_x[own_new - graph.n],
            set_ids=sets[own_sets] - start if own_sets.any() else None,
            set_x=edit.set_x[own_sets] if edit.set_x is not None and own_sets.any() else None,
        )
    return found


def batch_edits(graph: Graph, parts: Mapping[int, GraphEdit]) -> GraphEdit:
    """One edit of a collection from edits of some of its graphs: the inverse of :func:`unbatch_edit`."""
    ptr, first = _bounds(graph), graph.n
    add, drop, new_x, set_ids, set_x = [], [], [], [], []
    for number, part in sorted(parts.items()):
        start, size = int(ptr[number]), int(ptr[number + 1] - ptr[number])
        if part.n != size or part.cut:
            raise DataError(
                f"an edit of {part.n} nodes is given for graph {number} of the collection, which has {size}"
            )
        add.append(torch.where(part.add < size, part.add + start, part.add - size + first))
        drop.append(part.drop + start)
        first += part.num_new
        if part.new_x is not None:
            new_x.append(part.new_x)
        if part.set_ids is not None and part.set_x is not None:
            set_ids.append(part.set_ids + start)
            set_x.append(part.set_x)
    none = torch.empty(2, 0, dtype=torch.int64)
    return GraphEdit(
        n=graph.n,
        add=torch.cat([none, *add], dim=1),
        drop=torch.cat([none, *drop], dim=1),
        new_x=torch.cat(new_x) if new_x else None,
        set_ids=torch.cat(set_ids) if set_ids else None,
        set_x=torch.cat(set_x) if set_x else None,
    )


def _bounds(graph: Graph) -> Tensor:
    if graph.ptr is None:
        raise DataError("this is a single graph, but a collection with boundaries is needed")
    return graph.ptr
