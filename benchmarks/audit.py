"""How long does an audit of a large fraud graph take, and how much memory?

A generated graph of accounts at 1:50, a GCN trained with class weights, the recall of the fraud accounts under five budgets of
injected accounts and five of changed edges, with the accounts that fall first. Prints one CSV row.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import torch
from scipy.sparse import coo_array

import grb
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
    chosen = parser.parse_args()
    start, cpu = time.perf_counter(), time.process_time()
    dataset = fraud_graph(chosen.nodes, chosen.edges)
    made = time.process_time()
    model = grb.train(
        "gcn", dataset, epochs=chosen.epochs, class_weights="balanced", metric="f1:1", hidden_features=[32]
    )
    trained = time.process_time()
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
        on_progress=lambda line: print(f"# {time.process_time() - cpu:.0f} s, {_peak():.0f} MB: {line}", flush=True),
    )
    done = time.process_time()
    print("#", report.headline)
    print("nodes,edges,threads,make_cpu_s,train_cpu_s,audit_cpu_s,wall_s,peak_mb")
    print(
        f"{chosen.nodes},{dataset.num_edges},{torch.get_num_threads()},{made - cpu:.0f},{trained - made:.0f},"
        f"{done - trained:.0f},{time.perf_counter() - start:.0f},{_peak():.0f}"
    )


if __name__ == "__main__":
    main()
