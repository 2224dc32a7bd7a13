from __future__ import annotations

import os
import subprocess
import sys

import pytest

from grb.pipeline.process_tree import children, kill_group, resident_megabytes

HUNGRY = "held = b'x' * 200 * 2**20; print('ready', flush=True); input()"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HUNGRY!r}])"

pytestmark = pytest.mark.skipif(resident_megabytes() == 0, reason="the system does not report memory")


@pytest.mark.parametrize("code", [HUNGRY, PARENT], ids=["child", "grandchild"])
def test_memory_of_descendants_counts_unless_they_are_ignored(code: str) -> None:
    before = resident_megabytes()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes, start_new_session=True) as child:  # type: ignore[call-overload]
        assert child.stdout.readline() == b"ready\n"
        assert child.pid in children(os.getpid())
        assert resident_megabytes() > before + 190
        assert resident_megabytes(ignored=[child.pid]) < before + 100
        assert resident_megabytes(child.pid) > 190
        kill_group(child.pid)


def test_a_process_that_has_ended_has_no_memory_and_no_children() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert resident_megabytes(ended.pid) == 0.0 and children(ended.pid) == []
    kill_group(ended.pid)
