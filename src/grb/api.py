"""grb in five lines: load a dataset, train a model, evaluate it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args, overload

import torch
from torch import Tensor, nn

from grb.attack.base import Attack, AttackContext, AttackResult, Knowledge, Labels, Step
from grb.attack.base import run_attack as run_checked
from grb.attack.build import build_attack, default_threat
from grb.certificate import Certificate, CertifiedResult, build_certificate, default_certificate, run_certificate
from grb.dataset import Dataset
from grb.dataset.targets import Targets, select_targets
from grb.defense import build_defense
from grb.detector import Detection, Detector
from grb.detector import detect as run_detector
from grb.errors import DataError, nearest
from grb.evaluator.baseline import check_majority
from grb.evaluator.scoring import Edit, Metrics, changed_graph, checked_model, edit_of, predict_checked, score
from grb.graph import GraphEdit
from grb.metric.names import CustomMetric, Metric
from grb.model.base import GraphModel, check_task
from grb.names import ModelName
from grb.threat import Threat
from grb.trainer import Epoch, Fit
from grb.trainer.imbalance import ClassWeights
from grb.trainer.trainer import check_device


class Scores(dict[str, float]):
    """Score per difficulty as a fraction; prints in per cent.

    >>> print(Scores(easy=0.5, full=0.75))
    easy 50.00  full 75.00
    """

    def __str__(self) -> str:
        return "  ".join(f"{name} {100 * value:.2f}" for name, value in self.items())


class MetricScores(dict[str, Scores]):
    """Scores by metric; prints one line of fractions per metric.

    >>> print(MetricScores(accuracy=Scores(easy=0.5, full=0.75), auroc=Scores(easy=1.0, full=0.875)))
    accuracy: easy 0.5000  full 0.7500
    auroc: easy 1.0000  full 0.8750
    """

    def __str__(self) -> str:
        lines = ("  ".join(f"{key} {value:.4f}" for key, value in scores.items()) for scores in self.values())
        return "\n".join(f"{name}: {line}" for name, line in zip(self, lines, strict=True))


def train(
    model: str,
    dataset: Dataset,
    *,
    seed: int = 0,
    epochs: int | None = None,
    patience: int | None = None,
    lr: float | None = None,
    train_mode: Literal["inductive", "transductive"] = "inductive",
    device: str | torch.device = "cpu",
    on_epoch: Callable[[Epoch], None] | None = None,
    class_weights: ClassWeights | None = None,
    metric: str | CustomMetric | None = None,
    **params: Any,
) -> nn.Module:
    """Train a model by name with the papers' settings for the dataset.

    The same seed, version, number of threads and kind of CPU give the same weights, bit for bit.

    Args:
        model: ``gcn``, ``r-gcn``, ...; ``+ln`` adds the paper's layer norm, ``+at`` its adversarial training; ``grb ls
            models`` shows all.
        dataset: From :func:`load_dataset` or ``Dataset.from_...``. Where it has graphs to classify, ``gin`` means
            ``gin-pool``, whose rows are pooled over every graph, and ``dataset.with_split(3)`` is fold 3.
        seed: Random seed of weights and dropout.
        epochs: Maximum number of epochs instead of the preset.
        patience: Epochs without a better validation score before stopping, instead of the preset.
        lr: Learning rate of Adam instead of the preset.
        train_mode: ``inductive`` (no test node is seen) or ``transductive`` (no test label is seen).
        device: Where to train.
        on_epoch: Called after each epoch, for progress.
        class_weights: ``balanced`` (as in scikit-learn), or one weight per class in the loss.
        metric: Metric that chooses the best validation epoch instead of accuracy, e.g. ``macro-f1`` or ``recall:1``.
        params: Constructor arguments of the model instead of the preset, e.g. ``hidden_features=[32, 32]``; or
            ``validate_every=5``, epochs between two validations.

    >>> from grb.dataset import load_dataset
    >>> dataset = load_dataset("synth-tiny")
    >>> evaluate(train("mlp", dataset, epochs=5), dataset)["full"] > 0.2
    True
    """
    return train_with_history(
        model,
        dataset,
        seed=seed,
        epochs=epochs,
        patience=patience,
        lr=lr,
        train_mode=train_mode,
        device=device,
        on_epoch=on_epoch,
        class_weights=class_weights,
        metric=metric,
        **params,
    )[0]


def train_with_history(
    model: str,
    dataset: Dataset,
    *,
    seed: int = 0,
    train_mode: Literal["inductive", "transductive"] = "inductive",
    device: str | torch.device = "cpu",
    on_epoch: Callable[[Epoch], None] | None = None,
    **changes: Any,
) -> tuple[nn.Module, Fit]:
    """As :func:`train`, and how it went."""
    if train_mode not in ("inductive", "transductive"):
        raise DataError(f"train_mode is {train_mode!r}, but 'inductive' or 'transductive' is needed")
    _check_dataset(dataset)
    if not isinstance(model, str):
        raise DataError(
            f"model is a {type(model).__name__}, but a name such as 'gcn' is needed; grb.trainer.fit trains any module"
        )
    check_device(device)
    if dataset.task == "graph" and train_mode == "transductive":
        raise DataError(f"train_mode is 'transductive', but the graphs of '{dataset.name}' are separate; leave it out")
    view = dataset.defender_view() if train_mode == "inductive" else dataset.transductive_view()
    defense = build_defense(
        ModelName.parse(model).for_task(dataset.task), dataset.name, device=device, on_epoch=on_epoch, **changes
    )
    return defense.fit_with_history(view, seed=seed)


@overload
def evaluate(
    model: nn.Module, dataset: Dataset, edit: Edit = None, *, metrics: None = None, targets: Targets | None = None
) -> Scores: ...


@overload
def evaluate(
    model: nn.Module, dataset: Dataset, edit: Edit = None, *, metrics: Metrics, targets: Targets | None = None
) -> MetricScores: ...


def evaluate(
    model: nn.Module,
    dataset: Dataset,
    edit: Edit = None,
    *,
    metrics: Metrics | None = None,
    targets: Targets | None = None,
    **unknown: Any,
) -> Scores | MetricScores:
    """Accuracy (micro-F1 for several labels per node) on each difficulty, every test node met in the whole graph.

    Where graphs are classified, the share of test graphs that get their label.

    Args:
        model: A trained model.
        dataset: The dataset with true labels.
        edit: Applied to the graph first; scores are those under attack then. An attack's result is taken as its edit.
        metrics: Names (:mod:`grb.metric.names`), functions of (logits, decisions, labels), or names joined by commas.
        targets: Only these test nodes count (:func:`grb.dataset.targets.select_targets`); the scores are then those of the
            ``targets`` and of the ``others``, the remaining test nodes, where a drop is collateral damage.
        unknown: Refused with the arguments that exist.

    Returns:
        Score per difficulty; with ``metrics`` such scores per metric, accuracy or micro-F1 first.

    >>> from grb.dataset import load_dataset
    >>> dataset = load_dataset("synth-tiny")
    >>> list(evaluate(train("mlp", dataset, epochs=2), dataset, metrics="auroc,recall:1"))
    ['accuracy', 'auroc', 'recall:1']
    """
    if unknown:
        given = next(iter(unknown))
        near = nearest(given, ("edit", "metrics", "targets"))
        hint = f"; did you mean {near}=?" if near else ""
        raise DataError(f"evaluate has no argument '{given}'{hint} It has model, dataset, edit, metrics and targets")
    _check_dataset(dataset)
    if targets is not None:
        return _of_targets(model, dataset, edit, metrics, targets)
    after = predict_checked(checked_model(model), changed_graph(dataset, edit), dataset)
    found = score(model, dataset, metrics=metrics or (), after=after)
    if dataset.mode in found.correct:
        for flag in check_majority(after, dataset, dataset.test_ids(dataset.mode), dataset.mode):
            warnings.warn(str(flag), stacklevel=2)
    if metrics is None:
        return Scores(found.values[found.primary])
    return MetricScores({name: Scores(values) for name, values in found.values.items()})


def _of_targets(
    model: nn.Module, dataset: Dataset, edit: Edit, metrics: Metrics | None, targets: Targets
) -> Scores | MetricScores:
    chosen = select_targets(dataset, targets)
    tests = dataset.test_ids(dataset.mode)
    rest = tests[~torch.isin(tests, chosen)]
    after = predict_checked(checked_model(model), changed_graph(dataset, edit), dataset)
    values: dict[str, Scores] = {}
    primary = ""
    for name, ids in (("targets", chosen), ("others", rest)):
        if not len(ids):
            continue
        try:
            found = score(None, dataset.with_targets(ids), metrics=metrics or (), after=after)
        except DataError:
            if name == "targets":
                raise
            continue  # a metric that is undefined for the rest, such as the recall of a class that it does not have
        primary = found.primary
        present = set(dataset.labels[ids].flatten().tolist()) if dataset.labels.dim() == 1 else None
        for metric, by_part in found.values.items():
            label = Metric.parse(metric).label
            if name == "others" and present is not None and label is not None and label not in present:
                continue  # the recall of a class that nobody has
            values.setdefault(metric, Scores())[name] = by_part["full"]
    return values[primary] if metrics is None else MetricScores(values)


def run_attack(
    attack: str | Attack,
    model: nn.Module | None,
    dataset: Dataset,
    *,
    mode: str | None = None,
    threat: Threat | None = None,
    knowledge: Knowledge = "white-box",
    labels: Labels = "predicted",
    seed: int = 0,
    targets: Targets | None = None,
    on_step: Callable[[Step], None] | None = None,
    **params: Any,
) -> AttackResult:
    """Attack a model on the test nodes of a dataset; the edit is checked against the threat model before you get it.

    Where graphs are classified every test graph is attacked on its own, with the whole budget for each: by default 5 % of its
    edges and at least one, or one injected node with three edges.

    Args:
        attack: A name (``grb ls attacks``) with the papers' settings, or a custom attack.
        model: The model whose gradients are used: the victim, or a surrogate. None for attacks without a model.
        dataset: Its test labels stay hidden from the attack.
        mode: Difficulty; the dataset's own if not given.
        threat: What is allowed; if not given, the paper's Table 12 for an injection into the dataset and difficulty (for
            other datasets ``Injection.inferred``), and 5 % of the edges for a modification.
        knowledge: ``white-box`` if the model is the victim, ``transfer`` if it is a surrogate, ``query`` if the model is the
            victim and the attack may only ask it, within ``threat.queries``; goes into the result.
        labels: Labels that the attack takes away: those that the model predicts on the clean graph, or the ``true`` ones, to
            measure the worst case; white-box and with attacks of grb only.
        seed: Random seed of the attack.
        targets: Attack these test nodes alone (:func:`grb.dataset.targets.select_targets`).
        on_step: Called after each step, for progress.
        params: For a named attack: ``iterations``, ``step``, or its own constructor's arguments.

    >>> from grb.dataset import load_dataset
    >>> dataset = load_dataset("synth-tiny")
    >>> model = train("gcn", dataset, epochs=20)
    >>> result = run_attack("fgsm", model, dataset, iterations=5)
    >>> evaluate(model, dataset, result)["full"] <= evaluate(model, dataset)["full"]
    True
    """
    _check_dataset(dataset)
    if targets is not None:
        dataset, mode = dataset.with_targets(targets, mode), None
    mode = mode or dataset.mode
    made = build_attack(attack, dataset.name, **params) if isinstance(attack, str) else attack
    if params and not isinstance(attack, str):
        raise DataError(f"parameters {sorted(params)} go with an attack's name; yours is built already")
    if model is not None:
        check_task(model, dataset)
    limits = threat if threat is not None else default_threat(made, dataset, mode)
    aims = _true_labels(made, dataset, mode, knowledge) if _aims_at_truth(labels) else None
    context = AttackContext(
        dataset.attacker_view(mode), limits, model, knowledge, on_step or (lambda step: None), true_labels=aims
    )
    return run_checked(made, context, seed=seed)


def _aims_at_truth(labels: str) -> bool:
    if labels not in get_args(Labels):
        raise DataError(f"labels is {labels!r}, but 'predicted' or 'true' is needed")
    return labels == "true"


def _true_labels(attack: Attack, dataset: Dataset, mode: str, knowledge: str) -> Tensor:
    """Labels of the targets, [t], for white-box attacks of grb; refused for all others."""
    if knowledge != "white-box":
        raise DataError(
            f"labels is 'true', but knowledge is {knowledge!r}; only a white-box attack may aim at true labels"
        )
    if not type(attack).__module__.startswith("grb.attack."):
        raise DataError(
            f"labels is 'true', but {getattr(attack, '__name__', type(attack).__name__)} is no attack of grb; "
            "attacks of others aim at predicted labels"
        )
    if dataset.labels.dim() != 1:
        raise DataError(f"labels is 'true', but nodes of '{dataset.name}' have several labels; leave it out")
    return dataset.labels[dataset.test_ids(mode)]


def certify(
    model: nn.Module,
    dataset: Dataset,
    *,
    threat: Threat,
    certificate: str | Certificate | None = None,
    mode: str | None = None,
    seed: int = 0,
    **params: Any,
) -> CertifiedResult:
    """What no attack within a threat model can change.

    Args:
        model: A trained model. One that neither votes nor hears known nodes only is smoothed or made to vote first, and the
            result says so: it is about that model.
        dataset: The dataset with true labels.
        threat: What an adversary may do, as for :func:`run_attack`.
        certificate: A name (``grb ls certificates``) or a custom certificate; the one that fits the model if None.
        mode: Difficulty; the dataset's own if not given.
        seed: Random seed of sampling, and of the keys by which a hash vote divides; :func:`evaluate` divides by those of 0.
        params: For a named certificate: ``groups``, ``samples``, ``alpha``, ...

    >>> from grb.dataset import load_dataset
    >>> from grb.threat import Injection
    >>> dataset = load_dataset("synth-tiny")
    >>> model = train("gcn+known", dataset, epochs=20)
    >>> found = certify(model, dataset, threat=Injection(5, 10, dataset.feature_range))
    >>> found.certified_accuracy == evaluate(model, dataset)["full"]
    True
    """
    _check_dataset(dataset)
    check_task(model, dataset)
    chosen = default_certificate(model, threat) if certificate is None else certificate
    if params and not isinstance(chosen, str):
        raise DataError(f"parameters {sorted(params)} go with a certificate's name; yours is built already")
    made = build_certificate(chosen, **params) if isinstance(chosen, str) else chosen
    found = run_certificate(made, model, dataset, threat, mode=mode, seed=seed)
    if seed and found.certificate == "hash-vote":
        said = f"the groups are those of seed {seed}: a vote of other groups than those that grb.evaluate asks"
        return replace(found, notes=(*found.notes, said))
    return found


def detect(detector: str | Detector, dataset: Dataset, edit: Edit = None, *, seed: int = 0, **params: Any) -> Detection:
    """What a defender notices of an attack who has seen the training graph alone.

    Args:
        detector: A name (``grb ls detectors``), or a fitted detector.
        dataset: The dataset.
        edit: An attack's result or its edit; the clean graph if None, which has scores but no ROC curves.
        seed: Random seed of whatever the detector learns.
        params: For a named detector: its own arguments, e.g. ``side="both"`` of ``homophily``.

    >>> from grb.dataset import load_dataset
    >>> dataset = load_dataset("synth-tiny")
    >>> attack = run_attack("rnd", None, dataset)
    >>> sorted(detect("feature-likelihood", dataset, attack).auroc)
    ['edges', 'nodes']
    """
    _check_dataset(dataset)
    return run_detector(detector, dataset, edit_of(edit), seed=seed, **params)


def load_model(
    source: str | os.PathLike[str],
    store: str | os.PathLike[str] | None = None,
    *,
    seed: int | None = None,
    trusted: str | None = None,
) -> GraphModel:
    """A trained model, from a file, from what is published, or from a store of results.

    Args:
        source: A file that :func:`save_model` wrote, or if there is no such file a published name (``grb ls artefacts``),
            ``bundle/model``; with a store ``dataset/defense``, e.g. ``grb-cora/gat+at``.
        store: Directory that ``grb run`` filled.
        seed: Random seed of the training, of those that are published or in the store; 0 by default.
        trusted: The one ``package.module:Class`` that a file may name; no other code is imported because a file says so.
    """
    from grb.trainer import checkpoint

    if store is None:
        from grb.pipeline.published import resolved

        return checkpoint.load_model(resolved(source, "model", seed=seed), trusted=trusted)
    seed = seed or 0
    from grb.model.build import settings
    from grb.pipeline.record import NOT_COMPUTED
    from grb.pipeline.store import Store

    name, slash, defense = str(source).partition("/")
    if not slash:
        raise DataError(f"'{source}' is no entry of a store; 'dataset/defense' is needed, for instance grb-cora/gat+at")
    wanted = settings(defense, name).model
    place = Store(store)
    fits = [
        record
        for record in place.records()
        if record.job.kind == "fit" and record.job.data.dataset == name and record.job.spec.name not in NOT_COMPUTED
    ]
    found = [record for record in fits if settings(record.job.spec.name, name).model == wanted]
    chosen = [record for record in found if record.job.seed == seed]
    if not chosen:
        known = sorted({f"{name}/{record.job.spec.name} (seed {record.job.seed})" for record in found or fits})
        raise DataError(
            f"{place.path} has no {source} of seed {seed}; it has {', '.join(known[:8]) or 'no model of that dataset'}"
        )
    if len(chosen) > 1:
        raise DataError(f"{place.path} has {len(chosen)} models {source} of seed {seed}, trained in different ways")
    return checkpoint.load_model(place.find(chosen[0], "weights"))


def load_edit(
    source: str | os.PathLike[str],
    *,
    victim: str | None = None,
    surrogate: str | None = None,
    labels: Labels | None = None,
    seed: int | None = None,
    training: int | None = None,
    difficulty: str | None = None,
) -> GraphEdit:
    """An edit that an attack made, from a file or from what is published.

    Args:
        source: A file that ``grb attack -o`` or :meth:`GraphEdit.save` wrote, or if there is no such file a published name
            (``grb ls artefacts``), ``bundle/attack``, e.g. ``grb-cora/auto``. All other arguments choose among published ones.
        victim: Model that was attacked with its own gradients; without it an edit that was made without the victim, if the
            attack has such.
        surrogate: Model whose gradients a transfer used, where there are several.
        labels: Labels that the attack aims at, ``predicted`` (by default) or ``true``.
        seed: Random seed of the attack; 0 by default.
        training: Random seed of the victim's training; 0 by default.
        difficulty: Which test nodes were attacked; the largest set by default.
    """
    from grb.pipeline.published import resolved

    choices = {"victim": victim, "surrogate": surrogate, "labels": labels, "difficulty": difficulty}
    return GraphEdit.load(resolved(source, "edit", seed=seed, training=training, **choices))


def _check_dataset(dataset: Any) -> None:
    if isinstance(dataset, Dataset):
        return
    made = "grb.load_dataset(name) makes one"
    if hasattr(dataset, "edge_index"):
        made = "grb.Dataset.from_pyg(data) makes one of it"
    elif hasattr(dataset, "nodes") and hasattr(dataset, "edges"):
        made = "grb.Dataset.from_networkx(graph) makes one of it"
    elif isinstance(dataset, str):
        made = f"grb.load_dataset({dataset!r}) makes one"
    raise DataError(f"dataset is a {type(dataset).__name__}, but a grb Dataset is needed; {made}")
