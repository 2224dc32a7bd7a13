"""Datasets unlike all published ones are said to fit nowhere: runs of this repository, placed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from grb.taxonomy import as_published, assign, read_profiles

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize(
    ("file", "dataset", "taxonomy"),
    [
        ("taxonomy-synth-graphs.jsonl", "synth-graphs", "inductive"),
        ("taxonomy-other-domains.jsonl", "blogs", "transductive"),
        ("taxonomy-other-domains.jsonl", "mines", "transductive"),
    ],
)
def test_a_dataset_of_another_domain_fits_nowhere(file: str, dataset: str, taxonomy: str) -> None:
    profiles = as_published(read_profiles(RESULTS / file)).select([dataset])
    found = assign(profiles, taxonomy, dataset=dataset, draws=50)
    assert not found.fits and found.group is None and found.probability == {}
    assert found.text().startswith(f"{dataset} fits nowhere: nearest are ")
