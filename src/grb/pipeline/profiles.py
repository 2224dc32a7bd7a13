"""Taxonomy studies: datasets x perturbations x models x runs, as profile jobs on the store."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from grb.catalogue import canonical, resolve, spelling
from grb.dataset import Dataset, load_dataset
from grb.dataset.own import is_path
from grb.errors import DataError
from grb.model.profiling import ProfilingConfig, build_profiler
from grb.perturb import build_perturbation
from grb.pipeline.job import DataRef, Job
from grb.pipeline.profile_job import column, perturbation_name, profiling_method
from grb.pipeline.spec import Spec, plain
from grb.pipeline.store import Store
from grb.taxonomy.profile import ORIGINAL, PAPER_ORDER
from grb.trainer.objective import Objective

# the paper leaves them out where the data is one large graph
COLLECTIONS_ONLY = ("FullyConn", "FiedlerFrag")
# what the published code does, where it is not what the paper says
COMPAT = "gtaxogym"
# a split needs items for three parts
FEWEST = 10
# CPU seconds of an epoch per node and convolution, measured on ENZYMES; a guess for everything else
EPOCH = 4e-6


@dataclass(frozen=True)
class Profiling:
    """A taxonomy study as it is asked for.

    Args:
        datasets: Names.
        perturbations: Specs; None for the paper's, 13 for collections and 11 for single graphs. The unperturbed dataset is
            always there.
        models: Profiling models.
        seeds: Numbers of the runs: run r has split r, weights r and draw r of the perturbation.
        training: Changes of the models' settings, such as ``epochs`` or ``stop_after``.
    """

    datasets: Sequence[str]
    perturbations: Sequence[Spec] | None = None
    models: Sequence[str] = ("gcn",)
    seeds: Sequence[int] = tuple(range(10))
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProfileStudy:
    """All jobs of a taxonomy study, run by run, so that a part of them makes whole profiles of few runs."""

    jobs: Mapping[str, Job]
    nodes: Mapping[str, int]

    def shard(self, index: int, count: int) -> ProfileStudy:
        """Every ``count``-th job, beginning with 1."""
        if not (count >= 1 and 1 <= index <= count):
            raise DataError(f"the shard is {index}/{count}, but it must be from 1/{count} to {count}/{count}")
        return replace(self, jobs=dict(list(self.jobs.items())[index - 1 :: count]))

    def seconds(self, store: Store) -> dict[str, float]:
        """Estimated CPU seconds of every job that is not done: the median of the like in the store, or a guess by size."""
        known = _history(store)
        return {
            key: known.get((job.data.dataset, job.spec.name)) or self._guess(job)
            for key, job in self.jobs.items()
            if not store.has(key)
        }

    def _guess(self, job: Job) -> float:
        epochs = min(job.method.get("epochs", 300), 2 * job.method.get("stop_after", 10**9))
        return EPOCH * self.nodes[job.data.dataset] * job.method.get("depth", 5) * epochs


def _history(store: Store) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in store.records():
        if record.job.kind == "profile":
            found[record.job.data.dataset, record.job.spec.name].append(float(record.provenance["cpu_seconds"]))
    return {name: statistics.median(values) for name, values in found.items()}


def plan_profiles(asked: Profiling, *, threads: int = 1, data_dir: str | None = None) -> ProfileStudy:
    """The jobs of a taxonomy study; every name and parameter is checked here, before anything runs."""
    if not asked.datasets or not asked.models or not asked.seeds:
        raise DataError("a taxonomy study needs at least one dataset, one model and one seed")
    if min(asked.seeds) < 0 or len(set(asked.seeds)) != len(asked.seeds):
        raise DataError("the seeds of a taxonomy study are distinct numbers of at least 0")
    jobs: dict[str, Job] = {}
    nodes: dict[str, int] = {}
    for name in asked.datasets:
        dataset = load_dataset(name, data_dir=data_dir)
        _check_dataset(dataset)
        data = DataRef(_reference(name, dataset), dataset.fingerprint(), data_dir=data_dir)
        nodes[data.dataset] = dataset.num_nodes
        jobs |= {job.key: job for job in _jobs(asked, dataset, data, threads)}
    ordered = sorted(jobs.values(), key=lambda job: asked.seeds.index(job.seed))
    return ProfileStudy({job.key: job for job in ordered}, nodes)


def _reference(name: str, dataset: Dataset) -> str:
    """What a worker finds the dataset by: its name in the catalogue, code, or where its file is."""
    if is_path(name):
        return str(Path(name).absolute())
    return name if ":" in name else dataset.name


def _jobs(asked: Profiling, dataset: Dataset, data: DataRef, threads: int) -> list[Job]:
    chains: list[tuple[Spec, ...]] = [(), *((spec,) for spec in _perturbations(asked.perturbations, dataset))]
    made = []
    for model in asked.models:
        name = spelling("profiler", model)
        spec = Spec(name, {key: value for key, value in asked.training.items() if value is not None})
        method = profiling_method(spec, dataset)
        _check_model(method, dataset)
        for chain in chains:
            built = [build_perturbation(link.name, **link.params) for link in chain]
            version = 1 + sum(getattr(part, "version", 1) - 1 for part in (resolve("profiler", name), *built))
            job = Job(
                "profile",
                spec,
                replace(data, chain=chain),
                plain(method),
                version=version,
                extra={"perturbations": plain(built)} if built else {},
                threads=threads,
            )
            made += [replace(job, seed=seed) for seed in asked.seeds]
    return made


def _perturbations(asked: Sequence[Spec] | None, dataset: Dataset) -> list[Spec]:
    """Of a dataset: those asked for, or the paper's; without the unperturbed one, which is always there."""
    if asked is None:
        single = dataset.graph.ptr is None
        names = [name for name in PAPER_ORDER if not (single and name in COLLECTIONS_ONLY)]
        return [Spec(canonical("perturbation", name)) for name in names]
    specs = [replace(spec, name=perturbation_name(spec.name)) for spec in asked]
    return list({column((spec,)): spec for spec in specs}.values())


def _check_model(method: ProfilingConfig, dataset: Dataset) -> None:
    """Made and thrown away: it refuses what the convolution does not take."""
    outputs = Objective.of(dataset.labels, dataset.num_classes).outputs
    build_profiler(replace(method, width=2), 1, outputs, pool=dataset.task == "graph", generator=torch.Generator())


def _check_dataset(dataset: Dataset) -> None:
    if dataset.num_items < FEWEST:
        raise DataError(
            f"dataset '{dataset.name}' has {dataset.num_items} items, but at least {FEWEST} are needed for a split"
        )
    if dataset.num_classes < 2:
        raise DataError(f"dataset '{dataset.name}' has one class, but AUROC needs at least two to tell apart")
    if dataset.num_edges == 0:
        raise DataError(f"dataset '{dataset.name}' has no edges, so that its structure cannot be perturbed")


def comparable(dataset: Dataset) -> list[Spec]:
    """The perturbations under which a dataset can be compared with published results.

    FiedlerFrag was published by another definition. The published RandFtrs has the same numbers in every graph of a collection.
    """
    specs = [spec for spec in _perturbations(None, dataset) if spec.name != "fiedlerfrag"]
    if dataset.graph.ptr is None:
        return specs
    return [replace(spec, params={"compat": COMPAT}) if spec.name == "randftrs" else spec for spec in specs]


def parse_perturbation(text: str) -> Spec | None:
    """A perturbation from the command line: a name, or ``name@gtaxogym`` for what the published code does; None is none.

    >>> parse_perturbation("RandFtrs@gtaxogym").params
    {'compat': 'gtaxogym'}
    """
    name, _, variant = text.strip().partition("@")
    if name.lower() in (ORIGINAL, "original", "none"):
        return None
    return Spec(name, {"compat": variant} if variant else {})
