from __future__ import annotations

import pytest
from docs.tools.cli_pages import verbs

from grb.cli.old_spellings import ANY, OPTIONS, VERBS, old_spelling

from .conftest import refusal


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_an_old_verb_gets_one_sentence_with_the_new_one(grb, verb):
    done = grb(*verb.split(), "--help")
    assert done.exit_code == 2 and VERBS[verb] in refusal(done)


@pytest.mark.parametrize(("verb", "option"), sorted(OPTIONS))
def test_an_old_option_gets_one_sentence_with_the_new_one(grb, verb, option):
    for spelling in (option, f"{option}=1"):
        done = grb(*(verb or "run").split(), spelling, "1")
        assert done.exit_code == 2 and OPTIONS[verb, option] in refusal(done)


def test_no_spelling_in_use_is_called_old():
    for verb, option in OPTIONS:
        for name, command in verbs():
            if verb in (ANY, name.removeprefix("grb ")):
                used = {each for parameter in command.params for each in parameter.opts}
                assert option not in used, f"{name} {option}"


def test_what_stands_behind_two_dashes_is_an_argument():
    assert old_spelling(["taxonomy", "analyse", "--", "--draws"]) is None
    assert old_spelling([]) is None
