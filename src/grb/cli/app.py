"""The root of the command: its verbs, ``--version``, and what the shell sees when something is refused."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from grb._version import __version__
from grb.cli import (
    attack,
    audit,
    certify,
    check,
    data,
    detect,
    doctor,
    eval,
    figures,
    info,
    leaderboard,
    ls,
    migrate,
    replay,
    run,
    store,
    submit,
    taxonomy,
    train,
    tune,
)
from grb.cli.old_spellings import old_spelling, translate
from grb.cli.options import Json, find_code
from grb.cli.output import print_json
from grb.errors import DataError, GRBError, IntegrityError

BAD_INPUT, INTEGRITY, INTERRUPTED, PIPE_CLOSED = 2, 3, 130, 141
# other words for verbs: the paper reproduces what others run
ALIASES = {"reproduce": "run"}
# module:Class or module:function, in a list or behind an option's = too
_CODE = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*:[A-Za-z_]")


class Verbs(TyperGroup):
    """Every refusal is one sentence on stderr and an exit code; a traceback is shown only if asked for."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run the command; every refusal becomes one sentence and an exit code."""
        given, debug, data_dir = _general(list(sys.argv[1:] if args is None else args))
        options["standalone_mode"] = False
        try:
            given = translate(given)
            if sentence := old_spelling(given):
                raise DataError(sentence)
            find_code(word for word in given if _CODE.search(word))
            with _searching(data_dir):
                code = super().main(given, *rest, **options)
        except typer.Abort:
            code = INTERRUPTED
        except Exception as error:
            sentence = _message(error)
            if sentence is None:
                raise
            if debug:
                traceback.print_exc()
            _print_error(f"error: {sentence}")
            code = INTEGRITY if isinstance(error, IntegrityError) else BAD_INPUT
        if code == INTERRUPTED:
            _print_error("interrupted")
        sys.exit(code if isinstance(code, int) else 0)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb by its name or by another word for it."""
        return super().get_command(ctx, ALIASES.get(cmd_name, cmd_name))

    def invoke(self, ctx: Any) -> Any:
        """Call the verb; an interrupt and a closed pipe end it quietly."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # the reader (head, less) has left; what Python would still flush at its end goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PIPE_CLOSED) from None
        return result


def _general(given: list[str]) -> tuple[list[str], bool, str | None]:
    """The line without the options that may stand anywhere on it, whether to debug, and where to search for data first."""
    debug = os.environ.get("GRB_DEBUG", "") not in ("", "0")
    data_dir = None
    kept: list[str] = []
    rest = iter(given)
    for word in rest:
        if word == "--debug":  # appended to the line that has just failed
            debug = True
        elif word == "--data-dir" or word.startswith("--data-dir="):
            data_dir = word.partition("=")[2] or next(rest, "")
        else:
            kept.append(word)
    return kept, debug, data_dir


@contextmanager
def _searching(data_dir: str | None) -> Iterator[None]:
    """Search a directory before those of GRB_DATA; worker processes inherit it."""
    if data_dir is None:
        yield
        return
    if not data_dir or not os.path.isdir(data_dir):
        raise DataError(f"--data-dir is '{data_dir}', but a directory is needed")
    before = os.environ.get("GRB_DATA_DIR")
    os.environ["GRB_DATA_DIR"] = os.path.abspath(data_dir)
    try:
        yield
    finally:
        if before is None:
            del os.environ["GRB_DATA_DIR"]
        else:
            os.environ["GRB_DATA_DIR"] = before


def _message(error: Exception) -> str | None:
    """What to tell the user; None for an error that nobody foresaw, whose traceback is worth more."""
    # by attribute: typer carries a click of its own since 0.20, so there is no one class to import
    message = getattr(error, "format_message", None)
    if message is not None:
        ctx = getattr(error, "ctx", None)
        hint = f" `{ctx.command_path} --help` shows what it takes." if ctx is not None else ""
        text = str(message()).rstrip().rstrip(".")
        return (text if text.endswith("?") else f"{text}.") + hint
    if isinstance(error, GRBError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    return None


def _print_error(sentence: str) -> None:
    # one line without control characters: a sentence may quote a name from a file that somebody sent
    shown = "".join(letter if letter.isprintable() else "?" for letter in " ".join(sentence.split()))
    print(shown, file=sys.stderr)


app = typer.Typer(
    name="grb",
    cls=Verbs,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    as_json: Json = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Show the traceback of an error; anywhere on the line; GRB_DEBUG=1 does the same."
        ),
    ] = False,
    data_dir: Annotated[
        str | None,
        typer.Option(
            help="Directory to search for datasets before those of GRB_DATA; anywhere on the line, for every verb."
        ),
    ] = None,
) -> None:
    """Robustness of graph machine learning: attack, defend and evaluate under one enforced threat model.

    \b
    New here?
      grb ls                                what there is
      grb reproduce synth-cora              a first leaderboard, needs no download
      grb train gcn --dataset synth-cora
      grb doctor                            is this machine set up well?
    """
    if version:
        if as_json:
            print_json({"grb": __version__})
        else:
            typer.echo(f"grb {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
    elif as_json:
        verbs = getattr(ctx.command, "commands", {})
        asked = {name: _json_please(command) for name, command in verbs.items()}
        ctx.default_map = asked | {name: asked[verb] for name, verb in ALIASES.items()}


def _json_please(command: Any) -> dict[str, Any]:
    """``--json`` as the default of a verb, or of every verb of a group."""
    below = getattr(command, "commands", None)
    return {"as_json": True} if below is None else {name: _json_please(each) for name, each in below.items()}


app.command("ls")(ls.ls)
app.command("info")(info.info)
app.add_typer(data.app, name="data")
app.command("train")(train.train)
app.command("attack")(attack.attack)
app.command("eval")(eval.evaluate)
app.command("certify")(certify.certify)
app.command("detect")(detect.detect)
app.command("replay")(replay.replay)
app.command("audit")(audit.audit)
app.command("run")(run.run)
app.add_typer(store.app, name="store")
app.command("submit")(submit.submit)
app.command("tune")(tune.tune)
app.command("check")(check.check)
app.command("migrate")(migrate.migrate)
app.command("leaderboard")(leaderboard.leaderboard)
app.command("figures")(figures.figures)
app.add_typer(taxonomy.app, name="taxonomy")
app.command("doctor")(doctor.doctor)
