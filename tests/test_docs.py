"""Every example and every Python block of the documentation runs, every command in it parses, every link leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.commands import mention, parse
from helpers import find_dataset

ROOT = Path(__file__).parent.parent
HAS_GRB_CORA = find_dataset("GRB/grb-cora") is not None
NEEDS_GRB_CORA = re.compile(r"""^[^#\n]*["']grb-cora["']""", re.MULTILINE)  # not in a comment
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL_PAGES = [
    *PAGES,
    *sorted(path for path in ROOT.glob("*.md") if path.name != "README.md"),
    ROOT / "examples/README.md",
]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


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
    for optional in re.findall(r"^import (pandas|optuna)\b", example.read_text(encoding="utf-8"), re.MULTILINE):
        pytest.importorskip(optional, reason=f"the example needs {optional}, which grb does not")
    run = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout


def shell_lines(page: Path) -> list[str]:
    """Lines of a page's shell blocks that call the command."""
    found = re.findall(r"^```(?:sh)?\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = "\n".join(found).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if re.match(r"\s*(?:\.venv/bin/)?grb ", line)]


@pytest.mark.parametrize("page", [page for page in ALL_PAGES if shell_lines(page)], ids=page_id)
def test_commands_of_a_page_are_those_that_the_command_takes(page: Path) -> None:
    for line in shell_lines(page):
        assert parse(line).startswith("grb")


@pytest.mark.parametrize("page", ALL_PAGES, ids=page_id)
def test_commands_that_a_page_speaks_of_exist(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for line in re.findall(r"(?<!`)`(grb [a-z-][^`|]*)`(?!`)", text):
        assert mention(" ".join(line.split())).startswith("grb")


def test_commands_of_the_first_page_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from grb.cli.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # one worker: starting another costs more than it saves
    lines = shell_lines(ROOT / "docs/start.md")
    assert [line.split()[1] for line in lines] == (
        ["doctor", "ls", "train", "attack", "eval", "run", "reproduce", "leaderboard", "store"]
    )
    for line in lines:
        done = CliRunner().invoke(app, re.sub(r"\s#\s.*", "", line).split()[1:])
        assert done.exit_code == 0, f"{line}: {done.stderr}"
    assert {"gcn.safetensors", "edit.npz", "page.html", "results"} <= {path.name for path in tmp_path.iterdir()}


def links(page: Path) -> list[tuple[str, str]]:
    """Target and anchor of every link into the repository."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)", text)


def anchors(page: Path) -> set[str]:
    """Names of a page's headings, as sites that host Markdown make them."""
    heads = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", ALL_PAGES, ids=page_id)
def test_links_inside_the_repository_resolve(page: Path) -> None:
    targets = [(page.parent / link if link else page, anchor) for link, anchor in links(page)]
    assert [str(target) for target, _ in targets if not target.exists()] == []
    assert [(str(target), anchor) for target, anchor in targets if anchor and anchor not in anchors(target)] == []


def test_every_page_can_be_reached_from_the_first() -> None:
    """By links of pages and their readers' next steps: a page that nothing links to is not found."""
    seen, queue = set(), [ROOT / "README.md"]
    while queue:
        page = queue.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = [(page.parent / link).resolve() for link, _ in links(page) if link.endswith(".md")]
        queue.extend(target for target in targets if target.is_file())
    assert [page_id(page) for page in PAGES if page not in seen] == []


def test_blocks_that_need_the_true_data_are_recognised_and_comments_are_not() -> None:
    first, *_, paper = blocks(ROOT / "README.md")
    assert not NEEDS_GRB_CORA.search(first) and NEEDS_GRB_CORA.search(paper)
