"""Every public dataset whose raw files are here loads, is perturbed in all of the paper's ways, and trains."""

from __future__ import annotations

import math

import pytest
import torch

from grb import load_dataset
from grb.catalogue import entries
from grb.dataset.registry import SOURCES, find
from grb.errors import DataError
from grb.graph import CompleteAdjacency
from grb.perturb import build_perturbation
from grb.pipeline import Spec
from grb.pipeline.profile_job import profiling_method
from grb.taxonomy import paper_perturbations
from grb.trainer.profile import fit_profile


def at_hand() -> list[str]:
    found = []
    for name in entries("dataset"):
        if name in SOURCES:
            try:
                find(name)
                found.append(name)
            except DataError:
                continue
    return found


# fragments of a large graph in all three radii say no more than those of one
SKIPPED = {"Frag-k2", "Frag-k3"}


@pytest.mark.slow
@pytest.mark.parametrize("name", at_hand())
def test_a_dataset_loads_is_perturbed_and_trains_one_epoch(name: str, record_property) -> None:
    dataset = load_dataset(name)
    collection = dataset.graph.ptr is not None
    last = dataset.graph
    for perturbation in paper_perturbations(collection=collection):
        if perturbation in SKIPPED:
            continue
        last = build_perturbation(perturbation)(dataset.graph, torch.Generator().manual_seed(0))
        assert last.n == dataset.num_nodes and last.y is dataset.graph.y
        if not isinstance(last.adj, CompleteAdjacency):
            assert last.num_edges <= dataset.num_edges
    method = profiling_method(Spec("gcn", {"epochs": 1}), dataset)
    done = fit_profile(dataset.graph, dataset.split, method, task=dataset.task, classes=dataset.num_classes, seed=0)
    assert 0 <= done.auroc <= 1 and math.isfinite(done.history[0].loss)
    record_property("counted", f"{name}: AUROC {done.auroc:.3f} after one epoch")
