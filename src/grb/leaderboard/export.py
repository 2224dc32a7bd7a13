"""Boards as CSV, JSON and Markdown, and back from JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grb.atomic import size_of
from grb.errors import DataError
from grb.evaluator.board import FORMAT, Board, Cell, Estimate
from grb.leaderboard import table
from grb.leaderboard.text import csv_text, latex_text, markdown_text, shown

MAX_BYTES = 512 * 2**20


def cell_rows(board: Board) -> list[dict[str, Any]]:
    """One row per cell: accuracy as a share with std and interval, the paper's beside it, what an attack cost."""
    spent = table.costs(board)
    return [
        {
            **_where(board),
            "difficulty": cell.difficulty,
            "attack": cell.attack,
            "knowledge": cell.knowledge,
            "defense": cell.defense,
            **_value(board.metric, cell.score),
            "changed": cell.changed.mean,
            "paper_accuracy": None if cell.paper is None else cell.paper[0] / 100,
            "paper_std": None if cell.paper is None else cell.paper[1] / 100,
            "attack_cpu_seconds": spent.get((cell.attack, cell.difficulty, cell.knowledge == "white-box")),
        }
        for cell in _sorted(board)
    ]


def run_rows(board: Board) -> list[dict[str, Any]]:
    """One row per measurement, with the keys, seeds and cost that its record has."""
    names = ("repeat", "victim_seed", "score", "victim", "attack_key", "attack_seed", "attack_seconds", "threads")
    return [
        {
            **_where(board),
            "difficulty": cell.difficulty,
            "attack": cell.attack,
            "knowledge": cell.knowledge,
            "defense": cell.defense,
            "run": number,
            board.metric: value,
            **{name: metadata.get(name.removesuffix("_key")) for name in names},
        }
        for cell in _sorted(board)
        for number, (value, metadata) in enumerate(zip(cell.values, [*cell.metadata, *[{}] * len(cell.values)]))
    ]


def wide_rows(board: Board) -> list[dict[str, Any]]:
    """One row per defense and difficulty: ranks, summaries, and the mean and std under every attack."""
    columns = [(attack, False) for attack in board.attacks] + [(attack, True) for attack in board.white_box]
    rows = []
    for difficulty in board.difficulties:
        for defense in table.ordered(board, difficulty):
            places = board.ranks.get(difficulty, {}).get(defense)
            row = {**_where(board), "difficulty": difficulty, "defense": defense}
            row |= {"rank_best": places[0] if places else None, "rank_worst": places[1] if places else None}
            for name in table.SUMMARIES:
                value = board.by_defense.get(difficulty, {}).get(defense, {}).get(name)
                row |= {name: value.mean if value else None, f"{name}_std": value.std if value else None}
            for attack, white in columns:
                cell = board.cell(attack, defense, difficulty, white_box=white)
                label = f"{attack} (white-box)" if white else attack
                row |= {
                    label: cell.score.mean if cell else None,
                    f"{label} std": cell.score.std if cell else None,
                }
            rows.append(row)
    return rows


def _where(board: Board) -> dict[str, Any]:
    limit = {} if board.limit is None else {"limit": board.limit[0], "limit_value": board.limit[1]}
    return {"dataset": board.dataset, "scenario": board.scenario, "recipe": board.meta.get("recipe", ""), **limit}


def _value(name: str, value: Estimate) -> dict[str, Any]:
    return {name: value.mean, "std": value.std, "low": value.low, "high": value.high, "runs": value.n}


def _sorted(board: Board) -> list[Cell]:
    difficulties, defenses = (
        {name: place for place, name in enumerate(names)} for names in (board.difficulties, board.defenses)
    )
    attacks = {name: place for place, name in enumerate((*board.attacks, *board.white_box))}
    return sorted(
        board.cells,
        key=lambda cell: (
            difficulties.get(cell.difficulty, len(difficulties)),
            cell.knowledge == "white-box",
            attacks.get(cell.attack, len(attacks)),
            defenses.get(cell.defense, len(defenses)),
        ),
    )


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """CSV with a header of all columns in the order in which they appear; no cell of it becomes a formula."""
    headers = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([csv_text(name) for name in headers])
    for row in rows:
        writer.writerow([csv_text(_number(row.get(name))) for name in headers])
    return text.getvalue()


def _number(value: Any) -> Any:
    return float(f"{value:.10g}") if isinstance(value, float) else value


def to_json(boards: Iterable[Board]) -> str:
    """All boards with all records, as one JSON object; NaN is a bug and raises."""
    return json.dumps({"format": FORMAT, "boards": [board.to_dict() for board in boards]}, allow_nan=False) + "\n"


def to_markdown(board: Board, difficulty: str | None = None, metric: str = "score") -> str:
    """Tables of a board for a page of Markdown."""
    parts = [f"### {markdown_text(table.heading(board, table.chosen_difficulty(board, difficulty)))}"]
    for each in table.tables(board, difficulty, metric):
        rule = ["---", *["---:"] * (len(each.headers) - 1)]
        lines = [each.headers, rule, *each.rows]
        texts = [
            "| " + " | ".join(line if line in rule else markdown_text(line) for line in row) + " |" for row in lines
        ]
        parts.append("\n".join(texts))
    if board.flags:
        parts.append("\n".join(f"- warning: {markdown_text(shown(flag, 400))}" for flag in board.flags))
    return "\n\n".join(parts) + "\n"


def to_latex(board: Board, difficulty: str | None = None, metric: str = "score") -> str:
    """Tables of a board for a paper: ``booktabs`` tabulars, one after the other."""
    parts = []
    for each in table.tables(board, difficulty, metric):
        lines = [" & ".join(map(latex_text, row)) + r" \\" for row in (each.headers, *each.rows)]
        columns = "l" + "r" * (len(each.headers) - 1)
        parts += [
            f"% {' '.join(each.title.split())}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
        ]
        parts += [*lines[1:], r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(parts) + "\n"


# back from JSON


def read_boards(path: str | os.PathLike[str]) -> list[Board]:
    """The boards of a file that :func:`to_json` wrote; anything else is refused."""
    path = Path(path)
    try:
        if size_of(path) > MAX_BYTES:
            raise DataError(f"{path} is larger than {MAX_BYTES} bytes; it was not written by grb")
        values = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON of boards ({str(error)[:80]})") from None
    boards = values.get("boards") if isinstance(values, dict) else None
    if not isinstance(boards, list) or not boards:
        raise DataError(f"{path} holds no boards; `grb leaderboard STORE --format json` writes such files")
    return [board_from_dict(board) for board in boards]


def board_from_dict(values: Mapping[str, Any]) -> Board:
    """A board from :meth:`Board.to_dict`."""
    try:
        if values["format"] != FORMAT:
            raise ValueError(f"format {values['format']}")
        board = Board(
            dataset=str(values["dataset"]),
            scenario=str(values["scenario"]),
            difficulties=_names(values["difficulties"]),
            attacks=_names(values["attacks"]),
            white_box=_names(values["white_box"]),
            defenses=_names(values["defenses"]),
            cells=tuple(_cell(cell) for cell in values["cells"]),
            by_defense=_summaries(values["by_defense"]),
            by_attack=_summaries(values["by_attack"]),
            ranks={
                str(difficulty): {str(name): (int(low), int(high)) for name, (low, high) in own.items()}
                for difficulty, own in values["ranks"].items()
            },
            flags=_names(values["flags"]),
            meta=dict(values["meta"]),
            metric=str(values["metric"]),
            objective=str(values["objective"]),
            limit=None if values["limit"] is None else (str(values["limit"][0]), _finite(values["limit"][1])),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"this is no board of format {FORMAT} ({error!r:.80}); it was not written by grb") from None
    if not board.difficulties or not board.cells:
        raise DataError("there is nothing to show: the board has no cells")
    return board


def _names(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"a list of names is needed, got {type(values).__name__}")
    return tuple(str(value) for value in values)


def _cell(values: Mapping[str, Any]) -> Cell:
    paper = values["paper"]
    if values["knowledge"] not in ("none", "transfer", "white-box"):
        raise ValueError(f"knowledge {values['knowledge']}")
    if not all(isinstance(metadata, Mapping) for metadata in values["metadata"]):
        raise TypeError("metadata are mappings")
    return Cell(
        attack=str(values["attack"]),
        defense=str(values["defense"]),
        difficulty=str(values["difficulty"]),
        knowledge=values["knowledge"],
        score=_read_value(values["score"]),
        changed=_read_value(values["changed"]),
        values=tuple(_finite(value) for value in values["values"]),
        metadata=tuple(values["metadata"]),
        paper=None if paper is None else (_finite(paper[0]), _finite(paper[1])),
        metrics={str(name): _read_value(value) for name, value in values["metrics"].items()},
    )


def _summaries(values: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Estimate]]]:
    return {
        str(difficulty): {
            str(name): {str(summary): _read_value(value) for summary, value in own.items()}
            for name, own in methods.items()
        }
        for difficulty, methods in values.items()
    }


def _read_value(values: Mapping[str, Any]) -> Estimate:
    low, high = (None if values[end] is None else _finite(values[end]) for end in ("low", "high"))
    return Estimate(_finite(values["mean"]), _finite(values["std"]), low, high, int(values["n"]))


def _finite(value: Any) -> float:
    number = float(value)
    if isinstance(value, str) or not math.isfinite(number):
        raise ValueError(f"{value!r} is no number")
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
