"""The embedded collection: the same on every machine, told apart by edges alone."""

from __future__ import annotations

import torch
from torch import Tensor

from grb.dataset import Dataset, load_dataset


def test_it_is_what_it_was() -> None:
    dataset = load_dataset("synth-graphs", mode="full")
    assert dataset.fingerprint() == "3daba6920bb8f263cf778cff724e3b2067ddeadb43dd56d2d26df0c4cde1621e"
    assert dataset.fingerprint() == Dataset("synth-graphs").fingerprint()
    assert dataset.synthetic and dataset.num_items == 200 and dataset.num_classes == 2
    assert dataset.scheme is not None and dataset.scheme.description.startswith("10 stratified folds")


def test_edges_tell_the_classes_apart_and_types_do_not() -> None:
    graph = load_dataset("synth-graphs").graph
    assert isinstance(graph.x, Tensor) and graph.y is not None and graph.ptr is not None
    types, owner = graph.x.argmax(1), graph.owner
    ends = graph.adj.edges()
    alike = (types[ends[0]] == types[ends[1]]).double()
    of_edges = graph.y[owner[ends[0]]]
    assert alike[of_edges == 0].mean() > alike[of_edges == 1].mean() + 0.2
    shares = torch.stack([graph.x[graph.y[owner] == label].mean(0) for label in (0, 1)])
    assert (shares[0] - shares[1]).abs().max() < 0.05
    degrees = [graph.adj.degrees[graph.y[owner] == label].double().mean() for label in (0, 1)]
    assert abs(degrees[0] - degrees[1]) < 0.05
