"""Search for settings: the same number of trials for everybody, resumable, and the same result however often it stops."""

from __future__ import annotations

import hashlib
import inspect
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
import yaml

from grb.automl.space import Dimension, default_space, settings_of
from grb.dataset import Dataset
from grb.errors import DataError, GRBError, require
from grb.pipeline.spec import digest

if TYPE_CHECKING:
    from grb.dataset.view import View
    from grb.trainer import Epoch, Fit

Sampler = Literal["tpe", "random"]
# epochs between two looks at whether a training is worth going on
LOOK = 20


@dataclass(frozen=True)
class Trial:
    """One trial: the settings, their score (None if the trial was given up), and how it ended."""

    number: int
    values: Mapping[str, Any]
    score: float | None
    state: Literal["complete", "pruned", "failed"]
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class TuningResult:
    """What a search found.

    Args:
        name: The model, defense or attack.
        dataset: Name of the dataset.
        kind: ``models`` (the validation score is raised) or ``attacks`` (the fraction of kept predictions is lowered).
        trials: All trials in order.
        epochs: Number of epochs of every training, or of iterations of every attack; None for the paper's.
        against: The attack on validation nodes under which models were judged; empty for the clean score.
    """

    name: str
    dataset: str
    kind: Literal["models", "attacks"]
    trials: tuple[Trial, ...]
    epochs: int | None = None
    against: str = ""

    @property
    def best(self) -> Trial:
        """The complete trial with the best score."""
        done = [each for each in self.trials if each.score is not None and each.state == "complete"]
        if not done:
            why = next((each.error for each in self.trials if each.error), "allow more trials or epochs")
            raise DataError(f"no trial of '{self.name}' was finished: {why}")
        return (max if self.kind == "models" else min)(done, key=lambda each: each.score or 0.0)

    @property
    def settings(self) -> dict[str, Any]:
        """The best values as arguments of the method, with the epochs that they were tuned for."""
        steps = {} if self.epochs is None else {"epochs" if self.kind == "models" else "iterations": self.epochs}
        return {**settings_of(self.best.values), **steps}

    @property
    def so_far(self) -> tuple[float, ...]:
        """Best score after every trial; NaN before the first."""
        best, found = math.nan, []
        for each in self.trials:
            if each.score is not None and each.state == "complete":
                better = math.isnan(best) or (each.score > best if self.kind == "models" else each.score < best)
                best = each.score if better else best
            found.append(best)
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for JSON."""
        names = ("values", "score", "state", "seconds")
        trials = [{name: getattr(each, name) for name in names} for each in self.trials]
        return {
            "name": self.name,
            "dataset": self.dataset,
            **({"against": self.against} if self.against else {}),
            "score": self.best.score,
            "settings": self.settings,
            "trials": [
                {**each, "values": dict(each["values"]), "seconds": round(each["seconds"], 3)} for each in trials
            ],
        }


def tune(
    name: str,
    dataset: Dataset,
    *,
    kind: Literal["models", "attacks"] = "models",
    space: Mapping[str, Dimension] | None = None,
    trials: int = 50,
    epochs: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    sampler: Sampler = "tpe",
    prune: bool = True,
    storage: str | None = None,
    model: torch.nn.Module | None = None,
    against: str = "",
    on_trial: Callable[[Trial], None] = lambda trial: None,
) -> TuningResult:
    """Search for good settings of a model, a defense or an attack.

    A defense is judged by its validation score, or ``against`` an attack by what that leaves of the validation nodes; an attack
    by the fraction of test nodes that keep the label which ``model`` gives them on the clean graph: neither sees a test label.
    The n-th finished trial has its own random generator, so that a search that was stopped and resumed finds the same as an
    uninterrupted one.

    Args:
        name: Name of the method, as in ``grb train`` or ``grb attack``.
        dataset: Dataset to tune on.
        kind: ``models`` or ``attacks``.
        space: What to vary; a space that comes with grb if not given.
        trials: Number of trials in all, those of an earlier run with the same storage included.
        epochs: Number of epochs of a training, or of iterations of an attack; the paper's if not given.
        repeats: Number of trainings or attacks whose mean is the score.
        seed: Random seed of the search and of everything in it.
        sampler: ``tpe``, Optuna's tree-structured Parzen estimator, or ``random``.
        prune: Whether to give up trainings that stay below the median of the others.
        storage: Database to keep trials in, e.g. ``sqlite:///tune.db``; in memory if not given.
        model: The model that an attack is tuned on.
        against: Name of an attack on the validation nodes, white-box, for models that are to be robust: an injection within the
            limits of so many targets (:meth:`~grb.threat.Injection.inferred`), or changes of 5 % of the edges of the training
            and validation graph. No trial is given up then, because clean scores say little about robust ones.
        on_trial: Called after every trial.
    """
    optuna = require("optuna", extra="automl", what="tuning")
    if trials < 1 or repeats < 1:
        raise DataError(f"{trials} trials of {repeats} repeats make no search; at least one of each is needed")
    if kind == "attacks" and model is None:
        raise DataError("an attack is tuned on a model: give model=, the victim or a surrogate")
    if against:
        _check_against(kind, against, dataset)
        prune = False
    chosen = dict(space) if space is not None else default_space(kind, name)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    # another space, other epochs or other data are another search
    setting: dict[str, Any] = {
        "space": {key: asdict(each) for key, each in chosen.items()},
        "epochs": epochs,
        "repeats": repeats,
    }
    setting |= {"sampler": sampler, "prune": prune, "data": dataset.fingerprint(), "model": _weights(model)}
    setting |= {"against": against} if against else {}
    study = _opened(
        optuna,
        storage=storage,
        study_name=f"{dataset.name} {kind} {name} {seed} {digest(setting)[:16]}",
        direction="maximize" if kind == "models" else "minimize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=LOOK)
        if prune
        else optuna.pruners.NopPruner(),
        load_if_exists=True,
    )
    score = _Score(name, dataset, kind, epochs, repeats, seed, model, against, optuna)
    _discard_unfinished(study, optuna)
    while len(finished := _finished(study)) < trials:
        own = 1_000_003 * seed + len(finished)
        samplers = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
        study.sampler = samplers[sampler](seed=own)
        study.optimize(
            lambda trial: score(trial, chosen), n_trials=1, catch=(GRBError, RuntimeError, TypeError, ValueError)
        )
        on_trial(_trial(study.trials[-1], len(finished)))
    done = tuple(_trial(trial, number) for number, trial in enumerate(_finished(study)))
    return TuningResult(name, dataset.name, kind, done, epochs, against)


def _check_against(kind: str, against: str, dataset: Dataset) -> None:
    """Refuse an attack under which no model can be judged."""
    from grb.attack.build import build_attack

    if kind != "models":
        raise DataError(f"'{against}' judges models, but attacks are tuned here; leave it out")
    if dataset.task == "graph" or dataset.labels.dim() != 1:
        raise DataError(
            "tuning against an attack is for nodes with one label each, but the dataset has others; leave it out"
        )
    if getattr(build_attack(against, dataset.name), "objective", "evasion") != "evasion":
        raise DataError(f"'{against}' poisons training data; choose an attack on a trained model, for instance pgd")


def _opened(optuna: Any, *, storage: str | None, **options: Any) -> Any:
    try:
        return optuna.create_study(storage=storage, **options)
    except Exception as error:  # whatever a database says
        if storage is None:
            raise
        reason = " ".join(str(error).split())[:100]
        raise DataError(f"storage '{storage[:80]}' cannot be opened ({reason}); use one as sqlite:///tune.db") from None


def _weights(model: torch.nn.Module | None) -> str:
    """Return a hash of the weights."""
    if model is None:
        return ""
    parts = (value.detach().cpu().contiguous().numpy().tobytes() for value in model.state_dict().values())
    return hashlib.sha256(b"".join(parts)).hexdigest()


@dataclass(frozen=True, eq=False)
class _Score:
    """What a trial is worth."""

    name: str
    dataset: Dataset
    kind: str
    epochs: int | None
    repeats: int
    seed: int
    model: torch.nn.Module | None
    against: str
    optuna: Any = field(repr=False)

    def __call__(self, trial: Any, space: Mapping[str, Dimension]) -> float:
        values = {name: each.suggest(trial, name) for name, each in space.items()}
        one = self._trained if self.kind == "models" else self._attacked
        try:
            return self._mean(one, trial, values)
        except (GRBError, RuntimeError, TypeError, ValueError) as error:
            trial.set_user_attr("error", " ".join(str(error).split())[:300])
            raise

    def _mean(self, one: Callable[..., float], trial: Any, values: Mapping[str, Any]) -> float:
        return sum(one(trial, settings_of(values), self.seed + repeat) for repeat in range(self.repeats)) / self.repeats

    def _trained(self, trial: Any, given: Mapping[str, Any], seed: int) -> float:
        from grb.defense import build_defense

        def look(epoch: Epoch) -> None:
            if self.against or seed != self.seed or epoch.val_score is None or (epoch.number + 1) % LOOK:
                return
            trial.report(epoch.val_score, epoch.number + 1)
            if trial.should_prune():
                raise self.optuna.TrialPruned

        built = build_defense(self.name, self.dataset.name, epochs=self.epochs, on_epoch=look, **given)
        view = self.dataset.defender_view()
        model, fit = built.fit_with_history(view, seed=seed)
        if fit.best_score is None:
            raise DataError(f"dataset '{self.dataset.name}' has no validation nodes to tune with")
        return fit.best_score if not self.against else self._left(model, view, seed)

    def _left(self, model: torch.nn.Module, view: View, seed: int) -> float:
        """Accuracy on the validation nodes under the attack, in the graph of training and validation nodes."""
        from grb.attack.base import AttackContext, run_attack
        from grb.attack.build import build_attack, scenario_of
        from grb.model.base import EvaluationView, predict
        from grb.threat import Injection, Modification, Threat

        graph, targets = view.graph, view.val
        attack = build_attack(self.against, self.dataset.name)
        threat: Threat = Injection.inferred(len(targets), self.dataset.feature_range)
        if scenario_of(attack) == "modification":
            threat = Modification(edge_ratio=0.05)
        hidden = view.labels.clone()
        hidden[targets] = -1
        seen = replace(view, graph=replace(graph, y=hidden), val=targets[:0], targets=targets, inductive=False)
        edit = run_attack(attack, AttackContext(seen, threat, model, "white-box"), seed=seed).edit
        attacked = graph.apply(edit)
        said = predict(model, attacked, EvaluationView.of(view.train, attacked.n))[targets].argmax(1)
        return float((said == view.labels[targets]).double().mean())

    def _attacked(self, trial: Any, given: Mapping[str, Any], seed: int) -> float:
        from grb.attack.base import AttackContext, run_attack
        from grb.attack.build import build_attack, default_threat
        from grb.model.base import EvaluationView, predict

        del trial
        assert self.model is not None
        steps = {} if self.epochs is None else {"iterations": self.epochs}
        attack = build_attack(self.name, self.dataset.name, **steps, **given)
        context = AttackContext(
            self.dataset.attacker_view("full"), default_threat(attack, self.dataset, "full"), self.model
        )
        edit = run_attack(attack, context, seed=seed).edit
        targets = context.targets
        known = torch.cat([self.dataset.index_train, self.dataset.index_val])
        before, after = (
            predict(self.model, graph, EvaluationView.of(known, graph.n))[targets].argmax(1)
            for graph in (context.graph, context.graph.apply(edit))
        )
        return float((before == after).double().mean())


def _finished(study: Any) -> list[Any]:
    return [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED", "FAIL") and not _lost(trial)]


def _lost(trial: Any) -> bool:
    return bool(trial.user_attrs.get("lost"))


def _discard_unfinished(study: Any, optuna: Any) -> None:
    """Discard trials that a killed process left unfinished; they are repeated."""
    for trial in study.trials:
        if trial.state.name == "RUNNING":
            study._storage.set_trial_user_attr(trial._trial_id, "lost", True)
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)


def _trial(trial: Any, number: int) -> Trial:
    states: dict[str, Literal["complete", "pruned", "failed"]] = {"COMPLETE": "complete", "PRUNED": "pruned"}
    seconds = trial.duration.total_seconds() if trial.duration is not None else 0.0
    complete = trial.state.name == "COMPLETE"
    state = states.get(trial.state.name, "failed")
    error = str(trial.user_attrs.get("error", "")) if state == "failed" else ""
    return Trial(number, dict(trial.params), float(trial.value) if complete else None, state, seconds, error)


def recipe_of(found: list[TuningResult]) -> str:
    """Return a recipe with the settings that were found, as YAML for ``grb run``."""
    models = [each for each in found if each.kind == "models"]
    attacks = [each for each in found if each.kind == "attacks"]
    values: dict[str, Any] = {"title": "Tuned settings", "dataset": found[0].dataset}
    if models:
        values["defenses"] = [{"name": each.name, **each.settings} for each in models]
    values["attacks"] = [{"name": each.name, **each.settings} for each in attacks] or ["rnd", "fgsm", "tdgia"]
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    return text


class AutoTrainer:
    """The benchmark's own interface: a function proposes the arguments of a model and of its training, trial by trial.

    A trial is worth the best validation score of its training, measured on what that training may see: the sub-graph of
    training and validation nodes where it is inductive. (:class:`grb.trainer.AutoTrainer` has THUDM/grb's own signature.)

    Args:
        model_class: Called with the proposed arguments, ``in_features`` and ``out_features``.
        dataset: Dataset to tune on.
        params_search: Function from a trial of Optuna to ``(model_params, train_params)``; the second has ``lr``, ``optimizer``
            (called with the parameters) and arguments of :class:`~grb.trainer.Trainer` and of its ``train``.
        n_trials: Number of trials.
        seed: Random seed of the search, of the weights and of the trainings.
        storage: Database in which Optuna keeps the trials; every run begins a new study.
    """

    def __init__(
        self,
        model_class: Callable[..., torch.nn.Module],
        dataset: Dataset,
        params_search: Callable[[Any], tuple[Mapping[str, Any], Mapping[str, Any]]],
        n_trials: int = 50,
        seed: int = 0,
        storage: str | None = None,
    ) -> None:
        self.model_class, self.dataset, self.params_search = model_class, dataset, params_search
        self.n_trials, self.seed, self.storage = n_trials, seed, storage
        self.best_model: torch.nn.Module | None = None
        self.best_score = -math.inf
        self.best_params: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self.best_fit: Fit | None = None

    def run(self) -> torch.nn.Module:
        """Search, and return the best model; its score and arguments are ``best_score`` and ``best_params``."""
        optuna = require("optuna", extra="automl", what="tuning")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        start = time.perf_counter()
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=self.seed), storage=self.storage
        )
        study.optimize(self.objective, n_trials=self.n_trials)
        self.seconds = time.perf_counter() - start
        if self.best_model is None:
            raise DataError("no trial was finished")
        return self.best_model

    def objective(self, trial: Any) -> float:
        """Train what one trial proposes and return its best validation score."""
        model_params, train_params = self.params_search(trial)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            model = self.model_class(
                in_features=self.dataset.num_features, out_features=self.dataset.num_classes, **model_params
            )
        fit = self._trained(model, dict(train_params))
        if fit.best_score is None:
            raise DataError(f"dataset '{self.dataset.name}' has no validation nodes to tune with")
        if fit.best_score > self.best_score:
            self.best_model, self.best_score, self.best_fit = model, fit.best_score, fit
            self.best_params = (dict(model_params), dict(train_params))
        return fit.best_score

    def _trained(self, model: torch.nn.Module, given: dict[str, Any]) -> Fit:
        from grb.trainer.trainer import Trainer

        lr = given.pop("lr", 0.01)
        make = given.pop("optimizer", None) or (lambda parameters: torch.optim.Adam(parameters, lr=lr))
        for_training = {name: given.pop(name) for name in inspect.signature(Trainer.train).parameters if name in given}
        options = {"loss": torch.nn.functional.cross_entropy, "seed": self.seed, **given}
        return Trainer(self.dataset, make(model.parameters()), **options).train(model=model, **for_training)
