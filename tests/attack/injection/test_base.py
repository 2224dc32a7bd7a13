"""The paper's call on arrays, and the names that it used."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from attack.scenes import random_graph, scene_of, victim
from grb.attack import run_attack
from grb.attack.injection import FGSM, PGD, RND, SPEIT, TDGIA
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, convert
from grb.threat import Injection

LIMITS: dict[str, Any] = {"n_inject_max": 4, "n_edge_max": 3, "feat_lim_min": -0.1, "feat_lim_max": 0.9}
GRAPH = random_graph(15)
ADJ = convert.to_scipy(GRAPH.adj)
MASK = torch.arange(15) < 9
MAKERS = (RND, FGSM, PGD, SPEIT, TDGIA)


def make(maker: Any, **more: Any) -> Any:
    return maker(**LIMITS, **({} if maker is RND else {"n_epoch": 3}), **more)


@pytest.mark.parametrize("maker", MAKERS)
def test_the_papers_call_returns_arrays_within_the_limits(maker: Any) -> None:
    before = ADJ.copy(), GRAPH.x.clone()
    adj, x = make(maker).attack(model=victim("gcn", 3), adj=ADJ, features=GRAPH.x, target_mask=MASK)
    assert isinstance(adj, sp.csr_matrix) and adj.shape == (19, 19) and x.shape == (4, 3)
    assert (adj != adj.T).nnz == 0 and (adj[:15, :15] != ADJ).nnz == 0
    edit = GraphEdit.between(GRAPH, Graph.build(adj, torch.cat([GRAPH.x, x]))[0])
    used = Injection(4, 3, (-0.1, 0.9)).check(GRAPH, edit)
    assert used["nodes"] == 4
    assert (ADJ != before[0]).nnz == 0 and torch.equal(GRAPH.x, before[1])


@pytest.mark.parametrize("maker", MAKERS)
def test_the_papers_call_gives_what_run_attack_gives(maker: Any) -> None:
    attack = make(maker)
    adj, x = attack.attack(victim("gcn", 3), ADJ, GRAPH.x, MASK, seed=5)
    scene = scene_of(GRAPH, range(9), victim("gcn", 3), 4, 3, limits=(-0.1, 0.9))
    edit = run_attack(attack, scene, seed=5).edit
    assert torch.equal(x, edit.new_x) and (adj != convert.to_scipy(GRAPH.apply(edit).adj)).nnz == 0
    other = attack.attack(victim("gcn", 3), ADJ, GRAPH.x, MASK, seed=6)
    assert (adj != other[0]).nnz or not torch.equal(x, other[1])


def test_zero_budget_returns_the_clean_arrays() -> None:
    attack = FGSM(**{**LIMITS, "n_inject_max": 0})
    adj, x = attack.attack(victim("gcn", 3), ADJ, GRAPH.x, MASK)
    assert (adj != ADJ).nnz == 0 and x.shape == (0, 3)


@pytest.mark.parametrize("missing", LIMITS)
def test_the_papers_call_needs_all_limits(missing: str) -> None:
    with pytest.raises(DataError, match="needs n_inject_max, n_edge_max, feat_lim_min and feat_lim_max"):
        FGSM(**{**LIMITS, missing: None}).attack(victim("gcn", 3), ADJ, GRAPH.x, MASK)


@pytest.mark.parametrize("mask", [torch.ones(14, dtype=torch.bool), torch.arange(15), torch.ones(15, 1) > 0])
def test_a_mask_that_does_not_fit_is_refused(mask: torch.Tensor) -> None:
    with pytest.raises(DataError, match="15 booleans are needed"):
        make(FGSM).attack(victim("gcn", 3), ADJ, GRAPH.x, mask)


def test_a_mended_graph_is_told(caplog: pytest.LogCaptureFixture) -> None:
    looped = (ADJ + sp.eye(15, format="csr")).tocsr()
    with caplog.at_level(logging.WARNING):
        adj, _ = make(RND).attack(None, looped, GRAPH.x, MASK)
    assert "was mended before the attack" in caplog.text and adj.diagonal().sum() == 0
    caplog.clear()
    make(RND).attack(None, ADJ, GRAPH.x, MASK)
    assert not caplog.text


def test_attacks_say_nothing_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for maker in MAKERS:
        make(maker).attack(victim("gcn", 3), ADJ, GRAPH.x, MASK)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("module", "name"), [("rand", "RND"), ("fgsm", "FGSM"), ("pgd", "PGD"), ("speit", "SPEIT"), ("tdgia", "TDGIA")]
)
def test_import_paths_of_the_paper(module: str, name: str) -> None:
    old = getattr(importlib.import_module(f"grb.attack.{module}"), name)
    assert old is getattr(importlib.import_module("grb.attack.injection"), name)


def test_random_features_with_the_spread_of_the_graph() -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((15, 3)) * [0.1, 1.0, 0.5] + [2.0, 0.0, -1.0]).float()
    scene = scene_of(Graph(GRAPH.adj, x), range(9), None, nodes=3000, edges=1, limits=(-9.0, 9.0))
    made = run_attack(RND(spread="graph"), scene, seed=0).edit.new_x
    assert made is not None
    torch.testing.assert_close(made.mean(0), x.mean(0), rtol=0, atol=0.06)
    torch.testing.assert_close(made.std(0), x.std(0, correction=0), rtol=0.06, atol=0)
    with pytest.raises(DataError, match="spread is 'wide', but 'range' or 'graph' is needed"):
        RND(spread="wide")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("maker", "bad", "sentence"),
    [
        (SPEIT, {"preset": "cup"}, "preset is 'cup', but 'grb' or 'kddcup' is needed"),
        (SPEIT, {"wiring": "random-inter"}, "wiring is 'random-inter', but one of direct, inter, layers is needed"),
        (TDGIA, {"inject_mode": "best"}, "inject_mode is 'best', but one of tdgia, random, uniform is needed"),
        (TDGIA, {"opt": "cos"}, "opt is 'cos', but 'sin' or 'clip' is needed"),
    ],
)
def test_unknown_options_are_refused(maker: Any, bad: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        maker(**bad)
