from __future__ import annotations

import csv
import io
import json

import pytest

from grb.errors import DataError
from grb.evaluator.board import Board
from grb.leaderboard import export
from made_boards import HOSTILE, made_board


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_one_row_per_cell_with_error_bars_and_the_papers_value():
    board = made_board(paper=True)
    found = read(export.to_csv(export.cell_rows(board)))
    assert len(found) == len(board.cells)
    row = next(row for row in found if (row["attack"], row["defense"], row["difficulty"]) == ("fgsm", "gcn", "easy"))
    cell = board.cell("fgsm", "gcn", "easy")
    assert cell is not None
    assert float(row["accuracy"]) == pytest.approx(cell.score.mean)
    assert float(row["std"]) == pytest.approx(cell.score.std)
    assert float(row["low"]) == pytest.approx(cell.score.low)
    assert (row["runs"], row["paper_accuracy"], row["paper_std"]) == ("3", "0.6125", "0.015")
    assert float(row["attack_cpu_seconds"]) == 1.5
    assert {row["knowledge"] for row in found} == {"none", "transfer", "white-box"}


def test_one_row_per_run_with_keys_and_seeds():
    board = made_board()
    found = read(export.to_csv(export.run_rows(board)))
    assert len(found) == sum(len(cell.values) for cell in board.cells)
    assert all(len(row["score"]) == 64 for row in found)
    attacked = [row for row in found if row["attack"] == "fgsm"]
    assert all(len(row["attack_key"]) == 64 and row["attack_seed"] == row["run"] for row in attacked)
    assert {row["attack_key"] for row in found if row["attack"] == "none"} == {""}


def test_one_row_per_defense_and_difficulty():
    board = made_board()
    found = read(export.to_csv(export.wide_rows(board)))
    assert len(found) == len(board.defenses) * len(board.difficulties)
    row = found[0]
    assert {"rank_best", "rank_worst", "weighted", "worst_node_std", "fgsm", "fgsm std", "pgd (white-box)"} <= set(row)
    full = [row for row in found if row["difficulty"] == "full"]
    assert [row["defense"] for row in full] == list(board.defenses)


@pytest.mark.parametrize("rows", [export.cell_rows, export.run_rows, export.wide_rows])
def test_no_cell_of_a_csv_becomes_a_formula(rows):
    names = ["=1+1", "+cmd", "-cmd", "@sum", "\tx", "\rx", " =x", "fine"]
    board = made_board(defenses=names, attacks=["=a", "@b"], difficulties=("full",), dataset="=d", recipe="-r")
    table = list(csv.reader(io.StringIO(export.to_csv(rows(board)))))
    dangerous = [
        cell for line in table for cell in line if cell.lstrip()[:1] in "=+-@" and cell and not _is_number(cell)
    ]
    assert dangerous == []
    assert "fine" in {cell for line in table for cell in line}


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_a_board_survives_json():
    board = made_board(paper=True, flags=["gcn is odd"], victims=2)
    text = export.to_json([board])
    (back,) = [Board.from_dict(each) for each in json.loads(text)["boards"]]
    assert back.to_dict() == board.to_dict()
    assert back.cell("fgsm", "gcn", "full") is not None


def test_boards_from_a_file(tmp_path):
    path = tmp_path / "boards.json"
    path.write_text(export.to_json([made_board(), made_board(dataset="other")]), encoding="utf-8")
    assert [board.dataset for board in export.read_boards(path)] == ["made-up", "other"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no JSON .* writes boards"),
        ("[" * 100_000, "is no JSON .* writes boards"),
        ('{"boards": NaN}', "is no JSON .* writes boards"),
        ("[]", "holds no boards"),
        ('{"boards": []}', "holds no boards"),
        ('{"boards": [{}]}', "not a board of format 2"),
        ('{"boards": [7]}', "not a board of format 2"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path, text, words):
    path = tmp_path / "boards.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=words):
        export.read_boards(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("format", 1),
        ("cells", [7]),
        ("cells", []),
        ("difficulties", "full"),
        ("difficulties", []),
        ("ranks", {"full": {"gcn": [1]}}),
        ("by_defense", {"full": {"gcn": {"weighted": {"mean": "x", "std": 0, "low": None, "high": None, "n": 1}}}}),
        ("meta", 5),
    ],
)
def test_a_board_with_a_wrong_part_is_refused(place, value):
    values = made_board().to_dict()
    values[place] = value
    with pytest.raises(DataError):
        Board.from_dict(values)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*No such file"):
        export.read_boards(tmp_path / "none.json")


def test_markdown_has_every_table_and_no_markup_of_others():
    text = export.to_markdown(made_board(defenses=HOSTILE, difficulties=("full",), paper=True, flags=["<b>odd</b>"]))
    tables = [part for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) == 4
    for part in tables:
        widths = {line.replace("\\|", "").count("|") for line in part.splitlines()}
        assert len(widths) == 1
    assert "<" not in text
    assert "- warning: &lt;b&gt;odd&lt;/b&gt;" in text
