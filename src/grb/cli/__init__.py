"""The command ``grb``: one file per verb, nothing heavy imported before a verb needs it."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Entry point of the command."""
    # Before anything can import torch: OpenMP threads that spin while they wait made a training of 3 seconds take a
    # minute on a busy machine with two cores; passive ones cost nothing that we could measure on an idle machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name that the terminal cannot write is no reason to fail
    from grb.cli.app import app

    app()
