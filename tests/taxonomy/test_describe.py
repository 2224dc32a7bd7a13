from __future__ import annotations

import numpy as np
import pytest

from grb.errors import UnknownName
from grb.taxonomy import describe_profile, meaning, published


def test_every_published_group_has_a_meaning() -> None:
    for kind in ("inductive", "transductive"):
        for group in set(published(kind).groups.values()):
            assert group in meaning(group)
    with pytest.raises(UnknownName, match="published group 'I-4'"):
        meaning("I-4")


def words(**ratios: float) -> str:
    named = {name.replace("_", "-"): value for name, value in ratios.items()}
    return " ".join(describe_profile(named))


def test_features_are_said_to_matter_by_what_is_left_without_them() -> None:
    assert "Features hardly matter: without them 99 %" in words(NoNodeFtrs=0.99)
    assert "Features matter somewhat: without them 90 %" in words(NoNodeFtrs=0.9)
    assert "Features matter much: without them 60 %" in words(NoNodeFtrs=0.6)
    assert "bring back 95 %: a summary of the structure will do" in words(NoNodeFtrs=0.6, NodeDeg=0.95)
    assert "summary" not in words(NoNodeFtrs=0.6, NodeDeg=0.7)


def test_edges_are_said_to_matter_by_who_is_joined_or_by_degrees() -> None:
    assert "who is joined with whom counts" in words(NoEdges=0.7, RandRewire=0.8)
    assert "degrees are what counts" in words(NoEdges=0.7, RandRewire=0.99)
    assert words(NoEdges=1.0, RandRewire=0.8) == "Edges hardly matter: without them 100 % is left."


def test_the_range_is_the_smallest_radius_from_which_on_nothing_is_lost() -> None:
    assert "radius 2 keep 98 %" in words(NoEdges=0.7, Frag_k1=0.9, Frag_k2=0.98, Frag_k3=0.99)
    assert "Even balls of radius 3 keep only 90 %" in words(NoEdges=0.7, Frag_k1=0.98, Frag_k2=0.98, Frag_k3=0.9)
    assert "radius" not in words(NoEdges=1.0, Frag_k1=0.9)


def test_frequencies_tell_whether_neighbours_are_alike() -> None:
    assert "neighbours are alike" in words(LowPass=0.99, HighPass=0.8)
    assert "neighbours are unlike" in words(LowPass=0.8, HighPass=0.99)
    assert "spread over the frequencies" in words(LowPass=0.9, HighPass=0.91)
    assert words(LowPass=0.99, HighPass=0.99) == ""


def test_a_model_that_guesses_has_no_profile_to_speak_of() -> None:
    assert "hardly beats guessing" in describe_profile({}, 0.55)[0]
    assert "guessing would leave 56 % of it" in describe_profile({}, 0.9)[0]
    assert describe_profile({}) == []


def test_the_meaning_of_a_group_leaves_out_what_does_not_hold() -> None:
    whole = meaning("T-1")
    assert "neighbours are unlike" in whole and "Unlike" not in whole
    smooth = {"NoNodeFtrs": 0.6, "NodeDeg": 0.6, "LowPass": 0.98, "HighPass": 0.7}
    found = meaning("T-1", smooth)
    assert "neighbours are unlike" not in found and "no better than averaging here" in found
    assert "features decide" in found


def test_a_claim_that_only_may_fail_is_left_out_but_not_denied() -> None:
    ratios = {"NoNodeFtrs": 0.6, "NodeDeg": 0.6, "NoEdges": 0.96}
    drawn = {name: np.full(100, value) for name, value in ratios.items()} | {"NoEdges": np.linspace(0.9, 1.0, 100)}
    assert "edges" not in meaning("I-1", ratios, drawn)
    assert "edges are missed here" in meaning("I-1", ratios, {**drawn, "NoEdges": np.full(100, 0.96)})


def test_what_the_draws_do_not_support_is_not_said() -> None:
    ratios = {"NoNodeFtrs": 0.8, "LowPass": 0.87, "HighPass": 0.96}
    rng = np.random.default_rng(0)
    wide = {name: value + 0.3 * rng.standard_normal(500) for name, value in ratios.items()}
    text = " ".join(describe_profile(ratios, None, wide))
    assert "Whether features matter is not decided" in text and "unlike" not in text
    narrow = {name: value + 0.001 * rng.standard_normal(500) for name, value in ratios.items()}
    text = " ".join(describe_profile(ratios, None, narrow))
    assert "Features matter much: without them 80 % (80 to 80)" in text and "neighbours are unlike" in text
    between = {"NoNodeFtrs": 0.85 + 0.03 * rng.standard_normal(500)}
    assert describe_profile({"NoNodeFtrs": 0.85}, None, between)[0].startswith("Features matter: without them 85 %")
