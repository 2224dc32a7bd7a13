"""Scripts in THUDM/grb's spelling, one per area: every documented call runs, or is refused with the new spelling."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from docs.tools import compat
from docs.tools.compat import AREAS, Outcome

pytest.importorskip("optuna", reason="needs optuna: pip install optuna")
REFUSED = {"adversarial_training": 1, "datasets": 3, "evaluation": 2, "graph_classification": 1, "injection": 3}
REFUSED |= {"modification": 1, "training": 5, "automl": 0, "visualisation": 0}


@cache
def outcomes(area: str) -> tuple[Outcome, ...]:
    return tuple(compat.run(area))


@pytest.mark.parametrize("area", AREAS)
def test_every_call_of_an_area_runs_or_is_refused_on_purpose(area: str) -> None:
    found = outcomes(area)
    for outcome in found:
        if outcome.error is not None:
            raise AssertionError(f"{outcome.cell.title} breaks") from outcome.error
    assert sum(outcome.status.startswith("refused") for outcome in found) == REFUSED[area]
    # what is refused is the last thing that a script tries, so that nothing else depends on it
    assert [each.status.startswith("refused") for each in found] == sorted(
        each.status.startswith("refused") for each in found
    )


def test_the_page_shows_what_became_of_every_call() -> None:
    made = compat.table({area: list(outcomes(area)) for area in AREAS})
    text = compat.PAGE.read_text(encoding="utf-8")
    assert text == compat.renewed(text, made), "python docs/tools/compat.py renews it"


def test_the_guide_shows_every_name_that_the_command_knows() -> None:
    text = compat.GUIDE.read_text(encoding="utf-8")
    assert text == compat.renewed(text, compat.guide()), "python docs/tools/compat.py renews it"


def calls() -> dict[str, set[str]]:
    """Keywords that scripts give, by the last part of what is called."""
    found: dict[str, set[str]] = {}
    for area in AREAS:
        for node in ast.walk(ast.parse((compat.SCRIPTS / f"{area}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                found.setdefault(name, set()).update(each.arg for each in node.keywords if each.arg)
    return found


def test_scripts_give_every_argument_of_the_original_by_its_name() -> None:
    """Of every class that takes THUDM/grb's arguments; ``sizes`` stands for the first three of models."""
    from grb.compat.calls import SIGNATURES

    given = calls()
    sizes = {"in_features", "out_features", "hidden_features"}
    for path, signature in SIGNATURES.items():
        name = path.rpartition(".")[2]
        if name == "DefenseEvaluator":  # it was never finished there
            continue
        used = given["RAND" if name == "RND" else name] | sizes
        assert set(signature.order.split()) <= used, (path, set(signature.order.split()) - used)


def test_titles_name_what_cells_call() -> None:
    for area in AREAS:
        for cell in compat.cells(area):
            called = set(re.findall(r"(?<![\w<])([A-Za-z_]\w*)\(", " ".join(re.findall(r"`([^`]*)`", cell.title))))
            text = cell.code + cell.new
            assert {name for name in called if name not in text} <= {"load", "load_state_dict"}, (area, cell.title)
