"""Boards from CSV files of single scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grb.errors import DataError
from grb.evaluator.board import CLEAN, POOL, Board, Run, board_from_runs
from grb.leaderboard import cell_rows, read_scores, run_rows, to_csv, to_json
from grb.leaderboard.headline import answers
from grb.leaderboard.page import build_page
from made_boards import HOSTILE, made_board

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
HEAD = "dataset,scenario,difficulty,attack,knowledge,defense,repeat,victim,accuracy,changed\n"


def written(path: Path, board: Board) -> Path:
    path.write_text(to_csv(run_rows(board)), encoding="utf-8")
    return path


@pytest.mark.parametrize("victims", [1, 3])
def test_a_board_comes_back_from_its_scores(tmp_path, victims):
    board = made_board(victims=victims)
    (back,) = read_scores(written(tmp_path / "scores.csv", board))
    for name in ("dataset", "scenario", "difficulties", "attacks", "white_box", "defenses", "ranks", "rank_by"):
        assert getattr(back, name) == getattr(board, name), name
    for difficulty, own in board.by_defense.items():
        for defense, values in own.items():
            for name in set(values) - {"worst_node"}:  # which targets stayed right is in no such file
                found = back.by_defense[difficulty][defense][name]
                assert (found.mean, found.n) == (pytest.approx(values[name].mean), values[name].n), name
            assert "worst_node" not in back.by_defense[difficulty][defense]


def test_the_worst_case_is_computed_anew(tmp_path):
    def run(attack, defense, score, knowledge, **options):
        return Run(attack, defense, "full", 0, 0, score, 0.1, knowledge, metadata={}, **options)

    rows = [
        each
        for defense, low in (("gcn", 0.1), ("mlp", 0.6))
        for each in (
            run(CLEAN, defense, 0.8, "none"),
            run("fgsm", defense, 0.7, "transfer"),
            run("auto", defense, low, "white-box", battery="auto 2"),
            run("auto", defense, low - 0.05, "white-box", battery="auto 2", labels="true"),
            run("auto", defense, 0.65, "transfer", battery="auto 2"),
        )
    ]
    board = board_from_runs(rows, dataset="d", scenario="injection", difficulties=["full"], meta={"recipe": "r"})
    (back,) = read_scores(written(tmp_path / "scores.csv", board))
    assert (back.rank_by, back.defenses) == ("worst_case", ("mlp", "gcn")) and POOL in back.attacks
    gcn = back.by_defense["full"]["gcn"]
    assert gcn["worst_case"].mean == pytest.approx(0.05) and gcn["worst_case_predicted"].mean == pytest.approx(0.1)
    assert gcn["weighted"].mean == pytest.approx(board.by_defense["full"]["gcn"]["weighted"].mean)


# as `leaderboard show results --format csv-runs` of version 0.1 wrote them; keys are shortened
OF_0_1 = """\
dataset,scenario,recipe,mode,attack,knowledge,defense,run,accuracy,score,victim,victim_seed,attack_key,attack_seed,attack_seconds,threads
synth-tiny,injection,synth-tiny,full,rnd,transfer,gcn,0,0.8555555556,aa,bb,0,cc,0,0.0016,1
synth-tiny,injection,synth-tiny,full,rnd,transfer,gcn,1,0.8444444444,ab,bb,0,cd,1,0.0016,1
synth-tiny,injection,synth-tiny,full,none,none,gcn,0,0.8666666667,ad,bb,0,,,,1
synth-tiny,injection,synth-tiny,full,pgd,white-box,gcn,0,0.8222222222,ae,bb,0,ce,0,0.0096,1
"""


def test_scores_that_version_0_1_exported_make_a_board(tmp_path):
    path = tmp_path / "old.csv"
    path.write_text(OF_0_1, encoding="utf-8")
    (board,) = read_scores(path)
    assert (board.dataset, board.difficulties, board.attacks, board.white_box) == (
        "synth-tiny",
        ("full",),
        ("rnd", CLEAN),
        ("pgd",),
    )
    rnd = board.cell("rnd", "gcn", "full")
    assert rnd is not None and sorted(rnd.values) == [0.8444444444, 0.8555555556]
    white = board.cell("pgd", "gcn", "full", white_box=True)
    assert white is not None and white.values == (0.8222222222,)


def test_a_table_says_which_labels_an_attack_aimed_at(tmp_path):
    rows = [
        f"d,injection,full,{attack},{knowledge},gcn,0,0,{score},0.1,{labels}"
        for attack, knowledge, score, labels in (
            ("none", "none", 0.8, "predicted"),
            ("auto", "white-box", 0.3, "predicted"),
            ("auto", "white-box", 0.1, "true"),
            ("auto", "transfer", 0.25, "predicted"),
            ("auto", "transfer", 0.2, "true"),
        )
    ]
    path = tmp_path / "scores.csv"
    path.write_text(HEAD.strip() + ",labels\n" + "\n".join(rows), encoding="utf-8")
    (board,) = read_scores(path)
    gcn = board.by_defense["full"]["gcn"]
    assert gcn["worst_case"].mean == pytest.approx(0.1) and gcn["worst_case_predicted"].mean == pytest.approx(0.25)
    path.write_text(path.read_text(encoding="utf-8").replace(",true", ",secret"), encoding="utf-8")
    with pytest.raises(DataError, match=r"labels is 'secret', but predicted or true is needed"):
        read_scores(path)


def test_what_was_not_written_stays_unknown(tmp_path):
    (back,) = read_scores(written(tmp_path / "scores.csv", made_board(("gcn", "mlp"), ("fgsm",))))
    rows = cell_rows(back)
    assert {row["changed"] for row in rows if row["attack"] != CLEAN} == {None}
    page = build_page([back])
    assert len(page) < 300_000 and to_json([back])


@pytest.mark.parametrize(
    "name", ["worst-case-grb-cora", "victims-grb-cora", "defenses-grb-cora", "leaderboard-grb-cora-modification"]
)
def test_committed_scores_make_boards(name):
    (board,) = read_scores(RESULTS / f"{name}.csv")
    assert board.dataset == "grb-cora" and board.by_defense["full"]["gcn"]["weighted"].n >= 1
    assert (board.rank_by == "worst_case") == (name == "worst-case-grb-cora")


def test_a_recipe_of_grb_brings_its_title_and_its_limits():
    (board,) = read_scores(RESULTS / "worst-case-grb-cora.csv")
    assert board.meta["title"] == "Worst case of injections on grb-cora"
    assert "add up to 60 nodes with up to 20 edges each" in answers(board, "full").attacker


def test_a_file_named_after_the_board_of_a_recipe_brings_them_too():
    for name, title, allowed in (
        ("leaderboard-grb-cora", "Injection on grb-cora (Table 13)", "up to 60 nodes with up to 20 edges each"),
        (
            "leaderboard-grb-cora-modification",
            "Modification on grb-cora",
            "add or drop up to 5 % of the edges and change the features of up to 5 % of the targets",
        ),
    ):
        (board,) = read_scores(RESULTS / f"{name}.csv")
        assert board.meta["title"] == title and board.meta["recipe"] == name.removeprefix("leaderboard-")
        assert allowed in answers(board, "full").attacker


def test_a_sweep_has_a_board_for_every_value_and_the_clean_graph_in_each():
    boards = read_scores(RESULTS / "budget-grb-cora.csv")
    assert [board.limit for board in boards[:2]] == [("nodes", 10.0), ("nodes", 20.0)] and len(boards) == 11
    assert all(board.cell(CLEAN, "gcn", "full") is not None for board in boards)


def test_cells_that_were_kept_from_being_formulas_get_their_names_back(tmp_path):
    board = replace(made_board(HOSTILE, ("=a", "@b"), difficulties=("full",)))
    (back,) = read_scores(written(tmp_path / "scores.csv", board))
    assert set(back.attacks) == {"=a", "@b", CLEAN} and HOSTILE[5] in back.defenses


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("dataset,attack\nd,a\n", "no column scenario"),
        (HEAD, "holds no scores"),
        (HEAD + "d,injection,full,fgsm,transfer,gcn,0,0,much,0\n", "accuracy is 'much'"),
        (HEAD + "d,injection,full,fgsm,transfer,gcn,0,0,nan,0\n", "accuracy is 'nan'"),
        (HEAD + "d,injection,full,fgsm,transfer,gcn,0,0,1.5,0\n", "fraction from 0 to 1"),
        (HEAD + "d,injection,full,fgsm,guess,gcn,0,0,.5,0\n", "knowledge is 'guess'"),
        (HEAD + "d,injection,full,fgsm,transfer,gcn,0.5,0,.5,0\n", "whole number"),
        (HEAD + "d,injection\n", "too short"),
        (
            HEAD.replace("repeat", "limit,limit_value,repeat")
            + "grb-cora,injection,full,a,transfer,gcn,nodes,inf,0,0,.5,0\n",
            "limit_value",
        ),
        (HEAD + 'd,"injection\n', "is no CSV"),
        (HEAD.replace(",accuracy,changed", ""), "no column of scores"),
    ],
)
def test_other_files_are_refused_with_advice(tmp_path, text, complaint):
    path = tmp_path / "scores.csv"
    path.write_text(
        text + ("d,injection,full,a,none,gcn,0,0\n" if "no column of" in complaint else ""), encoding="utf-8"
    )
    with pytest.raises(DataError, match=complaint):
        read_scores(path)
