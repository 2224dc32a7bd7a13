"""A job in a process of its own, below a worker of a cluster: whatever a user's code does there, the worker lives on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from grb.pipeline.family import GUARD, end_here, kill_group, resident_megabytes
from grb.pipeline.serving import Told, attempt, new_worker
from grb.pipeline.store import Store


def attempt_alone(
    store: Store,
    values: Mapping[str, Any],
    data_dir: str | None,
    *,
    timeout: float | None,
    memory: float | None,
    claim: Path | None,
) -> Told:
    """As :func:`grb.pipeline.serving.attempt`, in a new process that ends with all it has started.

    Args:
        store: Where its inputs are, and its record is to be.
        values: The job.
        data_dir: Where datasets are.
        timeout: Seconds that it may take.
        memory: Megabytes that it and its children may take.
        claim: A file that is there as long as somebody waits for the job; None if that cannot be seen from here.
    """
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="grb-") as folder:
        given, told = Path(folder) / "given.json", Path(folder) / "told.json"
        order = {"store": str(store.path), "job": dict(values), "data_dir": data_dir, "told": str(told)}
        given.write_text(json.dumps(order))
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(given)],
            stdin=subprocess.DEVNULL,
            stdout=2,  # whatever a user's code prints is not taken for our output
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        try:
            sentence, kind = _watched(process, start, timeout, memory, claim), "limit"
            if not sentence and process.returncode:
                sentence, kind = f"its process ended with exit code {process.returncode}", "died"
            elif not sentence:
                seconds, sentence, kind = json.loads(told.read_text())
                return float(seconds), str(sentence), str(kind)
        except (OSError, TypeError, ValueError) as error:
            sentence, kind = f"its process told nothing ({str(error)[:80]})", "died"
        finally:
            kill_group(process.pid)
            process.kill()
            process.wait()
    return time.perf_counter() - start, sentence, kind


def _watched(
    process: subprocess.Popen[bytes], start: float, timeout: float | None, memory: float | None, claim: Path | None
) -> str:
    """Wait for the end of a process, or for a reason to end it."""
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(GUARD)
            return ""
        if timeout is not None and time.perf_counter() - start > timeout:
            return f"it took more than {timeout:g} seconds"
        if memory is not None and resident_megabytes(process.pid) > memory:
            return f"it took more than {memory:g} MB of memory"
        if claim is not None and not claim.exists():
            return "nobody waits for it any more"


def _main(path: str) -> None:
    order = json.loads(Path(path).read_text())
    parent = os.getppid()

    def guard() -> None:
        while True:
            time.sleep(GUARD)
            if os.getppid() != parent:
                end_here()

    threading.Thread(target=guard, daemon=True).start()
    answer = attempt(new_worker(order["store"]), order["job"], order["data_dir"])
    Path(order["told"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    _main(sys.argv[1])
