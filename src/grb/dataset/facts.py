"""What a planner needs to know about a dataset, cached so that planning loads neither the dataset nor torch.

The cache is below ``$GRB_HOME/facts``. An entry holds for the files (path, size, modification time) it was made from and for
this code; anything else, a damaged entry included, is a miss. Who runs the plan loads the dataset and compares fingerprints.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb._version import __version__
from grb.dataset import registry
from grb.dataset.registry import SOURCES

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

PACKAGE = Path(__file__).parents[1]
# raised when the fields of DatasetFacts change
VERSION = 1


@dataclass(frozen=True)
class DatasetFacts:
    """Facts of a dataset that are known without loading it.

    Args:
        name: Name of the dataset.
        title: Name shown in tables.
        reference: What another process finds it by (:func:`~grb.dataset.dataset_reference`).
        fingerprint: As :meth:`Dataset.fingerprint`.
        task: What is classified: ``node`` or ``graph``.
        synthetic: Whether it is embedded and generated.
        num_nodes: Number of nodes.
        num_edges: Number of undirected edges.
        num_features: Number of feature columns.
        num_classes: Number of classes, or of labels if there are several per node.
        num_graphs: Number of graphs of a collection; None for a single graph.
        num_items: Number of nodes, or graphs of a collection, that splits divide.
        feature_range: Smallest and largest feature after normalisation.
        multi_label: Whether an item has several labels.
        num_train: Number of training items of the first split.
        num_val: Number of validation items of the first split.
        test_sizes: Number of test items of the first split by difficulty.
        num_splits: Number of different splits; None if they are drawn at random, without an end.
        numbered_splits: Whether :meth:`Dataset.with_split` gives further splits.
        splitting: Where the splits come from, in a few words.
    """

    name: str
    title: str
    reference: str
    fingerprint: str
    task: str
    synthetic: bool
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    num_graphs: int | None
    num_items: int
    feature_range: tuple[float, float]
    multi_label: bool
    num_train: int
    num_val: int
    test_sizes: Mapping[str, int]
    num_splits: int | None
    numbered_splits: bool
    splitting: str


def dataset_facts(name: str, data_dir: str | os.PathLike[str] | None = None) -> DatasetFacts:
    """Facts of a dataset, from the cache if its files are unchanged, else by loading it.

    Datasets that code makes (``package.module:function`` and plug-ins) are always loaded.

    Args:
        name: A catalogue name, ``package.module:function``, or the path of a folder or file.
        data_dir: Directory to search before ``$GRB_DATA`` and the cache.
    """
    reference = registry.dataset_reference(name)
    before = _identity(reference, data_dir)
    facts = None if before is None else _read(before)
    if facts is not None:
        return facts
    from grb.dataset.load import load_dataset

    facts = facts_of(load_dataset(name, data_dir=data_dir), reference)
    after = _identity(reference, data_dir)
    if after is not None and before in (None, after):  # None: it was downloaded meanwhile
        _write(after, facts)
    return facts


def facts_of(dataset: Dataset, reference: str) -> DatasetFacts:
    """Facts of a loaded dataset."""
    scheme = dataset.scheme
    return DatasetFacts(
        name=dataset.name,
        title=dataset.title,
        reference=reference,
        fingerprint=dataset.fingerprint(),
        task=dataset.task,
        synthetic=dataset.synthetic,
        num_nodes=dataset.num_nodes,
        num_edges=dataset.num_edges,
        num_features=dataset.num_features,
        num_classes=dataset.num_classes,
        num_graphs=None if dataset.graph.ptr is None else dataset.graph.num_graphs,
        num_items=dataset.num_items,
        feature_range=dataset.feature_range,
        multi_label=dataset.labels.dim() > 1,
        num_train=dataset.num_train,
        num_val=dataset.num_val,
        test_sizes={mode: len(ids) for mode, ids in dataset.split.test.items()},
        num_splits=1 if scheme is None else scheme.num_splits,
        numbered_splits=scheme is not None,
        splitting="one split, from its files" if scheme is None else scheme.description,
    )


def _identity(reference: str, data_dir: str | os.PathLike[str] | None) -> dict[str, Any] | None:
    """What an entry of the cache holds for; None if that cannot be known without loading."""
    files = _files(reference, data_dir)
    if files is None:
        return None
    code = [path for folder in ("dataset", "graph") for path in sorted((PACKAGE / folder).glob("*.py"))]
    try:
        stamps = {"files": _stamps(files), "code": hashlib.sha256(repr(_stamps(code)).encode()).hexdigest()}
    except OSError:
        return None
    return {"version": VERSION, "grb": __version__, "reference": reference, **stamps}


def _stamps(files: Iterable[Path]) -> list[list[Any]]:
    stats = ((path, path.stat()) for path in files)
    return [[str(path.absolute()), stat.st_size, stat.st_mtime_ns] for path, stat in stats]


def _files(reference: str, data_dir: str | os.PathLike[str] | None) -> list[Path] | None:
    """The files that a dataset is read from; empty for an embedded one, None if they are not known or not here."""
    if registry.is_path(reference):
        path = Path(reference)
        folder = (
            path.parent if path.name.endswith(registry.TEXT_SUFFIXES) else path
        )  # other tables are beside the edges
        return sorted(each for each in folder.iterdir() if each.is_file()) if folder.is_dir() else [path]
    if reference in registry.EMBEDDED:
        return []
    try:
        if reference in SOURCES:
            return registry.source_files(registry.find(reference, data_dir), SOURCES[reference])
        if ":" not in reference and registry.has_files(reference):
            directory = registry.find(reference, data_dir)
            return [directory / file for file in registry.FILES]
    except registry.MissingDataset:
        pass
    return None


def _entry(identity: Mapping[str, Any]) -> Path:
    """One file per dataset and place, so that a newer entry replaces the one that no longer holds."""
    key = repr([identity["reference"], [path for path, _, _ in identity["files"]]])
    return registry.home() / "facts" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _digest(identity: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([identity, facts], sort_keys=True).encode()).hexdigest()


def _read(identity: dict[str, Any]) -> DatasetFacts | None:
    """The facts of an entry that holds for the identity and is undamaged."""
    try:
        stored = json.loads(_entry(identity).read_text("utf-8"))
        facts = stored["facts"]
        names = {field.name for field in fields(DatasetFacts)}
        if stored["identity"] != identity or stored["sha256"] != _digest(identity, facts) or set(facts) != names:
            return None
        low, high = facts["feature_range"]
        return DatasetFacts(**{**facts, "feature_range": (low, high)})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write(identity: dict[str, Any], facts: DatasetFacts) -> None:
    """Write an entry whole or not at all; a cache that cannot be written is only slower."""
    values = asdict(facts)
    path = _entry(identity)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump({"identity": identity, "facts": values, "sha256": _digest(identity, values)}, stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(part, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
