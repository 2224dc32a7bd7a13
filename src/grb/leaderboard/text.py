"""Names from anywhere as harmless text: cut, without hidden characters, never a formula, a tag or a script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

# a name in a table, and a sentence or a value in a record
NAME, MESSAGE_LENGTH = 60, 400
MAX_LINK = 500
# what a spreadsheet takes for the beginning of a formula
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sanitize(value: Any, limit: int = NAME) -> str:
    """A value as one line of visible text, cut to ``limit`` letters.

    Control characters, direction marks and other letters without a shape become their code point, so that a name cannot
    hide, reverse or break what stands around it.

    >>> sanitize("a\\u202eb"), sanitize("x" * 99, 5)
    ('a<U+202E>b', 'xxxx…')
    """
    text = str(value)[: 4 * limit + 4]
    visible = "".join(_visible(letter) for letter in " ".join(text.split()))
    return visible if len(visible) <= limit else visible[: limit - 1] + "…"


def _visible(letter: str) -> str:
    if letter == " " or (letter.isprintable() and unicodedata.category(letter) not in ("Cf", "Co", "Cn", "Cs")):
        return letter
    return f"<U+{ord(letter):04X}>"


def distinct(names: Iterable[Any], limit: int = NAME) -> list[str]:
    """Every name as :func:`shown`, with a number behind those that look like an earlier one.

    >>> distinct(["abcdef", "abcdeg", "b"], 5)
    ['abcd…', 'abcd… (2)', 'b']
    """
    seen: dict[str, int] = {}
    found = []
    for name in names:
        text = sanitize(name, limit)
        seen[text] = seen.get(text, 0) + 1
        found.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return found


def sanitize_nested(value: Any, limit: int = MESSAGE_LENGTH, depth: int = 4) -> Any:
    """A JSON value with every text in it as :func:`shown` and every float with six digits; what is too deep becomes text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return rounded(value)
    if depth and isinstance(value, Mapping):
        return {sanitize(key): sanitize_nested(item, limit, depth - 1) for key, item in list(value.items())[:100]}
    if depth and isinstance(value, list | tuple):
        return [sanitize_nested(item, limit, depth - 1) for item in value[:100]]
    return sanitize(value, limit)


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Six significant digits; None for what JSON cannot hold.

    >>> rounded(0.12345678), rounded(float("nan"))
    (0.123457, None)
    """
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return float(f"{value:.{digits}g}")


def safe_link(value: Any) -> str | None:
    """An http or https address; None for anything else, ``javascript:`` above all.

    >>> safe_link("https://example.org/a?b=c"), safe_link("javascript:alert(1)"), safe_link(" https://a")
    ('https://example.org/a?b=c', None, None)
    """
    if not isinstance(value, str) or len(value) > MAX_LINK or not re.fullmatch(r"[!-~]+", value):
        return None
    try:
        parts = urlsplit(value)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return None
    return value if fine and not set(value) & set("\"'<>\\`{}|^") else None


def csv_text(value: Any) -> Any:
    """A cell of a CSV file: text that a spreadsheet would take for a formula gets a quote in front; numbers stay.

    Control characters become spaces: a carriage return would begin a new line, and so a new cell, in some readers.

    >>> csv_text("=cmd|' /C calc'!A0"), csv_text(-1.5), csv_text(" @x")
    ("'=cmd|' /C calc'!A0", -1.5, "' @x")
    """
    if not isinstance(value, str):
        return value
    text = re.sub("[\x00-\x1f\x7f\x85\u2028\u2029]", " ", value)
    return f"'{text}" if text.startswith(FORMULA) or text.lstrip().startswith(FORMULA) else text


def markdown_text(value: Any) -> str:
    """Text for a cell of a Markdown table: nothing in it is markup.

    >>> markdown_text("a|b<c>_d_")
    'a\\\\|b&lt;c&gt;\\\\_d\\\\_'
    """
    text = sanitize(value, MESSAGE_LENGTH).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]#|~!])", r"\\\1", text)


def latex_text(value: Any) -> str:
    r"""Text for a cell of a LaTeX table: nothing in it is a command but the plus-minus sign of our tables.

    >>> latex_text("a_b & 5 %"), latex_text("81.2 ±1.2")
    ('a\\_b \\& 5 \\%', '81.2 $\\pm$1.2')
    """
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    letters = (
        f"\\{letter}" if letter in "&%$#_{}" else special.get(letter, letter)
        for letter in sanitize(value, MESSAGE_LENGTH)
    )
    return "".join(letters)


def slug(text: str, limit: int = 60) -> str:
    """A file name of a-z, 0-9 and dashes.

    >>> slug("../Grb Cora: full"), slug("\\u00e9")
    ('grb-cora-full', 'board')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:limit].strip("-") or "board"
