"""The second scenario through the same recipes, jobs and boards."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from grb.dataset import load_dataset
from grb.pipeline import Limits, Recipe, Spec, Store, plan_study, read_recipe, recipe_names, run
from grb.pipeline.recipe import parse_recipe
from pipeline.parts import board_of

NAMES = [name for name in recipe_names() if name.endswith("-modification")]

SMALL = """
dataset: synth-tiny
scenario: modification
defenses: [gcn+ln]
attacks: [{name: fga, refresh: 64}, pgd-features, dice, rnd-edges]
white_box: [{name: fga, refresh: 64}]
modes: [full]
repeats: 2
iterations: 5
training: {epochs: 40}
"""


def test_datasets_have_their_recipe_where_reproduce_looks_for_it() -> None:
    assert {"grb-cora-modification", "synth-cora-modification"} <= set(NAMES)
    assert all(read_recipe(name).dataset == name.removesuffix("-modification") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_the_benchmarks(name: str) -> None:
    recipe = read_recipe(name)
    assert recipe.scenario == "modification" and not recipe.threat and not recipe.paper
    names = {spec.name for spec in recipe.attacks}
    assert {"dice", "rnd-edges"} <= names and names & {"fga", "pr-bcd"}  # the latter where graphs are large


def test_the_true_recipe_has_the_victims_of_the_injection_board() -> None:
    ours, injection = read_recipe("grb-cora-modification"), read_recipe("grb-cora")
    assert ours.defenses == injection.defenses and ours.repeats == injection.repeats == 10
    assert ours.surrogates == injection.surrogates and ours.seed == injection.seed and ours.modes == injection.modes


def test_the_embedded_recipe_plans_five_per_cent_of_the_edges() -> None:
    study = plan_study(read_recipe("synth-cora-modification").quickly())
    attacks = [job for job in study.jobs.values() if job.kind == "attack"]
    assert len(attacks) == 3 * 4
    assert {job.extra["threat"]["edge_ratio"] for job in attacks} == {0.05}
    # features of 5 % of the targets of each difficulty
    for mode in ("easy", "full"):
        wanted = len(load_dataset("synth-cora").test_ids(mode)) // 20
        assert {job.extra["threat"]["feature_nodes"] for job in attacks if job.mode == mode} == {wanted}


def test_a_board_of_modification_attacks(tmp_path) -> None:
    study = plan_study(parse_recipe(SMALL, name="small"))
    store = Store(tmp_path / "store")
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    made = board_of(study, store)
    assert made.scenario == "modification" and made.meta["measured"] == made.meta["planned"]
    cell = made.cell("fga(refresh=64)", "gcn", "full")
    edges = int(0.05 * load_dataset("synth-tiny").num_edges)
    assert all(fact["budget"]["edges"] <= edges for fact in cell.metadata)
    assert all(fact["budget"]["edges"] == edges for fact in made.cell("dice", "gcn", "full").metadata)
    changed = [fact["budget"] for fact in made.cell("pgd-features", "gcn", "full").metadata]
    assert all(each["edges"] == 0 and each["feature_nodes"] > 0 for each in changed)
    assert made.cell("rnd-edges", "mlp", "full").values == made.cell("none", "mlp", "full").values * 2  # sees no edges


def test_the_share_of_changed_edges_is_swept() -> None:
    recipe = read_recipe("modification-budget-grb-cora")
    shares = list(recipe.sweep["edge_ratio"])
    assert recipe.scenario == "modification" and shares == sorted(shares) and 0.05 in shares
    small = replace(recipe, dataset="synth-tiny", name="small", repeats=1, defenses=recipe.defenses[:1])
    attacks = [job for job in plan_study(small).jobs.values() if job.kind == "attack"]
    assert {job.extra["threat"]["edge_ratio"] for job in attacks} == set(shares)
    assert len(attacks) == len(shares) * len(recipe.attacks)


def test_adversarial_training_of_a_modification_board_meets_changed_edges() -> None:
    def opponents(scenario: str, *defenses: Spec) -> dict[str, str]:
        recipe = Recipe(
            "mine",
            "synth-tiny",
            scenario=scenario,
            defenses=defenses,
            training={"epochs": 4},
            modes=("full",),
            repeats=1,
        )
        fits = [job for job in plan_study(recipe).jobs.values() if job.kind == "fit" and "+at" in job.spec.name]
        return {job.title: json.dumps(job.method) for job in fits}

    edges = opponents("modification", Spec("gcn+at"), Spec("gat+at", {"attack": "dice"}), Spec("gcn+at-full"))
    assert '"edge_ratio": 0.05' in edges["gcn+at"] and "PRBCD" in edges["gcn+at"]
    assert "DICE" in next(text for title, text in edges.items() if title.startswith("gat+at"))
    assert "PRBCD" not in edges["gcn+at-full"]  # its start is one of injected features
    assert "PRBCD" not in opponents("injection", Spec("gcn+at"))["gcn+at"]
