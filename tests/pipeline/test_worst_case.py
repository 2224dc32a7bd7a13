"""The worst case of a recipe: which jobs it plans, who joins it, and that own draws and old draws stay apart."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import grb
from grb.attack.auto import ensemble
from grb.attack.auto.member import Member
from grb.attack.injection import FGSM
from grb.dataset import load_dataset
from grb.leaderboard import table
from grb.pipeline import DataRef, Job, Limits, Recipe, Record, Spec, Store, Study, plan_study, read_recipe, run
from grb.pipeline.card import Card
from grb.pipeline.plan import join_submission
from grb.pipeline.planner import Planner
from grb.pipeline.submission import add, check, record_of
from grb.threat import Injection
from grb.trainer.checkpoint import save_model
from pipeline.parts import board_of

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
    memory=False,
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


# submissions and newcomers


@pytest.fixture
def submitted(tmp_path: Path) -> dict[str, Record]:
    """An edit and a model of somebody else."""
    dataset, limits = load_dataset("synth-tiny"), Injection.preset("synth-tiny", "full")
    model = grb.train("gcn", dataset, epochs=2, seed=9)
    files = {
        "attack": grb.run_attack("fgsm", model, dataset, iterations=2).edit.save(tmp_path / "edit.npz"),
        "defense": save_model(model, tmp_path / "model.safetensors"),
    }
    cards = {kind: Card(f"my-{kind}", kind, "synth-tiny", authors=("A",)) for kind in files}
    return {kind: record_of(check(file, cards[kind], dataset, limits)) for kind, file in files.items()}


def scored(study: Study) -> set[tuple[str, str]]:
    """Keys of (model, edit) of all scores under attack."""
    return {
        (job.inputs["model"], job.data.edits[-1])
        for job in study.jobs.values()
        if job.kind == "score" and job.data.edits
    }


def test_newcomers_meet_the_whole_battery_and_everybody_meets_theirs(submitted: dict[str, Record]) -> None:
    study = plan_study(RECIPE, submitted=submitted.values())
    jobs, met = dict(study.jobs), scored(study)
    attack, newcomer = submitted["attack"].key, submitted["defense"].key
    victims = {key for key, job in jobs.items() if job.kind == "fit" and job.seed < 2}
    assert newcomer in victims and len(victims) == 2 * 3 + 1
    assert {(victim, attack) for victim in victims} <= met, "everybody meets the submitted edit, the newcomer too"
    first = {victim for victim in victims if victim == newcomer or jobs[victim].seed == 0}
    edits = {key for key, job in made_by_ensemble(jobs).items() if job.inputs["surrogate"] in first}
    own = [made_by_ensemble(jobs)[key] for key in edits if made_by_ensemble(jobs)[key].inputs["surrogate"] == newcomer]
    assert len(edits) == 2 * len(first) and [job.extra.get("labels", "predicted") for job in own].count("true") == 1
    assert set(product(first, edits)) <= met, "edits of the newcomer are replayed on all, and all edits on the newcomer"


ONE_STEP = (Member("one step", lambda level: FGSM(steps=1 + level, step_size=0.5)),)


def test_a_newcomer_is_compared_by_equal_effort_and_a_plug_in_says_how_it_may_be_attacked(
    submitted: dict[str, Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble, "members", lambda context: ONE_STEP)
    recipe = replace(
        RECIPE, defenses=(Spec("egnnguard"), Spec("pipeline.plugins:Rounded")), attacks=(Spec("rnd"),), victims=1
    )
    store, here = Store(tmp_path / "store"), Limits(workers=0)
    study = plan_study(recipe)
    assert run(study.jobs.values(), store, limits=here).complete
    board = board_of(study, store)
    assert board.rank_by == "worst_case" and set(board.by_defense["full"]) == set(board.defenses)
    assert all("worst_case" in own for own in board.by_defense["full"].values())
    told = table.adaptive_table(board)
    assert told is not None
    assert set(told.rows) == {("egnnguard", "soft", "grb"), ("pipeline.plugins:Rounded", "unrounded", "its author")}
    assert table.adaptive_table(board) in table.tables(board)

    dataset, limits = load_dataset("synth-tiny"), Injection.preset("synth-tiny", "full")
    file = tmp_path / "model.safetensors"
    checked = check(file, Card("my-defense", "defense", "synth-tiny", authors=("A",)), dataset, limits)
    whole, part = join_submission(store, record_of(checked), recipe)
    add(store, checked)
    assert run(part.jobs.values(), store, limits=here).complete
    after = board_of(whole, store)
    for defense, own in after.by_defense["full"].items():
        assert "worst_case" in own, f"{defense} met what was found for the newcomer, and the newcomer met all"
        if defense in board.by_defense["full"]:
            assert own["worst_case"].mean <= board.by_defense["full"][defense]["worst_case"].mean


# draws and wirings of attacks


def edits_of(recipe: Recipe, store: Store) -> dict[str, set[tuple[int, ...]]]:
    """Edges of the transfer attacks, by label."""
    from grb.graph import GraphEdit

    study = plan_study(recipe)
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    found = {}
    for key, job in study.jobs.items():
        if job.kind == "attack" and job.extra["knowledge"] == "transfer" and job.spec.name != "auto":
            edit = GraphEdit.load(store.find(store.read(key), "edit"))
            found[job.title] = set(map(tuple, edit.add.T.tolist()))
    return found


def test_attacks_of_one_repeat_draw_their_own_edges_where_the_worst_case_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble, "members", lambda context: ONE_STEP)
    attacks = (Spec("fgsm"), Spec("pgd"), Spec("speit"), Spec("speit", {"wiring": "layers"}))
    small = replace(RECIPE, defenses=(), attacks=attacks, victims=1, threat={"nodes": 20})
    own = edits_of(small, Store(tmp_path / "own"))
    papers = edits_of(replace(small, worst_case=""), Store(tmp_path / "papers"))
    assert papers["fgsm"] == papers["pgd"] == papers["speit"], "as in the paper's code: one wiring under three names"
    labels = [spec.label for spec in attacks]
    assert all(own[a] != own[b] for place, a in enumerate(labels) for b in labels[:place])
    n = load_dataset("synth-tiny").num_nodes
    for label in labels:
        among_injected = any(min(pair) >= n for pair in own[label])
        assert among_injected is ("layers" in label)


def test_speit_on_the_board_of_the_worst_case_has_its_own_wiring() -> None:
    recipe = read_recipe("worst-case-grb-cora")
    assert [spec.params for spec in recipe.attacks if spec.name == "speit"] == [{"wiring": "layers"}]
    assert recipe.worst_case == "standard" and {spec.name for spec in read_recipe("grb-cora").defenses} < {
        spec.name for spec in recipe.defenses
    }
