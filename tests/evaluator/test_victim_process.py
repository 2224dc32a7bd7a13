"""A victim in a process of its own gives its model's answers, so many of them, and nothing else."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import grb
from grb.attack.base import AttackContext, run_attack
from grb.attack.build import build_attack
from grb.dataset import Dataset
from grb.errors import DataError
from grb.evaluator.victim_process import VictimProcess
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.model.torch import GCN
from grb.threat import Injection, Modification
from grb.trainer.checkpoint import save_model


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def weights(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(grb.train("gcn", dataset, epochs=3), tmp_path_factory.mktemp("weights") / "gcn.safetensors")


@pytest.fixture
def victim(weights: Path) -> Iterator[VictimProcess]:
    made = VictimProcess(weights, None, 12)
    yield made
    made.end()


def test_attacks_by_queries_find_what_they_find_with_the_model_beside_them(
    dataset: Dataset, weights: Path, victim: VictimProcess
) -> None:
    attack = build_attack("injection-random-search", "synth-tiny")
    threat = replace(Injection.preset("synth-tiny", "full"), queries=12)
    view = dataset.attacker_view("full")
    results = [
        run_attack(attack, AttackContext(view, threat, model, "query"), seed=3)
        for model in (victim, grb.load_model(weights))
    ]
    assert torch.equal(results[0].edit.add, results[1].edit.add) and results[0].steps == results[1].steps
    victim.close()
    assert victim.answered == results[0].queries == 12


def test_the_process_refuses_one_too_many_whoever_asks(dataset: Dataset, weights: Path, victim: VictimProcess) -> None:
    own = grb.load_model(weights)
    dropped = dataset.graph.apply(GraphEdit(n=dataset.graph.n, drop=dataset.graph.adj.edges()[:, :3]))
    assert torch.equal(predict(victim, dataset.graph), predict(own, dataset.graph))
    assert torch.equal(predict(victim, dropped), predict(own, dropped))
    for _ in range(10):
        predict(victim, dataset.graph)
    for _ in range(2):
        with pytest.raises(DataError, match="12 questions are allowed, and all of them are used"):
            predict(victim, dataset.graph)
    victim.close()
    assert victim.answered == 12


def test_an_attack_finds_no_model_in_its_process(dataset: Dataset, victim: VictimProcess) -> None:
    found: list[Any] = []

    def nosy(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        assert context.oracle is not None
        context.oracle()
        gc.collect()
        found.extend(part for part in gc.get_objects() if type(part) is GCN)
        found.extend(parameter for parameter in victim.parameters())
        return GraphEdit(n=context.graph.n)

    before = [part for part in gc.get_objects() if type(part) is GCN]
    threat = Modification(edges=2, queries=3)
    run_attack(nosy, AttackContext(dataset.attacker_view("full"), threat, victim, "query"), seed=0)
    assert [part for part in found if not any(part is old for old in before)] == []


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("import os; os._exit(3)", "gave no answer"),
        ("raise ValueError('not today')", "refused: ValueError: not today"),
        ("import sys; sys.exit()", "refused: SystemExit"),
        ("return x.sum()", "gave no logits"),
        ("return (x[:, :2] > 0)", "gave no logits"),
        ("open('/etc/hostname-of-nobody-here', 'w')", "refused: PermissionError"),
    ],
)
def test_a_victim_that_gives_no_answer_is_an_error_in_one_sentence(
    said: str, sentence: str, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "from grb.model.base import GraphModel\n"
        "class Odd(GraphModel):\n"
        "    name = 'odd_victim:Odd'\n"
        "    params = {}\n"
        "    def prepare(self, adj):\n"
        "        return adj\n"
        f"    def forward(self, x, op):\n        {said}\n"
    )
    (tmp_path / "odd_victim.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    from odd_victim import Odd  # type: ignore[import-not-found]

    weights = save_model(Odd(), tmp_path / "odd.safetensors")
    made = VictimProcess(weights, "odd_victim:Odd", 3)
    try:
        with pytest.raises(DataError, match=sentence) as caught:
            predict(made, dataset.graph)
        assert "\n" not in str(caught.value)
    finally:
        made.end()
        sys.modules.pop("odd_victim", None)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="the victim's process refused: "):
        VictimProcess(tmp_path / "none.safetensors", None, 1)


def test_the_process_ends_with_its_victim(weights: Path) -> None:
    made = VictimProcess(weights, None, 1)
    server = made._server
    del made
    gc.collect()
    assert server.poll() is not None


def test_features_are_sent_again_where_they_change(dataset: Dataset, weights: Path, victim: VictimProcess) -> None:
    own = grb.load_model(weights)
    assert isinstance(dataset.graph.x, Tensor)
    other = dataset.graph.with_features(dataset.graph.x.flip(0))
    for graph in (dataset.graph, other, other, dataset.graph):
        assert torch.equal(predict(victim, graph), predict(own, graph))
