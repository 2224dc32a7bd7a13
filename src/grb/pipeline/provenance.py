"""Where a record comes from: versions, machine, and what it took."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache
from importlib import metadata
from typing import Any

from grb._version import __version__
from grb.graph.memory import peak_megabytes

# what numbers depend on in their last bits; records made under other values of these may differ a little
ENVIRONMENT = ("torch", "numpy", "scipy", "cpu", "machine", "system", "threads")


def provenance(seconds: float, cpu_seconds: float) -> dict[str, Any]:
    """Return what a record says about its making; torch need not be imported for it.

    Args:
        seconds: Wall-clock seconds of the job.
        cpu_seconds: CPU seconds of the job.
    """
    return {
        "grb": __version__,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": sys.platform,
        "seconds": round(seconds, 4),
        "cpu_seconds": round(cpu_seconds, 4),
        "peak_megabytes": round(peak_megabytes(), 1),
        **{name: _version(name) for name in ("torch", "numpy", "scipy")},
        **_computing(),
    }


def other_environment(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return what was different where a record was made, for instance ``torch 2.6.0, here 2.7.0``; empty if nothing was.

    Args:
        before: Provenance of the record.
        after: Provenance of the same job computed here.
    """
    for name in ENVIRONMENT:
        old, new = before.get(name), after.get(name)
        if name == "threads" and isinstance(old, Mapping) and isinstance(new, Mapping):
            old, new = old.get("torch"), new.get("torch")  # the others change no number
        if old is not None and old != new:  # what a record does not say excuses nothing
            return f"{name} {str(old)[:40]}, here {str(new)[:40]}"
    return ""


def _computing() -> dict[str, Any]:
    """Vector instructions and threads that torch uses; nothing where it is not loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    threads = {"torch": torch.get_num_threads(), "interop": torch.get_num_interop_threads(), "cores": os.cpu_count()}
    return {"cpu": str(torch.backends.cpu.get_cpu_capability()), "threads": threads}


@cache
def _version(package: str) -> str:
    loaded = sys.modules.get(package)
    return str(getattr(loaded, "__version__", None) or metadata.version(package))
