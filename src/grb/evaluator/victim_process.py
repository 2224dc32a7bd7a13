"""A victim in a process of its own: whoever attacks it by queries holds no model, only a pipe to one that answers so often.

Inside one process code can look for the victim in frames or by the garbage collector. Here there is nothing to be found: the
weights are loaded by another process, which knows the number of questions that it may answer and refuses the first one too
many, whoever asks. Questions and answers are npz arrays without objects; while it answers, the victim may open no file but code
(:mod:`grb.evaluator.seal`).
"""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import time
import weakref
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.evaluator.new_process import end_process
from grb.evaluator.seal import Seal
from grb.graph import CSR, Adjacency, Graph, Pattern, dense
from grb.model.base import EvaluationView, predict
from grb.trainer.checkpoint import load_model

_START = "from grb.evaluator.victim_process import serve; serve()"
_SIZE = struct.Struct("<Q")
# no answer is larger: 2**28 numbers of eight bytes
_LARGEST = 2**31
_REASON = 200


class VictimProcess(nn.Module):
    """Looks like a model to :func:`~grb.attack.base.run_attack`, and asks one in another process.

    Args:
        weights: File of the victim.
        trusted: The code that the file may name (:func:`grb.trainer.checkpoint.load_model`).
        limit: Number of questions that are answered.
    """

    def __init__(self, weights: Path, trusted: str | None, limit: int) -> None:
        super().__init__()
        self._view: EvaluationView | None = None
        self._sent: Tensor | None = None
        self.answered: int | None = None
        self._server = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        weakref.finalize(self, end_process, self._server)
        begin = {"weights": str(Path(weights).resolve()), "trusted": trusted, "limit": limit}
        begin |= {"threads": torch.get_num_threads(), "since": time.time_ns()}
        self._exchange(begin=np.array(json.dumps(begin)))

    def prepare(self, adj: Adjacency) -> Adjacency:
        """The edges themselves; the victim's own operator is made where the victim is."""
        return adj

    def observe(self, view: EvaluationView) -> None:
        """What the victim may know of the graphs that it will be asked about."""
        self._view = view

    def forget(self) -> None:
        """Forget that again."""
        self._view = None

    def forward(self, x: Tensor | CSR, op: Adjacency) -> Tensor:
        """The victim's logits, [n, classes], or one row where it classifies graphs."""
        rows = dense(x)
        question: dict[str, Any] = {"indptr": op.pattern.indptr.numpy(), "indices": op.pattern.indices.numpy()}
        if op.values is not None:
            question["values"] = op.values.numpy()
        if self._sent is None or not torch.equal(self._sent, rows):
            question["x"] = rows.detach().numpy()
        if self._view is not None:
            question |= {"known": self._view.known.numpy(), "keys": self._view.keys.numpy()}
        answer = self._exchange(**question)
        self._sent = rows.detach().clone()
        logits = answer.get("logits")
        if logits is None or logits.ndim != 2 or logits.dtype.kind != "f" or len(logits) not in (1, len(rows)):
            raise DataError("the victim's process gave no logits; its model broke the API contract")
        return torch.from_numpy(logits)

    def close(self) -> None:
        """Hear how many questions were answered, and end the process."""
        self.answered = int(self._exchange(end=np.array(1))["answered"])
        self.end()

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._server.returncode is None:
            end_process(self._server)

    def _exchange(self, **question: Any) -> dict[str, Any]:
        assert self._server.stdin is not None and self._server.stdout is not None
        try:
            _write(self._server.stdin, question)
            answer = _read(self._server.stdout)
        except (OSError, ValueError, EOFError, KeyError) as error:
            raise DataError(f"the victim's process gave no answer ({type(error).__name__})") from None
        if "error" in answer:
            raise DataError(f"the victim's process refused: {str(answer['error'])[:_REASON]}")
        return answer


def _write(stream: IO[bytes], arrays: dict[str, Any]) -> None:
    held = io.BytesIO()
    np.savez(held, **arrays)
    whole = held.getvalue()
    stream.write(_SIZE.pack(len(whole)) + whole)
    stream.flush()


def _read(stream: IO[bytes]) -> dict[str, Any]:
    """The next message; EOFError if there is none, ValueError if it is none of ours."""
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    (size,) = _SIZE.unpack(head)
    if size > _LARGEST:
        raise ValueError("too long")
    whole = stream.read(size)
    if len(whole) < size:
        raise EOFError
    with np.load(io.BytesIO(whole), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


# in the victim's process


def serve() -> None:
    """Load a model and answer questions about graphs, until there are none, or as many as may be."""
    replies, questions = os.fdopen(os.dup(1), "wb", buffering=0), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # what a model prints is no reply
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.dont_write_bytecode = True
    begin = json.loads(str(_read(questions)["begin"]))
    torch.set_num_threads(begin["threads"])
    seal = Seal(since=begin["since"], given=Path(begin["weights"]))
    seal.close()
    seal.stage = "loading"
    model, said = _tried(partial(load_model, begin["weights"], trusted=begin["trusted"]))
    seal.stage = "answering"
    _write(replies, said)
    answered, x = 0, None
    while model is not None:
        try:
            question = _read(questions)
        except EOFError:
            return
        if "end" in question:
            _write(replies, {"answered": np.array(answered)})
            return
        x = torch.from_numpy(question["x"]) if "x" in question else x
        if answered >= begin["limit"]:
            _write(replies, {"error": np.array(f"{begin['limit']} questions are allowed, and all of them are used")})
            continue
        answered += 1  # whatever the victim says to it
        logits, said = _tried(partial(_asked, model, question, x))
        _write(replies, said if logits is None else {"logits": logits})


def _asked(model: nn.Module, question: dict[str, Any], x: Tensor | None) -> np.ndarray[Any, Any]:
    assert x is not None
    indptr, indices = torch.from_numpy(question["indptr"]), torch.from_numpy(question["indices"])
    values = torch.from_numpy(question["values"]) if "values" in question else None
    graph = Graph(Adjacency(Pattern(indptr, indices, len(x)), values), x)
    view = None
    if "known" in question:
        view = EvaluationView(torch.from_numpy(question["known"]), torch.from_numpy(question["keys"]))
    found: np.ndarray[Any, Any] = predict(model, graph, view).detach().cpu().numpy()
    return found


def _tried(function: Any) -> tuple[Any, dict[str, Any]]:
    """What a call of somebody's code gives, or why it gives nothing."""
    try:
        return function(), {"ready": np.array(1)}
    except BaseException as caught:  # sys.exit in somebody's code too
        reason = " ".join(f"{type(caught).__name__}: {caught}".split())[:_REASON]
        return None, {"error": np.array(reason)}
