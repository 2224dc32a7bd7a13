"""What a worker does: turn one job into one record. Nothing here knows how jobs reach it."""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from grb.attack.auto.ensemble import GraphAutoAttack
from grb.attack.base import AttackContext, AttackError, Step, run_attack
from grb.attack.build import build_attack, steps_of
from grb.attack.modification.poisoning import poisoned
from grb.attack.targets import with_declared_targets
from grb.certificate import NotCertifiable, build_certificate, run_certificate
from grb.dataset import Dataset, View, load_dataset
from grb.defense import build_defense
from grb.entries import entries
from grb.errors import DataError, IntegrityError
from grb.evaluator.baseline import check_majority
from grb.evaluator.blind import Decisions, Question, check_answers, check_new_process
from grb.evaluator.certified import CertifiedOutcome, outcome_of
from grb.evaluator.measurement import TargetInfo, pack_bits
from grb.evaluator.new_process import NewProcess
from grb.evaluator.sanity_checks import check_model
from grb.evaluator.score_checks import Flag
from grb.evaluator.scoring import Prediction, is_third_party, score
from grb.evaluator.victim_process import VictimProcess
from grb.graph import Graph, GraphEdit
from grb.model.base import GraphModel
from grb.model.smoothed import Smoothed
from grb.names import ModelName, is_import_path
from grb.perturb import build_perturbation, remarks
from grb.pipeline.attack_job import stream_seed, trace, true_labels
from grb.pipeline.gate import check_edit, check_job, check_model_params, snapshot
from grb.pipeline.job import Job, TargetRule
from grb.pipeline.job_checks import check_inputs
from grb.pipeline.measure import dataset_info, defense_info, measure
from grb.pipeline.profile_job import check_fits, is_random, perturb, profile, profiling_method
from grb.pipeline.provenance import provenance
from grb.pipeline.record import NOT_COMPUTED, Record
from grb.pipeline.spec import Spec, digest, jsonable
from grb.pipeline.store import Store
from grb.threat import Threat, threat_from_dict
from grb.trainer import Epoch
from grb.trainer.checkpoint import check_logits, load_model, load_model_with_spec, save_model
from grb.trainer.links import split_links

Value = TypeVar("Value")
Answer = tuple[Question, Prediction, Decisions]


@contextmanager
def _contained() -> Iterator[None]:
    """Whatever a user's code prints is not taken for our output; a copy of this process that it forks ends here."""
    own = os.getpid()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if os.getpid() != own:
            os._exit(1)


class LRUCache(Generic[Value]):
    """The values used last; a worker meets the same dataset, model and edit in job after job."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made if it is not remembered."""
        if key in self.values:
            self.values.move_to_end(key)
        else:
            self.values[key] = make()
            while len(self.values) > self.size:
                self.values.popitem(last=False)
        return self.values[key]


class Worker:
    """Does jobs of one store, and remembers what they share.

    Args:
        store: Where inputs are read and artefacts written.
        on_epoch: Called after each epoch of a training.
        on_step: Called after each step of an attack.
    """

    def __init__(
        self,
        store: Store,
        *,
        on_epoch: Callable[[Epoch], None] | None = None,
        on_step: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self.store, self.on_epoch, self.on_step = store, on_epoch, on_step
        self.datasets: LRUCache[tuple[Dataset, str]] = LRUCache(2)
        self.aimed: LRUCache[tuple[Dataset, TargetInfo]] = LRUCache(4)
        self.models: LRUCache[nn.Module] = LRUCache(32)
        self.edits: LRUCache[GraphEdit] = LRUCache(32)
        self.clean: LRUCache[Answer] = LRUCache(64)
        self.records: LRUCache[Record] = LRUCache(256)
        self.perturbed: LRUCache[Graph] = LRUCache(4)
        self.as_exported: set[str] = set()
        self.new_process = NewProcess()

    def do(self, job: Job) -> Record:
        """Compute a job and write its record; a job that is done already is only read."""
        if self.store.has(job.key):
            return self.store.read(job.key)
        record = self.compute(job)
        self.store.write(record)
        return record

    def compute(self, job: Job) -> Record:
        """A job's record, whether or not the store has one; artefacts are written, the record is not."""
        check_job(job)
        for sentence in check_inputs(job, self._record):
            raise IntegrityError(f"{job.label} is not computed: {sentence}")
        torch.set_num_threads(job.threads)
        start, start_cpu = time.perf_counter(), time.process_time()
        work = {
            "fit": self._fit,
            "attack": self._attack,
            "score": self._score,
            "certify": self._certify,
            "profile": self._profile,
        }
        with _contained():
            result, objects = work[job.kind](job)
        spent = time.perf_counter() - start, time.process_time() - start_cpu
        if job.kind in ("score", "profile"):
            return Record(job.key, job, {}, objects, provenance(*spent), measurement=result)
        return Record(job.key, job, result, objects, provenance(*spent))

    def _fit(self, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
        dataset = self._dataset(job)
        if "sha256" in job.extra:
            return self._given(job, dataset)
        defense = build_defense(
            job.spec.name, dataset.name, device=job.device, on_epoch=self.on_epoch, **job.spec.params
        )
        _check_method(job, defense)
        if job.data.perturbations:
            raise DataError(
                "a fit of a recipe is on an attacked graph or on the clean one; profiles are of perturbed ones"
            )
        model, fit = defense.fit_with_history(self._training_view(job, dataset), seed=job.seed)
        name = ModelName.parse(job.spec.name)
        if isinstance(model, GraphModel) and name.has_import_path:
            model.name = name.base  # a class of the user's: that is how it is found again
        settings = defense.settings
        result = {
            "epochs": fit.epochs,
            "best_epoch": fit.best_epoch,
            "stopped": fit.stopped,
            "val_score": fit.best_score,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "settings": {
                "lr": settings.lr,
                "epochs": settings.epochs,
                "patience": settings.patience,
                **({} if settings.validate_every == 1 else {"validate_every": settings.validate_every}),
                **({} if settings.sampled_neighbours is None else {"sampled_neighbours": settings.sampled_neighbours}),
                **settings.params,
            },
        }
        meta: dict[str, Any] = {
            "dataset": dataset.name,
            "fingerprint": job.data.fingerprint,
            "seed": job.seed,
            **_split(job),
        }
        how: dict[str, Any] = {}
        if (
            not isinstance(model, GraphModel) and name.has_import_path
        ):  # wrapped: made again by the function that was named
            sizes = {"in_features": dataset.num_features, "out_features": dataset.num_classes}
            how = {"module": name.base, "params": {**sizes, **settings.params}}
        return result, {"weights": self.store.take(lambda path: save_model(model, path, **how, **meta), ".safetensors")}

    def _given(self, job: Job, dataset: Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
        """A model trained outside: made by the code that the recipe names, compared with what it said when it was exported."""
        name = ModelName.parse(job.spec.name).base
        if not is_import_path(name):  # no plan has it: a file is read because its code is trusted
            raise DataError(f"'{name}' has weights of a file, which are for package.module:function alone")
        with snapshot(str(job.extra["path"])) as taken:
            if taken.sha256 != job.extra["sha256"]:
                raise IntegrityError(f"{job.extra['path']} has changed since it was planned; plan again")
            model, spec = load_model_with_spec(taken.path, trusted=name)
            check_logits(taken.path, model, dataset)
        meta: dict[str, Any] = {"dataset": dataset.name, "fingerprint": job.data.fingerprint, "seed": job.seed}
        meta |= _split(job)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        result: dict[str, Any] = {
            "epochs": 0,
            "best_epoch": 0,
            "val_score": None,
            "parameters": parameters,
            "settings": {},
        }
        how: dict[str, Any] = {"module": name, "params": spec["params"]}
        return result, {"weights": self.store.take(lambda path: save_model(model, path, **how, **meta), ".safetensors")}

    def _training_view(self, job: Job, dataset: Dataset) -> View:
        """What the defender sees: the clean graph, or under poisoning the attacked one."""

        def view(of: Dataset) -> View:
            return of.transductive_view() if job.extra.get("train_mode") == "transductive" else of.defender_view()

        attacked = dataset
        for key in job.data.edits:
            attacked = poisoned(attacked, self._edit(key))
        if job.extra.get("validation") == "clean":
            return replace(view(attacked), validation_graph=view(dataset).graph)
        return view(attacked)

    def _attack(self, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
        dataset = self._dataset(job)
        attack = build_attack(job.spec.name, dataset.name, **job.spec.params)
        _check_method(job, attack)
        view = dataset.attacker_view(job.mode)
        limits = threat_from_dict(job.extra["threat"])
        if isinstance(attack, GraphAutoAttack):
            pool = [self._edit(key) for role, key in job.inputs.items() if role not in ("surrogate", "targets")]
            attack = replace(attack, pool=pool)
        aims = true_labels(job, dataset, attack)
        keys = int(job.inputs["surrogate"][:15], 16) if "surrogate" in job.inputs else 0  # those of its scores
        with self._attacked(job, limits) as model:
            context = AttackContext(
                view, limits, model, job.extra["knowledge"], self.on_step, true_labels=aims, keys=keys
            )
            done = run_attack(attack, context, seed=stream_seed(job))
        if isinstance(model, VictimProcess) and model.answered != done.queries:
            raise AttackError(
                f"the victim answered {model.answered} times, but the oracle was asked {done.queries} times"
            )
        # counted once more against limits that were made after the attack had ended
        budget = threat_from_dict(job.extra["threat"]).check(dataset.graph, done.edit, view.targets)
        result = {
            "budget": {name: float(value) for name, value in budget.items()},
            "steps": len(done.steps),
            "planned_steps": steps_of(attack) or 1,
            "loss": trace([step.loss for step in done.steps]),
            "kept": trace([step.accuracy for step in done.steps]),
            "seconds": round(done.seconds, 4),
            "cpu_seconds": round(done.cpu_seconds, 4),
            "notes": list(done.notes),
            "passes": {"forward": done.passes.forward, "backward": done.passes.backward},
        }
        if done.queries is not None:
            result["queries"] = done.queries
        if done.envelope is not None:
            result["trials"] = [trial.to_dict() for trial in done.trials]
            result["envelope"] = pack_bits(done.envelope)
        meta = {"dataset": dataset.name, "fingerprint": job.data.fingerprint, "attack": job.spec.name, "seed": job.seed}
        meta |= _split(job) | ({"labels": done.labels} if done.labels != "predicted" else {})
        return result, {"edit": self.store.take(lambda path: done.edit.save(path, **meta), ".npz")}

    @contextmanager
    def _attacked(self, job: Job, limits: Threat) -> Iterator[nn.Module | None]:
        """The model that an attack gets; in a process of its own if it was sent, or is of others, and may only be asked."""
        key = job.inputs.get("surrogate")
        if key is None:
            yield None
        elif job.extra["knowledge"] != "query" or not self._contained_victim(key):
            yield self.model(key)
        else:
            with self._weights(key) as (weights, trusted):
                if trusted is None:
                    check_model_params(load_model(weights).params, f"the model of record {key[:12]}")
                self.models.values.pop(key, None)  # nothing of it stays here
                victim = VictimProcess(weights, trusted, limits.queries or 0)
                try:
                    yield victim
                    victim.close()
                finally:
                    victim.end()

    def _contained_victim(self, key: str) -> bool:
        """Whether a model was sent, or is of somebody's code."""
        name = self._record(key).job.spec.name
        return name in NOT_COMPUTED or ModelName.parse(name).is_third_party

    def _score(self, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
        """Score a fresh copy of the model, the attacked graph before any other, and ask it again blindly."""
        (dataset, targets), key = self._aimed(job), job.inputs["model"]
        model, known = self.model(key), self._known(key, dataset)
        graph = self._changed_graph(job, dataset, model)
        # keys are the model's on every graph, so that a hash or a sample of it is one model
        asked = self._question(key, model, graph, known)
        generator = torch.Generator().manual_seed(int((job.key if job.data.chain else key)[:15], 16))
        after = asked.ask(model, dataset)
        own = None if job.data.chain else _kept(asked, after, model)
        clean = self.clean.get((key, job.threads), lambda: own or self._clean(key, dataset, known))
        flags = self._check(key, model, dataset, asked, after, generator, None if own else (clean[0], clean[2]))
        if own is not None and dataset.mode in dataset.split.test:
            flags += check_majority(after, dataset, dataset.test_ids(dataset.mode), dataset.mode)
        found = score(
            model,
            dataset,
            metrics=tuple(job.extra.get("metrics", ())),
            difficulties=[job.mode] if job.mode else None,
            before=clean[1],
            after=after,
        )
        made = measure(job, dataset, found, self._record, targets)
        return replace(made, flags=tuple(flags)).to_dict(), {}

    def _changed_graph(self, job: Job, dataset: Dataset, model: nn.Module) -> Graph:
        """The graph that a score is about: the dataset's with all perturbations and edits of the job's chain."""
        graph = dataset.graph
        for link in job.data.chain:
            changed = (
                perturb(dataset, graph, link, job.seed) if isinstance(link, Spec) else graph.apply(self._edit(link))
            )
            graph = check_fits(model, changed, link) if isinstance(link, Spec) else changed
        return graph

    def sampled(self, job: Job, mode: str, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Votes of a smoothed model on the graph of a score, [n, classes], with the ids of its targets and all labels.

        Args:
            job: A score.
            mode: Difficulty of the targets.
            samples: Number of votes.
            generator: Draws the changes.
        """
        dataset, model = self._dataset(job), self.model(job.inputs["model"])
        if not isinstance(model, Smoothed):
            raise IntegrityError(f"{job.label} is a score of a model that has no samples, but its certificate has")
        graph = self._changed_graph(job, dataset, model)
        return model.votes(graph.x, graph.adj, samples, generator), dataset.test_ids(mode), dataset.labels

    def _certify(self, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
        """Certify a fresh copy of the model with the keys by which it is scored; a refusal is a result too."""
        (dataset, targets), key = self._aimed(job), job.inputs["model"]
        certificate = build_certificate(job.spec.name, **job.spec.params)
        _check_method(job, certificate)
        victim = self._record(key)
        threat, mode = threat_from_dict(job.extra["threat"]), job.mode or "full"
        data, defense = dataset_info(job, dataset, targets), defense_info(victim)
        try:
            if victim.job.extra.get("train_mode") == "transductive":
                raise NotCertifiable(
                    "the model met the test nodes in training, and certificates are about nodes it did not"
                )
            # keys are the model's on every graph, as in a score
            found = run_certificate(certificate, self.model(key), dataset, threat, mode=mode, seed=int(key[:15], 16))
        except NotCertifiable as error:
            count = len(dataset.test_ids(mode))
            made = CertifiedOutcome(
                job.spec.name, data, defense, mode, threat.to_dict(), count, dict(job.spec.params), refusal=str(error)
            )
            return made.to_dict(), {}
        return outcome_of(found, data, defense, job.spec.params).to_dict(), {}

    def _check(
        self,
        key: str,
        model: nn.Module,
        dataset: Dataset,
        asked: Question,
        after: Prediction,
        generator: torch.Generator,
        clean: tuple[Question, Decisions] | None,
    ) -> list[Flag]:
        """What the checks of a model find that has just answered; those of its gradients are done on the clean graph."""
        name = self._record(key).job.spec.name
        third_party = is_third_party(model) or (name not in NOT_COMPUTED and self._contained_victim(key))
        flags = check_answers(
            model, lambda: self.model(key), dataset, asked, after, generator, clean, third_party=third_party
        )
        if third_party:
            with self._weights(key) as (weights, trusted):
                found = self.new_process.ask(weights, trusted, asked.graph, asked.view)
            flags += check_new_process(model, after, found, dataset)
        if clean is None and (third_party or name in NOT_COMPUTED):
            flags += check_model(self.model(key), dataset)
        return flags

    def _clean(self, key: str, dataset: Dataset, known: Tensor) -> Answer:
        """What a fresh copy says of the clean graph."""
        model = self.model(key)
        asked = self._question(key, model, dataset.graph, known)
        return _kept(asked, asked.ask(model, dataset), model)

    def _question(self, key: str, model: nn.Module, graph: Graph, known: Tensor) -> Question:
        """A question to a model with the keys of its own; one that was trained here on the whole graph may know its nodes."""
        asked = Question.of(graph, known, torch.Generator().manual_seed(int(key[:15], 16)))
        trained = self._record(key).job
        ours = trained.spec.name not in NOT_COMPUTED and trained.extra.get("train_mode") == "transductive"
        return asked.for_model(model) if ours else asked

    def _known(self, key: str, dataset: Dataset) -> Tensor:
        """Which nodes the model of a job may say that it knows, [n]: training and validation nodes.

        Under poisoning a transductive model was trained on the attacked graph and knows all of it. One that was trained before
        the attack saw the test nodes too, but they look like injected ones here: whoever could tell would only have to cut.
        """
        trained, ids = self._record(key).job, torch.cat([dataset.index_train, dataset.index_val])
        if trained.extra.get("train_mode") == "transductive" and trained.data.edits:
            new = sum(self._edit(edit).num_new for edit in trained.data.edits)
            return torch.ones(dataset.num_nodes + new, dtype=torch.bool)
        items = torch.zeros(dataset.num_items, dtype=torch.bool)
        items[ids] = True
        return items if dataset.graph.ptr is None else items[dataset.graph.owner]

    def _record(self, key: str) -> Record:
        return self.records.get(key, lambda: self.store.read(key))

    def _profile(self, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
        dataset = self._dataset(job)
        links = job.data.perturbations
        method = profiling_method(job.spec, dataset)
        _check_method(job, method)
        pairs = split_links(dataset.graph, job.number_of("split")) if job.extra.get("task") == "link" else None
        graph, notes = dataset.graph if pairs is None else pairs.message, []
        for link in links:
            start = graph
            named = (
                job.data.dataset,
                start.fingerprint() if start is not dataset.graph else "",
                digest(link.to_dict()),
            )
            drawn = job.number_of("draw") if is_random(link) else 0
            graph = self.perturbed.get((*named, drawn), partial(perturb, dataset, start, link, drawn))
            notes += remarks(build_perturbation(link.name, **link.params), start, graph)
        return profile(dataset, graph, job, method, notes, pairs).to_dict(), {}

    def _dataset(self, job: Job) -> Dataset:
        return self._aimed(job)[0]

    def _aimed(self, job: Job) -> tuple[Dataset, TargetInfo | None]:
        """The dataset of a job, and which of the test nodes it is about if these are not all of a difficulty."""
        ref = job.data

        def load() -> tuple[Dataset, str]:
            dataset = load_dataset(ref.dataset, data_dir=ref.data_dir)
            return dataset, dataset.fingerprint()

        dataset, found = self.datasets.get((ref.dataset, ref.data_dir), load)
        if found != ref.fingerprint:
            raise IntegrityError(
                f"dataset '{ref.dataset}' has fingerprint {found[:12]}, but the job was planned for "
                f"{ref.fingerprint[:12]}; plan again"
            )
        whole = dataset if ref.split is None else dataset.with_split(ref.split)
        if ref.targets is None:
            return whole, None
        rule, chooser = ref.targets, job.inputs.get("targets")
        return self.aimed.get(
            (ref.dataset, ref.data_dir, ref.split, rule, chooser), lambda: self._narrowed(whole, rule, chooser)
        )

    def _narrowed(self, whole: Dataset, rule: TargetRule, chooser: str | None) -> tuple[Dataset, TargetInfo]:
        """The dataset with the declared targets as its only test nodes, and which these are."""
        model = None if chooser is None else self.model(chooser)
        found = with_declared_targets(whole, rule.rule, model, seed=rule.seed)
        chosen = {
            mode: pack_bits(torch.isin(whole.test_ids(mode), ids).numpy()) for mode, ids in found.split.test.items()
        }
        return found, TargetInfo(rule.rule, rule.seed, chosen)

    def model(self, key: str) -> nn.Module:
        """Return a fresh copy of the trained model of a job, after its bytes were checked."""

        def load() -> nn.Module:
            with self._weights(key) as (weights, trusted):
                model = load_model(weights, trusted=trusted)
                job = self._record(key).job
                if job.sent_code and key not in self.as_exported:  # its code may be another by now
                    check_logits(weights, model, self._dataset(job))
                    self.as_exported.add(key)
            if trusted is None:
                check_model_params(model.params, f"the model of record {key[:12]}")
            return model

        kept = self.models.get(key, load)
        # copying a third-party object is calling its code, so it is read again
        return _ending_copies(load()) if is_third_party(kept) else deepcopy(kept)

    @contextmanager
    def _weights(self, key: str) -> Iterator[tuple[Path, str | None]]:
        """The file of a trained model, after its bytes were checked, and the code that it may name.

        The key of a planned job names its code, so that may be imported; what was sent names none, unless it was let in as
        trusted.
        """
        record = self.store.read(key)
        name = record.job.spec.name
        trusted = record.job.sent_code if name in NOT_COMPUTED else _trusted_code(ModelName.parse(name))
        with self.store.checked(record, "weights") as path:
            yield path, trusted

    def _edit(self, key: str) -> GraphEdit:
        """An edit of the store, counted once more against the threat model of its job: the store may come from anywhere."""

        def load() -> GraphEdit:
            record = self._record(key)
            with self.store.checked(record, "edit") as path:
                edit = GraphEdit.load(path)
            check_edit(edit, record.job, self._dataset(record.job))
            return edit

        return self.edits.get(key, load)


def _trusted_code(name: ModelName) -> str:
    """How a file names the class of a planned model: by its import path if it is not of the catalogue."""
    plugin = name.is_third_party and not name.has_import_path
    return entries("model")[name.base].target if plugin else name.architecture


def _check_method(job: Job, built: Any) -> None:
    """The presets of this version must be those that the job was planned with, or its key would lie."""
    if jsonable(built) != jsonable(job.method):
        raise IntegrityError(f"'{job.spec.name}' has other presets here than where the job was planned; plan again")


def _ending_copies(model: nn.Module) -> nn.Module:
    """End a copy of this process that the model's code forks at its next step: it would double with every pass."""
    own = os.getpid()

    def end(*_: Any) -> None:
        if os.getpid() != own:
            os._exit(1)

    model.register_forward_pre_hook(end)
    model.register_forward_hook(end)
    return model


def _kept(asked: Question, found: Prediction, model: nn.Module) -> Answer:
    """An answer without its logits, for a worker remembers many models."""
    return asked, replace(found, logits=found.logits[:0]), Decisions.of(found, model)


def _split(job: Job) -> dict[str, int]:
    return {} if job.data.split is None else {"split": job.data.split}
