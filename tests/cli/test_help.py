"""Every verb has a help page with examples, and the examples are commands that it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docs.tools.cli_pages import examples, verbs

from .commands import parse

VERBS = dict(verbs())


def test_all_verbs_are_found():
    assert {"grb ls", "grb train", "grb data get", "grb store verify", "grb taxonomy place", "grb submit"} <= set(VERBS)


def test_there_are_a_third_fewer_verbs_and_options_than_in_version_0_1():
    """Counted as then: commands without groups, and their options with ``--json`` but without ``--help``."""
    old = json.loads((Path(__file__).parent / "commands_0_1.json").read_text())
    assert len(old) == 32
    options = [param for command in VERBS.values() for param in command.params if param.param_type_name == "option"]
    # since then: `store sign` with four options, and --key of `leaderboard` and `store verify`, --trust-code of `store copy`;
    # --labels of `attack`, --trust-code of `submit`;
    # new capabilities: `migrate`, `certify`, `detect`, `replay`, `audit`, --task, --models and --plan of `taxonomy`, --vary and
    # --param of its `run`, --by-class of `info`, --limits and --surrogates of `audit`
    assert len(VERBS) <= 21 + 7 and len(options) <= 154 + 82


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_described_with_examples_that_parse(name: str) -> None:
    command: Any = VERBS[name]
    first = (command.help or "").partition("\n\n")[0]
    assert first.endswith("."), "a sentence says what it does"
    found = examples(command)
    assert found, "an example shows how"
    assert name in {parse(line) for line in found}


@pytest.mark.parametrize("name", VERBS)
def test_every_option_is_explained_and_json_is_one_of_them(name: str) -> None:
    params = VERBS[name].params
    assert [param.name for param in params if not param.help] == []
    texts = [param.help for param in params]
    assert [text for text in texts if not (text[0].isupper() and text.endswith(".")) or text.startswith("Of ")] == []
    assert any("--json" in param.opts for param in params)


@pytest.mark.parametrize("name", VERBS)
def test_the_help_page_shows_the_examples(grb: Any, name: str) -> None:
    shown = grb(*name.split()[1:], "--help").stdout
    assert "Example" in shown and name in shown


def test_an_example_that_names_an_unknown_option_would_be_found() -> None:
    with pytest.raises(Exception, match="seeed"):
        parse("grb train gcn --dataset synth-tiny --seeed 3")
    with pytest.raises(AssertionError, match="no verb"):
        parse("grb trian gcn")


def test_json_may_stand_before_a_verb_of_any_group(grb: Any) -> None:
    wish = ("taxonomy", "run", "synth-tiny", "--seeds", 1, "--plan")
    assert json.loads(grb("--json", *wish).stdout) == json.loads(grb(*wish, "--json").stdout)


@pytest.mark.parametrize(("words", "expected"), [("grb tr", "train"), ("grb train --dataset synth-t", "synth-tiny")])
def test_the_shell_completes_verbs_and_names(words: str, expected: str) -> None:
    """As bash asks after ``grb --install-completion``."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_GRB_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "grb")], env={**os.environ, **asked}, capture_output=True, text=True
    )
    assert done.stdout.split() == [expected]
