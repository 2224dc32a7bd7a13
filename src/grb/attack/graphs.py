"""Attacks on whole graphs: every target graph of a collection is a context of its own, with limits of its own.

In such a context all nodes are targets and the model gives each of them the logits of the graph
(:class:`~grb.model.pooled.GraphLevel`), so that every attack on nodes runs as it is: the mean loss of the targets is the
loss of the graph. The edits are put together to one edit of the collection, which is checked once more as a whole.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from grb.attack.base import Attack, AttackContext, AttackResult, Step, peak_megabytes, run_attack
from grb.dataset.view import View
from grb.graph import CSR, Graph, dense
from grb.graph.batching import batch_edits, get_example
from grb.graph.validate import check_ids
from grb.model.base import check_features
from grb.model.pooled import GraphLevel

SEEDS = 2**31
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def attack_graphs(attack: Attack, context: AttackContext, *, seed: int) -> AttackResult:
    """Attack the target graphs of a collection one by one; what :func:`~grb.attack.run_attack` does with a collection.

    A graph's randomness depends on the seed and on its position in the collection, not on which other graphs are attacked.

    Args:
        attack: Any attack on nodes.
        context: Context whose graph is a collection; targets are ids of graphs, the limits are those of every single graph
            (at least one edge may change where a fraction of the edges may), and the model pools.
        seed: Random seed.
    """
    graph = context.graph
    targets = check_ids(context.targets, graph.num_graphs, "the list of target graphs")
    if context.model is not None:
        check_features(context.model, graph)
    seeds = torch.randint(SEEDS, (graph.num_graphs,), generator=torch.Generator().manual_seed(seed)).tolist()
    typed = Graph(graph.adj, graph.x, node_types(graph.x), graph.ptr)
    model = None if context.model is None else GraphLevel(context.model)
    start, start_cpu = time.perf_counter(), time.process_time()
    done: dict[int, AttackResult] = {}
    for number in targets.tolist():
        own = get_example(typed, number)
        none = torch.empty(0, dtype=torch.int64)
        nodes = torch.arange(own.n)
        view = View(own, none, none, nodes, nodes, context.view.num_classes, inductive=False)
        one = AttackContext(view, context.threat.for_graph(own), model, context.knowledge, context.on_step)
        done[number] = run_attack(attack, one, seed=seeds[number])
    edit = batch_edits(graph, {number: result.edit for number, result in done.items()})
    return AttackResult(
        edit=edit,
        budget=context.threat.check(graph, edit, targets),
        steps=together([result.steps for result in done.values()]),
        seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time() - start_cpu,
        peak_megabytes=peak_megabytes(),
        knowledge=context.knowledge if context.model is not None else "none",
        seed=seed,
        notes=counted([result.notes for result in done.values()]),
    )


def node_types(x: Tensor | CSR) -> Tensor:
    """What DICE takes for the labels of nodes whose graph is classified, [n]: the type that a node's features tell.

    It is the position of the one in the columns that hold nothing but zeros and ones, if every row has exactly one there;
    else all nodes have the same type.

    >>> node_types(torch.tensor([[23.0, 1, 0], [10.0, 0, 1], [25.0, 1, 0]])).tolist()
    [0, 1, 0]
    """
    rows = dense(x)
    flags = rows[:, ((rows == 0) | (rows == 1)).all(0)]
    if not flags.shape[1] or not (flags.sum(1) == 1).all():
        return torch.zeros(len(rows), dtype=torch.int64)
    return flags.argmax(1)


def together(histories: Sequence[Sequence[Step]]) -> tuple[Step, ...]:
    """The mean over graphs at every step; a graph whose attack is over counts with its last step."""
    told = [history for history in histories if history]
    if not told:
        return ()
    length = max(map(len, told))
    padded = [[(step.loss, step.accuracy) for step in (*own, *[own[-1]] * (length - len(own)))] for own in told]
    means = torch.tensor(padded, dtype=torch.float64).mean(0)
    return tuple(Step(loss, accuracy) for loss, accuracy in means.tolist())


def counted(remarks: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Remarks that differ in numbers alone once, with the range of every number and how many graphs they are about.

    >>> counted([["1 of 3 edges"], ["2 of 3 edges"], [], ["no labels"]])
    ('in 2 graphs: 1 to 2 of 3 edges', 'in 1 graph: no labels')
    """
    kinds: dict[str, list[str]] = {}
    for own in remarks:
        for kind, remark in {NUMBER.sub("#", remark): remark for remark in own}.items():
            kinds.setdefault(kind, []).append(remark)
    return tuple(f"in {len(each)} graph{'s' * (len(each) > 1)}: {_ranged(each)}" for _, each in sorted(kinds.items()))


def _ranged(remarks: Sequence[str]) -> str:
    ranges = iter([sorted(set(numbers), key=float) for numbers in zip(*map(NUMBER.findall, remarks), strict=True)])

    def told(_: re.Match[str]) -> str:
        values = next(ranges)
        return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"

    return NUMBER.sub(told, remarks[0])
