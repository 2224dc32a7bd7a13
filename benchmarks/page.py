"""How large is the leaderboard's page, how long does it take to build, and how fast does it sort in a browser?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/page.py [--defenses 40] [--attacks 12] [--repeats 10] [--store STORE]

A made-up board of 40 defenses, 12 attacks, 4 difficulties and 10 repeats; limits are 4 MB, 5 s and 100 ms. With a store
the board is its own (grb-cora: 1 MB). Sorting is measured in Chromium through playwright, from the click to the end of
the layout, and left out where either is missing. Peer in the same run: the board as indented JSON.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from common import best, peak_gigabytes, row

from grb.evaluator.board import CLEAN, Board, Run, board_from_runs
from grb.leaderboard.export import to_json
from grb.leaderboard.page import build_page
from grb.pipeline.spec import digest

MODES = ("easy", "medium", "hard", "full")
SORTS = """() => [...document.querySelectorAll('#board thead button')].map((button) => {
  const start = performance.now(); button.click(); document.body.offsetHeight; return performance.now() - start; })"""
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
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        start = time.perf_counter()
        page.goto(path.as_uri())
        opened = 1000 * (time.perf_counter() - start)
        sorts, draws = page.evaluate(SORTS), page.evaluate(DRAWS)
        browser.close()
    return {
        "open_ms": opened,
        "sort_ms": statistics.median(sorts),
        "sort_ms_best": min(sorts),
        "switch_ms": statistics.median(draws),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defenses", type=int, default=40)
    parser.add_argument("--attacks", type=int, default=12)
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
