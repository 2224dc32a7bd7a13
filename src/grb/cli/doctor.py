"""``grb doctor``: is this machine set up well, and what to do where it is not."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from grb import catalogue
from grb._version import __version__
from grb.cli import output
from grb.cli.ls import ABSENT, where
from grb.cli.options import Json
from grb.dataset import registry
from grb.errors import DISTRIBUTION

ANCESTOR = "grb"
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
TUNABLE = "glibc.malloc.hugetlb"
STYLES = {"ok": "green", "warning": "bold yellow", "missing": "yellow", "hint": "cyan", "info": "dim"}
# extras for working on grb itself, which users do not need
WORKSHOP = ("dev", "docs", "all")


@dataclass(frozen=True)
class Fact:
    """One finding, with advice where there is something to do."""

    group: str
    name: str
    value: str
    status: Literal["ok", "info", "hint", "missing", "warning"] = "info"
    advice: str | None = None


def doctor(
    everything: Annotated[bool, typer.Option("--all", help="Also list what is in order.")] = False,
    as_json: Json = False,
) -> None:
    """Show versions, threads, memory settings and data, with advice for whatever could be better.

    \b
    Examples:
      grb doctor
      grb doctor --all
      grb doctor --json > machine.json
    """
    facts = [*_packages(), *_ancestor(), *_machine(), *_huge_pages(), *_environment(), *_data()]
    if as_json:
        output.print_json({"facts": [asdict(fact) for fact in facts], "advice": [f.advice for f in facts if f.advice]})
        return
    facts = facts if everything else _shortened(facts)
    for group in dict.fromkeys(fact.group for fact in facts):
        rows = [(Text(f.status, STYLES[f.status]), f.name, f.value) for f in facts if f.group == group]
        output.table(group, ["", "what", "found"], rows)
    advice = [(fact.name, fact.advice) for fact in facts if fact.advice]
    output.facts("advice" if advice else "nothing to do", advice)


def _shortened(facts: Sequence[Fact]) -> list[Fact]:
    """Long lists of what is in order as one line each."""
    kept: list[Fact] = []
    for group, what in (("versions", "packages"), ("datasets", "datasets")):
        fine = [
            fact for fact in facts if fact.group == group and fact.status == "ok" and fact.name not in ("Python", "grb")
        ]
        if len(fine) > 1:
            names = ", ".join(fact.name for fact in fine[:4]) + (", ..." if len(fine) > 4 else "")
            kept.append(Fact(group, what, f"{len(fine)} found: {names} (--all lists them)", "ok"))
            facts = [fact for fact in facts if fact not in fine]
    order = list(dict.fromkeys(fact.group for fact in [*facts, *kept]))
    return sorted([*facts, *kept], key=lambda fact: order.index(fact.group))


def installed(distribution: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def requirements() -> dict[str, list[str]]:
    """Distributions that grb needs by extra; the core ones are under an empty name."""
    try:
        listed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, list[str]] = {"": []}
    for line in listed:
        name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
        extra = re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", line)
        if name != DISTRIBUTION:
            found.setdefault(extra.group(1) if extra else "", []).append(name)
    return found


def _packages() -> Iterator[Fact]:
    yield Fact("versions", "Python", f"{platform.python_version()} on {platform.platform()}", "ok")
    needed = requirements()
    if not needed:
        hint = "grb runs from a source tree; install it with: pip install . in its clone"
        yield Fact("versions", "grb", f"{__version__}, not installed", "warning", hint)
    else:
        yield Fact("versions", "grb", __version__, "ok")
    for name in needed.get("", []):
        version = installed(name)
        advice = None if version else "pip install . in the clone of grb brings it"
        yield Fact("versions", name, version or "not installed", "ok" if version else "warning", advice)
    for extra, parts in needed.items():
        if extra and extra not in WORKSHOP:
            yield _extra(extra, parts)


def _extra(extra: str, parts: list[str]) -> Fact:
    versions = {name: installed(name) for name in parts}
    absent = [name for name, version in versions.items() if version is None]
    value = ", ".join(f"{name} {version}" if version else f"{name} not installed" for name, version in versions.items())
    if not absent:
        return Fact("optional packages", extra, value, "ok")
    return Fact("optional packages", extra, value, "missing", f'if you need it: pip install ".[{extra}]" in the clone')


def _ancestor() -> Iterator[Fact]:
    version = installed(ANCESTOR)
    if version is not None:
        yield Fact(
            "versions",
            f"distribution '{ANCESTOR}'",
            f"{version}: another package that also installs the module grb",
            "warning",
            f"remove it and install ours again: pip uninstall {ANCESTOR} && "
            "pip install --force-reinstall --no-deps . in the clone of ours",
        )


def _machine() -> Iterator[Fact]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Fact("machine", "CPUs", f"{os.cpu_count()}, of which this process may use {usable}")
    try:
        import torch
    except Exception as error:  # a broken torch is a finding, not a reason to stop
        yield Fact("machine", "torch", f"cannot be imported: {error}", "warning", "pip install --force-reinstall torch")
        return
    yield Fact(
        "machine", "threads of torch", f"{torch.get_num_threads()}; `grb train` takes 1 unless --threads says more"
    )
    if torch.cuda.is_available():
        yield Fact("machine", "device", f"CUDA: {torch.cuda.get_device_name()}; use --device cuda", "ok")
    else:
        yield Fact("machine", "device", "CPU; no CUDA device is usable")


def _huge_pages() -> Iterator[Fact]:
    try:
        text = HUGE_PAGES.read_text(encoding="utf-8")
    except OSError:
        yield Fact("machine", "transparent huge pages", "not known on this system")
        return
    setting = next(iter(re.findall(r"\[(\w+)\]", text)), text.strip())
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    asked = TUNABLE in tunables
    value = f"{setting}; GLIBC_TUNABLES {tunables if asked else f'does not set {TUNABLE}'}"
    if setting == "madvise" and not asked:
        advice = (
            f"start grb with GLIBC_TUNABLES={TUNABLE}=1 in the environment: memory then comes in pages of 2 MB, which "
            "made sparse products on graphs of grb-flickr's size and larger about twice as fast"
        )
        yield Fact("machine", "transparent huge pages", value, "hint", advice)
    elif setting == "never":
        advice = f"if you administer this machine: echo madvise > {HUGE_PAGES}; sparse products on large graphs gain"
        yield Fact("machine", "transparent huge pages", value, "hint", advice)
    else:
        yield Fact("machine", "transparent huge pages", value, "ok")


def _environment() -> Iterator[Fact]:
    policy = os.environ.get("OMP_WAIT_POLICY", "not set")
    passive = policy.upper() == "PASSIVE"
    yield Fact(
        "environment",
        "OMP_WAIT_POLICY",
        f"{policy} (the command grb sets PASSIVE if nothing is set; scripts and notebooks should too)",
        "ok" if passive else "warning",
        None if passive else "set OMP_WAIT_POLICY=PASSIVE: threads that spin while they wait slow a busy machine down",
    )
    yield Fact("environment", "OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "not set"))
    for root in registry.roots()[:-1]:
        if not root.is_dir():
            advice = f"{root} is no directory; correct GRB_DATA, a list of directories separated by '{os.pathsep}'"
            yield Fact("environment", "GRB_DATA", str(root), "warning", advice)
    given = os.environ.get("GRB_DATA")
    advice = "set GRB_DATA to the directory that holds GRB/grb-cora and so on, if you have the datasets"
    yield Fact("environment", "GRB_DATA", given or "not set", "ok" if given else "hint", None if given else advice)
    home = os.environ.get("GRB_HOME")
    yield Fact("environment", "GRB_HOME", home or f"not set, so {registry.home()}")
    offline = os.environ.get("GRB_OFFLINE", "")
    meaning = "the network is never used" if offline not in ("", "0") else "downloads are allowed"
    yield Fact("environment", "GRB_OFFLINE", f"{offline or 'not set'}: {meaning}")


def _data() -> Iterator[Fact]:
    places = {name: where(name) for name in catalogue.entries("dataset")}
    yield from (Fact("datasets", name, place, "ok") for name, place in places.items() if place != ABSENT)
    missing = [name for name, place in places.items() if place == ABSENT]
    if missing:
        listed = sum(registry.has_files(name) for name in missing)
        value = f"{len(missing)} of {len(places)}: {listed} in the layout of GRB, {len(missing) - listed} of raw files"
        advice = "`grb ls datasets` lists them; `grb data get NAME` gets one of GRB, or says what another one needs"
        yield Fact("datasets", "missing", value, "missing", advice)
