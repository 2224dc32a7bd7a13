"""What an installed copy promises: one version, type information, a command, data files, light imports."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata, resources
from pathlib import Path

import pytest
import yaml

import grb

DISTRIBUTION = "graph-robustness-benchmark"
ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = ("dask", "distributed", "optuna", "ogb", "igraph", "dgl", "cogdl", "securesystemslib", "cryptography")


def test_metadata_and_module_agree_on_the_version():
    assert metadata.version(DISTRIBUTION) == grb.__version__


def test_version_is_a_release_number():
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", grb.__version__)


def test_citation_and_changelog_are_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    headings = re.findall(
        r"^## \[(.+)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )
    assert headings[0] == ("Unreleased", "")
    assert headings[1] == (grb.__version__, str(citation["date-released"]))
    assert citation["version"] == grb.__version__


def test_an_environment_is_brought_up_to_date_when_the_version_changes():
    rules = re.findall(r"^\$\(VENV\)/\.stamp-\w+: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    inputs = {"pyproject.toml", "constraints.txt", "src/grb/_version.py"}
    assert len(rules) == 2 and all(inputs <= set(rule.split()) for rule in rules)


def test_package_is_marked_as_typed():
    assert resources.files("grb").joinpath("py.typed").is_file()


def test_command_grb_calls_the_main_function_of_the_cli():
    (script,) = (
        point for point in metadata.distribution(DISTRIBUTION).entry_points if point.group == "console_scripts"
    )
    assert (script.name, script.value) == ("grb", "grb.cli:main")
    assert callable(script.load())


@pytest.mark.parametrize("extra", ["dask", "automl", "ogb", "igraph", "sign", "docs", "dev", "all"])
def test_extra_is_declared(extra):
    assert extra in (metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or [])


def declared() -> dict[str, list[str]]:
    """Names of the packages that pyproject.toml asks for, by extra; those of everybody under an empty name."""
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines[extra]] for extra in lines}


def test_constraints_pin_every_core_dependency():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower() for line in lines if "==" in line and not line.startswith("#")}
    assert {name.lower().replace("_", "-") for name in declared()[""]} <= pinned


def imported_by_the_package() -> set[str]:
    """Top-level names of all modules that some file of the package imports, through ``errors.require`` too."""
    found = set()
    for path in (ROOT / "src" / "grb").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require":
                found |= {each.value.partition(".")[0] for each in node.args[:1] if isinstance(each, ast.Constant)}
    return found


def test_every_declared_dependency_is_imported_somewhere():
    for_working_on_it = {"dev", "docs", "all"}
    names = [name for extra, each in declared().items() if extra not in for_working_on_it for name in each]
    modules = {"scikit-learn": "sklearn", "PyYAML": "yaml"}
    imported = imported_by_the_package()
    assert len(names) > 12 and [name for name in names if modules.get(name, name) not in imported] == []


def test_importing_grb_is_silent_and_loads_neither_optional_packages_nor_paper_era_paths():
    code = f"import sys, grb; print(sorted(set(sys.modules) & set({(*OPTIONAL, 'grb.utils')!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_the_dockerfile_copies_what_exists_and_ends_as_a_user_without_rights():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{name}" for name in copied} <= set(allowed)
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users and int(users[-1]) > 0  # a number, by which a cluster can tell that it is not root
    assert lines.index(f"USER {users[-1]}") > max(place for place, line in enumerate(lines) if line.startswith("RUN "))
    assert 'ENTRYPOINT ["grb"]' in lines
    version = re.search(r"^FROM python:(3\.\d+)-slim$", "\n".join(lines), re.MULTILINE)
    assert version and f"Programming Language :: Python :: {version[1]}" in metadata.metadata(DISTRIBUTION).get_all(
        "Classifier"
    )


def test_what_the_build_reads_is_copied_into_the_image():
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {project["readme"], *project["license-files"], "pyproject.toml", "constraints.txt", "src"}
    assert all(re.search(rf"^COPY .*\b{re.escape(name)}\b", (ROOT / "Dockerfile").read_text(), re.M) for name in needed)


def test_hooks_before_a_commit_are_the_checks_of_make_lint():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    programs = {hook["entry"].removeprefix(".venv/bin/").partition(" --")[0] for hook in hooks}
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None
    linted = {line.strip().removeprefix("$(BIN)/").partition(" --")[0] for line in recipe[1].splitlines()}
    assert programs == {command.removesuffix(" .") for command in linted}


def test_whatever_the_tests_read_is_in_the_sdist():
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    packed = {path.strip("/") for path in build["targets"]["sdist"]["include"]}
    packed |= {"pyproject.toml", "README.md", "LICENSE", ".gitignore"}  # hatchling packs these by itself
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no clone")
    assert {name.partition("/")[0] for name in listed.stdout.splitlines()} == packed


@pytest.mark.slow
def test_sdist_and_wheel_install_in_a_clean_environment(tmp_path):
    """Builds the sdist, the wheel from it, installs it with its dependencies into a new environment, and uses it there.

    Needs an index to install from: pytest -m slow tests/test_packaging.py
    """

    def call(*command, **options):
        done = subprocess.run(
            [str(word) for word in command], cwd=tmp_path, capture_output=True, text=True, timeout=3600, **options
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    # without --wheel or --sdist the wheel is built from the sdist, so that what the sdist lacks shows
    call(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT)
    (sdist,), (wheel,) = (list((tmp_path / "dist").glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "SECURITY.md", "mkdocs.yml", "tests/test_packaging.py", "docs/start.md"} <= inside
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("grb/")}
    source = ROOT / "src"
    files = {str(path.relative_to(source)) for path in (source / "grb").rglob("*") if path.is_file()}
    assert packed == {name for name in files if "__pycache__" not in name}

    call(sys.executable, "-m", "venv", tmp_path / "new")
    python, grb_command = tmp_path / "new" / "bin" / "python", tmp_path / "new" / "bin" / "grb"
    call(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
    call(python, "-m", "pip", "check")
    home = {**os.environ, "GRB_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    home.pop("PYTHONPATH", None)
    where = call(python, "-c", "import grb; print(grb.__file__)", env=home)
    assert str(tmp_path / "new") in where
    assert call(grb_command, "--version", env=home) == call(python, "-m", "grb", "--version", env=home)
    assert "grb-cora" in call(grb_command, "ls", "recipes", env=home)
    call(grb_command, "taxonomy", "analyse", "transductive", "--n-bootstrap", "9", env=home)
    call(grb_command, "reproduce", "synth-tiny", "--quick", "--store", "results", "--workers", "1", env=home)
    call(grb_command, "leaderboard", "build", "results", "-o", "page.html", env=home)
    assert "</html>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks[:2]:  # the five lines, and a model of torch_geometric
        assert "full" in call(python, "-c", block, env=home)
