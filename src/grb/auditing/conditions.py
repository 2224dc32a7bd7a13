"""Conditions on a report, such as ``worst_case.recall>=0.8``, for continuous integration."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from grb.auditing.report import AuditReport
from grb.errors import DataError, UnknownName

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*([A-Za-z][\w.:-]*)\s*(>=|<=|>|<)\s*([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*")


@dataclass(frozen=True)
class Outcome:
    """A condition and whether the report meets it."""

    name: str
    value: float
    sign: str
    limit: float
    holds: bool

    def __str__(self) -> str:
        verb = "holds" if self.holds else "fails"
        return f"{self.name} is {self.value:.4g}, so that {self.name}{self.sign}{self.limit:g} {verb}"


def check(report: AuditReport, text: str) -> list[Outcome]:
    """Check conditions that are joined by commas.

    A metric may leave its class out where the audit has one such metric: ``worst_case.recall`` is ``worst_case.recall:1``.

    Args:
        report: What was found.
        text: Conditions such as ``worst_case.recall>=0.8,injection.breaking_point>=10``.
    """
    known = dict(report.numbers())
    found = []
    for part in text.split(","):
        match = _FORM.fullmatch(part)
        if match is None:
            raise DataError(
                f"the condition '{part.strip()[:60]}' cannot be read; write a name, a sign and a number as in "
                "worst_case.accuracy>=0.8"
            )
        name, sign, limit = match[1], match[2], float(match[3])
        name = _full(name, known)
        value = known[name]
        found.append(Outcome(name, value, sign, limit, _SIGNS[sign](value, limit)))
    return found


def parse_only(text: str) -> None:
    """Refuse a condition that cannot be read, before anything is computed."""
    for part in text.split(","):
        if _FORM.fullmatch(part) is None:
            raise DataError(
                f"the condition '{part.strip()[:60]}' cannot be read; write a name, a sign and a number as in "
                "worst_case.accuracy>=0.8"
            )


def _full(name: str, known: dict[str, float]) -> str:
    if name in known:
        return name
    longer = [each for each in known if each.startswith(f"{name}:")]
    if len(longer) == 1:
        return longer[0]
    raise UnknownName("number of the report", name, known, advice=f"Allowed: {', '.join(known)}.")
