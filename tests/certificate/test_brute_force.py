"""No certified prediction is ever broken: every edit of small graphs is tried, and every outcome of small spaces counted."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grb.certificate import bismoothing, interception, regions
from grb.certificate.influence import malicious_votes
from grb.certificate.injection_lp import injection_attacked
from grb.certificate.locality import lead_exceeds_rounding
from grb.certificate.votes import collective_broken, count_votes, vote_budget, winner
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.model.base import EvaluationView, observing, predict, prepare
from grb.model.bounded import Bounded
from grb.model.bounded import votes as ballots
from grb.model.hash_vote import HashVote
from grb.model.known import Known
from grb.model.torch.gcn import GCN
from grb.model.torch.graphsage import GraphSAGE

STRESS = os.environ.get("HYPOTHESIS_PROFILE") == "stress"
EMPTY = torch.empty(2, 0, dtype=torch.int64)
seeds = st.integers(0, 10**6)


def cases(few: int) -> settings:
    return settings(max_examples=2000 if STRESS else few)


def random_graph(seed: int, most: int) -> tuple[Graph, torch.Generator]:
    generator = torch.Generator().manual_seed(seed)
    n = int(torch.randint(3, most + 1, (1,), generator=generator))
    pairs = torch.combinations(torch.arange(n)).T
    chosen = pairs[:, torch.rand(pairs.shape[1], generator=generator) < 0.4]
    adj, _ = adjacency_from_edges(chosen, n)
    return Graph(adj, torch.randn(n, 3, generator=generator)), generator


def model_of(generator: torch.Generator, kind: int) -> GCN | GraphSAGE:
    maker = [GCN, GraphSAGE][kind % 2]
    more = {} if kind % 2 == 0 else {"aggregate": "mean"}
    return maker(3, 3, [4], generator=generator, **more).eval()


def side_by_side(present: torch.Tensor, pairs: torch.Tensor, x: torch.Tensor) -> Graph:
    """Many graphs of the same nodes as one graph.

    Args:
        present: Which pairs are edges in every graph, [copies, pairs].
        pairs: Both ends of every pair, [2, pairs].
        x: Features of all nodes, [copies, n, d].
    """
    copies, n, width = x.shape
    copy, pair = present.nonzero(as_tuple=True)
    adj, _ = adjacency_from_edges(copy * n + pairs[:, pair], copies * n)
    return Graph(adj, x.reshape(-1, width))


def repeated(view: EvaluationView, copies: int) -> EvaluationView:
    return EvaluationView(view.known.repeat(copies), view.keys.repeat(copies))


def flipped(graph: Graph, count: int) -> tuple[Graph, int]:
    """The graph and all that differ from it in exactly so many edges, and how many they are."""
    pairs = torch.combinations(torch.arange(graph.n)).T
    chosen = torch.combinations(torch.arange(pairs.shape[1]), count)
    present = graph.adj.has(pairs).repeat(len(chosen) + 1, 1)
    rows = torch.arange(1, len(chosen) + 1).unsqueeze(1).expand_as(chosen)
    present[rows, chosen] ^= True
    return side_by_side(present, pairs, graph.x.expand(len(present), -1, -1)), len(present)


def injected(graph: Graph, nodes: int, generator: torch.Generator) -> tuple[Graph, int, torch.Tensor]:
    """All wirings of one injected node, the empty one first; of a second one that joins every second node and the first.

    Returns:
        All graphs, how many they are, and the injected neighbours of every node, [copies, n].
    """
    n, copies = graph.n, 2**graph.n
    first = (torch.arange(copies).unsqueeze(1) >> torch.arange(n)) % 2 == 1
    wires = [first]
    if nodes == 2:
        second = (torch.arange(n) + torch.arange(copies).unsqueeze(1)) % 2 == 0
        wires.append(second & (torch.arange(copies) > 0).unsqueeze(1))
    pairs = torch.combinations(torch.arange(n + nodes)).T
    old, new = pairs[0], pairs[1] - n
    present = torch.zeros(copies, pairs.shape[1], dtype=torch.bool)
    present[:, new < 0] = graph.adj.has(pairs[:, new < 0])
    for number, wire in enumerate(wires):
        mine = (new == number) & (old < n)
        present[:, mine] = wire[:, old[mine]]
    if nodes == 2:
        present[1:, (old == n) & (new == 1)] = True
    size = 10.0 ** (torch.arange(copies) % 5 - 1).view(-1, 1, 1)
    x = torch.cat([graph.x.expand(copies, -1, -1), size * torch.randn(copies, nodes, 3, generator=generator)], 1)
    return side_by_side(present, pairs, x), copies, sum(wire.long() for wire in wires)


def voted(vote: HashVote, graph: Graph, copies: int, view: EvaluationView) -> tuple[np.ndarray, np.ndarray]:
    """What every group says in every copy, [groups, copies, n], and what the clean graph, the first one, survives, [n]."""
    with torch.no_grad(), observing(vote, repeated(view, copies)):
        logits = torch.stack(list(vote.group_logits(graph.x, vote.prepare(graph.adj))))
    logits = logits.view(vote.groups, copies, -1, logits.shape[-1])
    said = logits.argmax(-1).numpy()
    unsure = sum((~lead_exceeds_rounding(own)).long() for own in logits[:, 0]).numpy()
    return said, vote_budget(count_votes(said[:, 0], 3)) - unsure


def winners(said: np.ndarray) -> np.ndarray:
    """Class with most votes in every copy, [copies, n]."""
    groups, copies, n = said.shape
    return winner(count_votes(said.reshape(groups, -1), 3)).reshape(copies, n)


@cases(12)
@given(seeds, st.integers(0, 1), st.integers(3, 9), st.integers(1, 2))
def test_no_flips_break_a_certified_hash_vote(seed, kind, groups, count):
    """All single edges, or all pairs of edges, of graphs of up to twelve nodes."""
    graph, generator = random_graph(seed, 12 if STRESS else 7)
    vote = HashVote(model_of(generator, kind), groups).eval()
    many, copies = flipped(graph, count)
    said, budgets = voted(vote, many, copies, EvaluationView.of(torch.arange(graph.n), graph.n, seed))
    found = winners(said)
    assert ((found == found[0]) | (budgets < count)).all()


@cases(8)
@given(seeds, st.integers(0, 1), st.integers(3, 9), st.integers(1, 2))
def test_no_injection_breaks_a_certified_sender_vote(seed, kind, groups, nodes):
    """All wirings of one node to graphs of up to twelve, and as many of two, with features of every size."""
    graph, generator = random_graph(seed, 12 if STRESS else 6)
    vote = HashVote(model_of(generator, kind), groups, "senders").eval()
    many, copies, _ = injected(graph, nodes, generator)
    said, budgets = voted(vote, many, copies, EvaluationView.of(torch.arange(0), graph.n + nodes, seed))
    found = winners(said)[:, : graph.n]
    assert ((found == found[0]) | (budgets[: graph.n] < nodes)).all()


@cases(8)
@given(seeds, st.integers(0, 1), st.integers(1, 2))
def test_no_injection_moves_a_model_that_hears_known_nodes_only(seed, kind, nodes):
    graph, generator = random_graph(seed, 12 if STRESS else 6)
    model = Known(model_of(generator, kind)).eval()
    known = (torch.rand(graph.n, generator=generator) < 0.6).nonzero().flatten()
    many, copies, _ = injected(graph, nodes, generator)
    view = repeated(EvaluationView.of(known, graph.n + nodes), copies)
    found = predict(model, many, view).view(copies, graph.n + nodes, -1)[:, : graph.n]
    assert torch.allclose(found, found[:1].expand_as(found), rtol=1e-4, atol=1e-5)


@settings(max_examples=2000 if STRESS else 10)
@given(seeds, st.integers(0, 1), st.sampled_from([0.5, 2.0, 8.0]), st.integers(1, 2))
def test_no_injection_breaks_a_label_of_bounded_influence(seed, kind, influence, nodes):
    graph, generator = random_graph(seed, 12 if STRESS else 6)
    model = Bounded(model_of(generator, kind), influence=influence).eval()
    known = (torch.rand(graph.n, generator=generator) < 0.5).nonzero().flatten()
    view = EvaluationView.of(known, graph.n)
    own, clean = predict(model.known_part(), graph, view), predict(model, graph, view).argmax(1)
    with observing(model, view):
        heard = prepare(model, graph.adj)[-1] @ ballots(own)
    budgets = malicious_votes(own.double(), heard[:, :-1].double(), heard[:, -1], influence, 1e-5)
    many, copies, neighbours = injected(graph, nodes, generator)
    longer = repeated(EvaluationView.of(known, graph.n + nodes), copies)
    after = predict(model, many, longer).view(copies, graph.n + nodes, -1)[:, : graph.n].argmax(2)
    assert ((after == clean).numpy() | (budgets < neighbours.numpy()) | (budgets < 0)).all()


@settings(max_examples=200 if STRESS else 8)
@given(seeds, st.integers(0, 1))
def test_graphs_side_by_side_are_what_edits_make_of_one(seed, kind):
    """Every wiring by itself, through an edit: the same logits, bit by bit for known senders."""
    graph, generator = random_graph(seed, 5)
    model = Known(model_of(generator, kind)).eval()
    known = (torch.rand(graph.n, generator=generator) < 0.6).nonzero().flatten()
    many, copies, _ = injected(graph, 1, generator)
    view, rows = EvaluationView.of(known, graph.n + 1), many.x.view(copies, graph.n + 1, -1)
    together = predict(model, many, repeated(view, copies)).view(copies, graph.n + 1, -1)
    clean = predict(model, graph.apply(GraphEdit(graph.n, EMPTY, EMPTY, torch.zeros(1, 3))), view)[: graph.n]
    for number in range(copies):
        ends = torch.tensor([u for u in range(graph.n) if number >> u & 1], dtype=torch.int64)
        add = torch.stack([ends, torch.full_like(ends, graph.n)])
        alone = predict(model, graph.apply(GraphEdit(graph.n, add, EMPTY, rows[number, graph.n :])), view)
        assert torch.allclose(alone, together[number], rtol=1e-4, atol=1e-5)
        assert torch.equal(alone[: graph.n], clean)


@settings(max_examples=1000 if STRESS else 40)
@given(seeds, st.integers(2, 6), st.integers(1, 4), st.integers(2, 3), st.integers(0, 3))
def test_the_collective_bound_is_never_below_the_worst_case(seed, groups, nodes, classes, budget):
    said = np.random.default_rng(seed).integers(0, classes, (groups, nodes))
    counts = count_votes(said, classes)
    first = winner(counts)
    worst = 0
    for broken in itertools.combinations(range(groups), min(budget, groups)):
        fallen = 0
        for node in range(nodes):  # every node's votes in corrupted groups are the adversary's to choose
            for rival in range(classes):
                votes = said[:, node].copy()
                votes[list(broken)] = rival
                fallen += rival != first[node] and winner(count_votes(votes[:, None], classes))[0] != first[node]
                if rival != first[node] and winner(count_votes(votes[:, None], classes))[0] != first[node]:
                    break
        worst = max(worst, fallen)
    relaxed = collective_broken(said, budget, classes=classes)
    assert relaxed >= worst
    assert collective_broken(said, budget, classes=classes, exact=True) == worst
    assert relaxed <= int((vote_budget(counts) < budget).sum())


@settings(max_examples=100 if STRESS else 40)
@given(
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.01, 0.2, 0.5]),
    st.sampled_from([0.0, 0.3, 0.6, 1.0]),
    st.floats(0, 1),
)
def test_regions_equal_the_enumeration_of_all_outcomes(add, drop, p_add, p_drop, p):
    """Neyman and Pearson over single outcomes, in floating point and without any region."""
    here, there = [], []
    for outcome in itertools.product([0, 1], repeat=add + drop):
        a = b = 1.0
        for position, bit in enumerate(outcome):
            one = position >= add  # the bit of the clean input; the edited one is its opposite
            set_clean = 1 - p_drop if one else p_add
            set_edited = p_add if one else 1 - p_drop
            a *= set_clean if bit else 1 - set_clean
            b *= set_edited if bit else 1 - set_edited
        here.append(a)
        there.append(b)
    here, there = np.array(here), np.array(there)

    def filled(order):
        left, total = p, 0.0
        for index in order:
            if here[index] <= 0:
                continue
            share = min(1.0, left / here[index])
            total, left = total + share * there[index], left - share * here[index]
        return total

    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(there > 0, here / np.where(there > 0, there, 1), np.inf)
    found = regions.sparse_regions(add=add, drop=drop, p_add=p_add, p_drop=p_drop)
    free = there[here <= 0].sum()
    assert float(found.lowest(np.array([p]))[0]) == pytest.approx(filled(np.argsort(-ratio)), abs=1e-9)
    assert float(found.highest(np.array([p]))[0]) == pytest.approx(free + filled(np.argsort(ratio)), abs=1e-9)


def test_the_published_rule_of_bi_smoothing_certifies_what_one_node_breaks():
    """The vote depends on whether one original node is left, and so does whether the injected edge is."""
    p_node, p_edge = 0.5, 1e-9
    # class A if w is left; if it is deleted, A in four of ten draws and B in the others
    low, high = np.array([0.5 + 0.5 * 0.4]), np.array([0.5 * 0.6])
    chance = bismoothing.inert(1, p_edge=p_edge, p_node=p_node)
    assert bismoothing.certified_included(low, high, chance)[0]
    # an injected node beside w decides for B wherever both are left
    after_a = 0.5 * p_node + 0.5 * 0.4
    after_b = 0.5 * (1 - p_node) + 0.5 * 0.6
    assert after_a < after_b
    assert not bismoothing.certified_soundly(low, high, 1, 1, p_edge=p_edge, p_node=p_node)[0]


@settings(max_examples=2000 if STRESS else 150)
@given(seeds, st.integers(1, 3), st.integers(1, 3), st.sampled_from([0.3, 0.7, 0.9]), st.sampled_from([0.1, 0.5, 0.9]))
def test_bi_smoothing_survives_every_classifier_and_injection(seed, nodes, edges, p_edge, p_node):
    rng, originals = np.random.default_rng(seed), 4
    gains = rng.choice([0, 1, 2], size=2**originals, p=rng.dirichlet([1, 1, 4]))  # 1 + [A] - [B] of every outcome
    ends = [rng.choice(originals, size=edges, replace=False) for _ in range(nodes)]
    expected, worst, lead = 0.0, 0.0, 0.0
    for outcome, gain in zip(itertools.product([0, 1], repeat=originals), gains, strict=True):
        chance = np.prod([(1 - p_node) if left else p_node for left in outcome])
        inert = np.prod([p_node + (1 - p_node) * p_edge ** sum(outcome[u] for u in own) for own in ends])
        lead += chance * (gain - 1)
        worst += chance * (inert * gain)
        expected += chance * inert
    low, high = np.array([(1 + lead) / 2]), np.array([(1 - lead) / 2])
    if bismoothing.certified_soundly(low, high, nodes, edges, p_edge=p_edge, p_node=p_node)[0]:
        assert worst > 1
    assert expected >= bismoothing.inert(edges, p_edge=p_edge, p_node=p_node) ** nodes - 1e-12


@settings(max_examples=200 if STRESS else 15)
@given(seeds, st.floats(0.1, 0.9), st.floats(0.0, 0.9))
def test_arrival_is_never_more_likely_than_the_bound(seed, p_delete, p_ablate):
    from scipy import sparse

    graph, _ = random_graph(seed, 5)
    pairs = graph.adj.edges().T.tolist()
    directed = [(u, v) for u, v in pairs] + [(v, u) for u, v in pairs]
    if len(directed) > 12:
        return
    dense = np.zeros((graph.n, graph.n))
    for u, v in directed:
        dense[u, v] = 1
    bound = interception.arrivals(
        sparse.csr_array(dense), np.arange(graph.n), p_delete=p_delete, p_ablate=p_ablate
    ).toarray()
    exact = np.zeros_like(bound)
    for kept in itertools.product([0, 1], repeat=len(directed)):
        chance = np.prod([(1 - p_delete) if each else p_delete for each in kept])
        step = np.eye(graph.n, dtype=int)
        for (u, v), each in zip(directed, kept, strict=True):
            step[v, u] |= each
        exact += chance * ((step @ step) > 0)
    assert (bound >= (1 - p_ablate) * exact - 1e-9).all()


@settings(max_examples=200 if STRESS else 25)
@given(seeds, st.integers(1, 2), st.integers(1, 3), st.integers(1, 3))
def test_the_injection_program_is_never_below_any_wiring(seed, nodes, edges, reach):
    from scipy import sparse

    rng = np.random.default_rng(seed)
    graph, _ = random_graph(seed, 5)
    n, p_edge, p_node = graph.n, 0.7, 0.2
    dense = np.zeros((n, n))
    for u, v in graph.adj.edges().T.tolist():
        dense[u, v] = dense[v, u] = 1
    low = rng.uniform(0.4, 1, n)
    high = (1 - low) * rng.uniform(0.5, 1, n)
    own = {"nodes": nodes, "edges_per_node": edges, "p_edge": p_edge, "p_node": p_node, "reach": reach}
    bound = injection_attacked(low, high, np.arange(n), sparse.csr_array(dense), **own)
    wirings = [each for size in range(min(edges, n) + 1) for each in itertools.combinations(range(n), size)]
    survive, worst = (1 - p_edge) * (1 - p_node), 0
    for chosen in itertools.product(wirings, repeat=nodes):
        safe = np.ones(n)  # probability that all simple paths from injected nodes are blocked, one by one
        for each in chosen:
            for start in each:
                for path in simple_paths(dense, start, reach - 1):
                    safe[path[-1]] *= 1 - survive ** len(path)
        worst = max(worst, int((1 - safe >= (low - high) / 2).sum()))
    assert bound >= worst - 1e-6
    assert bound <= n + 1e-6


def simple_paths(dense, start, most):
    """All simple paths of at most so many edges from a node, as lists of nodes."""
    paths, found = [[start]], [[start]]
    for _ in range(most):
        paths = [[*path, int(v)] for path in paths for v in np.flatnonzero(dense[path[-1]]) if v not in path]
        found += paths
    return found
