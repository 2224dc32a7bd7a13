"""Random search on injected nodes: legal, monotone, without gradients, and stronger than random injections."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attack.contexts import context_of, graph_of, random_graph, victim
from grb.attack import run_attack
from grb.attack.injection import RND, InjectionRandomSearch
from grb.errors import DataError
from grb.graph import CSR, Adjacency, GraphEdit
from grb.model.base import predict

CONTEXT = context_of(random_graph(40, density=0.1), range(24), victim("gcn", 4), nodes=4, edges=5)


def kept(edit: GraphEdit) -> float:
    model = CONTEXT.surrogate()
    clean = predict(model, CONTEXT.graph)[CONTEXT.targets].argmax(1)
    return float((predict(model, CONTEXT.graph.apply(edit))[CONTEXT.targets].argmax(1) == clean).float().mean())


def test_the_best_so_far_never_gets_worse_and_is_what_is_returned() -> None:
    result = run_attack(InjectionRandomSearch(steps=60), CONTEXT, seed=0)
    best = [(step.accuracy, -step.loss) for step in result.steps]
    assert best == sorted(best, reverse=True)
    assert result.steps[-1].accuracy == pytest.approx(kept(result.edit))
    # one for the clean graph beside, and no gradient
    assert (result.passes.forward, result.passes.backward) == (61, 0)
    plain = run_attack(InjectionRandomSearch(steps=60, credit=False), CONTEXT, seed=0)
    assert plain.passes.forward == 62  # one for the first draw too


def test_nodes_that_a_victim_hardly_hears_join_classes() -> None:
    """A victim that averages labels over two hops: nodes joined with one class help it, joined with several they hurt."""
    n = 60
    own = torch.arange(n) % 3
    pairs = [(u, u + 3) for u in range(n - 3)]
    graph = graph_of(pairs, n, torch.nn.functional.one_hot(own, 3).float())
    context = context_of(graph, range(n), Deaf(), nodes=6, edges=6)
    clean = predict(context.surrogate(), graph).argmax(1)

    def left(attack: InjectionRandomSearch) -> int:
        edit = run_attack(attack, context, seed=0).edit
        return int((predict(context.surrogate(), graph.apply(edit))[:n].argmax(1) == clean).sum())

    assert left(InjectionRandomSearch(steps=120)) < left(InjectionRandomSearch(steps=120, credit=False))


class Deaf(nn.Module):
    """Sums the features of original nodes over two hops; what injected nodes say themselves is not heard."""

    def prepare(self, adj: Adjacency) -> CSR:
        return CSR(adj.pattern, None)

    def forward(self, x: Tensor, op: CSR) -> Tensor:
        heard = x.clone()
        heard[60:] = 0
        return heard + (op @ (op @ heard))


def test_more_queries_are_not_weaker_and_searching_beats_drawing() -> None:
    drawn = [kept(run_attack(RND(), CONTEXT, seed=seed).edit) for seed in range(5)]
    found = [kept(run_attack(InjectionRandomSearch(steps=100), CONTEXT, seed=seed).edit) for seed in range(5)]
    assert max(found) <= min(drawn) and sum(found) < sum(drawn)


class Opaque(nn.Module):
    """A model whose outputs cannot be differentiated."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.prepare = inner.prepare

    def forward(self, x: Tensor, adj: object) -> Tensor:
        with torch.no_grad():
            logits: Tensor = self.inner(x, adj)
        return logits.detach()


def test_a_model_without_gradients_is_attacked() -> None:
    context = context_of(CONTEXT.graph, range(24), Opaque(victim("gcn", 4)).eval(), nodes=4, edges=5)
    result = run_attack(InjectionRandomSearch(steps=60), context, seed=0)
    assert kept(result.edit) == kept(run_attack(InjectionRandomSearch(steps=60), CONTEXT, seed=0).edit) < 1


def test_one_class_and_one_target_are_enough() -> None:
    context = context_of(random_graph(5), [3], victim("gcn", 2), nodes=2, edges=3)
    result = run_attack(InjectionRandomSearch(steps=5), context, seed=0)
    assert result.edit.num_new == 2 and set(result.edit.add[0].tolist()) == {3}


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"share": 0.0}, {"share": 1.5}, {"share": float("nan")}])
def test_what_cannot_be_searched_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(DataError, match=rf"{next(iter(wrong))} is .*, but .* is needed"):
        InjectionRandomSearch(**wrong)  # type: ignore[arg-type]
