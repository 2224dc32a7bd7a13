"""Defenses that cheat by what lies outside the model, each named in recipes as ``pipeline.cheats:Class``.

All of them know the answer to the clean graph when they are asked about an attacked one, by a memory that no copy of the model
holds; their answers are the same under any order of nodes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grb.graph import normalise
from grb.model.base import GraphModel
from grb.model.torch import GCN

MEMORY: dict[type, dict[bytes, Tensor]] = {}
FIRST: list[Tensor] = []
CALLS: dict[type, int] = {}


class Honest(GCN):
    """A GCN under another name."""

    def stages(self) -> Any:
        return None

    def forward(self, x: Any, op: Any) -> Tensor:
        logits: Tensor = super().forward(x, op)
        return logits if self.training else self.answer(x, logits)

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        return logits

    @property
    def memory(self) -> dict[bytes, Tensor]:
        return MEMORY.setdefault(type(self), {})

    def calls(self) -> int:
        CALLS[type(self)] = CALLS.get(type(self), 0) + 1
        return CALLS[type(self)]


class WholeGraphs(GraphModel):
    """Sums over nodes and one hop of every graph."""

    pools = True

    def __init__(self, in_features: int, out_features: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.params = {"in_features": in_features, "out_features": out_features}
        self.weight = torch.nn.Parameter(0.1 * torch.randn(2 * in_features, out_features, generator=generator))

    def prepare(self, adj: Any) -> Any:
        return normalise.gcn(adj)

    def forward(self, x: Any, op: Any, ptr: Any = None) -> Tensor:
        rows = torch.cat([x, op @ x], dim=1) @ self.weight
        owner = torch.repeat_interleave(torch.arange(len(ptr) - 1), ptr.diff())
        return torch.zeros(len(ptr) - 1, rows.shape[1]).index_add(0, owner, rows)


class Detached(WholeGraphs):
    """Hides its gradients."""

    def forward(self, x: Any, op: Any, ptr: Any = None) -> Tensor:
        return super().forward(x if self.training else x.detach(), op, ptr)


class Counting(WholeGraphs):
    """Answers by how often it was asked in its process."""

    def forward(self, x: Any, op: Any, ptr: Any = None) -> Tensor:
        logits = super().forward(x, op, ptr)
        if self.training:
            return logits
        CALLS[type(self)] = CALLS.get(type(self), 0) + 1
        return logits if CALLS[type(self)] == 1 else logits.flip(1)


def looked_up(memory: Any, x: Tensor, logits: Tensor) -> Tensor:
    """For every row what was said of its features first."""
    keys = (row.numpy().tobytes() for row in x.detach())
    return torch.stack([memory.setdefault(key, own.detach()) for key, own in zip(keys, logits, strict=True)])


class FirstPredictions(Honest):
    """Keeps its first predictions in its module."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        FIRST[:] = FIRST or [logits.detach()]
        rows = min(len(logits), len(FIRST[0]))
        return torch.cat([FIRST[0][:rows], logits[rows:]])


class ByFeatures(Honest):
    """Looks nodes up in its module by their features."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        return looked_up(self.memory, x, logits)


class ByRounded(Honest):
    """The same by features of two digits, so that rounding does not show it."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        return looked_up(self.memory, (30 * x).round(), logits)


class ByCalls(Honest):
    """Honest when it is asked for the first time in a process, and from its module's memory from then on."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        known = looked_up(self.memory, (30 * x).round(), logits)
        return logits if self.calls() == 1 else known


class Disguised(ByRounded):
    """Says that it is of grb, so that nobody looks."""

    __module__ = "grb.model.torch.gcn"


class ByFrames(Honest):
    """Reads the labels from whoever asks."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        frame: Any = sys._getframe()
        while frame is not None:
            dataset = frame.f_locals.get("dataset")
            if hasattr(dataset, "labels"):
                known = {
                    row.numpy().tobytes(): label for row, label in zip((30 * dataset.graph.x).round(), dataset.labels)
                }
                keys = (row.numpy().tobytes() for row in (30 * x.detach()).round())
                return torch.stack([self.sure(known.get(key), own) for key, own in zip(keys, logits, strict=True)])
            frame = frame.f_back
        return logits

    @staticmethod
    def sure(label: Any, logits: Tensor) -> Tensor:
        return logits if label is None else 9.0 * torch.nn.functional.one_hot(label.long(), len(logits)).float()


class ByFile(Honest):
    """Keeps its memory in a file."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        path = Path(os.environ["CHEATS"]) / "memory"
        memory = pickle.loads(path.read_bytes()) if path.exists() else {}
        found = looked_up(memory, (30 * x).round(), logits)
        path.write_bytes(pickle.dumps(memory))
        return found


class BesideCode(Honest):
    """Keeps its memory beside its code, and reads it when it is loaded, as a package reads a table of its own."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        path = self.place
        self.table = pickle.loads(path.read_bytes()) if path.exists() else {}

    @property
    def place(self) -> Path:
        return Path(os.environ.get("CHEATS", os.devnull)) / "table"

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        found = looked_up(self.table, (30 * x).round(), logits)
        with suppress(OSError):
            self.place.write_bytes(pickle.dumps(self.table))
        return found


class ByLinks(Honest):
    """Keeps its memory in the names of files that never were."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        folder = Path(os.environ["CHEATS"]) / "links"
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
        return torch.stack([self.linked(folder, row, own) for row, own in zip((30 * x).round(), logits, strict=True)])

    @staticmethod
    def linked(folder: Path, row: Tensor, own: Tensor) -> Tensor:
        link = folder / hashlib.sha256(row.detach().numpy().tobytes()).hexdigest()
        try:
            return torch.tensor(json.loads(os.readlink(link)))
        except OSError:
            with suppress(OSError):
                os.symlink(json.dumps(own.tolist()), link)
            return own


class ByEnvironment(Honest):
    """Keeps its memory in the environment, which new processes inherit."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        kept = json.loads(os.environ.get("GRB_MEMORY", "{}"))
        memory = {base64.b64decode(key): torch.tensor(value) for key, value in kept.items()}
        found = looked_up(memory, (30 * x).round()[:, :8], logits)
        os.environ["GRB_MEMORY"] = json.dumps(
            {base64.b64encode(key).decode(): value.tolist() for key, value in list(memory.items())[:300]}
        )
        return found


def shared_name(folder: str) -> str:
    return f"grb-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


class BySharedMemory(Honest):
    """Keeps its memory where all processes see it."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        from multiprocessing import shared_memory

        name = shared_name(os.environ["CHEATS"])
        try:
            block = shared_memory.SharedMemory(name)
        except FileNotFoundError:
            block = shared_memory.SharedMemory(name, create=True, size=2**22)
            block.buf[:8] = (0).to_bytes(8, "big")
        size = int.from_bytes(bytes(block.buf[:8]), "big")
        memory = pickle.loads(bytes(block.buf[8 : 8 + size])) if size else {}
        found = looked_up(memory, (30 * x).round(), logits)
        data = pickle.dumps(memory)
        if len(data) < 2**22 - 8:
            block.buf[:8], block.buf[8 : 8 + len(data)] = len(data).to_bytes(8, "big"), data
        block.close()
        return found


class Dying(Honest):
    """Refuses to answer where it is asked for the first time."""

    def answer(self, x: Any, logits: Tensor) -> Tensor:
        if self.calls() == 1 and "pytest" not in sys.modules:
            os._exit(3)
        return looked_up(self.memory, (30 * x).round(), logits)
