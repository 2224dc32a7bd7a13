"""One attack against many defenses, one defense against many attacks: every edit is checked before it counts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grb import metric
from grb._paper_calls import PaperCalls
from grb.attack.base import AttackResult
from grb.dataset import Dataset
from grb.errors import DataError
from grb.evaluator.scoring import Edit, score
from grb.graph import Graph, GraphEdit, adjacency_from_csr
from grb.threat import Threat
from grb.trainer.checkpoint import load_model


@dataclass(frozen=True)
class _Evaluator(metaclass=PaperCalls):
    """What both sides share: the targets, and the limits that every edit must keep.

    Args:
        dataset: The dataset with true labels.
        mode: Difficulty of the targets; the dataset's own if not given.
        threat: Limits that every edit is checked against; None takes edits as they are.
    """

    dataset: Dataset
    mode: str | None = None
    threat: Threat | None = None

    @property
    def difficulty(self) -> str:
        """The difficulty that is scored."""
        return self.mode or self.dataset.mode

    @property
    def targets(self) -> Tensor:
        """Ids of the test items that are scored."""
        return self.dataset.test_ids(self.difficulty)

    def attacked(self, edit: Edit) -> Graph:
        """The graph under an edit, which is refused if it breaks the limits."""
        if edit is None:
            return self.dataset.graph
        change = edit.edit if isinstance(edit, AttackResult) else edit
        if self.threat is not None:
            self.threat.check(self.dataset.graph, change, self.targets)
        return self.dataset.graph.apply(change)

    def score(self, model: nn.Module, graph: Graph) -> float:
        """Accuracy of a model on a graph, or micro-F1 for several labels per item."""
        found = score(model, self.dataset, graph=graph, difficulties=[self.difficulty])
        return found.values[found.primary][self.difficulty]


@dataclass(frozen=True)
class AttackEvaluator(_Evaluator):
    """How strong one attack is: accuracy of every defense under it, with Avg, 3-Max and Weighted; lower is stronger.

    >>> import grb
    >>> dataset = grb.load_dataset("synth-tiny")
    >>> models = {name: grb.train(name, dataset, epochs=5) for name in ("gcn", "mlp")}
    >>> sorted(AttackEvaluator(dataset).evaluate(models))
    ['average', 'gcn', 'mlp', 'three_max', 'weighted']
    """

    def evaluate(self, models: Mapping[str, Any], edit: Edit = None) -> dict[str, float]:
        """Accuracy per defense and the summaries.

        Args:
            models: Trained models or their files by name.
            edit: What the attack changes; None for the clean graph.
        """
        if not models:
            raise DataError("there are no models to evaluate; give a mapping of names to models or their files")
        graph = self.attacked(edit)
        scores = {name: self.score(_model(model), graph) for name, model in models.items()}
        values = list(scores.values())
        return {
            **scores,
            "average": metric.average(values),
            "three_max": metric.three_max(values),
            "weighted": metric.weighted(values, side="attack"),
        }

    def eval_attack(self, model_dict: Mapping[str, Any], adj_attack: Any, features_attack: Any) -> dict[str, float]:
        """The same from a paper-era attack's arrays, turned back into an edit and checked.

        Args:
            model_dict: Trained models or their files by name.
            adj_attack: The attacked adjacency, [n + m, n + m].
            features_attack: Features of the m injected nodes, or of all n + m nodes.
        """
        rows = adj_attack.tocsr()
        adj, _ = adjacency_from_csr(rows.indptr, rows.indices, rows.data, rows.shape)
        before, x = self.dataset.graph, torch.as_tensor(features_attack, dtype=torch.float32)
        if len(x) == adj.n - before.n:
            x = torch.cat([self.dataset.features, x])
        edit = GraphEdit.between(Graph(before.adj, self.dataset.features), Graph(adj, x))
        return self.evaluate(model_dict, edit)


@dataclass(frozen=True)
class DefenseEvaluator(_Evaluator):
    """How robust one defense is: its accuracy under every attack, with Avg, 3-Min and Weighted; higher is better.

    The clean graph counts as one attack, as in the paper's tables.
    """

    def evaluate(self, model: Any, edits: Mapping[str, GraphEdit | AttackResult]) -> dict[str, float]:
        """Accuracy per attack and the summaries.

        Args:
            model: A trained model or its file.
            edits: What each attack changes, by the attack's name.
        """
        loaded = _model(model)
        scores = {"none": self.score(loaded, self.dataset.graph)}
        scores |= {name: self.score(loaded, self.attacked(edit)) for name, edit in edits.items()}
        values = list(scores.values())
        return {
            **scores,
            "average": metric.average(values),
            "three_min": metric.three_min(values),
            "weighted": metric.weighted(values, side="defense"),
        }

    eval_defense = evaluate


def _model(given: Any) -> nn.Module:
    if isinstance(given, nn.Module):
        return given
    if isinstance(given, str | os.PathLike):
        return load_model(given)
    raise DataError(f"a model is a {type(given).__name__}, but a trained model or the path of its file is needed")
