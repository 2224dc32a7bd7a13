from __future__ import annotations

import numpy as np
import pytest

from grb.errors import DataError
from grb.taxonomy import Profiles, from_auroc, model_correlation, perturbation_correlation


def random(seed: int, datasets="abcdef", names=("x", "y", "z")) -> Profiles:
    scores = np.random.default_rng(seed).uniform(0.5, 1, (len(datasets), 1 + len(names)))
    return from_auroc(list(datasets), list(names), scores[:, 0], scores[:, 1:])


def test_r_is_numpys_and_skips_datasets_with_holes():
    profiles = random(0)
    profiles.values[2, 1] = np.nan
    found = perturbation_correlation(profiles)
    np.testing.assert_allclose(found.r, np.corrcoef(np.delete(profiles.values, 2, axis=0).T), atol=1e-12)
    assert found.cells == 5


def test_a_perturbation_that_changes_nothing_has_no_correlation():
    profiles = random(1)
    profiles.values[:, 1] = 0.1
    r = perturbation_correlation(profiles).r
    assert np.isnan(r[1]).all() and np.isnan(r[:, 1]).all()
    assert r[0, 0] == r[2, 2] == 1 and np.isfinite(r[0, 2])


def test_models_are_compared_on_what_they_share():
    first, second = random(2), random(3, "fedcbx", ("z", "y", "w"))
    found = model_correlation({"gcn": first, "gin": second})
    assert found.cells == 5 * 2
    cells = [(name, column) for name in "bcdef" for column in ("y", "z")]
    pairs = np.array([[own.row(name)[column] for name, column in cells] for own in (first, second)])
    assert found.r[0, 1] == pytest.approx(np.corrcoef(pairs)[0, 1])


@pytest.mark.parametrize(
    "models, of, sentence",
    [
        ({"gcn": random(0)}, "log2", "at least two models, got 1"),
        ({"gcn": random(0), "gin": random(1, "uvw")}, "log2", "share no dataset"),
        ({"gcn": random(0), "gin": random(1, names=("u",))}, "log2", "share no perturbation"),
        ({"gcn": random(0), "gin": random(1, "a", ("x",))}, "log2", "share 1 cells, but at least 3"),
        (
            {"gcn": random(0), "gin": Profiles(("a",), ("x",), np.zeros((1, 1)))},
            "log2-auroc",
            "profiles of 'gin' hold ratios only",
        ),
    ],
)
def test_models_without_common_ground(models, of, sentence):
    with pytest.raises(DataError, match=sentence):
        model_correlation(models, of=of)


def test_too_little_for_a_correlation():
    with pytest.raises(DataError, match="at least 3 datasets without missing cells, got 2"):
        perturbation_correlation(random(0, "ab"))
    with pytest.raises(DataError, match="two perturbations, but there is only 'x'"):
        perturbation_correlation(random(0, names=("x",)))
