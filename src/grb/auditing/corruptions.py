"""The thirteen perturbations of the taxonomy as corruptions: what a model loses when nobody attacks and data is just worse."""

from __future__ import annotations

import time
from typing import Any

from torch import nn

from grb.auditing.curve import value_of
from grb.auditing.victim import answers
from grb.dataset import Dataset
from grb.metric import Metric
from grb.names import perturbation_parts
from grb.perturb import build_perturbation
from grb.pipeline.profile_job import OTHER_FEATURES, perturb
from grb.pipeline.spec import Spec

NAMES = (
    "NoNodeFtrs", "NodeDeg", "RandFtrs", "NoEdges", "FullyConn", "LowPass", "MidPass", "HighPass",
    "RandRewire", "Frag-k1", "Frag-k2", "Frag-k3", "FiedlerFrag",
)  # fmt: skip
# these look at all eigenvectors, or at all pairs of nodes
COSTLY = ("LowPass", "MidPass", "HighPass", "FullyConn", "FiedlerFrag")
MOST_NODES = 5_000


def corrupted(name: str, model: nn.Module, dataset: Dataset, metric: Metric, *, seed: int) -> dict[str, Any]:
    """The metric under one perturbation, or the reason why there is none.

    Features that a perturbation replaces are of another number, so that a trained model cannot read them.
    """
    title = build_perturbation("+".join(perturbation_parts(name))).title
    row: dict[str, Any] = {"name": title, "value": None, "reason": ""}
    parts = perturbation_parts(name)
    if any(part in OTHER_FEATURES for part in parts):
        return {**row, "reason": "replaces the features by other ones, which a trained model cannot read"}
    if name in COSTLY and dataset.num_nodes > MOST_NODES:
        return {**row, "reason": f"costs too much on more than {MOST_NODES} nodes"}
    start = time.process_time()
    try:
        graph = perturb(dataset, dataset.graph, Spec("+".join(parts)), seed)
        logits = answers(model, graph, dataset)
        row["value"] = value_of(metric, logits[dataset.index_test], dataset.labels[dataset.index_test])
    except Exception as error:  # the model may raise anything on a graph that it has never seen
        row["reason"] = (str(error).splitlines() or ["failed"])[0][:200]
    return {**row, "cpu_seconds": round(time.process_time() - start, 3)}
