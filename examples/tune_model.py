"""Look for good settings with Optuna (pip install "graph-robustness-benchmark[automl]"), then train with them."""

import optuna  # noqa: F401, so that it is missed at the beginning and not at the end

import grb
from grb.automl import space_of, tune

dataset = grb.load_dataset("synth-tiny")
space = space_of(
    {"width": {"choice": [8, 32]}, "dropout": {"low": 0.0, "high": 0.7}, "lr": {"low": 0.003, "high": 0.1, "log": True}}
)
found = tune("gcn", dataset, space=space, trials=6, epochs=40)  # judged by validation nodes; test labels are not seen
for number, score in enumerate(found.so_far):
    print(f"best validation score after {number + 1} trials {score:.3f}")
model = grb.train("gcn", dataset, seed=0, **found.settings)
print(found.settings, "|", grb.evaluate(model, dataset))
