"""What a model may open in a new process, and what becomes of answers that never come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import grb
from grb.evaluator.new_process import NewProcess, Seal
from grb.model.base import EvaluationView
from grb.trainer.checkpoint import save_model

LIBRARY, CODE, DATA = Path("/library"), Path("/home/me"), Path("/home/me/data")
READ, WRITE, NEW = os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL


@pytest.fixture
def seal() -> Seal:
    return Seal(places={LIBRARY: "library", CODE: "code", DATA: "data"})


@pytest.mark.parametrize(
    ("stage", "path", "flags", "allowed"),
    [
        ("answering", "/library/torch/x.json", READ, True),
        ("answering", "/home/me/package/model.py", READ, True),
        ("answering", "/home/me/package/table.npy", READ, False),
        ("answering", "/home/me/data/labels.py", READ, False),
        ("answering", "/tmp/memory", READ, False),
        ("answering", "/library/../tmp/memory", READ, False),
        ("answering", "/home/me/package/model.py", WRITE, False),
        ("answering", "/tmp/new", NEW, False),
        ("answering", os.devnull, WRITE, True),
        ("loading", "/home/me/package/table.npy", READ, True),
        ("loading", "/home/me/data/labels.npz", READ, False),
        ("loading", "/tmp/memory", READ, False),
        ("loading", "/tmp/memory", os.O_RDWR, False),
        ("loading", "/tmp/cache", WRITE, True),
        ("loading", "/tmp/new", NEW, True),
        ("", "/tmp/memory", READ, True),
    ],
)
def test_only_what_belongs_to_the_code_is_opened(seal: Seal, stage: str, path: str, flags: int, allowed: bool) -> None:
    with seal.during(stage):
        if allowed:
            seal("open", (path, None, flags))
        else:
            with pytest.raises(PermissionError, match="may not use"):
                seal("open", (path, None, flags))
    assert seal.denied == ("" if allowed else path)


@pytest.mark.parametrize("event", ["socket.connect", "os.fork", "subprocess.Popen", "mmap.__new__"])
def test_connections_and_processes_are_denied_while_it_is_asked(seal: Seal, event: str) -> None:
    seal(event, ())
    with seal.during("answering"), pytest.raises(PermissionError):
        seal(event, ())
    assert seal.denied == event


def test_the_first_thing_that_was_wanted_is_told(seal: Seal) -> None:
    for path in ("/tmp/first", b"/tmp/second"):
        with seal.during("answering"), pytest.raises(PermissionError):
            seal("open", (path, "r", READ))
    assert seal.denied == "/tmp/first"
    with seal.during("answering"):
        seal("open", (3, "r", READ))  # a file that is open already


@pytest.fixture
def process() -> Iterator[NewProcess]:
    made = NewProcess()
    yield made
    made.close()


def test_a_server_that_was_killed_is_started_again(process: NewProcess, tmp_path: Path) -> None:
    dataset = grb.load_dataset("synth-tiny")
    weights = save_model(grb.train("mlp", dataset, epochs=1), tmp_path / "weights.safetensors")
    view = EvaluationView(torch.zeros(dataset.num_nodes, dtype=torch.bool), torch.arange(dataset.num_nodes))
    assert process.ask(weights, None, dataset.graph, view).logits is not None
    assert process._server is not None
    process._server.kill()
    lost = process.ask(weights, None, dataset.graph, view)
    assert lost.logits is not None or "could not be started" in lost.error
    assert process.ask(weights, None, dataset.graph, view).logits is not None


def test_a_model_that_cannot_be_loaded_is_an_error_and_no_answer(process: NewProcess, tmp_path: Path) -> None:
    dataset = grb.load_dataset("synth-tiny")
    (tmp_path / "weights.safetensors").write_bytes(b"none")
    view = EvaluationView(torch.zeros(dataset.num_nodes, dtype=torch.bool), torch.arange(dataset.num_nodes))
    found = process.ask(tmp_path / "weights.safetensors", None, dataset.graph, view)
    assert found.logits is None and "DataError" in found.error and found.opened == ""
