"""Replay attacked graphs of others: any model, trained before the attack (evasion) or after it (poisoning)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from grb.attack.modification.poisoning import poisoned
from grb.dataset import Dataset
from grb.dataset.pool import AttackedGraph, Pool
from grb.defense import build_defense
from grb.defense.base import Defense, Training
from grb.errors import DataError
from grb.evaluator.scoring import predict_checked
from grb.graph import GraphEdit
from grb.model.build import settings

Objective = Literal["evasion", "poisoning"]


@dataclass(frozen=True)
class Replayed:
    """A model on one attacked graph.

    Args:
        graph: Name of the attacked graph; empty for the clean one.
        attack: Its attack.
        rate: Its rate.
        objective: When the model was trained.
        added: Number of added edges.
        dropped: Number of dropped edges.
        injected: Number of injected nodes.
        accuracy: On the test nodes, one per seed.
        target_accuracy: On the attacked nodes, one per seed; empty if all test nodes are attacked.
    """

    graph: str
    attack: str
    rate: float | None
    objective: Objective
    added: int
    dropped: int
    injected: int
    accuracy: tuple[float, ...]
    target_accuracy: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        values: dict[str, Any] = {
            "graph": self.graph,
            "attack": self.attack,
            "rate": self.rate,
            "objective": self.objective,
            "added": self.added,
            "dropped": self.dropped,
            "injected": self.injected,
        }
        for name in ("accuracy", "target_accuracy"):
            scores = getattr(self, name)
            if scores:
                values |= {
                    name: statistics.fmean(scores),
                    f"{name}_std": statistics.pstdev(scores),
                    f"{name}_runs": scores,
                }
        return values


def replay(
    pool: Pool,
    defense: Defense,
    *,
    objectives: Sequence[Objective] = ("poisoning",),
    seeds: Sequence[int] = (0, 1, 2),
    clean: bool = True,
    transductive: bool = True,
    on_row: Callable[[Replayed], None] = lambda row: None,
) -> list[Replayed]:
    """Score a defense on every graph of a pool.

    Args:
        pool: From :func:`~grb.dataset.pool.read_pool`, or made of custom edits.
        defense: Whatever ends in a model, for instance ``build_defense("gcn", ...)``.
        objectives: ``evasion``: the model was trained on the clean graph; ``poisoning``: on the attacked one.
        seeds: Random seeds of the trainings; every graph meets the same ones.
        clean: Score the clean graph first.
        transductive: Training meets test nodes without their labels, as in the literature on poisoning.
        on_row: Called with every row, for progress.
    """
    unknown = sorted(set(objectives) - set(get_args(Objective)))
    if unknown or not objectives:
        raise DataError(f"objectives are {list(objectives)}, but 'evasion' and 'poisoning' are possible")
    if not seeds:
        raise DataError("no seeds were given, but at least one training is needed")
    dataset = pool.dataset
    fitted: dict[int, nn.Module] = {}
    # graphs with one edit, such as parts of its targets, share the models that are trained on it
    last: tuple[GraphEdit | None, dict[int, nn.Module]] = (None, {})

    def model_of(seed: int, edit: GraphEdit | None) -> nn.Module:
        trained_on = dataset if edit is None else poisoned(dataset, edit)
        view = trained_on.transductive_view() if transductive else trained_on.defender_view()
        return defense.fit(view, seed=seed)

    rows: list[Replayed] = []

    def add(graph: AttackedGraph, objective: Objective) -> None:
        nonlocal last
        test, hit = [], []
        poisons = objective == "poisoning" and not graph.edit.is_empty
        if poisons and last[0] is not graph.edit:
            last = (graph.edit, {})
        known = last[1] if poisons else fitted
        for seed in seeds:
            model = known.get(seed)
            if model is None:
                model = known[seed] = model_of(seed, graph.edit if poisons else None)
            right = _right(model, dataset, graph.edit)
            test.append(float(right[dataset.split.test[dataset.mode]].double().mean()))
            if graph.targets is not None:
                hit.append(float(right[graph.targets].double().mean()))
        sizes = (graph.edit.add.shape[1], graph.edit.drop.shape[1], graph.edit.num_new)
        rows.append(Replayed(graph.name, graph.attack, graph.rate, objective, *sizes, tuple(test), tuple(hit)))
        on_row(rows[-1])

    if clean:
        targets = next((graph.targets for graph in pool.graphs if graph.targets is not None), None)
        add(AttackedGraph("", GraphEdit(n=dataset.graph.n), "clean", 0.0, targets), objectives[0])
    for graph in pool.graphs:
        for objective in objectives:
            add(graph, objective)
    return rows


def _right(model: nn.Module, dataset: Dataset, edit: GraphEdit) -> Tensor:
    """Which original nodes get their label under an edit, [n]."""
    attacked = dataset.graph.apply(edit)
    if not edit.num_new:
        return predict_checked(model, attacked, dataset).labels == dataset.labels
    said = predict_checked(model, attacked, dataset).labels[: dataset.graph.n]
    return torch.as_tensor(said == dataset.labels)


def literature_defense(name: str, dataset: str, **changes: Any) -> Training:
    """A model with the settings of the literature on poisoning in place of GRB's.

    One hidden layer of 16, dropout 0.5, Adam with a learning rate of 0.01 and weight decay 5e-4, 200 epochs, the weights of the
    best validation accuracy; a model without hidden layers or dropout keeps what it has.

    Args:
        name: A model or defense by name.
        dataset: Name of the dataset.
        changes: As of :func:`~grb.defense.build_defense`.

    References:
        Jin et al., *Graph Structure Learning for Robust Graph Neural Networks*, KDD 2020.
    """
    own = settings(name, dataset).params
    usual = {"hidden_features": [16], "dropout": 0.5}
    given = {key: value for key, value in usual.items() if key in own}
    return build_defense(
        name, dataset, **{**given, "lr": 0.01, "epochs": 200, "patience": 200, "weight_decay": 5e-4, **changes}
    )
