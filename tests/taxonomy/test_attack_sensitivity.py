"""Sensitivity to perturbations beside sensitivity to attacks, from one store."""

from __future__ import annotations

import csv
import json
import math
from statistics import mean, pstdev

import pytest
from typer.testing import CliRunner

from grb.cli.app import app
from grb.cli.taxonomy_run import parse_perturbation
from grb.cli.taxonomy_views import rows_of, scores_of
from grb.errors import DataError
from grb.pipeline import Limits, Store, build_board, plan_study, run
from grb.pipeline.profiles import Profiling, plan_profiles
from grb.pipeline.recipe import parse_recipe
from grb.taxonomy.attack_sensitivity import FEATURES, STRUCTURE, attack_sensitivity
from grb.taxonomy.profile import PAPER_ORDER

RECIPE = """
dataset: synth-tiny
scenario: modification
defenses: [gcn, mlp]
attacks: [{name: fga, refresh: 64}, {name: pgd-features, n_epoch: 5}, rnd-edges]
modes: [full]
repeats: 2
training: {epochs: 30}
"""
SEEDS = (0, 1)
RUN = ("NoEdges", "RandRewire", "NoNodeFtrs", "RandFtrs@gtaxogym", "LowPass")


def sensitivity(store, **options):
    return attack_sensitivity(rows_of(store), scores_of(store), **options)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return plan_study(parse_recipe(RECIPE, name="small")), Store(tmp_path_factory.mktemp("cross") / "store")


@pytest.fixture(scope="module")
def store(study) -> Store:
    robustness, store = study
    specs = [parse_perturbation(name) for name in RUN]
    profiles = plan_profiles(Profiling(["synth-tiny"], specs, seeds=SEEDS, training={"epochs": 3}))
    jobs = [*robustness.jobs.values(), *profiles.jobs.values()]
    assert run(jobs, store, limits=Limits(workers=0)).complete
    return store


def test_every_perturbation_is_of_one_kind_but_the_bands():
    assert {*FEATURES, *STRUCTURE, "LowPass", "MidPass", "HighPass"} == set(PAPER_ORDER)
    assert not set(FEATURES) & set(STRUCTURE)


def test_sensitivity_is_the_mean_share_that_runs_lose(store):
    (row,) = sensitivity(store)
    runs = {}
    for record in store.records():
        if record.job.kind == "profile":
            runs[record.job.seed, record.measurement["perturbation"]] = record.measurement["auroc"]
    for kind, names in (("features", ("NoNodeFtrs", "RandFtrs (gtaxogym)")), ("structure", ("NoEdges", "RandRewire"))):
        lost = [1 - mean(runs[seed, name] for name in names) / runs[seed, "-"] for seed in SEEDS]
        assert row.sensitivity[kind].mean == pytest.approx(mean(lost))
        assert row.sensitivity[kind].std == pytest.approx(pstdev(lost))


def test_attacks_are_the_strongest_of_their_kind_on_the_board(study, store):
    robustness, _ = study
    (made,) = build_board(robustness, store)
    (row,) = sensitivity(store)
    assert set(row.attacks) == {"features", "edges"} and row.difficulty == "full"

    def lost(attack: str) -> float:
        cells = [(made.cell(attack, name, "full"), made.cell("none", name, "full")) for name in made.defenses]
        return mean(clean.score.mean - attacked.score.mean for attacked, clean in cells)

    edges = {name: lost(name) for name in ("fga(refresh=64)", "rnd-edges")}
    assert row.attacks["edges"].attack.startswith(max(edges, key=edges.__getitem__))
    assert row.attacks["edges"].attack.endswith("edge_ratio=0.05")
    assert row.attacks["edges"].lost.mean == pytest.approx(max(edges.values()))
    assert row.attacks["features"].attack.startswith("pgd-features")


def test_what_was_not_run_is_missing(store, tmp_path):
    (row,) = sensitivity(store, model="gin")
    assert not row.sensitivity and row.attacks
    (row,) = sensitivity(store, difficulty="easy")
    assert row.sensitivity and not row.attacks and not row.difficulty
    with pytest.raises(DataError, match="neither profiling runs with gcn nor scores on full"):
        sensitivity(Store(tmp_path / "empty"))


def test_the_command_shows_and_writes_it(store, tmp_path):
    runner, table = CliRunner(), tmp_path / "cross.csv"
    shown = runner.invoke(app, ["taxonomy", "analyse", str(store.path), "--against", "attacks", "-o", str(table)])
    assert shown.exit_code == 0 and "synth-tiny" in shown.output and "pgd-features" in shown.output
    (written,) = csv.DictReader(table.read_text().splitlines())
    told = json.loads(
        runner.invoke(app, ["taxonomy", "analyse", str(store.path), "--against", "attacks", "--json"]).stdout
    )
    assert math.isclose(float(written["accuracy_lost_edges"]), told[0]["accuracy_lost_edges"], rel_tol=1e-6)
    assert told[0]["dataset"] == written["dataset"] == "synth-tiny"


@pytest.mark.parametrize(
    ("wrong", "word"),
    [(["--difficulty", "huge"], "huge"), (["-o", "cross.txt"], ".csv"), (["--model", "gcnn"], "gcnn")],
)
def test_bad_options_are_refused(store, wrong, word):
    nowhere = CliRunner().invoke(app, ["taxonomy", "analyse", str(store.path / "nowhere"), "--against", "attacks"])
    assert nowhere.exit_code == 2 and "no store" in nowhere.stderr
    refused = CliRunner().invoke(app, ["taxonomy", "analyse", str(store.path), "--against", "attacks", *wrong])
    assert refused.exit_code == 2 and word in refused.output


def test_other_limits_are_another_attack(tmp_path):
    text = RECIPE.replace("[{name: fga, refresh: 64}, {name: pgd-features, n_epoch: 5}, rnd-edges]", "[rnd-edges]")
    swept = plan_study(parse_recipe(text + "sweep: {edge_ratio: [0.01, 0.5]}\n", name="swept"))
    store = Store(tmp_path / "swept")
    assert run(swept.jobs.values(), store, limits=Limits(workers=0)).complete
    (row,) = sensitivity(store)
    made = max(build_board(swept, store), key=lambda board: board.limit[1])
    cells = [(made.cell("rnd-edges", name, "full"), made.cell("none", name, "full")) for name in made.defenses]
    wanted = mean(clean.score.mean - attacked.score.mean for attacked, clean in cells)
    assert row.attacks["edges"].attack == "rnd-edges, transfer, edge_ratio=0.5"
    assert row.attacks["edges"].lost.mean == pytest.approx(wanted)
