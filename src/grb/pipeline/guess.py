"""What jobs that nobody has measured may cost, from names and sizes; CPU seconds of one core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grb.names import ModelName
from grb.pipeline.record import SUBMISSION
from grb.pipeline.study import DatasetSize

# all numbers are for this many edges, and grow with them
CORA_EDGES = 5_429
# a training epoch of GCN, and how many times longer others take; adversarial epochs attack ten times
FIT_EPOCH, ADVERSARIAL = 0.008, 5.0
SLOW_EPOCH = {
    "gat": 7.0,
    "gatguard": 6.5,
    "softmedian": 5.5,
    "gcnguard": 3.0,
    "grand": 5.5,
    "tagcn": 2.5,
    "r-gcn": 2.3,
    "egnnguard": 2.0,
    "gin": 1.9,
    "graphsage": 4.0,
    "sgcn": 1.4,
    "mlp": 0.5,
}
# epochs until a training ends early, as multiples of its patience
FIT_EPOCHS_OF_PATIENCE = 2.5
USUAL_EPOCHS, USUAL_PATIENCE = 2000, 200
# a step of an attack on GCN; the standard ensembles on it; how many times longer other victims take
ATTACK_STEP, SCORE, SAMPLE = 0.002, 0.02, 0.006
ENSEMBLE = {"auto": 25.0, "auto-edges": 60.0}
SLOW_VICTIM = {
    "gatguard": 16.0,
    "gat": 10.0,
    "softmedian": 9.0,
    "egnnguard": 7.0,
    "gcnguard": 4.0,
    "gcn-svd": 5.0,
    "tagcn": 4.0,
    "r-gcn": 3.5,
    "graphsage": 3.0,
    "sgcn": 1.7,
    "gin": 1.3,
}
SLOW_PREPROCESSING = 4.0
# CPU seconds of a profiling epoch: per step, per node and convolution (of collections, and of single graphs, which train on all
# nodes), and per entry of the adjacency and convolution
EPOCH_STEP = 7e-3
EPOCH_NODE = {"collection": 1.9e-6, "single": 2.8e-6}
EPOCH_ENTRY = 4.4e-8
# how much longer other convolutions take than GCN's
EPOCH_MODEL = {"gin": 1.6, "gin-2l": 1.6, "chebnet": 1.6, "gatedgcn": 5.0, "transformer": 4.0, "gine": 2.5}
# epochs until a training ends early, as multiples of its patience
EPOCHS_OF_PATIENCE = 5


def guessed_seconds(
    kind: str, name: str, attacked: str, length: float, size: DatasetSize, method: Mapping[str, Any]
) -> float:
    """CPU seconds of a job.

    Args:
        kind: Of the job.
        name: Of its method.
        attacked: Name of the model that an attack or a certificate is about; empty if it is unknown.
        length: Epochs of a training, steps of an attack.
        size: Of the dataset.
        method: The job's settings.
    """
    scale = max(size.edges / CORA_EDGES, 0.1)
    if kind == "fit":
        return scale * FIT_EPOCH * length * _slower_training(name)
    if kind == "attack":
        return scale * _slower(attacked) * (ENSEMBLE[name] if name in ENSEMBLE else ATTACK_STEP * length)
    if kind == "certify":  # a forward pass per vote of a smoothed model, or per group
        return scale * SAMPLE * int(method.get("samples", method.get("groups", 30)))
    if kind == "profile":
        return length * profiling_epoch(method, name, size)
    return scale * SCORE


def training_epochs(method: Mapping[str, Any]) -> float:
    """Number of epochs that a training is likely to have, by its settings."""
    settings = method.get("settings", {})
    epochs, patience = settings.get("epochs", USUAL_EPOCHS), settings.get("patience", USUAL_PATIENCE)
    return float(min(epochs, FIT_EPOCHS_OF_PATIENCE * (patience or epochs)))


def profiling_epochs(method: Mapping[str, Any]) -> int:
    """Number of epochs that a profiling run is likely to have."""
    return int(min(method.get("epochs", 300), EPOCHS_OF_PATIENCE * (method.get("patience") or 10**9)))


def profiling_epoch(method: Mapping[str, Any], model: str, size: DatasetSize) -> float:
    """CPU seconds of one epoch of a profiling run; settings that a method does not say have the defaults of collections."""
    kind = "collection" if method.get("batch_norm", True) else "single"
    steps = max(size.graphs / method.get("batch", 64), 1)
    layers = method.get("depth", 5) * EPOCH_MODEL.get(model.casefold(), 1.0)
    return float(EPOCH_STEP * steps + layers * (EPOCH_NODE[kind] * size.nodes + 2 * EPOCH_ENTRY * size.edges))


def _slower_training(name: str) -> float:
    if name == SUBMISSION:
        return 1.0
    parsed = ModelName.parse(name)
    return SLOW_EPOCH.get(parsed.base, 1.0) * (ADVERSARIAL if parsed.adversarial else 1.0)


def _slower(victim: str) -> float:
    """How many times longer than a GCN a model is attacked."""
    if victim in ("", SUBMISSION):
        return 1.0
    name = ModelName.parse(victim)
    return SLOW_VICTIM.get(name.base, 1.0) * (SLOW_PREPROCESSING if name.preprocess else 1.0)
