"""Constraints are enforced by the check, projections satisfy them, and attacks keep to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

import grb
from grb.auditing.attacks import largest_threat
from grb.auditing.limits import threats_of
from grb.constraints import Constraints
from grb.dataset import Dataset, constraints_of
from grb.dataset.original_names import OriginalNames
from grb.errors import BudgetError, DataError, UnknownName
from grb.graph import GraphEdit
from grb.threat import Injection, Modification, threat_from_dict, threat_within


def accounts(feat_norm: str | None = None, n: int = 60) -> Dataset:
    """amount, payments (whole), vip (0 or 1), country one-hot, age (fixed)."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    country = np.eye(3)[rng.integers(0, 3, n)]
    x = np.column_stack(
        [rng.normal(size=n) + y, rng.poisson(3, n), rng.integers(0, 2, n), country, rng.integers(18, 80, n)]
    )
    u, v = rng.integers(0, n, 150), rng.integers(0, n, 150)
    adj = coo_array((np.ones(150), (u, v)), shape=(n, n))
    split = {"train": range(n // 2), "test": range(n // 2, n)}
    made = Dataset.from_arrays(adj, x, y, split=split, name="accounts", feat_norm=feat_norm)
    names = ["amount", "payments", "vip", "country=DE", "country=FR", "country=IT", "age"]
    made.__dict__["names"] = OriginalNames(features=names)
    return made


def limits(dataset: Dataset, **more) -> Constraints:
    return constraints_of(
        dataset,
        ranges={"amount": (-1.0, 1.0), "payments": (0, 6)},
        integer=["payments"],
        binary=["vip"],
        one_hot=["country"],
        fixed=["age"],
        **more,
    )


def raw(dataset: Dataset, rows: torch.Tensor) -> torch.Tensor:
    return dataset.feature_scale.invert(rows)


@pytest.mark.parametrize("feat_norm", [None, "standardise", "linear"])
@given(seed=st.integers(0, 2**20))
@settings(max_examples=30)
def test_projections_satisfy_the_constraints_in_raw_units(feat_norm: str | None, seed: int) -> None:
    dataset = accounts(feat_norm)
    constraints = limits(dataset)
    rows = torch.randn(6, 7, generator=torch.Generator().manual_seed(seed)) * 5
    found = constraints.project_rows(rows, dataset.graph)
    own = raw(dataset, found).double()
    assert (own[:, 0] >= -1 - 1e-4).all() and (own[:, 0] <= 1 + 1e-4).all()
    assert torch.allclose(own[:, 1], own[:, 1].round(), atol=1e-3)
    assert (own[:, 1] >= -1e-3).all() and (own[:, 1] <= 6 + 1e-3).all()
    assert torch.allclose(own[:, 2] * (1 - own[:, 2]), torch.zeros(6, dtype=torch.float64), atol=1e-3)
    assert torch.allclose(own[:, 3:6].sum(1), torch.ones(6, dtype=torch.float64), atol=1e-3)
    ages = set(raw(dataset, dataset.features)[:, 6].round().int().tolist())
    assert set(own[:, 6].round().int().tolist()) <= ages
    # what was projected is allowed, and projecting again changes nothing
    torch.testing.assert_close(constraints.project_rows(found, dataset.graph), found, atol=1e-5, rtol=1e-5)
    edit = GraphEdit(n=60, add=torch.tensor([[30], [60]]), new_x=found)
    constraints.check(dataset.graph, edit, dataset.index_test)


@pytest.mark.parametrize(("column", "value"), [(0, 1.5), (1, 2.5), (1, 9.0), (2, 0.5), (3, 0.5), (6, 17.25)], ids=str)
def test_each_constraint_is_enforced(column: int, value: float) -> None:
    dataset = accounts()
    constraints = limits(dataset)
    row = constraints.project_rows(torch.zeros(1, 7), dataset.graph)
    threat = Injection(5, 5, (-100.0, 100.0), constraints=constraints)
    threat.check(dataset.graph, GraphEdit(n=60, new_x=row), dataset.index_test)
    row[0, column] = value
    with pytest.raises(BudgetError, match=f"feature {column} of"):
        threat.check(dataset.graph, GraphEdit(n=60, new_x=row), dataset.index_test)


def test_who_may_be_connected_degrees_and_cost() -> None:
    dataset = accounts()
    graph, targets = dataset.graph, dataset.index_test
    threat = Modification(edges=50)
    far = GraphEdit(n=60, add=torch.tensor([[0], [59]]))
    if graph.adj.has(far.add).any():
        far = GraphEdit(n=60, add=torch.tensor([[1], [58]]))
    threat.check(graph, far, targets)
    with pytest.raises(BudgetError, match="gets a new edge, but the constraints connect=targets"):
        replace(threat, constraints=Constraints(connect="targets")).check(graph, far, targets)
    with pytest.raises(BudgetError, match="max_degree=0"):
        replace(threat, constraints=Constraints(max_degree=0)).check(graph, far, targets)
    dear = replace(threat, constraints=Constraints(edge_cost=2.0, cost=3.0))
    assert dear.check(graph, far, targets)["cost"] == 2.0
    with pytest.raises(BudgetError, match="the edit costs 4, but the constraints allow cost=3"):
        dear.check(graph, GraphEdit(n=60, drop=graph.adj.edges()[:, :2]), targets)


@pytest.mark.parametrize("attack", ["fgsm", "pgd", "tdgia", "rnd", "auto"])
def test_injections_keep_to_the_constraints(attack: str) -> None:
    dataset = accounts("standardise")
    model = grb.train("gcn", dataset, epochs=20, hidden_features=[8])
    constraints = limits(dataset, connect="targets", max_degree=12, node_cost=1.0, edge_cost=0.5, cost=8.0)
    threat = Injection(4, 4, dataset.feature_range, constraints=constraints)
    more = {} if attack in ("rnd", "auto") else {"iterations": 5}
    result = grb.run_attack(attack, model, dataset, threat=threat, **more)
    assert result.budget["cost"] <= 8.0
    if result.edit.new_x is not None:
        own = raw(dataset, result.edit.new_x)
        assert torch.allclose(own[:, 1], own[:, 1].round(), atol=1e-3)
        assert torch.allclose(own[:, 3:6].sum(1), torch.ones(len(own)), atol=1e-3)


@pytest.mark.parametrize("feat_norm", [None, "standardise", "linear"])
@given(seed=st.integers(0, 2**20), low=st.floats(-3, 0), high=st.floats(0.1, 3))
@settings(max_examples=30)
def test_projections_stay_within_the_range_of_features(
    feat_norm: str | None, seed: int, low: float, high: float
) -> None:
    """The nearest whole number may lie beyond the range, where the check refuses it."""
    dataset = accounts(feat_norm)
    constraints = constraints_of(dataset, integer=["payments"], fixed=["age"])
    column = dataset.features[:, 1]
    first, last = (float(column.quantile(share)) for share in (0.3, 0.8))
    within = (first - abs(low), last + high)
    rows = torch.randn(6, 7, generator=torch.Generator().manual_seed(seed)) * 9
    found = constraints.project_rows(rows, dataset.graph, within)
    assert (found[:, 1] >= within[0] - 1e-6).all() and (found[:, 1] <= within[1] + 1e-6).all()
    own = raw(dataset, found).double()
    assert torch.allclose(own[:, 1], own[:, 1].round(), atol=1e-3)
    ages = dataset.features[:, 6]
    inside = ages[(ages >= within[0]) & (ages <= within[1])]
    if len(inside):
        assert torch.isin(found[:, 6], inside).all()


def test_an_attack_reaches_whole_numbers_within_a_range_that_is_none() -> None:
    """-3 is the nearest whole number to the lowest feature, and no attack could be counted."""
    dataset = accounts("standardise")
    low, high = dataset.feature_range
    constraints = Constraints(grids=tuple((column, 0.0, 1.0) for column in range(7)))
    threat = Injection(4, 4, (low + 0.3, high - 0.3), constraints=constraints)
    model = grb.train("gcn", dataset, epochs=5, hidden_features=[8])
    rows = grb.run_attack("pgd", model, dataset, threat=threat, iterations=3).edit.new_x
    assert rows is not None and torch.equal(rows, rows.round())


@pytest.mark.parametrize("attack", ["fga", "dice", "pr-bcd", "auto-edges"])
def test_modifications_keep_to_the_constraints(attack: str) -> None:
    dataset = accounts()
    model = grb.train("gcn", dataset, epochs=20, hidden_features=[8])
    constraints = Constraints(connect="targets", max_degree=8, edge_cost=1.0, cost=5.0)
    result = grb.run_attack(attack, model, dataset, threat=Modification(edges=8, constraints=constraints))
    assert result.budget["cost"] <= 5.0
    assert set(result.edit.add.flatten().tolist()) <= set(dataset.index_test.tolist())


def test_they_survive_json_and_leave_other_records_alone() -> None:
    dataset = accounts()
    threat = Injection(4, 4, (0.0, 1.0), constraints=limits(dataset, connect=[30, 31], cost=3.0, node_cost=1.0))
    assert threat_from_dict(threat.to_dict()) == threat
    assert "constraints" not in Injection(4, 4, (0.0, 1.0)).to_dict()
    assert threat_within(threat, Injection(4, 4, (0.0, 1.0)))
    assert not threat_within(Injection(4, 4, (0.0, 1.0)), threat)
    with pytest.raises(UnknownName, match="no constraint 'conect'"):
        threat_from_dict({**threat.to_dict(), "constraints": {"conect": "targets"}})


def test_an_audit_says_what_an_attacker_may_do() -> None:
    dataset = accounts("standardise")
    model = grb.train("gcn", dataset, epochs=20, hidden_features=[8])
    threat = Injection(4, 4, dataset.feature_range, constraints=limits(dataset, connect="class=1"))
    options = {"effort": "quick", "scenarios": ["injection"], "corrupt": False, "surrogates": ()}
    report = grb.audit(model, dataset, threats={"injection": threat}, budgets={"injection": [2, 4]}, **options)
    (said,) = report.values["threat_model"]["capability"]
    assert "1 one-hot groups" in said and "new edges to 30 nodes" in said
    used = {row["class"] for row in report.values["scenarios"][0]["used"]}
    assert used <= {"1"}


def test_limits_of_an_audit_are_changes_of_the_default_ones_in_the_users_own_words() -> None:
    dataset = accounts("standardise")
    own = {"fixed": ["age"], "ranges": {"amount": [-1, 1]}, "connect": "class=1", "edge_cost": 1.0, "cost": 6.0}
    given = {"injection": {"edges_per_node": 3, "constraints": own}, "modification": Modification(edges=2)}
    found = threats_of(given, dataset)
    plain = largest_threat("injection", dataset)
    wanted = constraints_of(
        dataset, fixed=["age"], ranges={"amount": (-1, 1)}, connect="class=1", edge_cost=1.0, cost=6.0
    )
    assert found["injection"] == Injection(plain.nodes, 3, plain.feature_range, constraints=wanted)
    assert found["modification"] == Modification(edges=2) and threats_of(None, dataset) == {}
    same = threats_of({"injection": {"constraints": wanted}}, dataset)["injection"]
    assert same.constraints == wanted and same.edges_per_node == plain.edges_per_node


def test_what_is_wrong_is_said() -> None:
    dataset = accounts()
    with pytest.raises(UnknownName, match="no column 'amout'. Did you mean 'amount'"):
        constraints_of(dataset, fixed=["amout"])
    with pytest.raises(DataError, match="no one-hot group"):
        constraints_of(dataset, one_hot=["city"])
    with pytest.raises(DataError, match="no grid after feat_norm='arctan'"):
        constraints_of(accounts("arctan"), integer=["payments"])
    with pytest.raises(DataError, match="columns 0 to 6"):
        constraints_of(dataset, binary=[9])
    with pytest.raises(DataError, match="'everybody', 'targets'"):
        Constraints(connect="friends")
    with pytest.raises(DataError, match="cost is nan"):
        Constraints(cost=float("nan"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_degree": "5"},
        {"max_degree": 2.5},
        {"max_degree": True},
        {"connect": [1.5]},
        {"connect": ["a"]},
        {"connect": None},
        {"connect": [-1]},
        {"fixed": "01"},
        {"fixed": [0.5]},
        {"fixed": [-1]},
        {"fixed": 5},
        {"ranges": [[0, 1]]},
        {"ranges": [["0", 0, 1]]},
        {"ranges": [[-1, 0, 1]]},
        {"ranges": [[0, 0, float("nan")]]},
        {"grids": [[0, 0, "1"]]},
        {"choices": [[0]]},
        {"choices": [[0, float("nan")]]},
        {"choices": [[1.7, 0, 1]]},
        {"groups": [[[], [], []]]},
        {"groups": [[[0, 1], [0], [1]]]},
        {"groups": [[[0, 1], [0, 0], [0, 0]]]},
        {"groups": [[[0, 0], [0, 0], [1, 1]]]},
        {"cost": "3"},
        {"edge_cost": float("inf")},
        {"feature_cost": True},
        [],
        "x",
        0,
        False,
    ],
    ids=str,
)
def test_constraints_of_another_type_are_refused_when_they_are_read(wrong) -> None:
    values = {"kind": "injection", "nodes": 1, "edges_per_node": 2, "feature_range": [0, 1], "constraints": wrong}
    with pytest.raises(DataError):
        threat_from_dict(values)


def test_a_grid_that_float32_cannot_hold_lets_nothing_through() -> None:
    """Its projection is NaN, and no difference to NaN may pass a comparison."""
    dataset = accounts()
    threat = Injection(1, 1, (0.0, 1.0), constraints=Constraints(grids=((0, 0.0, 1e-300),)))
    with pytest.raises(BudgetError, match="feature 0 of injected row 0"):
        threat.check(dataset.graph, GraphEdit(60, new_x=torch.full((1, 7), 0.37)))


def test_columns_and_targets_that_nobody_knows_are_refused() -> None:
    graph = accounts().graph
    edit = GraphEdit(60, torch.tensor([[0], [60]]), new_x=torch.zeros(1, 7))
    with pytest.raises(DataError, match="column 9, but the graph has 7"):
        Injection(1, 1, (0.0, 1.0), constraints=Constraints(fixed=(9,))).check(graph, edit)
    with pytest.raises(DataError, match="nobody says which nodes these are"):
        Injection(1, 1, (0.0, 1.0), constraints=Constraints(connect="targets")).check(graph, edit)


@pytest.mark.parametrize("wrong", ["no", "false", 1, None])
def test_whether_nodes_may_be_isolated_is_no_text(wrong) -> None:
    with pytest.raises(DataError, match="allow_isolate is"):
        threat_from_dict({"kind": "modification", "edges": 1, "allow_isolate": wrong})


@pytest.mark.parametrize("wrong", [[1e308, 2], [1, 10**30], [float("nan"), 1]])
def test_limits_of_targets_that_no_number_holds_are_refused(wrong) -> None:
    with pytest.raises(DataError, match="per_target is"):
        Modification(per_target=tuple(wrong))
