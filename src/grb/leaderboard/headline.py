"""What a board says in a few sentences: who wins, by how much, how sure that is, what the attacker may do, how to join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from grb.evaluator.board import CLEAN, Board, Estimate
from grb.leaderboard.table import ordered
from grb.leaderboard.text import sanitize

# undefended models that a headline compares with, the first that a board has
BASELINES = ("gcn", "gat", "mlp")
# models that see no edge: what they keep, anybody keeps who does without the graph
WITHOUT_EDGES = ("mlp", "mlp+ln", "mlp-pool")
# and models that hear nodes of the training graph only
MEMORY = "+known"
# other defenses that a sentence names before it counts
FEW = 3
# what may be named beside the transferred attacks, the worst first
LOWEST = {"worst_case": "in the worst case", "white_box": "under white-box attacks"}
LONGEST = 40
# limits that are told first
FIRST = ("nodes", "edges_per_node", "edges", "edge_ratio", "per_target", "feature_nodes", "feature_range")
# limits of a threat model in words
LIMITS = {
    "nodes": "{} nodes",
    "edges_per_node": "{} edges each",
    "edges": "{} edges",
    "feature_nodes": "features of {} nodes",
}
SHARES = {"edge_ratio": "{} of the edges", "feature_ratio": "features of {} of the targets"}


@dataclass(frozen=True)
class Answers:
    """Sentences about one difficulty of a board.

    Args:
        winner: Which defense keeps most, and what becomes of an undefended model.
        measured: What the numbers are.
        margin: By how much it leads, and before whom.
        certainty: Whether the intervals allow that claim.
        attacker: What the threat model allows.
        joining: How to add an entry.
    """

    winner: str
    measured: str
    margin: str
    certainty: str
    attacker: str
    joining: str

    def to_dict(self) -> dict[str, str]:
        """The sentences by what they answer."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def answers(board: Board, difficulty: str) -> Answers:
    """The sentences, from the numbers of a board alone."""
    order = _ranked(board, difficulty)
    return Answers(
        _winner(board, difficulty, order),
        _measured(board, difficulty),
        _margin(board, difficulty, order),
        _certainty(board, difficulty, order),
        _attacker(board, difficulty),
        "`grb submit FILE --store STORE` scores an attack or a defense on this board.",
    )


def _ranked(board: Board, difficulty: str) -> list[str]:
    return [name for name in ordered(board, difficulty) if name in board.ranks.get(difficulty, {})]


def _winner(board: Board, difficulty: str, order: list[str]) -> str:
    if not order:
        return f"No defense on {_name(board.dataset)} is ranked yet."
    leader = order[0]
    where = f" on {_name(board.dataset)}{'' if board.metric == 'accuracy' else f' ({sanitize(board.metric)})'}"
    deaf = _deaf(leader)
    graph = next((name for name in order if _deaf(name) is None), None) if deaf else None
    if deaf is not None and graph is not None:
        own = board.by_defense[difficulty]
        first = f"{_name(leader)}, which {deaf[0]}, leads{where} with {_percent(own[leader][board.rank_by])}"
        kept = f"{first}; {_name(graph)}, the best that {deaf[1]}, keeps {_kept(board, difficulty, graph)}"
        return f"{kept}{_compared(board, difficulty, graph)}."
    kept = _kept(board, difficulty, leader)
    if not kept:
        return f"No attack on {_name(leader)}{where} was measured yet."
    return f"{_name(leader)} keeps {kept}{where}{_compared(board, difficulty, leader)}."


def _deaf(name: str) -> tuple[str, str] | None:
    """Why injected nodes do not reach a model, and what all other models do."""
    if name in WITHOUT_EDGES:
        return "sees no edges", "sees them"
    return ("ignores new nodes", "does not") if name.endswith(MEMORY) else None


def _kept(board: Board, difficulty: str, defense: str) -> str:
    """What is left of a defense under transferred attacks and in the worst that was measured."""
    values = board.by_defense[difficulty][defense]
    shown = [(values.get("weighted"), _kinds(board, difficulty))]
    lowest = _lowest(board, difficulty)
    if lowest is not None:
        shown.append((values.get(lowest), LOWEST[lowest]))
    return " and ".join(f"{_percent(value)} {how}" for value, how in shown if value is not None)


def _lowest(board: Board, difficulty: str) -> str | None:
    """The summary of what hurts most: the worst case, or white-box attacks where it was not measured."""
    own = board.by_defense[difficulty].values()
    return next((name for name in LOWEST if any(name in values for values in own)), None)


def _measured(board: Board, difficulty: str) -> str:
    """What the numbers are, for a reader who sees a board for the first time."""
    what = "graphs" if board.meta.get("task") == "graph" else "nodes"
    if board.metric != "accuracy":
        return f"The {sanitize(board.metric)} on test {what}, before and after attacks on them."
    which = "" if difficulty == "full" else f" ({sanitize(difficulty)})"
    return f"Accuracy: the share of test {what}{which} that a model classifies right, before and after attacks on them."


def _kinds(board: Board, difficulty: str) -> str:
    """Which attacks the weighted score is of."""
    if board.scenario == "corruption":
        return "under perturbations"
    kinds = {cell.knowledge for cell in board.cells if cell.difficulty == difficulty} & {"transfer", "query"}
    if "query" not in kinds:
        return "under transferred attacks"
    return "under attacks by transfer and queries" if "transfer" in kinds else "under attacks by queries"


def baseline(board: Board, difficulty: str) -> str | None:
    """The undefended model that the headline compares the leader with; None if a board has none."""
    order = _ranked(board, difficulty)
    edges = [name for name in order if _deaf(name) is None]
    return _baseline(board, difficulty, (edges or order)[0]) if order else None


def _baseline(board: Board, difficulty: str, leader: str) -> str | None:
    worst = _lowest(board, difficulty) or board.rank_by
    leaders = {leader, *_ranked(board, difficulty)[:1]}
    for name in BASELINES:
        measured = worst in board.by_defense[difficulty].get(name, {})
        if name not in leaders and measured and board.cell(CLEAN, name, difficulty) is not None:
            return name
    return None


def _compared(board: Board, difficulty: str, leader: str) -> str:
    """What becomes of an undefended model."""
    name = _baseline(board, difficulty, leader)
    clean = None if name is None else board.cell(CLEAN, name, difficulty)
    if name is None or clean is None:
        return ""
    found = board.by_defense[difficulty][name][_lowest(board, difficulty) or board.rank_by]
    if _number(found) >= _number(clean.score):
        return f"; {name} stays at {_percent(found)}"
    undefended = "" if name in WITHOUT_EDGES else "undefended "
    return f"; {undefended}{name} falls from {_number(clean.score)} to {_percent(found)}"


def _margin(board: Board, difficulty: str, order: list[str]) -> str:
    if len(order) < 2:
        return "There is no other ranked defense to compare with."
    first, second = (board.by_defense[difficulty][name][board.rank_by] for name in order[:2])
    what = "in the worst case" if board.rank_by == "worst_case" else "in the paper's weighted score"
    points = 100 * (first.mean - second.mean)
    if f"{points:.1f}" == "0.0":
        return f"{_name(order[0])} and {_name(order[1])} are equal {what}."
    return f"{_name(order[0])} leads {_name(order[1])} by {points:.1f} points {what}."


def _certainty(board: Board, difficulty: str, order: list[str]) -> str:
    if not order:
        return "Nothing can be claimed."
    if len(order) == 1:
        return "Nothing is claimed: a first place needs a second one."
    ranks = board.ranks[difficulty]
    rivals = [name for name in order[1:] if ranks[name][0] == 1]
    trainings = int(board.meta.get("victims") or 1)
    basis = (
        f"over {trainings} trainings"
        if trainings > 1
        else "over the repeats of the attacks; each defense was trained once, and another training may rank otherwise"
    )
    unknown = any(board.by_defense[difficulty][name][board.rank_by].low is None for name in order[:2])
    if rivals and unknown and trainings == 1:
        return "First place is open: without repeats there is no interval, and another training may rank otherwise."
    if ranks[order[0]] == (1, 1):
        return f"First place is certain at 95 % {basis}."
    if not rivals:
        return f"First place is open: there are no intervals {basis}."
    listed = [*map(_name, rivals[:FEW]), *([f"{len(rivals) - FEW} more"] if len(rivals) > FEW else [])]
    named = " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
    reach = f"interval of {named} reaches" if len(rivals) == 1 else f"intervals of {named} reach"
    return f"First place is open: the 95 % {reach} it ({basis})."


def _attacker(board: Board, difficulty: str) -> str:
    if board.scenario == "corruption":
        return "The graphs are perturbed at random: there is no attacker."
    threats = [
        metadata["threat"]
        for cell in board.cells
        if cell.difficulty == difficulty
        for metadata in cell.metadata
        if isinstance(metadata.get("threat"), Mapping)
    ]
    when = "before the training" if board.objective == "poisoning" else "after the training"
    allowed = f"{_allowed(threats[0])}{_asked(threats)}" if threats else _unrecorded(board)
    return f"The attacker may, {when}, {allowed}.{_knowing(board, difficulty)}"


def _unrecorded(board: Board) -> str:
    """What a scenario allows where no limit was written down."""
    kinds = {"injection": "add nodes with edges and features", "modification": "change edges or features"}
    known = (
        f"the limit of this board is {board.limit[0].replace('_', ' ')} {board.limit[1]:g}"
        if board.limit
        else "how many is not recorded here"
    )
    return f"{kinds.get(board.scenario, 'change the graph')}; {known}"


def _knowing(board: Board, difficulty: str) -> str:
    """Which attackers know the model, where some do."""
    kinds = {cell.knowledge for cell in board.cells if cell.difficulty == difficulty}
    if not {"white-box", "transfer"} <= kinds:
        return ""
    known = (
        "In the worst case it knows the model" if board.rank_by == "worst_case" else "White-box attacks know the model"
    )
    return f" {known}; transferred attacks do not."


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
    share, edges, each = (threat.get(name) for name in ("edge_ratio", "edges", "per_target"))
    limits = [f"{100 * share:g} % of the edges"] if isinstance(share, int | float) else []
    limits += [f"{edges} edges"] if isinstance(edges, int) else []
    limits += [f"{_per_target(each)} for every target"] if each is not None else []
    names = {"add": "add", "drop": "drop"}
    allowed = [names[each] for each in threat.get("allow", ("add", "drop")) if each in names] or ["change"]
    features = threat.get("feature_nodes")
    some = threat.get("feature_ratio")
    which = f"{100 * some:g} % of the targets" if isinstance(some, int | float) else ""
    which = f"{features} nodes" if features else which
    also = f" and change the features of up to {which}" if which else ""
    return f"{' or '.join(allowed)} up to {' and '.join(limits) or 'some edges'}{also}"


def _per_target(limit: Any) -> str:
    """Flips spent on one target: ``k``, or ``(f, k)`` for f times its degree plus k."""
    if isinstance(limit, list | tuple) and len(limit) == 2:
        factor = "" if limit[0] == 1 else f"{limit[0]} times "
        return f"{factor}its degree + {limit[1]} flips"
    return f"{limit} flips"


def limits_in_words(threat: Mapping[str, Any]) -> str:
    """The limits of one edit in few words, what nobody foresaw by its name.

    >>> limits_in_words({"kind": "injection", "nodes": 60, "edges_per_node": 20, "feature_range": [-0.94, 0.94]})
    '60 nodes, 20 edges each, features from -0.94 to 0.94'
    >>> limits_in_words({"kind": "modification", "edge_ratio": 0.05, "queries": 100})
    '5 % of the edges, queries 100'
    """
    found = []
    names = [*(name for name in FIRST if name in threat), *(name for name in threat if name not in FIRST)]
    for name in names:
        value = threat[name]
        if name == "kind" or value is None:
            continue
        if name == "feature_range" and isinstance(value, list | tuple) and len(value) == 2:
            found.append(f"features from {_brief(value[0])} to {_brief(value[1])}")
        elif name in SHARES and isinstance(value, int | float):
            found.append(SHARES[name].format(f"{100 * value:g} %"))
        elif name == "per_target":
            found.append(f"{_per_target(value)} for every target")
        elif name in LIMITS and isinstance(value, int | float):
            found.append(LIMITS[name].format(value))
        else:
            found.append(f"{name.replace('_', ' ')} {_plain(value)}")
    return ", ".join(found)


def _brief(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(item)}" for name, item in value.items())
    return " or ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _name(name: str) -> str:
    return sanitize(name, LONGEST)


def _percent(value: Estimate) -> str:
    return f"{_number(value)} %"


def _number(value: Estimate) -> str:
    return f"{100 * value.mean:.1f}"
