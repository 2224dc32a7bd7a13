"""`grb submit`: what others send, from the command line, on a store that is used before and after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import grb as library
from grb.graph import GraphEdit
from grb.pipeline import Limits, Store, plan_study, read_recipe, run
from grb.trainer.checkpoint import save_model
from helpers import needs_pipes, within
from pipeline.parts import TINY, copied

from .conftest import refusal


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "mine.yaml"
    path.write_text(TINY.replace("[easy, full]", "[full]").replace("repeats: 2", "repeats: 1"))
    return path


@pytest.fixture(scope="module")
def filled(mine: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of the recipe; to be read only."""
    store = Store(tmp_path_factory.mktemp("submit") / "store")
    study = plan_study(read_recipe(mine))
    record = study.record({})
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete and record is not None
    store.write(record)
    return store


@pytest.fixture
def place(filled: Store, tmp_path: Path) -> Path:
    return copied(filled, tmp_path / "store").path


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One attack and one defense, each with its card beside it."""
    folder = tmp_path_factory.mktemp("sent")
    dataset = library.load_dataset("synth-tiny")
    model = library.train("gcn", dataset, epochs=3, seed=5)
    found = {
        "attack": library.run_attack("fgsm", model, dataset, iterations=3).edit.save(folder / "edit.npz"),
        "defense": save_model(model, folder / "weights.safetensors"),
    }
    for kind, path in found.items():
        write_card(path, kind)
    return found


def write_card(path: Path, kind: str, *lines: str, name: str = "mine") -> Path:
    text = [f"name: {name}", f"kind: {kind}", "dataset: synth-tiny", *lines]
    card = path.with_suffix(".yaml")
    card.write_text("\n".join(text))
    return card


@needs_pipes
def test_only_regular_files_are_read(grb, sent, tmp_path):
    """One reader after another, so that no command waits for a pipe that nobody writes to."""
    names = ("x.npz", "x.safetensors", "x.yaml", "x.json", "x.zip", "x.csv")
    for name in names:
        os.mkfifo(tmp_path / name)
    edit, weights, text, values, bundle, runs = (tmp_path / name for name in names)
    for command in (
        ("submit", edit, "--check", "--card", sent["attack"].with_suffix(".yaml")),
        ("submit", weights, "--check", "--card", sent["defense"].with_suffix(".yaml")),
        ("submit", edit, "--check", "--card", sent["attack"].with_suffix(".yaml"), "--fix", tmp_path / "fixed.npz"),
        ("submit", sent["attack"], "--check", "--card", text),
        ("submit", sent["attack"], "--check", "--card", "/dev/zero"),
        ("run", text, "--plan"),
        ("leaderboard", values),
        ("leaderboard", values, "--format", "html", "--taxonomy", values),
        ("store", "copy", bundle, tmp_path / "store"),
        ("taxonomy", "analyse", runs),
    ):
        with within(20):
            done = grb(*command)
        assert done.exit_code == 2 and "is a pipe or a device, but a regular file is needed" in refusal(done), command


@pytest.mark.parametrize("kind", ["attack", "defense"])
def test_a_store_with_a_submission_is_planned_and_run_as_before(grb, mine, place, sent, kind):
    for _ in range(2):  # again is no harm
        added = grb("submit", sent[kind], "--recipe", mine, "--store", place, "--workers", "1")
        assert added.exit_code == 0, added.stderr
        assert "mine (submitted)" in added.stdout and "mine (submitted):" in added.stderr
    planned = grb("run", mine, "--plan", "--store", place)
    assert planned.exit_code == 0 and "about 0" in planned.stderr, planned.stderr
    again = grb("run", mine, "--store", place, "--workers", "0")
    assert again.exit_code == 0 and "mine (submitted)" in again.stdout and "0 jobs done" in again.stderr


def test_the_variant_that_was_run_is_found(grb, mine, sent, tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"{mine.read_text()}\nquick: {{training: {{epochs: 1}}}}\n")
    store = Store(tmp_path / "store")
    assert grb("run", recipe, "--quick", "--store", store.path, "--workers", "0").exit_code == 0
    added = grb("submit", sent["attack"], "--recipe", recipe, "--store", store.path, "--workers", "1")
    assert added.exit_code == 0 and "2 jobs done" in added.stderr, added.stderr
    recipe.unlink()  # the store knows it by name
    again = grb("submit", sent["attack"], "--recipe", "mine", "--store", store.path, "--workers", "1")
    assert again.exit_code == 0 and "0 jobs done" in again.stderr, again.stderr


def test_the_board_that_fits_is_found_without_its_recipe(grb, place, sent):
    done = grb("submit", sent["attack"], "--store", place, "--workers", "1")
    assert done.exit_code == 0 and "mine (submitted)" in done.stdout, done.stderr


def test_a_submission_that_no_board_fits_is_refused_and_not_kept(grb, place, tmp_path):
    card = tmp_path / "card.yaml"
    card.write_text("name: mine\nkind: attack\ndataset: synth-tiny\nscenario: modification")
    nothing = GraphEdit(300).save(tmp_path / "edit.npz")
    done = grb("submit", nothing, "--card", card, "--store", place, "--workers", "1")
    assert done.exit_code == 2 and "has no results of modification on 'synth-tiny'" in refusal(done)
    assert "grb run RECIPE" in done.stderr and not list(Store(place).submitted())
    done = grb("submit", nothing, "--card", card, "--store", place, "--recipe", "synth-cora-modification")
    assert done.exit_code == 2 and "does not fit recipe 'synth-cora-modification'" in refusal(done)


def test_a_module_of_ones_own_is_submitted_with_trust_alone(grb, tmp_path, monkeypatch):
    """Exported in a script, sent with a card that names its code, scored beside the card; a recipe takes the file as well."""
    import sys

    import torch

    import grb as library

    (tmp_path / "my_submitted_net.py").write_text(
        "import torch\n\n\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, d, classes):\n"
        "        super().__init__()\n"
        "        self.layer = torch.nn.Linear(d, classes)\n\n"
        "    def forward(self, x, adj):\n"
        "        return self.layer(x + adj @ x)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    import my_submitted_net

    dataset = library.load_dataset("synth-tiny")
    sizes = {"d": dataset.num_features, "classes": dataset.num_classes}
    torch.manual_seed(0)
    file = tmp_path / "net.safetensors"
    library.export_model(my_submitted_net.Net(**sizes), file, dataset, module="my_submitted_net:Net", params=sizes)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(tmp_path)])
    (tmp_path / "net.yaml").write_text(
        "name: my net\nkind: defense\ndataset: synth-tiny\nmodule: my_submitted_net:Net\n", encoding="utf-8"
    )
    (tmp_path / "bare.yaml").write_text(
        "dataset: synth-tiny\nattacks: [rnd]\nmodes: [full]\nrepeats: 1\ntraining: {epochs: 1}\n"
        "defenses: [{module: 'my_submitted_net:Net', weights: net.safetensors}]\n",
        encoding="utf-8",
    )
    store = ("--store", tmp_path / "store")
    done = grb("run", tmp_path / "bare.yaml", *store, "--workers", "1")
    assert done.exit_code == 0, done.stderr
    assert "my_submitted_net:Net" in done.stdout
    refused = grb("submit", file, "--check")
    assert refused.exit_code == 3 and "--trust-code" in refused.stderr
    checked = grb("submit", file, "--check", "--trust-code")
    assert checked.exit_code == 0, checked.stderr
    done = grb("submit", file, *store, "--trust-code", "--workers", "1")
    assert done.exit_code == 0, done.stderr
    assert "my net (submitted)" in done.stdout
    again = grb("run", tmp_path / "bare.yaml", *store, "--workers", "1")
    assert again.exit_code == 0 and "my net (submitted) is left out" in again.stderr
