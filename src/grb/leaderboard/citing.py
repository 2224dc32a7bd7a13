"""What a reader needs to cite a board or an entry: authors, paper, year, licence, day of the measurement, and BibTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grb._version import __version__
from grb.evaluator.board import Board, Cell
from grb.leaderboard.text import MESSAGE_LENGTH, safe_link, sanitize, slug
from grb.references import Reference, bibtex, references

# the paper whose benchmark every board is
PAPER = bibtex(
    "inproceedings",
    "zheng2021grb",
    {
        "author": "Zheng, Qinkai and Zou, Xu and Dong, Yuxiao and Cen, Yukuo and Yin, Da and Xu, Jiarong and Yang, Yang "
        "and Tang, Jie",
        "title": "{Graph Robustness Benchmark: Benchmarking the Adversarial Robustness of Graph Machine Learning}",
        "booktitle": "Neural Information Processing Systems Track on Datasets and Benchmarks",
        "year": "2021",
    },
)


@dataclass(frozen=True)
class Citation:
    """Who made an entry and how to cite it.

    Args:
        authors: Who made it.
        papers: Its papers, in words.
        link: Where it is described; empty if nobody says it.
        year: Year of its paper; empty if nobody says it.
        license: Its licence; empty if nobody says it.
        date: The last day on which one of its scores was measured; empty if the records do not say it.
        bibtex: Its papers, or the entry itself, as BibTeX; empty if it cites none.
    """

    authors: str
    papers: tuple[str, ...]
    link: str
    year: str
    license: str
    date: str
    bibtex: str

    def to_dict(self) -> dict[str, Any]:
        """Those of its values that say something."""
        return {name: value for name, value in vars(self).items() if value}


def cite_board(board: Board) -> str:
    """A board and the paper of the benchmark as BibTeX."""
    date = _day(board.meta.get("date"))
    title = sanitize(board.meta.get("title") or f"{board.scenario} on {board.dataset}", 120)
    fingerprint = sanitize(str(board.meta.get("fingerprint") or "")[:16])
    about = [
        f"graph-robustness-benchmark {__version__}",
        f"dataset {sanitize(board.dataset)}" + (f" ({fingerprint})" if fingerprint else ""),
        f"measured {date}" if date else "",
    ]
    values = {
        "title": f"{_text(title)}, leaderboard",
        "author": "{the grb authors}",
        "year": date[:4],
        "note": _text(", ".join(part for part in about if part)),
    }
    key = slug(f"{board.meta.get('recipe') or board.dataset}-{board.scenario}") + (f"-{date}" if date else "")
    return bibtex("misc", key, values) + "\n\n" + PAPER


def citations(board: Board, kind: str) -> list[Citation]:
    """The citation of every row (``defense``) or column (``attack``) of a board, in its order."""
    names = board.defenses if kind == "defense" else board.attacks
    given = board.meta.get("cards")
    cards = given if isinstance(given, Mapping) else {}
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    for cell in board.cells:
        own = cell.defense if kind == "defense" else cell.attack
        if own in cells and (kind == "defense" or cell.knowledge != "white-box"):
            cells[own].append(cell)
    return [_citation(kind, name, cells[name], cards.get(name)) for name in names]


def _citation(kind: str, name: str, cells: Sequence[Cell], card: Any) -> Citation:
    dates = [date for cell in cells for run in cell.metadata if (date := _day(run.get("date")))]
    date = max(dates, default="")
    if isinstance(card, Mapping):
        return _submitted(name, card, date)
    papers = references("model" if kind == "defense" else "attack", _method(kind, name, cells))
    return Citation(
        authors="; ".join(dict.fromkeys(paper.authors for paper in papers)),
        papers=tuple(_words(paper) for paper in papers),
        link=next((paper.link for paper in papers if paper.link), ""),
        year=str(papers[0].year) if papers else "",
        license="",
        date=date,
        bibtex="\n\n".join(paper.to_bibtex() for paper in papers),
    )


def _method(kind: str, name: str, cells: Iterable[Cell]) -> str:
    """The name of the catalogue behind a row or column; its records know it, its label may say more."""
    wanted = "victim_spec" if kind == "defense" else "attack_spec"
    for cell in cells:
        for run in cell.metadata:
            spec = run.get(wanted)
            if isinstance(spec, Mapping) and isinstance(spec.get("name"), str):
                return str(spec["name"])
    return re.split(r"[ (]", name)[0]


def _submitted(name: str, card: Mapping[str, Any], date: str) -> Citation:
    """What a card says; it was written by its authors."""
    given = card.get("authors", "")
    listed = [str(each) for each in given[:100]] if isinstance(given, list | tuple) else str(given).split(", ")
    authors = [sanitize(each, 80) for each in listed if each]
    link, year = safe_link(card.get("link")) or "", sanitize(card.get("year") or "", 4)
    license_name = sanitize(card.get("license") or "")
    values = {
        "title": f"{{{_text(sanitize(name))}}}",
        "author": _text(" and ".join(authors)),
        "year": year or date[:4],
        "url": link,  # without braces, as safe_link says
    }
    entry = bibtex("misc", slug(name), values)
    return Citation(", ".join(authors), (), link, year, license_name, date, entry)


def _words(paper: Reference) -> str:
    place = f"{paper.venue} {paper.year}" if paper.venue else str(paper.year)
    return sanitize(f"{paper.authors}: {paper.title}, {place}", MESSAGE_LENGTH)


def _text(text: str) -> str:
    """Text without what BibTeX or LaTeX take for more than text."""
    return re.sub(r"[\\{}$&#^_~%\"@]", " ", text)


def _day(value: Any) -> str:
    """A day as YYYY-MM-DD; empty for anything else."""
    return value if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) else ""
