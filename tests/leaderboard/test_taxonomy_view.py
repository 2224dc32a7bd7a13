"""The taxonomy's tab and the page of a placed dataset."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from grb import taxonomy
from grb.errors import DataError
from grb.leaderboard.page import build_page
from grb.leaderboard.placement_page import build_placement
from grb.leaderboard.taxonomy_view import (
    GROUP_NAMES,
    PLACEMENT,
    combined,
    label_places,
    published_analysis,
    taxonomy_view,
)
from made_boards import HOSTILE, made_board


@pytest.fixture(scope="module")
def analysis():
    return json.loads(json.dumps(published_analysis("inductive")))


@pytest.fixture(scope="module")
def placement():
    """A published dataset, left out and placed again."""
    known = taxonomy.published("inductive")
    own = replace(known.profiles.select(datasets=["MUTAG"]), datasets=("mine",))
    return json.loads(json.dumps(taxonomy.assign(own, known, dataset="mine", exclude="MUTAG").to_dict()))


def test_the_heat_map_has_every_number_in_the_order_of_the_tree(analysis):
    view = taxonomy_view(analysis)
    assert [row.name for row in view.rows] == analysis["tree"]["leaves"]
    for row in view.rows:
        values = analysis["log2_ratio"][analysis["datasets"].index(row.name)]
        assert [field.text for field in row.fields] == [f"{100 * 2**value:.0f}" for value in values]
        assert row.group == analysis["groups"]["of"][row.name] and not row.placed
    begun = [row.group for row in view.rows if row.first]
    assert sorted(begun) == ["I-1", "I-2", "I-3"], "groups stand together, and each is named once"
    assert any("24 datasets fall into 3 groups" in sentence for sentence in view.sentences)
    assert dict(view.named_groups) == {name: GROUP_NAMES[name] for name in ("I-1", "I-2", "I-3")}


def test_a_placed_dataset_stands_in_its_group_beside_its_nearest_neighbour(analysis, placement):
    view = taxonomy_view({**analysis, PLACEMENT: placement})
    at = next(number for number, row in enumerate(view.rows) if row.placed)
    nearest = next(each["dataset"] for each in placement["neighbours"] if each["group"] == placement["group"])
    assert view.rows[at].name == "mine" and view.rows[at - 1].name == nearest
    assert view.rows[at].group == placement["group"] and view.sentences[0].startswith("mine belongs to")
    assert len(view.profile) == len(placement["perturbations"])
    assert [name for name, _, _ in view.neighbours] == [each["dataset"] for each in placement["neighbours"][:3]]


def test_the_same_profile_is_projected_to_the_same_point(analysis, placement):
    row = analysis["log2_ratio"][analysis["datasets"].index("MUTAG")]
    every = [{"perturbation": name, "ratio": 2**value} for name, value in zip(analysis["perturbations"], row)]
    view = taxonomy_view({**analysis, PLACEMENT: {**placement, "perturbations": every}})
    marks = {mark.title.split(",")[0]: mark for mark in view.plane.marks}
    assert (marks["mine"].x, marks["mine"].y) == pytest.approx((marks["MUTAG"].x, marks["MUTAG"].y), abs=0.2)


def test_a_dataset_that_fits_nowhere_stands_above_all(analysis, placement):
    view = taxonomy_view({**analysis, PLACEMENT: {**placement, "group": None}})
    assert view.rows[0].placed and view.rows[0].group == "fits nowhere"


@pytest.mark.parametrize("name", ["datasets", "perturbations", "log2_ratio"])
def test_what_is_no_analysis_has_no_view_but_its_tables(analysis, name):
    broken = {**analysis, name: [["x"]]}
    assert taxonomy_view(broken) is None and taxonomy_view({"a": 1}) is None
    assert "All values" not in build_page([made_board()], {"datasets": ["a", "b"], "x": [1, 2]})


def test_a_placement_alone_is_shown_among_the_published(placement):
    whole = combined([placement])
    assert whole["source"] == "published inductive datasets" and taxonomy_view(whole).profile
    with pytest.raises(DataError, match="leave the others out"):
        combined([placement, placement])


def test_hostile_names_are_text(analysis, placement):
    named = json.loads(
        json.dumps({**analysis, PLACEMENT: placement}).replace("ENZYMES", HOSTILE[6]).replace("I-1", "<b>")
    )
    named[PLACEMENT]["dataset"] = HOSTILE[1]
    named[PLACEMENT]["messages"] = list(HOSTILE)
    text = build_page([made_board()], named)
    assert text.count("<script") == 2 and "<img" not in text and "<b>" not in re.sub(r"<b>(?=<bdi>)", "", text)
    page = build_placement(named[PLACEMENT])
    assert "<script" not in page and "<img" not in page and "&lt;img" in page


def test_the_page_of_a_placement_begins_with_the_answer_and_the_heat_map(placement):
    text = build_placement(placement, ["a remark"])
    order = [
        text.index(words)
        for words in ("mine belongs to", "Which datasets behave alike", "Its profile beside", "Components", "In words")
    ]
    assert order == sorted(order) and "a remark" in text and "default-src 'none'" in text
    with pytest.raises(DataError, match="no placement"):
        build_placement({"reference": "inductive", "dataset": "x"})


def test_names_in_a_plane_do_not_meet():
    places = np.array([[50.0, 50.0], [52.0, 51.0], [54.0, 49.0], [300.0, 50.0]])
    found = label_places(places, ["one", "two", "three", "four"])
    boxes = [(x, y - 9, x + 6.2 * len(word), y + 2) for (x, y), word in zip(found, ["one", "two", "three", "four"])]
    for number, one in enumerate(boxes):
        for two in boxes[number + 1 :]:
            assert not (one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3])
    crowd = label_places(np.zeros((40, 2)) + 100.0, ["a name"] * 40)
    assert None in crowd, "one that finds no room is left out"
