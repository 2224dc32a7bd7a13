"""How long is the way of a score? Functions, files and changes of package from ``grb reproduce`` to the HTML page.

Traces the parent of ``grb reproduce synth-tiny --quick`` and of ``grb leaderboard --format html`` on its store: distinct
functions of grb that are called (comprehensions and class bodies do not count), their files, and distinct calls that lead from
one package to another. The second row is the same with a plan that was made before.

    python benchmarks/road.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

OPTIMIZED = 1  # set in the code of functions, not in that of classes and modules


def trace(store: str) -> None:
    """Run both commands in this process and print what was called."""
    import grb
    from grb.cli import main

    root = str(Path(grb.__file__).parent)
    functions: set[tuple[str, str]] = set()
    changes: set[tuple[str, str, str, str]] = set()

    def package(file: str) -> str:
        return os.path.relpath(file, root).split(os.sep)[0]

    def listen(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        own = code.co_filename.startswith(root) and code.co_flags & OPTIMIZED
        if event != "call" or not own or code.co_name.startswith("<"):
            return
        functions.add((code.co_filename, code.co_qualname))
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(root):
            caller = caller.f_back
        if caller is not None and package(caller.f_code.co_filename) != package(code.co_filename):
            changes.add((caller.f_code.co_filename, caller.f_code.co_qualname, code.co_filename, code.co_qualname))

    work = ["reproduce", "synth-tiny", "--quick", "--store", store, "--workers", "2"]
    if os.environ.get("GRB_BENCH_TINY"):
        recipe = Path(f"{store}.yaml")
        recipe.write_text("dataset: synth-tiny\nattacks: [rnd]\nrepeats: 1\ntraining: {epochs: 1}\n")
        work = ["run", str(recipe), "--store", store, "--workers", "0"]
    sys.setprofile(listen)
    for arguments in (
        work,
        ["leaderboard", store, "--format", "html", "-o", f"{store}.html"],
    ):
        sys.argv = ["grb", *arguments]
        try:
            main()
        except SystemExit as error:
            assert not error.code, error.code
    sys.setprofile(None)
    files = {file for file, _ in functions}
    print(f"{len(functions)},{len(files)},{len(changes)}", file=sys.stderr)


def measure() -> None:
    """Print one row for a new plan and one for a known one."""
    print("plan,functions,files,package_changes")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GRB_HOME": f"{folder}/home"}
        for plan in ("new", "known"):
            command = [sys.executable, __file__, f"{folder}/{plan}"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            print(f"{plan},{done.stderr.strip().splitlines()[-1]}")


if __name__ == "__main__":
    trace(sys.argv[1]) if len(sys.argv) > 1 else measure()
