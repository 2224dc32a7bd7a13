"""The notebooks run from their first cell to their last, in a plain namespace instead of a Jupyter kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from docs.tools.notebooks import FOLDER, read, run, source, to_markdown

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_as_much_as_it_was_saved_with(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        made = run(read(path))
    finally:
        torch.set_num_threads(threads)
    for cell, saved in zip(made["cells"], read(path)["cells"], strict=True):
        kinds = [[output["output_type"] for output in each.get("outputs", [])] for each in (cell, saved)]
        assert kinds[0] == kinds[1], "python docs/tools/notebooks.py renews what is saved"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_saved_in_the_published_form_and_names_no_machine(path: Path) -> None:
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", each) for each in ids)
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("code", "markdown")
        assert not re.search(r"^\s*[%!]", source(cell), re.MULTILINE), "magics need a Jupyter kernel"
        text = source(cell) + "".join(str(output.get("text", "")) for output in cell.get("outputs", []))
        assert not re.search(r"/(?:home|root|tmp|work|Users|usr)/|[A-Z]:\\\\", text)


def test_there_are_three_of_them_and_each_is_a_page() -> None:
    assert len(NOTEBOOKS) == 3
    assert all(to_markdown(read(path)).startswith("# ") for path in NOTEBOOKS)


def test_a_cell_that_fails_is_not_passed_over() -> None:
    cell = {"cell_type": "code", "source": ["1 / 0"], "outputs": []}
    with pytest.raises(ZeroDivisionError):
        run({"cells": [cell]})


def test_outputs_are_what_was_printed_and_the_last_expression() -> None:
    cell = {"cell_type": "code", "source": ["print('a')\n", "x = 3\n", "x + 1"], "outputs": []}
    printed, value = run({"cells": [cell]})["cells"][0]["outputs"]
    assert printed["text"] == ["a\n"] and value["data"] == {"text/plain": ["4"]}
