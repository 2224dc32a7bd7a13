"""Models that only answer: a Python function, or a program; attacks may ask them, and get no gradients."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency
from grb.graph.sparse import dense

Array = np.ndarray[Any, Any]
Ask = Callable[[Array, Array], Any]


class BlackBox(nn.Module):
    """A function from features, [n, d], and edges in both directions, [2, m], to a row of scores per node, [n, classes].

    Scores may be logits, log-probabilities or probabilities; only their order counts. There are no gradients.

    >>> box = BlackBox(lambda x, edge_index: x @ np.eye(2))
    >>> box(torch.tensor([[1.0, 0.0]]), np.zeros((2, 0), dtype=int)).tolist()
    [[1.0, 0.0]]
    """

    is_black_box = True

    def __init__(self, ask: Ask) -> None:
        super().__init__()
        if not callable(ask):
            raise DataError(f"a {type(ask).__name__} is no black box; a function of (x, edge_index) is needed")
        self.ask, self.queries = ask, 0

    def prepare(self, adj: Adjacency) -> Array:
        """The edges as an array, [2, m]."""
        present = None if adj.values is None else adj.values.detach() != 0
        rows, columns = adj.pattern.row_ids.long(), adj.pattern.indices.long()
        both = torch.stack([rows, columns])
        return (both if present is None else both[:, present]).cpu().numpy()

    def forward(self, x: Tensor | CSR, op: Array) -> Tensor:
        """Scores of every node, [n, classes]."""
        self.queries += 1
        features = dense(x).detach().cpu().numpy()
        found = self.ask(features.copy(), op.copy())
        scores = found.detach().cpu().numpy() if isinstance(found, Tensor) else np.asarray(found)
        if scores.ndim == 1 and scores.dtype.kind == "f":  # one score per node: that of the second of two classes
            scores = scores[:, None]
        if scores.ndim != 2 or len(scores) != len(features) or scores.dtype.kind not in "fiub":
            raise DataError(
                f"the black box gives {scores.dtype} of shape {list(scores.shape)}, but a row of scores for each of "
                f"{len(features)} nodes is needed"
            )
        return torch.from_numpy(scores.astype(np.float32))


class Program:
    """A program that answers on a graph.

    It is run with two paths behind its own arguments: an npz file with ``x`` [n, d] and ``edge_index`` [2, m], which it reads,
    and a npy file, into which it writes a row of scores per node.

    Args:
        command: The program and its arguments, as a list or as one line.
        timeout: Seconds for one answer.
    """

    def __init__(self, command: str | Sequence[str], *, timeout: float = 600.0) -> None:
        self.command = shlex.split(command) if isinstance(command, str) else list(command)
        self.timeout = timeout
        if not self.command:
            raise DataError("the command of the model is empty; give a program, for instance 'python predict.py'")

    def __call__(self, x: Array, edge_index: Array) -> Array:
        """Run the program on a graph and read its scores."""
        name = self.command[0]
        with tempfile.TemporaryDirectory(prefix="grb-ask-") as folder:
            graph, scores = Path(folder) / "graph.npz", Path(folder) / "scores.npy"
            np.savez(graph, x=x, edge_index=edge_index)
            try:
                done = subprocess.run(
                    [*self.command, str(graph), str(scores)], capture_output=True, timeout=self.timeout, check=False
                )
            except OSError as error:
                raise DataError(f"the model's program '{name}' cannot be started: {error.strerror}") from None
            except subprocess.TimeoutExpired:
                raise DataError(f"the model's program '{name}' gave no answer in {self.timeout:g} seconds") from None
            if done.returncode or not scores.is_file():
                said = " ".join(done.stderr.decode(errors="replace").split())[-200:]
                raise DataError(
                    f"the model's program '{name}' ended with code {done.returncode} and wrote no scores "
                    f"({said or 'no message'})"
                )
            try:
                found: Array = np.load(scores, allow_pickle=False)
            except ValueError as error:
                raise DataError(f"the model's program '{name}' wrote no npy file ({str(error)[:80]})") from None
        return found
