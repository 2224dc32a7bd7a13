"""What does an attacker who may only ask do with 100, 1,000 or 10,000 queries?

    OMP_NUM_THREADS=1 python benchmarks/queries.py [--models gcn,gat+at] [--scenario modification] [--queries 100,1000] \
        --done FILE --victims DIRECTORY >> FILE

Victims are trained on grb-cora with the settings of the papers (seed: the repeat). Random search, EvA (edges) and
distillation ask for scores or labels; RND and DICE, which ask nothing, are the baselines. Limits are those of the
benchmark: 5 % of the edges, or 60 nodes of 20 edges. ``accuracy`` is of all test nodes with their true labels, in per cent.
Rows that FILE (``--done``) has already are left out, and victims that DIRECTORY has are not trained again. Distillation asks
13 times, however many queries it has, so it is run with the smallest number alone.
"""

from __future__ import annotations

import csv
import time
from dataclasses import replace
from pathlib import Path

from common import options, row, started
from torch import nn

import grb
from grb.attack.build import build_attack, default_threat_model
from grb.dataset import Dataset

METHODS = {
    "modification": ("rnd-edges", "dice", "random-search", "eva", "distil-edges"),
    "injection": ("rnd", "injection-random-search", "distil"),
}
ASKING = ("random-search", "eva", "distil-edges", "injection-random-search", "distil")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--dataset", default="grb-cora")
    parser.add_argument("--models", default="gcn,gcn+ln,r-gcn+at,gat+at")
    parser.add_argument("--scenario", choices=list(METHODS), default="modification")
    parser.add_argument("--methods", help="instead of all")
    parser.add_argument("--queries", default="100,1000,10000")
    parser.add_argument("--answers", default="scores,labels")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--done", type=Path, help="a file of rows that need not be computed again")
    parser.add_argument("--victims", type=Path, help="a directory of trained victims, filled as they are needed")
    arguments = started(parser)
    dataset = grb.load_dataset(arguments.dataset)
    done = read_done(arguments.done, ("scenario", "model", "method", "queries", "answers", "repeat"))
    methods = arguments.methods.split(",") if arguments.methods else METHODS[arguments.scenario]
    for repeat in range(arguments.repeats):
        for name in arguments.models.split(","):
            model = None
            for method in methods:
                asking = method in ASKING
                numbers = arguments.queries.split(",") if asking else ["0"]
                for queries in map(int, numbers[:1] if method.startswith("distil") else numbers):
                    for answers in arguments.answers.split(",") if asking else ["none"]:
                        key = (arguments.scenario, name, method, str(queries), answers, str(repeat))
                        if key in done:
                            continue
                        model = model or victim(name, dataset, repeat, arguments.victims)
                        one(dataset, model, key)


def victim(name: str, dataset: Dataset, seed: int, directory: Path | None, **training: int) -> nn.Module:
    parts = [dataset.name, name, str(seed), *(f"{key}={value}" for key, value in training.items())]
    file = directory and directory / f"{'-'.join(parts)}.safetensors"
    if file is not None and file.exists():
        return grb.load_model(file)
    model = grb.train(name, dataset, seed=seed, **training)  # type: ignore[arg-type]
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        grb.save_model(model, file)
    return model


def one(dataset: Dataset, model: object, key: tuple[str, ...]) -> None:
    scenario, name, method, queries, answers, repeat = key
    threat = default_threat_model(scenario, dataset, "full")
    if method in ASKING:
        threat = replace(threat, queries=int(queries), answers=answers)
    knowledge = "query" if method in ASKING else "white-box"
    begun = time.process_time()
    result = grb.run_attack(
        build_attack(method, dataset.name), model, dataset, threat=threat, knowledge=knowledge, seed=int(repeat)
    )
    seconds = time.process_time() - begun
    row(
        dataset=dataset.name,
        scenario=scenario,
        model=name,
        method=method,
        queries=queries,
        answers=answers,
        repeat=repeat,
        used=result.queries or 0,
        clean=round(100 * grb.evaluate(model, dataset)["full"], 2),
        accuracy=round(100 * grb.evaluate(model, dataset, result)["full"], 2),
        cpu=round(seconds, 1),
    )


def read_done(file: Path | None, names: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The rows of a file by some of their columns; lines of headers are none."""
    if file is None or not file.exists():
        return set()
    with file.open() as stream:
        lines = list(csv.DictReader(line for line in stream if line.strip()))
    return {tuple(line[name] for name in names) for line in lines if line[names[0]] != names[0]}


if __name__ == "__main__":
    main()
