"""Runs the scripts of tests/compat/scripts, which call everything that THUDM/grb documents, and writes what became of each call
into docs/compat.md; and the table of migration.yaml into docs/migration.md.

python docs/tools/compat.py
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grb.catalogue import preset
from grb.compat.arguments import PaperEraWarning, say_once
from grb.errors import GRBError, MissingDataset

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests/compat/scripts"
PAGE, GUIDE = ROOT / "docs/compat.md", ROOT / "docs/migration.md"
AREAS = (
    "training",
    "injection",
    "modification",
    "adversarial_training",
    "automl",
    "datasets",
    "graph_classification",
    "evaluation",
    "visualisation",
)
BETWEEN = re.compile(r"(?<=<!-- made by docs/tools/compat.py -->\n).*?(?=\n<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """A call of a script, with what its comments say about it."""

    title: str
    code: str
    differs: str = ""
    new: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: ``works``, ``refused``, or ``needs data``; what was told; any other error."""

    cell: Cell
    status: str
    told: tuple[str, ...] = ()
    error: BaseException | None = None


def cells(area: str) -> list[Cell]:
    """The cells of an area's script."""
    parts = re.split(r"^# %% (.*)\n", (SCRIPTS / f"{area}.py").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = []
    for title, code in zip(parts[::2], parts[1::2], strict=True):
        said = dict(re.findall(r"^# (differs|new): (.*)$", code, re.MULTILINE))
        found.append(Cell(title, code, said.get("differs", ""), said.get("new", "")))
    return found


def run(area: str) -> list[Outcome]:
    """Run the cells of an area one after the other in one namespace and a directory of their own, without a network."""
    names: dict[str, Any] = {"__name__": "script"}
    with _elsewhere():
        return [_run(cell, names, area) for cell in cells(area)]


def _run(cell: Cell, names: dict[str, Any], area: str) -> Outcome:
    say_once.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PaperEraWarning)
        try:
            exec(compile(cell.code, f"{area}: {cell.title}", "exec"), names)
            status, error = "works", None
        except MissingDataset:
            status, error = "needs data", None
        except GRBError as refusal:
            status, error = f"refused: {refusal}", None
        except Exception as unforeseen:
            status, error = "breaks", unforeseen
    told = dict.fromkeys(str(each.message) for each in caught if each.category is PaperEraWarning)
    return Outcome(cell, status, tuple(told), error)


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    before, offline = Path.cwd(), os.environ.get("GRB_OFFLINE")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        os.environ["GRB_OFFLINE"] = "1"
        try:
            yield
        finally:
            os.chdir(before)
            if offline is None:
                del os.environ["GRB_OFFLINE"]
            else:
                os.environ["GRB_OFFLINE"] = offline


def table(outcomes: dict[str, list[Outcome]]) -> str:
    """The calls of every area with their status, as Markdown."""
    text = []
    for area, found in outcomes.items():
        text += [
            f"### {area.replace('_', ' ').capitalize()}",
            "",
            "| call | here | what differs, or is told once |",
            "|---|---|---|",
        ]
        text += [f"| {_cell(each.cell.title)} | {_status(each)} | {_cell(_remarks(each))} |" for each in found]
        text.append("")
    return "\n".join(text).rstrip() + "\n"


def _status(outcome: Outcome) -> str:
    if outcome.cell.new:
        return "new spelling"
    return "refused" if outcome.status.startswith("refused") else outcome.status


def _remarks(outcome: Outcome) -> str:
    parts = [
        outcome.cell.differs,
        outcome.cell.new and f"`{outcome.cell.new}`" if "," not in outcome.cell.new else outcome.cell.new,
    ]
    if outcome.status.startswith("refused: "):
        parts.append(outcome.status.removeprefix("refused: "))
    parts += [f"*{told}*" for told in outcome.told]
    return "; ".join(part for part in parts if part)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def guide() -> str:
    """Old and new names of every package, as Markdown."""
    text = []
    for package, rules in preset("migration").items():
        text += [f"### From {package}", "", "| there | here |", "|---|---|"]
        text += [f"| `{old}` | {_new(rule)} |" for old, rule in rules["names"].items()]
        for call, arguments in rules.get("calls", {}).items():
            name = call if call.startswith("any") else f"`{call}`"
            text += [f"| {name}: `{each['argument']}` | {_advice(each)} |" for each in arguments]
        text.append("")
    return "\n".join(text).rstrip() + "\n"


def _new(rule: dict[str, Any]) -> str:
    why = f" ({rule['why']})" if "why" in rule else ""
    return re.sub(r"((?:grb|dataset|model|edit)\.[\w.]+(?:\((?:[^()]|\([^()]*\))*\))?)", r"`\1`", rule["new"]) + why


def _advice(rule: dict[str, Any]) -> str:
    said = [f"left out: {rule['absent']}" if "absent" in rule else "", rule.get("new", "")]
    must = (
        " (refused, unless it is None)"
        if rule.get("must") == "unless-none"
        else " (refused)"
        if rule.get("must")
        else ""
    )
    return "; ".join(part for part in said if part) + must


def renewed(text: str, made: str) -> str:
    """A page with what was made between its marks."""
    if len(BETWEEN.findall(text)) != 1:
        raise ValueError(
            "the page needs the marks <!-- made by docs/tools/compat.py --> and <!-- end --> once, in this order"
        )
    return BETWEEN.sub(lambda _: f"\n{made}", text)


if __name__ == "__main__":
    PAGE.write_text(
        renewed(PAGE.read_text(encoding="utf-8"), table({area: run(area) for area in AREAS})), encoding="utf-8"
    )
    GUIDE.write_text(renewed(GUIDE.read_text(encoding="utf-8"), guide()), encoding="utf-8")
