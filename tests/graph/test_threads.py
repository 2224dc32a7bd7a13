from __future__ import annotations

import os

from grb.graph.threads import FROM_NODES, threads_for


def test_small_graphs_get_one_thread_and_large_ones_all_cores() -> None:
    assert threads_for(0) == threads_for(2_680) == threads_for(FROM_NODES - 1) == 1
    assert threads_for(FROM_NODES) == threads_for(89_250) == len(os.sched_getaffinity(0))
