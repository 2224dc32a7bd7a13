"""All benchmarks within an hour on two cores, at sizes and with repetitions that fit; `make bench` runs this.

    python benchmarks/bench.py [--list] [FILE ...]

One after the other on one thread, each with a limit of seconds by which it is stopped; together they cannot take more than an
hour. A benchmark whose datasets are not on this machine is left out. The bounds of the machine are printed first and last:
seconds of runs between which these differ cannot be compared, ratios can. Rows of long studies go to a temporary directory and
not to docs/results. What happened to each file is said at the end; the exit code is 1 if one crashed.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
HOUR = 3600


class Call(NamedTuple):
    """How a benchmark is called here: arguments, datasets that it needs, seconds after which it is stopped."""

    arguments: str = ""
    needs: str = ""
    seconds: int = 60


# OUT is a temporary directory; the studies of strength have one seed and few attacks here, their commands in docs/results all
CALLS: dict[str, list[Call]] = {
    "hardware": [Call(seconds=20)],
    "kernel": [Call("cora flickr --widths 128", seconds=90)],
    "attention": [Call("flickr", seconds=60)],
    "train": [
        Call("cora --plain --repeats 3", seconds=40),
        Call("cora --models gat,gin,appnp,tagcn,graphsage,sgcn,mlp --repeats 1 --epochs 10", seconds=60),
        Call("flickr --repeats 1 --epochs 1", seconds=90),
    ],
    "injection": [
        Call("cora --models gcn,gat,gatguard,egnnguard", seconds=60),
        Call("flickr --repeats 2", seconds=120),
    ],
    "modification": [
        Call("cora --repeats 1", seconds=90),
        Call("flickr --only BCD --repeats 1", seconds=120),
    ],
    "defense": [Call("--part training --models gcn,gat,gin --rounds 2", "grb-cora", 120)],
    "defense_memory": [Call("cora", "grb-cora", 120)],
    "profiling": [Call("enzymes --repeats 2", "enzymes", 60)],
    "perturb": [Call("small --repeats 1", seconds=120)],
    "pipeline": [Call("--repeats 20", seconds=60)],
    "submission": [Call("--edges 2000000", seconds=60)],
    "store": [Call("--records 20000", seconds=120)],
    "page": [Call("--defenses 20 --attacks 10 --repeats 5", seconds=80)],
    "hours": [Call(seconds=60)],
    "road": [Call(seconds=60)],
    "edge_lists": [Call(seconds=60)],
    "audit": [Call("--nodes 20000 --edges 120000 --accounts 10 100 --changes 30 --no-corruptions", seconds=120)],
    "worst_case_memory": [Call("cora --steps 1", seconds=90)],
    "certificates": [Call("cost", "grb-cora", 80)],
    "accuracy": [Call("--seeds 1 --models gcn,mlp", "grb-cora", 70)],
    "certificates_attacked": [Call("grb-cora --scenario injection --victims mlp --quick", "grb-cora", 60)],
    "datasets": [Call("synth-cora synth-graphs", seconds=60)],
    "defended": [Call(seconds=30)],
    "detectors": [Call("grb-cora --seeds 1 --steps 10 --attacks fgsm", "grb-cora", 60)],
    "evolution_edges": [Call("--seeds 1 --attacks pr-bcd --budgets 0.01", "citationfull-cora-ml", 80)],
    "gin": [Call("--models gin --seeds 1 --epochs 100 --at-epochs 20", "grb-cora", 60)],
    "graph_queries": [Call("--methods random-search --queries 10 --answers scores --repeats 1", "mutag", 60)],
    "graphs": [Call(seconds=30)],
    "links": [Call("--epochs 50 --seeds 1 --ratios 0.05", "planetoid-cora", 70)],
    "local_edges": [Call("--splits 1 --targets 3 --victims gcn", "planetoid-cora", 70)],
    "modification_strength": [Call("grb-cora --seeds 1", "grb-cora", 80)],
    "original": [
        Call("--data DATA --seeds 1 --epochs 100 --steps 50 --save OUT/weights", "grb-cora", 70),
    ],
    "pyg_edges": [Call("grb-cora --seeds 1 --epochs 5", "grb-cora", 80)],
    "queries": [Call("--models gcn --queries 100 --answers scores --repeats 1", "grb-cora", 80)],
    "relaxed_edges": [Call("--splits 1", "planetoid-cora", 80)],
    "replay": [Call("POOL cora --attack nettack --only theirs --seeds 1", "planetoid-cora", 60)],
    "robust_diffusion": [Call("--seeds 1 --epochs 10 --attacks lr-bcd", "planetoid-cora", 70)],
    "stopping": [Call("OUT/courses.jsonl enzymes:NoNodeFtrs:0", "enzymes", 70)],
    "transfer": [Call("--repeats 1 --iterations 10 --modes full", "grb-cora", 70)],
    "transfer_hao": [Call("--victims gcn --weights 0,1 --steps 20 --seeds 0", "grb-cora", 60)],
    "tune": [Call("--studies 1 --trials 2 --epochs 30", "grb-cora", 60)],
    "worst_case": [Call("gcn --attacks clean fgsm tdgia", "grb-cora", 80)],
    "worst_case_edges": [
        Call("cora --victims gcn --labels true --budgets 0.05 --quick", "planetoid-cora", 80),
    ],
}


def missing(needs: str) -> str:
    """Why a dataset cannot be had on this machine; empty if it can."""
    from grb.dataset.facts import dataset_facts
    from grb.errors import GRBError

    try:
        for name in needs.split():
            dataset_facts(name)
    except GRBError as error:
        return " ".join(str(error).split())
    return ""


def run(name: str, call: Call, out: Path) -> str:
    """Run one call and say how it ended: ``ok``, ``stopped``, ``left out`` or ``crashed``."""
    if reason := missing(call.needs):
        return f"left out: {reason[:120]}"
    arguments = call.arguments.replace("OUT", str(out)).split()
    for word, folders in (("DATA", _folders()), ("POOL", _folders("Perturbed/ProGNN"))):
        if word in arguments:
            if not folders:
                return f"left out: {word} is not below $GRB_DATA"
            arguments = [folders[0] if each == word else each for each in arguments]
    print(f"# {name}.py {' '.join(arguments)}", flush=True)
    environment = {**os.environ, "GRB_BENCH_RESULTS": str(out / "results"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(HERE / f"{name}.py"), *arguments],
        env={"OMP_WAIT_POLICY": "PASSIVE", **environment},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, complaint = process.communicate(timeout=call.seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"stopped after {call.seconds} s"
    if process.returncode:
        print(complaint[-2000:], file=sys.stderr, flush=True)
        return f"crashed with exit code {process.returncode}"
    return "ok"


def _folders(part: str = "") -> list[str]:
    """Directories of $GRB_DATA that have a part."""
    places = [Path(each) / part for each in os.environ.get("GRB_DATA", "").split(os.pathsep) if each]
    return [str(place) for place in places if place.is_dir()]


def cpu_seconds() -> float:
    """CPU time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    chosen = [name for name in sys.argv[1:] if name != "--list"] or list(CALLS)
    if unknown := [name for name in chosen if name not in CALLS]:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(CALLS)}", file=sys.stderr)
        return 2
    if "--list" in sys.argv:
        for name in chosen:
            for call in CALLS[name]:
                print(f"{name}.py {call.arguments}".strip(), f"# at most {call.seconds} s")
        return 0
    ends: list[tuple[str, str, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="grb-bench-") as folder:
        for name in chosen:
            for call in CALLS[name]:
                start, before = time.perf_counter(), cpu_seconds()
                how = run(name, call, Path(folder))
                spent = time.perf_counter() - start, cpu_seconds() - before
                ends.append((f"{name}.py {call.arguments}".strip(), how, *spent))
        if len(chosen) > 1:
            run("hardware", CALLS["hardware"][0], Path(folder))
    print("# how they ended")
    for what, how, seconds, cpu in ends:
        print(f"# {seconds:6.1f} s  {cpu:6.1f} CPU s  {how}  {what}")
    return 1 if any(how.startswith("crashed") for _, how, *_ in ends) else 0


if __name__ == "__main__":
    raise SystemExit(main())
