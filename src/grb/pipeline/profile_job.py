"""What a profile job does: perturb a dataset, train a profiling model on it, and keep the AUROC of the best epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from torch import nn

from grb.catalogue import resolve, spelling
from grb.dataset import Dataset, registry
from grb.dataset.registry import SOURCES
from grb.errors import DataError
from grb.graph import Graph
from grb.model.base import check_features
from grb.model.profiling import ProfilingConfig, profiler
from grb.names import perturbation_parts
from grb.perturb import build_perturbation, perturbed
from grb.pipeline.job import Job
from grb.pipeline.spec import Spec, digest, jsonable
from grb.taxonomy.complementarity import complementarity
from grb.taxonomy.measurement import PerturbationInfo, ProfileMeasurement, link_title
from grb.taxonomy.profile import ORIGINAL
from grb.trainer.links import LinkSplit, fit_links
from grb.trainer.profile import Profiled, fit_profile

# points of the validation curve that a record keeps
TRACE = 50
# perturbations that put other features in the place of the dataset's
OTHER_FEATURES = ("randftrs", "nonodeftrs", "nodedeg")
# settings that came after the first records, which do not have them
LATER = ("neighbours",)
# graphs of these are large; the paper's batches of them are smaller
SMALL_BATCH = {"dd": 16, "reddit-binary": 16, "reddit-multi-5k": 16, "malnet-tiny": 16}


def profiling_method(spec: Spec, dataset: Dataset) -> ProfilingConfig:
    """A profiling model with the paper's settings for a dataset and the spec's changes."""
    collection = dataset.graph.ptr is not None
    source = SOURCES.get(dataset.name)
    params = {"batch": SMALL_BATCH.get(dataset.name), **spec.params} if collection else dict(spec.params)
    return profiler(spec.name, collection=collection, class_weights=source is not None and source.weighted, **params)


def is_random(spec: Spec) -> bool:
    """Whether a perturbation draws random numbers."""
    return build_perturbation(spec.name, **spec.params).random


def perturb(dataset: Dataset, graph: Graph, spec: Spec, seed: int) -> Graph:
    """A perturbed graph; its random numbers depend on the dataset, the perturbation and the seed, on nothing else."""
    made = build_perturbation(spec.name, **spec.params)
    drawn = digest({"dataset": dataset.name, "perturbation": spec.to_dict(), "seed": seed})
    return perturbed(made, graph, int(drawn[:15], 16), folder=registry.home() / "perturbed")


def corruption_spec(spec: Spec) -> Spec:
    """A perturbation under the catalogue's name; one that replaces the features is refused, for victims cannot read them."""
    name = perturbation_name(spec.name)
    replaced = [part for part in perturbation_parts(name) if part in OTHER_FEATURES]
    if replaced:
        raise DataError(
            f"'{replaced[0]}' leaves other features than a trained model knows; corruption takes perturbations that keep their "
            "number, such as LowPass, RandRewire or NoEdges"
        )
    build_perturbation(name, **spec.params)
    return replace(spec, name=name)


def perturbation_name(name: str) -> str:
    """The catalogue's spelling, also of several names joined by a plus."""
    return "+".join(perturbation_parts(name))


def check_fits(model: nn.Module, graph: Graph, spec: Spec) -> Graph:
    """Refuse a perturbation that leaves other features than a trained model knows."""
    try:
        check_features(model, graph)
    except DataError:
        raise DataError(
            f"'{spec.label}' leaves {graph.num_features} features, but the model was trained on others; a trained model can "
            "only be scored under perturbations that keep their number"
        ) from None
    return graph


def column(specs: tuple[Spec, ...]) -> str:
    """The name of a chain of perturbations in tables: the paper's, and whatever differs from its default."""
    if not specs:
        return ORIGINAL
    return " + ".join(_title(spec) for spec in specs)


def _title(spec: Spec) -> str:
    made = build_perturbation(spec.name, **spec.params)
    title = made.title
    changes = [str(value) if key == "compat" else f"{key}={value}" for key, value in sorted(spec.params.items())]
    return f"{title} ({', '.join(changes)})" if changes else title


def profile(
    dataset: Dataset,
    graph: Graph,
    job: Job,
    method: ProfilingConfig,
    notes: Sequence[str] = (),
    pairs: LinkSplit | None = None,
) -> ProfileMeasurement:
    """Train a profiling model on a perturbed dataset and measure it.

    Args:
        dataset: The unperturbed dataset.
        graph: Its graph after all perturbations of the job.
        job: The profile job; split, weights and perturbation of run r have the number r, its seed, unless it varies one alone.
        method: Model and training settings.
        notes: What the perturbations did other than asked for.
        pairs: The divided edges, where these are what is predicted; None where labels are.
    """
    if pairs is not None:
        done = fit_links(pairs, method, seed=job.number_of("weights"), perturb=lambda _: graph)
    else:
        split = dataset.split if dataset.scheme is None else dataset.with_split(job.number_of("split")).split
        seed = job.number_of("weights")
        done = fit_profile(graph, split, method, task=dataset.task, classes=dataset.num_classes, seed=seed)
    name = spelling("profiler", job.spec.name)
    return ProfileMeasurement(
        dataset=dataset.title if pairs is None else link_title(dataset.title),
        reference=job.data.dataset,
        fingerprint=job.data.fingerprint,
        task=dataset.task if pairs is None else "link",
        split=None if dataset.scheme is None and pairs is None else job.number_of("split"),
        perturbations=tuple(map(_info, job.data.perturbations)),
        perturbation=column(job.data.perturbations),
        model=name,
        model_version=getattr(resolve("profiler", name), "version", 1),
        seed=job.seed,
        training=training_of(method) | {key: job.extra[key] for key in ("vary",) if key in job.extra},
        auroc=done.auroc,
        val_auroc=done.val_auroc,
        best_epoch=done.best_epoch,
        epochs=done.epochs,
        stopped=done.stopped,
        parameters=done.parameters,
        curve=_curve(done),
        complementarity=None if job.data.perturbations else complementarity(dataset.graph),
        notes=tuple(notes),
    )


def training_of(method: ProfilingConfig) -> dict[str, Any]:
    """All settings of model and training, those of the convolution among them; ones that came later only where they are set."""
    settings = {each.name: jsonable(getattr(method, each.name)) for each in fields(method)}
    plain = {key: value for key, value in settings.items() if key not in ("model", "options", *LATER)}
    return {**plain, **{key: settings[key] for key in LATER if settings[key] is not None}, **settings["options"]}


def _info(spec: Spec) -> PerturbationInfo:
    built = build_perturbation(spec.name, **spec.params)
    return PerturbationInfo(spec.name, _title(spec), jsonable(spec.params), built.version)


def _curve(done: Profiled) -> tuple[float, ...]:
    """Validation AUROCs, the first and the last among them."""
    values = [point.val_auroc for point in done.history]
    if len(values) > TRACE:
        values = [values[round(step * (len(values) - 1) / (TRACE - 1))] for step in range(TRACE)]
    return tuple(round(value, 5) for value in values)
