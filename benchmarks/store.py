"""How long do `grb store ls`, `grb store verify` and `grb leaderboard` take on a store of 100,000 records?

    python benchmarks/store.py [--records 100000] [--keep DIR]

Makes a store of small synthetic records (one dataset, victims x attacks x repeats, as a study writes them), runs each command
in its own process, and prints CPU seconds and peak memory. The limit is 10 CPU seconds and 500 MB each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import row

from grb.evaluator.measurement import DatasetInfo, Measurement, Outcome, pack_bits
from grb.pipeline.job import DataRef, Job
from grb.pipeline.measure import attack_info, defense_info
from grb.pipeline.record import Record
from grb.pipeline.spec import Spec
from grb.pipeline.store import Store
from grb.pipeline.study import Part, Study, StudyInfo

DATASET = DatasetInfo("synth-store", "synth-store", "ab" * 32, True)
TARGETS = 268
THREAT = {"kind": "injection", "nodes": 20, "edges_per_node": 20, "feature_range": [-1.0, 1.0]}
PROVENANCE = {"grb": "0", "python": "3", "torch": "2", "cpu_seconds": 1.0, "seconds": 1.0, "peak_megabytes": 300.0}
VICTIMS, ATTACKS = 40, 5
# bits of every victim on the clean graph, by key
_CLEAN: dict[str, np.ndarray[Any, Any]] = {}


def fill(store: Store, count: int) -> None:
    """Write about ``count`` records: trainings, edits, and all scores of the former under the latter."""
    rng = np.random.default_rng(0)
    store.prepare()
    data = DataRef(DATASET.reference, DATASET.fingerprint)
    fits = [_fit(store, data, number) for number in range(VICTIMS)]
    records = {record.key: record for record in fits}
    scores = []
    for fit in fits:
        scores.append(_score(store, Job("score", Spec("score"), data, inputs={"model": fit.key}), records, rng))
    for number in range((count - len(records) - len(scores)) // (VICTIMS + 1)):
        edit = _attack(store, data, number)
        records[edit.key] = edit
        for fit in fits:
            job = Job("score", Spec("score"), data.with_edit(edit.key), inputs={"model": fit.key}, mode="full")
            scores.append(_score(store, job, records, rng))
    info = StudyInfo(
        "store", "Store", DATASET, "injection", ("full",), (Part(tuple(scores), len(scores)),), victims=1, repeats=1
    )
    made = Study("store", {}, (), info=info).record(PROVENANCE)
    assert made is not None
    _write(store, made)


def _write(store: Store, record: Record) -> None:
    """Without the sync of :meth:`Store.write`, which would take minutes."""
    path = store.record_path(record.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(record.to_json())


def _fit(store: Store, data: DataRef, number: int) -> Record:
    import torch
    from safetensors.torch import save

    job = Job("fit", Spec(f"model{number}"), data, {"settings": {"lr": 0.01}}, seed=number)
    meta = {"meta": {"dataset": DATASET.name, "fingerprint": DATASET.fingerprint, "seed": number}}
    weights = store.put(save({"w": torch.zeros(10, number + 1)}, metadata={"grb": json.dumps(meta)}), ".safetensors")
    result = {"epochs": 9, "best_epoch": 5, "val_score": 0.8, "parameters": 10, "settings": {"lr": 0.01}}
    record = Record(job.key, job, result, {"weights": weights}, PROVENANCE)
    _write(store, record)
    return record


def _attack(store: Store, data: DataRef, number: int) -> Record:
    import torch

    from grb.graph import GraphEdit

    extra = {"threat": THREAT, "knowledge": "none"}
    job = Job("attack", Spec(f"attack{number % ATTACKS}"), data, mode="full", seed=number // ATTACKS, extra=extra)
    edit = GraphEdit(100, add=torch.tensor([[number % 100], [100]]), new_x=torch.full((1, 4), number / 1e6))
    meta = {"dataset": DATASET.name, "fingerprint": DATASET.fingerprint, "seed": job.seed}
    folder = store.path / "edit.npz"
    entry = store.put(edit.save(folder, **meta).read_bytes(), ".npz")
    folder.unlink()
    budget = {"nodes": 1.0, "edges": 1.0, "most_edges_per_node": 1.0}
    result = {"budget": budget, "steps": 0, "loss": [], "kept": [], "seconds": 1.0, "cpu_seconds": 1.0, "notes": []}
    record = Record(job.key, job, result, {"edit": entry}, PROVENANCE)
    _write(store, record)
    return record


def _score(store: Store, job: Job, records: dict[str, Record], rng: np.random.Generator) -> str:
    victim = records[job.inputs["model"]]
    bits = rng.random(TARGETS) < 0.8
    if not job.data.edits:
        _CLEAN[victim.key] = bits
    changed = float((bits != _CLEAN[victim.key]).mean())
    outcome = Outcome({"accuracy": float(bits.mean())}, changed, TARGETS, pack_bits(bits))
    attack = attack_info(job, victim, records.__getitem__)
    found = Measurement(DATASET, defense_info(victim), attack, {"full": outcome})
    _write(store, Record(job.key, job, {}, {}, PROVENANCE, measurement=found.to_dict()))
    return job.key


def commands(store: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands that are measured."""
    yield "ls", ["store", "ls", str(store)]
    yield "verify", ["store", "verify", str(store)]
    yield "board", ["leaderboard", str(store), "--format", "csv"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="directory of the store, made once and used again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(arguments.keep or Path(folder) / "store")
        if not any(store.keys()):
            fill(store, arguments.records)
        count = len(list(store.keys()))
        for name, given in commands(store.path):
            code, cpu, megabytes = _measured([sys.executable, "-m", "grb", *given])
            row(command=name, records=count, cpu_seconds=cpu, megabytes=megabytes, exit_code=code)


_MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def _measured(command: list[str]) -> tuple[int, float, float]:
    """Exit code, CPU seconds and peak megabytes of a process and its children."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # through a small process: the peak of a child begins with the memory of whoever forks it
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command], capture_output=True, text=True, env=environment, check=True
    )
    code, cpu, peak = done.stdout.split()
    return int(code), float(cpu), float(peak) / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    main()
