"""Writes what ``grb ls --markdown`` prints into the README, between its two marks.

python docs/tools/readme.py
"""

from __future__ import annotations

import re
from pathlib import Path

from grb import catalogue
from grb.cli.ls import markdown_table

README = Path(__file__).resolve().parents[2] / "README.md"
BETWEEN = re.compile(r"(?<=<!-- grb ls --markdown -->\n).*?(?=\n<!-- end -->)", re.DOTALL)


def renewed(text: str) -> str:
    """The README with the table of today's catalogue."""
    if len(BETWEEN.findall(text)) != 1:
        raise ValueError("the README needs the marks <!-- grb ls --markdown --> and <!-- end --> once, in this order")
    table = markdown_table(catalogue.kinds(), scenarios=True)
    return BETWEEN.sub(lambda _: table, text)


if __name__ == "__main__":
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")
