"""Every example and every Python block of the documentation runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import find_dataset

ROOT = Path(__file__).parent.parent
HAS_GRB_CORA = find_dataset("GRB/grb-cora") is not None
NEEDS_GRB_CORA = re.compile(r"""^[^#\n]*["']grb-cora["']""", re.MULTILINE)  # not in a comment
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=page_id)
def test_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page):
        if NEEDS_GRB_CORA.search(block) and not HAS_GRB_CORA:
            continue
        exec(compile(block, page_id(page), "exec"), names)
    assert len(names) > 1


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_inside_the_repository_resolve(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_blocks_that_need_the_true_data_are_recognised_and_comments_are_not() -> None:
    first, *_, paper = blocks(ROOT / "README.md")
    assert not NEEDS_GRB_CORA.search(first) and NEEDS_GRB_CORA.search(paper)
