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
    parts = {"bench", "citation", "common", "families", "other_domains", "report", "results", "scalable", "tiny"}
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


def test_all_benchmarks_together_take_at_most_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import bench
    import tiny

    assert set(bench.CALLS) == set(tiny.files())
    last = bench.CALLS["hardware"]
    assert sum(call.seconds for calls in (*bench.CALLS.values(), last) for call in calls) <= bench.HOUR


def test_what_crashes_hangs_or_lacks_its_data_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import bench

    for name, code in {
        "fine": "print('a,b')",
        "bad": "raise SystemExit(3)",
        "slow": "import time; time.sleep(60)",
    }.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.setattr(bench, "HERE", tmp_path)
    monkeypatch.setenv("GRB_DATA", "")
    names = {"fine": 60, "bad": 60, "slow": 1}
    ends = [bench.run(name, bench.Call(seconds=seconds), tmp_path) for name, seconds in names.items()]
    assert ends == ["ok", "crashed with exit code 3", "stopped after 1 s"]
    assert bench.run("fine", bench.Call(needs="grb-corra"), tmp_path).startswith("left out: ")
    assert bench.run("fine", bench.Call("POOL"), tmp_path) == "left out: POOL is not below $GRB_DATA"
    assert "# fine.py \na,b\n" in capfd.readouterr().out
