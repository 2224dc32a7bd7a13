"""The tables of docs/attack-families.md, made of the rows in docs/results: what do queries, transfers and Nettack leave?

    python benchmarks/families.py [queries transfers parts] [--queries FILE] [--transfers FILE] [--parts FILE] [--docs]

Prints Markdown. Where a cell has fewer repeats than three, their number stands in brackets; ``-`` was not run. With ``--docs``
the tables of docs/attack-families.md are replaced by what would be printed; a test compares the two.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs/attack-families.md"
RESULTS = ROOT / "docs/results"
FILES = {"queries": "queries-grb-cora.csv", "transfers": "transfer-hao-grb-cora.csv", "parts": "nettack-parts.csv"}
MODELS = ("gcn", "gcn+ln", "r-gcn+at", "gat+at")
VICTIMS = ("gcn", "egnnguard", "gcn-cosine", "gatguard", "gat+at")
WHOLE = 3
# 97.5 % points of Student's t, by degrees of freedom
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}
Row = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(FILES), help="which tables")
    for name, file in FILES.items():
        parser.add_argument(f"--{name}", type=Path, default=RESULTS / file)
    parser.add_argument("--docs", action="store_true", help="write them into the page")
    arguments = parser.parse_args()
    text = DOCS.read_text()
    for name in arguments.names:
        rows = read(getattr(arguments, name))
        for table in TABLES[name](rows):
            if arguments.docs:
                text = replaced(text, table)
            else:
                print(table + "\n")
        for sentence in apart(rows) if name == "queries" else ():
            if arguments.docs:
                text = with_sentence(text, sentence)
            else:
                print(sentence + "\n")
    if arguments.docs:
        DOCS.write_text(text)


def read(file: Path) -> list[Row]:
    """Rows of a file of results; headers of files that were joined are none."""
    with file.open() as stream:
        rows = list(csv.DictReader(line for line in stream if line.strip()))
    return [row for row in rows if row["dataset"] != "dataset"]


def replaced(text: str, table: str) -> str:
    """The page with the table of the same first line in place of its own."""
    head = table.split("\n", 1)[0] + "\n"
    if text.count(head) != 1:
        raise SystemExit(f"the page has {text.count(head)} tables that begin with {head.strip()}")
    before, rest = text.split(head)
    lines = rest.split("\n")
    end = next(place for place, line in enumerate(lines) if not line.startswith("|"))
    return before + table + "\n" + "\n".join(lines[end:])


def with_sentence(text: str, sentence: str) -> str:
    """The page with a sentence in place of the line that begins as it does, up to its colon."""
    begun = sentence.split(":", 1)[0] + ":"
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if line.startswith(begun)]
    if len(places) != 1:
        raise SystemExit(f"the page has {len(places)} lines that begin with '{begun}'")
    lines[places[0]] = sentence
    return "\n".join(lines)


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(
        "|" + "|".join(line) + "|" if line[0] == "---" else f"| {' | '.join(line)} |" for line in map(list, lines)
    )


def cell(values: list[float]) -> str:
    """A mean, and in brackets of how many where these are not three."""
    if not values:
        return "-"
    mean = f"{statistics.fmean(values):.1f}"
    return mean if len(values) == WHOLE else f"{mean} ({len(values)})"


def queries(rows: list[Row]) -> list[str]:
    """What random search leaves of every model, by scenario, number of queries and answers."""
    return [
        _of_scenario(rows, "modification", "random-search", ("rnd-edges", "dice"), "edges changed"),
        _of_scenario(rows, "injection", "injection-random-search", ("rnd",), "nodes injected"),
    ]


def grouped(rows: list[Row]) -> dict[tuple[str, ...], list[float]]:
    """Accuracies of all repeats by scenario, model, method, queries and answers; a repeat that is there twice counts last."""
    found: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        key = tuple(row[name] for name in ("scenario", "model", "method", "queries", "answers"))
        found[key][row["repeat"]] = float(row["accuracy"])
    return {key: list(each.values()) for key, each in found.items()}


def _of_scenario(rows: list[Row], scenario: str, search: str, blind: tuple[str, ...], title: str) -> str:
    groups = grouped(rows)
    names = "no query: " + ", ".join(f"`{name}`" for name in blind)
    asked = [(number, answers) for number in ("100", "1000", "10000") for answers in ("scores", "labels")]
    head = [title, names, *(f"{int(number):,} {answers}" for number, answers in asked)]
    return markdown(
        head,
        (
            [
                f"`{model}`",
                ", ".join(cell(groups.get((scenario, model, name, "0", "none"), [])) for name in blind),
                *(cell(groups.get((scenario, model, search, *each), [])) for each in asked),
            ]
            for model in MODELS
        ),
    )


def interval(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of a mean by Student's t; all numbers are possible with a single value."""
    if len(values) < 2:
        return float("-inf"), float("inf")
    half = STUDENT[len(values) - 1] * statistics.stdev(values) / len(values) ** 0.5
    return statistics.fmean(values) - half, statistics.fmean(values) + half


def apart(rows: list[Row]) -> list[str]:
    """Sentences about 10,000 queries and none: the ends of the intervals where there are three repeats, else what was seen."""
    groups = grouped(rows)
    searches = {
        "Edges": ("modification", "random-search", ("rnd-edges", "dice")),
        "Injections": ("injection", "injection-random-search", ("rnd",)),
    }
    return [
        f"{name}, 10,000 queries against none, 95 % intervals (Student's t) where there are three repeats: "
        + "; ".join(filter(None, (_apart(groups, scenario, search, blind, model) for model in MODELS)))
        + "."
        for name, (scenario, search, blind) in searches.items()
    ]


def _apart(
    groups: dict[tuple[str, ...], list[float]], scenario: str, search: str, blind: tuple[str, ...], model: str
) -> str:
    asked = {answers: groups.get((scenario, model, search, "10000", answers), []) for answers in ("scores", "labels")}
    drawn = [groups.get((scenario, model, name, "0", "none"), []) for name in blind]
    asked = {answers: values for answers, values in asked.items() if values}
    if not asked or not all(drawn):
        return ""
    if all(len(values) == WHOLE for values in (*asked.values(), *drawn)):
        high, weakest = max((interval(values)[1], answers) for answers, values in asked.items())
        low = min(interval(values)[0] for values in drawn)
        return f"`{model}` at most {high:.1f} ({weakest}) against at least {low:.1f}"
    high = max(max(values) for values in asked.values())
    low = min(min(values) for values in drawn)
    counts = sorted({len(values) for values in (*asked.values(), *drawn)})
    repeats = " to ".join(map(str, counts))
    return f"`{model}` {high:.1f} against {low:.1f}, weakest search and strongest draw of {repeats} repeats"


def transfers(rows: list[Row]) -> list[str]:
    """What injections against a GCN leave of other victims, by attack and weight of HAO."""
    found: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    shifts: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        found[row["attack"], row["hao"], row["victim"]][row["seed"]] = float(row["accuracy"])
        shifts[row["attack"], row["hao"]][row["seed"]] = float(row["shift"])
    settings = [("tdgia", "0"), *((attack, hao) for attack in ("agia", "seqgia", "metagia") for hao in ("0", "1", "4"))]
    settings = [setting for setting in settings if setting in shifts]
    head = ["attack on a GCN", "weight of HAO", "homophily shift", *VICTIMS]
    return [
        markdown(
            head,
            (
                [
                    f"`{attack}`",
                    hao,
                    f"{statistics.fmean(shifts[attack, hao].values()):.2f}",
                    *(with_spread(list(found[attack, hao, victim].values())) for victim in VICTIMS),
                ]
                for attack, hao in settings
            ),
        )
    ]


def with_spread(values: list[float]) -> str:
    """A mean with the standard deviation of its repeats."""
    if not values:
        return "-"
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{spread}" + ("" if len(values) == WHOLE else f" ({len(values)})")


def parts(rows: list[Row]) -> list[str]:
    """What is left of the targets that Nettack's surrogate misclassifies, and of the others."""
    left = {(row["dataset"], row["graph"]): row["targets"] for row in rows}
    names = {
        "all targets": "",
        "those that the surrogate gets right": "-surrogate-right",
        "those it gets wrong": "-surrogate-wrong",
    }
    head = ["predicted labels", "1 flip", "3 flips", "5 flips"]
    return [
        markdown(
            head,
            (
                [
                    f"{dataset.capitalize()}, {label}",
                    *(shown(left.get((dataset, f"ours-predicted-{k}{part}"))) for k in (1, 3, 5)),
                ]
                for dataset in ("cora", "citeseer")
                for label, part in names.items()
            ),
        )
    ]


def shown(text: str | None) -> str:
    return "-" if text is None else f"{float(text):.1f}"


TABLES: dict[str, Callable[[list[Row]], list[str]]] = {"queries": queries, "transfers": transfers, "parts": parts}


if __name__ == "__main__":
    main()
