"""What the site has beyond the pages of this folder: the reference, made of the code when the site is built; notebooks;
and files elsewhere in the repository that pages link to. Pages keep links that also work where the repository is hosted."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import api_pages  # noqa: E402
import cli_pages  # noqa: E402
import docstrings  # noqa: E402
import notebooks  # noqa: E402

FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:|data:)([^)#\s]+)(#[^)\s]*)?\)")
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".cff": "yaml"}


def on_files(files: Files, config: Any) -> Files:
    made = {"reference/cli.md": cli_pages.page(), **api_pages.pages(ROOT / "src")}
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = notebooks.to_markdown(notebooks.read(path))
    for page in list(files.documentation_pages()):
        made.update(_linked_from(f"docs/{page.src_uri}", page.content_string))
    for name in PROJECT:
        made[_place(name)] = _page(name)
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as the site needs them; mkdocs then checks every one of them."""
    here = page.file.src_uri
    home = _home(here)

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(home), found[1]))
        return f"]({posixpath.relpath(_place(target), posixpath.dirname(here) or '.')}{found[2] or ''})"

    markdown = docstrings.pages_formulas(markdown)
    parts = FENCED.split(markdown)  # every second one is code, in which brackets are no links
    return "".join(part if place % 2 else LINK.sub(moved, part) for place, part in enumerate(parts))


def _place(path: str) -> str:
    """Where the site has a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    return f"repository/{path}" + ("" if path.endswith(".md") else ".md")


def _home(uri: str) -> str:
    """Where the repository has a page of the site."""
    if not uri.startswith("repository/"):
        return f"docs/{uri}"
    path = uri.removeprefix("repository/")
    return path if (ROOT / path).exists() else path.removesuffix(".md")


def _linked_from(home: str, text: str) -> dict[str, str]:
    """Pages for the files outside of this folder that a page links to."""
    links = LINK.finditer(FENCED.sub("", text))
    targets = (posixpath.normpath(posixpath.join(posixpath.dirname(home), found[1])) for found in links)
    outside = {target for target in targets if not target.startswith(("docs/", os.pardir))}
    return {_place(target): _page(target) for target in outside if (ROOT / target).is_file()}


def _page(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    return f"# {path}\n\n```{LANGUAGES.get(PurePosixPath(path).suffix, 'text')}\n{text}```\n"
