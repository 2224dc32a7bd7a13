"""How many threads a graph is worth."""

from __future__ import annotations

import os

# Operators of a small graph take microseconds, and a second thread costs more than it does: at 2,680 nodes a training took
# 1.5 to 1.7 and an attack 2.1 to 2.3 times as long with two threads, at 89,250 nodes 0.68 and 0.72 (docs/results, Speed).
FROM_NODES = 50_000


def threads_for(nodes: int) -> int:
    """One for small graphs, all cores that this process may use for large ones.

    >>> threads_for(2_680)
    1
    """
    if nodes < FROM_NODES:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
