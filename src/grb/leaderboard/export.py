"""Boards as CSV, JSON and Markdown, and back from JSON."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grb.atomic import size_of
from grb.errors import DataError
from grb.evaluator.board import FORMAT, Board, Cell, Estimate
from grb.evaluator.claims import Claim
from grb.leaderboard import table
from grb.leaderboard.text import csv_text, latex_text, markdown_text, sanitize
from grb.leaderboard.vouching import UNSIGNED, Vouching, claims_by_cell, measured_by, place_of

MAX_BYTES = 512 * 2**20


def cell_rows(board: Board) -> list[dict[str, Any]]:
    """One row per cell: accuracy as a share with std and interval, the paper's beside it, what an attack cost."""
    spent, claims = table.costs(board), claims_by_cell(board)
    return [
        {
            **_where(board),
            "difficulty": cell.difficulty,
            "attack": cell.attack,
            "knowledge": cell.knowledge,
            "defense": cell.defense,
            **_value(board.metric, cell.score),
            "changed": cell.changed.mean if cell.changed.n else None,
            **{name: value.mean for name, value in cell.metrics.items()},
            "paper_accuracy": None if cell.paper is None else cell.paper[0] / 100,
            "paper_std": None if cell.paper is None else cell.paper[1] / 100,
            "attack_cpu_seconds": spent.get((cell.attack, cell.difficulty, cell.knowledge == "white-box")),
            **_claimed(claims.get(place_of(cell))),
            "measured_by": measured_by([cell]),
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
            "measured_by": metadata.get("measured_by", UNSIGNED),
        }
        for cell in _sorted(board)
        for number, (value, metadata) in enumerate(zip(cell.values, [*cell.metadata, *[{}] * len(cell.values)]))
    ]


def wide_rows(board: Board) -> list[dict[str, Any]]:
    """One row per defense and difficulty: ranks, summaries, and the mean and std under every attack."""
    columns = [(attack, False) for attack in board.attacks] + [(attack, True) for attack in board.white_box]
    rows = []
    for difficulty in board.difficulties:
        vouching = Vouching.of(board, difficulty)
        for defense in table.ordered(board, difficulty):
            claimed, found = vouching.compared(defense) or (None, None)
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
            row |= {
                "claimed": claimed,
                "re_evaluated": found,
                "claim_differs": _yes(vouching.differs(defense), claimed),
            }
            rows.append(row | {"measured_by": vouching.defenses.get(defense, UNSIGNED)})
    return rows


def _where(board: Board) -> dict[str, Any]:
    limit = {} if board.limit is None else {"limit": board.limit[0], "limit_value": board.limit[1]}
    return {"dataset": board.dataset, "scenario": board.scenario, "recipe": board.meta.get("recipe", ""), **limit}


def _value(name: str, value: Estimate) -> dict[str, Any]:
    return {name: value.mean, "std": value.std, "low": value.low, "high": value.high, "runs": value.n}


def _claimed(claim: Claim | None) -> dict[str, Any]:
    claimed, found = (None, None) if claim is None else (claim.claimed, claim.found)
    return {
        "claimed": claimed,
        "re_evaluated": found,
        "claim_differs": _yes(claim is not None and claim.differs, claimed),
    }


def _yes(differs: bool, claimed: float | None) -> str | None:
    return None if claimed is None else "yes" if differs else "no"


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
        parts.append("\n".join(f"- warning: {markdown_text(sanitize(flag, 400))}" for flag in board.flags))
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
    values = read_json(Path(path), MAX_BYTES, "`grb leaderboard STORE --format json` writes boards")
    boards = values.get("boards") if isinstance(values, dict) else None
    if not isinstance(boards, list) or not boards:
        raise DataError(f"{path} holds no boards; `grb leaderboard STORE --format json` writes such files")
    return [Board.from_dict(board) for board in boards]


def read_json(path: Path, most: int, advice: str) -> Any:
    """The value of a JSON file of at most this number of bytes; what else it is, is refused with the advice."""
    try:
        if size_of(path) > most:
            raise DataError(f"{path} is larger than {most} bytes; {advice}, and shorter ones")
        return json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON ({str(error)[:80]}); {advice}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
