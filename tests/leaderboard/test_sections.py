from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from grb.leaderboard.palette import STEPS
from grb.leaderboard.sections import sections


def titled(analysis):
    return {section.title: section for section in sections(analysis)}


def texts(section):
    return [[field.text for field in row] for row in section.rows]


def test_plain_values_are_one_table_of_facts():
    (found,) = sections({"model": "GCN", "runs": 10, "share": 0.123456, "sure": True, "seed": None})
    assert texts(found) == [["model", "GCN"], ["runs", "10"], ["share", "0.1235"], ["sure", "yes"], ["seed", "-"]]


def test_numbers_beside_lists_of_names_are_a_matrix_with_named_sides():
    found = titled(
        {"datasets": ["cora", "flickr"], "perturbations": ["a", "b", "c"], "log2": [[-1.0, 0.5, 0], [0.25, None, 1.0]]}
    )
    assert list(found) == ["Log2"]
    assert found["Log2"].headers == ("name", "a", "b", "c")
    assert texts(found["Log2"]) == [["cora", "-1.000", "0.500", "0.000"], ["flickr", "0.250", "-", "1.000"]]
    looks = [[field.look for field in row[1:]] for row in found["Log2"].rows]
    assert looks == [["d0", "d12", "d8"], ["d10", "", f"d{STEPS - 1}"]]


def test_a_square_matrix_has_the_same_names_on_both_sides():
    found = titled({"correlation": {"names": ["a", "b"], "r": [[1, 0.5], [0.5, 1]]}})
    assert found["Correlation: r"].headers == ("name", "a", "b")
    assert [field.look for field in found["Correlation: r"].rows[0]] == ["", f"s{STEPS - 1}", "s0"]


def test_names_of_another_part_are_not_borrowed():
    found = titled({"datasets": ["cora", "flickr"], "pca": {"explained": [0.7, 0.3], "what": {"x": [1]}}})
    assert texts(found["Pca: explained"]) == [["1", "0.7"], ["2", "0.3"]]


def test_lists_of_numbers_beside_names_are_named():
    found = titled({"datasets": ["cora", "flickr"], "auroc": [0.5, 0.75]})
    assert list(found) == ["Auroc"]
    assert texts(found["Auroc"]) == [["cora", "0.5"], ["flickr", "0.75"]]


def test_groups_are_a_table_of_members():
    found = titled({"groups": {"S-1": ["cora", "flickr"], "S-2": ["ppi"]}})
    assert texts(found["Groups"]) == [["S-1", "cora, flickr"], ["S-2", "ppi"]]


def test_mappings_of_mappings_of_numbers_are_a_matrix():
    found = titled({"agreement": {"3": {"ward": 0.5, "average": 1.0}, "4": {"ward": 0.25}}})
    assert found["Agreement"].headers == ("name", "ward", "average")
    assert texts(found["Agreement"]) == [["3", "0.500", "1.000"], ["4", "0.250", "-"]]


def test_counts_in_different_units_get_no_colours():
    found = titled({"test": {"a": {"p": 0.01, "draws": 999}}})
    assert {field.look for row in found["Test"].rows for field in row} == {""}


def test_lists_of_mappings_are_a_table():
    found = titled({"seeds": [{"dataset": "cora", "std": 0.1}, {"dataset": "ppi", "note": "few"}]})
    assert found["Seeds"].headers == ("dataset", "std", "note")
    assert texts(found["Seeds"]) == [["cora", "0.1", "-"], ["ppi", "-", "few"]]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100)
@given(st.dictionaries(st.text(max_size=8), values, max_size=5))
def test_anything_that_json_holds_is_shown_as_rectangular_tables_of_text(analysis):
    for section in sections(analysis):
        assert all(len(row) == len(section.headers) for row in section.rows)
        for row in section.rows:
            for field in row:
                assert isinstance(field.text, str) and len(field.text) <= 400
                assert field.number is None or math.isfinite(field.number)
