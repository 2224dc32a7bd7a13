"""What the page knows of a board: the same numbers as the board, each record once, names as harmless text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grb.evaluator.board import Board, Cell, Estimate
from grb.evaluator.claims import Claim
from grb.leaderboard import table
from grb.leaderboard.citing import citations, cite_board
from grb.leaderboard.curves import budget_curves, cost_points, query_curves
from grb.leaderboard.details import NAME as DETAILS
from grb.leaderboard.details import AttackedNeighbourhood, DegreeBands, details_of
from grb.leaderboard.headline import answers, baseline, limits_in_words
from grb.leaderboard.text import MESSAGE_LENGTH, distinct, rounded, safe_link, sanitize, sanitize_nested
from grb.leaderboard.vouching import Vouching, claims_by_cell, measured_by, place_of

# enough digits of a key to find its record; `grb store verify --key` takes beginnings
KEY = 16
VICTIM = ("victim", "victim_seed", "victim_seconds", "victim_spec", "parameters", "threads")
ATTACK = (
    "attack",
    "attack_spec",
    "attack_seed",
    "attack_seconds",
    "attack_megabytes",
    "attack_steps",
    "edit_bytes",
    "budget",
    "threat",
    "surrogate",
    "notes",
    "passes",
    "trials",
)
OWN = ("score", "repeat")
# summaries that the chart of the page shows beside the clean graph
POINTS = ("weighted", "worst_case", "white_box")


def page_data(board: Board, boards: Sequence[Board] = ()) -> dict[str, Any]:
    """A board as the page's script reads it: methods by number, records without repetition, keys cut.

    A cell is ``[attack, defense, difficulty, white box, accuracy, changed, drop, paper, values, scores, victims, attacks,
    extras, claim, measured by]``; a value is ``[mean, std, low, high, n]`` in shares; ``scores`` to ``extras`` are lists with
    one entry per run, three of them places in the lists ``victims``, ``edits`` and ``extras``; a claim is ``[claimed,
    re-evaluated, whether they differ]``.

    Args:
        board: The board.
        boards: All boards of the page; those that vary the same limit make lines together.
    """
    places = {
        "attack": _numbered(board.attacks),
        "white": _numbered(board.white_box),
        "defense": _numbered(board.defenses),
        "mode": _numbered(board.difficulties),
    }
    pools = {"victims": _Pool(), "edits": _Pool(), "extras": _Pool()}
    losses = table.drops(board)
    spent = table.costs(board)
    claims = claims_by_cell(board)
    vouching = [Vouching.of(board, difficulty) for difficulty in board.difficulties]
    cells = [
        [
            *_cell(cell, places, pools, losses.get(place_of(cell))),
            _cell_claim(claims.get(place_of(cell))),
            measured_by([cell]),
        ]
        for cell in board.cells
        if cell.difficulty in places["mode"]
    ]
    meta, summaries = board.meta, table.summaries_of(board)
    shown = details_of(board)
    return {
        "title": sanitize(meta.get("title") or f"{board.scenario} on {board.dataset}", 120),
        "dataset": sanitize(board.dataset),
        "scenario": sanitize(board.scenario),
        "metric": sanitize(board.metric),
        "rankBy": board.rank_by,
        "recipe": sanitize(meta.get("recipe") or meta.get("title") or "study"),
        "synthetic": bool(meta.get("synthetic")),
        "meta": sanitize_nested(
            {key: value for key, value in meta.items() if key not in ("title", "recipe", "synthetic", "cards", DETAILS)}
        ),
        "modes": [sanitize(difficulty) for difficulty in board.difficulties],
        "attacks": distinct(board.attacks),
        "whiteBox": distinct(board.white_box),
        "clean": places["attack"].get(table.CLEAN, -1),
        "defenses": distinct(board.defenses),
        "cards": {
            "defenses": _cards(meta.get("cards"), board.defenses),
            "attacks": _cards(meta.get("cards"), board.attacks),
        },
        "bibtex": cite_board(board),
        "citations": {
            "defenses": [each.to_dict() for each in citations(board, "defense")],
            "attacks": [each.to_dict() for each in citations(board, "attack")],
        },
        "budget": [budget_curves(board, boards or [board], difficulty) for difficulty in board.difficulties],
        "queries": [query_curves(board, difficulty) for difficulty in board.difficulties],
        "strength": [cost_points(board, difficulty) for difficulty in board.difficulties],
        "degrees": [_bands(shown.degrees.get(difficulty), board) for difficulty in board.difficulties],
        "neighbourhoods": {_key(key): _near(each, board) for key, each in shown.neighbourhoods.items()},
        "flags": [_flag(flag, board) for flag in board.flags[:200]],
        "cells": cells,
        **{name: pool.items for name, pool in pools.items()},
        "edits": [_worded(edit) for edit in pools["edits"].items],
        "answers": [
            {name: sanitize(text, MESSAGE_LENGTH) for name, text in answers(board, difficulty).to_dict().items()}
            for difficulty in board.difficulties
        ],
        "baseline": [places["defense"].get(baseline(board, difficulty) or "", -1) for difficulty in board.difficulties],
        "summaries": list(summaries.values()),
        "lead": [place for place, name in enumerate(summaries) if table.leads(name, board)],
        "points": {
            name: place for place, name in enumerate(summaries) if name in POINTS or name.startswith("certified")
        },
        "byDefense": [
            [_summary(board.by_defense.get(difficulty, {}).get(name), summaries) for name in board.defenses]
            for difficulty in board.difficulties
        ],
        "byAttack": [
            [_summary(board.by_attack.get(difficulty, {}).get(name), table.STRENGTHS) for name in board.attacks]
            for difficulty in board.difficulties
        ],
        "cost": [
            [rounded(spent.get((name, difficulty, False)), 4) for name in board.attacks]
            for difficulty in board.difficulties
        ],
        "whiteCost": [
            [rounded(spent.get((name, difficulty, True)), 4) for name in board.white_box]
            for difficulty in board.difficulties
        ],
        "claims": {
            "defenses": [[_claim(each, name) for name in board.defenses] for each in vouching],
            "attacks": [[_claim(each, name) for name in board.attacks] for each in vouching],
        },
        "measuredBy": {
            "defenses": [[each.defenses.get(name) for name in board.defenses] for each in vouching],
            "attacks": [[each.attacks.get(name) for name in board.attacks] for each in vouching],
        },
        "ranks": [
            [board.ranks.get(difficulty, {}).get(name) for name in board.defenses] for difficulty in board.difficulties
        ],
    }


def _bands(bands: DegreeBands | None, board: Board) -> dict[str, Any] | None:
    """Accuracy by degree, defenses by number."""
    if bands is None:
        return None
    rows = {"clean": bands.clean, "weighted": bands.attacked, "white_box": bands.white_box}
    return {
        "bands": [sanitize(band, 12) for band in bands.bands],
        "counts": list(bands.counts),
        "rows": [
            {kind: [rounded(share, 4) for share in own[name]] for kind, own in rows.items() if name in own}
            for name in board.defenses
        ],
    }


def _near(near: AttackedNeighbourhood, board: Board) -> dict[str, Any]:
    """A neighbourhood, defenses by number."""
    return {
        "target": near.target,
        "nodes": [[x, y, label, int(injected)] for x, y, label, injected in near.nodes],
        "edges": [near.kept, near.added, near.dropped],
        "left": near.left_out,
        "right": {place: near.right[name] for place, name in enumerate(board.defenses) if name in near.right},
    }


class _Pool:
    """Values that many runs share, each kept once."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.places: dict[str, int] = {}

    def place(self, value: Mapping[str, Any]) -> int:
        text = json.dumps(value, sort_keys=True, default=str)
        if text not in self.places:
            self.places[text] = len(self.items)
            self.items.append(sanitize_nested({key: _key(item) for key, item in value.items()}))
        return self.places[text]


def _key(value: Any) -> Any:
    """The beginning of a key; anything else as it is."""
    return value[:KEY] if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else value


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _cell(
    cell: Cell, places: Mapping[str, Mapping[str, int]], pools: Mapping[str, _Pool], drop: Estimate | None
) -> list[Any]:
    white = cell.knowledge == "white-box"
    known = {*VICTIM, *ATTACK, *OWN}
    return [
        places["white" if white else "attack"][cell.attack],
        places["defense"][cell.defense],
        places["mode"][cell.difficulty],
        int(white),
        _value(cell.score),
        _value(cell.changed) if cell.changed.n else None,
        None if drop is None else _value(drop),
        None if cell.paper is None else [rounded(cell.paper[0] / 100), rounded(cell.paper[1] / 100)],
        [rounded(value, 5) for value in cell.values],
        [sanitize(_key(metadata.get("score", "")), KEY) for metadata in cell.metadata],
        [pools["victims"].place(_part(metadata, VICTIM)) for metadata in cell.metadata],
        [pools["edits"].place(_part(metadata, ATTACK)) for metadata in cell.metadata],
        [
            pools["extras"].place({key: metadata[key] for key in metadata if key not in known})
            for metadata in cell.metadata
        ],
    ]


def _claim(vouching: Vouching, entry: str) -> list[Any] | None:
    values = vouching.compared(entry)
    return None if values is None else [*(rounded(each) for each in values), int(vouching.differs(entry))]


def _cell_claim(claim: Claim | None) -> list[Any] | None:
    return None if claim is None else [rounded(claim.claimed), rounded(claim.found), int(claim.differs)]


def _part(metadata: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: metadata[name] for name in names if metadata.get(name) not in (None, "", [])}


def _worded(edit: dict[str, Any]) -> dict[str, Any]:
    """What is known of an attack, its limits in words."""
    threat = edit.get("threat")
    return {**edit, "threat": limits_in_words(threat)} if isinstance(threat, Mapping) else edit


def _value(value: Estimate) -> list[Any]:
    return [*(rounded(each, 5) for each in (value.mean, value.std, value.low, value.high)), value.n]


def _summary(values: Mapping[str, Estimate] | None, names: Iterable[str]) -> list[Any]:
    return [_value(values[name]) if values and name in values else None for name in names]


def _flag(flag: str, board: Board) -> dict[str, Any]:
    """A warning, and which methods it speaks of."""
    return {
        "text": sanitize(flag, MESSAGE_LENGTH),
        "defenses": [place for place, name in enumerate(board.defenses) if mentions(flag, name)],
        "attacks": [place for place, name in enumerate(board.attacks) if mentions(flag, name)],
    }


def mentions(sentence: str, name: str) -> bool:
    """Whether a sentence has a name as a word of its own.

    >>> mentions("gcn+ln is odd", "gcn"), mentions("gcn+ln is odd", "gcn+ln"), mentions("look at 'gcn'.", "gcn")
    (False, True, True)
    """
    return bool(name) and re.search(rf"(?<![\w+-]){re.escape(name)}(?![\w+-])", sentence) is not None


def _cards(cards: Any, names: Sequence[str]) -> dict[str, Any]:
    """What authors say about their methods: text, and links that are http or https."""
    if not isinstance(cards, Mapping):
        return {}
    found = {}
    for place, name in enumerate(names):
        card = cards.get(name)
        if isinstance(card, Mapping):
            found[str(place)] = [_line(key, value) for key, value in list(card.items())[:20]]
    return found


def _line(key: Any, value: Any) -> dict[str, Any]:
    line: dict[str, Any] = {"name": sanitize(key), "text": sanitize(_label(value), MESSAGE_LENGTH)}
    link = safe_link(value)
    return {**line, "link": link} if link else line


def _label(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(item)[:MESSAGE_LENGTH] for item in value[:50])
    return str(value)


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element: no letter in it ends the element or begins a comment.

    >>> script_json("</script><!--\\u2028")
    '"\\\\u003c/script\\\\u003e\\\\u003c!--\\\\u2028"'
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
