"""How fast is the sparse product, forward and with its backward, beside torch.sparse, PyG and the memory's bandwidth?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/kernel.py [cora flickr reddit aminer] [--threads 1] [--widths 64,128]

One row per size, width and method; milliseconds of the fastest of ten runs. ``ratio`` is the method's time divided by
ours. ``copy_bound`` is the time to copy, in this run, as many bytes as any product has to move: the matrix, the operand and
the result, each once. ``gather`` is no bound but a yardstick: all rows that the entries name, fetched in the same order
without any arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from common import best, options, row, sized_graph, started
from torch import Tensor

from grb.graph import CSR, normalise

Method = Callable[[Tensor], Tensor]


def methods(op: CSR) -> dict[str, Method]:
    pattern, values = op.pattern, op.values
    rows, cols = pattern.row_ids.long(), pattern.indices.long()
    index = torch.stack([rows, cols])
    coo = torch.sparse_coo_tensor(index, values, op.shape, check_invariants=False).coalesce()
    csr = torch.sparse_csr_tensor(pattern.indptr.long(), cols, values, op.shape, check_invariants=False)
    found: dict[str, Method] = {
        "grb": lambda x: op @ x,
        "torch.sparse COO": lambda x: torch.sparse.mm(coo, x),
        "torch.sparse CSR": lambda x: csr @ x,
    }
    try:
        from torch_geometric import EdgeIndex
        from torch_geometric.nn import GCNConv
    except ImportError:
        return found
    edges = EdgeIndex(index.flip(0), sparse_size=op.shape, sort_order="col", is_undirected=True)
    found["PyG EdgeIndex"] = lambda x: edges.matmul(x, values, transpose=True)
    if pattern.entries < 3_000_000:
        conv = GCNConv(1, 1, normalize=False)
        found["PyG message passing"] = lambda x: conv.propagate(index.flip(0), x=x, edge_weight=values)
    return found


def compulsory_bytes(op: CSR, x: Tensor) -> int:
    """What any product has to move: the matrix and the dense operand read once, the result written once."""
    pattern = op.pattern
    matrix = sum(part.numel() * part.element_size() for part in (pattern.indptr, pattern.indices, op.values))
    return matrix + x.element_size() * x.shape[1] * (op.shape[1] + op.shape[0])


def copy_bound(op: CSR, x: Tensor) -> float:
    """Milliseconds to copy as many bytes as :func:`compulsory_bytes`, half of them read and half written."""
    source = torch.zeros(compulsory_bytes(op, x) // 2, dtype=torch.uint8)
    out = torch.empty_like(source)
    return 1000 * best(lambda: out.copy_(source))


def gather_time(op: CSR, x: Tensor) -> float:
    """Milliseconds to fetch the rows of all entries in the matrix's own order, into a buffer that stays in the cache."""
    chunks = op.pattern.indices.split(2**20 // (x.element_size() * x.shape[1]))
    out = torch.empty(len(chunks[0]), x.shape[1])

    def gather() -> None:
        for chunk in chunks:
            torch.index_select(x, 0, chunk, out=out[: len(chunk)])

    return 1000 * best(gather)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("sizes", nargs="*", default=["cora", "flickr"])
    parser.add_argument("--widths", default="64,128")
    arguments = started(parser)
    for size in arguments.sizes:
        op = normalise.gcn(sized_graph(size).adj)
        for width in map(int, arguments.widths.split(",")):
            measure(size, op, width)


def measure(size: str, op: CSR, width: int) -> None:
    repeats = 10 if op.pattern.entries < 10_000_000 else 3
    x = torch.randn(op.shape[1], width)
    leaf = x.clone().requires_grad_()
    grad = torch.randn(op.shape[0], width)
    ours: tuple[float, float] | None = None
    reference = op @ x
    for name, method in methods(op).items():
        if op.pattern.entries > 10_000_000 and name == "torch.sparse COO":
            continue

        def both(method: Method = method) -> None:
            leaf.grad = None
            method(leaf).backward(grad)

        try:
            torch.testing.assert_close(method(x), reference, rtol=1e-3, atol=1e-3)
            forward, total = 1000 * best(lambda: method(x), repeats), 1000 * best(both, repeats)
        except (RuntimeError, NotImplementedError) as error:
            row(size=size, width=width, method=name, forward_ms="-", both_ms="-", ratio=str(error)[:40])
            continue
        ours = ours or (forward, total)
        row(
            size=size,
            width=width,
            method=name,
            forward_ms=forward,
            both_ms=total,
            ratio=f"{forward / ours[0]:.1f}/{total / ours[1]:.1f}",
            copy_bound_ms=copy_bound(op, x) if name == "grb" else "",
            gather_ms=gather_time(op, x) if name == "grb" else "",
        )


if __name__ == "__main__":
    main()
