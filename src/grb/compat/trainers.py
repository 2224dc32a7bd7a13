"""Trainers of the papers' era: plain, adversarial, of whole graphs, and the search for settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.attack.base import Attack
from grb.attack.build import scenario_of
from grb.automl.search import AutoTrainer as Search
from grb.compat.adjacency import Norm
from grb.compat.arguments import is_cross_entropy, refuse_unless, say_once, without_effect
from grb.compat.attacks import check_norm
from grb.compat.files import save_model
from grb.compat.metrics import eval_acc
from grb.dataset import Dataset
from grb.dataset.view import View
from grb.defense.adversarial import AdversarialTraining
from grb.errors import DataError
from grb.model.base import dropout_rate, evaluating, predict, prepare
from grb.model.build import Settings
from grb.trainer.graphs import fit_graphs
from grb.trainer.loop import Epoch, Fit, fit
from grb.trainer.trainer import Trainer

Scores = tuple[list[float], list[float], float]


@dataclass
class EarlyStop:
    """When to stop: after ``patience`` epochs without a better validation score; ``epsilon`` has no effect."""

    patience: int = 1000
    epsilon: float = 1e-5


def trainer_arguments(owner: str, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of our Trainer from those of a trainer of THUDM/grb."""
    advice = "features are normalised once, by the dataset: Dataset(name, feat_norm='arctan')"
    refuse_unless(owner, given, "feat_norm", lambda value: value is None, advice)
    without_effect(owner, given, "early_stop_epsilon", "any better validation score counts", quiet=[1e-5])
    if given.get("lr_scheduler") is None:
        given.pop("lr_scheduler", None)
    return given


class NormTrainer(Trainer):
    """A trainer that was made with ``adj_norm_func=``, as in THUDM/grb's first releases: its models must normalise so.

    Args:
        adj_norm_func: One of :mod:`grb.utils.normalize`.
        options: Arguments of :class:`grb.trainer.Trainer`.
    """

    def __init__(self, adj_norm_func: Norm, **options: Any) -> None:
        super().__init__(**options)
        self.adj_norm_func = adj_norm_func

    def train(self, model: nn.Module, n_epoch: int, *args: Any, **options: Any) -> Any:
        """As :meth:`grb.trainer.Trainer.train`."""
        check_norm("Trainer", model, self.adj_norm_func)
        return super().train(model, n_epoch, *args, **options)


def train(trainer: Trainer, given: dict[str, Any]) -> Fit | Scores:
    """``Trainer.train`` with ``if_save``, ``save_after``, ``return_scores`` and ``verbose``."""
    options = _train_options("Trainer.train", given)
    model = given["model"]
    seen = _watched(trainer, model, given) if options.scores else None
    fitted = _own_train(trainer, given)
    options.save(model)
    return seen(fitted) if seen is not None else fitted


def _own_train(trainer: Trainer, given: dict[str, Any]) -> Fit:
    if given.get("train_mode") == "trasductive":  # as AdvTrainer's default was spelled
        given["train_mode"] = "transductive"
    return trainer.train(**given)


@dataclass(frozen=True)
class _Options:
    directory: str | os.PathLike[str] | None
    name: str
    scores: bool

    def save(self, model: nn.Module) -> None:
        if self.directory is not None:
            save_model(model, self.directory, self.name, verbose=False)


def _train_options(owner: str, given: dict[str, Any]) -> _Options:
    """What a call asks for beside the training itself, taken out of its arguments."""
    without_effect(owner, given, "verbose", "nothing is printed; on_epoch= is called after every epoch", quiet=[False])
    without_effect(owner, given, "save_after", "the weights of the best epoch are kept, whichever it is", quiet=[0])
    directory, name = given.pop("save_dir", None), given.pop("save_name", None) or "model.pt"
    if given.pop("if_save", True) is False:
        directory = None
    return _Options(directory, name, bool(given.pop("return_scores", False)))


def _watched(trainer: Trainer, model: nn.Module, given: dict[str, Any]) -> Callable[[Fit], Scores]:
    """Let a training note its score on the training nodes after every epoch, in evaluation mode."""
    dataset: Dataset = trainer.dataset
    inductive = given.get("train_mode", "inductive") == "inductive"
    view: View = dataset.defender_view() if inductive else dataset.transductive_view()
    graph, ids = view.to(trainer.device).training_graph()
    metric, scores, other = trainer.eval_metric or eval_acc, list[float](), given.get("on_epoch")
    assert graph.y is not None

    def note(epoch: Epoch) -> None:
        with evaluating(model):
            logits = model(graph.x, prepare(model, graph.adj))[ids]
        scores.append(float(metric(logits, graph.y[ids])))  # type: ignore[index]
        if other is not None:
            other(epoch)

    given["on_epoch"] = note

    def result(fitted: Fit) -> Scores:
        values = [each.val_score for each in fitted.history if each.val_score is not None]
        return scores, values, 0.0 if fitted.best_score is None else fitted.best_score

    return result


class AdvTrainer(Trainer):
    """Adversarial training under its old name: after a warm-up every step sees a graph attacked with the current weights.

    Differs from THUDM/grb: there is a warm-up, dropout stays on, targets are training nodes only, and the best epoch is looked
    for after the warm-up. ``grb.train("gcn+at", dataset)`` is the same with the paper's settings.

    Args:
        dataset: A :class:`grb.dataset.Dataset`.
        optimizer: Over the parameters of the model that will be trained.
        loss: As in :class:`grb.trainer.Trainer`.
        feat_norm: None; features are normalised by the dataset.
        attack: What to train against, such as ``FGSM(epsilon=0.01, n_epoch=10, ...)`` with its limits; None trains plainly.
        attack_mode: ``injection`` or ``modification``, which the attack must be.
        adj_norm_func: The normalisation of the model, which must be its own; None does not look.
        options: Arguments of :class:`grb.trainer.Trainer`.
    """

    def __init__(
        self,
        dataset: Dataset,
        optimizer: torch.optim.Optimizer,
        loss: Any = None,
        feat_norm: str | None = None,
        attack: Any = None,
        attack_mode: str = "injection",
        *,
        adj_norm_func: Norm | None = None,
        **options: Any,
    ) -> None:
        given = trainer_arguments("AdvTrainer", {"feat_norm": feat_norm, **options})
        super().__init__(dataset, optimizer, loss, **given)
        if attack is not None and not (isinstance(attack, Attack) and hasattr(attack, "threat")):
            raise DataError(f"attack is a {type(attack).__name__}, but one of grb.attack with its limits is needed")
        if attack is not None and scenario_of(attack) != attack_mode:
            raise DataError(
                f"attack_mode is {attack_mode!r}, but {type(attack).__name__} is a {scenario_of(attack)} attack"
            )
        self.attack, self.adj_norm_func = attack, adj_norm_func

    def train(
        self,
        model: nn.Module,
        n_epoch: int,
        save_dir: str | os.PathLike[str] | None = None,
        save_name: str | None = None,
        eval_every: int = 1,
        save_after: int = 0,
        train_mode: str = "inductive",
        verbose: bool = False,
        *,
        dropout: float | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> Fit:
        """Train adversarially; the model ends with its best validation weights, in evaluation mode."""
        check_norm("AdvTrainer", model, self.adj_norm_func)
        given = {"save_dir": save_dir, "save_name": save_name, "save_after": save_after, "verbose": verbose}
        options = _train_options("AdvTrainer.train", given)
        view = self.view("transductive" if train_mode == "trasductive" else train_mode)
        more: dict[str, Any] = {}
        if self.attack is not None:
            settings = Settings("gcn", epochs=n_epoch)
            more = AdversarialTraining(settings=settings, attack=self.attack, threat=self.attack.threat()).options()
        with dropout_rate(model, dropout):
            fitted = fit(
                model.to(self.device),
                view.to(self.device),
                optimizer=self.optimizer,
                loss=self.loss,
                epochs=n_epoch,
                patience=self.patience,
                eval_every=eval_every,
                metric=self.eval_metric,
                scheduler=self.scheduler,
                generator=torch.Generator(self.device).manual_seed(self.seed),
                on_epoch=on_epoch,
                **more,
            )
        options.save(model)
        return fitted


class GraphTrainer:
    """Train and evaluate models of whole graphs under the old name.

    Args:
        dataset: One whose task is to classify graphs, such as ``CogDLDataset("mutag")``.
        optimizer: Over the parameters of the model that will be trained.
        loss: Cross-entropy.
        batch_size: Graphs of one step.
        options: ``lr_scheduler`` with ``lr_patience``, ``lr_factor`` and ``lr_min``; ``early_stop`` with
            ``early_stop_patience``; ``eval_metric``, ``device`` and ``seed``.
    """

    def __init__(
        self,
        dataset: Dataset,
        optimizer: torch.optim.Optimizer,
        loss: Any = functional.cross_entropy,
        batch_size: int | None = None,
        **options: Any,
    ) -> None:
        if dataset.task != "graph":
            raise DataError(f"'{dataset.name}' has nodes to classify; GraphTrainer is for graphs, use Trainer")
        if not is_cross_entropy(loss):
            raise DataError("GraphTrainer trains by cross-entropy; for another loss see grb.trainer.run_epochs")
        given = trainer_arguments("GraphTrainer", dict(options))
        self._trainer = Trainer(dataset, optimizer, **given)
        self.dataset, self.batch_size = dataset, batch_size
        self.eval_metric = self._trainer.eval_metric or eval_acc

    def train(
        self,
        model: nn.Module,
        n_epoch: int,
        save_dir: str | os.PathLike[str] | None = None,
        save_name: str | None = None,
        eval_every: int = 1,
        if_save: bool = True,
        save_after: int = 0,
        return_scores: bool = False,
        verbose: bool = False,
    ) -> Fit | Scores:
        """Train on the training graphs; the model ends with its best validation weights, in evaluation mode."""
        given = {"save_dir": save_dir, "save_name": save_name, "if_save": if_save, "save_after": save_after}
        options = _train_options("GraphTrainer.train", {**given, "verbose": verbose})
        trainer, scores = self._trainer, list[float]()

        def note(epoch: Epoch) -> None:
            if return_scores:
                scores.append(float(self.evaluate(model, self.dataset.index_train)))

        fitted = fit_graphs(
            model.to(trainer.device),
            self.dataset.defender_view().to(trainer.device),
            optimizer=trainer.optimizer,
            epochs=n_epoch,
            patience=trainer.patience,
            batch=self.batch_size,
            eval_every=eval_every,
            scheduler=trainer.scheduler,
            generator=torch.Generator(trainer.device).manual_seed(trainer.seed),
            on_epoch=note,
        )
        options.save(model)
        if not return_scores:
            return fitted
        values = [each.val_score for each in fitted.history if each.val_score is not None]
        return scores, values, 0.0 if fitted.best_score is None else fitted.best_score

    def inference(self, model: nn.Module) -> Tensor:
        """Logits of all graphs, [graphs, classes]."""
        return predict(model, self.dataset.graph.to(self._trainer.device)).cpu()

    def evaluate(self, model: nn.Module, index: Any = None) -> float:
        """Score on some graphs by their numbers; on all if not given."""
        logits, y = self.inference(model), self.dataset.labels
        if index is not None:
            rows = torch.as_tensor(index)
            logits, y = logits[rows], y[rows]
        return float(self.eval_metric(logits, y))


class AutoTrainer(Search):
    """The search for settings with THUDM/grb's signature and results.

    Differs from THUDM/grb: weights are drawn from the seed too, Optuna is seeded, and a trial is scored on what its training
    may see. :class:`grb.automl.AutoTrainer` gives the best model instead.

    Args:
        dataset: Dataset to tune on.
        model_class: Called with the proposed arguments, ``in_features`` and ``out_features``.
        eval_metric: Score to raise, such as ``eval_acc``.
        params_search: Function from a trial of Optuna to ``(model_params, train_params)``.
        n_trials: Number of trials.
        n_jobs: 1; trials run one after the other, so that they can be repeated.
        seed: Random seed of the search, of the weights and of the trainings.
        if_save: Whether trainings write what ``save_dir`` and ``save_name`` of their arguments name.
        device: Where to train.
        more: Arguments for every training, which win over those proposed.
    """

    def __init__(
        self,
        dataset: Dataset,
        model_class: Callable[..., nn.Module],
        eval_metric: Callable[..., Any] = eval_acc,
        params_search: Callable[[Any], tuple[Mapping[str, Any], Mapping[str, Any]]] | None = None,
        n_trials: int = 10,
        n_jobs: int = 1,
        seed: int = 42,
        if_save: bool = False,
        device: str = "cpu",
        **more: Any,
    ) -> None:
        if params_search is None:
            raise DataError("AutoTrainer needs params_search, a function from a trial to two dictionaries of arguments")
        if n_jobs != 1:
            say_once("AutoTrainer: n_jobs has no effect, trials run one after the other; `grb tune` and Dask run many")
        super().__init__(model_class, dataset, params_search, n_trials, seed)
        self.eval_metric, self.if_save, self.device, self.more = eval_metric, if_save, device, more

    def run(self) -> Any:
        """The best score, the arguments that gave it, and its validation scores epoch by epoch."""
        super().run()
        assert self.best_fit is not None
        scores = [each.val_score for each in self.best_fit.history if each.val_score is not None]
        model, training = self.best_params
        return self.best_score, {"model_params": model, "other_params": training}, scores

    def _trained(self, model: nn.Module, given: dict[str, Any]) -> Fit:
        given = {**given, **self.more}
        if isinstance(optimizer := given.get("optimizer"), torch.optim.Optimizer):
            raise DataError(
                f"optimizer is a ready {type(optimizer).__name__}, which cannot have the parameters of a new model; give its "
                "class, or a function of the parameters"
            )
        given = trainer_arguments("AutoTrainer", given)
        options = _train_options("AutoTrainer", given)
        fitted = super()._trained(model, {"eval_metric": self.eval_metric, "device": self.device, **given})
        if self.if_save:
            options.save(model)
        return fitted
