"""The result of an audit as one frozen value: JSON with a published schema, and a headline in words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from grb.atomic import write_atomic
from grb.errors import DataError, UnknownName

FORMAT = 1
KIND = f"grb-audit/{FORMAT}"
FORMATS = ("html", "markdown", "json", "model-index", "sarif", "cyclonedx")
ENDINGS = {
    ".html": "html",
    ".md": "markdown",
    ".json": "json",
    ".sarif": "sarif",
    ".yaml": "model-index",
    ".cdx.json": "cyclonedx",
}
PARTS = (
    "format", "grb", "model", "dataset", "metric", "metrics", "threat_model", "clean", "scenarios", "worst_case",
    "corruptions", "classes", "flags", "notes", "not_tested", "headline", "settings",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class AuditReport:
    """All that an audit found, as JSON values; :func:`schema` describes them.

    Args:
        values: The parts of the report by name.
    """

    values: Mapping[str, Any]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AuditReport:
        """Back from :meth:`to_dict`; anything else is refused."""
        if values.get("format") != KIND:
            raise DataError(f"this is no report of an audit; its 'format' must be '{KIND}'")
        missing = [part for part in PARTS if part not in values]
        if missing:
            raise DataError(f"the report of the audit lacks '{missing[0]}'; run the audit again")
        return cls(json.loads(json.dumps(dict(values), allow_nan=False)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditReport:
        """Read a report that :meth:`save` has written as JSON."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls.from_dict(values if isinstance(values, dict) else {})
        except FileNotFoundError:
            raise DataError(f"{path} does not exist; `grb audit ... -o {path}` writes one") from None
        except (OSError, ValueError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path} is no JSON file ({str(error)[:80]})") from None

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dict(self.values)

    @property
    def headline(self) -> str:
        """The answer in a sentence or two."""
        return str(self.values["headline"])

    def __str__(self) -> str:
        return self.headline

    def numbers(self) -> Iterator[tuple[str, float]]:
        """Every number that a condition may be about, by name: ``worst_case.recall:1``, ``injection.breaking_point``."""
        for name, value in self.values["clean"]["values"].items():
            yield f"clean.{name}", value
        for name, value in self.values["worst_case"]["values"].items():
            yield f"worst_case.{name}", value
        for scenario in self.values["scenarios"]:
            point = scenario["breaking_point"]
            # unbroken up to the largest budget: the first one that might break it is the next
            broken = point["budget"] if point["budget"] is not None else point["largest"] + 1
            yield f"{scenario['scenario']}.breaking_point", float(broken)
            for name, value in scenario["values"].items():
                yield f"{scenario['scenario']}.{name}", value
            for name, value in scenario["collateral"].items():
                yield f"{scenario['scenario']}.others.{name}", value
        found = [row["value"] for row in self.values["corruptions"] if row["value"] is not None]
        if found:
            yield f"corruption.{self.values['metric']['name']}", min(found)
        yield "flags", float(len(self.values["flags"]))

    def render(self, kind: str) -> str:
        """The report in one of the formats of :data:`FORMATS`."""
        from grb.auditing import exports, markdown, page

        made = {
            "html": page.to_html,
            "markdown": markdown.to_markdown,
            "json": lambda values: json.dumps(values, indent=2, sort_keys=False, allow_nan=False) + "\n",
            "model-index": exports.to_model_index,
            "sarif": exports.to_sarif,
            "cyclonedx": exports.to_cyclonedx,
        }
        if kind not in made:
            raise UnknownName("format of a report", kind, FORMATS, advice=f"Allowed: {', '.join(FORMATS)}.")
        return made[kind](self.to_dict())

    def save(self, path: str | os.PathLike[str], kind: str | None = None) -> Path:
        """Write the report, whole or not at all; its ending says the format: .html, .md, .json, .sarif, .yaml, .cdx.json."""
        name = Path(path).name.lower()
        found = kind or next(
            (ENDINGS[end] for end in sorted(ENDINGS, key=len, reverse=True) if name.endswith(end)), None
        )
        if found is None:
            raise DataError(f"{path} does not say its format; give one of the endings {', '.join(ENDINGS)}")
        return write_atomic(path, self.render(found).encode())


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a report."""
    text = resources.files("grb").joinpath("auditing").joinpath("audit.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
