"""Budgets of single targets: how many flips a targeted attack may spend on each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grb.errors import BudgetError, DataError

if TYPE_CHECKING:  # a board shows threat models without torch
    from torch import Tensor

    from grb.graph import Graph, GraphEdit

# largest factor and number of flips
MOST = 2**31
# flips per target: a number k, or (f, k) for f times the target's degree, rounded down, plus k
PerTarget = int | tuple[float, int]


def parsed_per_target(value: Any) -> PerTarget:
    """The limit as a value of its type; anything else is refused.

    >>> parsed_per_target([1, 2])
    (1.0, 2)
    """
    parts = (0.0, value) if isinstance(value, int) else value
    try:
        factor, flips = parts
        # beyond that a limit is none, and does not fit into 64 bits with a degree
        good = 0 <= factor <= MOST and flips == int(flips) and 0 <= flips <= MOST
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good or isinstance(value, bool):
        raise DataError(
            f"per_target is {value!r}, but a number of flips or (factor of the degree, flips) is needed, for instance "
            "(1, 2) for degree + 2"
        )
    return int(value) if isinstance(value, int) else (float(factor), int(flips))


def target_limits(per_target: PerTarget, graph: Graph, targets: Tensor | None) -> Tensor:
    """Flips that may be spent on every target, [t].

    Args:
        per_target: The limit of a threat model.
        graph: Before the attack; its degrees count.
        targets: Ids, [t]; None for all nodes.
    """
    factor, flips = (0.0, per_target) if isinstance(per_target, int) else per_target
    degrees = graph.adj.degrees.double()
    degrees = degrees if targets is None else degrees[targets]
    return (degrees * factor + 1e-9).floor().long() + flips


def check_per_target(per_target: PerTarget, graph: Graph, edit: GraphEdit, targets: Tensor | None) -> None:
    """Refuse an edit whose flips cannot be shared out among the targets within their limits.

    A changed edge, and each changed feature of a node, is one flip. A flip at a target counts for that target, an edge between
    two targets for one of both (whichever way fits), and a flip that touches no target for any of them, as in attacks through
    the neighbours of a target.
    """
    import torch

    ids = torch.arange(graph.n) if targets is None else targets.long().unique()  # one named twice has one budget
    limits = target_limits(per_target, graph, ids)
    position = torch.full((graph.n,), -1)
    position[ids] = torch.arange(len(ids))
    pairs = position[torch.cat([edit.add, edit.drop], dim=1)]
    known = (pairs >= 0).sum(0)
    own = pairs.max(0).values[known == 1].bincount(minlength=len(ids))
    entries = changed_entries(graph, edit)
    if edit.set_ids is not None:
        at = position[edit.set_ids]
        own.index_add_(0, at[at >= 0], entries[at >= 0])
    total, allowed = pairs.shape[1] + int(entries.sum()), int(limits.sum())
    if total > allowed:
        raise BudgetError(
            f"{total} edges and features are flipped, but the threat model allows {allowed} for {len(ids)} targets"
        )
    over = (own > limits).nonzero().flatten()
    if len(over):
        first = int(over[0])
        raise BudgetError(
            f"{int(own[first])} flips are spent on target {int(ids[first])}, but its limit is {int(limits[first])}"
        )
    between = pairs[:, known == 2]
    if between.shape[1] and not _shared_out(between, limits - own):
        raise BudgetError(
            f"{between.shape[1]} edges between targets are changed, but not all fit within the limits of their ends"
        )


def changed_entries(graph: Graph, edit: GraphEdit) -> Tensor:
    """Number of changed features of every node whose features change, [s]."""
    import torch

    if edit.set_ids is None or edit.set_x is None:
        return torch.zeros(0, dtype=torch.int64)
    x = graph.x
    before = x[edit.set_ids] if isinstance(x, torch.Tensor) else x.rows(edit.set_ids).dense()
    return (before != edit.set_x).sum(1)


def _shared_out(pairs: Tensor, room: Tensor) -> bool:
    """Whether every edge can be counted at one of its ends, no end getting more than it has room for: a maximum flow."""
    import numpy as np
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    edges, ends = pairs.shape[1], len(room)
    # 0 is the source, then the edges, then the ends, last the sink
    first = 1 + np.arange(edges)
    sink = 1 + edges + ends
    both = 1 + edges + pairs.numpy()
    rows = np.concatenate([np.zeros(edges, dtype=np.int64), first, first, 1 + edges + np.arange(ends)])
    columns = np.concatenate([first, both[0], both[1], np.full(ends, sink)])
    capacity = np.concatenate([np.ones(3 * edges), room.clamp(min=0, max=edges).numpy()]).astype(np.int32)
    flow = maximum_flow(csr_matrix((capacity, (rows, columns)), shape=(sink + 1, sink + 1)), 0, sink)
    return int(flow.flow_value) == edges
