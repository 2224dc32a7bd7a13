from __future__ import annotations

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
