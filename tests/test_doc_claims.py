"""Names and arguments that pages speak of exist: calls, dotted names and ``argument=value`` between backticks are looked up."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import re
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import grb
import grb.evaluator.metric
import grb.pipeline
import grb.pipeline.card
import grb.pipeline.submission
from grb import attack, catalogue, perturb
from grb.attack import injection, modification
from grb.automl import AutoTrainer, tune
from grb.errors import UnknownName
from grb.threat import Injection, Modification
from grb.trainer import Trainer, fit

ROOT = Path(__file__).parent.parent
PAGES = ["docs/differences.md", "docs/tuning.md", "docs/submissions.md", "docs/howto/defense.md", "docs/compat.md"]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
KNOWN: dict[str, Any] = {
    **{name: getattr(home, name) for home in (injection, modification, perturb, attack) for name in home.__all__},
    **{name: getattr(grb, name) for name in ("Dataset", "Graph", "GraphEdit")},
    "Injection": Injection,
    "Modification": Modification,
    "Trainer": Trainer,
    "AutoTrainer": AutoTrainer,
    "fit": fit,
    "tune": tune,
    "torch": __import__("torch"),
    "grb": grb,
    "check": grb.pipeline.submission.check,
}
# objects that pages give a name to
VALUES = {"dataset": grb.Dataset, "model": None, "attack": injection.FGSM, "edit": grb.GraphEdit}


def spans(page: str) -> list[str]:
    """What stands between backticks, outside blocks and outside the table that docs/tools/compat.py makes and runs."""
    text = FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))
    text = re.sub(r"<!-- made by .*?<!-- end -->", "", text, flags=re.DOTALL)
    return [" ".join(each.split()) for each in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]


@cache
def all_arguments() -> set[str]:
    """Arguments of everything in the catalogue and of the functions that pages speak of."""
    made = [
        catalogue.resolve(kind, name)
        for kind in ("attack", "model", "perturbation")
        for name in catalogue.entries(kind)
    ]
    made += [value for value in KNOWN.values() if callable(value)] + [
        grb.train,
        grb.run_attack,
        Trainer.train,
        grb.Dataset.from_csv,
    ]
    found: set[str] = {
        "n_epoch",
        "epsilon",
        "iterations",
        "warm_up",
        "every",
        "threat",
        "start",
        "attack",
        "batch_norm",
    }
    found |= {"activation", "adj_norm_func", "feat_dropout", "edge_drop"}  # grb.compat.models, run by tests/compat
    for each in made:
        try:
            found |= set(inspect.signature(each).parameters)
        except (TypeError, ValueError):
            continue
    return found


def resolve(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return KNOWN.get(node.id, VALUES.get(node.id))
    if isinstance(node, ast.Attribute):
        dotted = ast.unparse(node)
        if dotted.startswith("grb."):
            home, _, last = dotted.rpartition(".")
            try:
                return getattr(importlib.import_module(home), last)
            except ModuleNotFoundError:
                return getattr(resolve(node.value), last)
            except AttributeError:
                return importlib.import_module(dotted)
        inner = resolve(node.value)
        return None if inner is None else getattr(inner, node.attr)
    return None


@pytest.mark.parametrize("page", PAGES)
def test_calls_and_arguments_that_a_page_names_exist(page: str) -> None:
    looked_up = 0
    for span in spans(page):
        if re.fullmatch(r"[a-z_]+=[^=]*", span):
            assert span.partition("=")[0] in all_arguments(), f"{page}: no argument {span}"
            looked_up += 1
            continue
        try:
            tree = ast.parse(span, mode="eval").body
        except SyntaxError:
            continue
        called = tree.func if isinstance(tree, ast.Call) else tree
        if not isinstance(called, ast.Attribute) and not isinstance(tree, ast.Call):
            continue
        root = ast.unparse(called).partition(".")[0]
        found = (
            None if root in VALUES and not isinstance(tree, ast.Call) else resolve(called)
        )  # may be a field of a record
        if found is None:
            continue
        looked_up += 1
        if isinstance(tree, ast.Call) and callable(found):
            check(tree, found, f"{page}: {span}")
    assert looked_up > 0


def check(tree: ast.Call, found: Any, where: str) -> None:
    """Every keyword is one that the callable takes, or that the method it is asked for takes."""
    try:
        taken = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return
    loose = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values())
    names = set(taken) | (all_arguments() if loose or found in (Trainer, injection.FGSM.attack) else set())
    wrong = [each.arg for each in tree.keywords if each.arg and each.arg not in names]
    assert not wrong, f"{where}: no argument {wrong[0]}"
    for value in tree.args[:1]:
        if isinstance(value, ast.Constant) and found in (grb.train, grb.run_attack):
            kind = "model" if found is grb.train else "attack"
            try:
                catalogue.canonical(kind, str(value.value).partition("+")[0])
            except UnknownName as error:
                raise AssertionError(where) from error


def test_what_how_to_write_a_defense_says_about_fit_and_train() -> None:
    assert "loss" in inspect.signature(fit).parameters and "objective" not in inspect.signature(fit).parameters


def test_defaults_that_differences_names_are_the_defaults() -> None:
    defaults = {name: each.default for name, each in inspect.signature(grb.Dataset).parameters.items()}
    assert defaults["mode"] == "full" and defaults["feat_norm"] == "arctan"
    assert inspect.signature(Trainer.train).parameters["train_mode"].default == "inductive"
    assert modification.FLIP().mode == "ascend" and injection.SPEIT().preset == "grb"
    assert modification.Metattack(order="first")
    config, usual = injection.TDGIA(preset="grb-config"), injection.TDGIA()
    assert (config.inject_mode, config.sequential_step) == ("random", 1.0) and usual.inject_mode == "tdgia"


# attacks that version 0.1 had, and those of them whose numbers moved since
INJECTIONS_OF_0_1 = ("rnd", "fgsm", "pgd", "speit", "tdgia")
FLIPS_OF_0_1 = ("rnd-edges", "dice", "fga", "flip", "nea", "stack", "pgd-topology", "pr-bcd", "gr-bcd", "metattack")
OF_0_1 = (*INJECTIONS_OF_0_1, *FLIPS_OF_0_1, "pgd-features")


def test_versions_that_the_upgrade_guide_names_are_those_of_the_methods() -> None:
    text = (ROOT / "docs/upgrade.md").read_text(encoding="utf-8").partition("## Methods with a new version")[2]
    said = {
        name: int(number)
        for names, number in re.findall(r"((?:`[\w-]+`(?: and )?)+) (?:is|are) version (\d)", text)
        for name in re.findall(r"[\w-]+", names.replace(" and ", " "))
    }
    first = {"metattack": 2}  # all others began with 1
    now = {name: catalogue.resolve("attack", name).version for name in OF_0_1}
    assert said == {name: version for name, version in now.items() if version != first.get(name, 1)}


def test_the_changelog_says_nothing_twice() -> None:
    entries = re.findall(r"^- (.*(?:\n  .*)*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    begun = [entry[:45] for entry in entries]
    assert len(entries) > 50
    assert [entry for entry in begun if begun.count(entry) > 1] == []


# what stands between backticks like a call and is none
NO_CALLS = {"pgd (white-box)", "run()"}


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What calls of the pages speak of, with the arguments that the pages leave out."""
    monkeypatch.chdir(tmp_path)
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, epochs=1)
    torch = KNOWN["torch"]
    torch.save(model.state_dict(), "weights.pt")
    grb.save_model(model, "model.pt")
    limits = {"n_inject_max": 2, "n_edge_max": 2, "feat_lim_min": -1, "feat_lim_max": 1}
    attack = injection.FGSM(epsilon=0.1, n_epoch=1, **limits)

    def trainer(**options: Any) -> Trainer:
        return Trainer(dataset, torch.optim.Adam(model.parameters()), **options)

    trainer.train = lambda **options: trainer().train(model, 1, **options)  # type: ignore[attr-defined]
    arrays = (model, dataset.adj, dataset.features, dataset.test_mask)
    return {
        **KNOWN,
        "Dataset": partial(grb.Dataset, "synth-tiny"),
        "Trainer": trainer,
        "attack": SimpleNamespace(attack=partial(attack.attack, *arrays)),
        "dataset": dataset,
        "model": model,
        "mode": "full",
        "path": "weights.pt",
        "left out": {"attack": attack, "threat": Injection(2, 2, (-1.0, 1.0))},
    }


def completed(tree: ast.Call, given: dict[str, Any]) -> ast.Expression:
    """A call without its dots: what they stand for is among the names, and a training takes one epoch."""
    tree.args = [each for each in tree.args if not (isinstance(each, ast.Constant) and each.value is ...)]
    for each in tree.keywords:
        if isinstance(each.value, ast.Constant) and each.value.value is ...:
            assert each.arg in given["left out"], ast.unparse(tree)
            given[f"own_{each.arg}"] = given["left out"][each.arg]
            each.value = ast.Name(f"own_{each.arg}", ast.Load())
    if ast.unparse(tree.func) == "grb.train":
        tree.keywords.append(ast.keyword("epochs", ast.Constant(1)))
    return ast.fix_missing_locations(ast.Expression(tree))


@pytest.mark.parametrize("page", PAGES)
def test_calls_that_a_page_names_run(page: str, names: dict[str, Any]) -> None:
    for span in dict.fromkeys(spans(page)):
        try:
            tree = ast.parse(span, mode="eval").body
        except SyntaxError:
            continue
        if not isinstance(tree, ast.Call) or span in NO_CALLS:
            continue
        code = compile(completed(tree, names), f"{page}: {span}", "eval")
        if span.startswith("torch.load"):  # the page says that it does not work
            with pytest.raises(pickle.UnpicklingError):
                eval(code, names)
            continue
        assert eval(code, names) is not None
