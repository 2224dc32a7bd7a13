"""Every benchmark runs at a tiny size, without any dataset on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from grb.graph import CSR, Pattern

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What the run of all of them told: name, outcome, CPU seconds."""
    folder = tmp_path_factory.mktemp("benchmarks")
    own = {"GRB_DATA": "", "GRB_HOME": str(folder), "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "tiny.py")],
        capture_output=True,
        text=True,
        env={**os.environ, **own},
        cwd=folder,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return [line.split() for line in done.stdout.splitlines()]


def test_every_file_runs_at_a_tiny_size(lines: list[list[str]]) -> None:
    parts = {"citation", "common", "families", "other_domains", "report", "results", "scalable", "tiny"}
    assert {name for name, *_ in lines} == {path.stem for path in BENCHMARKS.glob("*.py")} - parts
    assert {outcome for _, outcome, _ in lines} == {"ok"}


def test_a_smoke_run_costs_less_than_a_minute(lines: list[list[str]]) -> None:
    assert sum(float(seconds) for *_, seconds in lines) < 60


def test_the_bound_of_the_kernel_is_what_any_product_has_to_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    from kernel import compulsory_bytes

    starts, ends = torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([0, 0, 2], dtype=torch.int32)
    op = CSR(Pattern(starts, ends, 4), torch.ones(3))
    # 3 starts, 3 columns and 3 values of 4 bytes; 4 rows of 5 numbers in, 2 out
    assert compulsory_bytes(op, torch.zeros(4, 5)) == 4 * (3 + 3 + 3) + 4 * 5 * (4 + 2)
