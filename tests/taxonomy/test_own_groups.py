"""Published groups in own runs: found where they are, denied where noise hides them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from grb.taxonomy import from_runs, own_groups, published, representative_frequency
from grb.taxonomy.representative import representatives

SOME = ("Actor", "DzEu", "CF-CiteSr", "CF-PubMed", "Coau-CS", "Github", "Twitch-DE", "Am-Comp")


def runs_like(names: tuple[str, ...], noise: float, seeds: int, seed: int = 0):
    """Runs around the published means of transductive datasets."""
    reference = published("transductive").profiles.select(list(names))
    generator = np.random.default_rng(seed)
    rows = []
    for i, dataset in enumerate(reference.datasets):
        scores = {"-": reference.original[i]} | {
            name: reference.original[i] * reference.ratio[i, j] for j, name in enumerate(reference.perturbations)
        }
        for name, score in scores.items():
            for run in range(seeds):
                rows.append((dataset, name, run, float(np.clip(score + noise * generator.normal(), 0.01, 1))))
    return from_runs(rows)


def test_clear_runs_find_the_published_groups_again() -> None:
    (found,) = own_groups(runs_like(SOME, 0.002, 5), draws=60)
    assert found.taxonomy == "transductive" and found.agreement == found.published == 1.0
    assert found.interval == (1.0, 1.0) and not found.single
    by_group = {row.group: row for row in found.stability}
    assert set(by_group) == {"T-1", "T-2", "T-3"} and all(row.stable for row in found.stability)
    assert set(by_group["T-1"].members) == {"Actor", "DzEu"}
    assert by_group["T-1"].together == by_group["T-1"].apart == 1.0


def test_noise_makes_groups_unstable_and_the_interval_wide() -> None:
    (found,) = own_groups(runs_like(SOME, 0.1, 3), draws=60)
    low, high = found.interval
    assert high - low > 0.3
    assert not all(row.stable for row in found.stability)
    assert any(0 < share < 1 for share in found.representatives.values())


def test_fractions_are_those_of_pairs_counted_by_hand() -> None:
    """A group of one has no pair inside; others apart counts every pair across."""
    names = ("Actor", "Github", "Twitch-DE", "Am-Comp")
    (found,) = own_groups(runs_like(names, 0.002, 5), draws=20)
    alone = next(row for row in found.stability if row.group == "T-1")
    assert alone.members == ("Actor",) and alone.together is None and alone.apart == 1.0 and alone.stable


def test_one_run_of_each_kind_is_said_to_be_one() -> None:
    (found,) = own_groups(runs_like(SOME, 0.0, 1))
    assert found.single and found.agreement == 1.0 and found.interval == (1.0, 1.0)


def test_too_few_datasets_give_nothing() -> None:
    assert own_groups(runs_like(SOME[:3], 0.01, 3)) == []


def test_equal_seeds_give_equal_answers_and_all_is_json() -> None:
    profiles = runs_like(SOME, 0.05, 3)
    one, other = (own_groups(profiles, draws=20, seed=4)[0].to_dict() for _ in range(2))
    assert one == other == json.loads(json.dumps(one))


def test_without_spread_the_representatives_are_chosen_always() -> None:
    profiles = published("transductive").profiles
    labels = [published("transductive").groups[name] for name in profiles.datasets]
    shares = representative_frequency(profiles, labels, np.stack([profiles.values] * 3), 8)
    wanted = set(representatives(profiles, labels, 8).datasets)
    assert {name for name, share in shares.items() if share == 1.0} == wanted
    assert all(share in (0.0, 1.0) for share in shares.values())


@pytest.mark.parametrize("ignored", [("RandFtrs",), ("NoEdges", "LowPass")])
def test_ignored_perturbations_do_not_count(ignored: tuple[str, ...]) -> None:
    (found,) = own_groups(runs_like(SOME, 0.002, 3), ignore=ignored, draws=10)
    assert not set(ignored) & set(found.perturbations)
