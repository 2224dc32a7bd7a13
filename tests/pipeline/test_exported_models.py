"""Models of others on boards: exported with what they say, made again by code that somebody trusts, refused otherwise."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import grb
from grb.dataset import Dataset
from grb.errors import DataError, IntegrityError
from grb.pipeline import Limits, Store, build_board, plan_study, run
from grb.pipeline.card import Card, card_from
from grb.pipeline.entry import usable
from grb.pipeline.gate import admit
from grb.pipeline.plan import join_submission
from grb.pipeline.rerun import rerun
from grb.pipeline.submission import add, check, record_of
from grb.threat import Injection
from grb.trainer.checkpoint import exported_logits, load_model
from pipeline.parts import BARE, recipe

SOURCE = """
import torch
from torch_geometric.nn import GATConv


class GAT(torch.nn.Module):
    def __init__(self, d, classes):
        super().__init__()
        self.first, self.second = GATConv(d, 4, heads=2), GATConv(8, classes)

    def forward(self, x, edge_index):
        return torch.log_softmax(self.second(self.first(x, edge_index).relu(), edge_index), dim=1)


def make(d, classes):
    return GAT(d, classes)


def scaled(d, classes):
    made = GAT(d, classes)
    made.register_forward_hook(lambda module, args, out: 2 * out)
    return made
"""
CARD = Card("my gat", "defense", "synth-tiny", module="nets_for_boards:make")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("code")
    (folder / "nets_for_boards.py").write_text(SOURCE, encoding="utf-8")
    sys.path.append(str(folder))
    import nets_for_boards

    yield nets_for_boards
    sys.path.remove(str(folder))
    del sys.modules["nets_for_boards"]


@pytest.fixture(scope="module")
def exported(dataset: Dataset, code: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    sizes = {"d": dataset.num_features, "classes": dataset.num_classes}
    place = tmp_path_factory.mktemp("weights") / "my-gat.safetensors"
    return grb.export_model(code.make(**sizes), place, dataset, module="nets_for_boards:make", params=sizes)


def checked(file: Path, dataset: Dataset, card: Card = CARD, **options: Any) -> Any:
    return check(file, card, dataset, Injection.preset("synth-tiny", "full"), **{"trust_code": True, **options})


def test_an_export_holds_what_the_model_says_and_is_made_again_by_its_code(dataset: Dataset, exported: Path) -> None:
    model = load_model(exported, trusted="nets_for_boards:make")
    edges = torch.stack([dataset.graph.adj.pattern.row_ids, dataset.graph.adj.pattern.indices]).long()
    with torch.no_grad():
        said = model.module(dataset.features, edges)  # type: ignore[operator]
    given = exported_logits(exported)
    assert given is not None and torch.allclose(given, said, atol=1e-5)
    with pytest.raises(DataError, match="names code 'nets_for_boards:make'"):
        load_model(exported)


def test_what_its_code_does_not_give_back_is_not_exported(dataset: Dataset, code: Any, tmp_path: Path) -> None:
    sizes = {"d": dataset.num_features, "classes": dataset.num_classes}
    module, file = code.make(**sizes), tmp_path / "x.safetensors"
    with pytest.raises(
        DataError, match="nets_for_boards:scaled does not make this model again: .*logits differ by up to"
    ):
        grb.export_model(module, file, dataset, module="nets_for_boards:scaled", params=sizes)
    with pytest.raises(DataError, match="does not make this model again: .*does not take"):
        grb.export_model(module, file, dataset, module="nets_for_boards:make", params={"width": 3})
    with pytest.raises(DataError, match="package.module:function"):
        grb.export_model(module, file, dataset, module="make")
    assert not file.exists()


def test_without_trust_no_code_is_imported(dataset: Dataset, exported: Path, tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="the card names code 'nets_for_boards:make'.*--trust-code"):
        checked(exported, dataset, trust_code=False)
    with pytest.raises(DataError, match="names code 'nets_for_boards:make' instead"):
        checked(exported, dataset, replace(CARD, module=""))
    with pytest.raises(DataError, match="the card names 'os:getcwd', but .* names 'nets_for_boards:make'"):
        checked(exported, dataset, replace(CARD, module="os:getcwd"))
    plain = grb.save_model(grb.train("gcn", dataset, epochs=1), tmp_path / "gcn.safetensors")
    with pytest.raises(DataError, match="names 'a model of grb'"):
        checked(plain, dataset)


@pytest.mark.parametrize("module", ["make", "a b:c", "os:system('x')", "../x:y", "x:y\n", "é:y"])
def test_cards_name_code_or_nothing(module: str) -> None:
    with pytest.raises(DataError, match="the card's module|only printable ones"):
        card_from({"name": "mine", "kind": "defense", "dataset": "synth-tiny", "module": module})
    with pytest.raises(DataError, match="model of a defense"):
        Card("mine", "attack", "synth-tiny", module="a:b")


def test_other_answers_than_at_the_export_are_refused(dataset: Dataset, exported: Path, code: Any, monkeypatch) -> None:
    monkeypatch.setattr(code, "make", code.scaled)
    with pytest.raises(DataError, match="says something else of 'synth-tiny' than when it was exported"):
        checked(exported, dataset)


@pytest.fixture(scope="module")
def joined(dataset: Dataset, exported: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Any]:
    """A store with a board that the model has joined."""
    store = Store(tmp_path_factory.mktemp("store"))
    made = recipe(BARE, attacks=["rnd"], white_box=["fgsm"], iterations=2)
    assert run(plan_study(made), store, limits=Limits(workers=0)).complete
    entry = checked(exported, dataset)
    study, part = join_submission(store, record_of(entry), made, trust_code=True)
    add(store, entry)
    assert run(part, store, limits=Limits(workers=0)).complete
    return store, study


def test_a_module_of_others_stands_on_a_board(dataset: Dataset, exported: Path, joined: tuple[Store, Any]) -> None:
    store, study = joined
    (board,) = build_board(study, store)
    assert "my gat (submitted)" in board.defenses
    own = [
        record.measurement
        for record in store.records()
        if record.job.kind == "score" and record.measurement["defense"]["method"]["title"] == "my gat (submitted)"
    ]
    assert {each["attack"]["method"]["name"] if each["attack"] else "none" for each in own} == {"none", "rnd", "fgsm"}
    (clean,) = [each for each in own if each["attack"] is None]
    model = load_model(exported, trusted="nets_for_boards:make")
    assert clean["outcomes"]["full"]["values"]["accuracy"] == grb.evaluate(model, dataset)["full"]
    assert store.verify() == []


def test_a_store_with_code_is_used_as_far_as_it_is_trusted(joined: tuple[Store, Any], tmp_path: Path) -> None:
    store, _ = joined
    kept, left_out = usable(store, trust_code=False)
    assert kept == [] and "my gat (submitted) is left out" in left_out[0] and "--trust-code" in left_out[0]
    assert len(usable(store, trust_code=True)[0]) == 1
    (entry,) = store.submitted()
    with pytest.raises(IntegrityError, match="names code 'nets_for_boards:make'"):
        admit(entry)
    score = next(record.key for record in store.records() if entry.key in record.job.inputs.values())
    with pytest.raises(IntegrityError, match="names code 'nets_for_boards:make'"):
        rerun(store, [score])
    assert all(not each.difference for each in rerun(store, [score], trust_code=True))


def test_code_that_changed_after_the_submission_is_noticed(joined: tuple[Store, Any], code: Any, monkeypatch) -> None:
    from grb.pipeline.worker import Worker

    store, _ = joined
    (entry,) = store.submitted()
    Worker(store).model(entry.key)
    monkeypatch.setattr(code, "make", code.scaled)
    with pytest.raises(DataError, match="says something else"):
        Worker(store).model(entry.key)


def test_recipes_take_weights_that_were_trained_outside(dataset: Dataset, exported: Path, tmp_path: Path) -> None:
    entry = {"module": "nets_for_boards:make", "weights": str(exported)}
    made = recipe(BARE, defenses=[entry], attacks=["rnd"], victims=2)
    store = Store(tmp_path / "store")
    study = plan_study(made)
    assert run(study, store, limits=Limits(workers=0)).complete and store.verify() == []
    fits = [record for record in store.records() if record.job.kind == "fit" and "nets" in record.job.spec.name]
    assert len(fits) == 1  # two trainings are asked for, but this one is what it is
    with store.checked(fits[0], "weights") as path:
        kept, given = load_file(path), load_file(exported)
    assert all(torch.equal(given[name], value) for name, value in kept.items())
    assert "nets_for_boards:make(weights=my-gat.safetensors)" in build_board(study, store)[0].defenses
    assert run(plan_study(made), store, limits=Limits(workers=0)).done == 0
    with pytest.raises(IntegrityError, match="names code"):
        admit(fits[0])


def test_weights_of_recipes_are_checked_when_it_is_planned_and_run(
    dataset: Dataset, exported: Path, code: Any, tmp_path: Path, monkeypatch
) -> None:
    def planned(**entry: Any) -> Any:
        return plan_study(recipe(BARE, defenses=[entry], attacks=["rnd"]))

    with pytest.raises(DataError, match="cannot read .*none.safetensors"):
        planned(module="nets_for_boards:make", weights=str(tmp_path / "none.safetensors"))
    for wrong in ({"name": "gcn"}, {"name": "nets_for_boards:make+ln"}, {"name": "nets_for_boards:make", "hidden": 3}):
        with pytest.raises(DataError, match="has weights, which are for package.module:function alone"):
            planned(**wrong, weights=str(exported))
    study = planned(module="nets_for_boards:make", weights=str(exported))
    monkeypatch.setattr(code, "make", code.scaled)
    outcome = run(study, Store(tmp_path / "store"), limits=Limits(workers=0))
    assert not outcome.complete and "says something else" in json.dumps([str(each) for each in outcome.failed.values()])


class Unwrapped(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return a


def test_what_cannot_be_exported_is_one_sentence(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give style="):
        grb.export_model(Unwrapped(), tmp_path / "x.safetensors", dataset, module="a:b")
    with pytest.raises(DataError, match="a trained torch.nn.Module is needed"):
        grb.export_model(lambda x: x, tmp_path / "x.safetensors", dataset, module="a:b")  # type: ignore[arg-type]
