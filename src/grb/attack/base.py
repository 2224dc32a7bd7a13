"""The only road from an attack to a result: ``run_attack`` runs it, checks the edit, and leaves everything as it was."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import signature
from typing import Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import torch
from torch import Tensor, nn

from grb.attack.graphs import Note, merge_notes, node_types
from grb.attack.oracle import QueryOracle, taken_over
from grb.attack.passes import Passes, count_passes
from grb.attack.untouched import AttackError as AttackError
from grb.attack.untouched import untouched
from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import Graph, GraphEdit
from grb.graph.batching import batch_edits, get_example
from grb.graph.memory import peak_megabytes
from grb.graph.validate import check_ids
from grb.model.base import EvaluationView, check_features, observing, predict
from grb.model.pooled import GraphLevel
from grb.model.wrapped import Wrapper
from grb.threat import Injection, Modification, Threat

log = logging.getLogger(__name__)

# seeds of the graphs of a collection are below this
SEEDS = 2**31

Knowledge = Literal["white-box", "transfer", "query", "none"]
Labels = Literal["predicted", "true"]


# arguments of the papers' attacks and the fields that they fill
PAPER_NAMES = {"epsilon": "step_size", "n_epoch": "steps"}
_Class = TypeVar("_Class")


def accepts_paper_names(cls: type[_Class]) -> type[_Class]:
    """Let a dataclass take the papers' names of its arguments too, as in ``FGSM(epsilon=0.01, n_epoch=10)``."""
    own_init: Callable[..., None] = cls.__init__
    accepted = signature(cls).parameters

    @wraps(own_init)
    def init(self: _Class, *args: Any, **given: Any) -> None:
        own_init(self, *args, **without_paper_names(given, accepted))

    init.paper_names = {old for old, new in PAPER_NAMES.items() if new in accepted}  # type: ignore[attr-defined]
    cls.__init__ = init  # type: ignore[assignment]
    return cls


def without_paper_names(given: Mapping[str, Any], accepted: Collection[str]) -> dict[str, Any]:
    """Arguments under the names of the fields; the papers' names of accepted arguments are replaced.

    >>> without_paper_names({"n_epoch": 10, "lr": 0.1}, ["steps", "lr"])
    {'steps': 10, 'lr': 0.1}
    """
    renamed: dict[str, Any] = {}
    for name, value in given.items():
        own = PAPER_NAMES.get(name, name)
        own = name if name in accepted or own not in accepted else own
        if own in renamed:
            raise DataError(f"{own} was given twice, also under the paper's name for it; give it once")
        renamed[own] = value
    return renamed


@dataclass(frozen=True)
class Step:
    """One step of an attack: the quantity it raises, and the fraction of targets that still get their clean label."""

    loss: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class Trial:
    """One attempt of an attack that makes several, such as the standard ensemble.

    Args:
        name: What was tried.
        level: Level of effort, from 0.
        cpu_seconds: CPU time.
        forward: Number of forward passes.
        backward: Number of backward passes.
        kept: Which targets keep the label that the attack aims at, [t] booleans; None if there is no edit.
        error: Why there is none.
        relaxation: Name of the model's relaxation that lent its gradients; empty for the model itself.
        edit: What was found; not part of the record. The attack returns the one that it judges best, which without true labels
            is an expectation: an evaluator who has the labels may find that another one leaves less.
    """

    name: str
    level: int = 0
    cpu_seconds: float = 0.0
    forward: int = 0
    backward: int = 0
    kept: Tensor | None = None
    error: str = ""
    relaxation: str = ""
    edit: GraphEdit | None = None

    @property
    def accuracy(self) -> float | None:
        """Fraction of targets that keep their label."""
        return None if self.kept is None else float(self.kept.float().mean())

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it, with the fraction of kept targets in place of the targets."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("kept", "edit")}
        return {**values, "cpu_seconds": round(self.cpu_seconds, 4), "kept": self.accuracy}


@dataclass(frozen=True, eq=False)
class AttackContext:
    """All that an attack gets.

    Args:
        view: From ``Dataset.attacker_view()``: no test labels in it.
        threat: What is allowed.
        model: The victim (white-box) or a surrogate (transfer); None for attacks that need no model.
        knowledge: Which of these the model is; goes into the record. With ``query`` the attack does not get the model: it may
            ask an oracle, as often as the threat model's ``queries`` says.
        true_labels: The targets' own labels, [t], for the evaluator's worst case alone; None for every real attacker, who aims
            at what the model predicts on the clean graph.
        on_trial: Called with every :class:`Trial` of an attack that makes several.
        on_step: Called with every :class:`Step`, for progress and histories.
        on_note: Called with remarks that belong into the record.
        oracle: What an attack with ``knowledge="query"`` gets in place of the model; :func:`run_attack` makes it.
        keys: Random seed of the keys by which the model is scored (:class:`~grb.model.base.EvaluationView`), so that a vote by
            a hash is attacked with the hash that it is scored with.
        judge: The model that is attacked, where ``model`` is a relaxation of it that only lends its gradients; None elsewhere.
    """

    view: View
    threat: Threat
    model: nn.Module | None = None
    knowledge: Knowledge = "transfer"
    on_step: Callable[[Step], None] = field(default=lambda step: None, repr=False)
    on_note: Callable[[Note], None] = field(default=lambda note: None, repr=False)
    true_labels: Tensor | None = field(default=None, repr=False)
    on_trial: Callable[[Trial], None] = field(default=lambda trial: None, repr=False)
    oracle: QueryOracle | None = field(default=None, repr=False)
    keys: int = 0
    judge: nn.Module | None = None

    @property
    def labels(self) -> Labels:
        """Which labels the attack aims at: the model's own predictions, or the true ones."""
        return "predicted" if self.true_labels is None else "true"

    def aimed_labels(self, clean_logits: Tensor) -> Tensor:
        """Labels of the targets that the attack takes away, [t], given the model's logits of them on the clean graph."""
        return clean_logits.argmax(1) if self.true_labels is None else self.true_labels

    @property
    def graph(self) -> Graph:
        """The graph under attack."""
        return self.view.graph

    @property
    def targets(self) -> Tensor:
        """Ids of the attacked nodes, [t]."""
        return self.view.targets

    @property
    def injection(self) -> Injection:
        """The threat model of an injection attack; refuses any other."""
        if not isinstance(self.threat, Injection):
            raise DataError(f"an injection attack needs an Injection threat model, got {type(self.threat).__name__}")
        return self.threat

    @property
    def modification(self) -> Modification:
        """The threat model of a modification attack; refuses any other."""
        if not isinstance(self.threat, Modification):
            raise DataError(
                f"a modification attack needs a Modification threat model, got {type(self.threat).__name__}"
            )
        return self.threat

    def surrogate(self) -> nn.Module:
        """The model to attack; refuses a context without one."""
        if self.model is None and self.oracle is not None:
            raise DataError(
                "this attack needs a model, but may only ask here; random-search, eva, grabnel and distil can do that"
            )
        if self.model is None:
            raise DataError("this attack needs a model: the victim for a white-box attack, a surrogate for a transfer")
        return self.model

    def report(self, loss: float, accuracy: float) -> None:
        """Report one step of the attack to whoever watches it."""
        self.on_step(Step(loss, accuracy))

    def note(self, text: str, **values: int) -> None:
        """Leave a remark that goes into the record; numbers in braces come from ``values``."""
        self.on_note(Note(text, **values))


@runtime_checkable
class Attack(Protocol):
    """Anything that turns a context into an edit; randomness comes from the generator alone."""

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """An edit within the limits of ``context.threat``; ``generator`` is the only source of randomness."""


@dataclass(frozen=True, eq=False)
class AttackResult:
    """A checked edit and what it took."""

    edit: GraphEdit
    budget: dict[str, float]
    steps: tuple[Step, ...]
    seconds: float
    cpu_seconds: float
    peak_megabytes: float
    knowledge: Knowledge
    seed: int
    notes: tuple[Note, ...] = ()
    labels: Labels = "predicted"
    trials: tuple[Trial, ...] = ()
    passes: Passes = field(default_factory=Passes)
    queries: int | None = None

    @property
    def envelope(self) -> Tensor | None:
        """Which targets keep their label in every trial, [t]: a lower bound that no single edit need reach; None without."""
        kept = [trial.kept for trial in self.trials if trial.kept is not None]
        return torch.stack(kept).all(0) if kept else None


def run_attack(attack: Attack, context: AttackContext, *, seed: int) -> AttackResult:
    """Run an attack, refuse an edit that the threat model does not allow, and return it with what it cost.

    The edit is checked against ``context.threat``, which the attack never holds: it works with a copy. The model's training
    mode, its gradients, the graph and torch's global random state are left as they were. In a collection the targets are
    whole graphs: every one is attacked by itself, within the limits for one graph (at least one edge may change where a
    fraction of the edges may), and the model pools.
    """
    if context.graph.ptr is not None:
        return _attack_graphs(attack, context, seed=seed)
    _check_context(context)
    steps: list[Step] = []
    # what the attack gets does not hold the context, in which the victim is
    watch_step, watch_trial = context.on_step, context.on_trial

    def record(step: Step) -> None:
        steps.append(step)
        watch_step(step)

    def tried(trial: Trial) -> None:
        trials.append(trial)
        watch_trial(trial)

    notes: list[Note] = []
    trials: list[Trial] = []
    knowledge = _knowledge(attack, context)
    oracle = _oracle(context) if knowledge == "query" else None
    # the attack gets a copy of the limits: what it does to that one does not move those of the check
    # and what is kept about the graph, such as its degrees, is the attack's own
    given = AttackContext(
        replace(context.view, graph=context.graph.separate()),
        deepcopy(context.threat),
        None if oracle is not None else context.model,
        knowledge,
        record,
        notes.append,
        context.true_labels,
        tried,
        oracle,
    )
    # a defense that tells known nodes from others does so under attack as well
    longest = context.graph.n
    if isinstance(context.threat, Injection) and isinstance(context.model, Wrapper):
        longest += context.threat.nodes  # injected nodes have the keys that they will be scored with
    known = EvaluationView.of(torch.cat([context.view.train, context.view.val]), longest, context.keys)
    start, start_cpu = time.perf_counter(), time.process_time()
    with (
        observing(context.model, known) if context.model is not None else nullcontext(),
        untouched(_tensors(given), context.model),
        _asked_only(context.model, oracle) if oracle is not None else nullcontext(),
        torch.random.fork_rng(devices=[]),
        count_passes() as passes,
    ):
        # for models and attacks that draw from the global generator all the same
        torch.default_generator.manual_seed(seed)
        edit = attack(given, generator=torch.Generator().manual_seed(seed))
    if not isinstance(edit, GraphEdit):
        raise AttackError(f"the attack returned a {type(edit).__name__}, but a GraphEdit is needed")
    edit = project(context, taken_over(edit))
    budget = context.threat.check(context.graph, edit, context.targets)
    return AttackResult(
        edit=edit,
        budget=budget,
        steps=tuple(steps),
        seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time() - start_cpu,
        peak_megabytes=peak_megabytes(),
        knowledge=knowledge,
        seed=seed,
        notes=tuple(dict.fromkeys(notes)),
        labels=context.labels,
        trials=tuple(trials),
        passes=passes,
        queries=None if oracle is None else oracle.used,
    )


def _oracle(context: AttackContext) -> QueryOracle:
    """The victim as an attacker meets it who may only ask."""
    if context.model is None or context.threat.queries is None:
        raise DataError("knowledge is 'query', but that needs the victim as model and queries in the threat model")
    threat = deepcopy(context.threat)
    return QueryOracle(context.model, context.graph, threat, context.targets)


@contextmanager
def _asked_only(model: nn.Module | None, oracle: QueryOracle) -> Iterator[None]:
    """Count what the victim answers inside, and refuse more answers than the oracle gave; it answers no more afterwards."""
    assert model is not None
    answered = 0

    def count(*_: Any) -> None:
        nonlocal answered
        answered += 1

    hook = model.register_forward_hook(count)
    hooks = list(model._forward_hooks)
    try:
        yield
        if answered > oracle.used or list(model._forward_hooks) != hooks:
            raise AttackError(
                f"the victim answered {answered} times, but the oracle was asked {oracle.used} times; an attack with "
                "knowledge 'query' must ask the oracle alone"
            )
    finally:
        oracle.close()
        hook.remove()


def project(context: AttackContext, edit: GraphEdit) -> GraphEdit:
    """The edit moved onto the constraints of the threat model, if it has any, within its range of features."""
    constraints = context.threat.constraints
    if constraints is None:
        return edit
    return constraints.project(context.graph, edit, context.targets, context.threat.feature_range)


def _knowledge(attack: Attack, context: AttackContext) -> Knowledge:
    """What the attack knows of the victim: nothing without a model, also if one was given to an attack that asks for none."""
    needs = context.model is not None and getattr(attack, "needs_model", True)
    return context.knowledge if needs else "none"


def _attack_graphs(attack: Attack, context: AttackContext, *, seed: int) -> AttackResult:
    """Attack the target graphs of a collection one by one and put the edits together.

    For every graph all its nodes are targets, and the model gives each of them the logits of the graph
    (:class:`~grb.model.pooled.GraphLevel`), so that every attack on nodes runs as it is: the mean loss of the targets is the
    loss of the graph. A graph's randomness depends on the seed and on its position in the collection, not on which other
    graphs are attacked. The edit of the collection is checked once more as a whole. Queries are for the whole collection and
    shared out evenly among the target graphs, the first ones getting what is left over.
    """
    graph = context.graph
    targets = check_ids(context.targets, graph.num_graphs, "the list of target graphs")
    if context.model is not None:
        check_features(context.model, graph)
    seeds = torch.randint(SEEDS, (graph.num_graphs,), generator=torch.Generator().manual_seed(seed)).tolist()
    typed = Graph(graph.adj, graph.x, node_types(graph.x), graph.ptr)
    model = None if context.model is None else GraphLevel(context.model)
    start, start_cpu = time.perf_counter(), time.process_time()
    done: dict[int, AttackResult] = {}
    aims = None if context.true_labels is None else dict(zip(targets.tolist(), context.true_labels, strict=True))
    for place, number in enumerate(targets.tolist()):
        own = get_example(typed, number)
        none = torch.empty(0, dtype=torch.int64)
        nodes = torch.arange(own.n)
        view = View(own, none, none, nodes, nodes, context.view.num_classes, inductive=False)
        true = None if aims is None else aims[number].repeat(own.n)
        limits = context.threat.for_graph(own)
        if limits.queries is not None:
            each, more = divmod(limits.queries, len(targets))
            limits = replace(limits, queries=each + (place < more))
        one = AttackContext(
            view, limits, model, context.knowledge, context.on_step, true_labels=true, keys=context.keys
        )
        done[number] = run_attack(attack, one, seed=seeds[number])
    edit = batch_edits(graph, {number: result.edit for number, result in done.items()})
    return AttackResult(
        edit=edit,
        budget=context.threat.check(graph, edit, targets),
        steps=mean_steps([result.steps for result in done.values()]),
        seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time() - start_cpu,
        peak_megabytes=peak_megabytes(),
        knowledge=_knowledge(attack, context),
        seed=seed,
        notes=merge_notes([result.notes for result in done.values()]),
        labels=context.labels,
        passes=Passes(
            sum(result.passes.forward for result in done.values()),
            sum(result.passes.backward for result in done.values()),
        ),
        queries=sum(result.queries or 0 for result in done.values()) if context.knowledge == "query" else None,
    )


def mean_steps(histories: Sequence[Sequence[Step]]) -> tuple[Step, ...]:
    """The mean over graphs at every step; a graph whose attack is over counts with its last step."""
    given = [history for history in histories if history]
    if not given:
        return ()
    length = max(map(len, given))
    padded = [[(step.loss, step.accuracy) for step in (*own, *[own[-1]] * (length - len(own)))] for own in given]
    means = torch.tensor(padded, dtype=torch.float64).mean(0)
    return tuple(Step(loss, accuracy) for loss, accuracy in means.tolist())


def context_from_arrays(
    model: nn.Module | None, adj: Any, features: Tensor, target_mask: Tensor, threat: Threat
) -> AttackContext:
    """What the papers' ``attack()`` calls give: arrays in place of a dataset; the graph is repaired where it must be."""
    graph, repaired = Graph.build(adj, features, mode="canonicalise")
    for note in repaired:
        log.warning("the clean graph was repaired before the attack: %s", note)
    if target_mask.shape != (graph.n,) or target_mask.dtype != torch.bool:
        raise DataError(f"target_mask has shape {list(target_mask.shape)}, but {graph.n} booleans are needed")
    none = torch.empty(0, dtype=torch.int64)
    view = View(graph, none, none, target_mask.nonzero().flatten(), torch.arange(graph.n), 0, inductive=False)
    return AttackContext(view, threat, model)


def is_mask(model: Any, adj: Any, features: Any, target_mask: Any, **_: Any) -> bool:
    """Whether the targets of an ``attack()`` call are a boolean tensor, as ours are; THUDM/grb's may be ids."""
    return isinstance(target_mask, Tensor) and target_mask.dtype == torch.bool


def clean_labels(context: AttackContext) -> tuple[Tensor, Tensor]:
    """Logits of all nodes on the clean graph in evaluation mode, and the labels that the attack aims at, [t].

    Attackers have no test labels: they attack what the model predicts, unless the evaluator measures its worst case.
    """
    logits = predict(context.surrogate(), context.graph)
    return logits, context.aimed_labels(logits[context.targets])


def _check_context(context: AttackContext) -> None:
    check_ids(context.targets, context.graph.n, "the list of targets")
    if context.knowledge not in get_args(Knowledge):
        raise DataError(f"knowledge is {context.knowledge!r}, but 'white-box', 'transfer' or 'query' is needed")
    if context.model is not None:
        check_features(context.model, context.graph)
    true = context.true_labels
    if true is None:
        return
    if context.knowledge != "white-box" or context.model is None:
        raise DataError("true labels are for the evaluator's own white-box attacks; leave them out of any other")
    if true.shape != context.targets.shape or true.dtype != torch.int64:
        raise DataError(f"true labels have shape {list(true.shape)}, but one whole number per target is needed")


def _tensors(context: AttackContext) -> list[Tensor]:
    """All that an attack is given besides the model."""
    view, graph = context.view, context.graph
    held: list[Any] = [view.train, view.val, view.targets, view.nodes, graph.y, context.true_labels]
    for part in (graph.adj, graph.x):
        held += [part] if isinstance(part, Tensor) else [part.pattern.indptr, part.pattern.indices, part.values]
    return [tensor for tensor in held if isinstance(tensor, Tensor)]
