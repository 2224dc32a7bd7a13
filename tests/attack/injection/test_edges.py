"""Where injected nodes attach."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attack.contexts import context_of, graph_of, target_state_of
from grb.attack.features import Objective, Range
from grb.attack.incremental import forward_of_features
from grb.attack.injection import EdgeRule, TargetState, edges
from grb.attack.injection.base import inject
from grb.attack.injection.edges import (
    adaptive_defective_edges,
    class_edges,
    defective_edges,
    defectiveness,
    interconnected_edges,
    layered_edges,
    low_degree_class_edges,
    lowest_degree_edges,
    random_edges,
    uniform_edges,
)
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.model.torch import GCN

DIRECT = (random_edges, uniform_edges, lowest_degree_edges, defective_edges, adaptive_defective_edges)
EVERY = (*DIRECT, class_edges, low_degree_class_edges, interconnected_edges, layered_edges)
FIRST = 100


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def plain_site(t: int, edges_per_node: int, *, classes: int = 3) -> TargetState:
    ids = torch.arange(t) * 2 + 1  # ids are not places
    return target_state_of(
        ids, torch.arange(t) % 5, torch.arange(t) % classes, torch.linspace(0.2, 1, t), edges_per_node, FIRST
    )


def by_node(pairs: Tensor, count: int) -> list[list[int]]:
    """Neighbours of each new node, edges among new nodes at both ends."""
    found: list[list[int]] = [[] for _ in range(count)]
    for u, v in pairs.T.tolist():
        for a, b in ((u, v), (v, u)):
            if a >= FIRST:
                found[a - FIRST].append(b)
    return found


sizes = st.tuples(st.integers(1, 30), st.integers(1, 25), st.integers(1, 12), st.integers(0, 2**16))


@pytest.mark.parametrize("rule", EVERY)
def test_limits_hold_for_any_number_of_targets_nodes_and_edges(rule: EdgeRule) -> None:
    @given(sizes)
    def holds(size: tuple[int, int, int, int]) -> None:
        t, count, limit, seed = size
        site = plain_site(t, limit)
        pairs = rule(site, count, drawn(seed))
        GraphEdit(n=FIRST, add=pairs, new_x=torch.zeros(count, 1))  # refuses duplicates, self-loops and unknown ids
        for neighbours in by_node(pairs, count):
            assert len(neighbours) <= limit
            if rule in DIRECT:
                assert len(neighbours) == min(limit, t) and set(neighbours) <= set(site.targets.tolist())
        assert torch.equal(pairs, rule(site, count, drawn(seed)))

    holds()


def test_random_edges_are_uniform() -> None:
    """1200 nodes take 2 of 6 targets: every target 400 times, give or take five deviations."""
    counts = torch.bincount(random_edges(plain_site(6, 2), 1200, drawn())[1])[1::2]
    assert counts.sum() == 2400 and (counts - 400).abs().max() < 5 * (1200 * (1 / 3) * (2 / 3)) ** 0.5


def test_random_edges_in_chunks_keep_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "CHUNK", 10)
    neighbours = by_node(random_edges(plain_site(8, 3), 7, drawn()), 7)
    assert [len(set(mine)) for mine in neighbours] == [3] * 7


def test_uniform_edges_take_every_target_once_before_any_twice() -> None:
    for count, expected in ((2, {0: 2, 1: 6}), (4, {1: 4, 2: 4}), (8, {3: 8})):
        pairs = uniform_edges(plain_site(8, 3), count, drawn())
        used = Counter(pairs[1].tolist())
        assert Counter(used[target] for target in plain_site(8, 3).targets.tolist()) == Counter(expected)


def test_lowest_degrees_come_first_and_the_list_wraps_around() -> None:
    site = target_state_of([10, 11, 12, 13], [3, 0, 0, 1], [0] * 4, [1.0] * 4, 3, FIRST)
    assert lowest_degree_edges(site, 2, drawn()).tolist() == [
        [FIRST, FIRST, FIRST, FIRST + 1, FIRST + 1, FIRST + 1],
        [11, 12, 13, 10, 11, 12],
    ]


# ---------------------------------------------------------------- TDGIA


def test_defectiveness_by_hand() -> None:
    """(2 + p) (0.9 / d + 0.1 / sqrt(20 d)): 3 (0.45 + 0.01581) and 3 (0.09 + 0.00707); p = 0 gives two thirds."""
    score = defectiveness(torch.tensor([1.0, 1.0, 0.0]), torch.tensor([2, 10, 2]), 20)
    torch.testing.assert_close(score, torch.tensor([1.39743, 0.29121, 0.93162]), rtol=1e-4, atol=0)


@given(st.floats(0, 1), st.integers(1, 200))
def test_defectiveness_falls_with_the_degree_and_rises_with_confidence(p: float, b: int) -> None:
    score = defectiveness(torch.full((50,), p), torch.arange(1, 51), b)
    assert (score.diff() < 0).all()
    assert (defectiveness(torch.linspace(0, 1, 9), torch.full((9,), 3), b).diff() > 0).all()


def test_tdgia_prefers_low_degree_targets() -> None:
    site = target_state_of(range(8), [5, 1, 7, 0, 3, 2, 9, 4], [0] * 8, [0.9] * 8, 2, FIRST)
    chosen = defective_edges(site, 2, drawn())[1]
    assert sorted(chosen.tolist()) == [1, 3, 4, 5]


def test_the_adaptive_rule_leaves_out_lost_targets_and_prefers_doubtful_ones() -> None:
    """phi is 1 - p while the label is predicted and 0 once it is not; equal degrees, so phi alone decides."""
    state = target_state_of(range(4), [2] * 4, [0] * 4, [0.9, 0.6, 0.4, 0.8], 2, FIRST)
    assert state.probs is not None and state.probs.argmax(1).tolist() == [0, 0, 1, 0]
    assert sorted(adaptive_defective_edges(state, 1, drawn())[1].tolist()) == [1, 3]
    low = target_state_of(range(2), [0, 9], [0] * 2, [0.9, 0.8], 1, FIRST)
    # .1 (.9 / 1 + .1) = .100 before .2 (.9 / 10 + .1 / sqrt 10) = .024
    assert adaptive_defective_edges(low, 1, drawn())[1].tolist() == [0]


def test_a_target_whose_degree_grew_loses_rank_in_the_next_round() -> None:
    """Four equal, isolated targets and one edge per node and round: four rounds reach four different targets."""
    rounds: list[TargetState] = []

    def watched(site: TargetState, count: int, generator: torch.Generator) -> Tensor:
        rounds.append(site)
        return defective_edges(site, count, generator)

    def still(objective: Objective, so_far: Tensor, limits: Range, generator: torch.Generator) -> Tensor:
        return so_far.nan_to_num(0.0)

    model = GCN(3, 2, hidden_features=[4], generator=drawn())
    graph = graph_of([], 4, torch.ones(4, 3))
    edit = inject(
        context_of(graph, range(4), model, nodes=4, edges=1),
        edges=watched,
        features=still,
        generator=drawn(),
        fraction=0.25,
    )
    assert sorted(edit.add[0].tolist()) == [0, 1, 2, 3]
    assert [site.degrees.tolist() for site in rounds] == [
        [0, 0, 0, 0],
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
    ]
    assert [site.first for site in rounds] == [4, 5, 6, 7]


def taken_one_by_one(kept: list[int], labels: list[int], total: int) -> list[int]:
    """Always from the class with the smallest used fraction; equal ones by place in the shuffled list; then over again."""
    size = Counter(labels[item] for item in kept)
    order: list[int] = []
    used: Counter[int] = Counter()
    waiting = list(kept)
    while waiting:
        heads = {labels[item]: place for place, item in reversed(list(enumerate(waiting)))}
        cls = min(heads, key=lambda c: (used[c] / size[c], heads[c]))
        used[cls] += 1
        order.append(waiting.pop(heads[cls]))
    return (order * (total // len(order) + 1))[:total]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.floats(0.1, 1)), min_size=1, max_size=30),
    st.integers(1, 6),
    st.integers(1, 8),
    st.integers(0, 2**16),
)
def test_classes_are_spread_as_by_taking_one_by_one(
    rows: list[tuple[int, int, float]], count: int, limit: int, seed: int
) -> None:
    labels, degrees, probs = zip(*rows, strict=True)
    site = target_state_of(range(len(rows)), degrees, labels, probs, limit, FIRST)
    width = min(limit, len(rows))
    score = defectiveness(torch.tensor(probs), torch.tensor(degrees) + 1, limit).tolist()
    best = sorted(range(len(rows)), key=lambda place: (-score[place], place))[: count * width]
    shuffled = torch.tensor(best)[torch.randperm(len(best), generator=drawn(seed))].tolist()
    expected = taken_one_by_one(shuffled, list(labels), count * width)
    assert defective_edges(site, count, drawn(seed))[1].tolist() == expected


def test_every_node_reaches_all_classes_evenly() -> None:
    """12 targets in classes of 6, 4 and 2, four nodes of three edges: used shares never differ by a whole step."""
    labels = torch.tensor([0] * 6 + [1] * 4 + [2] * 2)
    site = target_state_of(range(12), [0] * 12, labels, [1.0] * 12, 3, FIRST)
    chosen = labels[defective_edges(site, 4, drawn())[1]].view(4, 3)
    assert Counter(chosen[0].tolist()) == {0: 1, 1: 1, 2: 1}
    halves = Counter(chosen[:2].flatten().tolist())
    assert halves == {0: 3, 1: 2, 2: 1}


def test_tdgia_edges_need_a_model() -> None:
    site = plain_site(4, 2)
    with pytest.raises(DataError, match="needs a model"):
        defective_edges(TargetState(site.targets, site.degrees, None, None, 2, FIRST), 1, drawn())


# ---------------------------------------------------------------- SPEIT


@given(sizes)
def test_interconnected_every_target_has_one_injected_neighbour(size: tuple[int, int, int, int]) -> None:
    t, count, limit, seed = size
    site = plain_site(t, limit)
    pairs = interconnected_edges(site, count, drawn(seed))
    reached = Counter(pairs[1][pairs[1] < FIRST].tolist())
    assert set(reached.values()) <= {1}
    assert len(reached) == min(t, count * limit)
    # edges among injected nodes only when all targets are served
    if (pairs.min(0).values >= FIRST).any():
        assert len(reached) == t


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 6))
def test_leftover_capacity_joins_the_fewest_first(degrees: list[int], limit: int) -> None:
    """Against the rule taken word for word: serve the node with the fewest edges, by those with the next fewest."""
    now = list(degrees)
    waiting = [node for node in range(len(now)) if now[node] < limit]
    expected: list[tuple[int, int]] = []
    while len(waiting) > 1:
        waiting.sort(key=lambda node: (now[node], node))
        node = waiting.pop(0)
        for partner in waiting[: limit - now[node]]:
            expected.append((node, partner))
            now[partner] += 1
        waiting = [other for other in waiting if now[other] < limit]
    pairs = edges._fewest_first(torch.tensor(degrees), limit)
    assert [tuple(pair) for pair in pairs.T.tolist()] == expected
    final = torch.tensor(degrees) + torch.bincount(pairs.flatten(), minlength=len(degrees))
    assert (final <= torch.tensor(degrees).clamp(min=limit)).all()


def test_a_second_layer_is_seen_by_no_target() -> None:
    """30 nodes of 20 edges: 27 in front with 2 links each, 3 behind with 18 each."""
    site = plain_site(40, 20)
    pairs = layered_edges(site, 30, drawn())
    neighbours = by_node(pairs, 30)
    behind = range(FIRST + 27, FIRST + 30)
    for mine in neighbours[27:]:
        assert len(mine) == 18 and all(FIRST <= other < FIRST + 27 for other in mine)
    for mine in neighbours[:27]:
        assert len(mine) <= 20 and len({other for other in mine if other in behind}) == 2
    assert Counter(pairs[1][pairs[1] < FIRST].tolist()) == dict.fromkeys(site.targets.tolist(), 1)


@given(sizes)
def test_layers_keep_targets_and_second_layer_apart(size: tuple[int, int, int, int]) -> None:
    t, count, limit, seed = size
    second = count // 10
    links = min(second, max(1, limit // 10), limit * second // max(count - second, 1))
    neighbours = by_node(layered_edges(plain_site(t, limit), count, drawn(seed)), count)
    if links and links < limit:
        assert all(other >= FIRST for mine in neighbours[count - second :] for other in mine)
        assert all(neighbours[count - second :])


def test_the_second_layer_matters_to_a_model_of_two_layers() -> None:
    site = target_state_of(range(20), [0] * 20, [0] * 20, [1.0] * 20, 4, 20)
    pairs = layered_edges(site, 20, drawn())
    graph = graph_of([], 20).apply(GraphEdit(n=20, add=pairs, new_x=torch.zeros(20, 3)))
    model = GCN(3, 3, hidden_features=[8], generator=drawn())
    forward, _ = forward_of_features(model.eval(), graph, torch.arange(20, 40), torch.arange(20))
    x = torch.randn(20, 3, generator=drawn(), requires_grad=True)
    (gradient,) = torch.autograd.grad(forward(x)[:, 0].square().sum(), x)
    assert (gradient[18:].abs().sum(1) > 0).all()


def test_distinct_draws_of_large_sites_are_distinct_and_uniform() -> None:
    from grb.attack.injection.edges import _distinct

    chosen = _distinct(10, 4000, 4, torch.Generator().manual_seed(0))
    assert (chosen.sort(dim=1).values.diff(dim=1) > 0).all()
    counts = torch.bincount(chosen.flatten(), minlength=10)
    # 1600 expected in each of ten places; five standard deviations of a hypergeometric count
    assert (counts - 1600).abs().max() < 5 * (4000 * 0.4 * 0.6) ** 0.5


def test_class_rules_give_every_new_node_targets_of_one_class() -> None:
    """Ten targets of two classes in turn, two nodes with five edges: one class each."""
    state = plain_site(10, 5, classes=2)
    for rule in (class_edges, low_degree_class_edges):
        for node, found in enumerate(by_node(rule(state, 2, drawn()), 2)):
            places = [(target - 1) // 2 for target in found]
            assert sorted(places) == list(range(node, 10, 2))


def test_low_degrees_get_the_edges_that_are_scarce_or_left_over() -> None:
    degrees = [5, 1, 4, 1, 9, 2]
    state = target_state_of(range(6), degrees, [0, 1, 0, 1, 0, 1], [0.5] * 6, 3, FIRST)
    few, many = (low_degree_class_edges(state, count, drawn()) for count in (1, 3))
    assert sorted(few[1].tolist()) == [1, 3, 5]
    # nine edges: one for each target, and three more for those with the fewest neighbours
    assert Counter(many[1].tolist()) == {0: 1, 1: 2, 2: 1, 3: 2, 4: 1, 5: 2}


def test_class_rules_need_labels() -> None:
    state = TargetState(torch.arange(3), torch.ones(3), None, None, 2, FIRST)
    for rule in (class_edges, low_degree_class_edges):
        with pytest.raises(DataError, match="a rule by classes needs a model"):
            rule(state, 1, drawn())
