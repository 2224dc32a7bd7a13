"""The documentation site: pages made of the code are complete, and pages written by hand agree with it."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from docs.tools import api_pages, cli_pages, docstrings, readme

from grb import artefacts
from grb.auditing import report
from grb.evaluator import board, certified, measurement
from grb.graph import edit
from grb.leaderboard import changes
from grb.pipeline import job, record, study
from grb.pipeline.recipe import Recipe
from grb.trainer import checkpoint

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
HOOKS = runpy.run_path(str(ROOT / "docs/tools/hooks.py"))


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


# the README


def test_the_table_of_the_readme_is_that_of_the_catalogue() -> None:
    text = readme.README.read_text(encoding="utf-8")
    assert text == readme.renewed(text), "python docs/tools/readme.py renews it"


def test_a_readme_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="marks"):
        readme.renewed("no table here")


# pages made of the code


def test_every_module_is_on_exactly_one_page_of_the_reference() -> None:
    listed = [module for name in api_pages.PACKAGES for module in api_pages.modules(SOURCE, name)]
    assert len(set(listed)) == len(listed)
    apart = re.compile(r"grb\.(cli|compat|utils|model\.dgl|model\.cogdl)\b|(.*\.)?_")
    files = [file for file in (SOURCE / "grb").rglob("*.py") if file.name != "__init__.py"]
    own = [file for file in files if len(file.read_text(encoding="utf-8").splitlines()) > 2]  # not a re-export
    names = {".".join(file.relative_to(SOURCE).with_suffix("").parts) for file in own}
    assert {name for name in names if not apart.match(name)} == set(listed)


def test_every_page_of_the_reference_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    places = set(re.findall(r": (\S+\.md)$", text, re.MULTILINE))
    assert {*api_pages.pages(SOURCE), "reference/cli.md"} <= places
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert written - places == set(), "mkdocs.yml has no place for these"


def test_the_page_of_the_command_has_every_verb_with_its_options() -> None:
    text = cli_pages.page()
    heads = re.findall(r"^## (grb .*)$", text, re.MULTILINE)
    assert heads == [name for name, _ in cli_pages.verbs()]
    assert "`--dataset, -d VALUE`" in text and "\b" not in text
    assert "--install-completion" in text


def test_docstrings_become_markdown() -> None:
    text = docstrings.readable("One :math:`a_b * c`.\n\n.. math:: x^2\n    + y\n\nAfter.\n\n>>> 1 + 1\n2\n")
    inline, block = re.findall(r"<math.*?</math>", text)
    assert "display" not in inline.replace('display="inline"', "") and 'display="block"' in block
    assert "&#42;" in inline or "&#x0002A;" in inline or "∗" in inline
    assert "math::" not in text and "After." in text and "```python\n>>> 1 + 1\n2\n```" in text


def test_formulas_of_pages_become_mathml_and_code_keeps_its_dollars() -> None:
    text = docstrings.pages_formulas("A $x_1$, `$HOME`, 5 $ or 6 $.\n\n$$ y = x^2 $$\n\n```sh\necho $A $B\n```\n")
    assert text.count("<math") == 2 and 'display="block"' in text and "overflow" in text
    assert "`$HOME`, 5 $ or 6 $." in text and "echo $A $B" in text


def test_every_formula_of_a_page_can_be_drawn() -> None:
    found = 0
    for file in (ROOT / "docs").rglob("*.md"):
        text = docstrings.pages_formulas(file.read_text(encoding="utf-8"))
        assert "<merror" not in text
        left = "".join(docstrings.CODE.split(text)[::2])
        assert not re.search(r"\$[^$]*\\[a-z]+", left), f"{file.name} has a formula that stays LaTeX"
        found += text.count("<math")
    assert found >= 15


def test_every_formula_of_the_library_can_be_drawn() -> None:
    count = 0
    for file in (SOURCE / "grb").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for formula in docstrings.INLINE.findall(text):
            count += 1
            assert docstrings.mathml(formula).startswith("<math")
        for found in docstrings.FORMULA.finditer(text):
            count += 1
            assert "<merror" not in docstrings.mathml(found[2] + found[3], "block")
    assert count > 100


@pytest.mark.parametrize("module", [docstrings, cli_pages], ids=lambda module: module.__name__)
def test_examples_of_the_tools_hold(module: Any) -> None:
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_links_are_moved_to_where_the_site_has_their_targets() -> None:
    def moved(text: str, uri: str) -> str:
        made = HOOKS["on_page_markdown"](text, page=SimpleNamespace(file=SimpleNamespace(src_uri=uri)))
        return str(made)

    assert moved("[a](../examples/own_dataset.py)", "models.md") == "[a](repository/examples/own_dataset.py.md)"
    assert moved("[a](../notebooks/x.ipynb#b)", "howto/data.md") == "[a](../notebooks/x.md#b)"
    assert moved("[a](docs/start.md)", "repository/CONTRIBUTING.md") == "[a](../start.md)"
    same = "[a](#here) [b](https://example.org) [c](attacks.md#names)\n\n```python\nrow[0](1)\n```\n"
    assert moved(same, "index.md") == same


def test_the_site_asks_nobody_for_anything() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    # fonts, and the search of a site without a server, would come from elsewhere
    assert config["strict"] and config["theme"]["font"] is False and "offline" not in config["plugins"]
    assert "http" not in str({key: value for key, value in config.items() if key != "nav"})


# pages written by hand


def test_the_page_of_the_recipe_has_every_key_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", page("reference/recipe.md"), re.MULTILINE))
    fields = {field.name: field for field in dataclasses.fields(Recipe) if field.name != "is_quick"}
    assert list(rows) == list(fields)
    for name in ("repeats", "white_box_repeats", "victims", "seed", "scenario"):
        assert rows[name] == f"`{fields[name].default}`"
    described = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", page("pipeline.md"), re.MULTILINE)
    assert set(re.findall(r"\w+", " ".join(described))) >= set(fields)


FORMATS = {
    "edit": edit,
    "model": checkpoint,
    "store": record,
    "job": job,
    "measurement": measurement,
    "certificate": certified,
    "study": study,
    "boards": board,
    "history": changes,
    "report": report,
    "published": artefacts,
}
# of caches, which nobody else reads
CACHES = {"cached_plan.py", "cache.py", "job_times.py"}


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_of_formats_has_the_number_that_the_code_has(name: str) -> None:
    (number,) = re.findall(rf"^\| \[{name}\][^|]*\| (\d+) \|", page("reference/formats.md"), re.MULTILINE)
    assert int(number) == FORMATS[name].FORMAT


def test_every_format_in_the_code_is_on_the_page() -> None:
    found = [
        file for file in (SOURCE / "grb").rglob("*.py") if re.search(r"^FORMAT = ", file.read_text(), re.MULTILINE)
    ]
    assert {Path(str(module.__file__)).name for module in FORMATS.values()} == {file.name for file in found} - CACHES


def test_every_variable_of_the_environment_is_on_the_page_of_the_reference() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in (SOURCE / "grb").rglob("*.py"))
    used = set(re.findall(r"[\"'](GRB_[A-Z]+)[\"']", text))
    assert used == set(re.findall(r"^\| `(GRB_[A-Z]+)` \|", page("reference/index.md"), re.MULTILINE))


def test_the_architecture_names_every_package_in_the_order_of_the_contract() -> None:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [re.findall(r"grb\.(\w+)", layer) for layer in contract["contracts"][0]["layers"]]
    tree = re.search(r"```text\n(cli .*?)```", page("architecture.md"), re.DOTALL)
    assert tree is not None
    shown = [re.findall(r"\w+", re.split(r"\s{3,}", line)[0]) for line in tree[1].splitlines()]
    assert shown == layers
    own = {path.stem for path in (SOURCE / "grb").iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"}
    hidden = {name for name in own if name.startswith("_")}
    assert own - hidden - {"compat", "utils"} == {name for line in shown for name in line}
    for name in (name for line in shown for name in line):
        importlib.import_module(f"grb.{name}")


def test_the_architecture_names_files_that_exist() -> None:
    text = page("architecture.md")
    files = re.findall(r"`((?:\w+/)*\w+\.(?:py|yaml))`", text)
    assert len(files) > 20
    missing = [file for file in files if not (SOURCE / "grb" / file).exists() and not (ROOT / file).exists()]
    assert missing == []
    tests = re.findall(r"`(tests/\w+)`", text)
    assert tests and all((ROOT / name).is_dir() for name in tests)
