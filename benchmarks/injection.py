"""What does one iteration of an injection attack cost, incremental beside the full graph, and what whole attacks?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/injection.py [cora flickr aminer reddit] [--models gcn,gat] [--naive]

Victims are models of Tables 6 to 10, GCN if no other is named, with random weights (the cost does not depend on them), limits
are Table 12's.
CPU milliseconds of one signed-gradient iteration: ``incremental`` recomputes only rows that can change and that the loss
sees, ``full graph`` is the plain forward and backward pass; ``gemm_bound_ms`` is what its dense products alone take at the
rate of a large one in the same run. ``set_up_ms``: clean forward
pass, paid once, and planning, paid once per round. Whole attacks: cora FGSM of 100
iterations and TDGIA of 5 x 100; flickr FGSM of 10 iterations and one batch of TDGIA edges.
"""

from __future__ import annotations

import argparse
import time

import torch
from common import best, gemm_bound, options, peak_gigabytes, row, sized_dataset, started, untrained
from torch import nn

from grb.attack.base import AttackContext, clean_labels, run_attack
from grb.attack.features import Objective
from grb.attack.incremental import Rewired, full_forward
from grb.attack.injection import FGSM, TDGIA
from grb.attack.injection.base import _target_state
from grb.attack.injection.edges import defective_edges, random_edges
from grb.attack.losses import cross_entropy
from grb.dataset import Dataset
from grb.graph import GraphEdit
from grb.threat import Injection


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("sizes", nargs="*", default=["cora"])
    parser.add_argument("--models", default="gcn", help="victims; whole attacks are timed against gcn alone")
    parser.add_argument("--mode", default="full")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--naive", action="store_true", help="also the full graph at large sizes: slow")
    arguments = started(parser)
    for size in arguments.sizes:
        dataset = sized_dataset(size)
        for name in arguments.models.split(","):
            model = untrained(name, dataset)
            iteration(size, name, dataset, model, arguments)
            if name == "gcn":
                whole(size, dataset, model, arguments.mode)


def iteration(size: str, name: str, dataset: Dataset, model: nn.Module, arguments: argparse.Namespace) -> None:
    limits = Injection.preset(dataset.name, arguments.mode)
    context = AttackContext(dataset.attacker_view(arguments.mode), limits, model)
    start = time.process_time()
    rewired = Rewired(model, context.graph)
    labels = rewired.logits()[context.targets].argmax(1)
    shared = time.process_time() - start
    start = time.process_time()
    pairs = random_edges(
        _target_state(context, GraphEdit(n=context.graph.n).add, 0, None, None), limits.nodes, torch.Generator()
    )
    x = torch.zeros(limits.nodes, dataset.num_features)
    edit = GraphEdit(n=context.graph.n, add=pairs, new_x=x)
    forward, incremental = rewired.forward(edit, context.targets)
    set_up = time.process_time() - start
    assert incremental

    def step(forward: object) -> torch.Tensor:
        leaf = x.clone().requires_grad_()
        loss, _ = Objective(forward, labels, cross_entropy, lambda loss, accuracy: None)(leaf)  # type: ignore[arg-type]
        return torch.autograd.grad(loss, leaf)[0]

    cheap = best(lambda: step(forward), arguments.repeats, cpu=True)
    peak = peak_gigabytes()
    common = {"size": size, "model": name, "mode": arguments.mode, "nodes": limits.nodes, "targets": len(labels)}
    bound = gemm_bound(lambda: step(forward))
    once = f"{1000 * shared:.0f} + {1000 * set_up:.0f}"
    row(
        **common,
        what="iteration incremental",
        cpu_ms=1000 * cheap,
        gemm_bound_ms=bound,
        set_up_ms=once,
        ratio="",
        peak_gb=peak,
    )
    if arguments.naive or size in ("cora", "flickr"):
        new = torch.arange(context.graph.n, edit.n_after)
        plain = full_forward(model, context.graph.apply(edit), new, context.targets)
        torch.testing.assert_close(step(plain), step(forward), rtol=1e-2, atol=1e-6)
        cost = best(lambda: step(plain), 2, cpu=True)
        gain = f"{cost / cheap:.0f}x"
        row(
            **common,
            what="iteration full graph",
            cpu_ms=1000 * cost,
            gemm_bound_ms=gemm_bound(lambda: step(plain)),
            set_up_ms="",
            ratio=gain,
            peak_gb=peak_gigabytes(),
        )


def whole(size: str, dataset: Dataset, model: nn.Module, mode: str) -> None:
    limits = Injection.preset(dataset.name, mode)
    context = AttackContext(dataset.attacker_view(mode), limits, model, "white-box")
    common = {"size": size, "model": "gcn", "mode": mode, "nodes": limits.nodes, "targets": len(context.targets)}
    attacks = {}
    if size == "cora":
        attacks = {"FGSM 100 iterations": FGSM(steps=100), "TDGIA 5 x 100": TDGIA(steps=100)}
    if size == "flickr":
        attacks = {"FGSM 10 iterations": FGSM(steps=10)}
    for what, attack in attacks.items():
        seconds = best(lambda: run_attack(attack, context, seed=0), 3, cpu=True)
        row(
            **common,
            what=what,
            cpu_ms=1000 * seconds,
            gemm_bound_ms="",
            set_up_ms="",
            ratio="",
            peak_gb=peak_gigabytes(),
        )
    if size == "flickr":
        logits, labels = clean_labels(context)
        probs = torch.softmax(logits[context.targets], dim=1)
        site = _target_state(context, GraphEdit(n=context.graph.n).add, 0, labels, probs)
        seconds = best(lambda: defective_edges(site, limits.nodes // 5, torch.Generator()), 3, cpu=True)
        row(
            **common,
            what="one TDGIA edge batch",
            cpu_ms=1000 * seconds,
            gemm_bound_ms="",
            set_up_ms="",
            ratio="",
            peak_gb=peak_gigabytes(),
        )


if __name__ == "__main__":
    main()
