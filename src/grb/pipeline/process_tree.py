"""A process and its descendants: how much memory they use, and how they are ended together."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

# seconds between two checks of a process
CHECK_SECONDS = 0.25


def resident_megabytes(pid: int | None = None) -> float:
    """Return the memory of a process (default: this one) and its descendants; 0 where the system does not report it."""
    return sum(map(_resident, _descendants(os.getpid() if pid is None else pid)))


def _descendants(pid: int) -> Iterator[int]:
    """A process and everything that it has started and that still runs."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in path.read_text().split():
                yield from _descendants(int(child))


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
