"""How attacks are composed; the paper's call on arrays, and the names that it used."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from attack.contexts import context_of, random_graph, victim
from grb.attack import run_attack
from grb.attack.features import Objective, SignAscent
from grb.attack.injection import FGSM, PGD, RND, SPEIT, TDGIA, TargetState, inject
from grb.attack.injection.edges import random_edges
from grb.attack.injection.speit import cup_loss
from grb.attack.losses import Loss, cross_entropy, smooth
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, convert
from grb.model.base import predict
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
    assert (before[0] != ADJ).nnz == 0 and torch.equal(GRAPH.x, before[1])


@pytest.mark.parametrize("maker", MAKERS)
def test_the_papers_call_gives_what_run_attack_gives(maker: Any) -> None:
    attack = make(maker)
    adj, x = attack.attack(victim("gcn", 3), ADJ, GRAPH.x, MASK, seed=5)
    context = context_of(GRAPH, range(9), victim("gcn", 3), 4, 3, limits=(-0.1, 0.9))
    edit = run_attack(attack, context, seed=5).edit
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


@pytest.mark.parametrize("mask", [torch.ones(14, dtype=torch.bool), torch.ones(15, 1) > 0])
def test_a_mask_that_does_not_fit_is_refused(mask: torch.Tensor) -> None:
    with pytest.raises(DataError, match="15 booleans are needed"):
        make(FGSM).attack(victim("gcn", 3), ADJ, GRAPH.x, mask)


def test_a_mended_graph_is_told(caplog: pytest.LogCaptureFixture) -> None:
    looped = (ADJ + sp.eye(15, format="csr")).tocsr()
    with caplog.at_level(logging.WARNING):
        adj, _ = make(RND).attack(None, looped, GRAPH.x, MASK)
    assert "was repaired before the attack" in caplog.text and adj.diagonal().sum() == 0
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
    context = context_of(Graph(GRAPH.adj, x), range(9), None, nodes=3000, edges=1, limits=(-9.0, 9.0))
    made = run_attack(RND(spread="graph"), context, seed=0).edit.new_x
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
        (TDGIA, {"inject_mode": "best"}, "inject_mode is 'best', but one of tdgia, random, uniform, atdgia is needed"),
        (TDGIA, {"opt": "cos"}, "opt is 'cos', but 'sin' or 'clip' is needed"),
    ],
)
def test_unknown_options_are_refused(maker: Any, bad: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        maker(**bad)


@pytest.mark.parametrize(
    ("attack", "loss"),
    [
        (FGSM(patience=0), cross_entropy),
        (PGD(patience=0), cross_entropy),
        (SPEIT(patience=0), cross_entropy),
        (SPEIT(patience=0, preset="kddcup"), cup_loss()),
        (TDGIA(patience=0, sequential_step=1.0), smooth),
        (TDGIA(patience=0, sequential_step=1.0, opt="clip"), cross_entropy),
    ],
)
def test_every_attack_raises_its_own_loss(attack: Any, loss: Loss) -> None:
    """Without patience the start is returned, and its loss is the one reported."""
    model = victim("gcn", 3).eval()
    result = run_attack(attack, context_of(GRAPH, range(9), model, 12, 3), seed=0)
    y = predict(model, GRAPH)[:9].argmax(1)
    logits = predict(model, GRAPH.apply(result.edit))[:9]
    (step,) = result.steps
    assert step.loss == pytest.approx(float(loss(logits, y).mean()), rel=1e-4)
    assert step.accuracy == pytest.approx(float((logits.argmax(1) == y).float().mean()))


def test_the_cup_entry_is_wired_in_two_layers() -> None:
    edit = run_attack(
        SPEIT(preset="kddcup", n_epoch=1), context_of(GRAPH, range(9), victim("gcn", 3), 20, 3), seed=0
    ).edit
    last = edit.add[:, edit.add[1] >= 15 + 18]  # two of twenty nodes behind the others
    assert last.numel() and (last[0] >= 15).all()


def test_each_round_sees_degrees_and_probabilities_of_the_graph_attacked_so_far() -> None:
    model = victim("gcn", 3).eval()
    seen: list[TargetState] = []
    held: list[torch.Tensor] = []

    def edges(site: TargetState, count: int, generator: torch.Generator) -> torch.Tensor:
        seen.append(site)
        return random_edges(site, count, generator)

    def features(objective: Objective, so_far: torch.Tensor, limits: Any, generator: torch.Generator) -> torch.Tensor:
        held.append(SignAscent(0.1, 3)(objective, so_far, limits, generator))
        return held[-1]

    context = context_of(GRAPH, range(9), model, 3, 2)
    edit = inject(context, edges=edges, features=features, generator=torch.Generator().manual_seed(0), fraction=0.4)
    clean = predict(model, GRAPH)[:9]
    for number, site in enumerate(seen):
        before = edit.add[:, edit.add[1] < 15 + number]
        graph = GRAPH.apply(GraphEdit(n=15, add=before, new_x=held[number - 1] if number else None))
        assert torch.equal(site.degrees, graph.adj.degrees[:9].long()) and site.first == 15 + number
        assert site.labels is not None and torch.equal(site.labels, clean.argmax(1))
        torch.testing.assert_close(site.probs, predict(model, graph)[:9].softmax(1))
    assert len(seen) == 3
