"""A model of others asked in a new process, which was asked nothing before and holds neither dataset nor labels.

Fresh copies of a model share the modules of their process, so a memory outside the model outlives them: a dictionary of a
module by the features of nodes, a counter of calls, whatever the frames of the caller hold. A new process has none of that.
It gets weights and one graph, and may open no file but code and no connection while it answers (:mod:`grb.evaluator.seal`).

A server without any code of others is started once and forks a process for every question, which need not import torch.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import weakref
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from grb.evaluator.seal import Seal
from grb.graph import Graph
from grb.model.base import EvaluationView, predict
from grb.trainer.checkpoint import load_model

_START = "from grb.evaluator.new_process import serve; serve()"
MAX_REASON = 120


@dataclass(frozen=True, eq=False)
class Answer:
    """What a model said in a new process.

    Args:
        logits: One row per item; None if there is no answer.
        opened: The first file or connection that it was denied; empty if it wanted none.
        error: Why there is no answer; empty if there is one.
    """

    logits: Tensor | None
    opened: str = ""
    error: str = ""


class NewProcess:
    """Asks models in new processes; the environment is that of the moment when this is made, before any model was run."""

    def __init__(self) -> None:
        self._since = time.time_ns()
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._folder = os.getcwd()
        self._server: subprocess.Popen[bytes] | None = None

    def ask(self, weights: Path, trusted: str | None, graph: Graph, view: EvaluationView) -> Answer:
        """Ask a stored model about a graph.

        Args:
            weights: File of the model.
            trusted: The code that the file may name (:func:`grb.trainer.checkpoint.load_model`).
            graph: The graph; its labels are not passed on.
            view: What the model may know of it.
        """
        bare = Graph(graph.adj, graph.x, None, graph.ptr).to("cpu")
        question = (str(Path(weights).resolve()), trusted, bare, view, torch.get_num_threads(), self._since)
        with tempfile.TemporaryDirectory(prefix="grb-ask-") as folder:
            (Path(folder) / "question").write_bytes(pickle.dumps(question))
            try:
                server = self._started()
                assert server.stdin is not None and server.stdout is not None
                server.stdin.write(f"{folder}\n".encode())
                server.stdin.flush()
                ended = server.stdout.readline()
            except OSError:
                ended = b""
            if not ended:
                self.close()
                return Answer(None, error="the new process could not be started")
            return _read(Path(folder))

    def _started(self) -> subprocess.Popen[bytes]:
        if self._server is None or self._server.poll() is not None:
            self._server = subprocess.Popen(
                [sys.executable, "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environment,
                cwd=self._folder,
            )
            weakref.finalize(self, end_process, self._server)
        return self._server

    def close(self) -> None:
        """End the server; the next question starts another."""
        if self._server is not None:
            end_process(self._server)
            self._server = None


def end_process(server: subprocess.Popen[bytes]) -> None:
    """End a process that was started with pipes, and close them."""
    server.kill()
    server.wait()
    for stream in (server.stdin, server.stdout):
        if stream is not None:
            stream.close()


def _read(folder: Path) -> Answer:
    """The answer in a folder; whatever a model's code may have left there instead is an error."""
    try:
        about = json.loads((folder / "about").read_bytes())
        opened, error = str(about["opened"])[:MAX_REASON], str(about["error"])[:MAX_REASON]
        if error:
            return Answer(None, opened, error)
        return Answer(torch.from_numpy(np.load(folder / "logits.npy", allow_pickle=False)), opened)
    except (OSError, ValueError, TypeError, KeyError) as error:
        return Answer(None, error=f"it ended without an answer ({type(error).__name__})")


# in the server


def serve() -> None:
    """Fork a process for every folder with a question that comes by standard input, until that is closed."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a model prints is no reply
    tempfile.gettempdir()  # looked for once, by writing
    importlib.import_module("torch._dynamo")  # torch imports it when a model is rebuilt, which takes a second
    for line in sys.stdin.buffer:
        folder = Path(line.decode().rstrip("\n"))
        if not hasattr(os, "fork"):
            subprocess.run(
                [sys.executable, "-c", f"from grb.evaluator.new_process import answer; answer({str(folder)!r})"]
            )
        elif child := os.fork():
            os.waitpid(child, 0)
        else:
            try:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.closerange(3, 64)
                answer(folder)
            finally:
                os._exit(0)
        replies.write(b"done\n")


def answer(folder: str | Path) -> None:
    """Answer the question of a folder: what a forked process does."""
    folder = Path(folder)
    sys.dont_write_bytecode = True
    with (folder / "question").open("rb") as stream:
        weights, trusted, graph, view, threads, since = pickle.load(stream)  # noqa: S301 - written by the process that asks
    (folder / "question").unlink()
    torch.set_num_threads(threads)
    seal, error, logits = Seal(since=since, given=Path(weights)), "", None
    seal.close()
    try:
        seal.stage = "loading"
        model = load_model(weights, trusted=trusted)
        seal.stage = "answering"  # and so it stays, for threads that a model leaves behind
        logits = predict(model, graph, view).detach().cpu().numpy()
    except BaseException as caught:  # sys.exit in somebody's code too
        error = " ".join(f"{type(caught).__name__}: {caught}".split())[:MAX_REASON]
    with seal.opened():
        if logits is not None:
            np.save(folder / "logits.npy", logits, allow_pickle=False)
        (folder / "about").write_text(json.dumps({"opened": seal.denied, "error": error}))
