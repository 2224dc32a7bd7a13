"""Where a record comes from: versions, machine, and what it took."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import Any

from grb._version import __version__
from grb.graph.memory import peak_megabytes


def provenance(seconds: float, cpu_seconds: float) -> dict[str, Any]:
    """What a record says about its making; torch need not be imported for it.

    Args:
        seconds: Wall-clock seconds of the job.
        cpu_seconds: CPU seconds of the job.
    """
    torch = sys.modules.get("torch")
    return {
        "grb": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__) if torch is not None else metadata.version("torch"),
        "machine": platform.machine(),
        "system": sys.platform,
        "seconds": round(seconds, 4),
        "cpu_seconds": round(cpu_seconds, 4),
        "peak_megabytes": round(peak_megabytes(), 1),
    }
