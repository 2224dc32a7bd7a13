"""The edge rule that the documentation shows is the one of the example, and works."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest
import torch

import grb
from attack.contexts import context_of, degrees_of, random_graph, target_state_of, victim
from grb.attack import run_attack
from grb.attack.injection import FGSM

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_edge_rule", ROOT / "examples" / "own_edge_rule.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_edge_rule_of_eight_lines(example: ModuleType) -> None:
    source = inspect.getsource(example.most_confident).strip()
    assert len(source.splitlines()) <= 8
    assert source in (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")


def test_the_rule_does_what_it_says(example: ModuleType) -> None:
    site = target_state_of([10, 11, 12], [1, 1, 1], [0, 0, 0], [0.6, 0.9, 0.7], 2)
    pairs = example.most_confident(site, 2, torch.Generator())
    assert pairs.tolist() == [[100, 100, 101, 101], [11, 12, 10, 11]]
    context = context_of(random_graph(20), range(9), victim("gcn", 3), nodes=4, edges=3)
    edit = run_attack(FGSM(n_epoch=2, edges=example.most_confident), context, seed=0).edit
    assert degrees_of(edit) == [3] * 4


def test_the_example_runs(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["no", "random_edges", "defective_edges", "most_confident"]
    clean, *attacked = [float(line.split("full ")[1]) for line in lines]
    assert max(attacked) < clean


def test_the_composition_in_the_documentation_runs() -> None:
    """The block with `my_attack`, executed as it stands there."""
    text = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    block = next(part for part in text.split("```python\n") if "def my_attack" in part).partition("```")[0]
    dataset = grb.load_dataset("synth-tiny")
    names = {"grb": grb, "dataset": dataset, "model": grb.train("gcn", dataset, epochs=5)}
    exec(compile(block.replace("steps=200", "steps=2"), "docs/attacks.md", "exec"), names)
    assert names["result"].budget["nodes"] == 9  # type: ignore[attr-defined]
