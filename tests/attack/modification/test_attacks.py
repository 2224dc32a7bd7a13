"""RND, DICE, FLIP, feature PGD, Metattack, poisoning, and the papers' spelling; with defects of the original."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy import stats
from torch import Tensor, nn

import grb
from attack.contexts import graph_of, random_graph, victim, view_of
from attack.modification.dense import matrix
from grb.attack import Attack, AttackContext, run_attack
from grb.attack.build import build_attack, default_threat, scenario_of
from grb.attack.losses import cross_entropy
from grb.attack.modification import DICE, FGA, FLIP, NEA, PGD, PRBCD, RAND, RND, STACK, Metattack, poisoned
from grb.attack.modification.base import SearchState
from grb.attack.modification.metattack import _MetaScore
from grb.attack.modification.scores import GradientScores, known_labels
from grb.dataset import Dataset
from grb.dataset.view import View
from grb.defense.adversarial import AdversarialTraining
from grb.errors import DataError
from grb.graph import Adjacency, Graph, GraphEdit
from grb.model.base import predict
from grb.model.build import settings
from grb.threat import Modification


def with_labels(graph: Graph, y: Tensor, targets: Any) -> View:
    ids = torch.as_tensor(list(targets), dtype=torch.int64)
    seen = (y >= 0).nonzero().flatten()
    return View(Graph(graph.adj, graph.x, y), seen, seen[:0], ids, torch.arange(graph.n), 3, inductive=False)


def blocks(n: int = 60, seed: int = 0, inside: float = 0.3, across: float = 0.02) -> tuple[Graph, Tensor]:
    """Two communities and features that hardly tell them apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    upper = np.triu(rng.random((n, n)) < np.where(y[:, None] == y[None, :], inside, across), 1)
    x = torch.from_numpy(np.eye(2)[y] + 2.0 * rng.standard_normal((n, 2))).float()
    return graph_of(np.argwhere(upper), n, x), torch.from_numpy(y)


# ---------------------------------------------------------------- RND


def test_rnd_flips_every_pair_of_a_small_graph_equally_often() -> None:
    """Six nodes, one target: five pairs, whether edge or not."""
    graph = graph_of([(0, 1), (0, 2), (1, 2), (3, 4)], 6)
    context = AttackContext(view_of(graph, [0]), Modification(edges=1))
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in range(600):
        edit = run_attack(RND(mode="flip"), context, seed=seed).edit
        seen[tuple(torch.cat([edit.add, edit.drop], dim=1).flatten().tolist())] += 1
    assert len(seen) == 5 and stats.chisquare(list(seen.values())).pvalue > 0.001


@pytest.mark.parametrize(("mode", "kinds"), [("drop", (4, 0)), ("add", (0, 4))])
def test_rnd_has_a_mode(mode: Any, kinds: tuple[int, int]) -> None:
    context = AttackContext(view_of(random_graph(30), range(10)), Modification(edges=4))
    edit = run_attack(RND(mode=mode), context, seed=0).edit
    assert (edit.drop.shape[1], edit.add.shape[1]) == kinds


# ---------------------------------------------------------------- DICE


def test_dice_deletes_inside_and_connects_across() -> None:
    graph, y = blocks()
    context = AttackContext(with_labels(graph, y, range(30)), Modification(edges=25))
    edit = run_attack(DICE(), context, seed=0).edit
    assert (edit.drop.shape[1], edit.add.shape[1]) == (15, 10)  # 0.6 of 25, rounded down
    assert (y[edit.drop[0]] == y[edit.drop[1]]).all() and (y[edit.add[0]] != y[edit.add[1]]).all()
    attacked = graph.apply(edit)

    def homophily(each: Graph) -> float:
        ends = y[each.adj.edges()]
        return float((ends[0] == ends[1]).float().mean())

    assert homophily(attacked) < homophily(graph)


def test_dice_connects_targets_with_nodes_anywhere() -> None:
    """The original joins the k-th target with node k alone."""
    graph, y = blocks(n=100)
    context = AttackContext(with_labels(graph, y, range(10)), Modification(edges=60))
    edit = run_attack(DICE(ratio_delete=0.0), context, seed=0).edit
    assert edit.add.shape[1] == 60 and int((edit.add[1] >= 10).sum()) > 40


@pytest.mark.parametrize(("ratio", "pairs", "sentence"), [(1.0, 45, "inside a class"), (0.0, 400, "between classes")])
def test_dice_moves_the_rest_to_the_other_pool_where_one_runs_dry(ratio: float, pairs: int, sentence: str) -> None:
    graph = graph_of([(u, v) for u in range(10) for v in range(u + 1, 10)], 40)  # a clique of one class
    y = torch.tensor([0] * 10 + [1] * 30)
    inside, across = (45, 300) if ratio else (45, 300)
    context = AttackContext(with_labels(graph, y, range(10)), Modification(edges=pairs + 5 if ratio else 310))
    result = run_attack(DICE(ratio_delete=ratio), context, seed=0)
    assert result.budget["edges"] == (50 if ratio else 310)
    assert (result.edit.drop.shape[1], result.edit.add.shape[1]) == ((inside, 5) if ratio else (10, across))
    assert any(sentence in note for note in result.notes)


def test_dice_uses_what_is_visible_and_predictions_for_the_rest() -> None:
    graph, y = blocks()
    shown = torch.where(torch.arange(60) < 30, -1, y)
    model = victim("gcn", 2)
    wide = Graph(graph.adj, random_graph(60, seed=3).x, shown)
    context = AttackContext(with_labels(wide, shown, range(30)), Modification(edges=3), model)
    labels = known_labels(context)
    assert torch.equal(labels[30:], y[30:])
    assert torch.equal(labels[:30], predict(model, wide)[:30].argmax(1))
    alone = known_labels(AttackContext(context.view, context.threat))
    assert float((alone[:30] == y[:30]).float().mean()) > 0.8  # passed on along the edges
    lonely = graph_of([(0, 1)], 4)
    some = AttackContext(with_labels(lonely, torch.tensor([1, -1, -1, 1]), [1, 2]), Modification(edges=1))
    assert known_labels(some).tolist() == [1, 1, 1, 1]


# ---------------------------------------------------------------- FLIP

HUB = graph_of([(0, 1), (0, 2), (0, 3), (0, 4), (4, 5), (5, 6)], 8)


@pytest.mark.parametrize(
    ("kind", "mode", "first"),
    [
        ("deg", "descend", (0, 4)),  # 4 + 2
        ("deg", "ascend", (5, 6)),  # 2 + 1
        ("bet", "descend", (0, 4)),
        ("bet", "ascend", (5, 6)),
        ("eigen", "descend", (0, 4)),
        ("eigen", "ascend", (5, 6)),
    ],
)
def test_flip_drops_by_centrality(kind: Any, mode: Any, first: tuple[int, int]) -> None:
    context = AttackContext(view_of(HUB, range(8)), Modification(edges=1))
    assert tuple(run_attack(FLIP(flip_type=kind, mode=mode), context, seed=0).edit.drop.flatten().tolist()) == first


def test_flip_adds_between_the_least_central_nodes_where_nothing_may_go() -> None:
    context = AttackContext(view_of(HUB, range(8)), Modification(edges=1, allow=("add",)))
    edit = run_attack(FLIP(mode="descend"), context, seed=0).edit
    assert 7 in edit.add.flatten().tolist()  # without any neighbour
    other = run_attack(FLIP(), context, seed=0).edit
    assert tuple(other.add.flatten().tolist()) == (0, 5)  # 4 + 2, and absent
    all_gone = run_attack(FLIP(), AttackContext(view_of(HUB, range(8)), Modification(edges=8)), seed=0)
    assert (all_gone.edit.drop.shape[1], all_gone.edit.add.shape[1]) == (6, 2)


# ---------------------------------------------------------------- features


def test_pgd_changes_as_many_targets_as_allowed_and_no_other_row() -> None:
    """The original clips the features of all nodes and draws targets twice."""
    graph = random_graph(30)
    threat = Modification(edges=5, feature_nodes=4, feature_range=(-1.0, 0.5))
    context = AttackContext(view_of(graph, range(10)), threat, victim("gcn", 4))
    result = run_attack(PGD(n_epoch=10, epsilon=0.1), context, seed=0)
    assert result.edit.set_ids is not None and result.edit.set_x is not None
    assert len(result.edit.set_ids) == 4 and (result.edit.set_ids < 10).all()
    assert not result.edit.add.numel() and not result.edit.drop.numel()
    after = graph.apply(result.edit)
    others = torch.ones(30, dtype=torch.bool)
    others[result.edit.set_ids] = False
    assert torch.equal(after.x[others], graph.x[others])  # type: ignore[index]
    assert result.steps[-1].loss > result.steps[0].loss


def test_pgd_has_a_radius_and_may_come_after_edges() -> None:
    graph = random_graph(30)
    threat = Modification(edges=5, feature_nodes=4, feature_range=(-9.0, 9.0))
    context = AttackContext(view_of(graph, range(10)), threat, victim("gcn", 4))
    result = run_attack(PGD(n_epoch=30, epsilon=0.1, radius=0.25, edges=RND()), context, seed=0)
    assert result.edit.drop.shape[1] == 5 and result.edit.set_x is not None
    change = (result.edit.set_x - graph.x[result.edit.set_ids]).abs()  # type: ignore[index]
    assert 0.24 < float(change.max()) <= 0.25 + 1e-6


def test_pgd_without_a_feature_budget_says_so() -> None:
    context = AttackContext(view_of(random_graph(9), range(4)), Modification(edges=5), victim("gcn", 2))
    result = run_attack(PGD(), context, seed=0)
    assert result.edit.is_empty and result.notes == (
        "no features were changed: the threat model allows feature_nodes=0",
    )


# ---------------------------------------------------------------- poisoning


def dataset_of(graph: Graph, y: Tensor, seed: int = 0) -> Dataset:
    order = torch.randperm(graph.n, generator=torch.Generator().manual_seed(seed))
    third = graph.n // 5
    split = {"train": order[:third], "val": order[third : 2 * third], "test": order[2 * third :]}
    matrix = sp.csr_matrix((np.ones(graph.adj.pattern.entries), graph.adj.pattern.indices, graph.adj.pattern.indptr))
    return Dataset.from_arrays(matrix, graph.x, y, split={key: value.numpy() for key, value in split.items()})


def test_every_view_of_a_poisoned_dataset_shows_the_edit() -> None:
    dataset = grb.load_dataset("synth-tiny")
    edge = dataset.defender_view().graph.adj.edges()[:, 0]
    real = dataset.defender_view().nodes[edge].sort().values
    before, matrix = dataset.fingerprint(), dataset.adj
    after = poisoned(dataset, GraphEdit(n=dataset.num_nodes, drop=real.unsqueeze(1)))
    assert not after.defender_view().graph.adj.has(edge.unsqueeze(1)).any()
    for view in (after.transductive_view(), after.attacker_view()):
        assert not view.graph.adj.has(real.unsqueeze(1)).any()
    assert after.adj[int(real[0]), int(real[1])] == 0 and matrix[int(real[0]), int(real[1])] == 1
    assert after.num_edges == dataset.num_edges - 1 and dataset.fingerprint() == before != after.fingerprint()
    assert after.name == dataset.name and after.notes[-1] == "poisoned: 1 edges changed, 0 nodes injected"
    with pytest.raises(DataError, match="removes 2 nodes"):
        poisoned(dataset, GraphEdit(n=dataset.num_nodes, cut=2))


def test_a_dataset_poisoned_by_injection_trains_and_evaluates() -> None:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, epochs=3)
    after = poisoned(dataset, grb.run_attack("rnd", model, dataset).edit)
    assert after.num_nodes == dataset.num_nodes + 9 and (after.labels[dataset.num_nodes :] == -1).all()
    retrained = grb.train("gcn", after, epochs=3, train_mode="transductive")
    assert set(grb.evaluate(retrained, after)) == set(grb.evaluate(model, dataset))


def retrained_score(dataset: Dataset, edit: GraphEdit | None) -> float:
    made = dataset if edit is None else poisoned(dataset, edit)
    params: dict[str, Any] = {"epochs": 40, "train_mode": "transductive", "hidden_features": [8], "dropout": 0.0}
    return grb.evaluate(grb.train("gcn", made, **params), made)["full"]


def test_metattack_joins_communities_and_harms_retrained_models_more_than_dice() -> None:
    """Two blocks of twenty; equal budgets; paired over ten graphs, for the exact meta-gradient and the first order."""
    attacks: dict[str, Attack] = {
        "dice": DICE(),
        "exact": Metattack(refresh=2, n_epoch=50),
        "first": Metattack(refresh=2, n_epoch=50, order="first", snapshots=5),
    }
    left: dict[str, list[float]] = {name: [] for name in ("clean", *attacks)}
    across = []
    for seed in range(10):
        graph, y = blocks(n=40, seed=seed, inside=0.3, across=0.02)
        dataset = dataset_of(graph, y, seed)
        left["clean"].append(retrained_score(dataset, None))
        for name, attack in attacks.items():
            edit = grb.run_attack(attack, None, dataset, threat=Modification(edge_ratio=0.2), seed=seed).edit
            left[name].append(retrained_score(dataset, edit))
            if name != "dice":
                across.append(float((y[edit.add[0]] != y[edit.add[1]]).float().mean()))
    assert np.mean(left["dice"]) < np.mean(left["clean"])
    for name in ("exact", "first"):
        more = np.subtract(left["dice"], left[name])
        assert more.mean() - 1.833 * stats.sem(more) > 0, (name, left)  # 95 %, one side, nine degrees of freedom
    assert float(np.mean(across)) > 0.6


def unrolled(a: Tensor, x: Tensor, y: Tensor, train: Tensor, attack: Metattack) -> tuple[Tensor, list[Tensor]]:
    """Rows of the twice smoothed features and the surrogate's weights after every step, all with dense matrices."""
    loops = a + torch.eye(len(a), dtype=a.dtype)
    scale = loops.sum(1) ** -0.5
    op = scale.unsqueeze(1) * loops * scale
    rows = torch.cat([op @ op @ x, torch.ones(len(a), 1, dtype=a.dtype)], dim=1)
    weight = torch.zeros(rows.shape[1], 3, dtype=a.dtype)
    speed, weights = torch.zeros_like(weight), []
    for _ in range(attack.steps):
        error = torch.softmax(rows[train] @ weight, dim=1) - torch.eye(3, dtype=a.dtype)[y[train]]
        speed = attack.momentum * speed + rows[train].T @ error / len(train)
        weight = weight - attack.lr * speed
        weights.append(weight)
    return rows, weights


@pytest.mark.parametrize("order", ["exact", "first"])
def test_meta_gradients_are_those_of_unrolled_training_on_a_dense_matrix(order: Any) -> None:
    """All pairs of 30 nodes in double precision; to first order every tenth step counts, its weights held fixed."""
    graph, y = blocks(n=30, seed=3)
    train, targets = torch.arange(0, 12), torch.arange(12, 30)
    wide = Adjacency(graph.adj.pattern, torch.ones(graph.adj.pattern.entries, dtype=torch.float64))
    doubled = Graph(wide, graph.x.double())  # type: ignore[union-attr]
    view = with_labels(doubled, torch.where(torch.arange(30) < 12, y, -1), targets)
    attack = Metattack(n_epoch=40, lr=0.05, order=order, snapshots=4, loss=cross_entropy)
    context = AttackContext(view, Modification(edges=4))
    scores = _MetaScore(attack, context)(SearchState.of(context, everywhere=True))
    assert isinstance(scores, GradientScores)
    pairs = torch.combinations(torch.arange(30)).T
    a = matrix(doubled).requires_grad_()
    rows, weights = unrolled(a, doubled.x, y, train, attack)  # type: ignore[arg-type]
    used = weights[-1:] if order == "exact" else [weight.detach() for weight in weights[9::10]]
    labels = (rows[targets] @ weights[-1]).detach().argmax(1)
    loss = sum(torch.nn.functional.cross_entropy(rows[targets] @ weight, labels) for weight in used)
    (whole,) = torch.autograd.grad(loss, a)  # type: ignore[arg-type]
    wanted = (whole + whole.T)[pairs[0], pairs[1]]
    torch.testing.assert_close(scores.gradient.of(pairs), wanted, rtol=1e-8, atol=1e-12)


def test_metattack_trains_with_features_of_any_size() -> None:
    """Steps of 0.1 diverge on features of length 1000."""
    graph, y = blocks(n=40)
    large = Graph(graph.adj, 1000 * graph.x)  # type: ignore[operator]
    context = AttackContext(
        with_labels(large, torch.where(torch.arange(40) < 20, y, -1), range(20, 40)), Modification(edges=4)
    )
    result = run_attack(Metattack(n_epoch=30), context, seed=0)
    assert result.budget["edges"] == 4 and all(np.isfinite(step.loss) for step in result.steps)


WRONG_METATTACKS: list[tuple[dict[str, Any], str]] = [
    ({"goal": "test"}, "goal is 'test', but 'self' or 'train' or 'both' is needed"),
    ({"order": "second"}, "order is 'second'"),
    ({"lr": 0.0}, "lr is 0"),
    ({"momentum": 1.0}, "momentum is 1.0"),
    ({"snapshots": 0}, "snapshots is 0"),
]


def test_metattack_goals_and_what_it_needs() -> None:
    graph, y = blocks(n=40)
    shown = y.clone()
    shown[20:] = -1
    context = AttackContext(with_labels(graph, shown, range(20, 40)), Modification(edges=4))
    edits = [run_attack(Metattack(goal=goal, n_epoch=20), context, seed=0).edit for goal in ("self", "train", "both")]
    assert all(edit.add.shape[1] + edit.drop.shape[1] == 4 for edit in edits)
    assert not torch.equal(edits[0].add, edits[1].add)
    with pytest.raises(DataError, match="shows no training nodes with labels"):
        run_attack(Metattack(), AttackContext(view_of(graph, [0]), Modification(edges=1)), seed=0)
    assert Metattack.objective == "poisoning" and not hasattr(FGA, "objective")
    for wrong, sentence in WRONG_METATTACKS:
        with pytest.raises(DataError, match=sentence):
            Metattack(**wrong)


# ---------------------------------------------------------------- around


def test_adversarial_training_with_changed_edges() -> None:
    dataset = grb.load_dataset("synth-tiny")
    seen: list[float] = []

    class Spy:
        def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
            edit = PRBCD(n_epoch=2, search_space_size=500)(context, generator=generator)
            seen.append(edit.add.shape[1] + edit.drop.shape[1])
            return edit

    threat = Modification(edge_ratio=0.05)
    training = AdversarialTraining(
        settings=settings("gcn", "synth-tiny").override(epochs=8), attack=Spy(), threat=threat, warm_up=4
    )
    model = training.fit(dataset.defender_view(), seed=0)
    inside = dataset.defender_view().training_graph()[0]
    assert seen == [threat.budget(inside)] * 4
    assert not torch.equal(next(model.parameters()), next(grb.train("gcn", dataset, epochs=8, seed=0).parameters()))
    named = grb.train("gcn+at", dataset, epochs=6, warm_up=2, attack=DICE(), threat=threat)
    assert grb.evaluate(named, dataset)["full"] > 0.2


def test_the_paper_era_call_gives_arrays_back() -> None:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, epochs=5)
    before = dataset.adj.copy()
    adj, features = FLIP(n_edge_mod=6, flip_type="deg", mode="descend", allow_isolate=False).attack(
        model, dataset.adj, dataset.features, dataset.test_mask
    )
    assert (abs(adj - before)).sum() == 12 and (adj != adj.T).nnz == 0 and (dataset.adj != before).nnz == 0
    assert torch.equal(features, dataset.features) and (np.asarray(adj.sum(1))[np.asarray(before.sum(1)) > 0] > 0).all()
    pgd = PGD(epsilon=0.1, n_epoch=3, n_edge_mod=0, n_node_mod=2, feat_lim_min=-0.9, feat_lim_max=0.9)
    _, moved = pgd.attack(model, dataset.adj, dataset.features, dataset.test_mask)
    assert int((moved != dataset.features).any(1).sum()) == 2
    with pytest.raises(DataError, match="needs n_edge_mod"):
        DICE().attack(model, dataset.adj, dataset.features, dataset.test_mask)
    with pytest.raises(DataError, match="target_mask has shape"):
        RND(n_edge_mod=1).attack(None, dataset.adj, dataset.features, dataset.test_mask[:-1])


@pytest.mark.parametrize("name", ["dice", "fga", "flip", "nea", "stack", "prbcd"])
def test_paper_era_paths(name: str) -> None:
    short, long = (importlib.import_module(f"grb.attack.{part}{name}") for part in ("", "modification."))
    assert getattr(short, name.upper()) is getattr(long, name.upper())
    assert importlib.import_module("grb.attack.modification.rand").RAND is RAND is RND


def test_attacks_by_name_have_the_threat_of_their_scenario() -> None:
    dataset = grb.load_dataset("synth-tiny")
    targets = len(dataset.test_ids("full"))
    assert default_threat(FGA(), dataset, "full") == Modification.preset("synth-tiny", targets, dataset.feature_range)
    assert default_threat(build_attack("fgsm", "synth-tiny"), dataset, "full").nodes == 9  # type: ignore[union-attr]
    result = grb.run_attack("dice", None, dataset)
    assert result.budget["edges"] == int(0.05 * dataset.num_edges)
    assert scenario_of(lambda context, generator: None) == "injection"
    assert build_attack("pr-bcd", "grb-cora") == PRBCD() and build_attack("prbcd", "x", iterations=3).steps == 3  # type: ignore[attr-defined]
    assert build_attack("pgd-features", "grb-cora", iterations=7, step=0.5) == PGD(n_epoch=7, epsilon=0.5)
    with pytest.raises(DataError, match=r"n_edge_mod is a limit.*give threat=Modification"):
        build_attack("fga", "grb-cora", n_edge_mod=3)
    with pytest.raises(DataError, match="attack 'stack' has no iterations"):
        build_attack("stack", "grb-cora", iterations=3)


def test_presets_of_modification() -> None:
    assert Modification.preset("grb-cora", 804) == Modification(
        edge_ratio=0.05, feature_nodes=40, feature_range=(-0.94, 0.94)
    )
    assert Modification.preset("mine", 804) == Modification(edge_ratio=0.05)
    assert Modification.preset("mine", 804, (0, 1)).feature_nodes == 40
    assert Modification.preset("grb-cora").feature_nodes == 0


@pytest.mark.parametrize(
    ("maker", "options", "sentence"),
    [
        (RND, {"mode": "both"}, "mode is 'both'"),
        (DICE, {"ratio_delete": 1.2}, "ratio_delete is 1.2"),
        (FLIP, {"flip_type": "pagerank"}, "flip_type is 'pagerank'"),
        (FLIP, {"mode": "up"}, "mode is 'up'"),
        (STACK, {"estimate": "dense"}, "estimate is 'dense'"),
        (STACK, {"refresh": 0}, "refresh is 0"),
        (NEA, {"window": 0}, "window is 0"),
        (NEA, {"estimate": "exact"}, "estimate is 'exact'"),
        (PGD, {"radius": -1.0}, "radius is -1.0"),
        (PGD, {"epsilon": 0.0}, "step_size is 0.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(maker: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        maker(**options)


@pytest.mark.parametrize("attack", [RND(), FLIP(), NEA(), STACK()], ids=lambda attack: type(attack).__name__)
def test_all_of_the_budget_is_used_when_all_nodes_are_targets(attack: Attack) -> None:
    """The original lists edges in both directions and flips them back: 121, 9, 1 and 1 of 125."""
    graph = random_graph(100, density=0.06, seed=0)
    context = AttackContext(view_of(graph, range(100)), Modification(edges=125))
    result = run_attack(attack, context, seed=0)
    assert result.budget["edges"] == 125
    assert abs(graph.apply(result.edit).num_edges - graph.num_edges) <= 125


def test_repeated_attacks_do_not_grow_steps_or_mark_features() -> None:
    """The original multiplies its step size at every call and leaves requires_grad on the dataset's features."""
    dataset = grb.load_dataset("synth-tiny")
    model: nn.Module = grb.train("gcn", dataset, epochs=5)
    attack = PRBCD(n_epoch=4, search_space_size=500)
    first, second = (grb.run_attack(attack, model, dataset, seed=1) for _ in range(2))
    assert torch.equal(first.edit.add, second.edit.add) and first.steps == second.steps
    grb.run_attack("pgd-features", model, dataset, iterations=2)
    assert not dataset.features.requires_grad


@pytest.mark.parametrize("attack", [DICE(), FLIP()], ids=["dice", "flip"])
def test_an_added_edge_may_let_another_one_go(attack: Attack) -> None:
    """Where no node may be isolated, edges that could not go at first can once their ends have others."""
    plain = graph_of([(1, 2), (1, 3)], 4)
    graph = Graph(plain.adj, plain.x, torch.tensor([0, 1, 2, 1]))
    targets = torch.tensor([1, 3])
    context = AttackContext(view_of(graph, targets), Modification(edges=6, allow_isolate=False))
    edit = run_attack(attack, context, seed=0).edit
    assert [1, 3] in edit.drop.T.tolist() and (graph.apply(edit).adj.degrees[targets] > 0).all()
