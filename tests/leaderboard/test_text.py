from __future__ import annotations

import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.leaderboard.text import (
    FORMULA,
    csv_text,
    distinct,
    markdown_text,
    rounded,
    safe_link,
    sanitize,
    sanitize_nested,
    slug,
)
from made_boards import HOSTILE


@given(st.text(max_size=300), st.integers(2, 80))
def test_shown_text_is_one_visible_line_of_bounded_length(text, limit):
    found = sanitize(text, limit)
    assert len(found) <= limit
    assert "\n" not in found
    assert all(letter == " " or unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in found)


def test_direction_marks_and_zero_width_letters_are_spelled_out():
    assert sanitize("a\u202eb\u200bc\u2066d\x1b[31m") == "a<U+202E>b<U+200B>c<U+2066>d<U+001B>[31m"
    assert sanitize("tab\tand\nline\u2028end") == "tab and line end"


def test_ordinary_names_stay_as_they_are():
    for name in ("gcn+ln", "r-gcn", "Veličković", "模型", "fgsm nodes=20", "pgd(iterations=100)"):
        assert sanitize(name) == name


def test_a_long_name_is_cut_without_looking_at_all_of_it():
    assert len(sanitize("x" * 10**6)) == 60


def test_names_that_are_cut_alike_stay_different():
    names = distinct(["x" * 100 + "1", "x" * 100 + "2", "y"])
    assert len(set(names)) == 3
    assert names[1].endswith("(2)")


@pytest.mark.parametrize("address", ["https://example.org", "http://a.b/c?d=e&f=%20#g"])
def test_web_addresses_are_links(address):
    assert safe_link(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\nscript:alert(1)",
        " https://example.org",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "//example.org",
        "https://user@example.org",
        'https://a"onmouseover=alert(1)',
        "https://",
        "https://[",
        "file:///etc/passwd",
        "https://a/" + "x" * 1000,
        "https://a\u202e.org",
        None,
        7,
    ],
)
def test_everything_else_is_not(address):
    assert safe_link(address) is None


@given(st.text(min_size=1, max_size=40))
def test_no_text_cell_of_a_csv_file_begins_like_a_formula(text):
    stream = io.StringIO()
    csv.writer(stream).writerow([csv_text(text), "next"])
    stream.seek(0)
    first, second = next(csv.reader(stream))
    assert second == "next"
    assert not first.startswith(FORMULA) and not first.lstrip().startswith(FORMULA)


def test_numbers_are_never_quoted():
    assert [csv_text(value) for value in (-1.5, -3, None, 0)] == [-1.5, -3, None, 0]
    assert csv_text("-1.5") == "'-1.5"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_no_markup_in_markdown(name):
    text = markdown_text(name)
    assert "<" not in text
    assert "|" not in text.replace("\\|", "")


def test_rounding_keeps_six_digits_and_drops_what_json_cannot_hold():
    assert rounded(1 / 3) == 0.333333
    assert [rounded(value) for value in (float("nan"), float("inf"), -float("inf"), None)] == [None] * 4


def test_values_from_anywhere_become_short_plain_values():
    deep: object = "end"
    for _ in range(50):
        deep = [deep]
    found = sanitize_nested({"a\u202e": "x" * 10_000, "b": deep, "c": [1, True, None, 0.123456789], "d": object})
    assert set(found) == {"a<U+202E>", "b", "c", "d"}
    assert len(found["a<U+202E>"]) == 400
    assert found["c"] == [1, True, None, 0.123457]
    assert isinstance(found["d"], str)


@given(st.text(max_size=100))
def test_a_slug_is_a_harmless_file_name(text):
    found = slug(text)
    assert found and set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not found.startswith("-")
