"""The worst case of a recipe: which jobs it plans, and that own draws and old draws stay apart."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from grb.dataset import load_dataset
from grb.pipeline import DataRef, Job, Recipe, Spec, plan_study
from grb.pipeline.planner import Planner

RECIPE = Recipe(
    name="worst",
    dataset="synth-tiny",
    defenses=(Spec("gcn"), Spec("gat")),
    attacks=(Spec("fgsm"), Spec("pgd")),
    modes=("full",),
    repeats=1,
    victims=2,
    iterations=2,
    training={"epochs": 2},
    worst_case="standard",
)


def made_by_ensemble(jobs: dict[str, Job]) -> dict[str, Job]:
    return {key: job for key, job in jobs.items() if job.kind == "attack" and job.spec.name == "auto"}


def test_every_victim_meets_every_edit_of_the_same_training_number() -> None:
    jobs = dict(plan_study(RECIPE).jobs)
    edits, fits = made_by_ensemble(jobs), {key: job for key, job in jobs.items() if job.kind == "fit"}
    met = {
        (job.inputs["model"], key)
        for job in jobs.values()
        if job.kind == "score"
        for key in job.data.edits
        if key in edits
    }
    victims = {job.inputs["surrogate"] for job in edits.values()}
    wanted = {
        (victim, key)
        for victim, (key, job) in product(victims, edits.items())
        if fits[victim].seed == fits[job.inputs["surrogate"]].seed
    }
    assert len(victims) == 2 * 3, "gcn, gat and the baseline mlp, trained twice"
    assert len(edits) == 2 * len(victims) and met == wanted


def test_the_attack_on_true_labels_starts_with_the_edit_of_predicted_ones() -> None:
    edits = made_by_ensemble(dict(plan_study(RECIPE).jobs))
    true = [job for job in edits.values() if job.extra.get("labels") == "true"]
    assert len(true) == len(edits) // 2
    for job in true:
        first = edits[job.inputs["pool"]]
        assert "labels" not in first.extra and first.inputs == {"surrogate": job.inputs["surrogate"]}


def test_attacks_beside_a_worst_case_have_their_own_stream_and_others_keep_the_papers_draws() -> None:
    dataset = load_dataset("synth-tiny")
    for recipe, names in ((RECIPE, ("fgsm", "pgd", "auto")), (replace(RECIPE, worst_case=""), ("fgsm", "pgd"))):
        planner = Planner(recipe, dataset, DataRef("synth-tiny", dataset.fingerprint()), {})
        planner.scores(planner.victims())
        streams = {job.spec.name: job.extra.get("stream") for job in planner.jobs.values() if job.kind == "attack"}
        assert streams == {name: name if recipe.worst_case else None for name in names}
