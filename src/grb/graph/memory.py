"""Memory of this process: how much it had, and one choice made by programs (the command line, workers), never by an import."""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4


def keep_memory() -> bool:
    """Let glibc reuse large blocks instead of returning each to the system.

    A tensor above 32 MB is by default mapped anew at every allocation, and every one of its pages faults once: on graphs
    of 90,000 nodes that was half the time of a sparse product. The price is that freed memory stays with the process.

    Returns:
        Whether it took effect: not outside glibc, and not together with glibc's huge pages, with which it hangs.
    """
    if not sys.platform.startswith("linux") or "hugetlb" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def peak_megabytes() -> float:
    """Largest resident memory of this process so far; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024
