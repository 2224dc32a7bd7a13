"""What a board says in five sentences: who wins, by how much, how sure that is, what the attacker may do, how to join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from grb.evaluator.board import CLEAN, Board, Estimate
from grb.leaderboard.table import ordered
from grb.leaderboard.text import sanitize

# undefended models that a headline compares with, the first that a board has
BASELINES = ("gcn", "gat", "mlp")
# other defenses that a sentence names before it counts
FEW = 3
LONGEST = 40


@dataclass(frozen=True)
class Answers:
    """Five sentences about one difficulty of a board.

    Args:
        winner: Which defense keeps most, and what becomes of an undefended model.
        margin: By how much it leads, and before whom.
        certainty: Whether the intervals allow that claim.
        attacker: What the threat model allows.
        joining: How to add an entry.
    """

    winner: str
    margin: str
    certainty: str
    attacker: str
    joining: str

    def to_dict(self) -> dict[str, str]:
        """The sentences by what they answer."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def answers(board: Board, difficulty: str) -> Answers:
    """The five sentences, from the numbers of a board alone."""
    order = [name for name in ordered(board, difficulty) if name in board.ranks.get(difficulty, {})]
    return Answers(
        _winner(board, difficulty, order),
        _margin(board, difficulty, order),
        _certainty(board, difficulty, order),
        _attacker(board, difficulty),
        "Add yours: `grb submit FILE --store STORE` scores an attack or a defense on this board.",
    )


def _winner(board: Board, difficulty: str, order: list[str]) -> str:
    if not order:
        return f"No defense on {_name(board.dataset)} is ranked yet."
    leader = order[0]
    values = board.by_defense[difficulty][leader]
    weighted, worst = values.get("weighted"), values.get("worst_case")
    others = _kinds(board, difficulty)
    shown = ((weighted, others), (worst, "in the worst case"))
    parts = [f"{_percent(value)} {how}" for value, how in shown if value is not None]
    metric = "" if board.metric == "accuracy" else f" ({board.metric})"
    kept = f"{_name(leader)} keeps {' and '.join(parts)} on {_name(board.dataset)}{metric}"
    return f"{kept}{_baseline(board, difficulty, leader)}."


def _kinds(board: Board, difficulty: str) -> str:
    """Which attacks the weighted score is of."""
    if board.scenario == "corruption":
        return "under perturbations"
    kinds = {cell.knowledge for cell in board.cells if cell.difficulty == difficulty} & {"transfer", "query"}
    if "query" not in kinds:
        return "under transferred attacks"
    return "under attacks by transfer and queries" if "transfer" in kinds else "under attacks by queries"


def _baseline(board: Board, difficulty: str, leader: str) -> str:
    """What becomes of an undefended model."""
    for name in BASELINES:
        found = board.by_defense[difficulty].get(name, {}).get(board.rank_by)
        clean = board.cell(CLEAN, name, difficulty)
        if name != leader and found is not None and clean is not None:
            if _number(found) >= _number(clean.score):
                return f"; {name} stays at {_percent(found)}"
            return f"; {name} falls from {_number(clean.score)} to {_percent(found)}"
    return ""


def _margin(board: Board, difficulty: str, order: list[str]) -> str:
    if len(order) < 2:
        return "There is no other ranked defense to compare with."
    first, second = (board.by_defense[difficulty][name][board.rank_by] for name in order[:2])
    what = "in the worst case" if board.rank_by == "worst_case" else "in the paper's weighted score"
    points = 100 * (first.mean - second.mean)
    if f"{points:.1f}" == "0.0":
        return f"{_name(order[0])} and {_name(order[1])} are equal {what}."
    return f"It leads {_name(order[1])} by {points:.1f} points {what}."


def _certainty(board: Board, difficulty: str, order: list[str]) -> str:
    if not order:
        return "Nothing can be claimed."
    ranks = board.ranks[difficulty]
    rivals = [name for name in order[1:] if ranks[name][0] == 1]
    trainings = int(board.meta.get("victims") or 1)
    basis = (
        f"over {trainings} trainings"
        if trainings > 1
        else "over the repeats of the attacks; each defense was trained once, and another training may rank otherwise"
    )
    if ranks[order[0]] == (1, 1):
        return f"First place is certain at 95 % {basis}."
    if not rivals:
        return f"First place is open: there are no intervals {basis}."
    listed = [*map(_name, rivals[:FEW]), *([f"{len(rivals) - FEW} more"] if len(rivals) > FEW else [])]
    named = " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
    reach = f"interval of {named} reaches" if len(rivals) == 1 else f"intervals of {named} reach"
    return f"First place is open: the 95 % {reach} it ({basis})."


def _attacker(board: Board, difficulty: str) -> str:
    threats = [
        metadata["threat"]
        for cell in board.cells
        if cell.difficulty == difficulty
        for metadata in cell.metadata
        if isinstance(metadata.get("threat"), Mapping)
    ]
    if not threats:
        return "The graphs are perturbed at random: there is no attacker." if board.scenario == "corruption" else ""
    when = "before the training" if board.objective == "poisoning" else "after the training"
    return f"The attacker may, {when}, {_allowed(threats[0])}{_asked(threats)}."


def _asked(threats: Sequence[Mapping[str, Any]]) -> str:
    """How often attackers may ask, where they may."""
    found = next((each for each in threats if isinstance(each.get("queries"), int)), None)
    if found is None:
        return ""
    times = f"{found['queries']:,} times" if found["queries"] != 1 else "once"
    return f"; who may ask the model does so at most {times} and hears {found.get('answers', 'scores')}"


def _allowed(threat: Mapping[str, Any]) -> str:
    if threat.get("kind") == "injection":
        return (
            f"add up to {threat.get('nodes')} nodes with up to {threat.get('edges_per_node')} edges each and features "
            "within the range of the data, but change nothing that was there"
        )
    share = threat.get("edge_ratio")
    many = f"{100 * share:g} % of the edges" if isinstance(share, int | float) else f"{threat.get('edges')} edges"
    names = {"add": "add", "drop": "drop"}
    allowed = [names[each] for each in threat.get("allow", ("add", "drop")) if each in names] or ["change"]
    features = threat.get("feature_nodes")
    also = f" and change the features of up to {features} nodes" if features else ""
    return f"{' or '.join(allowed)} up to {many}{also}"


def _name(name: str) -> str:
    return sanitize(name, LONGEST)


def _percent(value: Estimate) -> str:
    return f"{_number(value)} %"


def _number(value: Estimate) -> str:
    return f"{100 * value.mean:.1f}"
