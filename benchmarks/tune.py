"""Does a search find better settings than chance, and settings as good as the paper's?

    python benchmarks/tune.py [--model gcn] [--studies 5] [--trials 50] [--epochs 200] [--storage sqlite:///tune.db] [--table]

Every study searches twice from the same seed, with Optuna's TPE and by chance, the same number of trials each, by validation
accuracy alone. What the TPE found is then trained with five seeds as long as the paper's settings (Table 6) are, and both are
scored on all test nodes. Adds lines to docs/results/tune-<dataset>.jsonl; running again goes on where it stopped.
``--table`` prints what is there instead.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import mean, stdev

from common import options, started
from results import Results

import grb
from grb.automl import tune

SAMPLERS = ("tpe", "random")
SEEDS = 5


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--dataset", default="grb-cora")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--studies", type=int, default=5)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--storage", help="where trials are kept, so that a study may be interrupted")
    parser.add_argument("--table", action="store_true")
    arguments = started(parser)
    path = Path(__file__).parent.parent / "docs" / "results" / f"tune-{arguments.dataset}.jsonl"
    results = Results(path, ("what", "model", "study", "sampler", "seed"))
    if arguments.table:
        print(table(results))
        return
    dataset = grb.load_dataset(arguments.dataset)
    for study in range(arguments.studies):
        for sampler in SAMPLERS:
            search(results, dataset, arguments, study, sampler)
        for seed in range(SEEDS):
            score(results, dataset, arguments.model, study, seed)


def search(results: Results, dataset: grb.Dataset, arguments: argparse.Namespace, study: int, sampler: str) -> None:
    own = {"what": "search", "model": arguments.model, "study": study, "sampler": sampler, "seed": study}
    if results.has(**own):
        return
    found = tune(
        arguments.model,
        dataset,
        trials=arguments.trials,
        epochs=arguments.epochs,
        seed=study,
        sampler=sampler,  # type: ignore[arg-type]
        storage=arguments.storage,
    )
    results.add(
        **own,
        trials=len(found.trials),
        pruned=sum(each.state == "pruned" for each in found.trials),
        epochs=arguments.epochs,
        validation=round(100 * (found.best.score or 0.0), 4),
        settings={name: value for name, value in found.settings.items() if name != "epochs"},
        seconds=round(sum(each.seconds for each in found.trials), 1),
    )


def score(results: Results, dataset: grb.Dataset, model: str, study: int, seed: int) -> None:
    """What the TPE found and the paper's settings, trained alike, on all test nodes."""
    (chosen,) = results.select(what="search", model=model, study=study, sampler="tpe")
    for sampler, settings in (("tpe", chosen["settings"]), *([("paper", {})] if study == 0 else [])):
        own = {"what": "test", "model": model, "study": study, "sampler": sampler, "seed": seed}
        if not results.has(**own):
            trained = grb.train(model, dataset, seed=seed, **settings)
            results.add(**own, full=round(100 * grb.evaluate(trained, dataset)["full"], 4))


def table(results: Results) -> str:
    lines = ["| model | search | mean best validation accuracy | test accuracy, all nodes |", "|---|---|---|---|"]
    for model in dict.fromkeys(row["model"] for row in results.rows):
        for sampler in (*SAMPLERS, "paper"):
            found = [row["validation"] for row in results.select(what="search", model=model, sampler=sampler)]
            tests = [row["full"] for row in results.select(what="test", model=model, sampler=sampler)]
            lines.append(f"| {model} | {sampler} | {_told(found)} | {_told(tests)} |")
    return "\n".join(lines)


def _told(values: list[float]) -> str:
    """Mean and standard error."""
    if len(values) < 2:
        return "-"
    return f"{mean(values):.2f} ± {stdev(values) / math.sqrt(len(values)):.2f} ({len(values)})"


if __name__ == "__main__":
    main()
