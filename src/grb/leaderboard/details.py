"""What a page shows beyond the scores: neighbourhoods that were attacked, and accuracy by the degree of the target.

It takes the dataset and the edits, which the records of a store point to; a board carries it in its ``meta``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grb import serial
from grb.errors import DataError
from grb.evaluator.board import CLEAN, Board, Cell
from grb.names import is_import_path
from grb.serial import Count, Fraction

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.pipeline.store import Store

NAME = "details"
# a neighbourhood in a side panel: larger ones are hairballs
MAX_SHOWN = 24
MAX_NEIGHBOURHOODS, MAX_NODES, MAX_EDGES, MAX_BANDS = 2_000, 60, 600, 24
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class AttackedNeighbourhood:
    """A target and the nodes near it, after one edit; nodes are places in ``nodes``, the target is the first.

    Args:
        target: Id of the target.
        nodes: x, y (in the unit square), true class (-1 if not known) and whether it was injected, of every node shown.
        kept: Edges that were there and stay.
        added: Edges that the attack added.
        dropped: Edges that it dropped.
        left_out: Nodes within reach that are not shown.
        right: By defense: whether it is right about the target before and after the attack.
    """

    target: Count
    nodes: tuple[tuple[Fraction, Fraction, int, bool], ...]
    kept: tuple[tuple[Count, Count], ...]
    added: tuple[tuple[Count, Count], ...]
    dropped: tuple[tuple[Count, Count], ...]
    left_out: Count
    right: Mapping[str, tuple[bool, bool]]


@dataclass(frozen=True)
class DegreeBands:
    """Accuracy by the degree of the target.

    Args:
        bands: Names of the bands: ``1``, ``2-3``, ...
        counts: Targets in every band.
        clean: By defense: accuracy on the clean graph in every band.
        attacked: By defense: the mean over transferred attacks in every band.
        white_box: By defense: the mean over white-box attacks, where there are some.
    """

    bands: tuple[str, ...]
    counts: tuple[Count, ...]
    clean: Mapping[str, tuple[Fraction, ...]]
    attacked: Mapping[str, tuple[Fraction, ...]]
    white_box: Mapping[str, tuple[Fraction, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Details:
    """Neighbourhoods by the key of the edit, and bands of degrees by difficulty."""

    neighbourhoods: Mapping[str, AttackedNeighbourhood] = field(default_factory=dict)
    degrees: Mapping[str, DegreeBands] = field(default_factory=dict)


def details_of(board: Board) -> Details:
    """What a board carries; empty if nothing, refused if it is damaged or too large to be ours."""
    held = board.meta.get(NAME)
    if held is None:
        return Details()
    found = serial.from_dict(Details, held, "a board's details")
    if len(found.neighbourhoods) > MAX_NEIGHBOURHOODS:
        raise DataError(
            f"a board has {len(found.neighbourhoods)} neighbourhoods, but at most {MAX_NEIGHBOURHOODS} are shown"
        )
    for each in found.neighbourhoods.values():
        edges = (*each.kept, *each.added, *each.dropped)
        if not 0 < len(each.nodes) <= MAX_NODES or len(edges) > MAX_EDGES:
            raise DataError(f"a neighbourhood has {len(each.nodes)} nodes and {len(edges)} edges, which is not ours")
        if any(end >= len(each.nodes) for edge in edges for end in edge):
            raise DataError("a neighbourhood has an edge to a node that it does not have")
    for bands in found.degrees.values():
        rows = [*bands.clean.values(), *bands.attacked.values(), *bands.white_box.values(), bands.counts]
        if len(bands.bands) > MAX_BANDS or any(len(row) != len(bands.bands) for row in rows):
            raise DataError("accuracies by degree do not fit their bands")
    return found


def with_details(board: Board, store: Store) -> Board:
    """The board with neighbourhoods and bands of degrees in its ``meta``.

    Only datasets of the catalogue are loaded, from this machine, and only if they are the ones that were measured.

    Args:
        board: A board of the store, of a dataset whose nodes are classified.
        store: Where its records and edits are.
    """
    dataset = _dataset(board)
    bits = _Bits(store)
    found = Details(_neighbourhoods(board, store, dataset, bits), _degrees(board, dataset, bits))
    return replace(board, meta={**board.meta, NAME: serial.to_dict(found)})


def _dataset(board: Board) -> Dataset:
    from grb.dataset import load_dataset

    if board.meta.get("task") == "graph":
        raise DataError(f"details show nodes that are attacked, but '{board.dataset}' has graphs to classify")
    reference = str(board.meta.get("reference") or board.dataset)
    if is_import_path(reference) or "/" in reference or "\\" in reference:
        raise DataError(f"details need the dataset '{reference[:60]}', which is not in the catalogue")
    dataset = load_dataset(reference)
    known = board.meta.get("fingerprint")
    if known and dataset.fingerprint() != known:
        raise DataError(f"'{reference}' on this machine is not the dataset that was measured")
    return dataset


class _Bits:
    """Which targets a score has right, each record read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.known: dict[tuple[str, str], Array] = {}

    def of(self, score: str, difficulty: str) -> Array:
        from grb.evaluator.measurement import Measurement

        if (score, difficulty) not in self.known:
            outcomes = Measurement.from_dict(self.store.read(score).measurement).outcomes
            self.known |= {(score, name): outcome.bits() for name, outcome in outcomes.items()}
        return self.known[score, difficulty]


def _neighbourhoods(board: Board, store: Store, dataset: Dataset, bits: _Bits) -> dict[str, AttackedNeighbourhood]:
    """One for the first edit of every attack, difficulty and, if it was made on the victim, defense."""
    cells: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in board.cells:
        if cell.metadata and cell.metadata[0].get("attack"):
            cells[str(cell.metadata[0]["attack"]), cell.difficulty].append(cell)
    return {
        key: _neighbourhood(board, own, key, store, dataset, bits)
        for (key, _), own in list(cells.items())[:MAX_NEIGHBOURHOODS]
    }


def _neighbourhood(
    board: Board, cells: list[Cell], key: str, store: Store, dataset: Dataset, bits: _Bits
) -> AttackedNeighbourhood:
    import torch

    from grb.evaluator.targeted import board_targets
    from grb.graph import GraphEdit
    from grb.visualise.neighbourhood import layout, neighbourhood, telling_target

    difficulty = cells[0].difficulty
    edit = GraphEdit.load(store.find(store.read(key), "edit"))
    graph, targets = dataset.graph, board_targets(board, dataset, difficulty)
    assert graph.y is not None
    before, after = {}, {}
    for cell in cells:
        clean = board.cell(CLEAN, cell.defense, difficulty)
        if clean is not None:
            before[cell.defense] = bits.of(str(clean.metadata[0]["score"]), difficulty)
            after[cell.defense] = bits.of(str(cell.metadata[0]["score"]), difficulty)
    labels = graph.y.clone()
    predicted = []
    for side in (before, after):  # what most of the defenses say: the true class, or another
        right = torch.as_tensor(np.mean([np.asarray(own, dtype=float) for own in side.values()], axis=0) > 0.5)
        guess = labels.clone()
        guess[targets[~right]] = -1
        predicted.append(guess)
    added = torch.full((edit.n_after - graph.n,), -1, dtype=labels.dtype)
    wholly = torch.cat([predicted[1], added])
    target = telling_target(graph, edit, targets, predicted[0], wholly)
    found = neighbourhood(graph, edit, target, predicted[0], wholly, max_nodes=MAX_SHOWN)
    places, at = layout(found), {node: place for place, node in enumerate(found.nodes)}
    row = int((targets == target).nonzero()[0])
    numbered = [tuple((at[low], at[high]) for low, high in edges) for edges in (found.kept, found.added, found.dropped)]
    return AttackedNeighbourhood(
        target,
        tuple(
            (round(places[node][0], 3), round(places[node][1], 3), found.labels.get(node, -1), node in found.injected)
            for node in found.nodes
        ),
        numbered[0],
        numbered[1],
        numbered[2],
        found.left_out,
        {name: (bool(before[name][row]), bool(after[name][row])) for name in before},
    )


def _degrees(board: Board, dataset: Dataset, bits: _Bits) -> dict[str, DegreeBands]:
    from grb.evaluator.targeted import board_targets
    from grb.visualise.degree_accuracy import degree_accuracy

    found = {}
    for difficulty in board.difficulties:
        degrees = dataset.graph.adj.degrees[board_targets(board, dataset, difficulty)].numpy()
        runs: dict[str, list[Array]] = defaultdict(list)
        for cell in board.cells:
            if cell.difficulty == difficulty:
                kind = "clean" if cell.attack == CLEAN else "white_box" if cell.knowledge == "white-box" else "attacked"
                runs[f"{kind} {cell.defense}"] += [bits.of(str(run["score"]), difficulty) for run in cell.metadata]
        table = degree_accuracy(degrees, {label: np.stack(own) for label, own in runs.items() if own})
        ends = zip(table.edges, table.edges[1:])
        by_kind: dict[str, dict[str, tuple[float, ...]]] = defaultdict(dict)
        for label, means in table.means.items():
            kind, _, defense = label.partition(" ")
            by_kind[kind][defense] = tuple(round(min(max(mean, 0.0), 1.0), 5) for mean in means)
        found[difficulty] = DegreeBands(
            tuple(str(low) if high - low <= 1 else f"{low}-{high - 1}" for low, high in ends),
            table.counts,
            dict(by_kind["clean"]),
            dict(by_kind["attacked"]),
            dict(by_kind["white_box"]),
        )
    return found
