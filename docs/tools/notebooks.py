"""Notebooks without Jupyter: run their cells here, and show them as pages.

python docs/tools/notebooks.py      runs all of them and writes what they print into the files
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    found: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return found


def run(notebook: Notebook) -> Notebook:
    """The same notebook with the outputs of its cells, which run in order in one namespace, as in a kernel."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] == "code":
            outputs = _outputs(source(cell), names, f"cell {number}")
            cell = {**cell, "outputs": outputs, "execution_count": None}
        cells.append(cell)
    return {**notebook, "cells": cells}


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def _outputs(code: str, names: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Runs one cell: what it prints, then its last expression, if that is not None."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": _shown(value)})
    return outputs


def _shown(value: Any) -> dict[str, Any]:
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=80)
        return {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["a figure"]}
    return {"text/plain": repr(value).splitlines(True)}


def to_markdown(notebook: Notebook) -> str:
    """A page of text, code and what the code printed."""
    blocks = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            blocks.append(source(cell))
            continue
        blocks.append(f"```python\n{source(cell)}\n```")
        blocks.extend(_output_block(output) for output in cell["outputs"])
    return "\n\n".join(blocks) + "\n"


def _output_block(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![figure](data:image/png;base64,{data['image/png']})"
    text = "".join(output.get("text") or data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"


def main() -> None:
    chosen = [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb"))
    for path in chosen:
        begin = time.process_time()
        with tempfile.TemporaryDirectory() as place:
            before = os.getcwd()
            os.chdir(place)
            try:
                made = run(read(path))
            finally:
                os.chdir(before)
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path.name}: {time.process_time() - begin:.1f} CPU seconds\n")


if __name__ == "__main__":
    main()
