"""Does every benchmark still run? All of them at a tiny size in one process; what they print means nothing.

    python benchmarks/tiny.py [FILE ...]

Graphs have 300 nodes, datasets are the embedded ones, trainings two epochs, nothing is repeated, and results go into a
temporary directory. One line per file with its CPU seconds; the exit code is 1 if one failed. ``GRB_BENCH_TINY=1`` in the
environment makes any single benchmark tiny, as far as it takes its graphs and clocks from ``common.py``.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SWITCH = "GRB_BENCH_TINY"
# parts of others, a file that writes the pages of the documentation, and datasets that only the command line uses
PARTS = {"bench", "citation", "common", "families", "other_domains", "report", "results", "scalable", "tiny"}
# how each is called; OUT is a temporary directory
ARGUMENTS = {
    "accuracy": "--seeds 1 --models gcn",
    "attention": "cora",
    "audit": "--nodes 400 --edges 800 --epochs 2 --accounts 2 --changes 4",
    "certificates": "cost",
    "certificates_attacked": "grb-cora --scenario injection --victims mlp --quick",
    "datasets": "mutag --epochs 1",
    "detectors": "grb-cora --seeds 1 --steps 2 --attacks fgsm",
    "defended": "",
    "defense_memory": "cora --defenses gcn pro-gnn",
    "defense": "--part training --models gcn --rounds 1",
    "edge_lists": "",
    "evolution_edges": "--seeds 1 --attacks pr-bcd",
    "gin": "--models gin --seeds 1 --epochs 3 --at-epochs 3",
    "graph_queries": "--methods grabnel --queries 2 --answers scores --repeats 1",
    "graphs": "",
    "hardware": "",
    "hours": "grb-flickr",
    "injection": "cora --models gcn,gcnguard --repeats 1",
    "kernel": "cora --widths 8",
    "local_edges": "--splits 1 --targets 2 --victims gcn",
    "links": "--epochs 2 --seeds 1 --ratios 0.05",
    "modification": "cora --only FLIP --repeats 1",
    "modification_strength": "grb-cora --seeds 1",
    "original": "--data OUT --dataset synth-tiny --seeds 1 --epochs 2 --steps 2 --save OUT/weights",
    "page": "--defenses 3 --attacks 2 --repeats 2",
    "perturb": "small --ours --repeats 1",
    "pipeline": "--repeats 1 --directory OUT",
    "profiling": "enzymes --repeats 1",
    "pyg_edges": "grb-cora --seeds 1 --epochs 2",
    "queries": "--models gcn --queries 5 --repeats 1 --answers scores",
    "relaxed_edges": "",
    "replay": "OUT/pool cora --attack nettack --only theirs --seeds 1",
    "robust_diffusion": "--seeds 1 --epochs 2 --attacks lr-bcd",
    "road": "OUT/road",
    "stopping": "OUT/courses.jsonl --replay",
    "store": "--records 50",
    "submission": "--edges 1000",
    "train": "cora --epochs 2 --repeats 1 --plain",
    "transfer": "--repeats 1 --iterations 2 --modes full",
    "transfer_hao": "--victims gcn --weights 0,1 --steps 2 --seeds 0",
    "tune": "--studies 1 --trials 2 --epochs 2",
    "worst_case": "gcn --attacks clean fgsm",
    "worst_case_edges": "cora --victims gcn --labels true --budgets 0.05 --quick",
    "worst_case_memory": "cora --steps 1",
}

POINT = '{{"epoch": {0}, "loss": 0.5, "val_loss": 0.5, "val_auroc": 0.7, "lr": 0.01, "auroc": 0.6}}'
COURSE = (
    '{"triple": "synth-tiny:-:0", "single": true, "cpu_seconds": 1.0, "points": ['
    + ", ".join(POINT.format(epoch) for epoch in range(3))
    + "]}\n"
)


def shrink() -> None:
    """Make graphs, datasets and trainings of the benchmarks tiny in this process."""
    import citation
    import common
    import results
    import scalable

    import grb
    from grb import dataset as datasets
    from grb.dataset import pool

    small = scalable.Size(300, 700, 16, 3, homophily=0.8, tail=2.1, heaviest=30, evenness=1.8)
    scalable.SIZES.update(dict.fromkeys(scalable.SIZES, small))
    common.sized_arrays = lambda name: vars(scalable.named_graph(name))
    once = common.best
    common.best = lambda run, repeats=1, *, cpu=False: once(run, 1, cpu=cpu)
    whole = datasets.load_dataset

    @wraps(whole)
    def load(name: str, **options: Any) -> Any:
        from grb.dataset.registry import SOURCES

        collection = name in SOURCES and SOURCES[name].task == "graph"
        options.pop("data_dir", None)
        return whole(name if name.startswith("synth") else "synth-graphs" if collection else "synth-tiny", **options)

    for home in (grb, datasets):
        home.load_dataset = load  # type: ignore[attr-defined]
    for name in ("train", "train_with_history"):
        setattr(grb, name, few_epochs(getattr(grb, name)))
    citation.largest_component = citation.cora_ml = lambda *_: load("synth-tiny")
    citation.trained = lambda recipe, dataset, seed: grb.train("gcn", dataset, seed=seed)
    grb.run_attack = few_steps(grb.run_attack)
    pool.read_pool = lambda folder, name: attacked(load("synth-tiny"))
    home = Path(tempfile.mkdtemp(prefix="grb-tiny-"))
    os.environ["GRB_HOME"] = str(home / "home")  # tiny models must not be taken for true ones later
    kept = results.Results.__init__
    results.Results.__init__ = lambda self, path, key: kept(self, home / Path(path).name, key)


def attacked(dataset: Any) -> Any:
    """A pool with one graph from which an edge is missing."""
    from grb.dataset.pool import AttackedGraph, Pool
    from grb.graph import GraphEdit

    edit = GraphEdit(dataset.graph.n, drop=dataset.graph.adj.edges()[:, :1])
    return Pool(dataset, (AttackedGraph("attacked", edit, "nettack", 1.0, dataset.index_test[:2]),), {})


def few_epochs(train: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(train)
    def call(*args: Any, **options: Any) -> Any:
        return train(*args, **{**options, "epochs": min(options.get("epochs", 2), 2)})

    return call


def few_steps(run_attack: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run_attack)
    def call(attack: Any, *args: Any, **options: Any) -> Any:
        if is_dataclass(attack) and hasattr(attack, "steps"):
            attack = replace(attack, steps=2)
        elif attack in ("fgsm", "pgd", "speit", "tdgia", "pr-bcd", "gr-bcd", "pgd-topology"):
            options = {"iterations": 2, **options}
        return run_attack(attack, *args, **options)

    return call


def run(name: str, out: Path) -> str | None:
    """Run one file; the traceback if it fails."""
    given = ARGUMENTS[name].replace("OUT", str(out)).split()
    before, text = sys.argv, io.StringIO()
    sys.argv = [f"{name}.py", *given]
    try:
        with contextlib.redirect_stdout(text):
            runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    except SystemExit as end:
        return None if end.code in (None, 0) else f"exit {end.code}"
    except Exception:
        return traceback.format_exc()
    finally:
        sys.argv = before
    return None


def cpu_seconds() -> float:
    """CPU time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def files() -> Iterator[str]:
    """Names of all benchmarks."""
    for path in sorted(HERE.glob("*.py")):
        if path.stem not in PARTS:
            yield path.stem


def main() -> int:
    os.environ[SWITCH] = "1"
    sys.path.insert(0, str(HERE))
    importlib.import_module("common")
    failed = []
    with tempfile.TemporaryDirectory() as out:
        (Path(out) / "courses.jsonl").write_text(COURSE)
        for name in sys.argv[1:] or files():
            start = cpu_seconds()
            problem = run(name, Path(out)) if name in ARGUMENTS else "benchmarks/tiny.py does not say how it is called"
            print(f"{name} {'ok' if problem is None else 'failed'} {cpu_seconds() - start:.1f}", flush=True)
            if problem is not None:
                print(problem, file=sys.stderr, flush=True)
                failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
