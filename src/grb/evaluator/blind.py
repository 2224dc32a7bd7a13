"""Blind evaluation: a defense must answer alike whoever asks, in whatever order.

A defense that repeats what it said of the clean graph, or cuts edges to the last ids, is not robust: it recognises the
evaluation. So every defense is scored as a fresh copy, the attacked graph first; then it is asked about two different graphs
in turn, both under a random renumbering of nodes in which injected ones are not last, and its stages are compared with its
forward pass. What a defender may know stands in an :class:`~grb.model.base.EvaluationView`: which nodes it saw in training,
and opaque keys; both move with the nodes, so that test nodes and injected ones look the same.

A disagreement counts where the margin of the first answer exceeds rounding or, for a model that says that it samples, the
interval of its votes. The flags of this module take a defense its rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from grb.dataset import Dataset
from grb.evaluator.new_process import Answer
from grb.evaluator.score_checks import Flag
from grb.evaluator.scoring import Prediction, is_third_party, predict_checked, prediction_of
from grb.graph import CSR, Graph, GraphEdit
from grb.model.base import EvaluationView, evaluating, prepare, run_stages

# of the spread of a row of logits, and of its largest value in units of float32's precision
ROUNDING, PRECISION = 1e-3, 8 * torch.finfo(torch.float32).eps
# largest relative change of a feature that no honest answer depends on
JITTER = 1e-5
# rows that may disagree all the same: an edge at a defense's threshold falls on either side of it
FEW, FEW_SHARE = 3, 0.002
# how many may disagree without any margin, and of a model that says that it samples; a defense can make its margins small
UNSURE, UNSURE_SHARE, SAMPLED_SHARE = 6, 0.01, 0.03
# fewest draws for which a sampled model's interval counts, and the normal quantile of the interval
MIN_SAMPLES, QUANTILE = 100, 2.576


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a model decided, and where it was certain: all that a comparison needs.

    Args:
        labels: Classes [items], or booleans [items, labels] for several labels per item; invalid rows are marked as in
            :class:`~grb.evaluator.scoring.Prediction`.
        certain: Whether a decision is beyond rounding, of the same shape.
        invalid: Which rows have a NaN, [items].
        is_sampled: Whether these are votes of random draws.
    """

    labels: Tensor
    certain: Tensor
    invalid: Tensor
    is_sampled: bool = False

    @classmethod
    def of(cls, found: Prediction, model: nn.Module | None = None) -> Decisions:
        """The decisions of a prediction; ``model`` is looked at for its number of draws."""
        logits = found.logits.nan_to_num()
        largest = logits.abs().amax(1)
        if found.labels.dim() == 2:
            return cls(found.labels, logits.abs() > (ROUNDING * largest)[:, None], found.invalid)
        spread = logits.amax(1) - logits.amin(1)
        limit = ROUNDING * spread + PRECISION * largest
        if logits.shape[1] < 2:
            return cls(found.labels, torch.ones_like(found.invalid), found.invalid)
        interval = _interval(logits, model)
        limit = torch.maximum(limit, interval)
        best = logits.topk(2, 1).values
        return cls(found.labels, best[:, 0] - best[:, 1] > limit, found.invalid, bool((interval > 0).any()))

    def disagree(self, other: Decisions) -> int:
        """Number of items that another prediction, in the same order, decides otherwise although these were certain.

        Items that were not certain count too if more of them differ than rounding or sampling explains.
        """
        every = self.labels != other.labels
        certain, unsure = (self._rows(differs, other) for differs in (every & self.certain, every))
        share = SAMPLED_SHARE if self.is_sampled else UNSURE_SHARE
        return unsure if unsure > max(UNSURE, int(share * len(self.labels))) else certain

    def _rows(self, differs: Tensor, other: Decisions) -> int:
        rows = differs.any(1) if differs.dim() == 2 else differs
        return int(torch.where(self.invalid | other.invalid, self.invalid != other.invalid, rows).sum())


def _interval(logits: Tensor, model: nn.Module | None) -> Tensor:
    """Half the width of the interval of the two highest votes' difference, [items]; zero for models that do not sample.

    A model says so by ``samples``, the number of draws behind fractions of votes as logits.
    """
    samples = getattr(model, "samples", 0)
    votes = bool((logits >= 0).all()) and torch.allclose(logits.sum(1), torch.ones(len(logits)), atol=1e-3)
    if not isinstance(samples, int) or samples < MIN_SAMPLES or not votes:
        return torch.zeros(len(logits))
    first, second = logits.topk(2, 1).values.T
    return QUANTILE * ((first + second - (first - second) ** 2).clamp_min(0) / samples).sqrt()


@dataclass(frozen=True, eq=False)
class Question:
    """A graph, and what a defender may know of it.

    Args:
        graph: The graph to predict.
        view: Known nodes and keys.
        items: For every item of this graph its number in the graph that was renumbered.
    """

    graph: Graph
    view: EvaluationView
    items: Tensor

    @classmethod
    def of(cls, graph: Graph, known: Tensor, generator: torch.Generator) -> Question:
        """A graph as it is; nodes beyond the mask ``known`` are unknown, and all get new keys.

        Equal generators give the first nodes of two graphs equal keys: what was certified for a model's keys holds for the
        graphs that it is attacked on.
        """
        view = EvaluationView.of(known[: graph.n].nonzero().flatten(), graph.n, generator)
        return cls(graph, view, torch.arange(graph.n if graph.ptr is None else graph.num_graphs))

    def for_model(self, model: nn.Module) -> Question:
        """The same question to a model of the whole graph: one of ours that is tied to it hears which node is which.

        No model of others does: whoever knows nodes by their number can repeat what it learnt by heart.
        """
        number = getattr(model, "trained_ids", None) if getattr(model, "tied_to_training_graph", False) else None
        if number is None or is_third_party(model):
            return self
        return replace(self, view=replace(self.view, trained_ids=number(self.graph.n)))

    def renumbered(self, generator: torch.Generator) -> Question:
        """The same graph with its nodes in random order; graphs of a collection are reordered too, and stay separate."""
        graph = self.graph
        if graph.ptr is None:
            nodes = items = torch.randperm(graph.n, generator=generator)
            made = graph.subgraph(nodes)
        else:
            items = torch.randperm(graph.num_graphs, generator=generator)
            rank = torch.empty_like(items)
            rank[items] = torch.arange(len(items))
            shuffled = torch.randperm(graph.n, generator=generator)
            nodes = shuffled[torch.argsort(rank[graph.owner[shuffled]], stable=True)]
            ptr = torch.cat([torch.zeros(1, dtype=torch.int64), graph.ptr.diff()[items].cumsum(0)])
            x = graph.x[nodes] if isinstance(graph.x, Tensor) else graph.x.rows(nodes)
            made = Graph(graph.adj.subgraph(nodes), x, None, ptr)
        ids = None if self.view.trained_ids is None else self.view.trained_ids[nodes]
        return Question(made, EvaluationView(self.view.known[nodes], self.view.keys[nodes], ids), items)

    def with_rounding(self, generator: torch.Generator) -> Question:
        """The same graph with features that differ in their last digits: what is zero stays zero, signs stay."""
        x = self.graph.x
        values = x if isinstance(x, Tensor) else x.values
        if values is None:
            return self
        near = values * (1 + JITTER * (2 * torch.rand(values.shape, generator=generator) - 1))
        return replace(self, graph=self.graph.with_features(near if isinstance(x, Tensor) else CSR(x.pattern, near)))

    def ask(self, model: nn.Module, dataset: Dataset) -> Prediction:
        """What a model says, in the order of the graph before it was renumbered."""
        found = predict_checked(model, self.graph, dataset, self.view)
        back = torch.empty_like(self.items)
        back[self.items] = torch.arange(len(back))
        return Prediction(found.logits[back], found.labels[back], found.invalid[back])


def check_answers(
    model: nn.Module,
    make_model: Callable[[], nn.Module],
    dataset: Dataset,
    asked: Question,
    first: Prediction,
    generator: torch.Generator,
    clean: tuple[Question, Decisions] | None = None,
    third_party: bool | None = None,
) -> list[Flag]:
    """Ask a model that has just answered again: two more passes if nothing is wrong, four for models of others.

    Args:
        model: The copy that gave ``first`` as its first answer.
        make_model: Makes a fresh copy, to tell a memory from a sense of order.
        dataset: What was scored on.
        asked: The question behind ``first``.
        first: The answer that is recorded.
        generator: Random generator of the renumbering.
        clean: Another graph and what a fresh copy decided on it; None if the first question was that graph.
        third_party: Whether it is code of others; what its classes say if None.

    Returns:
        ``keeps-state``, ``node-order``, and of models of others ``exact-features``, ``stages-differ``, each at most once;
        nothing from an honest model.
    """
    turns = [(asked, Decisions.of(first, model)), *([] if clean is None else [clean])]
    flags = []
    for question, decided in reversed(turns):
        moved = question.renumbered(generator)
        changed, items = decided.disagree(Decisions.of(moved.ask(model, dataset))), len(moved.items)
        if changed > _few(items):
            unremembered = decided.disagree(Decisions.of(moved.ask(make_model(), dataset)))
            flags += _flag("node-order" if unremembered > _few(items) else "keeps-state", changed, items)
    # the stages of grb's own classes are compared by its tests
    if is_third_party(model) if third_party is None else third_party:
        if not flags:  # answers that change anyway say nothing about features
            near = asked.with_rounding(generator).ask(make_model(), dataset)
            flags += _flag("exact-features", Decisions.of(first, model).disagree(Decisions.of(near)), len(near.labels))
        flags += stages_differ(model, asked, first)
    return _worst(flags)


def blind_checks(
    make_model: Callable[[], nn.Module],
    dataset: Dataset,
    edits: Iterable[GraphEdit],
    known: Tensor,
    generator: torch.Generator,
    *,
    third_party: bool | None = None,
) -> list[Flag]:
    """Does a defense answer alike, whoever asks?

    Args:
        make_model: Makes a fresh copy of the trained model.
        dataset: What it is scored on.
        edits: Attacks whose graphs are asked about, each before the clean graph and to a copy of its own.
        known: Which nodes it saw in training, [n] booleans.
        generator: Random generator of keys and renumberings.
        third_party: Whether it is code of others; what its classes say if None.
    """
    clean: tuple[Question, Decisions] | None = None
    found = []
    for edit in edits:
        model = make_model()
        asked = Question.of(dataset.graph.apply(edit), known, generator).for_model(model)
        first = asked.ask(model, dataset)
        if clean is None:
            question, other = Question.of(dataset.graph, known, generator).for_model(model), make_model()
            clean = question, Decisions.of(question.ask(other, dataset), other)
        found += check_answers(model, make_model, dataset, asked, first, generator, clean, third_party)
    return _worst(found)


def check_new_process(model: nn.Module, first: Prediction, found: Answer, dataset: Dataset) -> list[Flag]:
    """Compare an answer with that of a new process to the same question: ``new-process`` if they differ.

    Args:
        model: The copy that gave ``first``; it is not asked again.
        first: The answer that is recorded.
        found: The answer in a new process (:class:`~grb.evaluator.new_process.NewProcess`).
        dataset: What was scored on.
    """
    if found.opened:
        wanted = f"asked in a new process it wanted '{found.opened}'"
        return [Flag("new-process", f"{wanted}, but an answer depends on the graph and the weights alone")]
    if found.logits is None or found.logits.shape != first.logits.shape:
        reason = found.error or "logits of another shape"
        return [
            Flag("new-process", f"it cannot be asked in a new process ({reason}), so nobody knows what it remembers")
        ]
    again = Decisions.of(prediction_of(found.logits, dataset))
    return _flag("new-process", Decisions.of(first, model).disagree(again), len(first.labels))


def stages_differ(model: nn.Module, asked: Question, first: Prediction) -> list[Flag]:
    """Compare a model's stages, by which attacks evaluate it, with the logits of its forward pass."""
    x = asked.graph.x
    if not isinstance(x, Tensor) or getattr(model, "pools", False):
        return []
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    try:
        stages = getattr(model, "stages", lambda: None)()
        if stages is None:
            return []
        with evaluating(model):
            logits = run_stages(stages, x.to(device), prepare(model, asked.graph.adj.to(device))).cpu()
    except Exception as error:  # whatever somebody's code raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        return [Flag("stages-differ", f"its stages cannot be run on the graph of the score ({reason}); return None")]
    if logits.shape != first.logits.shape:
        return _flag("stages-differ", len(first.labels), len(first.labels))
    allowed = ROUNDING * first.logits.abs().amax(1, keepdim=True)
    wrong = ~((logits - first.logits).abs() <= allowed).all(1) & ~first.invalid
    return _flag("stages-differ", int(wrong.sum()), len(wrong))


_SENTENCES = {
    "exact-features": f"answers change when features change by {JITTER:g} of their value; a defense must not look nodes up",
    "keeps-state": "answers change when it is asked about another graph before; evaluation must not remember anything",
    "new-process": "answers change in a new process; evaluation must remember nothing, and read nothing that it is not given",
    "node-order": "answers change when the nodes are renumbered; a defense must not use ids, by which injected nodes are last",
    "stages-differ": "rows of logits differ between stages() and forward; attacks see the stages, so return None or the same",
}


def _few(items: int) -> int:
    return max(FEW, int(FEW_SHARE * items))


def _flag(name: str, count: int, items: int) -> list[Flag]:
    if count <= _few(items):
        return []
    sentence = f"{count} of {items} {_SENTENCES[name]} (at most {_few(items)} are allowed)"
    return [Flag(name, sentence, {"changed": count, "items": items})]


def _worst(flags: Sequence[Flag]) -> list[Flag]:
    """One flag of every name: that with the most changes."""
    worst: dict[str, Flag] = {}
    for flag in flags:
        if flag.name not in worst or flag.numbers.get("changed", 0) > worst[flag.name].numbers.get("changed", 0):
            worst[flag.name] = flag
    return list(worst.values())
