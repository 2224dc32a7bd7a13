"""What a model may open in a new process, and what becomes of answers that never come."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import grb
from grb.evaluator.new_process import NewProcess
from grb.evaluator.seal import Seal
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
    seal.stage = stage
    if allowed:
        seal("open", (path, None, flags))
    else:
        with pytest.raises(PermissionError, match="may not use"):
            seal("open", (path, None, flags))
    assert seal.denied == ("" if allowed else path)


@pytest.mark.parametrize("event", ["socket.connect", "os.fork", "subprocess.Popen", "mmap.__new__"])
def test_connections_and_processes_are_denied_while_it_is_asked(seal: Seal, event: str) -> None:
    seal(event, ())
    seal.stage = "answering"
    with pytest.raises(PermissionError):
        seal(event, ())
    assert seal.denied == event


def test_the_first_thing_that_was_wanted_is_told(seal: Seal) -> None:
    seal.stage = "answering"
    for path in ("/tmp/first", b"/tmp/second"):
        with pytest.raises(PermissionError):
            seal("open", (path, "r", READ))
    assert seal.denied == "/tmp/first"
    seal("open", (3, "r", READ))  # a file that is open already


def test_a_file_that_changed_since_the_run_began_is_not_read(tmp_path: Path) -> None:
    """Neither beside the code nor among the libraries: it may be what the model said before."""
    old, new, cached = tmp_path / "old.py", tmp_path / "new.py", tmp_path / "new.pyc"
    old.write_text("")
    since = os.lstat(old).st_ctime_ns
    while os.lstat(tmp_path / "old.py").st_ctime_ns == since:  # until the clock of the disk ticks
        old.chmod(0o644)
    since = os.lstat(old).st_ctime_ns
    for kind in ("code", "library"):
        seal = Seal(stage="loading", since=since, places={tmp_path: kind})
        while not new.exists() or os.lstat(new).st_ctime_ns <= since:
            new.write_text("memory")
            cached.write_text("memory")
        os.utime(new, (0, 0))  # the time of its content says nothing
        seal("open", (str(old), "r", READ))
        with pytest.raises(PermissionError):
            seal("open", (str(cached), "rb", READ))
        assert seal.denied == ""  # imports take the source then
        with pytest.raises(PermissionError):
            seal("open", (str(new), "r", READ))
        assert seal.denied == str(new)


def test_what_other_processes_hold_is_not_read(seal: Seal) -> None:
    seal.places[Path("/proc")], seal.stage = "library", "answering"
    for fine in ("/proc/self/status", f"/proc/{os.getpid()}/maps", "/proc/cpuinfo", "/proc/sys/vm/overcommit_memory"):
        seal("open", (fine, "r", READ))
    for other in (f"/proc/{os.getppid()}/environ", "/proc/1/comm", "/proc/locks", "/proc/sysvipc/shm"):
        with pytest.raises(PermissionError):
            seal("open", (other, "r", READ))


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_names_and_links_of_others_are_not_seen(tmp_path: Path) -> None:
    """Which files there are, and where links lead to, is a memory as well as what they hold."""
    code, other = tmp_path / "code", tmp_path / "other"
    code.mkdir()
    other.mkdir()
    (code / "own").symlink_to("memory")
    (code / "module.py").write_text("")
    (other / "link").symlink_to("memory")
    seal = Seal(places={code: "code"})
    stat, readlink = (seal._looking(getattr(os, name)) for name in ("stat", "readlink"))
    assert readlink(other / "link") == "memory"
    seal.stage = "answering"
    assert stat(code / "module.py") and stat(tmp_path) and readlink(code / "own") == "memory"
    for look in (lambda: readlink(other / "link"), lambda: stat(other), lambda: seal("os.listdir", (str(other),))):
        with pytest.raises(FileNotFoundError):
            look()
    assert seal.denied == ""  # libraries look for many things that are not there
    seal.stage, seal.since = "loading", 0
    with pytest.raises(FileNotFoundError):
        readlink(code / "own")
    for event in ("os.mkdir", "os.symlink", "os.remove"):
        seal.stage = "answering"
        with pytest.raises(PermissionError):
            seal(event, ("x",))


def test_only_the_thread_of_grb_is_free(seal: Seal) -> None:
    seal.stage, found = "answering", []

    def other() -> None:
        try:
            seal("open", ("/tmp/memory", "r", READ))
        except PermissionError as error:
            found.append(error)

    with seal.opened():
        seal("open", ("/tmp/memory", "r", READ))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found and seal.holds


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
