"""Probabilities of groups: what they are fitted to, and that they hold for what was left out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from grb.errors import DataError
from grb.taxonomy import assign, calibrate, published, reliability
from grb.taxonomy.calibration import MODELS, NOISY, OWN, fence, group_probabilities, log_kernels, nearest_distances
from grb.visualise import draw_reliability

COLUMNS = {
    kind: [name for name in published(kind).profiles.perturbations if name != "FiedlerFrag"]
    for kind in ("inductive", "transductive")
}


@pytest.mark.parametrize(("kind", "settings"), [("inductive", (OWN, MODELS, NOISY)), ("transductive", (OWN, NOISY))])
def test_of_groups_stated_with_80_per_cent_and_more_85_per_cent_are_right(kind, settings) -> None:
    found = reliability(kind)
    assert tuple(curve.setting for curve in found) == settings
    for curve in found:
        (top,) = [each for each in curve.bins if each.high == 1]
        assert top.right / top.cases >= 0.85
        assert top.cases / curve.count > 0.6  # and it does not get there by being sure of nothing
        assert sum(each.cases for each in curve.bins) + curve.nowhere == curve.count


@pytest.mark.parametrize("seed", [1, 2])
def test_that_does_not_hang_on_one_draw_of_the_noise(seed: int) -> None:
    for kind in ("inductive", "transductive"):
        (noisy,) = [curve for curve in reliability(kind, seed=seed) if curve.setting == NOISY]
        top = noisy.bins[-1]
        assert top.right / top.cases >= 0.85


def test_the_reliability_is_that_of_assign() -> None:
    """The own rows, placed one by one, with what was fitted to the others only."""
    reference = published("transductive")
    own = [assign(reference.profiles, reference, dataset=name, exclude=name) for name in reference.profiles.datasets]
    right = sum(each.group == reference.groups[each.dataset] for each in own)
    curve = reliability("transductive")[0]
    assert right == sum(each.right for each in curve.bins)
    assert sum(not each.fits for each in own) == curve.nowhere


def test_kernels_are_the_formula() -> None:
    row, table = np.array([0.1, np.nan, -0.3]), np.array([[0.0, 5.0, 0.0], [0.1, -5.0, -0.3]])
    found = log_kernels(row, table, 0.2, np.array([0.1, 9.0, 0.0]))
    assert found == pytest.approx([-0.5 * (0.01 / 0.05 + 0.09 / 0.04), 0.0])
    members = np.eye(2)
    assert group_probabilities(found, members, 0.0).sum() == pytest.approx(1)
    assert group_probabilities(np.array([0.0, -np.inf]), members, 0.1) == pytest.approx([0.95, 0.05])


def test_the_fence_is_tukeys_of_the_nearest_distances() -> None:
    table = np.array([[0.0], [1.0], [3.0], [6.0], [6.5]])
    assert nearest_distances(table).tolist() == [1, 1, 2, 0.5, 0.5]
    third, far = fence(table)
    assert (third, far) == (1.0, 1.0 + 3 * 0.5)


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_fitted_width_is_the_best_of_its_neighbourhood(kind: str) -> None:
    """A dataset's own row finds back with no larger likelihood under half or twice the width."""
    reference = published(kind)
    table = reference.profiles.select(perturbations=COLUMNS[kind])
    fitted = calibrate(table, reference)
    assert 0.015 <= fitted.width <= 0.6 and 0.02 <= fitted.doubt <= 0.2 and fitted.usual < fitted.fence

    groups = sorted(set(reference.groups.values()))
    members = np.eye(len(groups))[[groups.index(reference.groups[name]) for name in table.datasets]]
    rng = np.random.default_rng(0)

    def likelihood(width: float) -> float:
        total = 0.0
        for error in (0.0, 0.06):
            for i, row in enumerate(table.values + error * rng.standard_normal(table.values.shape)):
                logs = log_kernels(row, table.values, width, error)
                logs[i] = -np.inf
                total += float(np.log(group_probabilities(logs, members, fitted.doubt) @ members[i]))
        return total

    best = likelihood(fitted.width)
    assert best > likelihood(fitted.width * 4) and best > likelihood(fitted.width / 4) - 4


def test_a_model_that_nobody_published_is_refused() -> None:
    with pytest.raises(DataError, match="nobody published GIN on the transductive"):
        reliability("transductive", model="GIN")


def test_curves_are_drawn_and_are_values_for_json() -> None:
    found = reliability("transductive")
    assert json.loads(json.dumps([each.to_dict() for each in found]))[0]["setting"] == OWN
    labels = [text.get_text() for text in draw_reliability(found).axes[0].get_legend().get_texts()]
    assert labels == ["own row (25)", "noisy rows (300)"]
