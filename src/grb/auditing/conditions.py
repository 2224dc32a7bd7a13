"""Conditions on a report, such as ``worst_case.recall>=0.8``, for continuous integration."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grb.auditing.report import AuditReport
from grb.errors import DataError, UnknownName
from grb.metric.names import Metric

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*([A-Za-z][\w.:-]*)\s*(>=|<=|>|<)\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*")
# what a condition may be about, besides the scenarios
SUBJECTS = ("clean", "worst_case", "corruption", "flags")


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
    if not isinstance(report, AuditReport):
        raise DataError(
            f"report is a {type(report).__name__}, but what grb.audit gives is needed; AuditReport.load reads a file"
        )
    known = dict(report.numbers())
    found = []
    for match in _matches(text):
        name, sign, limit = match[1], match[2], float(match[3])
        name = _full(name, known)
        value = known[name]
        found.append(Outcome(name, value, sign, limit, _SIGNS[sign](value, limit)))
    return found


def parse_only(text: str, scenarios: Sequence[str], *, corrupt: bool = True) -> None:
    """Refuse a condition that cannot be read, or is about what the audit will not have, before anything is computed.

    Args:
        text: The conditions.
        scenarios: Those of the audit.
        corrupt: Whether corruptions are tried.
    """
    known = [each for each in SUBJECTS if corrupt or each != "corruption"] + list(scenarios)
    for match in _matches(text):
        subject, _, rest = match[1].partition(".")
        if subject not in known:
            raise UnknownName("subject of a condition", subject, known, advice=f"Allowed: {', '.join(known)}.")
        if subject == "flags" or rest == "breaking_point":
            continue
        try:
            Metric.parse(rest.removeprefix("others."))
        except UnknownName:
            raise
        except DataError:  # recall without its class: the audit has one, or says so
            continue


def _matches(text: str) -> list[re.Match[str]]:
    found = []
    for part in text.split(","):
        match = _FORM.fullmatch(part)
        if match is None:
            raise DataError(
                f"the condition '{part.strip()[:60]}' cannot be read; write a name, >=, <=, > or <, and a number, as in "
                "worst_case.accuracy>=0.8"
            )
        found.append(match)
    return found


def _full(name: str, known: dict[str, float]) -> str:
    if name in known:
        return name
    longer = [each for each in known if each.startswith(f"{name}:")]
    if len(longer) == 1:
        return longer[0]
    raise UnknownName("number of the report", name, known, advice=f"Allowed: {', '.join(known)}.")
