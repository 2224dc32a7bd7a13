from __future__ import annotations

import json
from pathlib import Path

import pytest
from docs.tools.cli_pages import verbs

from grb.cli.app import ALIASES
from grb.cli.old_spellings import ANY, OPTIONS, VERBS, old_spelling, translate

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


# verbs and options of version 0.1
OLD = json.loads((Path(__file__).parent / "commands_0_1.json").read_text())
ANYWHERE = {"--data-dir"}


@pytest.mark.parametrize("verb", sorted(OLD))
def test_everything_that_version_0_1_had_is_there_or_has_its_sentence(verb):
    now = {name.removeprefix("grb "): command for name, command in verbs()}
    if verb in VERBS:
        assert verb not in now
        return
    words = translate([*verb.split(), "FILE", "--store", "STORE"])
    if words[: len(verb.split())] != verb.split():
        assert " ".join(words[:2]) in now or words[0] in now
        return
    used = {each for parameter in now[ALIASES.get(verb, verb)].params for each in parameter.opts}
    known = used | ANYWHERE | {option for name, option in OPTIONS if name in (ANY, verb)}
    assert [option for option in OLD[verb] if option not in known] == []


def test_longer_verbs_do_the_same(grb, tmp_path):
    place = str(tmp_path / "store")
    assert (
        grb("run", "synth-tiny", "--quick", "--difficulty", "full", "--store", place, "--workers", "0").exit_code == 0
    )
    assert grb("store", "gc", place, "--dry-run").exit_code == 0
    bundle = str(tmp_path / "bundle.zip")
    assert grb("store", "export", place, "-o", bundle).exit_code == 0
    assert grb("store", "import", bundle, "--store", str(tmp_path / "other")).exit_code == 0
    first, second = (grb("leaderboard", str(tmp_path / name)).stdout for name in ("store", "other"))
    assert first == second and "gcn+ln" in first
    assert grb("data", "path", "synth-tiny").stdout == grb("info", "synth-tiny", "--path").stdout
    assert "cannot read" in refusal(grb("submit", "check", str(tmp_path / "none.npz")))
