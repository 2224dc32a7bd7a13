"""What ``grb info`` shows, as values that become tables or JSON."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from grb import catalogue
from grb._documentation import argument_docs
from grb.cli.ls import ABSENT, STATISTICS, where
from grb.dataset.registry import SOURCES
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset import Dataset

# the generator is set in training, not when a model is chosen
HIDDEN_ARGUMENTS = ("self", "generator")


def dataset(name: str) -> dict[str, Any]:
    """Statistics of a dataset; those that the paper prints if its files are not here."""
    place = where(name)
    if place == ABSENT:
        known = {**catalogue.preset("sizes").get(name, {}), **catalogue.preset("datasets").get(name, {})}
        return {
            "name": name,
            "synthetic": False,
            "summary": catalogue.entries("dataset")[name].description,
            "where": ABSENT if name in SOURCES else f"{ABSENT}; these are the paper's statistics",
            **{key: known.get(key) for key in STATISTICS},
            "feature_range": known.get("range"),
            "mean_degrees": known.get("degrees", {}),
        }
    from grb.dataset import load_dataset
    from grb.dataset.report import mean_degrees

    loaded = load_dataset(name)
    return {
        "name": name,
        "synthetic": loaded.synthetic,
        "summary": catalogue.entries("dataset")[name].description,
        "where": place,
        **_collection(loaded),
        "nodes": loaded.num_nodes,
        "edges": loaded.num_edges,
        "features": loaded.num_features,
        "classes": loaded.num_classes,
        **_structure(loaded),
        "fingerprint": loaded.fingerprint(),
        "notes": list(loaded.notes) or None,
        "split": _split(loaded),
        "mean_degrees": mean_degrees(loaded),
    }


def _collection(loaded: Dataset) -> dict[str, Any]:
    """What only datasets of the taxonomy have: a task, several graphs, several splits."""
    from grb.dataset.report import task_of

    if loaded.scheme is None:
        return {}
    facts: dict[str, Any] = {"task": task_of(loaded), "splits": loaded.scheme.description}
    return facts if loaded.graph.ptr is None else {**facts, "graphs": loaded.graph.num_graphs}


def _split(loaded: Dataset) -> dict[str, int]:
    test = {difficulty: len(ids) for difficulty, ids in loaded.split.test.items()}
    return {"all": loaded.num_items, "train": loaded.num_train, "val": loaded.num_val, **test}


def _structure(loaded: Dataset) -> dict[str, Any]:
    from grb.dataset.raw_arrays import is_values
    from grb.dataset.report import component_sizes, homophily
    from grb.taxonomy.complementarity import complementarity

    labels = loaded.labels
    degrees = loaded.graph.adj.degrees
    facts: dict[str, Any] = {"feature_range": [round(end, 6) for end in loaded.feature_range]}
    classes = labels.dim() == 1 and not is_values(labels)
    if classes and len(labels) == loaded.num_nodes:
        facts["homophily"] = homophily(loaded)
    if classes:
        facts["class_sizes"] = labels[labels >= 0].bincount(minlength=loaded.num_classes).tolist()
    facts["complementarity"] = round(complementarity(loaded.graph), 4)
    facts["largest_degree"] = int(degrees.max())
    facts["isolated_nodes"] = int((degrees == 0).sum())
    facts["components"] = len(component_sizes(loaded))
    return facts


def model(name: str) -> dict[str, Any]:
    """A model's arguments, the papers' settings for it, and its size with those of grb-cora."""
    from grb.model.build import build, settings
    from grb.names import ModelName

    parsed = ModelName.parse(name)
    base = parsed.architecture
    tables = catalogue.preset("models")
    variants = [f"{base}+ln"] if parsed.layer_norm else [base, f"{base}+ln"]
    presets = [
        {"dataset": place, "model": variant, **table[variant]}
        for place, table in tables.items()
        for variant in variants
        if place != "training" and variant in table
    ]
    chosen = settings(name, "grb-cora")
    size = catalogue.preset("datasets")["grb-cora"]
    try:
        made = build(chosen, size["features"], size["classes"])
        parameters = sum(parameter.numel() for parameter in made.parameters())
    except DataError:  # a model without settings of its own that does not take those of another
        parameters = None
    return {
        **anything("model", base),
        "name": chosen.model,
        "parameters_on_grb_cora": parameters,
        "training": {"optimiser": "Adam", "epochs": chosen.epochs, "patience": chosen.patience},
        "presets": presets,
    }


def anything(kind: str, name: str) -> dict[str, Any]:
    """Summary, code and arguments of any catalogued class or function."""
    entry = catalogue.entry(kind, name)
    target = catalogue.resolve(kind, name)
    doc = inspect.getdoc(target) or ""
    return {
        "name": name,
        "summary": entry.description,
        "code": entry.target,
        "about": _unmarked(doc.split("\n\n")[0]),
        "arguments": [each for each in _arguments(target) if kind != "attack" or each["name"] in _open(target)],
    }


def _open(attack: Any) -> list[str]:
    """Arguments of an attack that are not limits, which the threat model has."""
    from grb.attack.build import open_parameters

    return open_parameters(attack)


def _arguments(target: Any) -> list[dict[str, Any]]:
    meanings = {name: _unmarked(text) for name, text in argument_docs(target).items()}
    return [
        {"name": key, "default": _default(parameter), "meaning": meanings.get(key)}
        for key, parameter in inspect.signature(target).parameters.items()
        if key not in HIDDEN_ARGUMENTS
    ]


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return "needed"
    return getattr(parameter.default, "__name__", None) or repr(parameter.default)


def _unmarked(text: str) -> str:
    """Without the marks of reStructuredText, in one line."""
    return re.sub(r":\w+:`", "`", " ".join(text.split())).replace("``", "`")
