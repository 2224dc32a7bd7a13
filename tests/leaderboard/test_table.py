from __future__ import annotations

import numpy as np
import pytest

from grb.errors import UnknownName
from grb.evaluator.board import CLEAN, Run, board_from_runs
from grb.leaderboard import table
from made_boards import HOSTILE, made_board


def rows(values, *, victims=("v0",)):
    """Rows from {(attack, defense): [accuracy of every run]}; runs go round the victims."""
    found = []
    for (attack, defense), own in values.items():
        for place, accuracy in enumerate(own):
            victim = place % len(victims)
            metadata = {"victim": f"{defense}-{victims[victim]}"}
            if attack != CLEAN:
                metadata |= {"attack": f"{attack}-{place}", "attack_seconds": 1.0 + place}
            knowledge = "none" if attack == CLEAN else "transfer"
            repeat = place // len(victims)
            found.append(Run(attack, defense, "full", repeat, victim, accuracy, 0.1, knowledge, None, metadata))
    return found


def small(**options):
    values = {
        (CLEAN, "gcn"): [0.9],
        (CLEAN, "mlp"): [0.6],
        ("pgd", "gcn"): [0.5, 0.7],
        ("pgd", "mlp"): [0.6, 0.6],
        ("rnd", "gcn"): [0.85, 0.87],
        ("rnd", "mlp"): [0.6, 0.6],
    }
    return board_from_runs(rows(values), dataset="d", scenario="injection", difficulties=("full",), **options)


def test_the_summary_ranks_by_the_weighted_accuracy():
    found = table.summary_table(small())
    assert found.headers == ("defense", "rank", "weighted", "average", "3-min", "worst graph", "measured by")
    assert [row[0] for row in found.rows] == ["gcn", "mlp"]
    # weights 36/49, 9/49, 4/49 of the ascending accuracies 0.5, 0.85, 0.9 and 0.7, 0.87, 0.9
    first = (36 * 0.5 + 9 * 0.85 + 4 * 0.9) / 49
    second = (36 * 0.7 + 9 * 0.87 + 4 * 0.9) / 49
    mean, std = np.mean([first, second]), np.std([first, second])
    assert found.rows[0][2] == f"{100 * mean:.1f} ±{100 * std:.1f}"
    assert found.numbers == found.headers[1:-1]


def test_the_matrix_has_a_column_per_attack_and_the_clean_graph_last():
    found = table.heat_table(small())
    assert found.headers == ("defense", "pgd", "rnd", "none")
    assert found.rows[0] == ("gcn", "60.0 ±10.0", "86.0 ±1.0", "90.0")


def test_the_drop_is_taken_run_by_run_from_the_same_victim():
    values = {(CLEAN, "gcn"): [0.9, 0.5], ("pgd", "gcn"): [0.6, 0.4]}
    board = board_from_runs(
        rows(values, victims=("v0", "v1")), dataset="d", scenario="injection", difficulties=("full",)
    )
    lost = table.drops(board)["pgd", "gcn", "full", False]
    assert lost.mean == pytest.approx(0.2)
    assert lost.std == pytest.approx(0.1)  # 0.3 and 0.1; beside the mean clean accuracy both would be 0.1 off
    assert table.heat_table(board, metric="drop").rows == (("gcn", "20.0 ±10.0", "-"),)


def test_no_drop_is_claimed_where_victims_cannot_be_told():
    values = {(CLEAN, "gcn"): [0.9, 0.5], ("pgd", "gcn"): [0.6, 0.4]}
    anonymous = [
        Run(row.attack, row.defense, row.difficulty, row.repeat, row.victim, row.score, 0.1, row.knowledge)
        for row in rows(values, victims=("v0", "v1"))
    ]
    board = board_from_runs(anonymous, dataset="d", scenario="injection", difficulties=("full",))
    assert table.drops(board) == {}


def test_an_attack_costs_what_its_runs_cost_each_counted_once():
    # a run of 1 second that two defenses met, and one of 2 seconds that only one met
    values = {("pgd", "gcn"): [0.5, 0.7], ("pgd", "mlp"): [0.6]}
    uneven = board_from_runs(rows(values), dataset="d", scenario="injection", difficulties=("full",))
    assert table.costs(uneven) == {("pgd", "full", False): 1.5}
    found = table.attack_table(small())
    assert found.headers[-2:] == ("CPU s", "measured by")
    assert [row[0] for row in found.rows] == ["pgd", "rnd", "none"]
    assert [row[-2] for row in found.rows] == ["1.5", "1.5", "-"]


def test_the_papers_value_ours_and_the_difference_stand_side_by_side():
    board = small(paper={("pgd", "gcn", "full"): (58.5, 1.25)})
    found = table.paper_table(board)
    assert found is not None
    assert found.rows == (("pgd", "gcn", "58.50 ±1.25", "60.00 ±10.00", "+1.50"),)
    assert table.heat_table(board, metric="difference").rows[0] == ("gcn", "+1.5 ±10.0", "-", "-")
    assert table.paper_table(small()) is None
    assert len(table.tables(board)) == len(table.tables(small())) + 1


def test_white_box_attacks_have_columns_of_their_own():
    board = made_board(attacks=("pgd",), white_box=("pgd",))
    assert table.heat_table(board).headers == ("defense", "pgd", "none", "pgd (white-box)")
    assert "white-box" in table.summary_table(board).headers


def test_difficulties_by_name_or_first_letter():
    board = made_board()
    assert table.chosen_difficulty(board, None) == "full"
    assert table.chosen_difficulty(board, "e") == table.chosen_difficulty(board, "Easy") == "easy"
    with pytest.raises(UnknownName, match="This board has easy, medium, hard, full"):
        table.chosen_difficulty(board, "extreme")
    with pytest.raises(UnknownName, match="Did you mean 'accuracy'"):
        table.check_metric("acuracy", [board])


def test_another_difficulty_has_another_order():
    values = {("pgd", "gcn"): [0.2], ("pgd", "gat"): [0.4]}
    easy = rows(values)
    full = [
        Run(
            row.attack,
            row.defense,
            "full",
            0,
            0,
            0.9 if row.defense == "gcn" else 0.1,
            0.1,
            "transfer",
            None,
            row.metadata,
        )
        for row in easy
    ]
    swapped = [
        Run(row.attack, row.defense, "easy", 0, 0, row.score, 0.1, "transfer", None, row.metadata) for row in easy
    ]
    board = board_from_runs([*swapped, *full], dataset="d", scenario="injection", difficulties=("easy", "full"))
    assert [row[0] for row in table.summary_table(board, "full").rows] == ["gcn", "gat"]
    assert [row[0] for row in table.summary_table(board, "easy").rows] == ["gat", "gcn"]


def test_hostile_names_are_one_short_line_each():
    board = made_board(defenses=HOSTILE, attacks=HOSTILE[:3], difficulties=("full",))
    for found in table.tables(board):
        for row in (found.headers, *found.rows):
            assert all(len(cell) <= 80 and cell.isprintable() for cell in row)
    assert len({row[0] for row in table.heat_table(board).rows}) == len(HOSTILE)
