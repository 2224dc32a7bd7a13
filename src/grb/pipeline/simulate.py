"""How long a study takes on any number of workers, by doing its jobs on paper."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping

from grb.pipeline.study import Study

# seconds from the end of a job to the start of the next on the same worker: this machine's processes take 1 ms, Dask 7
BETWEEN = 0.007


def wall_seconds(study: Study, seconds: Mapping[str, float], workers: int, *, between: float = BETWEEN) -> float:
    """Seconds by the clock until the last job has ended, if workers have a core each.

    Jobs start as the scheduler starts them: in the order of the plan, as soon as their inputs are there and a worker is free.

    Args:
        study: Its jobs and what they need.
        seconds: Of every job that is not done yet, by key.
        workers: How many there are.
        between: Seconds that a worker loses between two jobs.
    """
    waiting = {key: {need for need in study.jobs[key].needs if need in seconds} for key in seconds}
    users: dict[str, list[str]] = {}
    for key, needs in waiting.items():
        for need in needs:
            users.setdefault(need, []).append(key)
    ready = deque(key for key, needs in waiting.items() if not needs)
    running: list[tuple[float, int, str]] = []
    now, number = 0.0, 0
    while ready or running:
        while ready and len(running) < workers:
            key = ready.popleft()
            heapq.heappush(running, (now + seconds[key] + between, number, key))
            number += 1
        now, _, key = heapq.heappop(running)
        for user in users.get(key, []):
            waiting[user].discard(key)
            if not waiting[user]:
                ready.append(user)
    return now
