"""Defenses that recognise the evaluation are found, and honest ones are left alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import grb
from evaluator import planted_defenses as planted
from grb.evaluator.blind import Decisions, Question, blind_checks, check_new_process, stages_differ
from grb.evaluator.new_process import Answer, NewProcess
from grb.evaluator.score_checks import UNRANKED, Flag
from grb.evaluator.scoring import Prediction, is_third_party
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.trainer.checkpoint import save_model

MODELS = [
    "gcn", "gat", "gin", "appnp", "tagcn", "graphsage", "sgcn", "sgc", "mlp", "gcn+ln", "gin+ln", "r-gcn", "gcnguard",
    "gatguard", "egnnguard", "gcn-svd", "gcn-jaccard", "gcn-cosine", "gcn-transform", "softmedian", "grand", "gcn+at",
]  # fmt: skip


@cache
def edits() -> tuple[GraphEdit, GraphEdit]:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, epochs=30, seed=7)
    injected = grb.run_attack("fgsm", model, dataset, iterations=10).edit
    return injected, grb.run_attack("dice", model, dataset).edit


@cache
def trained(name: str = "gcn") -> nn.Module:
    return grb.train(name, grb.load_dataset("synth-tiny"), epochs=20, seed=0)


def checked(
    make: Callable[[], nn.Module],
    seed: int = 0,
    *,
    chosen: tuple[GraphEdit, ...] | None = None,
    third_party: bool | None = None,
) -> list[Flag]:
    dataset = grb.load_dataset("synth-tiny")
    known = torch.zeros(dataset.num_nodes, dtype=torch.bool)
    known[torch.cat([dataset.index_train, dataset.index_val])] = True
    generator = torch.Generator().manual_seed(seed)
    return blind_checks(make, dataset, chosen or edits(), known, generator, third_party=third_party)


def made_of(kind: type[planted.Around]) -> Callable[[], nn.Module]:
    return lambda: kind(copy.deepcopy(trained()))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (planted.Repeating, "keeps-state"),
        (planted.Remembering, "keeps-state"),
        (planted.Caching, "keeps-state"),
        (planted.Cutting, "node-order"),
        (planted.Ordered, "node-order"),
        (planted.Hidden, "node-order"),
        (planted.Squeezed, "node-order"),
        (planted.Hesitating, "node-order"),
        (planted.TwoFaced, "stages-differ"),
        (planted.Breaking, "stages-differ"),
        (planted.Undeclared, "node-order"),
    ],
)
def test_a_defense_that_looks_at_who_is_asking_is_flagged(kind: type[planted.Around], name: str) -> None:
    flags = checked(made_of(kind), chosen=edits()[:1])
    assert [flag.name for flag in flags] == [name] and name in UNRANKED
    assert len(flags[0].message) < 250 and "\n" not in flags[0].message


@pytest.mark.parametrize("kind", [planted.Around, planted.Keyed, planted.Sampling])
def test_an_honest_plug_in_is_not_flagged(kind: type[planted.Around]) -> None:
    assert checked(made_of(kind)) == []


@pytest.mark.parametrize("name", MODELS)
def test_no_model_of_the_catalogue_is_flagged(name: str) -> None:
    model = trained(name)
    before = predict(model, grb.load_dataset("synth-tiny").graph)
    assert checked(lambda: copy.deepcopy(model), seed=len(name), third_party=True) == []
    assert torch.equal(before, predict(model, grb.load_dataset("synth-tiny").graph))


@pytest.fixture(scope="module")
def new_process() -> Iterator[NewProcess]:
    process = NewProcess()
    yield process
    process.close()


@pytest.mark.parametrize("name", MODELS)
def test_no_model_of_the_catalogue_answers_otherwise_in_a_new_process(
    name: str, new_process: NewProcess, tmp_path: Path
) -> None:
    dataset, model = grb.load_dataset("synth-tiny"), trained(name)
    known = torch.zeros(dataset.num_nodes, dtype=torch.bool)
    asked = Question.of(dataset.graph.apply(edits()[0]), known, torch.Generator().manual_seed(0))
    first = asked.ask(model, dataset)
    found = new_process.ask(save_model(model, tmp_path / "weights.safetensors"), None, asked.graph, asked.view)
    assert check_new_process(model, first, found, dataset) == [] and found.logits is not None
    torch.testing.assert_close(found.logits, first.logits, rtol=1e-4, atol=1e-4)


def test_a_class_that_says_that_it_is_of_grb_is_not_believed() -> None:
    made = type("GCN", (planted.Around,), {"__module__": "grb.model.torch.gcn"})
    assert is_third_party(made(copy.deepcopy(trained()))) and not is_third_party(trained())


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (Answer(None, error="ImportError: no such module"), "cannot be asked in a new process (ImportError: no such"),
        (Answer(torch.zeros(1, 2)), "cannot be asked in a new process (logits of another shape)"),
        (Answer(torch.zeros(300, 3), opened="/home/me/labels"), "it wanted '/home/me/labels'"),
    ],
)
def test_an_answer_that_cannot_be_compared_takes_the_rank(found: Answer, message: str) -> None:
    logits = torch.zeros(300, 3)
    first = Prediction(logits, logits.argmax(1), torch.zeros(300, dtype=torch.bool))
    (flag,) = check_new_process(trained(), first, found, grb.load_dataset("synth-tiny"))
    assert flag.name == "new-process" and flag.name in UNRANKED and message in flag.message


def test_models_of_whole_graphs_are_asked_about_graphs_in_another_order() -> None:
    dataset = grb.load_dataset("synth-graphs")
    model = grb.train("gin-pool", dataset, epochs=3, seed=0)
    edit = grb.run_attack("rnd", model, dataset).edit
    known = torch.zeros(dataset.num_nodes, dtype=torch.bool)
    assert blind_checks(lambda: copy.deepcopy(model), dataset, [edit], known, torch.Generator().manual_seed(0)) == []
    question = Question.of(dataset.graph.apply(edit), known, torch.Generator().manual_seed(1))
    moved = question.renumbered(torch.Generator().manual_seed(2))
    assert not torch.equal(moved.items, question.items) and moved.graph.num_graphs == dataset.graph.num_graphs
    found, again = question.ask(model, dataset), moved.ask(model, dataset)
    torch.testing.assert_close(found.logits, again.logits, rtol=1e-3, atol=1e-3)


def test_injected_nodes_are_neither_last_nor_known_and_everything_moves_with_the_nodes() -> None:
    dataset, edit = grb.load_dataset("synth-tiny"), edits()[0]
    graph = dataset.graph.apply(edit)
    known = torch.zeros(dataset.num_nodes, dtype=torch.bool)
    known[dataset.index_train] = True
    question = Question.of(graph, known, torch.Generator().manual_seed(3))
    moved = question.renumbered(torch.Generator().manual_seed(4))
    place = torch.argsort(moved.items)
    assert int(place[dataset.num_nodes :].min()) < dataset.num_nodes - edit.num_new
    assert torch.equal(moved.view.keys[place], question.view.keys) and len(question.view.keys.unique()) == graph.n
    assert (
        torch.equal(moved.view.known[place], question.view.known) and not question.view.known[dataset.num_nodes :].any()
    )
    assert not question.view.known[dataset.test_ids("full")].any()
    assert isinstance(graph.x, Tensor) and isinstance(moved.graph.x, Tensor)
    assert torch.equal(moved.graph.x[place], graph.x)
    assert torch.equal(place[graph.adj.edges()].sort(0).values.T.unique(dim=0), moved.graph.adj.edges().T.unique(dim=0))


def decisions(*rows: tuple[float, ...]) -> Decisions:
    logits = torch.tensor(rows)
    invalid = logits.isnan().any(1)
    return Decisions.of(Prediction(logits, torch.where(invalid, -1, logits.argmax(1)), invalid))


def test_only_margins_beyond_rounding_count() -> None:
    first = decisions((0.0, 1.0, -9.0), (1.0, 1.0001, -9.0), (torch.nan, 0.0, 0.0), (2.0, 1.0, 0.0))
    assert first.disagree(first) == 0
    assert first.disagree(decisions((0.0, 1.0, -9.0), (1.0001, 1.0, -9.0), (torch.nan, 0.0, 0.0), (2.0, 1.0, 0.0))) == 0
    assert first.disagree(decisions((1.0, 0.0, -9.0), (1.0, 1.0001, -9.0), (0.0, 1.0, 0.0), (2.0, 1.0, 0.0))) == 2


def test_several_labels_per_item_are_compared_label_by_label() -> None:
    def of(*rows: tuple[float, ...]) -> Decisions:
        logits = torch.tensor(rows)
        return Decisions.of(Prediction(logits, logits > 0, torch.zeros(len(rows), dtype=torch.bool)))

    first = of((3.0, -1e-4), (2.0, -2.0))
    assert first.disagree(of((3.0, 1e-4), (2.0, -2.0))) == 0 and first.disagree(of((3.0, 1e-4), (2.0, 2.0))) == 1


def test_a_model_cannot_hide_behind_an_interval_that_it_does_not_need() -> None:
    """Few draws, or logits that are no votes, have no interval."""
    model = nn.Linear(1, 1)
    votes = torch.tensor([[0.55, 0.45], [0.9, 0.1]])
    found = Prediction(votes, votes.argmax(1), torch.zeros(2, dtype=torch.bool))
    for samples, certain in ((0, [True, True]), (10, [True, True]), (200, [False, True]), (10_000, [True, True])):
        model.samples = samples  # type: ignore[assignment]
        assert Decisions.of(found, model).certain.tolist() == certain
    model.samples = 200  # type: ignore[assignment]
    logits = Prediction(10 * votes, found.labels, found.invalid)
    assert Decisions.of(logits, model).certain.tolist() == [True, True]


def test_stages_are_compared_on_the_graph_that_was_asked_about() -> None:
    dataset = grb.load_dataset("synth-tiny")
    known = torch.zeros(dataset.num_nodes, dtype=torch.bool)
    question = Question.of(dataset.graph.apply(edits()[0]), known, torch.Generator())
    for model in (trained("gcn"), trained("gat"), planted.Around(trained())):
        assert stages_differ(model, question, question.ask(model, dataset)) == []
