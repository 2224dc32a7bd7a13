"""Running the command inside the test process, with its streams apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

from grb.cli.app import app

Grb = Callable[..., Result]


@pytest.fixture
def grb(monkeypatch: pytest.MonkeyPatch) -> Grb:
    """``grb("ls", "models")`` runs the command and gives its exit code, stdout and stderr."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("GRB_DEBUG", raising=False)
    runner = CliRunner()
    return lambda *args: runner.invoke(app, [str(arg) for arg in args])


@pytest.fixture
def grb_json(grb: Grb) -> Callable[..., Any]:
    """As ``grb``, with ``--json``; the parsed stdout of a command that must succeed."""

    def run(*args: object) -> Any:
        done = grb(*args, "--json")
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(autouse=True)
def same_number_of_threads() -> Iterator[None]:
    """``--threads`` sets torch's number for the whole process: other tests get theirs back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def refusal(done: Result) -> str:
    """The one sentence of a refused command."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")
