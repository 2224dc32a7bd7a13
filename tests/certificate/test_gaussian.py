"""Gaussian noise on features, of all rows or of selected ones: distances, what is certified, refused, and never broken."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import grb
from grb.certificate import NotCertifiable, build_certificate, default_certificate, run_certificate
from grb.certificate.gaussian import farthest
from grb.certificate.hierarchical import gaussian_certified
from grb.constraints import Constraints
from grb.dataset import Dataset, load_dataset
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.model.smoothed import Noise, Smoothed
from grb.threat import Injection, Modification

EMPTY = torch.empty(2, 0, dtype=torch.int64)


@cache
def tiny():
    """A graph whose first two features are small; the others are fixed in :func:`little`."""
    own = load_dataset("synth-tiny")
    x = own.graph.x.clone()
    x[:, :2] *= 0.2
    split = {"train": own.index_train, "val": own.index_val, "test": own.test_ids("full")}
    return Dataset.from_arrays(own.graph.adj, x, own.labels, split=split, name="narrow")


def little(**more) -> Modification:
    fixed = Constraints(fixed=tuple(range(2, tiny().num_features)), ranges=((0, -0.2, 0.2), (1, -0.2, 0.2)))
    return hijacking(*tiny().feature_range, constraints=fixed, **more)


@cache
def trained():
    return grb.train("gcn", tiny(), epochs=40, hidden_features=[16])


def hijacking(low: float, high: float, nodes: int = 1, **more) -> Modification:
    return Modification(edges=0, feature_nodes=nodes, feature_range=(low, high), **more)


def test_distances_are_those_to_the_farthest_corner():
    x = np.array([[0.0, 1.0], [2.0, -1.0]])
    assert farthest(x, hijacking(-1, 3)).tolist() == pytest.approx([13**0.5, 25**0.5])
    fixed = hijacking(-1, 3, constraints=Constraints(fixed=(1,)))
    assert farthest(x, fixed).tolist() == [3.0, 3.0]
    narrow = hijacking(-1, 3, constraints=Constraints(ranges=((0, 0.0, 1.0), (1, -9.0, 9.0))))
    assert farthest(x, narrow).tolist() == pytest.approx([5**0.5, 20**0.5])


def test_a_change_of_length_one_survives_what_the_normal_distribution_says():
    """A vote of .9 against .1 survives a distance of sigma times 1.2816, by tables."""
    low, high = np.array([0.9]), np.array([0.1])
    assert gaussian_certified(low, high, sigma=0.5, distance=0.6407)[0]
    assert not gaussian_certified(low, high, sigma=0.5, distance=0.6409)[0]


def test_noise_is_on_the_rows_that_do_not_keep_theirs():
    x = torch.zeros(4000, 2)
    drawn = Noise(sigma=2.0, p_keep=0.25).blurred(x, torch.Generator().manual_seed(0))
    kept = (drawn == 0).all(1)
    assert float(kept.float().mean()) == pytest.approx(0.25, abs=0.03)
    assert float(drawn[~kept].std()) == pytest.approx(2.0, abs=0.1)
    assert Noise().blurred(x, torch.Generator()) is x
    for wrong in (-1.0, float("inf"), float("nan"), "much", True):
        with pytest.raises(DataError, match="sigma is"):
            Noise(sigma=wrong)


def test_narrow_ranges_are_certified_and_wide_ones_are_not():
    certificate = build_certificate("gaussian-smoothing", samples=1000, sigma=0.5)
    found = run_certificate(certificate, trained(), tiny(), little())
    assert found.unit == "hijacked nodes" and found.certified.any()
    assert "sigma=0.5" in found.model
    wide = run_certificate(certificate, trained(), tiny(), hijacking(-1e6, 1e6))
    assert wide.budgets.max() == 0
    selected = build_certificate("gaussian-smoothing", samples=1000, sigma=0.5, p_keep=0.1)
    some = run_certificate(selected, trained(), tiny(), little(nodes=9))
    assert 0 <= some.budgets.max() <= 6  # .9 ** 7 is less than a half


def test_no_corner_breaks_what_is_certified():
    """Every corner of two free columns of the target itself and of a neighbour, in new samples."""
    dataset, threat, low, high = tiny(), little(), -0.2, 0.2
    smoothed = Smoothed(trained(), p_drop=0.0, sigma=0.5).eval()
    found = run_certificate(build_certificate("gaussian-smoothing", samples=2000), smoothed, dataset, threat)
    ids = dataset.test_ids("full")
    safe = ids[torch.from_numpy(found.certified & found.correct)][:4]
    assert len(safe) == 4
    for node in safe.tolist():
        for own in (node, *dataset.graph.adj.neighbours(node)[:1].tolist()):
            for corner in ((low, low), (low, high), (high, low), (high, high)):
                row = dataset.graph.x[own].clone()
                row[:2] = torch.tensor(corner)
                edit = GraphEdit(dataset.num_nodes, EMPTY, EMPTY, set_ids=torch.tensor([own]), set_x=row.unsqueeze(0))
                threat.check(dataset.graph, edit)
                graph = dataset.graph.apply(edit)
                votes = smoothed.votes(graph.x, graph.adj, 300, torch.Generator().manual_seed(own))
                assert int(votes[node].argmax()) == int(dataset.labels[node])


def test_other_threats_and_noise_are_refused():
    certificate = build_certificate("gaussian-smoothing", samples=20)
    with pytest.raises(NotCertifiable, match="changes edges"):
        run_certificate(certificate, trained(), tiny(), Modification(edges=1))
    with pytest.raises(NotCertifiable, match="changes edges"):
        run_certificate(certificate, trained(), tiny(), Injection(1, 1, (0, 1)))
    with pytest.raises(NotCertifiable, match="has p_drop too"):
        run_certificate(certificate, Smoothed(trained(), sigma=1.0), tiny(), hijacking(0, 1))
    with pytest.raises(NotCertifiable, match="needs noise on features"):
        run_certificate(certificate, Smoothed(trained(), p_drop=0.0), tiny(), hijacking(0, 1))
    assert default_certificate(Smoothed(trained(), p_drop=0.0, sigma=1.0), hijacking(0, 1)) == "gaussian-smoothing"
