"""The reference of the command, made of the verbs themselves: what ``--help`` shows, on one page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from grb.cli.app import app

COMPLETION = """
## Completion of names

`grb --install-completion` teaches your shell (bash, zsh, fish, PowerShell) to complete verbs, options and names of the
catalogue with Tab; open a new shell afterwards. `grb --show-completion` prints the script instead, to be put where you like.
"""
CODES = """
## Exit codes

| code | meaning |
|---:|---|
| 0 | done |
| 1 | some jobs failed, a rule is broken (`grb check`), or a line must change (`grb migrate`) |
| 2 | refused: the sentence on stderr says what is wrong and what is allowed |
| 3 | something is not what its record or checksum says |
| 130 | interrupted |

Results go to stdout, everything else to stderr. `--json` makes stdout JSON, for every verb. `--debug`, anywhere on the line,
or `GRB_DEBUG=1` shows the traceback behind a refusal. `--data-dir DIR`, anywhere on the line, is searched for datasets before
`GRB_DATA`. `grb reproduce` is `grb run` under the paper's word.
"""


def verbs() -> Iterator[tuple[str, Any]]:
    """Name, as one types it, and command of every verb; groups are not verbs."""
    yield from _walk("grb", typer.main.get_command(app))


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word, each in below.items():
        if getattr(each, "hidden", False):
            continue  # an old spelling that names the new one
        yield from _walk(f"{name} {word}", each)


def examples(command: Any) -> list[str]:
    """The examples of a verb's help, without the remarks behind them.

    >>> examples(dict(verbs())["grb doctor"])
    ['grb doctor', 'grb doctor --all', 'grb doctor --json > machine.json']
    """
    found = re.findall(r"^ *(?:.*\$\()?(grb [^)\n]*)", command.help or "", re.MULTILINE)
    return [re.split(r"\s{2,}", line)[0] for line in found]


def page() -> str:
    """All verbs, in the order of ``grb --help``."""
    root = typer.main.get_command(app)
    head = f"# The command\n\n{_words(root)}\n\n{_table(root)}\n{COMPLETION}{CODES}"
    return head + "".join(_verb(name, command) for name, command in verbs())


def _verb(name: str, command: Any) -> str:
    return f"\n## {name}\n\n{_words(command)}\n\n{_table(command)}\n"


def _words(command: Any) -> str:
    """The help text; what follows a ``\\b`` keeps its lines."""
    text, *kept = (command.help or "").split("\b")
    blocks = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    for part in kept:
        head, _, rest = part.strip("\n").partition("\n")
        lines = "\n".join(line.removeprefix("  ") for line in rest.splitlines())
        blocks.append(f"{head}\n\n```sh\n{lines}\n```")
    return "\n\n".join(blocks)


def _table(command: Any) -> str:
    rows = [f"| `{_name(param)}` | {_help(param)} |" for param in command.params if not getattr(param, "hidden", False)]
    return "\n".join(["| argument or option | |", "|---|---|", *rows])


def _name(param: Any) -> str:
    words = ", ".join([*param.opts, *param.secondary_opts])
    if param.param_type_name == "argument":
        words = (param.metavar or param.name).upper() + ("..." if param.nargs == -1 else "")
    elif not getattr(param, "is_flag", False):
        words += f" {param.metavar or 'VALUE'}"
    return words.replace("|", "\\|")


def _help(param: Any) -> str:
    """What it means and, where that is a JSON value, what it is if not given."""
    text = " ".join((param.help or "").split()).replace("|", "\\|").replace("<", "&lt;")
    if param.required:
        return f"{text} Needed."
    plain = isinstance(param.default, str | int | float) and not isinstance(param.default, bool)
    return f"{text} Default: `{param.default}`." if plain else text
