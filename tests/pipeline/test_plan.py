from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grb import entries, load_dataset
from grb.attack.build import default_threat_model
from grb.dataset.storage import save
from grb.errors import DataError, GRBError, IntegrityError, UnknownName
from grb.evaluator.board import CLEAN
from grb.evaluator.measurement import Measurement
from grb.pipeline import Job, Limits, Outcome, Store, Study, build_board, plan_study, read_recipe, run
from grb.pipeline.planner import SURROGATE_SEED
from grb.pipeline.record import Record
from grb.pipeline.results import boards, paper_table
from grb.pipeline.study import StudyInfo, closure
from grb.threat import Injection, Modification
from helpers import needs_grb_cora
from pipeline.parts import bare, bits, board_of, copied, of_kind, planned, recipe

# the plan


def test_a_plan_has_every_measurement_once(study: Study) -> None:
    """2 victims; clean; 2 attacks x 2 repeats x 2 modes; 1 white-box attack x 2 modes."""
    places = [
        (place.attack, place.defense, place.repeat, place.victim, place.knowledge, place.modes)
        for place in planned(study)
    ]
    assert len(places) == len(set(places)) == 2 + 2 * (2 * 2 * 2) + 2 * 2
    assert {place.defense for place in planned(study)} == {"gcn", "mlp"}
    fits, attacks, scores = (of_kind(study, kind) for kind in ("fit", "attack", "score"))
    assert len(fits) == 2 + 2 and len(attacks) == 2 * 2 * 2 + 2 * 2 and len(scores) == len(places)
    assert {place.score for place in planned(study)} == {job.key for job in scores}


def test_inputs_are_listed_before_their_users(study: Study) -> None:
    seen: set[str] = set()
    for key, job in study.jobs.items():
        assert key == job.key and seen >= set(job.needs)
        seen.add(key)


def test_planning_again_gives_the_same_keys(study: Study) -> None:
    assert list(plan_study(recipe()).jobs) == list(study.jobs)


def test_each_repeat_has_a_surrogate_and_seed_of_its_own_and_no_victim_is_a_surrogate(study: Study) -> None:
    fits = {job.key: job.seed for job in of_kind(study, "fit")}
    transfer = [job for job in of_kind(study, "attack") if job.extra["knowledge"] == "transfer"]
    assert {(job.seed, fits[job.inputs["surrogate"]]) for job in transfer} == {
        (0, SURROGATE_SEED),
        (1, SURROGATE_SEED + 1),
    }
    victims = {job.inputs["model"] for job in of_kind(study, "score")}
    assert victims.isdisjoint(job.inputs["surrogate"] for job in transfer)


def test_a_white_box_attack_is_scored_on_the_model_it_attacked_alone(study: Study) -> None:
    for place in planned(study):
        if place.knowledge == "white-box":
            score = study.jobs[place.score]
            attack = study.jobs[score.data.chain[0]]
            assert attack.inputs["surrogate"] == score.inputs["model"] and attack.extra["knowledge"] == "white-box"


def test_an_attack_without_a_model_gets_none_and_trains_none() -> None:
    study = plan_study(recipe(attacks=["rnd"], surrogates=["gcn", "sgcn"], white_box=[]))
    assert all(job.inputs == {} and job.extra["knowledge"] == "none" for job in of_kind(study, "attack"))
    assert {job.seed for job in of_kind(study, "fit")} == {0}
    assert {place.attack for place in planned(study)} == {"rnd", CLEAN}  # once, not once per surrogate


def test_several_surrogates_are_told_apart(tmp_path: Path) -> None:
    small = {"white_box": [], "modes": ["full"], "repeats": 1}
    study = plan_study(recipe(attacks=["fgsm", "rnd"], surrogates=["gcn", "sgcn"], **small))
    store = Store(tmp_path / "store")
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    assert set(board_of(study, store).attacks) == {"fgsm from gcn", "fgsm from sgcn", "rnd", CLEAN}


def test_limits_can_be_changed_and_varied() -> None:
    study = plan_study(
        recipe(threat={"nodes": 3}, sweep={"edges_per_node": [1, 2], "nodes": [4]}, modes=["full"], repeats=1)
    )
    usual = Injection.preset("synth-tiny", "full").edges_per_node
    wanted = {("edges_per_node", 1.0): (3, 1), ("edges_per_node", 2.0): (3, 2), ("nodes", 4.0): (4, usual)}
    assert study.info is not None and {part.limit for part in study.info.parts} == set(wanted)
    for part in study.info.parts:  # white-box attacks as well: a board without them would be another one
        edits = [study.jobs[key] for score in part.scores for key in study.jobs[score].data.edits]
        limits = {(job.extra["threat"]["nodes"], job.extra["threat"]["edges_per_node"]) for job in edits}
        assert part.limit is not None and limits == {wanted[part.limit]}
        assert {(job.spec.name, job.extra["knowledge"]) for job in edits} == {
            ("rnd", "none"),
            ("fgsm", "transfer"),
            ("fgsm", "white-box"),
        }
        assert sum(not study.jobs[score].data.edits for score in part.scores) == 2  # the clean graph, gcn and mlp


def test_the_range_of_features_is_the_papers_or_that_of_the_data() -> None:
    """Recipes keep Table 12 as printed, so that their numbers stay; the data's range is another job and another record."""
    ranges = {
        named: {tuple(job.extra["threat"]["feature_range"]) for job in of_kind(plan_study(made), "attack")}
        for named, made in {
            "": recipe(),
            "paper": recipe(threat={"feature_range": "paper"}),
            "data": recipe(threat={"feature_range": "data", "nodes": 2}),
        }.items()
    }
    assert ranges[""] == ranges["paper"] == {(-0.9, 0.9)}
    assert ranges["data"] == {load_dataset("synth-tiny").feature_range}


def test_limits_of_a_modification() -> None:
    study = plan_study(recipe(scenario="modification", white_box=[], attacks=["rnd"]))
    usual = default_threat_model("modification", load_dataset("synth-tiny"), "full")
    assert isinstance(usual, Modification) and usual.edge_ratio == 0.05
    assert all(job.extra["threat"]["edge_ratio"] == 0.05 for job in of_kind(study, "attack"))
    study = plan_study(
        recipe(scenario="modification", white_box=[], attacks=["rnd"], threat={"edges": 9, "per_node": 0.5})
    )
    threat = of_kind(study, "attack")[0].extra["threat"]
    assert "edge_ratio" not in threat  # a number instead of a share
    assert (threat["kind"], threat["edges"], threat["per_node"]) == ("modification", 9, 0.5)


def test_a_dataset_of_ones_own_has_the_limits_that_an_attack_on_it_would_have(tmp_path: Path) -> None:
    mine = save(load_dataset("synth-tiny"), tmp_path / "mine")
    study = plan_study(recipe(dataset=str(mine), white_box=[], attacks=["rnd"]))
    dataset = load_dataset(str(mine))
    inferred = Injection.inferred(len(dataset.test_ids("full")), dataset.feature_range)
    assert {job.extra["threat"]["nodes"] for job in of_kind(study, "attack") if job.mode == "full"} == {inferred.nodes}


def test_gcn_and_mlp_are_in_every_table_once() -> None:
    def defenses(*listed: object) -> list[str]:
        study = plan_study(bare("Idle", defenses=list(listed)))
        return [place.defense for place in planned(study) if place.attack == CLEAN]

    assert sorted(defenses()) == ["gcn", "mlp"]
    assert sorted(defenses("mlp", "gcn", "gcn+ln")) == ["gcn", "gcn+ln", "mlp"]
    assert sorted(defenses({"name": "gcn", "lr": 0.5})) == ["gcn", "gcn(lr=0.5)", "mlp"]
    assert sorted(defenses("GCN", "RobustGCN", "gcn+LN")) == ["gcn", "gcn+ln", "mlp", "r-gcn"]


@pytest.mark.parametrize(
    ("changes", "joins"),
    [
        ({}, True),
        ({"defenses": ["gcn+LN+known"]}, True),
        ({"memory": False}, False),
        ({"dataset": "synth-cora-fresh"}, False),  # the targets have no neighbours that a defender knows
        ({"train_mode": "transductive"}, False),  # every original node is known
        ({"dataset": "synth-graphs", "scenario": "injection"}, False),
        ({"scenario": "modification"}, False),  # it stays open to changed edges
        ({"scenario": "corruption", "attacks": ["noedges"], "white_box": []}, False),
    ],
)
def test_memory_has_a_row_where_a_defender_knows_neighbours_of_the_targets(
    changes: dict[str, Any], joins: bool
) -> None:
    shown = {"attacks": ["rnd-edges"], "white_box": []} if changes.get("scenario") == "modification" else {}
    study = plan_study(recipe(**{"memory": True, **shown, **changes}))
    listed = [place.defense for place in planned(study) if place.attack == CLEAN]
    assert listed.count("gcn+ln+known") == int(joins)


def test_an_alias_is_the_same_job() -> None:
    assert list(plan_study(recipe(attacks=["random", "FGSM"])).jobs) == list(
        plan_study(recipe(attacks=["rnd", "fgsm"])).jobs
    )


def test_the_recipes_training_and_iterations_reach_the_jobs_and_give_way_to_a_specs_own(study: Study) -> None:
    assert all(job.spec.params == {"epochs": 3} for job in of_kind(study, "fit"))
    assert {job.spec.label for job in of_kind(study, "attack")} == {"rnd", "fgsm(iterations=2)"}
    other = plan_study(recipe(attacks=[{"name": "fgsm", "iterations": 9}], defenses=[{"name": "gcn+ln", "epochs": 1}]))
    assert {job.spec.params.get("iterations") for job in of_kind(other, "attack")} == {2, 9}
    assert {job.spec.label for job in of_kind(other, "fit")} >= {"gcn+ln(epochs=1)", "gcn(epochs=3)"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataset": "synth-tinny"}, "Did you mean 'synth-tiny'"),
        ({"defenses": ["gnc"]}, "Did you mean 'gcn'"),
        ({"defenses": ["gcn+an"]}, "suffix"),
        ({"attacks": ["pdg"]}, "Did you mean 'pgd'"),
        ({"white_box": ["pdg"]}, "Did you mean 'pgd'"),
        ({"surrogates": ["gnc"]}, "Did you mean 'gcn'"),
        ({"training": {"epochz": 5}}, "epochz"),
        ({"training": {"hidden_features": "wide"}}, "wide"),
        ({"defenses": [{"name": "gcn", "hiden_features": [5]}]}, "hiden_features"),
        ({"attacks": [{"name": "pgd", "iteration": 5}]}, "iteration"),
        ({"attacks": [{"name": "rnd", "iterations": 5}]}, "has no iterations"),
        ({"attacks": [{"name": "pgd", "n_inject_max": 5}]}, "limit"),
        ({"threat": {"node": 5}}, "Did you mean 'nodes'"),
        ({"threat": {"nodes": -5}}, "nodes is -5"),
        ({"threat": {"nodes": "five"}}, "nodes is five"),
        ({"threat": {"feature_range": 5}}, "does not take"),
        ({"sweep": {"node": [5]}}, "Did you mean 'nodes'"),
        ({"sweep": {"nodes": [2.5]}}, "nodes is 2.5"),
        ({"attacks": ["no.such.module:Attack"]}, "cannot be found"),
        ({"attacks": ["pipeline.plugins:Nobody"]}, "does not have"),
        ({"defenses": ["pipeline.plugins:Nobody"]}, "does not have"),
    ],
)
def test_everything_in_a_recipe_is_checked_before_anything_runs(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(GRBError, match=words):
        plan_study(recipe(**changes))


def test_other_versions_of_a_method_are_other_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    from grb.attack.injection import FGSM, RND
    from grb.defense.adversarial import AdversarialTraining
    from grb.model.torch import GCN

    made = recipe(defenses=["gcn+at"], white_box=[])
    before = {key: job.spec.name for key, job in plan_study(made).jobs.items()}
    for thing, touched in ((RND, {"rnd"}), (GCN, {"gcn", "gcn+at", "fgsm"}), (AdversarialTraining, {"gcn+at"})):
        with monkeypatch.context() as patch:
            patch.setattr(thing, "version", getattr(thing, "version", 1) + 1, raising=False)
            after = plan_study(made).jobs
        assert {before[key] for key in before.keys() - after.keys()} - {"score"} == touched
    with monkeypatch.context() as patch:  # adversarial training uses FGSM
        patch.setattr(FGSM, "version", 7, raising=False)
        assert {before[key] for key in before.keys() - plan_study(made).jobs.keys()} >= {"gcn+at", "fgsm"}


def test_needed_jobs_are_followed_to_their_roots(study: Study) -> None:
    score = next(job for job in of_kind(study, "score") if job.data.chain)
    attack = study.jobs[score.data.chain[0]]
    wanted = {score.key, attack.key, score.inputs["model"], *attack.inputs.values()}
    assert sorted(closure(study.jobs, [score.key])) == sorted(wanted)
    with pytest.raises(DataError, match="is needed, but is not there"):
        list(closure({score.key: score}, [score.key]))


# shards


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_shards_are_a_partition_of_the_measurements(study: Study, count: int) -> None:
    shards = [study.shard(index, count) for index in range(1, count + 1)]
    assert {place.score for shard in shards for place in planned(shard)} == {place.score for place in planned(study)}
    assert sum(len(planned(shard)) for shard in shards) == len(planned(study))
    assert set().union(*(shard.jobs for shard in shards)) == set(study.jobs)
    for shard in shards:
        assert all(need in shard.jobs for job in shard.jobs.values() for need in job.needs)
    attacks = [{job.key for job in of_kind(shard, "attack")} for shard in shards]
    if count == 2:  # hardly any edit is made twice
        assert len(attacks[0] & attacks[1]) <= 2


@pytest.mark.parametrize(("index", "count"), [(0, 2), (3, 2), (1, 0), (-1, 2)])
def test_no_other_shards(study: Study, index: int, count: int) -> None:
    with pytest.raises(DataError, match="the shard is"):
        study.shard(index, count)


def test_shards_run_apart_and_their_records_together_make_the_board(study: Study, store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "store")
    for index in (1, 2):
        assert run(study.shard(index, 2).jobs.values(), other, limits=Limits(workers=0)).complete
    assert bits(other, study.jobs) == bits(store, study.jobs)
    assert board_of(study, other).by_defense == board_of(study, store).by_defense


# measurements


def test_a_board_is_what_the_records_say(study: Study, store: Store) -> None:
    made = board_of(study, store)
    assert sum(len(cell.values) for cell in made.cells) == sum(len(place.modes) for place in planned(study))
    by_score = {place.score: place for place in planned(study)}
    for cell in made.cells:
        for value, facts in zip(cell.values, cell.metadata, strict=True):
            measured = Measurement.from_dict(store.read(facts["score"]).measurement)
            place, outcome = by_score[facts["score"]], measured.outcomes[cell.difficulty]
            assert (cell.attack, cell.defense, cell.knowledge) == (place.attack, place.defense, place.knowledge)
            assert (facts["repeat"], facts["victim_seed"]) == (place.repeat, place.victim)
            assert value == outcome.values["accuracy"] == pytest.approx(np.mean(outcome.bits()), abs=1e-12)
            if cell.attack != CLEAN:
                assert facts["budget"] == store.read(facts["attack"]).result["budget"]


def test_a_study_survives_as_plain_values(study: Study) -> None:
    record = study.record({})
    assert record is not None and study.info is not None
    back = Record.from_json(record.to_json(), key=record.key, source="test")
    assert StudyInfo.from_dict(back.result) == study.info
    for spoilt in ({}, {**back.result, "format": 0}, {**back.result, "victims": "3"}, {**back.result, "parts": 5}):
        with pytest.raises(DataError, match="this is not a study"):
            StudyInfo.from_dict(spoilt)


def test_a_study_that_is_not_done_gives_what_there_is(study: Study, store: Store, tmp_path: Path) -> None:
    partial = copied(store, tmp_path / "store")
    places = [place for place in planned(study) if place.attack == "fgsm" and place.defense == "gcn"]
    for place in places:
        partial.record_path(place.score).unlink()
    made = board_of(study, partial)
    assert made.meta["planned"] - made.meta["measured"] == sum(len(place.modes) for place in places)
    assert made.cell("fgsm", "gcn", "full") is None and made.cell("rnd", "gcn", "full") is not None
    assert "weighted" not in made.by_defense["full"]["gcn"] and "gcn" not in made.ranks["full"]
    assert made.ranks["full"]["mlp"] == (1, 1)


def test_nothing_done_is_nothing_to_show(study: Study, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no scores of 'tiny' yet"):
        build_board(study, Store(tmp_path / "empty"))


def test_bits_of_other_targets_are_refused(study: Study, store: Store, tmp_path: Path) -> None:
    spoilt = copied(store, tmp_path / "store")
    record = spoilt.read(study.targets[0])
    assert record.measurement is not None
    outcomes = {name: {**outcome, "correct": "AAAA"} for name, outcome in record.measurement["outcomes"].items()}
    spoilt.write(replace(record, measurement={**record.measurement, "outcomes": outcomes}))
    with pytest.raises(IntegrityError, match="no packed bits"):
        boards(spoilt)


def test_the_board_has_no_paper_column_on_synthetic_data(study: Study, store: Store) -> None:
    made = board_of(study, store)
    assert made.meta["synthetic"] and all(cell.paper is None for cell in made.cells)


def test_published_values_are_those_of_the_table() -> None:
    table = paper_table("grb-cora")
    assert table["speit", "r-gcn+at", "full"] == (85.21, 0.41)  # Table 13, first row
    assert len({defense for _, defense, _ in table}) == 10
    with pytest.raises(DataError, match="the paper has no leaderboard of 'synth-cora'"):
        paper_table("synth-cora")


@needs_grb_cora
def test_the_plan_of_table_13() -> None:
    """13 victims, 10 surrogates; 5 attacks x 10 repeats x 4 modes and one white-box attack on each victim."""
    study = plan_study(read_recipe("grb-cora"))
    count = {kind: len(of_kind(study, kind)) for kind in ("fit", "attack", "score")}
    assert count == {"fit": 13 + 10, "attack": 5 * 10 * 4 + 13 * 4, "score": 13 + 13 * (5 * 10 * 4) + 13 * 4}
    table = paper_table("grb-cora")
    named = {(place.attack, place.defense, mode) for place in planned(study) for mode in place.modes}
    assert {key for key in table if key[0] != CLEAN} - named == set()


# methods of the user's


def test_a_recipe_runs_attacks_and_models_of_ones_own(tmp_path: Path) -> None:
    study = plan_study(
        bare({"name": "Idle", "seconds": 0.01}, defenses=[{"name": "pipeline.plugins:Linear", "scale": 2.0}])
    )
    label = "pipeline.plugins:Linear(scale=2.0)"
    versions = {job.spec.name: job.version for job in study.jobs.values()}
    assert versions["pipeline.plugins:Idle"] == 3 and versions["pipeline.plugins:Linear"] == 2
    store = Store(tmp_path / "store")
    outcome = run(study.jobs.values(), store, limits=Limits(workers=1))
    assert outcome == Outcome(done=len(study.jobs))
    made = board_of(study, store)
    assert set(made.defenses) == {"gcn", "mlp", label} and made.attacks[-1] == CLEAN
    assert {cell.changed.mean for cell in made.cells} == {0.0}  # an attack that changes nothing


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "grb.attacks": [metadata.EntryPoint("idle", "pipeline.plugins:Idle", "grb.attacks")],
        "grb.models": [metadata.EntryPoint("linear", "pipeline.plugins:Linear", "grb.models")],
    }
    known = metadata.entry_points
    monkeypatch.setattr(metadata, "entry_points", lambda **given: points.get(given.get("group", "")) or known(**given))
    monkeypatch.setattr("pipeline.plugins.Linear.name", "linear", raising=False)
    entries._plugins.cache_clear()


def test_a_recipe_runs_plug_ins_under_their_names(plugin: None, tmp_path: Path) -> None:
    study = plan_study(recipe(attacks=["idle"], defenses=["linear"], white_box=[], modes=["full"], repeats=1))
    store = Store(tmp_path / "store")
    assert run(study.jobs.values(), store, limits=Limits(workers=0)) == Outcome(done=len(study.jobs))
    assert set(board_of(study, store).defenses) == {"gcn", "linear", "mlp"}
    with pytest.raises(UnknownName, match="Did you mean 'linear'"):
        plan_study(recipe(defenses=["linaer"]))


@pytest.fixture(autouse=True)
def no_plugins_afterwards() -> Any:
    yield
    entries._plugins.cache_clear()


def test_a_job_is_small(study: Study) -> None:
    """Engines carry values of a few kilobytes, never graphs or weights."""
    import pickle

    assert max(len(pickle.dumps(job.to_dict())) for job in study.jobs.values()) < 4096
    assert isinstance(next(iter(study.jobs.values())), Job)
