"""The road from recipe to record to board: whatever a recipe asks for, a store shows what its run showed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grb
from grb.dataset import load_dataset
from grb.dataset.storage import save
from grb.errors import DataError, GRBError
from grb.evaluator.board import CLEAN, Board
from grb.evaluator.measurement import Measurement
from grb.leaderboard import table
from grb.pipeline import Limits, Recipe, Spec, Store, Study, boards, build_board, plan_study, run
from grb.pipeline.recipe import parse_recipe
from grb.pipeline.worker import Worker
from pipeline.parts import board_of, of_kind, planned

STRESS = os.environ.get("HYPOTHESIS_PROFILE") == "stress"
FEW = settings(max_examples=100 if STRESS else 12, deadline=None, suppress_health_check=list(HealthCheck))
# prints the boards of a store as JSON, and fails if anything heavy was imported on the way
SHOW = """
import json, sys
from pathlib import Path
from grb.pipeline.results import boards
from grb.pipeline.store import Store
found = [board.to_dict() for board in boards(Store(Path(sys.argv[1])))]
heavy = {"torch", "scipy", "torch_geometric", "grb.dataset"} & set(sys.modules)
assert "torch" not in sys.modules, heavy
json.dump(found, sys.stdout)
"""


def done(recipe: Recipe, path: Path) -> tuple[Study, Store]:
    """A recipe run as the command runs it: its study is written too."""
    study, store = plan_study(recipe), Store(path)
    record = study.record({})
    assert record is not None
    store.write(record)
    outcome = run(study.jobs.values(), store, limits=Limits(workers=0))
    assert outcome.complete, outcome.failed
    return study, store


def shown_elsewhere(store: Store) -> list[dict[str, Any]]:
    """The boards of a store in a process that knows neither datasets nor torch."""
    environment = {name: value for name, value in os.environ.items() if name != "GRB_DATA"}
    environment |= {"GRB_HOME": str(store.path.parent / "nowhere"), "GRB_OFFLINE": "1"}
    command = [sys.executable, "-c", SHOW, str(store.path)]
    found = subprocess.run(command, env=environment, cwd=store.path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-800:]
    return list(json.loads(found.stdout))


def as_json(made: list[Board]) -> list[dict[str, Any]]:
    return list(json.loads(json.dumps([board.to_dict() for board in made], allow_nan=False)))


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Small recipes of every kind."""
    kind = draw(st.sampled_from(["injection", "modification", "corruption", "poisoning"]))
    counts = st.integers(1, 2)
    given: dict[str, Any] = {
        "modes": draw(st.sampled_from([("full",), ("easy", "full"), ("easy", "hard")])),
        "repeats": draw(counts),
        "victims": draw(st.integers(1, 3)),
        "seed": draw(st.sampled_from([0, 5])),
        "iterations": 2,
        "training": {"epochs": draw(counts)},
        "train_mode": draw(st.sampled_from(["inductive", "transductive"])),
        "defenses": draw(st.sampled_from([(), (Spec("gcn+ln"),), (Spec("gcn", {"epochs": 3}),)])),
        "metrics": draw(st.sampled_from([(), ("macro-f1",)])),
        "quick": {"repeats": 1, "training": {"epochs": 1}},
    }
    if kind == "corruption":
        attacks = draw(st.sampled_from([("NoEdges",), ("NoEdges", "DropEdges")]))
        return Recipe("drawn", "synth-tiny", scenario=kind, attacks=tuple(map(Spec, attacks)), **given)
    injects = kind == "injection"
    attacks = draw(st.sampled_from([("rnd",), ("rnd", "fgsm")] if injects else [("dice",), ("dice", "fga")]))
    given["attacks"] = tuple(map(Spec, attacks))
    given["surrogates"] = draw(st.sampled_from([(Spec("gcn"),), (Spec("gcn"), Spec("sgcn"))]))
    if draw(st.booleans()):
        limit = "nodes" if injects else "edge_ratio"
        given["sweep"] = {limit: [2, 4] if injects else [0.01, 0.02]}
    if kind == "poisoning":
        given |= {"objective": "poisoning", "validation": draw(st.sampled_from(["attacked", "clean"])), "victims": 1}
    elif draw(st.booleans()):
        given["white_box"] = (Spec(attacks[-1]),)
    made = Recipe("drawn", "synth-tiny", scenario="injection" if injects else "modification", **given)
    return made.quickly() if draw(st.booleans()) else made


@FEW
@given(recipe=recipes())
def test_a_store_shows_what_the_run_showed(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> None:
    study, store = done(recipe, tmp_path_factory.mktemp("drawn") / "store")
    printed = build_board(study, store)
    assert len(printed) == max(1, sum(map(len, recipe.sweep.values())))
    assert all(board.meta["measured"] == board.meta["planned"] for board in printed)
    assert as_json(boards(store)) == as_json(printed)
    assert as_json(boards(store, ["drawn"])) == as_json(printed)


@pytest.mark.parametrize("sweep", [{}, {"nodes": [2, 4]}])
def test_a_store_is_shown_without_torch_datasets_or_the_recipe(sweep: dict[str, list[float]], tmp_path: Path) -> None:
    text = "dataset: synth-tiny\nattacks: [rnd]\nwhite_box: [fgsm]\nmodes: [full]\nrepeats: 1\niterations: 2\nmemory: false\n"
    recipe = parse_recipe(text + "training: {epochs: 1}\n", name="gone").changed(sweep=sweep, victims=3)
    study, store = done(recipe, tmp_path / "store")
    assert shown_elsewhere(store) == as_json(build_board(study, store))


# sweeps


def test_a_sweep_has_white_box_attacks_and_ranks_at_every_value(tmp_path: Path) -> None:
    text = "dataset: synth-tiny\nattacks: [rnd]\nwhite_box: [fgsm]\nmodes: [full]\nrepeats: 1\niterations: 2\nmemory: false\n"
    recipe = parse_recipe(text + "training: {epochs: 3}\nsweep: {nodes: [1, 5], edges_per_node: [2]}\n", name="swept")
    study, store = done(recipe, tmp_path / "store")
    made = build_board(study, store)
    assert [board.limit for board in made] == [("nodes", 1.0), ("nodes", 5.0), ("edges_per_node", 2.0)]
    for board in made:
        assert board.white_box == ("fgsm",) and set(board.attacks) == {"rnd", CLEAN}  # no limit in the names
        assert set(board.ranks["full"]) == {"gcn", "mlp"}
        assert all("white_box" in values for values in board.by_defense["full"].values())
    nodes, heat, *_ = table.sweep_tables(made)
    assert nodes.headers == ("defense", "1", "5") and "fgsm (white-box)" in {row[0] for row in heat.rows}


# poisoning and transductive training

POISONING = """
dataset: synth-tiny
scenario: modification
objective: poisoning
attacks: [METHOD]
modes: [full]
repeats: 1
iterations: 20
threat: {edge_ratio: 0.3}
training: {epochs: 30}
train_mode: transductive
"""


def test_an_attack_on_training_data_is_refused_where_victims_are_trained_before_it() -> None:
    evasion = POISONING.replace("objective: poisoning\n", "").replace("METHOD", "metattack")
    with pytest.raises(DataError, match="add 'objective: poisoning'") as refused:
        plan_study(parse_recipe(evasion, name="mine"))
    assert "'metattack'" in str(refused.value) and "\n" not in str(refused.value)
    plan_study(parse_recipe(POISONING.replace("METHOD", "metattack"), name="mine"))


@pytest.mark.parametrize("method", ["metattack", "dice"])
@pytest.mark.parametrize("validation", ["attacked", "clean"])
def test_under_poisoning_victims_are_trained_on_the_attacked_graph(
    method: str, validation: str, tmp_path: Path
) -> None:
    recipe = parse_recipe(POISONING.replace("METHOD", method), name="mine").changed(validation=validation)
    study, store = done(recipe, tmp_path / "store")
    board = board_of(study, store)
    assert board.objective == "poisoning" and board.meta["train_mode"] == "transductive"
    attacked = [each for each in planned(study) if each.attack != CLEAN]
    assert {each.defense for each in attacked} == {"gcn", "mlp"}
    for each in attacked:
        score = study.jobs[each.score]
        victim = store.read(score.inputs["model"])
        assert victim.job.data.edits == score.data.edits != ()
        measured = Measurement.from_dict(store.read(each.score).measurement)
        assert (measured.objective, measured.defense.validation) == ("poisoning", validation)
        assert measured.defense.train_mode == "transductive"
    victims = {key for job in of_kind(study, "score") for key in job.inputs.values()}
    fits = {(job.spec.name, bool(job.data.edits)): key for key in victims for job in [study.jobs[key]]}
    digests = {name: store.read(key).objects["weights"]["sha256"] for name, key in fits.items()}
    assert digests["gcn", True] != digests["gcn", False]  # another training
    (shown,) = boards(store)
    assert shown.to_dict() == board.to_dict()


@pytest.mark.parametrize("objective", ["evasion", "poisoning"])
@pytest.mark.parametrize("scenario", ["modification", "injection"])
def test_a_model_that_is_tied_to_its_training_graph_is_told_which_node_is_which(
    objective: str, scenario: str, tmp_path: Path
) -> None:
    """Renumbered nodes, new ones among them, take no rank from it."""
    attack = {"modification": "dice", "injection": "rnd"}[scenario]
    text = (
        f"dataset: synth-tiny\nscenario: {scenario}\nobjective: {objective}\nattacks: [{attack}]\nmodes: [full]\nrepeats: 1\n"
        "train_mode: transductive\ntraining: {epochs: 8}\n"
        "defenses: [{name: pro-gnn, parametrisation: sparse, rank: 4, graph_lr: 0.05}]\n"
    )
    study, store = done(parse_recipe(text, name="tied"), tmp_path / "store")
    scores = [each for each in planned(study) if each.defense.startswith("pro-gnn")]
    assert len(scores) == 2
    for each in scores:
        assert Measurement.from_dict(store.read(each.score).measurement).flags == ()
    model = Worker(store).model(next(job.key for job in of_kind(study, "fit") if job.spec.name == "pro-gnn"))
    assert float(model.weights.min()) < 0.99


def test_the_graph_of_the_validation_decides_the_epoch(tmp_path: Path) -> None:
    recipe = parse_recipe(POISONING.replace("METHOD", "dice"), name="mine")
    found = {}
    for validation in ("attacked", "clean"):
        study, store = done(recipe.changed(validation=validation), tmp_path / validation)
        job = next(job for job in of_kind(study, "fit") if job.data.edits and job.spec.name == "gcn")
        found[validation] = store.read(job.key).result["val_score"]
    assert found["attacked"] != found["clean"]


def test_training_may_see_the_test_nodes(tmp_path: Path) -> None:
    """The same weights as a training from Python on the transductive view, and others than the inductive ones."""
    text = "dataset: synth-tiny\nattacks: [rnd]\nmodes: [full]\nrepeats: 1\ntraining: {epochs: 5}\n"
    study, store = done(parse_recipe(text + "train_mode: transductive\n", name="seen"), tmp_path / "store")
    dataset = load_dataset("synth-tiny")
    job = next(job for job in of_kind(study, "fit") if job.spec.name == "gcn")
    model = Worker(store).model(job.key)
    same = grb.train("gcn", dataset, seed=0, epochs=5, train_mode="transductive")
    other = grb.train("gcn", dataset, seed=0, epochs=5)
    weights = [dict(each.state_dict()) for each in (model, same, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not all(torch.equal(weights[0][name], weights[2][name]) for name in weights[0])
    assert board_of(study, store).meta["train_mode"] == "transductive"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("objective: poisoning\nattacks: [rnd]", "add 'train_mode: transductive'"),
        ("objective: poisoning\nscenario: modification\nwhite_box: [fga]", "leave white_box out"),
        ("objective: poisoning\nscenario: corruption\nattacks: [NoEdges]", "grb taxonomy run"),
        ("objective: dancing", "Allowed: evasion, poisoning"),
        ("train_mode: both", "Allowed: inductive, transductive"),
        ("validation: none", "Allowed: attacked, clean"),
        ("metrics: [acuracy]", "acuracy"),
        ("metrics: [macro-f1, macro-f1]", "twice"),
        ("metrics: ['recall:9']\nattacks: [rnd]", "recall:9"),
        ("scenario: corruption\nattacks: [NoEdges]\nwhite_box: [fgsm]", "white_box"),
        ("defenses: [{name: gcn+at, attack: metattack}]", "poisons training data"),
        ("defenses: [{name: gcn+at, attack: 5}]", "a name of `grb ls attacks` is needed"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_runs(lines: str, words: str) -> None:
    with pytest.raises(GRBError) as refused:
        plan_study(parse_recipe(f"dataset: synth-tiny\n{lines}\n", name="mine"))
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_adversarial_training_takes_the_name_of_an_attack(tmp_path: Path) -> None:
    own = {"attack": "dice", "warm_up": 1, "every": 1}
    study, store = done(small("synth-tiny", defenses=(Spec("gcn+at", own), Spec("gcn+at"))), tmp_path / "store")
    label = "gcn+at(attack=dice, every=1, warm_up=1)"
    assert set(board_of(study, store).defenses) == {label, "gcn+at", "gcn", "mlp"}


# metrics


def test_metrics_of_a_recipe_are_on_the_board(tmp_path: Path) -> None:
    text = "dataset: synth-tiny\nattacks: [rnd]\nmodes: [full]\nrepeats: 2\ntraining: {epochs: 20}\n"
    study, store = done(parse_recipe(text + "metrics: [macro-f1, 'recall:1']\n", name="rated"), tmp_path / "store")
    board = board_of(study, store)
    dataset, worker = load_dataset("synth-tiny"), Worker(store)
    cell = board.cell("rnd", "gcn", "full")
    assert cell is not None and set(cell.metrics) == {"macro-f1", "recall:1"} and board.metric == "accuracy"
    found = []
    for about in cell.metadata:
        edit, model = worker._edit(about["attack"]), worker.model(about["victim"])
        found.append(grb.evaluate(model, dataset, edit, metrics=("macro-f1", "recall:1")))
    for name, estimate in cell.metrics.items():
        assert estimate.n == 2 and estimate.mean == pytest.approx(np.mean([each[name]["full"] for each in found]))
    heat = table.heat_table(board, metric="macro-f1")
    assert heat.title == "macro-f1 (%), full"
    row = next(row for row in heat.rows if row[0] == "gcn")
    assert row[heat.headers.index("rnd")].startswith(f"{100 * cell.metrics['macro-f1'].mean:.1f}")


# datasets


SEVERAL = "pipeline.plugins:several_labels"


def small(dataset: str, **more: Any) -> Recipe:
    given: dict[str, Any] = {
        "modes": ("full",),
        "repeats": 1,
        "iterations": 2,
        "training": {"epochs": 10},
        "memory": False,
        **more,
    }
    return Recipe("small", dataset, **{"attacks": (Spec("rnd"),), **given})


def test_several_labels_are_ranked_by_micro_f1(tmp_path: Path) -> None:
    study, store = done(small(SEVERAL, attacks=(Spec("rnd"), Spec("fgsm"))), tmp_path / "store")
    board = board_of(study, store)
    assert board.metric == "micro-f1" and set(board.ranks["full"]) == {"gcn", "mlp"}
    assert table.heat_table(board).title == "micro-f1 (%), full"
    assert "weighted micro-f1" in table.attack_table(board).headers
    dataset, worker = load_dataset(SEVERAL), Worker(store)
    for defense in board.defenses:
        cell = board.cell(CLEAN, defense, "full")
        assert cell is not None
        model = worker.model(cell.metadata[0]["victim"])
        assert cell.score.mean == pytest.approx(dict(grb.evaluate(model, dataset))["full"])
    best = board.cell(CLEAN, "mlp", "full")
    assert best is not None and best.score.mean > 0.5  # it has learnt something


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """One dataset in every form that a recipe can name."""
    dataset = load_dataset("synth-tiny")
    graph = dataset.graph
    save(dataset, tmp_path / "folder")
    np.savez(tmp_path / "arrays.npz", edge_index=graph.adj.edges(), x=graph.x, y=graph.y)
    return {
        "folder": str(tmp_path / "folder"),
        "npz": str(tmp_path / "arrays.npz"),
        "import path": "pipeline.plugins:tiny_again",
    }


@pytest.mark.parametrize("form", ["folder", "npz", "import path"])
def test_a_dataset_of_the_users_runs_in_workers(form: str, files: dict[str, str], tmp_path: Path) -> None:
    study, store = plan_study(small(files[form])), Store(tmp_path / "store")
    outcome = run(study.jobs.values(), store, limits=Limits(workers=1))
    assert outcome.complete, outcome.failed
    board = board_of(study, store)
    assert board.meta["measured"] == board.meta["planned"] and board.meta["reference"] in files[form]


def test_a_relative_path_is_found_from_elsewhere(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = plan_study(small("./folder"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(study.jobs.values(), Store(tmp_path / "store"), limits=Limits(workers=0)).complete
