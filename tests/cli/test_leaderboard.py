from __future__ import annotations

import csv
import io
import json
import shutil

import pytest

from grb.leaderboard.export import to_json
from made_boards import HOSTILE, made_board, tiny_store

from .conftest import refusal


@pytest.fixture
def boards_file(tmp_path):
    path = tmp_path / "boards.json"
    path.write_text(to_json([made_board(paper=True, flags=["gcn is odd"])]), encoding="utf-8")
    return path


def test_show_prints_ranks_accuracies_costs_and_the_papers_numbers(grb, boards_file):
    done = grb("leaderboard", boards_file)
    assert done.exit_code == 0
    for words in ("weighted", "worst node", "pgd (white-box)", "CPU s", "61.25 ±1.50", "difference", "1-"):
        assert words in done.stdout
    assert "warning: gcn is odd" in done.stderr


def test_show_takes_a_difficulty_and_a_metric(grb, boards_file):
    done = grb("leaderboard", boards_file, "--difficulty", "e", "--metric", "drop")
    assert "accuracy lost to the attack (points), easy" in done.stdout
    assert "Did you mean 'easy'?" in refusal(grb("leaderboard", boards_file, "--difficulty", "eazy"))
    assert "Allowed: score, drop" in refusal(grb("leaderboard", boards_file, "--metric", "speed"))


def test_a_bundle_is_not_shown_but_told_how_to(grb, tmp_path):
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(b"PK")
    assert f"`grb store copy {bundle} STORE`" in refusal(grb("leaderboard", bundle))


def test_show_of_a_store(grb):
    done = grb("leaderboard", tiny_store())
    assert done.exit_code == 0
    assert "[synthetic data]" in done.stdout and "gcn+ln" in done.stdout
    assert "paper" not in done.stdout


@pytest.mark.parametrize(("form", "rows"), [("csv", 80), ("csv-wide", 16), ("csv-runs", 176)])
def test_csv_has_the_asked_shape(grb, boards_file, form, rows):
    done = grb("leaderboard", boards_file, "--format", form)
    assert len(list(csv.DictReader(io.StringIO(done.stdout)))) == rows


def test_json_is_read_back(grb, grb_json, boards_file, tmp_path):
    values = grb_json("leaderboard", boards_file)
    assert values == json.loads(boards_file.read_text())
    again = tmp_path / "again.json"
    done = grb("leaderboard", boards_file, "--format", "json", "-o", again)
    assert done.stdout == "" and json.loads(again.read_text()) == values
    assert grb("--json", "leaderboard", boards_file).stdout == again.read_text()


def test_markdown(grb, boards_file):
    done = grb("leaderboard", boards_file, "--format", "markdown")
    assert done.stdout.startswith("### injection on made-up, full\n\n| defense | rank |")


def test_names_cannot_reach_the_terminal_as_control_characters(grb, tmp_path):
    path = tmp_path / "boards.json"
    names = [*HOSTILE, "\x1b[2Jgone", "\x07bell", "two\nlines"]
    path.write_text(to_json([made_board(names, flags=["\x1b[31mred"])]), encoding="utf-8")
    done = grb("leaderboard", path)
    assert done.exit_code == 0
    assert not set(done.stdout + done.stderr) & set("\x1b\x07\u202e")
    assert "<U+001B>[2Jgone" in done.stdout


def test_build_writes_one_page(grb, grb_json, boards_file, tmp_path):
    page = tmp_path / "new" / "page.html"
    done = grb("leaderboard", boards_file, "--format", "html", "-o", page, "--title", "<b>Mine</b>")
    assert done.exit_code == 0 and done.stdout == ""
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>") and "&lt;b&gt;Mine&lt;/b&gt;" in text
    told = grb_json("leaderboard", boards_file, "--format", "html", "-o", page)
    assert told["files"] == [{"path": str(page), "bytes": page.stat().st_size}]
    assert told["boards"] == [{"dataset": "made-up", "recipe": "made-up"}]


def test_build_from_a_store_names_the_jobs(grb, tmp_path):
    page = tmp_path / "page.html"
    assert grb("leaderboard", tiny_store(), "--format", "html", "--recipe", "synth-tiny", "-o", page).exit_code == 0
    text = page.read_text("utf-8")
    assert '"victim_spec":{"name":"gcn+ln"' in text and '"iterations":10' in text
    assert str(tiny_store()) not in text  # where it lies is nobody's business


def test_site_writes_an_index(grb, boards_file, tmp_path):
    done = grb("leaderboard", boards_file, "--format", "site", "-o", tmp_path / "site")
    assert done.exit_code == 0
    names = sorted(path.name for path in (tmp_path / "site").iterdir())
    files = [
        "boards.csv",
        "boards.json",
        "changes.json",
        "feed.atom",
        "feed.json",
        "index.html",
        "made-up-injection.html",
    ]
    assert names == files


def test_the_taxonomy_comes_from_a_file(grb, boards_file, tmp_path):
    analysis = tmp_path / "taxonomy.json"
    analysis.write_text('{"model": "GCN"}')
    page = tmp_path / "page.html"
    assert grb("leaderboard", boards_file, "--format", "html", "-o", page, "--taxonomy", analysis).exit_code == 0
    assert 'id="tab-taxonomy"' in page.read_text("utf-8")


@pytest.mark.parametrize(("text", "words"), [("{", "is no JSON"), ("[]", "an analysis is one JSON object")])
def test_another_file_is_no_taxonomy_and_nothing_is_written(grb, boards_file, tmp_path, text, words):
    (tmp_path / "taxonomy.json").write_text(text)
    done = grb(
        "leaderboard",
        boards_file,
        "--format",
        "html",
        "-o",
        tmp_path / "p.html",
        "--taxonomy",
        tmp_path / "taxonomy.json",
    )
    assert done.exit_code == 2 and words in refusal(done)
    assert not (tmp_path / "p.html").exists()


def test_refusals_are_one_sentence(grb, boards_file, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    cases = {
        ("leaderboard", tmp_path / "none"): "no store at",
        ("leaderboard", tmp_path / "empty"): "has no scores",
        ("leaderboard", tmp_path / "none.json"): "cannot read",
        ("leaderboard", boards_file, "--format", "xml"): "Allowed: table",
        ("leaderboard", boards_file, "--recipe", "grb-cora"): "chooses from a store",
        (
            "leaderboard",
            tiny_store(),
            "--recipe",
            "grb-corra",
        ): "has no scores of recipe 'grb-corra'; it has synth-tiny",
        ("leaderboard", boards_file, "--format", "html", "-o", tmp_path): "is a directory",
        ("leaderboard", boards_file, "--format", "html", "-o", tmp_path / "file" / "page.html"): "is not a directory",
        ("leaderboard", boards_file, "--format", "site", "-o", tmp_path / "file"): "is not a directory",
    }
    for arguments, words in cases.items():
        done = grb(*arguments)
        assert done.exit_code == 2, arguments
        assert words in refusal(done)


def test_help_has_an_example(grb):
    shown = grb("leaderboard", "--help").stdout
    assert "Example" in shown and "grb leaderboard results" in shown and "--format" in shown


def test_without_a_store_that_of_the_home_is_shown(grb, tmp_path, monkeypatch):
    monkeypatch.setenv("GRB_HOME", str(tmp_path))
    assert "store has no scores" in refusal(grb("leaderboard"))
    shutil.copytree(tiny_store(), tmp_path / "store")
    assert grb("leaderboard").stdout == grb("leaderboard", tiny_store()).stdout != ""


def test_latex(grb, boards_file):
    done = grb("leaderboard", boards_file, "--format", "latex")
    assert done.stdout.count("\\begin{tabular}") == done.stdout.count("\\end{tabular}") == 4
    assert "gcn+ln & " in done.stdout and "±" not in done.stdout


@pytest.fixture
def scores_file(grb, boards_file, tmp_path):
    path = tmp_path / "scores.csv"
    assert grb("leaderboard", boards_file, "--format", "csv-runs", "-o", path).exit_code == 0
    return path


def test_a_file_of_scores_is_shown_as_the_board_that_it_came_from(grb, boards_file, scores_file, tmp_path):
    shown, wanted = (
        json.loads(grb("leaderboard", path, "--json").stdout)["boards"][0] for path in (scores_file, boards_file)
    )
    assert shown["ranks"] == wanted["ranks"] and shown["defenses"] == wanted["defenses"]
    assert grb("leaderboard", scores_file, "--format", "html", "-o", tmp_path / "page.html").exit_code == 0
    assert "by weighted" not in grb("leaderboard", scores_file, "--rank-by", "weighted").stderr
    assert "need the scores of a store" in refusal(grb("leaderboard", scores_file, "--promote", "mine"))
    assert "give the store" in refusal(grb("leaderboard", scores_file, "--details"))
    assert "leave it out" in refusal(grb("leaderboard", scores_file, "--recipe", "made-up"))
