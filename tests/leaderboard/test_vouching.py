from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from grb.evaluator.board import Board
from grb.evaluator.claims import Claim
from grb.leaderboard import export, table
from grb.leaderboard.data import page_data
from grb.leaderboard.page import build_page
from grb.leaderboard.vouching import Vouching
from made_boards import HOSTILE, made_board


def vouched(signer: Any = lambda cell: "Our lab") -> Board:
    """A board of which "gat" and "rnd" were submitted, with a signer for every cell."""
    board = made_board(difficulties=("easy", "full"))
    cells = tuple(
        replace(cell, metadata=tuple({**run, "measured_by": signer(cell)} for run in cell.metadata))
        for cell in board.cells
    )
    claims = (
        Claim("gat", "defense", "tdgia", "full", 0.9, 0.5, 0.4, 0.6),
        Claim("gat", "defense", "none", "full", 0.8, 0.7, 0.6, 0.85),
        Claim("gat", "defense", "pgd (white-box)", "full", 0.4, 0.3, 0.2, 0.5),
        Claim("rnd", "attack", "gcn", "full", 0.25, 0.25, 0.2, 0.3),
        Claim("rnd", "attack", "sage", "full", 0.5),
    )
    return replace(board, cells=cells, claims=claims)


def rows_of(found: table.Table) -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(found.headers, row, strict=True)) for row in found.rows}


def test_without_a_signature_every_row_says_unsigned() -> None:
    board = made_board()
    for found in (table.summary_table(board), table.attack_table(board)):
        assert {row["measured by"] for row in rows_of(found).values()} == {"unsigned"}
        assert "claimed" not in found.headers


def test_a_row_says_who_measured_it_and_how_much_of_it() -> None:
    board = vouched(
        lambda cell: "Our lab" if cell.defense == "gcn" else "unsigned" if cell.attack == "rnd" else "Lab 2"
    )
    rows = rows_of(table.summary_table(board))
    assert rows["gcn"]["measured by"] == "Our lab"
    # three repeats of three attacks, the clean graph and one white-box run: 3 + 3 + 3 + 1 + 1
    assert rows["mlp"]["measured by"] == "Lab 2 (8), unsigned (3)"
    assert rows_of(table.attack_table(board))["rnd"]["measured by"] == "unsigned (9), Our lab (3)"


def test_claimed_and_re_evaluated_are_two_columns_of_the_rows_that_claim() -> None:
    rows = rows_of(table.summary_table(vouched(), "full"))
    assert (rows["gat"]["claimed"], rows["gat"]["re-evaluated"]) == ("70.0 (differs)", "50.0")
    assert (rows["gcn"]["claimed"], rows["gcn"]["re-evaluated"]) == ("-", "-")
    attacks = rows_of(table.attack_table(vouched(), "full"))
    assert (attacks["rnd"]["claimed"], attacks["rnd"]["re-evaluated"]) == ("25.0", "25.0")
    assert "claimed" not in table.summary_table(vouched(), "easy").headers


def test_every_claim_is_listed_with_its_verdict() -> None:
    found = table.claims_table(vouched(), "full")
    assert found is not None and found in table.tables(vouched(), "full")
    assert [row[-1] for row in found.rows] == ["differs", "agrees", "agrees", "agrees", "not measured"]
    assert found.rows[0] == ("gat", "tdgia", "90.0", "50.0", "40.0 to 60.0", "differs")
    assert table.claims_table(vouched(), "easy") is None and table.claims_table(made_board()) is None


def test_markdown_and_latex_have_the_columns() -> None:
    for text in (export.to_markdown(vouched(), "full"), export.to_latex(vouched(), "full")):
        assert "re-evaluated" in text and "measured by" in text and "70.0 (differs)" in text and "Our lab" in text


def test_csv_has_a_claim_beside_the_score_of_its_cell() -> None:
    board = vouched()
    cells = list(csv.DictReader(io.StringIO(export.to_csv(export.cell_rows(board)))))
    found = {
        (row["attack"], row["knowledge"], row["defense"]): (row["claimed"], row["re_evaluated"], row["claim_differs"])
        for row in cells
        if row["claimed"]
    }
    assert found == {
        ("tdgia", "transfer", "gat"): ("0.9", "0.5", "yes"),
        ("none", "none", "gat"): ("0.8", "0.7", "no"),
        ("pgd", "white-box", "gat"): ("0.4", "0.3", "no"),
        ("rnd", "transfer", "gcn"): ("0.25", "0.25", "no"),
    }
    assert {row["measured_by"] for row in cells} == {"Our lab"}
    wide = {(row["difficulty"], row["defense"]): row for row in export.wide_rows(board)}
    assert wide["full", "gat"]["claimed"] == pytest.approx(0.7) and wide["full", "gat"]["claim_differs"] == "yes"
    assert wide["easy", "gat"]["claimed"] is None and wide["easy", "gat"]["measured_by"] == "Our lab"
    assert {row["measured_by"] for row in export.run_rows(board)} == {"Our lab"}


def test_json_holds_claims_and_signers() -> None:
    board = vouched()
    (values,) = json.loads(export.to_json([board]))["boards"]
    assert len(values["claims"]) == 5 and values["cells"][0]["metadata"][0]["measured_by"] == "Our lab"


def test_the_page_has_claims_and_signers_of_every_row() -> None:
    board = vouched()
    data = page_data(board)
    place = board.defenses.index("gat")
    assert data["claims"]["defenses"][1][place] == [0.7, 0.5, 1] and data["claims"]["defenses"][0][place] is None
    assert data["claims"]["attacks"][1][board.attacks.index("rnd")] == [0.25, 0.25, 0]
    assert set(data["measuredBy"]["defenses"][1]) == {"Our lab"} == set(data["measuredBy"]["attacks"][0])
    claimed = [cell[13] for cell in data["cells"] if cell[13] is not None]
    assert sorted(claimed) == [[0.25, 0.25, 0], [0.4, 0.3, 0], [0.8, 0.7, 0], [0.9, 0.5, 1]]
    # readers without a script see them in the plain table
    assert "<td>70.0 (differs)</td>" in build_page([board]).replace("&gt;", ">")


def test_a_hostile_name_of_a_signer_is_text() -> None:
    for name in HOSTILE:
        text = build_page([vouched(lambda cell, name=name: name)])
        assert name not in text.replace(json.dumps(name)[1:-1], "") or "<" not in name
        assert (
            "<script>alert" not in text
            and len(Vouching.of(vouched(lambda cell, name=name: name), "full").defenses["gcn"]) <= 60
        )
