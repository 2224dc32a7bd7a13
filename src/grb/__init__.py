"""Robustness of graph machine learning: attack, defend, evaluate under one enforced threat model; perturb and cluster.

>>> import grb
>>> dataset = grb.load_dataset("synth-tiny")
>>> model = grb.train("gcn", dataset, seed=0, epochs=5)
>>> sorted(grb.evaluate(model, dataset))
['easy', 'full', 'hard', 'medium']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb import _lazy
from grb._version import __version__

if TYPE_CHECKING:
    from grb import perturb
    from grb.api import Scores, certify, detect, evaluate, load_edit, load_model, run_attack, train, train_with_history
    from grb.auditing import audit
    from grb.dataset import Dataset, load_dataset
    from grb.graph import Graph, GraphEdit
    from grb.model.adapters import wrap
    from grb.model.to_pyg import to_pyg
    from grb.trainer import export_model, save_model

__all__ = [
    "Dataset",
    "Graph",
    "GraphEdit",
    "Scores",
    "__version__",
    "audit",
    "certify",
    "detect",
    "evaluate",
    "export_model",
    "load_dataset",
    "load_edit",
    "load_model",
    "perturb",
    "run_attack",
    "save_model",
    "to_pyg",
    "train",
    "train_with_history",
    "wrap",
]
__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **dict.fromkeys(
            ("Scores", "certify", "detect", "evaluate", "load_edit", "load_model", "run_attack"),
            "grb.api",
        ),
        **dict.fromkeys(("train", "train_with_history"), "grb.api"),
        **dict.fromkeys(("Dataset", "load_dataset"), "grb.dataset"),
        **dict.fromkeys(("Graph", "GraphEdit"), "grb.graph"),
        # packages that documentation writes as grb.NAME
        **{name: f"grb.{name}" for name in ("automl", "metric", "model", "perturb", "trainer", "utils")},
        "audit": "grb.auditing",
        **dict.fromkeys(("export_model", "save_model"), "grb.trainer.checkpoint"),
        "to_pyg": "grb.model.to_pyg",
        "wrap": "grb.model.adapters",
    },
)
