"""Studies of graphs: folds as trainings, rows like any other, the same result again."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grb.dataset import load_dataset
from grb.errors import DataError
from grb.evaluator.board import CLEAN, Board
from grb.evaluator.measurement import Measurement
from grb.graph import GraphEdit
from grb.pipeline import Recipe, Store, boards, plan_study, read_recipe
from grb.pipeline.job import DataRef, Job
from grb.pipeline.rerun import rerun
from grb.pipeline.spec import Spec
from grb.pipeline.study import Study
from grb.pipeline.worker import Worker
from grb.threat import Injection
from helpers import find_dataset
from pipeline.parts import board_of, planned

SMALL = {
    "dataset": "synth-graphs",
    "defenses": (Spec("gin"),),
    "modes": ("full",),
    "repeats": 1,
    "victims": 2,
    "training": {"epochs": 4},
}
MODIFICATION = Recipe(
    "graphs", scenario="modification", attacks=(Spec("fga"), Spec("dice")), white_box=(Spec("fga"),), **SMALL
)
INJECTION = Recipe(
    "graphs", scenario="injection", attacks=(Spec("pgd"),), iterations=2, **{**SMALL, "defenses": (), "victims": 1}
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Store]:
    store = Store(tmp_path_factory.mktemp("store"))
    worker = Worker(store)
    study = plan_study(MODIFICATION)
    for job in study.jobs.values():
        worker.do(job)
    return study, store


@pytest.fixture(scope="module")
def made(done: tuple[Study, Store]) -> Board:
    return board_of(*done)


def test_a_board_has_a_row_for_every_model_and_a_value_for_every_fold(made: Board) -> None:
    assert made.dataset == "synth-graphs" and made.scenario == "modification" and made.difficulties == ("full",)
    assert set(made.defenses) == {"gin-pool", "gcn-pool", "mlp-pool"}
    assert set(made.attacks) == {"fga", "dice", CLEAN} and made.white_box == ("fga",)
    for cell in made.cells:
        assert len(cell.values) == 2 and cell.score.low is not None
        assert [metadata["victim_seed"] for metadata in cell.metadata] == [0, 1]


def test_victims_meet_the_attacks_on_the_test_graphs_of_their_own_fold(done: tuple[Study, Store]) -> None:
    study, store = done
    dataset = load_dataset("synth-graphs")
    for place in planned(study):
        job = study.jobs[place.score]
        assert job.data.split == place.victim
        inputs = [study.jobs[key] for key in job.needs]
        assert {each.data.split for each in inputs} == {place.victim}
        if place.knowledge != "none":
            edit = GraphEdit.load(store.find(store.read(job.data.edits[-1]), "edit"))
            graph = dataset.graph
            touched = graph.owner[torch.cat([edit.add.flatten(), edit.drop.flatten()])].unique()
            assert set(touched.tolist()) <= set(dataset.with_split(place.victim).test_ids("full").tolist())


def test_scores_are_those_of_python(done: tuple[Study, Store]) -> None:
    import grb

    study, store = done
    place = next(
        each for each in planned(study) if each.attack == "fga" and each.victim == 1 and each.knowledge == "white-box"
    )
    job = study.jobs[place.score]
    worker = Worker(store)
    dataset = load_dataset("synth-graphs").with_split(1)
    model, edit = worker.model(job.inputs["model"]), worker._edit(job.data.edits[-1])
    measured = Measurement.from_dict(store.read(job.key).measurement)
    assert measured.dataset.split == 1 and measured.dataset.task == "graph"
    scores = {name: outcome.values["accuracy"] for name, outcome in measured.outcomes.items()}
    assert scores == dict(grb.evaluate(model, dataset, edit))
    again = grb.run_attack("fga", model, dataset, seed=study.jobs[job.data.edits[-1]].seed)
    assert torch.equal(again.edit.add, edit.add) and torch.equal(again.edit.drop, edit.drop)


def test_records_come_out_the_same_again(done: tuple[Study, Store]) -> None:
    study, store = done
    scores = [place.score for place in planned(study) if place.victim == 1 and place.attack != CLEAN][:2]
    found = rerun(store, scores)
    assert len(found) >= 4 and all(each.equal for each in found)


def test_a_store_has_the_board_without_the_recipe(done: tuple[Study, Store], made: Board) -> None:
    _, store = done
    (shown,) = boards(store)
    assert len(shown.cells) == 12 and {cell.values for cell in shown.cells} == {cell.values for cell in made.cells}


def test_a_split_is_part_of_a_key_and_none_leaves_keys_as_they_were() -> None:
    plain, first, second = (Job("score", Spec("score"), DataRef("d", "f", split=split)) for split in (None, 0, 1))
    assert len({plain.key, first.key, second.key}) == 3 and "split" not in plain.to_dict()["data"]
    for job in (plain, first, second):
        assert Job.from_dict(job.to_dict()) == job
    assert first.data.with_edit("key").split == 0 and "split 0" in first.label


def test_an_injection_joins_every_test_graph(tmp_path) -> None:
    store = Store(tmp_path)
    study = plan_study(INJECTION)
    worker = Worker(store)
    for job in study.jobs.values():
        worker.do(job)
    (attack,) = (job for job in study.jobs.values() if job.kind == "attack")
    used = store.read(attack.key).result["budget"]
    assert used["graphs"] == used["nodes"] == len(load_dataset("synth-graphs").test_ids("full"))
    assert used["most_edges_per_node"] == Injection(1, 3, (0, 1)).edges_per_node


def test_what_a_study_of_graphs_cannot_do_is_refused() -> None:
    with pytest.raises(DataError, match="grb taxonomy run"):
        plan_study(replace(MODIFICATION, scenario="corruption", attacks=(Spec("noedges"),), white_box=()))
    with pytest.raises(DataError, match=r"leave '\+at' out"):
        plan_study(replace(MODIFICATION, defenses=(Spec("gin+at"),)))


@pytest.mark.parametrize("dataset", ["mutag", "proteins"])
@pytest.mark.parametrize("scenario", ["modification", "injection"])
def test_packaged_recipes_have_ten_folds(dataset: str, scenario: str) -> None:
    recipe = read_recipe(f"{dataset}-{scenario}")
    assert recipe.victims == 10 and recipe.modes == ("full",) and recipe.scenario == scenario
    assert {spec.name for spec in recipe.defenses} == {"gin", "gcn"}


@pytest.mark.skipif(
    find_dataset("TUDataset/MUTAG") is None, reason="needs MUTAG: no root of GRB_DATA holds TUDataset/MUTAG"
)
def test_folds_of_mutag_are_planned() -> None:
    study = plan_study(read_recipe("mutag-modification").quickly())
    assert {job.data.split for job in study.jobs.values()} == {0, 1}
    assert load_dataset("mutag").num_items == 188


def test_the_synthetic_recipe_is_planned() -> None:
    assert len(plan_study(read_recipe("synth-graphs")).jobs) > 50


def test_submissions_are_for_nodes(tmp_path) -> None:
    from grb.pipeline.card import Card
    from grb.pipeline.submission import check

    path = GraphEdit(n=load_dataset("synth-graphs").num_nodes).save(tmp_path / "edit.npz")
    with pytest.raises(DataError, match="submissions are for datasets of nodes"):
        check(path, Card("mine", "attack", "synth-graphs"), load_dataset("synth-graphs"), Injection(1, 1, (0, 1)))
