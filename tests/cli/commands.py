"""Lines of a shell that call the command, parsed as the command would parse them, without running anything."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import typer

from grb.cli.app import ALIASES, app

SHELL = re.compile(r"\s(?:>|\||&&|&)(?:\s|$).*|\s#\s.*")


def parse(line: str) -> str:
    """Parses ``grb train gcn --seeds 3 > scores.json  # remark`` and gives the verb; raises what the command would."""
    name, command, words = _verb(line)
    if not hasattr(command, "commands"):
        command.make_context(name, _without_general(words))
        return name
    return mention(line)


def mention(line: str) -> str:
    """The verb of a command that is only spoken of, such as ``grb eval --checks``: verb and options must exist."""
    name, command, words = _verb(line)
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    unknown = (
        {word.partition("=")[0] for word in words if word.startswith("--")}
        - known
        - {"--help", "--debug", "--data-dir"}
    )
    assert not unknown, f"{name} does not know {unknown}"
    return name


def _without_general(words: list[str]) -> list[str]:
    """Without the options that may stand anywhere on the line."""
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith(("--debug", "--data-dir")) and before != "--data-dir"
    ]


@cache
def _root() -> Any:
    return typer.main.get_command(app)


def _verb(line: str) -> tuple[str, Any, list[str]]:
    """Its name, its command, and the words behind it."""
    words = shlex.split(SHELL.sub("", line))
    assert words.pop(0).rpartition("/")[2] == "grb", line
    command, name = _root(), "grb"
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        word = ALIASES.get(words[0], words[0])
        words.pop(0)
        assert word in command.commands, f"{name} has no verb {word}"
        command, name = command.commands[word], f"{name} {word}"
    return name, command, words
