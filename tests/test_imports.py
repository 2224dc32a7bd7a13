"""What is imported when: `import grb` costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "torch_geometric", "matplotlib", "networkx", "sklearn", "scipy", "numpy", "yaml", "safetensors")


def imported_after(code: str) -> set[str]:
    """The heavy packages that a new interpreter has imported after running some code."""
    report = f"import sys\n{code}\nprint('imported:', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return set(done.stdout.rpartition("imported:")[2].split())


def test_import_grb_imports_nothing_heavy() -> None:
    assert imported_after("import grb; grb.__version__; dir(grb)") == set()


def test_packages_that_the_guide_names_are_there_after_import_grb() -> None:
    code = (
        "import grb; grb.metric.accuracy, grb.utils.load_weights, grb.trainer.fit, grb.automl.tune, grb.model.torch.GCN"
    )
    assert "torch" in imported_after(code)


@pytest.mark.parametrize(
    "module", ["grb.catalogue", "grb.names", "grb.threat", "grb.errors", "grb.dataset", "grb.dataset.registry"]
)
def test_names_and_places_need_nothing_heavy(module: str) -> None:
    assert imported_after(f"import {module}") == set()


def test_names_of_metrics_are_read_without_torch_and_without_running_code() -> None:
    code = "from grb.metric.names import Metric; print(Metric.parse('no_such_module:thing'), Metric.parse('recall:1'))"
    assert imported_after(code) <= {"numpy"}


def test_training_needs_no_graph_library_and_no_plots() -> None:
    code = """
import numpy as np, scipy.sparse as sp, grb
upper = np.triu(np.ones((20, 20)), 1)
data = grb.Dataset.from_arrays(sp.csr_matrix(upper + upper.T), np.eye(20), np.arange(20) % 2)
grb.evaluate(grb.train("gcn", data, epochs=1), data)
"""
    assert not imported_after(code) & {"torch_geometric", "matplotlib", "networkx", "sklearn"}
