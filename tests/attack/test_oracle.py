"""An oracle answers as often as it may, never once more, and gives nothing but answers."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import grb
from attack.contexts import random_graph, victim, view_of
from grb.attack import AttackContext, run_attack
from grb.attack.base import AttackError
from grb.attack.distil import Distil, EdgeDistil
from grb.attack.injection import InjectionRandomSearch as NodeSearch
from grb.attack.modification import GRABNEL, RLS2V, EvA, RandomSearch
from grb.attack.oracle import QueryError, QueryOracle
from grb.errors import BudgetError, DataError
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.threat import Injection, Modification, Threat, threat_from_dict

STRESS = os.environ.get("HYPOTHESIS_PROFILE") == "stress"
GRAPH = random_graph(12, density=0.3)
MODEL = victim("gcn", 4)
EDGES = [
    RandomSearch(),
    EvA(population=3),
    GRABNEL(candidates=20),
    RLS2V(batch=2),
    EdgeDistil(asks=3, tries=2, steps=2, attack_name="gr-bcd", attack_steps=2),
]
NODES = [NodeSearch(), Distil(asks=3, tries=2, steps=2, attack_name="fgsm", attack_steps=2)]


def oracle(queries: int, answers: Any = "scores") -> QueryOracle:
    return QueryOracle(MODEL, GRAPH, Modification(edges=3, queries=queries, answers=answers))


@settings(max_examples=2000)
@given(st.integers(0, 12), st.lists(st.sampled_from(["clean", "again", "edit", "forbidden"]), max_size=20))
def test_never_one_too_many(queries: int, questions: list[str]) -> None:
    asked = _counting(queries)
    allowed = GraphEdit(n=3, drop=torch.tensor([[0], [1]]))
    forbidden = GraphEdit(n=3, add=torch.tensor([[0], [2]]), drop=torch.tensor([[0], [1]]))
    answered = 0
    for question in questions:
        edit = {"clean": None, "again": None, "edit": allowed, "forbidden": forbidden}[question]
        try:
            asked.oracle(edit)
            answered += 1
        except QueryError:
            assert answered == queries
        except BudgetError:
            assert question == "forbidden" and answered < queries
    assert asked.calls == answered == asked.oracle.used <= queries
    assert asked.oracle.left == queries - answered


class _Counting(torch.nn.Module):
    """A victim that counts for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def prepare(self, adj: Any) -> None:
        """It looks at features alone."""

    def forward(self, x: torch.Tensor, op: Any) -> torch.Tensor:
        self.calls += 1
        return x[:, :2]


class _Asked:
    def __init__(self, queries: int) -> None:
        self.model = _Counting()
        graph = random_graph(3, density=1.0)
        self.oracle = QueryOracle(self.model, graph, Modification(edges=1, queries=queries))

    @property
    def calls(self) -> int:
        return self.model.calls


def _counting(queries: int) -> _Asked:
    return _Asked(queries)


@given(st.integers(0, 30), st.integers(2, 8))
@settings(max_examples=2000 if STRESS else 40, deadline=None)
def test_never_one_too_many_from_threads(queries: int, threads: int) -> None:
    asked = _counting(queries)
    start = threading.Barrier(threads)

    def ask(_: int) -> int:
        start.wait()
        answered = 0
        for _ in range(10):
            try:
                asked.oracle()
                answered += 1
            except QueryError:
                pass
        return answered

    with ThreadPoolExecutor(threads) as pool:
        total = sum(pool.map(ask, range(threads)))
    assert total == asked.calls == asked.oracle.used == min(queries, 10 * threads)


def test_answers_are_those_of_the_model() -> None:
    edit = GraphEdit(n=12, drop=GRAPH.adj.edges()[:, :2])
    logits = predict(MODEL, GRAPH.apply(edit))
    scores, labels = oracle(1)(edit), oracle(1, "labels")(edit)
    assert torch.allclose(scores.exp(), torch.softmax(logits.double(), 1)) and torch.equal(labels, logits.argmax(1))
    injected = Injection(1, 1, (-1.0, 1.0), queries=1)
    one = GraphEdit(n=12, add=torch.tensor([[0], [12]]), new_x=torch.ones(1, 3))
    assert QueryOracle(MODEL, GRAPH, injected)(one).shape[0] == 12


def test_what_may_not_be_made_may_not_be_asked() -> None:
    asked = oracle(2)
    with pytest.raises(BudgetError, match="4 edges are changed"):
        asked(GraphEdit(n=12, drop=GRAPH.adj.edges()[:, :4]))
    assert asked.used == 0


@pytest.mark.parametrize(
    "threat", [Modification(edges=1, queries=5, answers="labels"), Injection(1, 1, (0, 1), queries=3)]
)
def test_limits_of_queries_come_back_from_json(threat: Threat) -> None:
    assert threat_from_dict(threat.to_dict()) == threat


@pytest.mark.parametrize("bad", [{"queries": -1}, {"queries": 1.5}, {"queries": True}, {"answers": "logits"}])
def test_other_limits_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="queries is|answers is"):
        Modification(edges=1, **bad)


def context_with(threat: Threat, knowledge: Any = "query") -> AttackContext:
    return AttackContext(view_of(GRAPH, range(6)), threat, MODEL, knowledge)


@pytest.mark.parametrize("answers", ["scores", "labels"])
@pytest.mark.parametrize("queries", [0, 1, 2, 3, 7, 30])
@pytest.mark.parametrize("attack", [*EDGES, *NODES], ids=lambda attack: type(attack).__name__ + attack.__module__[-6:])
def test_attacks_ask_no_more_than_they_may(attack: Any, queries: int, answers: Any) -> None:
    edges = attack in EDGES
    threat: Threat = (
        Modification(edges=4, queries=queries, answers=answers)
        if edges
        else Injection(2, 2, (-1.0, 1.0), queries=queries, answers=answers)
    )
    result = run_attack(attack, context_with(threat), seed=0)
    assert result.queries is not None and result.queries <= queries and result.knowledge == "query"
    if isinstance(attack, RandomSearch | NodeSearch) and queries > 2:
        assert result.queries == queries
    again = run_attack(attack, context_with(threat), seed=0)
    assert torch.equal(result.edit.add, again.edit.add) and torch.equal(result.edit.drop, again.edit.drop)


def test_an_attack_that_may_ask_gets_no_model() -> None:
    def nosy(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        assert context.model is None and context.oracle is not None
        held = [getattr(context.oracle, name) for name in dir(context.oracle)]
        held += [
            cell.cell_contents for cell in (context.on_step.__closure__ or ()) + (context.on_trial.__closure__ or ())
        ]
        assert not any(isinstance(value, torch.nn.Module | AttackContext) for value in held)
        context.oracle()
        return GraphEdit(n=context.graph.n)

    result = run_attack(nosy, context_with(Modification(edges=1, queries=2)), seed=0)
    assert result.queries == 1


def running(attack: Any, queries: int = 2) -> Any:
    def ask(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        attack(context.oracle)
        return GraphEdit(n=context.graph.n)

    return run_attack(ask, context_with(Modification(edges=1, queries=queries)), seed=0)


def test_no_attribute_of_an_oracle_buys_a_question() -> None:
    def greedy(asked: Any) -> None:
        for name in ("_used", "_limit", "_answer", "_parts", "used", "left", "anything"):
            with pytest.raises(AttributeError):
                setattr(asked, name, 0)
        for double in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
                double(asked)
        asked(), asked()
        with pytest.raises(QueryError):
            asked()

    assert running(greedy).queries == 2


class Sly(GraphEdit):
    """Allowed when it is checked, something else when it is applied."""

    def applied_to(self, graph: Any) -> Any:
        return graph.apply(GraphEdit(n=graph.n, drop=graph.adj.edges()))


def test_a_question_is_what_was_checked() -> None:
    asked = oracle(3)
    assert torch.equal(asked(Sly(n=12)), asked())
    with pytest.raises(DataError, match="a GraphEdit is needed"):
        asked("all of them")  # type: ignore[arg-type]
    assert asked.used == 2


def test_a_refusal_does_not_show_the_victim() -> None:
    try:
        oracle(1)(GraphEdit(n=12, drop=GRAPH.adj.edges()[:, :4]))
    except BudgetError as error:
        frames = []
        step = error.__traceback__
        while step is not None:
            frames.append(step.tb_frame)
            step = step.tb_next
        assert not any(value is MODEL for frame in frames[1:] for value in frame.f_locals.values())


def test_an_oracle_is_closed_when_the_attack_is_over() -> None:
    kept: list[Any] = []
    running(kept.append)
    with pytest.raises(QueryError, match="the attack is over"):
        kept[0]()


def test_a_victim_that_is_asked_past_the_oracle_is_noticed() -> None:
    def past(asked: Any) -> None:
        asked()
        predict(MODEL, GRAPH)  # found in a frame, a closure or by the garbage collector

    with pytest.raises(AttackError, match="answered 2 times, but the oracle was asked 1 times"):
        running(past)
    assert not MODEL._forward_hooks
    with pytest.raises(AttackError, match="must ask the oracle alone"):
        running(lambda asked: MODEL._forward_hooks.clear())


def test_asking_needs_a_number_and_gradients_are_not_to_be_had() -> None:
    with pytest.raises(DataError, match="needs the victim as model and queries in the threat model"):
        run_attack(RandomSearch(), context_with(Modification(edges=1)), seed=0)
    from grb.attack.modification import PRBCD

    with pytest.raises(DataError, match="may only ask here"):
        run_attack(PRBCD(), context_with(Modification(edges=1, queries=3)), seed=0)


@pytest.mark.parametrize("answers", ["scores", "labels"])
def test_more_queries_lose_more_targets(answers: Any) -> None:
    kept = []
    for queries in (2, 300):
        threat = Modification(edges=6, queries=queries, answers=answers)
        edit = run_attack(RandomSearch(), context_with(threat), seed=1).edit
        said, now = predict(MODEL, GRAPH).argmax(1), predict(MODEL, GRAPH.apply(edit)).argmax(1)
        kept.append(int((said == now)[:6].sum()))
    assert kept[1] <= kept[0]


def test_search_finds_what_enumeration_finds() -> None:
    """One flip, all pairs of one target: 400 random queries meet the best of 11."""
    threat = Modification(edges=1, queries=400)
    context = AttackContext(view_of(GRAPH, [0]), threat, MODEL, "query")
    edit = run_attack(RandomSearch(), context, seed=0).edit

    def margin_after(change: GraphEdit) -> float:
        logits = predict(MODEL, GRAPH.apply(change))[0]
        label = int(predict(MODEL, GRAPH)[0].argmax())
        return float(logits[label] - max(v for c, v in enumerate(logits.tolist()) if c != label))

    every = []
    for other in range(1, 12):
        pair = torch.tensor([[0], [other]])
        there = bool(GRAPH.adj.has(pair))
        every.append(margin_after(GraphEdit(n=12, **{"drop" if there else "add": pair})))
    assert margin_after(edit) == pytest.approx(min(every), abs=1e-6)


def test_graphs_of_a_collection_share_the_queries() -> None:
    dataset = grb.load_dataset("synth-graphs")
    model = grb.train("gin-pool", dataset, epochs=1)
    for queries in (5, 45):
        threat = Modification(edge_ratio=0.05, queries=queries)
        result = grb.run_attack("random-search", model, dataset, threat=threat, knowledge="query")
        assert result.queries is not None and result.queries <= queries


def test_a_graph_that_is_changed_while_asking_is_not_what_is_asked_about() -> None:
    """In place and back again, so that everything is as before when the attack is over."""

    def changed(part: str) -> Any:
        def attack(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
            assert context.oracle is not None and isinstance(context.graph.x, torch.Tensor)
            pattern = context.graph.adj.pattern
            held = {"x": context.graph.x, "indices": pattern.indices, "counts": pattern.counts}[part]
            before, answer = held.clone(), context.oracle()
            held.copy_(held.flip(0))
            said = context.oracle()
            held.copy_(before)
            assert torch.equal(answer, said)
            return GraphEdit(n=context.graph.n)

        return attack

    for part in ("x", "indices", "counts"):
        run_attack(changed(part), context_with(Modification(edges=1, queries=2)), seed=0)


def test_targets_that_are_changed_while_asking_are_not_those_of_the_limits() -> None:
    graph = random_graph(12, density=0.0)
    allowed = GraphEdit(n=12, add=torch.tensor([[0], [7]]))
    elsewhere = GraphEdit(n=12, add=torch.tensor([[7, 7], [8, 9]]))

    def attack(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        assert context.oracle is not None
        before = context.targets.clone()
        context.targets.copy_(torch.tensor([7, 8]))
        with pytest.raises(BudgetError):
            context.oracle(GraphEdit(n=12, add=torch.tensor([[0, 0], [9, 10]])))
        context.targets.copy_(before)
        context.oracle(elsewhere)
        return allowed

    context = AttackContext(view_of(graph, [0, 1]), Modification(per_target=1, queries=2), MODEL, "query")
    assert run_attack(attack, context, seed=0).queries == 1


class Listening(torch.Tensor):
    """Sees every function that it is an argument of, and the other arguments."""

    heard: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.heard += args
        return super().__torch_function__(func, types, args, kwargs or {})


class Watching(TorchFunctionMode):
    """Sees every function of torch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Listening.heard += args
        return func(*args, **(kwargs or {}))


class Dispatching(TorchDispatchMode):
    """Sees every operation of torch."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Listening.heard += args
        return func(*args, **(kwargs or {}))


def test_features_that_listen_are_refused() -> None:
    asked = QueryOracle(MODEL, GRAPH, Injection(1, 1, (-1.0, 1.0), queries=3))
    pairs = torch.tensor([[0], [12]])
    spy = GraphEdit(n=12, add=pairs, new_x=torch.ones(1, 3).as_subclass(Listening))
    Listening.heard.clear()
    with pytest.raises(DataError, match="new_x is a Listening, but a plain tensor is needed"):
        asked(spy)
    ends = GraphEdit(n=12, new_x=torch.ones(1, 3))
    object.__setattr__(ends, "add", pairs.as_subclass(Listening))
    with pytest.raises(DataError, match="add is a Listening"):
        asked(ends)
    assert asked.used == 0 and not any(isinstance(value, torch.nn.Parameter) for value in Listening.heard)


@pytest.mark.parametrize("listener", [Watching, Dispatching])
def test_nobody_listens_while_the_victim_answers(listener: Any) -> None:
    asked = oracle(2)
    with listener(), pytest.raises(QueryError, match="a mode or hook of torch listens"):
        asked()
    hook = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    with pytest.raises(QueryError, match="a mode or hook of torch listens"):
        asked()
    hook.remove()
    asked()
    assert asked.used == 1


def test_an_edit_that_asks_while_it_is_read_does_not_stop_the_oracle() -> None:
    class Curious(GraphEdit):
        reading = False

        def __getattribute__(self, name: str) -> Any:
            if name == "new_x" and Curious.reading:
                Curious.reading = False
                asked()
            return super().__getattribute__(name)

    asked = oracle(2)
    edit = Curious(n=12)
    Curious.reading = True
    answer: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: answer.append(asked(edit)), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and asked.used == 2 and asked.left == 0


def test_what_an_attack_does_to_numbers_kept_about_the_graph_changes_no_limit() -> None:
    """Degrees and keys of edges are kept with the graph; the attack has its own."""
    graph = random_graph(12, density=0.3)
    degrees, keys = graph.adj.degrees.clone(), graph.adj.keys.clone()
    free = [node for node in range(1, 12) if not graph.adj.has(torch.tensor([[0], [node]]))[0]]
    more = GraphEdit(n=12, add=torch.tensor([[0] * 3, free[:3]]))

    def attack(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        context.graph.adj.keys.fill_(-1)
        context.graph.adj.pattern.row_ids.zero_()
        context.graph.adj.degrees[0] = 100
        return more

    threat = Modification(per_target=(0.0, 2))
    for limit in (threat, Modification(per_target=(0.4, 0)), Modification(edges=9, per_node=0.2)):
        with pytest.raises(BudgetError):
            run_attack(attack, AttackContext(view_of(graph, [0]), limit, MODEL, "white-box"), seed=0)
    assert torch.equal(graph.adj.degrees, degrees) and torch.equal(graph.adj.keys, keys)
    there = GraphEdit(n=12, add=graph.adj.edges()[:, :1])
    with pytest.raises(BudgetError):
        run_attack(
            lambda context, generator: (attack(context, generator=generator), there)[1],
            AttackContext(view_of(graph, [0]), Modification(edges=9), MODEL, "white-box"),
            seed=0,
        )
