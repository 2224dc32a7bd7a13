"""What an attacker's nodes, features and edges must look like, beyond how many there may be: checked, and projected onto.

Values of features are those that models see, after any normalisation;
:func:`grb.dataset.constraints_of` turns names and raw units into them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from grb.errors import BudgetError, DataError, UnknownName

if TYPE_CHECKING:
    from torch import Tensor

    from grb.graph import Graph, GraphEdit

# features are float32, and so is what a projection gives
SLACK = 1e-5
EVERYBODY, TARGETS = "everybody", "targets"


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0


def _are_numbers(values: Any) -> bool:
    return isinstance(values, tuple) and all(
        not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value) for value in values
    )


def _is_column(row: Any, length: int) -> bool:
    """Whether a row is a column and numbers of it, as many as given or, if 0, one or more."""
    if not _are_numbers(row) or not row or row[0] != int(row[0]) or row[0] < 0:
        return False
    return len(row) == length if length else len(row) > 1


def _is_group(row: Any) -> bool:
    if not isinstance(row, tuple) or len(row) != 3 or not all(map(_are_numbers, row)):
        return False
    columns, off, on = row
    same = len(columns) == len(off) == len(on) > 0 and len(set(columns)) == len(columns)
    return same and all(map(_is_count, columns)) and all(a != b for a, b in zip(off, on, strict=True))


_SHAPES: dict[str, Callable[[Any], bool]] = {
    "ranges": lambda row: _is_column(row, 3) and _is_count(row[0]),
    "fixed": _is_count,
    "grids": lambda row: _is_column(row, 3) and _is_count(row[0]),
    "choices": lambda row: _is_column(row, 0),
    "groups": _is_group,
}


@dataclass(frozen=True)
class Constraints:
    """Limits of an attacker; all of them hold at once.

    Args:
        ranges: Lowest and highest value of columns, as (column, low, high).
        fixed: Columns that no original node may change, and in which injected nodes have a value that occurs in the data.
        grids: Columns with values on a grid, as (column, offset, step): whole numbers after a normalisation.
        choices: Columns with some values only, as (column, value, value, ...): 0 and 1 after a normalisation.
        groups: One-hot columns, as ((columns), (values when off), (values when on)): exactly one is on.
        connect: Who may get a new edge: ``everybody``, ``targets``, or ids of nodes.
        max_degree: Largest degree that an original node may have after a new edge.
        node_cost: Cost of an injected node.
        edge_cost: Cost of a changed edge.
        feature_cost: Cost of a feature of an original node that is changed.
        cost: What all changes may cost together; None for no limit.
    """

    ranges: tuple[tuple[int, float, float], ...] = ()
    fixed: tuple[int, ...] = ()
    grids: tuple[tuple[int, float, float], ...] = ()
    choices: tuple[tuple[float, ...], ...] = ()
    groups: tuple[tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]], ...] = ()
    connect: str | tuple[int, ...] = EVERYBODY
    max_degree: int | None = None
    node_cost: float = 0.0
    edge_cost: float = 0.0
    feature_cost: float = 0.0
    cost: float | None = None

    def __post_init__(self) -> None:
        self._check_types()
        for name in ("node_cost", "edge_cost", "feature_cost", "cost", "max_degree"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise DataError(f"{name} is {value}, but a finite number that is not negative is needed")
        for column, low, high in self.ranges:
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise DataError(
                    f"the range of column {column} is [{low}, {high}], but a lower and an upper end are needed"
                )
        for column, offset, step in self.grids:
            if not (math.isfinite(offset) and math.isfinite(step) and step > 0):
                raise DataError(f"the grid of column {column} is {offset} + k * {step}, but a positive step is needed")
        if isinstance(self.connect, str) and self.connect not in (EVERYBODY, TARGETS):
            raise DataError(f"connect is '{self.connect}', but 'everybody', 'targets' or ids of nodes are needed")

    def _check_types(self) -> None:
        """Refuse what a file may hold in place of columns, ids and numbers: a check that meets it would break, or pass."""
        for name, fit in _SHAPES.items():
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(map(fit, value)):
                raise DataError(f"{name} is {str(value)[:60]}, which is not what the constraint of this name takes")
        if self.max_degree is not None and not _is_count(self.max_degree):
            raise DataError(f"max_degree is {self.max_degree!r}, but a whole number is needed")
        for name in ("node_cost", "edge_cost", "feature_cost", "cost"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
                raise DataError(f"{name} is {value!r}, but a number is needed")
        connect: Any = self.connect
        if not isinstance(connect, str) and not (isinstance(connect, tuple) and all(map(_is_count, connect))):
            raise DataError(f"connect is {str(connect)[:60]}, but 'everybody', 'targets' or ids of nodes are needed")

    @property
    def columns(self) -> list[int]:
        """All columns that are named, with repetitions."""
        named = [int(row[0]) for row in (*self.ranges, *self.grids, *self.choices)]
        return [*named, *self.fixed, *(column for row in self.groups for column in row[0])]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is at its default is left out."""

        def listed(value: Any) -> Any:
            return [listed(each) for each in value] if isinstance(value, tuple) else value

        return {
            each.name: listed(getattr(self, each.name))
            for each in fields(self)
            if getattr(self, each.name) != each.default
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Constraints:
        """Back from :meth:`to_dict`; anything else is refused."""
        known = [each.name for each in fields(cls)]

        def frozen(value: Any) -> Any:
            return tuple(frozen(each) for each in value) if isinstance(value, list | tuple) else value

        for name in values:
            if name not in known:
                raise UnknownName("constraint", str(name), known, advice=f"Allowed: {', '.join(known)}.")
        return cls(**{str(name): frozen(value) for name, value in values.items()})

    def __str__(self) -> str:
        said = []
        counts = {"columns in ranges": self.ranges, "fixed columns": self.fixed, "whole-number columns": self.grids}
        counts |= {"columns of some values": self.choices, "one-hot groups": self.groups}
        said += [f"{len(listed)} {what}" for what, listed in counts.items() if listed]
        if self.connect != EVERYBODY:
            said.append(
                "new edges to targets alone" if self.connect == TARGETS else f"new edges to {len(self.connect)} nodes"
            )
        if self.max_degree is not None:
            said.append(f"degrees up to {self.max_degree}")
        if self.cost is not None:
            said.append(f"costs up to {self.cost:g}")
        return ", ".join(said)

    # ------------------------------------------------------------ checking

    def check(self, graph: Graph, edit: GraphEdit, targets: Tensor | None) -> dict[str, float]:
        """Refuse an edit that breaks a constraint; otherwise return what it costs."""
        import torch

        beyond = [column for column in self.columns if column >= graph.num_features]
        if beyond:
            raise DataError(f"the constraints name column {beyond[0]}, but the graph has {graph.num_features} features")
        ends = edit.add[edit.add < graph.n]
        if len(ends) and self.connect != EVERYBODY:
            if self.connect == TARGETS and targets is None:
                raise DataError("the constraints connect=targets, but nobody says which nodes these are; give targets")
            outside = ends[~torch.isin(ends, self.allowed(graph, targets))]
            if len(outside):
                raise BudgetError(
                    f"node {int(outside[0])} gets a new edge, but the constraints connect={self._connect()}"
                )
        if self.max_degree is not None and len(ends):
            self._check_degrees(graph, edit)
        for rows, what in ((edit.new_x, "injected"), (edit.set_x, "changed")):
            if rows is not None:
                self._check_rows(rows, what)
        if self.fixed:
            self._check_fixed(graph, edit)
        cost = self.cost_of(graph, edit)
        if self.cost is not None and cost > self.cost * (1 + 1e-9):
            raise BudgetError(f"the edit costs {cost:g}, but the constraints allow cost={self.cost:g}")
        return {"cost": cost} if self.cost is not None else {}

    def allowed(self, graph: Graph, targets: Tensor | None) -> Tensor:
        """Ids of the nodes that may get a new edge."""
        import torch

        if self.connect == EVERYBODY or (self.connect == TARGETS and targets is None):
            return torch.arange(graph.n)
        if self.connect == TARGETS:
            assert targets is not None
            return targets
        return torch.tensor(self.connect, dtype=torch.int64)

    def cost_of(self, graph: Graph, edit: GraphEdit) -> float:
        """What an edit costs: its injected nodes, changed edges, and changed features of original nodes."""
        from grb.graph.sparse import dense

        changed = 0
        if edit.set_ids is not None and edit.set_x is not None and self.feature_cost:
            changed = int((dense(graph.x)[edit.set_ids] != edit.set_x).sum())
        edges = edit.add.shape[1] + edit.drop.shape[1]
        return self.node_cost * edit.num_new + self.edge_cost * edges + self.feature_cost * changed

    def _connect(self) -> str:
        return self.connect if isinstance(self.connect, str) else f"{len(self.connect)} nodes"

    def _check_degrees(self, graph: Graph, edit: GraphEdit) -> None:
        assert self.max_degree is not None
        gained = edit.add[edit.add < graph.n].bincount(minlength=graph.n)
        lost = edit.drop.flatten().bincount(minlength=graph.n)
        after = graph.adj.degrees.long() + gained - lost
        over = ((gained > 0) & (after > self.max_degree)).nonzero().flatten()
        if len(over):
            node = int(over[0])
            raise BudgetError(
                f"node {node} has {int(after[node])} neighbours after the edit, but the constraints allow "
                f"max_degree={self.max_degree}"
            )

    def _check_rows(self, rows: Tensor, what: str) -> None:
        off = (rows - self.project_rows(rows, None)).abs()
        scale = rows.abs().clamp(min=1.0)
        bad = (~(off <= SLACK * scale)).nonzero()  # negated, because a difference of NaN is none that may be forgiven
        if len(bad):
            row, column = bad[0].tolist()
            raise BudgetError(
                f"feature {column} of {what} row {row} is {float(rows[row, column]):.6g}, which the constraints on this column "
                "do not allow"
            )

    def _check_fixed(self, graph: Graph, edit: GraphEdit) -> None:
        import torch

        from grb.graph.sparse import dense

        x = dense(graph.x)
        for column in self.fixed:
            if edit.set_ids is not None and edit.set_x is not None:
                moved = (edit.set_x[:, column] != x[edit.set_ids, column]).nonzero().flatten()
                if len(moved):
                    node = int(edit.set_ids[moved[0]])
                    raise BudgetError(
                        f"feature {column} of node {node} is changed, but the constraints fix that column"
                    )
            if edit.new_x is not None and not bool(torch.isin(edit.new_x[:, column], x[:, column]).all()):
                raise BudgetError(
                    f"feature {column} of an injected node is a value that no node has, but that column is fixed"
                )

    # ------------------------------------------------------------ projecting

    def project_rows(self, rows: Tensor, graph: Graph | None, within: tuple[float, float] | None = None) -> Tensor:
        """The nearest rows that the constraints on columns allow, [m, d].

        Args:
            rows: Features.
            graph: Whose values fixed columns may have; they stay as they are without it.
            within: Range of all features, which grids, choices and fixed values may not leave either.
        """
        import torch

        lowest, highest = within or (-math.inf, math.inf)
        rows = rows.clone()
        for column, low, high in self.ranges:
            rows[:, column] = rows[:, column].clamp(max(low, lowest), min(high, highest))
        for column, offset, step in self.grids:
            limits = next(((low, high) for each, low, high in self.ranges if each == column), (-math.inf, math.inf))
            limits = max(limits[0], lowest), min(limits[1], highest)
            steps = ((rows[:, column] - offset) / step).round()
            least = math.ceil((limits[0] - offset) / step - 1e-6) if math.isfinite(limits[0]) else -math.inf
            most = math.floor((limits[1] - offset) / step + 1e-6) if math.isfinite(limits[1]) else math.inf
            rows[:, column] = (offset + step * steps.clamp(least, most)).clamp(lowest, highest)
        for first, *values in self.choices:
            own_values = [value for value in values if lowest - SLACK <= value <= highest + SLACK] or values
            column, allowed = int(first), torch.tensor(own_values, dtype=rows.dtype)
            rows[:, column] = allowed[(rows[:, column, None] - allowed).abs().argmin(1)]
        for columns, off, on in self.groups:
            absent, present = torch.tensor(off, dtype=rows.dtype), torch.tensor(on, dtype=rows.dtype)
            own = rows[:, list(columns)]
            chosen = ((own - absent) / (present - absent)).argmax(1)
            rows[:, list(columns)] = torch.where(torch.arange(len(columns)) == chosen[:, None], present, absent)
        if graph is not None and self.fixed:
            rows = self._project_fixed(rows, graph, lowest, highest)
        return rows

    def _project_fixed(self, rows: Tensor, graph: Graph, lowest: float, highest: float) -> Tensor:
        import torch

        from grb.graph.sparse import dense

        x = dense(graph.x)
        for column in self.fixed:
            known = x[:, column].unique()
            inside = known[(known >= lowest) & (known <= highest)]
            known = inside if len(inside) else known
            place = torch.searchsorted(known, rows[:, column].contiguous()).clamp(max=len(known) - 1)
            before = known[(place - 1).clamp(min=0)]
            nearer = (rows[:, column] - before).abs() < (known[place] - rows[:, column]).abs()
            rows[:, column] = torch.where(nearer, before, known[place])
        return rows

    def project(
        self, graph: Graph, edit: GraphEdit, targets: Tensor | None, within: tuple[float, float] | None = None
    ) -> GraphEdit:
        """The edit without what the constraints forbid: features moved, edges to others and beyond degrees or cost left out."""
        import torch

        from grb.graph import GraphEdit
        from grb.graph.sparse import dense

        new_x = None if edit.new_x is None else self.project_rows(edit.new_x, graph, within)
        set_x = edit.set_x
        if set_x is not None and edit.set_ids is not None:
            own = dense(graph.x)[edit.set_ids]
            set_x = self.project_rows(set_x, None, within)
            set_x[:, list(self.fixed)] = own[:, list(self.fixed)]
        add = edit.add
        if self.connect != EVERYBODY and add.numel():
            known = self.allowed(graph, targets)
            add = add[:, ((add >= graph.n) | torch.isin(add, known)).all(0)]
        if self.max_degree is not None and add.numel():
            add = self._within_degrees(graph, add, edit.drop)
        made = GraphEdit(edit.n, add, edit.drop, new_x, edit.set_ids, set_x, edit.cut)
        return self._within_cost(graph, made)

    def _within_degrees(self, graph: Graph, add: Tensor, drop: Tensor) -> Tensor:
        """Edges whose original ends have room, the first ones of every node."""
        import torch

        assert self.max_degree is not None
        room = self.max_degree - graph.adj.degrees.long() + drop.flatten().bincount(minlength=graph.n)
        keep = torch.ones(add.shape[1], dtype=torch.bool)
        for ends in add:
            order = torch.argsort(ends, stable=True)
            sorted_ends = ends[order]
            starts = torch.searchsorted(sorted_ends, sorted_ends)
            number = torch.empty_like(ends)
            number[order] = torch.arange(len(ends)) - starts
            original = ends < graph.n
            keep[original] &= number[original] < room[ends[original]]
        # an edge may be the last of one end and one too many of both: what is left is counted once more
        chosen = add[:, keep]
        both = chosen[chosen < graph.n].bincount(minlength=graph.n)
        over = (both > room.clamp(min=0)).nonzero().flatten()
        return chosen[:, ~torch.isin(chosen, over).any(0)] if len(over) else chosen

    def _within_cost(self, graph: Graph, edit: GraphEdit) -> GraphEdit:
        """As many of the changes as the cost allows: nodes with their edges first, then other edges."""
        from grb.graph import GraphEdit

        if self.cost is None or self.cost_of(graph, edit) <= self.cost:
            return edit
        nodes = edit.num_new
        while nodes >= 0:
            inside = (edit.add < graph.n + nodes).all(0)
            rows = None if edit.new_x is None or not nodes else edit.new_x[:nodes]
            kept = GraphEdit(edit.n, edit.add[:, inside], edit.drop, rows, edit.set_ids, edit.set_x, edit.cut)
            if self.cost_of(graph, kept) <= self.cost:
                return kept
            nodes -= 1 if edit.num_new < 1000 else max(1, edit.num_new // 1000)
        bare = GraphEdit(edit.n, edit.add[:, (edit.add < graph.n).all(0)], edit.drop, None, None, None, edit.cut)
        room = math.floor(self.cost / self.edge_cost + 1e-9) if self.edge_cost else 0
        drop = bare.drop[:, :room]
        return GraphEdit(edit.n, bare.add[:, : max(0, room - drop.shape[1])], drop)
