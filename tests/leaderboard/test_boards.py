from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from grb.errors import DataError, MissingDataset
from grb.evaluator.board import Run, board_from_runs
from grb.leaderboard.boards import boards_of, checked, studies_of
from grb.pipeline import Store, plan_study, read_recipe
from made_boards import key, tiny_store


@pytest.fixture(scope="module")
def store():
    return Store(tiny_store())


def test_recipes_with_scores_are_found_and_their_quick_variant_says_so(store):
    (board,) = boards_of(store)
    assert board.meta["recipe"] == "synth-tiny" and board.meta["title"].endswith("(quick)")
    assert board.meta["measured"] == board.meta["planned"] == len(board.cells)
    assert board.white_box == ("pgd",) and set(board.attacks) == {"fgsm", "rnd", "none"}


def test_a_board_knows_the_specs_of_victims_and_attacks(store):
    (board,) = boards_of(store)
    cell = board.cell("fgsm", "gcn+ln", "full")
    assert cell is not None
    assert cell.metadata[0]["victim_spec"]["name"] == "gcn+ln"
    assert cell.metadata[0]["attack_spec"] == {"name": "fgsm", "params": {"iterations": 10}}


def test_a_named_recipe_is_found_whole_or_quick(store):
    (by_name,) = boards_of(store, ["synth-tiny"])
    (by_value,) = boards_of(store, [read_recipe("synth-tiny").quickly()])
    assert by_name.cells == by_value.cells


def test_a_part_of_a_recipe_is_a_board_too(store, tmp_path):
    part = Store(tmp_path / "part")
    shutil.copytree(store.path, part.path)
    study = plan_study(read_recipe("synth-tiny").quickly())
    for place in study.places:
        if place.attack == "rnd":
            part.record_path(place.score).unlink()
    (board,) = boards_of(part)
    assert set(board.attacks) == {"fgsm", "none"}
    assert board.meta["measured"] < board.meta["planned"]


def test_clean_scores_alone_make_no_board_unless_asked_for(store, tmp_path):
    part = Store(tmp_path / "part")
    shutil.copytree(store.path, part.path)
    for place in plan_study(read_recipe("synth-tiny").quickly()).places:
        if place.attack != "none":
            part.record_path(place.score).unlink()
    with pytest.raises(DataError, match="no recipe of grb has scores"):
        boards_of(part)
    (board,) = boards_of(part, ["synth-tiny"])
    assert board.attacks == ("none",)


def test_a_study_that_another_one_shows_whole_is_left_out(store, tmp_path):
    recipe = read_recipe("synth-tiny").quickly()
    smaller = replace(recipe, name="smaller", difficulties=("easy",))
    found = studies_of(store, [recipe, smaller])
    assert [each.study.recipe.name for each in found] == ["synth-tiny", "smaller"]  # named ones are always shown
    from grb.leaderboard.boards import _planned, _settings, _telling

    planned = _planned([smaller, recipe], store, _settings(store), None, print)
    assert [each.study.recipe.name for each in _telling(planned)] == ["synth-tiny"]


def test_an_empty_store_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match="has no scores; `grb reproduce synth-cora"):
        boards_of(Store(tmp_path / "none"))


def test_a_recipe_without_scores_is_refused(store):
    with pytest.raises(DataError, match="has no scores of recipe 'synth-cora'"):
        boards_of(store, ["synth-cora"])


def test_a_dataset_that_is_not_here_is_skipped_with_a_note(store, tmp_path, monkeypatch):
    both = Store(tmp_path / "both")
    shutil.copytree(store.path, both.path)
    fake = key("somewhere else")
    path = both.record_path(fake)
    path.parent.mkdir(parents=True, exist_ok=True)
    job = {"kind": "score", "data": {"dataset": "grb-cora"}, "threads": 1, "device": "cpu"}
    path.write_text(json.dumps({"job": job}))
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    said: list[str] = []
    (board,) = boards_of(both, on_skip=said.append)
    assert board.dataset == "synth-tiny"
    (sentence,) = said  # although several recipes are on this dataset
    assert sentence.startswith("recipes on 'grb-cora' are left out") and "is not on this machine" in sentence
    with pytest.raises(MissingDataset, match="'grb-cora' is not on this machine"):
        boards_of(both, ["grb-cora"])


def test_a_damaged_record_is_not_swept_under_the_carpet(store, tmp_path):
    from grb.errors import IntegrityError

    torn = Store(tmp_path / "torn")
    shutil.copytree(store.path, torn.path)
    place = next(place for place in plan_study(read_recipe("synth-tiny").quickly()).places if place.attack == "fgsm")
    torn.record_path(place.score).write_text("{")
    with pytest.raises(IntegrityError, match="is damaged"):
        boards_of(torn)


def scored(white_box):
    values = {("none", "none"): [0.9], ("rnd", "transfer"): [0.85, 0.86], ("fgsm", "transfer"): [0.4, 0.41]}
    values["pgd", "white-box"] = [white_box]
    rows = [
        Run(attack, "gcn", "full", repeat, 0, accuracy, 0.1, knowledge)
        for (attack, knowledge), own in values.items()
        for repeat, accuracy in enumerate(own)
    ]
    return board_from_runs(rows, dataset="d", scenario="injection", difficulties=("full",))


def test_scores_that_do_not_fit_together_become_flags():
    assert checked(scored(0.2), {"full": 1000}).flags == ()
    (flag,) = checked(scored(0.7), {"full": 1000}).flags
    assert flag.startswith("transfer-beats-white-box: gcn, full: fgsm by transfer")
    assert checked(replace(scored(0.7), flags=("older",)), {"full": 1000}).flags == ("older", flag)


def test_attacks_of_different_budgets_are_not_compared():
    swept = [
        Run(attack, "gcn", "full", 0, 0, accuracy, 0.1, "transfer")
        for attack, accuracy in (("rnd nodes=80", 0.3), ("fgsm nodes=10", 0.8))
    ]
    board = board_from_runs(swept, dataset="d", scenario="injection", difficulties=("full",))
    assert checked(board, {"full": 1000}).flags == ()
