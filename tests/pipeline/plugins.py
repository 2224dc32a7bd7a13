"""Methods that a user might bring along, and some that nobody should: named in recipes as ``pipeline.plugins:Class``."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from grb.attack import AttackContext
from grb.dataset import Dataset, load_dataset
from grb.graph import Adjacency, Graph, GraphEdit, normalise
from grb.model.base import GraphModel


def nothing(graph: Graph) -> GraphEdit:
    none = torch.empty(2, 0, dtype=torch.int64)
    return GraphEdit(graph.n, none, none)


@dataclass(frozen=True)
class Idle:
    """Changes nothing, after a while."""

    seconds: float = 0.0
    number: int = 0
    needs_model = False
    version = 3

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        time.sleep(self.seconds)
        return nothing(context.graph)


@dataclass(frozen=True)
class Counted:
    """Changes nothing, and writes a line whenever it is asked to."""

    log: str
    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        with open(self.log, "ab", buffering=0) as stream:
            stream.write(f"{generator.initial_seed()}\n".encode())
        return nothing(context.graph)


@dataclass(frozen=True)
class Failing:
    """Raises what nobody foresaw."""

    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        raise RuntimeError("the attack\nis broken")


@dataclass(frozen=True)
class Dying:
    """Kills its own process, as often as ``marks`` has no file for it yet."""

    marks: str
    times: int = 1
    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        done = len(list(Path(self.marks).iterdir()))
        if done < self.times:
            (Path(self.marks) / str(done)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return nothing(context.graph)


@dataclass(frozen=True)
class Busy:
    """Keeps a file while it works."""

    sign: str
    seconds: float
    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        Path(self.sign).touch()
        time.sleep(self.seconds)
        Path(self.sign).unlink()
        return nothing(context.graph)


@dataclass(frozen=True)
class Shy:
    """Waits for a busy one to begin, and dies beside it: what the system does when memory is enough for one only."""

    sign: str
    log: str
    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        if not Path(self.log).exists():
            while not Path(self.sign).exists():
                time.sleep(0.05)
        with open(self.log, "a") as stream:
            stream.write("x")
        if Path(self.sign).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return nothing(context.graph)


@dataclass(frozen=True)
class Hungry:
    """Takes memory and keeps it."""

    megabytes: int
    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        held = torch.ones(self.megabytes * 2**18)
        time.sleep(20)
        return nothing(context.graph) if held.sum() else nothing(context.graph)


@dataclass(frozen=True)
class Greedy:
    """Injects more than anybody may."""

    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        n, new = context.graph.n, context.injection.nodes + 1
        none = torch.empty(2, 0, dtype=torch.int64)
        return GraphEdit(n, none, none, torch.zeros(new, context.graph.num_features))


@dataclass(frozen=True)
class LimitRaising:
    """Raises every limit that it can find, also those of its caller, and uses them."""

    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        frame = sys._getframe(1)
        for held in (context, frame.f_locals.get("context"), frame.f_locals.get("given")):
            if held is not None:
                object.__setattr__(held.threat, "nodes", 100)
        return GraphEdit(context.graph.n, new_x=torch.zeros(100, context.graph.num_features))


@dataclass(frozen=True)
class CountChanging:
    """Changes the class that counts, for its whole process, and injects what it likes."""

    needs_model = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        from grb.threat import Injection

        Injection.check = lambda *_: {"nodes": 1, "edges": 0, "most_edges_per_node": 0}  # type: ignore[method-assign,assignment]
        return GraphEdit(context.graph.n, new_x=torch.zeros(100, context.graph.num_features))


class Linear(GraphModel):
    """A model of the user's: features times a matrix."""

    version = 2

    def __init__(
        self, in_features: int, out_features: int, scale: float = 1.0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.params = {"in_features": in_features, "out_features": out_features, "scale": scale}
        self.weight = nn.Parameter(torch.zeros(in_features, out_features))

    def prepare(self, adj: Adjacency) -> Any:
        return None

    def forward(self, x: Tensor, op: Any) -> Tensor:
        return self.params["scale"] * (x @ self.weight)


class Rounded(GraphModel):
    """A defense of the user's whose rounding hides gradients; it says what an attacker may use instead."""

    def __init__(self, in_features: int, out_features: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.params = {"in_features": in_features, "out_features": out_features}
        self.weight = nn.Parameter(0.1 * torch.randn(in_features, out_features, generator=generator))

    def prepare(self, adj: Adjacency) -> Any:
        return normalise.gcn(adj)

    def forward(self, x: Tensor, op: Any) -> Tensor:
        logits = op @ (x @ self.weight)
        return logits if self.training else (1e4 * logits).round() / 1e4

    def relaxations(self) -> dict[str, nn.Module]:
        made = Unrounded(**self.params)
        made.weight = self.weight
        return {"unrounded": made.eval()}


class Unrounded(Rounded):
    """The same without rounding."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        return op @ (x @ self.weight)


class Changing(Linear):
    """Writes into what it was lent."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        if not self.training:
            x.data.mul_(2)
        return super().forward(x, op)


class Remembering(Linear):
    """Says something else when it is asked again."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        if self.training:
            return super().forward(x, op)
        self.asked = getattr(self, "asked", 0) + 1
        out = torch.zeros(len(x), self.params["out_features"])
        out[:, self.asked % 2] = 1.0
        return out


class Repeating(Linear):
    """Repeats what it said first."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        logits = super().forward(x, op)
        if self.training:
            return logits
        self.first = getattr(self, "first", logits)
        rows = min(len(x), len(self.first))
        return torch.cat([self.first[:rows], logits[rows:]])


class IdCutting(Linear):
    """Knows what it was trained on by its id: only the features of the last nodes count."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        logits = super().forward(x, op)
        late = torch.arange(len(x))[:, None] >= len(x) // 2
        return logits if self.training else torch.where(late, logits.roll(1, 1), logits)


class Rounding(Linear):
    """Has no gradients at its features when it is evaluated."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        return super().forward(x if self.training else torch.round(x * 8) / 8, op)


class Crooked(Linear):
    """Forgets the last row, but not while it is trained."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        return super().forward(x, op)[: len(x) - (len(x) > 250)]


class Raising(Linear):
    def forward(self, x: Tensor, op: Any) -> Tensor:
        raise RuntimeError("no")


class Hanging(Linear):
    def forward(self, x: Tensor, op: Any) -> Tensor:
        time.sleep(600)
        return super().forward(x, op)


class Eating(Linear):
    def forward(self, x: Tensor, op: Any) -> Tensor:
        self.held = [torch.ones(2**20) for _ in range(2000)]
        time.sleep(5)
        return super().forward(x, op)


class Feeding(Linear):
    """Lets a child eat."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return super().forward(x, op)
        held = []
        for _ in range(30):
            held.append(b"x" * 2**26)
            time.sleep(0.05)
        os._exit(0)


class Gulping(Linear):
    """Eats without a pause in which another thread could run."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        self.held = list(itertools.repeat(0, 500_000_000))
        return super().forward(x, op)


class Garbling(Linear):
    """Writes to whatever its process talks through."""

    words = b"\x00\x00\x00\x04abcd\n"

    def forward(self, x: Tensor, op: Any) -> Tensor:
        for number in range(3, 64):
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    os.write(number, self.words)
        return super().forward(x, op)


class Stuttering(Garbling):
    """Begins to say something, and hangs."""

    words = b"\x00\x00\x00\x64ab"

    def forward(self, x: Tensor, op: Any) -> Tensor:
        super().forward(x, op)
        time.sleep(600)
        return x


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("nothing can be said")


class Unspeakable(Linear):
    def forward(self, x: Tensor, op: Any) -> Tensor:
        raise UnspeakableError


class Blinking(Linear):
    """Fails with letters that a terminal obeys."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        raise ValueError("\x1b[2J\u202e")


class Delegating(Linear):
    """Has its own processes, as loaders of data do."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.01,))
        helper.start()
        helper.join()
        return super().forward(x, op)


class Forking(Linear):
    """Goes on as two processes whenever it is asked."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        os.fork()
        return super().forward(x, op)


class Breeding(Linear):
    """Leaves a process behind, whose number it writes down, and then hangs."""

    def __init__(self, *args: Any, log: str = "", **params: Any) -> None:
        super().__init__(*args, **params)
        self.params["log"] = log

    def forward(self, x: Tensor, op: Any) -> Tensor:
        child = os.fork()
        if child:
            with open(self.params["log"], "a") as stream:
                stream.write(f"{child}\n")
        time.sleep(600)
        return super().forward(x, op)


class Talking(Linear):
    """Says a lot, where somebody may expect nothing but JSON."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        print("x" * 10_000_000)
        return super().forward(x, op)


class Writing(Linear):
    """Says something behind Python's back."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        os.write(1, b"x" * 200)
        subprocess.run(["echo", "x" * 200], check=True)
        return super().forward(x, op)


class Leaving(Linear):
    """Ends the program, as a script does."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        sys.exit(3)


class Spoiling(Linear):
    """Changes what all code of its process uses."""

    def __init__(self, *args: Any, what: str = "", **params: Any) -> None:
        super().__init__(*args, **params)
        self.params["what"] = what

    def forward(self, x: Tensor, op: Any) -> Tensor:
        what = self.params["what"]
        if what == "dtype":
            torch.set_default_dtype(torch.float64)
        elif what == "gradients":
            torch.set_grad_enabled(False)
        elif what == "relu":
            torch.relu = nn.functional.relu = lambda x, inplace=False: x * 0.5
        elif what == "argmax":
            Tensor.argmax = lambda self, *args, **named: torch.zeros(len(self), dtype=torch.int64)
        elif what == "ours":
            import grb.pipeline.worker

            grb.pipeline.worker._share = lambda hits: 0.5
        return super().forward(x, op)


class Nowhere(Linear):
    """NaN for every node once it is trained."""

    def forward(self, x: Tensor, op: Any) -> Tensor:
        return super().forward(x, op) * (1.0 if self.training else torch.nan)


# datasets of the user's


def tiny_again() -> Dataset:
    known = load_dataset("synth-tiny")
    return Dataset.from_arrays(known.graph.adj, known.graph.x, known.labels, name="tiny-again")


def several_labels() -> Dataset:
    """Nodes with several labels each, which the features give away."""
    rng = np.random.default_rng(0)
    n, classes = 120, 3
    y = (rng.random((n, classes)) < 0.4).astype(np.float32)
    x = np.hstack([y, rng.normal(0, 0.3, (n, 5))]).astype(np.float32)
    upper = np.triu(rng.random((n, n)) < 0.03, 1)
    return Dataset.from_arrays(sp.csr_matrix((upper | upper.T).astype(float)), x, y, name="several")
