"""Hypothesis profiles, and an environment in which no test writes into the home directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ci", max_examples=300, deadline=None, derandomize=True)
settings.register_profile("stress", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# at import, because skip conditions such as helpers.needs_grb_cora are evaluated while test files are imported
_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
if "GRB_DATA" not in os.environ and _DATA.is_dir():
    os.environ["GRB_DATA"] = str(_DATA)

# one home per process, so that xdist workers do not meet in it; subprocesses of a test inherit it
_HOME = tempfile.mkdtemp(prefix="grb-tests-")
os.environ["GRB_HOME"] = _HOME
# no test asks the outside for a dataset; those of the downloader unset it and talk to a server on loopback
os.environ["GRB_OFFLINE"] = "1"
os.environ.pop("GRB_MIRROR", None)


@pytest.fixture(autouse=True)
def no_job_times_of_other_tests() -> None:
    """Plans guess by what this machine has run before: every test starts on a machine that has run nothing."""
    Path(_HOME, "job-times.json").unlink(missing_ok=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(_HOME, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    gpu = [item for item in items if "gpu" in item.keywords]
    if not gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests counted, under ``record_property("counted", ...)``, so that the log of a stress run tells it."""
    for report in terminalreporter.getreports("passed"):
        for name, sentence in report.user_properties:
            if name == "counted" and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {sentence}")
