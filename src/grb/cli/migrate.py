"""``grb migrate``: list the lines of a script for another package that should change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grb.cli import output
from grb.cli.migration import Finding, find_in_file
from grb.cli.options import Json

MUST_CHANGE = 1


def migrate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Scripts (.py) or notebooks (.ipynb); they are read, not run."),
    ],
    as_json: Json = False,
) -> None:
    """List lines of scripts for THUDM/grb, DeepRobust, GreatX or PyG contrib that must or should change.

    The exit code is 1 if a line must change: it would fail here, or its numbers would be others.

    \b
    Examples:
      grb migrate train.py
      grb migrate notebooks/training.ipynb attack.py --json
    """
    found = {str(path): find_in_file(path) for path in files}
    if as_json:
        output.print_json({path: [each.to_dict() for each in findings] for path, findings in found.items()})
    else:
        for path, findings in found.items():
            rows = [[_place(each), each.level, each.old, each.new] for each in findings]
            if rows:
                output.table(path, ["line", "", "found", "instead"], rows)
    every = [each for findings in found.values() for each in findings]
    must = sum(each.level == "must" for each in every)
    output.echo(f"{must} lines must change, {len(every) - must} should; docs/migration.md has the whole table")
    if must:
        raise typer.Exit(MUST_CHANGE)


def _place(finding: Finding) -> str:
    return f"{finding.cell}:{finding.line}" if finding.cell else str(finding.line)
