"""How long does an audit of a large fraud graph take, and how much memory?

A generated graph of accounts at 1:50, a GCN trained with class weights, the recall of the fraud accounts under five budgets of
injected accounts and five of changed edges, with the accounts that fall first. Prints the curves and one CSV row. With
``--store`` an interrupted run goes on, and the row counts the seconds of all its parts. ``--large 0`` leaves out on a small
graph what quick audits leave out on large ones: what that costs is the difference of the curves.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import coo_array

import grb
from grb.auditing import attacks
from grb.dataset import Dataset


def fraud_graph(n: int, m: int, seed: int = 0) -> Dataset:
    """Accounts with eight features and payments between them; frauds pay each other more often than chance."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.02).astype(np.int64)
    x = (rng.normal(size=(n, 8)) + 0.7 * y[:, None]).astype(np.float32)
    frauds = np.flatnonzero(y)
    u, v = rng.integers(n, size=m), rng.integers(n, size=m)
    own = y[u] == 1
    v[own] = np.where(rng.random(own.sum()) < 0.5, rng.choice(frauds, own.sum()), v[own])
    adj = coo_array((np.ones(m, dtype=np.float32), (u, v)), shape=(n, n))
    order = rng.permutation(n)
    parts = {"train": order[: n // 2], "val": order[n // 2 : n * 6 // 10], "test": order[n * 6 // 10 :]}
    return Dataset.from_arrays(adj + adj.T, x, y, split=parts, name="fraud")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Spent:
    """CPU seconds, seconds by the clock and the peak memory of this run and of those that it goes on from.

    Args:
        store: Directory of the steps, if there is one.
    """

    def __init__(self, store: str | None) -> None:
        self.file = None if store is None else Path(store) / "spent.txt"
        self.start, self.cpu = time.perf_counter(), time.process_time()
        known = self.file is not None and self.file.is_file()
        self.before = json.loads(self.file.read_text()) if self.file is not None and known else [0.0, 0.0, 0.0, 0]

    def now(self) -> list[float]:
        """Written beside the steps: CPU seconds, seconds, megabytes at most, number of runs."""
        own = [time.process_time() - self.cpu, time.perf_counter() - self.start]
        sums = [self.before[0] + own[0], self.before[1] + own[1], max(self.before[2], _peak()), self.before[3] + 1]
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(sums))
        return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500_000)
    parser.add_argument("--edges", type=int, default=3_000_000)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--store", help="Directory of the steps: a run that was interrupted goes on there.")
    parser.add_argument("--accounts", type=int, nargs="*", default=[10, 30, 100, 300, 1000], help="injected")
    parser.add_argument("--changes", type=int, nargs="*", default=[30, 100, 300, 1000, 3000], help="of edges")
    parser.add_argument("--scenario", default="injection,modification", help="One of them for a shorter run.")
    parser.add_argument("--no-corruptions", action="store_true", help="Leave the corruptions out.")
    parser.add_argument("--large", type=int, help="Nodes beyond which quick audits look at fewer pairs of nodes.")
    chosen = parser.parse_args()
    if chosen.large is not None:
        attacks.LARGE = chosen.large
    spent = Spent(chosen.store)

    def tell(line: str) -> None:
        cpu_s, _, peak, _ = spent.now()
        print(f"# {cpu_s:.0f} s, {peak:.0f} MB: {line}", flush=True)

    dataset = fraud_graph(chosen.nodes, chosen.edges)
    tell("training")
    model = grb.train(
        "gcn", dataset, epochs=chosen.epochs, class_weights="balanced", metric="f1:1", hidden_features=[32]
    )
    report = grb.audit(
        model,
        dataset,
        metrics="recall:1,precision:1",
        effort="quick",
        surrogates=(),
        budgets={"injection": chosen.accounts, "modification": chosen.changes},
        scenarios=chosen.scenario.split(","),
        corrupt=not chosen.no_corruptions,
        store=chosen.store,
        on_progress=tell,
    )
    cpu_s, wall_s, peak, runs = spent.now()
    print("#", report.headline)
    for each in report.values["scenarios"]:
        curve = ", ".join(f"{point['budget']}: {point['value']:.3f} ({point['attack']})" for point in each["points"])
        print(f"# {each['scenario']}: {curve}; {len(each['vulnerable'])} accounts listed that fall first")
    print("nodes,edges,threads,cpu_s,wall_s,peak_mb,runs")
    print(f"{chosen.nodes},{dataset.num_edges},{torch.get_num_threads()},{cpu_s:.0f},{wall_s:.0f},{peak:.0f},{runs}")


if __name__ == "__main__":
    main()
