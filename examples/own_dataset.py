"""Bring your own graph: arrays in, the paper's splitting scheme and views out."""

import numpy as np
from scipy.sparse import random_array

import grb
from grb.threat import Injection

rng = np.random.default_rng(0)
half = random_array((200, 200), density=0.02, rng=rng)
labels = rng.integers(0, 3, size=200)
features = np.eye(3)[labels] + rng.normal(scale=0.7, size=(200, 3))

dataset = grb.Dataset.from_arrays((half + half.T) > 0, features, labels, name="mine")
print(dataset, dataset.notes)
model = grb.train("mlp", dataset, epochs=50, hidden_features=[16])
limits = Injection(nodes=5, edges_per_node=4, feature_range=dataset.feature_range)
result = grb.run_attack("rnd", model, dataset, threat=limits)
print(grb.evaluate(model, dataset), "|", grb.evaluate(model, dataset, result))
