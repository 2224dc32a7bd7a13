"""What every catalogued method gives on synth-tiny with few steps, as a handful of numbers.

``python tests/golden/methods.py [NAME...]`` writes them to golden.json, of all methods or of some. Do that when a method is
new, or when its numbers changed on purpose; then raise ``version`` on its class, so that stored results of the old one are
not taken for results of the new one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from grb.catalogue import entries, resolve
from grb.dataset import load_dataset
from grb.errors import UnknownName
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.names import SUFFIXES, TRANSDUCTIVE, ModelName
from grb.pipeline import Job, Recipe, Spec, Store, Study, plan_study
from grb.pipeline.worker import Worker
from grb.trainer.checkpoint import load_model

FILE = Path(__file__).parent / "golden.json"
SAMPLE = 16
# thousands of choices one after the other: another CPU ends at other edges, but not with another share of targets
RACES = {"attack auto"}
MODIFICATION = {"feature_nodes": 5, "feature_range": [-0.9, 0.9]}


def methods() -> list[str]:
    """Names of all golden values that there could be: ``model gcn``, ``model gcn+at``, ``attack pgd``."""
    models = [*entries("model"), *(f"gcn+{suffix}" for suffix in SUFFIXES)]
    return [*(f"model {name}" for name in models), *(f"attack {name}" for name in entries("attack"))]


def study_of(method: str) -> Study:
    """The smallest study with this method in it; on one difficulty and with one repeat."""
    kind, _, name = method.partition(" ")
    few: dict[str, Any] = {"modes": ("full",), "repeats": 1, "iterations": 3, "training": {"epochs": 3}}
    if kind == "model":
        own = {"warm_up": 1} if ModelName.parse(name).adversarial else {}
        if ModelName.parse(name).base in TRANSDUCTIVE:
            few["train_mode"] = "transductive"
        return plan_study(Recipe("golden", "synth-tiny", defenses=(Spec(name, own),), **few))
    if name not in entries("attack"):
        raise UnknownName("attack", name, entries("attack"))
    scenario = entries("attack")[name].group
    threat = MODIFICATION if scenario == "modification" else {}
    few |= {"iterations": 6, "training": {"epochs": 20}}  # against a surrogate that has learnt something
    few["objective"] = getattr(resolve("attack", name), "objective", "evasion")
    return plan_study(Recipe("golden", "synth-tiny", scenario=scenario, attacks=(Spec(name),), threat=threat, **few))


def job_of(study: Study, method: str) -> Job:
    kind, _, name = method.partition(" ")
    wanted = ("fit", name) if kind == "model" else ("attack", name)
    return next(job for job in study.jobs.values() if (job.kind, job.spec.name) == wanted and job.seed == 0)


def version_of(method: str) -> list[int]:
    """Of the method and of all that it is tried on."""
    study = study_of(method)
    job = job_of(study, method)
    return [job.version, *(study.jobs[key].version for key in job.needs)]


def values_of(method: str) -> dict[str, Any]:
    """Some logits of a model, or the edges and some features of an edit."""
    study = study_of(method)
    job = job_of(study, method)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        worker = Worker(store)
        for key in job.needs:
            worker.do(study.jobs[key])
        record = worker.do(job)
        if job.kind == "fit":
            logits = predict(load_model(store.find(record, "weights")), load_dataset("synth-tiny").graph)
            return {"logits": sample(logits), "largest": float(logits.abs().max())}
        if method in RACES:
            return {"kept": min(trial["kept"] for trial in record.result["trials"] if trial["kept"] is not None)}
        edit = GraphEdit.load(store.find(record, "edit"))
    rows = [part for part in (edit.new_x, edit.set_x) if part is not None]
    found: dict[str, Any] = {"add": pairs(edit.add), "drop": pairs(edit.drop)}
    if rows:
        found |= {"features": sample(torch.cat(rows)), "largest": float(torch.cat(rows).abs().max())}
    return found


def sample(table: torch.Tensor) -> list[float]:
    """Entries from all over a table."""
    flat = table.detach().flatten()
    places = torch.linspace(0, len(flat) - 1, SAMPLE).round().long()
    return [float(f"{value:.5g}") for value in flat[places].tolist()]


def pairs(edges: torch.Tensor) -> list[list[int]]:
    return sorted(edges.T.tolist())


def read() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text()))


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    old = read() if FILE.exists() else {}
    chosen = [method for method in methods() if not names or method in names or method.partition(" ")[2] in names]
    kept = {method: value for method, value in old.items() if method in methods() and method not in chosen}
    made = {method: {"version": version_of(method), **values_of(method)} for method in chosen}
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in sorted((kept | made).items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(chosen)} values written, {len(kept)} kept")


if __name__ == "__main__":
    main(sys.argv[1:])
