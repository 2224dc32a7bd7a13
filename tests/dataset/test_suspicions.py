"""Imbalance, leakage and duplicates are named; an honest dataset is left in peace."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

import grb
from grb.dataset import Dataset
from grb.dataset.suspicions import suspicions


def made(n: int = 200, *, share: float = 0.5, leak: bool = False, twice: bool = False) -> Dataset:
    rng = np.random.default_rng(0)
    y = (np.arange(n) < round((1 - share) * n)).astype(int)
    x = rng.normal(size=(n, 3)) + 0.5 * y[:, None]
    if leak:
        x[:, 1] = 10 * y + rng.random(n)
    u, v = rng.integers(0, n, 600), rng.integers(0, n, 600)
    order = rng.permutation(n)
    split = {"train": order[:120], "test": order[120:]}
    if twice:
        a, b = int(order[0]), int(order[150])
        x[b] = x[a]
        y[b] = y[a]
        keep = (u != b) & (v != b) & (u != a) & (v != a)
        u, v = np.concatenate([u[keep], [a, b]]), np.concatenate([v[keep], [order[5], order[5]]])
    adj = coo_array((np.ones(len(u)), (u, v)), shape=(n, n))
    return Dataset.from_arrays(adj, x, y, split=split)


def test_an_honest_dataset_is_left_in_peace() -> None:
    assert suspicions(made()) == []
    assert suspicions(grb.load_dataset("synth-cora")) == []


def test_each_trap_is_named_by_itself() -> None:
    (found,) = suspicions(made(share=0.95))
    assert "95.0 %" in found and "recall:1" in found
    (found,) = suspicions(made(leak=True))
    assert "'1'" in found and "leakage" in found
    (found,) = suspicions(made(twice=True))
    assert "1 test nodes have features and neighbours of a training node" in found


def test_data_check_says_so(tmp_path) -> None:
    from typer.testing import CliRunner

    from grb.cli.app import app

    rows = "".join(f"a{i},{i % 7},{int(i % 50 == 0)},{int(i % 50 == 0)}\n" for i in range(200))
    (tmp_path / "nodes.csv").write_text(f"konto,amount,flagged,fraud\n{rows}", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("von,an\n" + "".join(f"a{i},a{(i * 7 + 1) % 200}\n" for i in range(200)))
    words = ["--id", "konto", "--label", "fraud", "--source", "von", "--target", "an"]
    done = CliRunner().invoke(app, ["data", "check", str(tmp_path), *words])
    assert done.exit_code == 0, done.stderr
    shown = " ".join(done.output.split())
    assert "98.0 % of the nodes" in shown and "'flagged'" in shown and "leakage" in shown
