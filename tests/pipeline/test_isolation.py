from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import grb
from grb.errors import DataError
from grb.pipeline import Limits
from grb.pipeline.isolation import call_isolated


def refuse(message: str) -> None:
    raise DataError(message)


def eat(megabytes: int) -> None:
    """So much memory for a while."""
    held = b"x" * (megabytes * 2**20)
    time.sleep(20)
    del held


def test_a_call_gives_its_value_from_another_process() -> None:
    assert call_isolated(os.getpid, limits=Limits(), what="a call") != os.getpid()
    assert call_isolated(divmod, 7, 2, limits=Limits(timeout=60, memory=4000), what="a call") == [3, 1]


def test_what_a_call_refuses_is_refused_here() -> None:
    with pytest.raises(DataError, match=r"^no such thing$"):
        call_isolated(refuse, "no such thing", limits=Limits(), what="a call")
    with pytest.raises(DataError, match="ZeroDivisionError"):
        call_isolated(divmod, 1, 0, limits=Limits(), what="a call")


def test_time_and_memory_end_a_call() -> None:
    start = time.monotonic()
    with pytest.raises(DataError, match=r"^a call took more than 0\.5 seconds"):
        call_isolated(time.sleep, 60, limits=Limits(timeout=0.5), what="a call")
    with pytest.raises(DataError, match="^a call took more than 900 MB"):
        call_isolated(eat, 1200, limits=Limits(memory=900), what="a call")
    assert time.monotonic() - start < 30


def test_a_call_that_dies_takes_nothing_with_it() -> None:
    with pytest.raises(DataError, match="exit code 3"):
        call_isolated(os._exit, 3, limits=Limits(), what="a call")


SCRIPT = """
import sys
sys.path.insert(0, {source!r})
from grb.pipeline import Limits
from grb.pipeline.isolation import call_isolated
import importlib.util
print(call_isolated(importlib.util.resolve_name, ".x", "grb", limits=Limits(timeout=60), what="a call"))
"""


def test_a_new_process_finds_the_same_package_as_its_parent(tmp_path: Path) -> None:
    """And not another one that is installed beside it."""
    (tmp_path / "grb").mkdir()
    (tmp_path / "grb" / "__init__.py").write_text("")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(source=str(Path(grb.__file__).parents[1])))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "grb.x\n", done.stderr[-500:]
