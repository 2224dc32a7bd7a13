"""From records to boards, without the recipe, the dataset or a model."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from grb.errors import DataError, IntegrityError
from grb.evaluator.board import Board, Run, board_from_runs
from grb.pipeline import Limits, Store, Study, boards, build_board, plan_study, read_recipe, run
from grb.pipeline.board_flags import score_flags
from grb.pipeline.recipe import recipe_from_dict
from grb.pipeline.results import studies, with_dates
from made_boards import tiny_store
from pipeline.parts import copied, forge, planned, recipe


@pytest.fixture(scope="module")
def tiny() -> Store:
    return Store(tiny_store())


@pytest.fixture(scope="module")
def quick() -> Study:
    return plan_study(read_recipe("synth-tiny").quickly())


def test_recipes_with_scores_are_found_and_their_quick_variant_says_so(tiny: Store) -> None:
    (board,) = boards(tiny)
    assert board.meta["recipe"] == "synth-tiny" and board.meta["title"].endswith("(quick)") and board.meta["quick"]
    assert board.meta["measured"] == board.meta["planned"] == len(board.cells)
    assert board.white_box == ("pgd",) and set(board.attacks) == {"fgsm", "rnd", "none"}


def test_a_board_knows_on_which_day_it_was_measured(tiny: Store, tmp_path: Path) -> None:
    (board,) = boards(tiny)
    first = tiny.read(board.cells[0].metadata[0]["score"])
    assert board.meta["date"] == first.provenance["date"] == board.cells[0].metadata[0]["date"]
    older = with_dates(board, {first.key: "2020-02-29"})
    assert older.meta["date"] == older.cells[0].metadata[0]["date"] == "2020-02-29"
    assert with_dates(board, {}) is board, "records of earlier versions do not say it"


def test_a_board_knows_the_specs_of_victims_and_attacks(tiny: Store) -> None:
    (board,) = boards(tiny)
    cell = board.cell("fgsm", "gcn+ln", "full")
    assert cell is not None
    assert cell.metadata[0]["victim_spec"]["name"] == "gcn+ln"
    assert cell.metadata[0]["attack_spec"] == {"name": "fgsm", "params": {"iterations": 10}}


def test_every_cell_says_which_preset_its_limits_are(tiny: Store) -> None:
    (board,) = boards(tiny)
    told = {line["preset"] for cell in board.cells for line in cell.metadata if cell.attack != "none"}
    assert told == {"paper"}


def test_a_recipe_is_named(tiny: Store, quick: Study) -> None:
    (by_name,) = boards(tiny, ["synth-tiny"])
    (by_study,) = build_board(quick, tiny)
    assert by_name.to_dict() == by_study.to_dict()


def test_a_part_of_a_recipe_is_a_board_too(tiny: Store, quick: Study, tmp_path: Path) -> None:
    part = copied(tiny, tmp_path / "part")
    for place in planned(quick):
        if place.attack == "rnd":
            part.record_path(place.score).unlink()
    (board,) = boards(part)
    assert set(board.attacks) == {"fgsm", "none"}
    assert board.meta["measured"] < board.meta["planned"]


def test_clean_scores_alone_are_a_board_of_the_clean_graph(tiny: Store, quick: Study, tmp_path: Path) -> None:
    part = copied(tiny, tmp_path / "part")
    for place in planned(quick):
        if place.attack != "none":
            part.record_path(place.score).unlink()
    for named in (None, ["synth-tiny"]):
        (board,) = boards(part, named)
        assert board.attacks == ("none",) and board.meta["measured"] < board.meta["planned"]


def test_a_study_that_another_one_shows_whole_is_left_out_unless_it_is_named(tiny: Store, tmp_path: Path) -> None:
    both = copied(tiny, tmp_path / "both")
    smaller = plan_study(replace(read_recipe("synth-tiny").quickly(), name="smaller", modes=("easy",)))
    record = smaller.record({})
    assert record is not None
    both.write(record)
    assert [board.meta["recipe"] for board in boards(both)] == ["synth-tiny"]
    assert [board.meta["recipe"] for board in boards(both, ["smaller", "synth-tiny"])] == ["smaller", "synth-tiny"]
    (board,) = boards(both, ["smaller"])
    assert board.difficulties == ("easy",)
    assert [info.name for info in studies(both)] == ["synth-tiny", "smaller"]  # the largest first


def test_the_recipe_of_a_study_plans_the_same_jobs_again(tiny: Store, quick: Study) -> None:
    (info,) = studies(tiny)
    assert list(plan_study(recipe_from_dict(info.recipe)).jobs) == list(quick.jobs)


def test_scores_that_no_study_names_stand_on_a_board_of_their_own(store: Store, study: Study) -> None:
    """That of a library user, who runs jobs and writes no study."""
    (board,) = boards(store)
    (known,) = build_board(study, store)
    assert board.meta["recipe"] == "synth-tiny-injection" and board.meta["title"] == "Injection on synth-tiny"

    def values(board: Board) -> list[tuple[float, ...]]:
        return sorted(cell.values for cell in board.cells if cell.difficulty in known.difficulties)

    assert values(board) == values(known) and board.meta["measured"] == board.meta["planned"]


@pytest.mark.parametrize(("field", "value"), [("version", 2), ("nodes", 1)])
def test_versions_and_budgets_never_share_a_cell(
    field: str, value: int, store: Store, study: Study, tmp_path: Path
) -> None:
    own = copied(store, tmp_path / "store")
    for place in planned(study):
        record = own.read(place.score)
        if place.attack == "fgsm" and place.knowledge == "transfer" and place.repeat == 1:
            values = json.loads(json.dumps(record.measurement))
            values["attack"]["method" if field == "version" else "threat"][field] = value
            own.write(replace(record, measurement=values))
    (board,) = boards(own)
    assert {name for name in board.attacks if name.startswith("fgsm")} == (
        {"fgsm(iterations=2), version 1", "fgsm(iterations=2), version 2"}
        if field == "version"
        else {f"fgsm(iterations=2), nodes={nodes}" for nodes in (1, 3, 9)}  # 3 are usual for easy targets, 9 for all
    )
    assert {len(cell.values) for cell in board.cells if cell.attack.startswith("fgsm")} == {1}


def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no scores; `grb reproduce synth-cora"):
        boards(Store(tmp_path / "none"))


def test_a_recipe_without_scores_is_refused(tiny: Store) -> None:
    with pytest.raises(DataError, match="has no scores of recipe 'synth-cora'; it has synth-tiny"):
        boards(tiny, ["synth-cora"])


def test_a_dataset_that_is_not_here_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_store(), tmp_path / "store")
    monkeypatch.setenv("GRB_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr("grb.dataset.load_dataset", lambda *_, **__: pytest.fail("a dataset was loaded"))
    assert boards(Store("store"))


def test_a_damaged_record_is_not_swept_under_the_carpet(tiny: Store, quick: Study, tmp_path: Path) -> None:
    torn = copied(tiny, tmp_path / "torn")
    torn.record_path(next(place.score for place in planned(quick) if place.attack == "fgsm")).write_text("{")
    with pytest.raises(IntegrityError, match="is damaged"):
        boards(torn)


def test_a_score_without_a_measurement_is_refused(tiny: Store, quick: Study, tmp_path: Path) -> None:
    spoilt = copied(tiny, tmp_path / "spoilt")
    forge(spoilt, {**spoilt.read(quick.targets[0]).to_dict(), "measurement": None})
    with pytest.raises(
        IntegrityError, match=f"record {quick.targets[0][:12]} .* this is not a measurement .* run again"
    ):
        boards(spoilt)


def test_a_store_of_the_first_format_is_refused_in_one_sentence(tiny: Store, tmp_path: Path) -> None:
    old = copied(tiny, tmp_path / "old")
    (old.path / "store.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(DataError) as refused:
        Store(old.path)
    assert "format 1, but this version reads 2; " in str(refused.value) and "new" in str(refused.value)
    assert "update grb" not in str(refused.value) and "\n" not in str(refused.value)
    (old.path / "store.json").write_text(json.dumps({"format": 3}))
    with pytest.raises(DataError, match="format 3, but this version reads 2; update grb"):
        Store(old.path)


# flags


def scored(white_box: float) -> Board:
    values = {("none", "none"): [0.9], ("rnd", "transfer"): [0.85, 0.86], ("fgsm", "transfer"): [0.4, 0.41]}
    values["pgd", "white-box"] = [white_box]
    rows = [
        Run(attack, "gcn", "full", repeat, 0, accuracy, 0.1, knowledge)  # type: ignore[arg-type]
        for (attack, knowledge), own in values.items()
        for repeat, accuracy in enumerate(own)
    ]
    return board_from_runs(rows, dataset="d", scenario="injection", difficulties=("full",))


def test_scores_that_do_not_fit_together_become_flags() -> None:
    assert list(score_flags(scored(0.2), {"full": 1000})) == []
    (flag,) = score_flags(scored(0.7), {"full": 1000})
    assert flag.startswith("transfer-beats-white-box: gcn, full: fgsm by transfer")


def test_attacks_of_different_budgets_are_on_different_boards(tmp_path: Path) -> None:
    """A strong random attack beside a weak gradient attack is no contradiction if it may do more."""
    made = recipe(sweep={"nodes": [1, 9]}, modes=["full"], repeats=1)
    study, store = plan_study(made), Store(tmp_path / "store")
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    low, high = build_board(study, store)
    assert (low.limit, high.limit) == (("nodes", 1.0), ("nodes", 9.0))
    for board, nodes in ((low, 1), (high, 9)):
        assert set(board.attacks) == {"rnd", "fgsm", "none"} and board.white_box == ("fgsm",)
        assert set(board.ranks["full"]) == {"gcn", "mlp"} and board.meta["measured"] == board.meta["planned"] == 8
        used = {about["budget"]["nodes"] for cell in board.cells for about in cell.metadata if "budget" in about}
        assert used == {float(nodes)}
        assert board.meta["title"] == f"tiny, nodes {nodes}"


def test_a_defense_that_looks_at_who_is_asking_has_no_rank(tmp_path: Path) -> None:
    names = [f"pipeline.plugins:{name}" for name in ("Remembering", "IdCutting", "Repeating", "Linear")]
    study = plan_study(
        recipe(
            defenses=["gat", *names], modes=["full"], attacks=["rnd"], white_box=[], repeats=1, training={"epochs": 9}
        )
    )
    store = Store(tmp_path / "store")
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    (board,) = build_board(study, store)
    cheats = set(names[:-1])
    assert set(board.defenses[-3:]) == cheats and not cheats & set(board.ranks["full"])
    assert set(board.ranks["full"]) == {"gat", "gcn", "mlp", names[-1]}
    assert max(worst for _, worst in board.ranks["full"].values()) == 4
    told = {name: [flag for flag in board.flags if flag.startswith(name)] for name in names}
    assert (
        "keeps-state" in told[names[0]][0] and "node-order" in told[names[1]][0] and "keeps-state" in told[names[2]][0]
    )
    assert all("without a rank, in" in flags[0] for name, flags in told.items() if name in cheats)
    assert not any("without a rank" in flag for flag in told[names[-1]])
    assert board.cell("rnd", names[0], "full") is not None  # what was measured is shown


def test_models_of_others_are_checked_without_being_asked(tmp_path: Path) -> None:
    names = [f"pipeline.plugins:{name}" for name in ("Rounding", "Linear")]
    study = plan_study(recipe(defenses=names, modes=["full"], attacks=["rnd"], white_box=[], repeats=1))
    store = Store(tmp_path / "store")
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    (board,) = build_board(study, store)
    assert any(flag.startswith(f"{names[0]}: zero-gradient") for flag in board.flags)
    assert not any(flag.startswith(("gcn: ", "mlp: ")) for flag in board.flags)
    assert set(names) <= set(board.ranks["full"])  # a warning takes no rank
