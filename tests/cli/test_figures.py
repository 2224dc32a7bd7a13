from __future__ import annotations

from dataclasses import replace

import pytest

from grb.leaderboard.export import to_json
from made_boards import made_board, tiny_store

from .conftest import refusal

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def boards_file(tmp_path):
    path = tmp_path / "boards.json"
    path.write_text(to_json([made_board(("gcn", "gcn+ln", "gat+at", "gat"))]), encoding="utf-8")
    return path


def test_a_store_gives_every_figure_that_it_has_data_for(grb, tmp_path):
    done = grb("figures", tiny_store(), "-o", tmp_path / "figures", "--dpi", "40")
    assert done.exit_code == 0, done.stderr
    names = sorted(path.name.removeprefix("synth-tiny-") for path in (tmp_path / "figures").iterdir())
    wanted = ["fig04-degrees", "fig05-vanilla", "fig06-defended", "fig07-difficulty", "fig10-gain-ln"]
    assert names == sorted(f"{name}.png" for name in [*wanted, "process", "degree-accuracy", "unnoticeability"])


def test_a_file_of_boards_gives_those_that_need_no_dataset(grb_json, boards_file, tmp_path):
    told = grb_json("figures", boards_file, "-o", tmp_path / "figures", "--dpi", "40", "--difficulty", "easy")
    drawn = {name.rsplit("made-up-", 1)[1] for name in told["files"]}
    parts = ["fig05-vanilla", "fig06-defended", "fig07-difficulty", "fig10-gain-ln", "fig11-gain-at"]
    assert drawn == {f"{part}.png" for part in parts}
    assert {each["figure"] for each in told["skipped"]} == {"degrees", "process", "degree-accuracy", "unnoticeability"}
    reasons = {each["figure"]: each["reason"] for each in told["skipped"]}
    assert "needs the store" in reasons.pop("process")
    assert all("no dataset 'made-up'" in reason for reason in reasons.values())


def test_a_file_of_scores_gives_the_same_figures(grb_json, grb, boards_file, tmp_path):
    scores = tmp_path / "scores.csv"
    assert grb("leaderboard", boards_file, "--format", "csv-runs", "-o", scores).exit_code == 0
    told = grb_json(
        "figures", scores, "-o", tmp_path / "figures", "--dpi", "40", "--only", "rankings", "--only", "gains"
    )
    assert {name.rsplit("made-up-", 1)[1] for name in told["files"]} == {
        f"{part}.png" for part in ("fig05-vanilla", "fig06-defended", "fig10-gain-ln", "fig11-gain-at")
    }


@pytest.mark.parametrize("kind", STARTS)
def test_formats(grb, boards_file, tmp_path, kind):
    done = grb("figures", boards_file, "-o", tmp_path / "out", "--only", "difficulty", "--format", kind)
    assert done.exit_code == 0
    (path,) = (tmp_path / "out").iterdir()
    assert path.name == f"made-up-fig07-difficulty.{kind}" and path.read_bytes().startswith(STARTS[kind])


def test_a_board_with_a_sweep_gets_the_figures_of_the_limits(grb, tmp_path):
    path = tmp_path / "boards.json"
    boards = [replace(made_board(difficulties=("full",)), limit=("nodes", value)) for value in (10.0, 20.0)]
    path.write_text(to_json(boards), encoding="utf-8")
    assert grb("figures", path, "-o", tmp_path / "out", "--dpi", "40").exit_code == 0
    names = sorted(each.name for each in (tmp_path / "out").iterdir())
    assert names == ["made-up-fig08-limits-models.png", "made-up-fig09-limits-attacks.png"]


def test_a_board_with_certificates_gets_what_is_certified_and_attacked(grb, tmp_path):
    path, board = tmp_path / "boards.json", made_board(difficulties=("full",))
    about = {
        "defense": board.defenses[0],
        "difficulty": "full",
        "seed": 0,
        "own_model": True,
        "refusal": "",
        "unit": "injected nodes",
        "budget": 3,
        "curve": {"0": 0.3, "3": 0.1},
    }
    path.write_text(to_json([replace(board, meta={**board.meta, "certificates": [about]})]), encoding="utf-8")
    assert grb("figures", path, "-o", tmp_path / "out", "--dpi", "40", "--only", "bracket").exit_code == 0
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["made-up-bracket.png"]
    path.write_text(to_json([board]), encoding="utf-8")
    assert (
        "no certificate of a defense itself" in grb("figures", path, "-o", tmp_path / "out", "--only", "bracket").stderr
    )


def test_refusals_are_one_sentence_and_nothing_is_written(grb, boards_file, tmp_path):
    cases = {
        ("--only", "degreees"): "Did you mean 'degrees'?",
        ("--format", "bmp"): "Allowed: png, svg, pdf",
        ("--dpi", "5"): "from 30 to 1200",
        ("--difficulty", "extreme"): "This board has easy",
        ("--only", "degrees"): "none of these figures can be drawn",
    }
    for arguments, words in cases.items():
        done = grb("figures", boards_file, "-o", tmp_path / "out", *arguments)
        assert done.exit_code == 2
        assert words in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    assert "no store at" in refusal(grb("figures", tmp_path / "none"))


def test_help_lists_the_figures(grb):
    shown = grb("figures", "--help").stdout
    assert "unnoticeability" in shown and "grb figures results" in shown
