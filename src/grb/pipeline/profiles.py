"""Taxonomy studies: datasets x perturbations x models x runs, as profile jobs on the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch

from grb.catalogue import canonical, resolve, spelling
from grb.dataset import Dataset, dataset_reference, load_dataset
from grb.dataset.raw_arrays import is_values
from grb.errors import DataError
from grb.model.profiling import ProfilingConfig, build_profiler
from grb.perturb import build_perturbation
from grb.pipeline.job import DataRef, Job
from grb.pipeline.profile_job import column, perturbation_name, profiling_method
from grb.pipeline.spec import Spec, jsonable
from grb.pipeline.study import DatasetSize, Study
from grb.taxonomy.profile import paper_perturbations
from grb.trainer.links import split_links
from grb.trainer.objective import Objective

# a split needs items for three parts
FEWEST = 10


@dataclass(frozen=True)
class Profiling:
    """A taxonomy study as it is asked for.

    Args:
        datasets: Names, files or import paths of datasets.
        perturbations: Specs; None for the paper's, 13 for collections and 11 for single graphs. The unperturbed dataset is
            always there.
        models: Names or import paths of profiling models.
        seeds: Random seeds of the runs: run r has split r, weights r and draw r of the perturbation.
        training: Changes of the models' settings, such as ``epochs`` or ``patience``.
        task: ``own`` for what the dataset's labels ask for, ``link`` to predict its edges.
        vary: What differs between runs: ``all``, or only the ``split`` (fold), the ``weights`` (and batches) or the ``draw`` of
            the perturbation, the others being those of run 0.
    """

    datasets: Sequence[str]
    perturbations: Sequence[Spec] | None = None
    models: Sequence[str] = ("gcn",)
    seeds: Sequence[int] = tuple(range(10))
    training: Mapping[str, Any] = field(default_factory=dict)
    task: Literal["own", "link"] = "own"
    vary: Literal["all", "split", "weights", "draw"] = "all"


def plan_profiles(asked: Profiling, *, threads: int = 1, data_dir: str | None = None) -> Study:
    """Plan the jobs of a taxonomy study; every name and parameter is checked here, before anything runs.

    Args:
        asked: Datasets, perturbations, models, seeds and training settings.
        threads: Number of torch threads of every job.
        data_dir: Directory to search for datasets before ``GRB_DATA``.
    """
    if not asked.datasets or not asked.models or not asked.seeds:
        raise DataError("a taxonomy study needs at least one dataset, one model and one seed")
    if min(asked.seeds) < 0 or len(set(asked.seeds)) != len(asked.seeds):
        raise DataError("the seeds of a taxonomy study are distinct numbers of at least 0")
    jobs: list[Job] = []
    sizes: dict[str, DatasetSize] = {}
    for name in asked.datasets:
        dataset = load_dataset(name, data_dir=data_dir)
        _check_dataset(dataset, asked.task)
        data = DataRef(dataset_reference(name, dataset), dataset.fingerprint(), data_dir=data_dir)
        sizes[data.dataset] = DatasetSize(
            dataset.num_nodes, dataset.num_edges, dataset.graph.num_features, dataset.graph.num_graphs
        )
        jobs += _jobs(asked, dataset, data, threads)
    # run by run, so that a shard makes whole profiles of few runs
    ordered = {job.key: job for job in sorted(jobs, key=lambda job: asked.seeds.index(job.seed))}
    return Study(f"profiles of {', '.join(sizes)}", ordered, tuple(ordered), sizes)


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
                jsonable(method),
                version=version,
                extra=({"perturbations": jsonable(built)} if built else {})
                | ({"task": asked.task} if asked.task != "own" else {})
                | ({"vary": asked.vary} if asked.vary != "all" else {}),
                threads=threads,
            )
            made += [replace(job, seed=seed) for seed in asked.seeds]
    return made


def _perturbations(asked: Sequence[Spec] | None, dataset: Dataset) -> list[Spec]:
    """The perturbations of one dataset: those asked for, or the paper's."""
    if asked is None:
        names = paper_perturbations(collection=dataset.graph.ptr is not None)
        return [Spec(canonical("perturbation", name)) for name in names]
    specs = [replace(spec, name=perturbation_name(spec.name)) for spec in asked]
    return list({column((spec,)): spec for spec in specs}.values())


def _check_model(method: ProfilingConfig, dataset: Dataset) -> None:
    """Made and thrown away: it refuses what the convolution does not take."""
    outputs = Objective.of(dataset.labels, dataset.num_classes).outputs
    build_profiler(replace(method, width=2), 1, outputs, pool=dataset.task == "graph", generator=torch.Generator())


def _check_dataset(dataset: Dataset, task: str) -> None:
    if task == "link":
        split_links(dataset.graph, 0)  # made and thrown away: it refuses collections and graphs with too few edges
        return
    if dataset.num_items < FEWEST:
        raise DataError(
            f"dataset '{dataset.name}' has {dataset.num_items} items, but at least {FEWEST} are needed for a split"
        )
    if dataset.num_classes < 2 and not is_values(dataset.labels):
        raise DataError(f"dataset '{dataset.name}' has one class, but AUROC needs at least two")
    if dataset.num_edges == 0:
        raise DataError(f"dataset '{dataset.name}' has no edges, so its structure cannot be perturbed")
