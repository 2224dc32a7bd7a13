"""``module:Class`` on the command line is found in the directory in which the command runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Grb

CODE = '''
import grb
from grb.model.torch import GCN


class Smaller(GCN):
    """A GCN with features of half the size."""

    name = "{module}:Smaller"

    def prepare(self, adj):
        return super().prepare(adj)


def data():
    return grb.load_dataset("synth-tiny")


def rate(logits, decisions, labels):
    return float((decisions == labels).float().mean())
'''
LINES = {
    "train": ("train", "{module}:Smaller", "-d", "synth-tiny", "--param", "epochs=2"),
    "train-composed": ("train", "{module}:Smaller+ln", "-d", "synth-tiny", "--param", "epochs=2"),
    "certify": ("certify", "gcn+known", "--dataset", "{module}:data"),
    "data": ("data", "check", "{module}:data"),
}


@pytest.mark.parametrize("case", LINES)
def test_every_verb_finds_code_in_this_directory(
    case: str, grb: Grb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"code_here_{case.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(CODE.format(module=module), encoding="utf-8")
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if path])
    monkeypatch.chdir(tmp_path)
    done = grb(*(word.format(module=module) for word in LINES[case]))
    assert done.exit_code == 0, done.stderr


def test_code_that_is_not_there_is_refused_with_where_to_run(
    grb: Grb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = grb("train", "no_such_module_here:Mine", "-d", "synth-tiny")
    assert done.exit_code == 2 and "run grb in its folder" in done.stderr


def test_a_saved_model_of_ones_own_class_says_how_it_is_loaded(
    grb: Grb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import grb as library

    (tmp_path / "code_here_saved.py").write_text(CODE.format(module="code_here_saved"), encoding="utf-8")
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if path])
    monkeypatch.chdir(tmp_path)
    done = grb("train", "code_here_saved:Smaller", "-d", "synth-tiny", "--param", "epochs=2", "-o", "m.safetensors")
    assert done.exit_code == 0, done.stderr
    refused = grb("eval", "m.safetensors")
    assert refused.exit_code == 2 and "grb.load_model(file, trusted='code_here_saved:Smaller')" in refused.stderr
    assert type(library.load_model("m.safetensors", trusted="code_here_saved:Smaller")).__name__ == "Smaller"
