"""Does a training that stops early end where the full course ends, and what does it save?

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/stopping.py courses.jsonl [enzymes:NoNodeFtrs:0 ...]

Trains the GCN for all epochs on (dataset, perturbation, seed) triples, keeps every evaluation in the file, and skips what is
there already. A stopping rule does not change a course, it only ends it: so rules are replayed on the kept courses. One CSV row
per triple: test AUROC of the full course and of the rule, and the fraction of the epochs that the rule needs, beside
patience on the validation AUROC alone.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from common import row

from grb.dataset import load_dataset
from grb.model.profiling import MIN_DECREASE, PATIENCE
from grb.pipeline.profile_job import perturb, profiling_method
from grb.pipeline.spec import Spec
from grb.trainer.profile import Point, Progress, fit_profile

TRIPLES = (
    "enzymes:NoNodeFtrs:0",
    "enzymes:-:0",
    "proteins:NoNodeFtrs:0",
    "citationfull-citeseer:NoNodeFtrs:0",
    "citationfull-citeseer:-:0",
    "webkb-texas:NoNodeFtrs:0",
    "webkb-wisconsin:-:0",
    "wikipedia-chameleon:NoNodeFtrs:0",
    "actor:NoNodeFtrs:0",
    "syntheticnew:NoNodeFtrs:0",
)


def course(triple: str) -> dict[str, Any]:
    """Every evaluation of one full training."""
    name, perturbation, seed = triple.split(":")
    dataset = load_dataset(name)
    graph = dataset.graph
    if perturbation != "-":
        bare, _, compat = perturbation.partition("@")
        graph = perturb(dataset, graph, Spec(bare.lower(), {"compat": compat} if compat else {}), int(seed))
    method = profiling_method(Spec("gcn", {}), dataset)
    split = dataset.split if dataset.scheme is None else dataset.with_split(int(seed)).split
    begin = time.process_time()
    done = fit_profile(graph, split, method, task=dataset.task, classes=dataset.num_classes, seed=int(seed))
    return {
        "triple": triple,
        "single": graph.ptr is None,
        "cpu_seconds": round(time.process_time() - begin, 1),
        "points": [asdict(point) for point in done.history],
    }


def replay(points: list[Point], patience: int, min_decrease: float | None) -> tuple[int, float]:
    """Epochs until a rule ends a course, and the test AUROC that it keeps."""
    progress, kept = Progress(min_decrease), 0.0
    for point in points:
        if point.auroc is not None:
            kept = point.auroc
        progress.update(point, point.auroc is not None)
        if point.epoch - progress.epoch >= patience:
            return point.epoch + 1, kept
    return points[-1].epoch + 1, kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("courses", type=Path)
    parser.add_argument("triples", nargs="*", default=list(TRIPLES))
    parser.add_argument("--replay", action="store_true", help="train nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = given.courses.read_text().splitlines() if given.courses.exists() else []
    kept = {each["triple"]: each for each in map(json.loads, lines)}
    for triple in [] if given.replay else given.triples:
        if triple not in kept:
            kept[triple] = course(triple)
            with given.courses.open("a") as stream:
                stream.write(json.dumps(kept[triple]) + "\n")
    saved = []
    for triple, each in kept.items():
        points = [Point(**point) for point in each["points"]]
        full = next(point.auroc for point in reversed(points) if point.auroc is not None)
        patience = PATIENCE["single" if each["single"] else "collection"]
        epochs, auroc = replay(points, patience, MIN_DECREASE)
        early, plain = replay(points, patience, None)
        total = points[-1].epoch + 1
        saved.append((epochs * each["cpu_seconds"] / total, each["cpu_seconds"]))
        row(
            triple=triple,
            full=round(full, 4),
            rule=round(auroc, 4),
            difference=round(auroc - full, 4),
            epochs=epochs,
            cost=round(epochs / total, 3),
            auroc_only=round(plain, 4),
            auroc_only_cost=round(early / total, 3),
        )
    ours, whole = (sum(parts) for parts in zip(*saved))
    print(f"# {100 * ours / whole:.0f} % of the CPU time of the full courses")


if __name__ == "__main__":
    main()
