"""How fast is attention along edges, forward and with its backward, beside plain gather and scatter?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/attention.py [flickr] [--heads 1] [--width 64] [--threads 1]

Softmax of the scores of both ends over every neighbourhood, then the weighted sum, with gradients to scores and rows.
Milliseconds of the fastest of five runs; the plain version is index_select, scatter softmax and index_add.
"""

from __future__ import annotations

import torch
from common import best, options, peak_gigabytes, row, sized_graph, started
from torch import Tensor

from grb.graph import Pattern
from grb.graph.attention import attend, edge_softmax, gather_columns, gather_rows
from grb.graph.normalise import with_self_loops


def ours(pattern: Pattern, left: Tensor, right: Tensor, x: Tensor) -> Tensor:
    scores = torch.nn.functional.leaky_relu(gather_rows(pattern, left) + gather_columns(pattern, right), 0.2)
    return attend(pattern, edge_softmax(pattern, scores), x)


def plain(rows: Tensor, cols: Tensor, left: Tensor, right: Tensor, x: Tensor) -> Tensor:
    scores = torch.nn.functional.leaky_relu(left[rows] + right[cols], 0.2)
    index = rows.unsqueeze(1).expand_as(scores)
    highest = torch.full_like(left, -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
    weights = torch.exp(scores - highest[rows])
    total = torch.zeros_like(left).index_add(0, rows, weights)
    messages = x[cols] * (weights / total[rows]).unsqueeze(2)
    return torch.zeros_like(x).index_add(0, rows, messages)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("sizes", nargs="*", default=["flickr"])
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--width", type=int, default=64)
    arguments = started(parser)
    for size in arguments.sizes:
        pattern, _ = with_self_loops(sized_graph(size).adj)
        n, heads = pattern.shape[0], arguments.heads
        left, right = (torch.randn(n, heads).requires_grad_() for _ in range(2))
        x = torch.randn(n, heads, arguments.width).requires_grad_()
        grad = torch.randn(n, heads, arguments.width)
        rows, cols = pattern.row_ids.long(), pattern.indices.long()
        methods = {
            "grb": lambda: ours(pattern, left, right, x),
            "gather/scatter": lambda: plain(rows, cols, left, right, x),
        }
        torch.testing.assert_close(methods["grb"](), methods["gather/scatter"](), rtol=1e-3, atol=1e-4)
        base = None
        for name, method in methods.items():
            with torch.no_grad():
                forward = 1000 * best(method, 5)

            def both(method: object = method) -> None:
                left.grad = right.grad = x.grad = None
                method().backward(grad)  # type: ignore[operator]

            total = 1000 * best(both, 5)
            base = base or (forward, total)
            row(
                size=size,
                heads=heads,
                width=arguments.width,
                method=name,
                forward_ms=forward,
                both_ms=total,
                ratio=f"{forward / base[0]:.1f}/{total / base[1]:.1f}",
                peak_gb=peak_gigabytes(),
            )


if __name__ == "__main__":
    main()
