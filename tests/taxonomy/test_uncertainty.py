from __future__ import annotations

import numpy as np
import pytest

from grb.errors import DataError
from grb.taxonomy import from_runs, published, resample, seed_study, spread


def table(runs: np.ndarray, seeds: bool = True):
    """Profiles from AUROCs [datasets, 1 + perturbations, runs]."""
    names = ["-", "NoEdges", "Frag-k1", "mine"]
    return from_runs(
        [
            (f"d{i}", names[j], k if seeds else None, float(runs[i, j, k]))
            for i, j, k in np.ndindex(runs.shape)
            if not np.isnan(runs[i, j, k])
        ]
    )


@pytest.fixture
def scores():
    generator = np.random.default_rng(0)
    return np.clip(0.7 + 0.02 * generator.standard_normal((2, 3, 12)), 0, 1)


def test_standard_error_is_that_of_the_delta_method(scores):
    profiles = table(scores, seeds=False)
    found = spread(profiles, 4000, generator=np.random.default_rng(1))
    # log2 of a ratio of two independent means
    relative = scores.var(2) / scores.mean(2) ** 2 / scores.shape[2]
    expected = np.sqrt(relative[:, 1:] + relative[:, :1]) / np.log(2)
    np.testing.assert_allclose(found.error, expected, rtol=0.06)
    assert (found.low < profiles.values).all() and (profiles.values < found.high).all()


def test_runs_of_one_seed_move_together_where_seeds_are_the_same():
    # a lucky split helps every cell alike: the ratio does not depend on it
    luck = np.linspace(0.8, 1.0, 8)
    scores = np.stack([np.stack([0.9 * luck, 0.6 * luck])])
    paired = spread(table(scores), 200, generator=np.random.default_rng(0))
    apart = spread(table(scores, seeds=False), 200, generator=np.random.default_rng(0))
    assert paired.error.max() < 1e-12
    assert apart.error.min() > 0.01


def test_cells_with_fewer_runs_and_none(scores):
    scores[0, 1, 5:] = np.nan
    scores[1, 2, :] = np.nan
    profiles = table(scores)
    drawn = resample(profiles, 50, np.random.default_rng(0))
    assert drawn.shape == (50, 2, 2)
    assert np.isnan(drawn[:, 1, 1]).all() and np.isfinite(np.delete(drawn.reshape(50, -1), 3, axis=1)).all()
    assert np.abs(drawn[:, 0, 0] - profiles.values[0, 0]).max() < 0.2


def test_equal_seeds_give_equal_draws(scores):
    first, second = (resample(table(scores), 5, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_means_alone_cannot_be_resampled():
    profiles = published("transductive").profiles
    for function in (lambda: resample(profiles, 5, np.random.default_rng(0)), lambda: seed_study(profiles)):
        with pytest.raises(DataError, match="hold means only"):
            function()


@pytest.mark.parametrize(
    "draws, level, sentence", [(1, 0.95, "1 draws has no spread"), (9, 1.0, "level of an interval")]
)
def test_what_makes_no_interval_is_refused(scores, draws, level, sentence):
    with pytest.raises(DataError, match=sentence):
        spread(table(scores), draws, level, generator=np.random.default_rng(0))


def test_seed_study_is_about_fragments_unless_told_otherwise(scores):
    profiles = table(scores)
    rows = seed_study(profiles)
    assert [(row.dataset, row.perturbation, row.runs) for row in rows] == [("d0", "Frag-k1", 12), ("d1", "Frag-k1", 12)]
    own = scores[0, 2]
    assert rows[0].mean == pytest.approx(own.mean()) and rows[0].std == pytest.approx(own.std())
    assert rows[0].percent == pytest.approx(100 * own.std() / own.mean())
    assert [row.perturbation for row in seed_study(profiles, ["NoEdges"])] == ["NoEdges", "NoEdges"]
    assert seed_study(profiles.select(perturbations=["NoEdges"])) == []
