"""A process and its descendants: how much memory they use, and how they are ended together."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

# seconds between two checks of a process
CHECK_SECONDS = 0.25


def resident_megabytes(pid: int | None = None, *, ignored: Collection[int] = ()) -> float:
    """Return the memory of a process and its descendants; 0 where the system does not report it.

    Args:
        pid: The process; this one if not given.
        ignored: Descendants that do not count, nor what they have started.
    """
    return sum(map(_resident, _tree(os.getpid() if pid is None else pid, ignored)))


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def _tree(pid: int, ignored: Collection[int]) -> Iterator[int]:
    yield pid
    for child in children(pid):
        if child not in ignored:
            yield from _tree(child, ignored)


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def kill_group(leader: int) -> None:
    """Kill all processes of a group, where there are groups; its leader may have ended already."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def exit_group() -> NoReturn:
    """End this worker process at once, and everything that it has started."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        kill_group(os.getpid())
    os._exit(1)
