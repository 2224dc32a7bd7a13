"""Does every dataset at hand load, perturb and train, and how long does that take?

    GRB_DATA=DIR OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/datasets.py [NAME ...] [--epochs 2]

For every dataset whose files are on this machine: the comparable perturbations of its kind, and a short training of the GCN on
each.
One CSV row per dataset: seconds to load, to perturb and to train, the mean AUROC (a finite number is all that two epochs can
promise), and peak memory of the process so far.
"""

from __future__ import annotations

import argparse
import math
import resource
import time

import torch
from common import row

from grb.dataset import load_dataset
from grb.dataset.registry import SOURCES
from grb.errors import DataError
from grb.graph.memory import keep_memory
from grb.pipeline.profile_job import perturb, profiling_method
from grb.pipeline.spec import Spec
from grb.taxonomy import comparable_perturbations
from grb.trainer.profile import fit_profile


def check(name: str, epochs: int) -> None:
    """Load, perturb and train one dataset; any failure ends the program."""
    start = time.process_time()
    dataset = load_dataset(name)
    loaded = time.process_time() - start
    method = profiling_method(Spec("gcn", {"epochs": epochs}), dataset)
    wanted = comparable_perturbations(collection=dataset.graph.ptr is not None)
    perturbing, training, scores = 0.0, 0.0, []
    for spec in (None, *(Spec(each.lower(), params) for each, params in wanted.items())):
        start = time.process_time()
        graph = dataset.graph if spec is None else perturb(dataset, dataset.graph, spec, 0)
        perturbing += time.process_time() - start
        start = time.process_time()
        done = fit_profile(graph, dataset.split, method, task=dataset.task, classes=dataset.num_classes, seed=0)
        training += time.process_time() - start
        if not math.isfinite(done.auroc):
            raise SystemExit(f"{name} under {spec} has AUROC {done.auroc}")
        scores.append(done.auroc)
    row(
        dataset=name,
        nodes=dataset.num_nodes,
        edges=dataset.num_edges,
        runs=len(scores),
        load=round(loaded, 2),
        perturb=round(perturbing, 2),
        train=round(training, 2),
        auroc=round(sum(scores) / len(scores), 3),
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(SOURCES))
    parser.add_argument("--epochs", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    for name in given.names:
        try:
            load_dataset(name)
        except DataError:
            continue
        check(name, given.epochs)


if __name__ == "__main__":
    main()
