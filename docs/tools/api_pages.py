"""The reference of the library: one page per package, every module of it, read from the docstrings without importing."""

from __future__ import annotations

from pathlib import Path

# from the top downwards, as the import contract has it; paper-era paths and the command are elsewhere
PACKAGES = (
    "api",
    "auditing",
    "leaderboard",
    "visualise",
    "automl",
    "pipeline",
    "evaluator",
    "taxonomy",
    "defense",
    "attack",
    "attack.auto",
    "attack.injection",
    "attack.modification",
    "certificate",
    "detector",
    "trainer",
    "model",
    "model.torch",
    "model.profiling",
    "dataset",
    "threat",
    "target_limits",
    "constraints",
    "perturb",
    "metric",
    "graph",
    "artefacts",
    "catalogue",
    "names",
    "references",
    "entries",
    "serial",
    "atomic",
    "errors",
)


def pages(source: Path) -> dict[str, str]:
    """Path and Markdown of every page below ``reference/api``."""
    return {f"reference/api/{name}.md": _page(source, name) for name in PACKAGES}


def modules(source: Path, name: str) -> list[str]:
    """Dotted names of the modules of a package, not of those below it, that have something of their own to show."""
    place = _place(source, name)
    files = sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    found = [file for file in files if file.name != "__init__.py" and not _re_export(file)]
    return [".".join(file.relative_to(source).with_suffix("").parts) for file in found]


def _place(source: Path, name: str) -> Path:
    return source.joinpath("grb", *name.split("."))


def _re_export(file: Path) -> bool:
    """Whether a module only repeats names of another one, as those of the paper era do."""
    return len(file.read_text(encoding="utf-8").splitlines()) <= 2


def _page(source: Path, name: str) -> str:
    blocks = [f"# grb.{name}\n"]
    if _place(source, name).is_dir():
        blocks.append(f"::: grb.{name}\n    options:\n      members: false\n      show_root_heading: false\n")
    blocks.extend(f"::: {module}\n" for module in modules(source, name))
    return "\n".join(blocks)
