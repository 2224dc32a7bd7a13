"""How large is the leaderboard's page, how long does it take to build, and how fast are opening and sorting in a browser?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/page.py [--defenses 40] [--attacks 20] [--repeats 10] [--store STORE]

A made-up board of 40 defenses, 20 attacks, 4 difficulties and 10 repeats; limits are 4 MB, 300 ms from the last byte to a
page that answers (its script has drawn everything and the load event is over), and 50 ms for a sort. With a store the board
is its own. Both are measured in Chromium through playwright, a sort from the click to the end of the layout, with all
columns (sort_all_ms) and with those that are shown first (sort_ms); on a busy machine look at the CPU time of the page's
thread beside it. All are left out where either is missing. Peer in the same run:
the board as indented JSON.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import best, peak_gigabytes, row

from grb.evaluator.board import CLEAN, Board, Run, board_from_runs
from grb.leaderboard.export import to_json
from grb.leaderboard.page import build_page
from grb.pipeline.spec import digest

MODES = ("easy", "medium", "hard", "full")
SORTS = """() => [...document.querySelectorAll('#board thead button')].map((button) => {
  const start = performance.now(); button.click(); document.body.offsetHeight; return performance.now() - start; })"""
# the load event is over, from the last byte of the file
READY = (
    """() => { const [own] = performance.getEntriesByType("navigation"); return own.loadEventEnd - own.responseEnd; }"""
)
OPENINGS = 3
DRAWS = """() => [...document.querySelectorAll('#modes input')].map((radio) => {
  const start = performance.now(); radio.click(); document.body.offsetHeight; return performance.now() - start; })"""


def made_up(defenses: int, attacks: int, repeats: int) -> Board:
    draw = np.random.default_rng(0)
    rows = [
        Run(attack, f"defense-{number}", difficulty, repeat, 0, float(draw.random()), 0.1, knowledge, None, metadata)
        for number in range(defenses)
        for difficulty in MODES
        for attack, knowledge, count in [
            (CLEAN, "none", 1),
            *((f"attack-{place}", "transfer", repeats) for place in range(attacks)),
        ]
        for repeat in range(count)
        for metadata in [made_up_facts(number, attack, difficulty, repeat)]
    ]
    return board_from_runs(
        rows, dataset="made-up", scenario="injection", difficulties=MODES, meta={"recipe": "made-up"}
    )


def made_up_facts(number: int, attack: str, difficulty: str, repeat: int) -> dict[str, object]:
    metadata = {
        "score": digest([number, attack, difficulty, repeat]),
        "victim": digest(number),
        "victim_seed": 0,
        "threads": 1,
    }
    if attack == CLEAN:
        return metadata
    own = {"attack": digest([attack, difficulty, repeat]), "attack_seed": repeat, "attack_seconds": 1.5 + repeat}
    threat = {"kind": "injection", "nodes": 60, "edges_per_node": 20, "feature_range": [-0.94, 0.94]}
    return {
        **metadata,
        **own,
        "attack_megabytes": 300.0,
        "edit_bytes": 70000,
        "budget": {"nodes": 60.0},
        "threat": threat,
    }


def in_browser(text: str) -> dict[str, float]:
    """Milliseconds of a sort and of a change of the difficulty; empty without a browser."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    if chromium is None:
        return {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        path.write_text(text, encoding="utf-8")
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        ready, worked = [], []
        for _ in range(OPENINGS):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(path.as_uri())
            ready.append(page.evaluate(READY))
            worked.append(_busy(session))
            if len(ready) < OPENINGS:
                page.close()
        short, short_cpu = _sorted(page, session)
        draws = page.evaluate(DRAWS)
        page.evaluate("() => document.getElementById('all').click()")
        wide, wide_cpu = _sorted(page, session)
        browser.close()
    return {
        "interactive_ms": statistics.median(ready),
        "interactive_cpu_ms": statistics.median(worked),
        "sort_ms": statistics.median(short),
        "sort_cpu_ms": short_cpu,
        "sort_all_ms": statistics.median(wide),
        "sort_all_cpu_ms": wide_cpu,
        "switch_ms": statistics.median(draws),
    }


def _busy(session: Any) -> float:
    """CPU milliseconds that the page's main thread has worked so far: parsing, script, style, layout."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * metrics["TaskDuration"]


def _sorted(page: Any, session: Any) -> tuple[list[float], float]:
    """Wall milliseconds of a sort by every column, and CPU milliseconds of one on average."""
    before = _busy(session)
    times = page.evaluate(SORTS)
    return times, (_busy(session) - before) / len(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defenses", type=int, default=40)
    parser.add_argument("--attacks", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--store", type=Path)
    arguments = parser.parse_args()
    if arguments.store is None:
        boards = [made_up(arguments.defenses, arguments.attacks, arguments.repeats)]
    else:
        from grb.pipeline import Store
        from grb.pipeline import boards as boards_of

        boards = boards_of(Store(arguments.store))
    for board in boards:
        text = build_page([board])
        row(
            board=board.meta.get("recipe"),
            defenses=len(board.defenses),
            attacks=len(board.attacks),
            difficulties=len(board.difficulties),
            runs=sum(len(cell.values) for cell in board.cells),
            page_mb=len(text.encode()) / 2**20,
            json_mb=len(to_json([board]).encode()) / 2**20,
            build_s=best(lambda board=board: build_page([board]), 3),
            build_cpu_s=best(lambda board=board: build_page([board]), 3, cpu=True),
            peak_gb=peak_gigabytes(),
            **in_browser(text),
        )


if __name__ == "__main__":
    main()
