"""Choices of targets on numbers written out by hand."""

from __future__ import annotations

import pytest
import torch

from attack.contexts import random_graph, view_of
from grb.attack.targets import (
    band_targets,
    declared_targets,
    in_bands,
    margin_targets,
    nettack_targets,
    random_targets,
    with_targets,
)
from grb.dataset import load_dataset
from grb.errors import DataError
from grb.model.base import predict
from grb.model.torch import GCN

IDS = torch.tensor([10, 11, 12, 13, 14])
LOGITS = torch.tensor([[3.0, 0.0], [1.0, 0.0], [0.0, 2.0], [5.0, 0.0], [0.0, 4.0]])
LABELS = torch.tensor([0, 0, 0, 0, 1])  # the third is wrong; margins 3, 1, -, 5, 4


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_margins_choose_among_the_correct_ones() -> None:
    assert margin_targets(IDS, LOGITS, LABELS, 2, highest=True).tolist() == [13, 14]
    assert margin_targets(IDS, LOGITS, LABELS, 2, highest=False).tolist() == [10, 11]
    assert margin_targets(IDS, LOGITS, LABELS, 9, highest=False).tolist() == [10, 11, 13, 14]


def test_nettacks_choice_has_both_ends_and_others() -> None:
    chosen = nettack_targets(IDS, LOGITS, LABELS, generator(), edge=1, middle=1)
    assert {11, 13} <= set(chosen.tolist()) <= {10, 11, 13, 14} and len(chosen) == 3


def test_random_targets_are_distinct_and_seeded() -> None:
    assert random_targets(IDS, 9, generator()).tolist() == IDS.tolist()
    assert torch.equal(random_targets(IDS, 2, generator()), random_targets(IDS, 2, generator()))
    with pytest.raises(DataError, match="must not be negative"):
        random_targets(IDS, -1, generator())


def test_bands_of_degrees() -> None:
    degrees = torch.tensor([0, 1, 2, 3, 4, 11, 12])
    assert [part.tolist() for part in in_bands(degrees, [(0, 1), (2, 4), (11, None)])] == [[0, 1], [2, 3, 4], [5, 6]]
    assert band_targets(torch.arange(7), degrees, 1, generator(), [(2, 2), (3, 3), (99, None)]).tolist() == [2, 3]
    with pytest.raises(DataError, match="from 3 to 2"):
        in_bands(degrees, [(3, 2)])


def test_only_targets_of_the_view_may_be_chosen() -> None:
    view = view_of(random_graph(5), [1, 3])
    assert with_targets(view, torch.tensor([3])).targets.tolist() == [3]
    with pytest.raises(DataError, match="node 2 is no target"):
        with_targets(view, torch.tensor([2]))


def test_declared_targets_are_those_of_the_functions() -> None:
    dataset = load_dataset("synth-tiny")
    model = GCN(dataset.num_features, dataset.num_classes, hidden_features=[4], generator=generator())
    ids, degrees = dataset.test_ids("full"), dataset.graph.adj.degrees
    logits = predict(model, dataset.graph)[ids]
    for labels, own in (("predicted", logits.argmax(1)), ("true", dataset.labels[ids])):
        for rule, highest in (("margin-low", False), ("margin-high", True)):
            found = declared_targets(f"{rule}=5", dataset, model, labels=labels)  # type: ignore[arg-type]
            assert found is not None and torch.equal(found, margin_targets(ids, logits, own, 5, highest=highest))
    expected = {
        "random=6": random_targets(ids, 6, generator()),
        "degrees=2": band_targets(ids, degrees, 2, generator()),
        "nettack=8": nettack_targets(ids, logits, logits.argmax(1), generator(), edge=2, middle=4),
    }
    for text, chosen in expected.items():
        found = declared_targets(text, dataset, model)
        assert found is not None and torch.equal(found, chosen)
    assert declared_targets("class=1", dataset, model) is None and declared_targets("random", dataset, None) is None
    for text in ("random=0", "random=-1", "random=x", "degrees=1.5"):
        with pytest.raises(DataError, match="a number of nodes of at least 1 is needed"):
            declared_targets(text, dataset, None)
    with pytest.raises(DataError, match="goes by the margins of a model"):
        declared_targets("margin-low=3", dataset, None)
