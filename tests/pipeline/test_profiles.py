from __future__ import annotations

import json
from dataclasses import replace

import pytest

from grb.errors import DataError, GRBError
from grb.evaluator.board import CLEAN
from grb.pipeline import DataRef, Job, Limits, Spec, Store, Study, build_board, plan_study, run
from grb.pipeline.estimate import seconds_of
from grb.pipeline.profile_job import column, perturb
from grb.pipeline.profiles import Profiling, plan_profiles
from grb.pipeline.recipe import parse_recipe
from grb.pipeline.rerun import rerun
from grb.pipeline.worker import Worker
from grb.taxonomy.measurement import PerturbationInfo, ProfileMeasurement
from made_collections import tiny_graphs

TINY = "made_collections:tiny_graphs"
FAST = {"epochs": 4, "width": 8, "lr": 0.05}
FEW = [Spec("NoEdges"), Spec("randftrs")]


def asked(**changes) -> Profiling:
    return Profiling(**{"datasets": [TINY], "perturbations": FEW, "seeds": [0, 1], "training": FAST, **changes})


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> tuple[Study, Store]:
    study, store = plan_profiles(asked()), Store(tmp_path_factory.mktemp("profiles") / "store")
    outcome = run(study.jobs.values(), store, limits=Limits(workers=0))
    assert outcome.complete and outcome.done == 6
    return study, store


def test_every_run_of_every_perturbation_and_of_the_original_is_a_record(done) -> None:
    study, store = done
    results = [store.read(key).measurement for key in study.jobs]
    cells = sorted((row["dataset"], row["model"], row["perturbation"], row["seed"]) for row in results)
    assert cells == [("tiny-graphs", "gcn", name, seed) for name in ("-", "NoEdges", "RandFtrs") for seed in (0, 1)]
    assert all(0 <= row["auroc"] <= 1 and row["epochs"] == 4 and len(row["curve"]) == 4 for row in results)
    assert len({row["auroc"] for row in results}) > 1


def test_a_record_says_all_that_an_analysis_needs(done) -> None:
    study, store = done
    key, job = next((key, job) for key, job in study.jobs.items() if job.data.perturbations and job.seed == 1)
    run = ProfileMeasurement.from_dict(store.read(key).measurement)
    assert (run.reference, run.fingerprint, run.seed) == (TINY, job.data.fingerprint, 1)
    assert run.perturbations == (PerturbationInfo("noedges", "NoEdges", {}, 1),) and run.perturbation == "NoEdges"
    known = {"epochs": 4, "width": 8, "lr": 0.05, "patience": None, "depth": 5, "batch": 64, "batch_norm": True}
    assert {name: run.training[name] for name in known} == known
    assert {"schedule", "plateau", "eval_every", "class_weights"} <= set(run.training)


def test_running_again_computes_nothing(done) -> None:
    study, store = done
    outcome = run(study.jobs.values(), store, limits=Limits(workers=0))
    assert (outcome.done, outcome.cached) == (0, 6)


def test_a_rerun_gives_the_same_bits(done) -> None:
    study, store = done
    assert [each.difference for each in rerun(store, list(study.jobs)[:3], trust_code=True)] == ["", "", ""]


def test_the_first_jobs_are_whole_profiles_of_the_first_run(done) -> None:
    assert [job.seed for job in done[0].jobs.values()] == [0, 0, 0, 1, 1, 1]


def test_shards_hold_every_job_once(done) -> None:
    study, _ = done
    parts = [study.shard(index, 4).jobs for index in (1, 2, 3, 4)]
    assert sorted(key for part in parts for key in part) == sorted(study.jobs)
    with pytest.raises(DataError, match="the shard is 5/4"):
        study.shard(5, 4)


def test_seconds_are_measured_where_the_store_has_the_like(done, tmp_path) -> None:
    study, store = done
    more = seconds_of(plan_profiles(asked(seeds=[0, 1, 2])), store)
    assert len(more) == 3
    measured = [store.read(key).provenance["cpu_seconds"] for key in study.jobs]
    assert min(measured) <= next(iter(more.values())) <= max(measured)
    assert all(value > 0 for value in seconds_of(study, Store(tmp_path / "new")).values())


def test_the_paper_s_perturbations_are_thirteen_for_collections_and_eleven_for_one_graph() -> None:
    both = plan_profiles(asked(datasets=[TINY, "synth-tiny"], perturbations=None, seeds=[0]))
    counts = {name: [job.data.dataset for job in both.jobs.values()].count(name) for name in (TINY, "synth-tiny")}
    assert counts == {TINY: 14, "synth-tiny": 12}


def test_what_a_key_depends_on() -> None:
    def keys(**changes) -> set[str]:
        return set(plan_profiles(asked(**changes)).jobs)

    same = keys()
    assert keys(perturbations=[Spec("noedges"), Spec("RandFtrs")]) == same  # spelling
    assert not keys(training={**FAST, "epochs": 5}) & same
    assert not keys(models=["gin"]) & same
    assert keys(perturbations=[Spec("RandFtrs", {"compat": "gtaxogym"})]) & same == keys(perturbations=[]) & same


def test_a_perturbation_in_a_chain_survives_as_plain_values() -> None:
    data = DataRef("d", "f").with_edit("0" * 64).perturbed(Spec("frag-k1", {"compat": "gtaxogym"}))
    job = Job("profile", Spec("gcn"), data)
    back = Job.from_dict(json.loads(json.dumps(job.to_dict())))
    assert back.key == job.key and back.data.chain == job.data.chain
    assert back.needs == ("0" * 64,) and back.data.perturbations == (Spec("frag-k1", {"compat": "gtaxogym"}),)
    assert "frag-k1(compat=gtaxogym)" in back.label


def test_a_draw_depends_on_the_run_and_not_on_the_model() -> None:
    dataset = tiny_graphs()
    first, again, other = (perturb(dataset, dataset.graph, Spec("randftrs"), seed) for seed in (0, 0, 1))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()


def test_names_of_columns() -> None:
    assert column(()) == "-"
    assert column((Spec("frag-k2"),)) == "Frag-k2"
    assert column((Spec("randftrs", {"compat": "gtaxogym"}),)) == "RandFtrs (gtaxogym)"


def test_the_paper_s_names_become_columns_of_the_analysis(done) -> None:
    from grb.taxonomy.read import from_rows

    _, store = done
    # four test graphs may give an AUROC of 0, which has no ratio
    rows = [ProfileMeasurement.from_dict(record.measurement).to_row() for record in store.records()]
    rows = [{**row, "auroc": max(row["auroc"], 0.1)} for row in rows]
    profiles = from_rows(rows, store.path)["gcn"]
    assert profiles.datasets == ("tiny-graphs",) and set(profiles.perturbations) == {"RandFtrs", "NoEdges"}


def test_an_edit_in_a_profile_is_refused(done, tmp_path) -> None:
    study, _ = done
    job = next(iter(study.jobs.values()))
    with pytest.raises(DataError, match="not of an attacked one"):
        Worker(Store(tmp_path / "store")).compute(replace(job, data=job.data.with_edit("0" * 64)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"datasets": ["enzyms"]}, "Did you mean 'enzymes'?"),
        ({"perturbations": [Spec("NoEdge")]}, "Did you mean 'noedges'?"),
        ({"perturbations": [Spec("NoEdges", {"compat": "gtaxogym"})]}, "compat"),
        ({"models": ["gcnx"]}, "no profiler 'gcnx'"),
        ({"training": {"order": 3}}, "does not take 'order'"),
        ({"seeds": []}, "at least one seed|one dataset, one model and one seed"),
        ({"seeds": [-1]}, "distinct numbers of at least 0"),
    ],
)
def test_everything_is_checked_before_anything_runs(changes, sentence: str) -> None:
    with pytest.raises(GRBError, match=sentence):
        plan_profiles(asked(**changes))


CORRUPTION = """
dataset: synth-tiny
scenario: corruption
defenses: [gcn]
attacks: [NoEdges, DropEdges]
repeats: 2
training: {epochs: 3}
"""


def test_perturbations_are_columns_of_the_robustness_leaderboard(tmp_path) -> None:
    study, store = plan_study(parse_recipe(CORRUPTION, name="mine")), Store(tmp_path / "store")
    scores = [job for job in study.jobs.values() if job.kind == "score"]
    # two victims: clean, one draw of what is not random, two of what is
    assert len(scores) == 2 * (1 + 1 + 2)
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    (found,) = build_board(study, store)
    assert {cell.attack for cell in found.cells} == {CLEAN, "NoEdges", "DropEdges"}
    accuracy = {(cell.attack, cell.defense): cell.score.mean for cell in found.cells if cell.difficulty == "full"}
    assert accuracy["NoEdges", "mlp"] == accuracy[CLEAN, "mlp"]  # it sees no edges anyway
    assert accuracy["NoEdges", "gcn"] != accuracy[CLEAN, "gcn"]


def test_a_corruption_that_replaces_the_features_is_refused() -> None:
    with pytest.raises(DataError, match="'randftrs' leaves other features than a trained model knows"):
        plan_study(parse_recipe(CORRUPTION.replace("DropEdges", "LowPass+RandFtrs"), name="mine"))
    with pytest.raises(GRBError, match="no perturbation 'pgd'"):
        plan_study(parse_recipe(CORRUPTION.replace("DropEdges", "pgd"), name="mine"))
