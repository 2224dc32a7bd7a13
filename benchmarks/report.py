"""Write the tables of the studies into docs/results/README.md, each below the command that prints it.

python benchmarks/report.py
"""

from __future__ import annotations

import re
from pathlib import Path

import accuracy
import defended
import modification_strength
import transfer
import worst_case
from results import Results

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def main() -> None:
    page = RESULTS / "README.md"
    clean = accuracy.table(Results(RESULTS / "clean-grb-cora.jsonl", ("model", "seed")))
    injection = transfer.table(
        Results(RESULTS / "injection-grb-cora.jsonl", ("attack", "mode", "iterations", "repeat"))
    )
    modification = modification_strength.table(
        Results(RESULTS / "modification-strength.jsonl", ("dataset", "attack", "seed"))
    )
    scores = defended.read()
    text = page.read_text(encoding="utf-8")
    tables = {
        "clean": clean,
        "injection": injection,
        "modification": modification,
        "gains": defended.gains_table(scores),
        "table 13": defended.clean_table(scores),
        "worst case": worst_case.table(Results(worst_case.FILE, ("victim", "seed", "attack"))),
    }
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = pattern.sub(lambda match, table=table: match[1] + table + "\n" + match[2], text)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
