"""A process and all that it has started: how much memory they have, and their end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

# seconds between two looks at a process
GUARD = 0.25


def resident_megabytes(pid: int | None = None) -> float:
    """Memory of a process, or of this one, and its children now; 0 where the system does not tell."""
    return sum(map(_resident, _family(os.getpid() if pid is None else pid)))


def _family(pid: int) -> Iterator[int]:
    """A process and all that it has started, as far as they live."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in path.read_text().split():
                yield from _family(int(child))


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def kill_group(leader: int) -> None:
    """End all processes of a group, where there are groups; its leader may be gone already."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def end_here() -> NoReturn:
    """In a worker that nobody needs any more: end it, and whatever it has started."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        kill_group(os.getpid())
    os._exit(1)
