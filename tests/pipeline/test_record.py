"""What two computations of one job may differ in."""

from __future__ import annotations

from grb.pipeline.record import without_clocks


def test_clocks_do_not_count_at_any_depth() -> None:
    """An ensemble's trials are a list, and each has its own clock."""
    found = {"cpu_seconds": 1.0, "trials": [{"name": "pgd", "cpu_seconds": 0.5}], "loss": [0.1, 0.2]}
    assert without_clocks(found) == {"trials": [{"name": "pgd"}], "loss": [0.1, 0.2]}
