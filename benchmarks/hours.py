"""How many hours would the boards of Tables 15 to 17 take on a cluster, by the plan's guesses and jobs done on paper?

    python benchmarks/hours.py [grb-flickr grb-aminer grb-reddit] [--workers 2,8,32,128]

The jobs are those of the recipe, planned on synth-cora, because they do not depend on the dataset; their costs are guessed from
its true size, per job, and nothing is run. ``longest_h`` is the longest job: more workers than ``core_h`` divided by it gain
nothing. Recipes as they are and with ``--quick``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from common import TINY, row
from scalable import SIZES

from grb.pipeline import Recipe, Store, plan_study, read_recipe
from grb.pipeline.estimate import seconds_of
from grb.pipeline.simulate import wall_seconds
from grb.pipeline.study import DatasetSize


def hours(recipe: Recipe, size: DatasetSize, workers: list[int]) -> dict[str, float]:
    """Core hours, hours of the longest job, and hours by the clock on each number of workers."""
    study = plan_study(replace(recipe, dataset="synth-tiny" if TINY else "synth-cora"))
    study = replace(study, sizes=dict.fromkeys(study.sizes, size))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRB_HOME"] = folder  # what this machine remembers of small graphs says nothing here
        seconds = seconds_of(study, Store(Path(folder) / "store"))
    found = {"jobs": len(seconds), "core_h": sum(seconds.values()) / 3600, "longest_h": max(seconds.values()) / 3600}
    return found | {f"on_{count}_h": wall_seconds(study, seconds, count) / 3600 for count in workers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="*", default=["grb-flickr", "grb-aminer", "grb-reddit"])
    parser.add_argument("--workers", default="2,8,32,128")
    given = parser.parse_args()
    for name in given.recipes:
        size = SIZES[name.removeprefix("grb-")]
        for kind, recipe in (("whole", read_recipe(name)), ("quick", read_recipe(name).quickly())):
            workers = [int(word) for word in given.workers.split(",")]
            found = hours(recipe, DatasetSize(size.nodes, size.edges, size.features), workers)
            row(recipe=name, variant=kind, **found)


if __name__ == "__main__":
    main()
