"""What can this machine do at most: a matrix product, a copy, rows fetched in random order?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/hardware.py [--threads 1]

The bounds of everything else, measured anew in every run because machines are shared. ``make bench`` prints them first and
last: what they differ by is the noise of that run.
"""

from __future__ import annotations

import torch
from common import TINY, best, gemm_rate, options, row, started

MEGABYTES = 4 if TINY else 256
# floats of a row that is fetched: 512 bytes
WIDTH = 128


def copy_rate() -> float:
    """GB/s that are read and written together."""
    source = torch.ones(MEGABYTES * 2**20 // 4)
    out = torch.empty_like(source)
    return 2 * source.numel() * 4 / best(lambda: out.copy_(source), 5) / 1e9


def gather_rate() -> float:
    """GB/s of rows in random order from a table that no cache holds, into a buffer that one does."""
    table = torch.ones(MEGABYTES * 2**20 // 4 // WIDTH, WIDTH)
    order = torch.randperm(len(table), generator=torch.Generator().manual_seed(0)).split(2**20 // 4 // WIDTH)
    out = torch.empty(len(order[0]), WIDTH)

    def gather() -> None:
        for ids in order:
            torch.index_select(table, 0, ids, out=out[: len(ids)])

    return table.numel() * 4 / best(gather, 5) / 1e9


def main() -> None:
    started(options(__doc__))
    row(gemm_gflop_per_s=gemm_rate(), copy_gb_per_s=copy_rate(), gather_gb_per_s=gather_rate())


if __name__ == "__main__":
    main()
