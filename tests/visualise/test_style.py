from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

from grb.attack import Step
from grb.errors import DataError
from grb.visualise import curve, draw_curve, save
from grb.visualise.style import class_look

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", STARTS)
def test_the_same_figure_is_the_same_file(tmp_path, kind):
    files = [
        save(draw_curve(curve([Step(0.5, 1.0), Step(1.0, 0.5)])), tmp_path / f"{name}.{kind}")
        for name in ("one", "two")
    ]
    first, second = (file.read_bytes() for file in files)
    assert first.startswith(STARTS[kind])
    assert first == second


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"ends with '.bmp', but .png, .svg or .pdf is needed"):
        save(draw_curve(curve([Step(0.5, 1.0)])), tmp_path / "figure.bmp")
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_settings_come_back(tmp_path):
    before = dict(matplotlib.rcParams)
    save(draw_curve(curve([Step(0.5, 1.0)])), tmp_path / "figure.svg")
    assert dict(matplotlib.rcParams) == before


def test_56_classes_look_different():
    assert len({class_look(label) for label in range(56)}) == 56


def test_drawing_needs_no_pyplot_and_importing_needs_no_matplotlib():
    code = """
import sys, grb.visualise
from grb.attack import Step
print("matplotlib" in sys.modules, end=" ")
grb.visualise.draw_curve(grb.visualise.curve([Step(0.5, 1.0)]))
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_the_example_of_the_docs_runs(tmp_path, monkeypatch):
    page = Path(__file__).resolve().parents[2] / "docs" / "figures.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.pdf", "neighbourhood.svg"]
