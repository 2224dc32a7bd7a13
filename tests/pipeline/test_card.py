from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError
from grb.pipeline.card import MAX_COST, Card, card_from, parse_card
from grb.pipeline.record import unseen_letter
from grb.pipeline.safe_yaml import parse_mapping

CARD = Card("mine", "attack", "synth-tiny")
COSTS = st.dictionaries(st.sampled_from(["cpu_seconds", "flops"]), st.floats(0, MAX_COST))
SHARES = st.dictionaries(st.sampled_from(["gcn", "gcn+ln"]), st.floats(0, 1))
# letters, marks and symbols that are drawn as nothing
BLANK = "\u034f\u115f\u1160\u17b4\u180b\u2800\u3164\ufe0f\uffa0\U000e0100"
WORDS = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), max_size=20).filter(
    lambda text: not unseen_letter(text)
)


@given(cost=COSTS, reported=SHARES, about=WORDS, authors=st.lists(WORDS, max_size=3).map(tuple))
def test_a_card_survives_its_record(cost: Any, reported: Any, about: str, authors: tuple[str, ...]) -> None:
    card = replace(CARD, cost=cost, reported=reported, about=about, authors=authors)
    assert card_from(json.loads(json.dumps(asdict(card)))) == card


@given(
    st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp"]).filter(lambda letter: letter not in "\n\t")
    | st.sampled_from(BLANK)
)
def test_letters_that_nobody_sees_are_refused(letter: str) -> None:
    with pytest.raises(DataError, match="an author on the card has the character"):
        card_from({"name": "mine", "kind": "attack", "dataset": "synth-tiny", "authors": ["Ada", f"A{letter}da"]})
    for key in ("name", "about", "link", "unreliable"):
        with pytest.raises(DataError) as refused:
            card_from({"name": "mine", "kind": "attack", "dataset": "synth-tiny", key: f"a{letter}b"})
        assert f"U+{ord(letter):04X}" in str(refused.value) and str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("year", 2126, "1950 to 2100"),
        ("year", "2024", "a whole number"),
        ("year", True, "a whole number"),
        ("license", "<b>", "such as MIT"),
        ("license", 7, "text is needed"),
    ],
)
def test_a_card_says_year_and_license_in_a_form_that_can_be_cited(key: str, value: Any, words: str) -> None:
    known = {"name": "mine", "kind": "attack", "dataset": "synth-tiny"}
    card = card_from({**known, "year": 2024, "license": "Apache-2.0"})
    assert card.displayed()["year"] == 2024 and card.displayed()["license"] == "Apache-2.0"
    assert "year" not in CARD.displayed()
    with pytest.raises(DataError, match=words):
        card_from({**known, key: value})


def test_a_text_may_have_lines() -> None:
    assert replace(CARD, about="a\n\tb") == parse_card(
        '{name: mine, kind: attack, dataset: synth-tiny, about: "a\\n\\tb"}'
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_of_a_file_is_read_as_it_was_written(value: float) -> None:
    for text in (json.dumps({"a": value}), yaml.safe_dump({"a": value}), f"a: {value!r}", f"a: {value:.17e}"):
        (found,) = parse_mapping(text, "it").values()
        assert isinstance(found, float) and found == value


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1.0e+308", "1e308", "-1" + "0" * 400])
@pytest.mark.parametrize("key", ["cost", "reported"])
def test_absurd_numbers_are_refused_in_one_sentence(number: str, key: str) -> None:
    with pytest.raises(DataError) as refused:
        parse_card(f"name: mine\nkind: attack\ndataset: synth-tiny\n{key}: {{gcn: {number}}}")
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def test_a_record_without_a_card_is_refused() -> None:
    with pytest.raises(DataError, match="the card must be a mapping"):
        card_from([1])


def test_a_defense_may_claim_by_difficulty_and_an_attack_has_one() -> None:
    text = "name: mine\nkind: {}\ndataset: synth-tiny\nreported: {{pgd: {{easy: 0.5, full: 0.75}}, none: 0.875}}"
    card = parse_card(text.format("defense"))
    assert card.reported == {"pgd": {"easy": 0.5, "full": 0.75}, "none": 0.875}
    assert card_from(json.loads(json.dumps(asdict(card)))) == card
    with pytest.raises(
        DataError, match="reported of 'pgd' is for 'easy', but a difficulty of this entry is needed: full"
    ):
        parse_card(text.format("attack"))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("{easy: 1.5}", "a share from 0 to 1"),
        ("{extreme: 0.5}", "for 'extreme', but a difficulty of this entry is needed: easy, medium, hard, full"),
        ("{easy: {full: 0.5}}", "a number is needed"),
        ("{easy: true}", "a number is needed"),
    ],
)
def test_claims_that_nobody_can_compare_are_refused(value: str, sentence: str) -> None:
    with pytest.raises(DataError) as refused:
        parse_card(f"name: mine\nkind: defense\ndataset: synth-tiny\nreported: {{pgd: {value}}}")
    assert sentence in str(refused.value)
