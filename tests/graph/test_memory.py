from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = "from grb.graph.memory import keep_memory; print(keep_memory())"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is glibc's")
@pytest.mark.parametrize(("tunables", "expected"), [("", "True"), ("glibc.malloc.hugetlb=1", "False")])
def test_large_blocks_are_kept_unless_huge_pages_are_on(tunables: str, expected: str) -> None:
    environment = {**os.environ, "GLIBC_TUNABLES": tunables}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == expected
