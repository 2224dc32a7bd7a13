"""Named, immutable datasets of nodes or graphs to classify, with the attributes that the GRB papers use."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grb import _lazy
from grb._paper_calls import PaperCalls
from grb.catalogue import canonical
from grb.dataset import cleaning, raw_arrays, readers, registry, storage
from grb.dataset.attributes import DatasetAttributes
from grb.dataset.cleaning import CleaningOptions
from grb.dataset.constructors import FromOthers
from grb.dataset.original_names import OriginalNames
from grb.dataset.raw_arrays import RawArrays
from grb.dataset.registry import SOURCES, Level, check_difficulty
from grb.dataset.splits import ByDegree, Scheme, Split, split_from_parts
from grb.dataset.targets import Targets, select_targets
from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import CSR, FeatureScale, Graph, convert
from grb.graph.validate import Mode as Strictness


class Dataset(FromOthers, DatasetAttributes, metaclass=PaperCalls):
    """A graph with features, labels and a split, by name or from custom arrays.

    ``task`` says what is classified: nodes, or the graphs of a collection. A split names nodes, and in a collection graphs.

    Args:
        name: A name that ``grb ls datasets`` shows.
        data_dir: Directory to search before ``$GRB_DATA`` and the cache: the one with the npz files, or a root of such.
        mode: Difficulty of the test nodes in ``test_mask`` and ``index_test``: easy, medium, hard or full.
        feat_norm: Feature normalisation (arctan, tanh, standardise, linear or None); the papers use arctan.

    >>> dataset = Dataset("synth-tiny", mode="easy")
    >>> dataset.synthetic, dataset.num_test == len(dataset.index_test)
    (True, True)
    """

    def __init__(
        self,
        name: str,
        data_dir: str | os.PathLike[str] | None = None,
        mode: str = "full",
        feat_norm: str | None = "arctan",
    ) -> None:
        if ":" in str(name):
            raise DataError(f"'{name}' is an import path; load_dataset takes those, Dataset takes catalogue names")
        name = canonical("dataset", name)
        raw = readers.read_named(name, data_dir)
        made = Dataset.from_raw(
            raw,
            mode=mode,
            feat_norm=feat_norm if raw.scheme is None else None,
            title=SOURCES[name].title if name in SOURCES else None,
            synthetic=name in registry.EMBEDDED,
        )
        self.__dict__.update(made.__dict__)

    def _set(
        self,
        name: str,
        raw: Graph,
        split: Split,
        notes: Sequence[str],
        *,
        mode: str = "full",
        feat_norm: str | None = None,
        title: str | None = None,
        task: Level = "node",
        scheme: Scheme | None = None,
        synthetic: bool = False,
        names: OriginalNames | None = None,
    ) -> None:
        self.name = name
        self.names = names or OriginalNames()
        self.title = title or name
        self.task = task
        self.scheme = scheme
        self.mode = check_difficulty(mode)
        self.synthetic = synthetic
        self.split = split
        self.notes = tuple(notes)
        if isinstance(raw.x, CSR):
            if feat_norm is not None:
                raise DataError(f"sparse features are kept as they are, but feat_norm is '{feat_norm}'; give None")
            self.feature_scale, self.graph = FeatureScale("none"), raw
        else:
            self.feature_scale = FeatureScale.fit(feat_norm, raw.x)
            self.graph = raw.with_features(self.feature_scale.apply(raw.x))
        self._check_labelled(split)
        self.num_classes = raw_arrays.count_classes(self.labels)
        self._frozen = True

    def _check_labelled(self, split: Split) -> None:
        if self.graph.ptr is None or self.task == "graph":  # else the split names graphs, but the labels are of nodes
            split.check_labelled(self.labels, self.task)

    def __setattr__(self, key: str, value: Any) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a Dataset never changes; make a new one instead of setting '{key}'")
        super().__setattr__(key, value)

    @classmethod
    def from_arrays(
        cls,
        adj: Any,
        features: Any,
        labels: Any,
        *,
        split: Mapping[str, Any] | None = None,
        name: str = "custom",
        mode: str = "full",
        feat_norm: str | None = None,
        seed: int = 0,
        strictness: Strictness = "canonicalise",
    ) -> Dataset:
        """A custom graph.

        Args:
            adj: A scipy sparse matrix or an :class:`~grb.graph.Adjacency`.
            features: Features, [n, d].
            labels: Classes [n], or a 0/1 matrix [n, labels].
            split: ``train``, ``val`` and any of ``easy``, ``medium``, ``hard``, ``full`` (or ``test``) as ids or boolean
                masks; without it the paper's splitting scheme is used with ``seed``.
            name: Name shown in tables.
            mode: As in :class:`Dataset`.
            feat_norm: As in :class:`Dataset`; features are left as they are by default.
            seed: Random seed of the split.
            strictness: ``canonicalise`` repairs self-loops, duplicates and directed edges and notes it in ``notes``;
                ``strict`` refuses them.
        """
        graph, notes = Graph.build(adj, features, labels, mode=strictness)
        return cls._make(graph, split, notes, name=name, mode=mode, feat_norm=feat_norm, seed=seed)

    @classmethod
    def from_npz(
        cls,
        directory: str | os.PathLike[str],
        *,
        name: str | None = None,
        mode: str = "full",
        feat_norm: str | None = "arctan",
    ) -> Dataset:
        """A directory in the layout of GRB: adj.npz (scipy CSR), features.npz, labels.npz (``data``) and index.npz."""
        raw = replace(storage.read_directory(directory), name=name or Path(directory).name)
        return cls.from_raw(raw, mode=mode, feat_norm=feat_norm)

    @classmethod
    def from_raw(
        cls,
        raw: RawArrays,
        *,
        mode: str = "full",
        feat_norm: str | None = None,
        title: str | None = None,
        synthetic: bool = False,
    ) -> Dataset:
        """A dataset from :class:`~grb.dataset.raw_arrays.RawArrays`, which the readers and the cleaning give."""
        graph, notes = raw.graph()
        split = split_from_parts(raw.splits[0], raw.n) if raw.scheme is None else raw.scheme(0)
        task: Level = "graph" if graph.ptr is not None and len(raw.y) == graph.num_graphs else "node"
        dataset = cls.__new__(cls)
        more: dict[str, Any] = {"title": title, "task": task, "scheme": raw.scheme, "synthetic": synthetic}
        more["names"] = raw.names
        dataset._set(raw.name, graph, split, notes, mode=mode, feat_norm=feat_norm, **more)
        return dataset

    @classmethod
    def of_graph(
        cls,
        graph: Graph,
        scheme: Scheme,
        *,
        name: str = "custom",
        title: str | None = None,
        task: Level = "node",
        notes: Sequence[str] = (),
        synthetic: bool = False,
    ) -> Dataset:
        """A checked graph or collection whose splits come from a scheme of :mod:`grb.dataset.splits`; the first is in use."""
        if graph.y is None:
            raise DataError("a dataset needs labels, but none were given")
        wanted = graph.num_graphs if task == "graph" else graph.n
        if len(graph.y) != wanted:
            raise DataError(f"the task is to classify {wanted} {task}s, but there are {len(graph.y)} labels")
        dataset = cls.__new__(cls)
        dataset._set(name, graph, scheme(0), notes, title=title, task=task, scheme=scheme, synthetic=synthetic)
        return dataset

    @classmethod
    def _make(
        cls,
        graph: Graph,
        split: Mapping[str, Any] | None,
        notes: list[str],
        *,
        name: str,
        mode: str,
        feat_norm: str | None,
        seed: int,
        names: OriginalNames | None = None,
    ) -> Dataset:
        if graph.y is None:
            raise DataError("a dataset needs labels, but none were given")
        if split is None:
            chosen = ByDegree(graph.adj.degrees.long(), torch.arange(graph.n), seed)(0)
            notes = [*notes, f"split by the paper's scheme with seed {seed}"]
        else:
            chosen = split_from_parts(split, graph.n)
        dataset = cls.__new__(cls)
        dataset._set(name, graph, chosen, notes, mode=mode, feat_norm=feat_norm, names=names)
        return dataset

    def defender_view(self) -> View:
        """Training and validation nodes, their edges and labels: the inductive defender never meets a test node.

        Where graphs are classified, the training and validation graphs; ids of the view are those of graphs then.
        """
        self._check_classes()
        if self.task == "graph":
            return self._known_graphs()
        self._check_single()
        nodes = torch.cat([self.split.train, self.split.val]).sort().values
        return View(
            graph=self.graph.subgraph(nodes),
            train=torch.searchsorted(nodes, self.split.train.sort().values),
            val=torch.searchsorted(nodes, self.split.val.sort().values),
            targets=torch.empty(0, dtype=torch.int64),
            nodes=nodes,
            num_classes=self.num_classes,
        )

    def transductive_view(self) -> View:
        """The whole graph with the labels of test nodes removed: test nodes are met in training, their labels are not."""
        return self._whole_graph(targets=torch.empty(0, dtype=torch.int64))

    def _known_graphs(self) -> View:
        train, val = (part.sort().values for part in (self.split.train, self.split.val))
        ids = torch.cat([train, val]).sort().values
        return View(
            graph=self.graph.select(ids),
            train=torch.searchsorted(ids, train),
            val=torch.searchsorted(ids, val),
            targets=torch.empty(0, dtype=torch.int64),
            nodes=ids,
            num_classes=self.num_classes,
        )

    def attacker_view(self, mode: str | None = None) -> View:
        """The whole graph, no label of any test node, and the nodes of the difficulty as targets.

        Where graphs are classified, all graphs, no label of any test graph, and the test graphs as targets.
        """
        return self._whole_graph(targets=self.test_ids(mode or self.mode))

    def _check_single(self) -> None:
        if self.graph.ptr is not None and self.task == "node":
            raise DataError(
                f"'{self.name}' is a collection of {self.graph.num_graphs} graphs with nodes to classify, but attacks and "
                "defenses work on the nodes of one graph, or on whole graphs; use `grb taxonomy` for it"
            )

    def _check_classes(self) -> None:
        if raw_arrays.is_values(self.labels):
            raise DataError(
                f"the labels of '{self.name}' are values to predict, but attacks and defenses are about classes; "
                "use `grb taxonomy` for it"
            )

    def _whole_graph(self, targets: Tensor) -> View:
        self._check_classes()
        self._check_single()
        seen = torch.cat([self.split.train, self.split.val])
        labels = torch.full_like(self.labels, -1)
        labels[seen] = self.labels[seen]
        graph = Graph(self.graph.adj, self.graph.x, labels, self.graph.ptr)
        nodes = torch.arange(self.num_items)
        return View(graph, self.split.train, self.split.val, targets, nodes, self.num_classes, inductive=False)

    def to_pyg(self) -> Any:
        """A torch_geometric ``Data`` with train_mask, val_mask and test_mask; of a collection the list of its graphs."""
        if self.graph.ptr is not None:
            return [convert.to_pyg(self.graph.graphs(i, i + 1)) for i in range(self.graph.num_graphs)]
        data = convert.to_pyg(self.graph)
        data.train_mask, data.val_mask, data.test_mask = self.train_mask, self.val_mask, self.test_mask
        return data

    def with_mode(self, mode: str) -> Dataset:
        """The same dataset with another difficulty."""
        other = Dataset.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__["mode"] = check_difficulty(mode)
        return other

    def with_targets(self, targets: Targets, mode: str | None = None) -> Dataset:
        """The same dataset with some of its test nodes as the only ones that are attacked and scored.

        Args:
            targets: Ids, a boolean mask, ``class=NAME`` or a feature column, see :func:`~grb.dataset.targets.select_targets`.
            mode: Difficulty to choose from; the dataset's own if None.
        """
        chosen = select_targets(self, targets, mode)
        other = Dataset.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.update(split=Split(self.split.train, self.split.val, {"full": chosen}), mode="full", scheme=None)
        return other

    def with_tests(self, test: Mapping[str, Tensor], reason: str) -> Dataset:
        """The same dataset with some of the test nodes of every difficulty as the only ones that are attacked and scored.

        Args:
            test: Ids by difficulty; others lose theirs.
            reason: Who chose them, for the refusal if nothing is left.
        """
        if self.graph.ptr is not None:
            raise DataError(f"targets are nodes of one graph, but '{self.name}' is a collection; leave targets out")
        if not test:
            raise DataError(f"targets '{reason[:40]}' choose none of the test nodes of '{self.name}'")
        for mode, ids in test.items():
            if not torch.isin(ids, self.test_ids(mode)).all():
                raise DataError(f"targets '{reason[:40]}' name a node that is no {mode} test node of '{self.name}'")
        other = Dataset.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.update(split=Split(self.split.train, self.split.val, dict(test)), scheme=None)
        if self.mode not in test:
            other.__dict__["mode"] = list(test)[-1]
        return other

    def with_split(self, number: int) -> Dataset:
        """The same dataset with another of its splits: predefined ones in turn, folds, or a random one of that seed."""
        if self.scheme is None:
            raise DataError(f"dataset '{self.name}' has one split only; datasets of the taxonomy have several")
        other = Dataset.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__["split"] = self.scheme(number)
        other._check_labelled(other.split)
        return other

    def with_difficulty(self, seed: int = 0) -> Dataset:
        """The same dataset with the paper's easy, medium and hard test nodes instead of its own split."""
        options = CleaningOptions(split="difficulty", seed=seed)
        return Dataset.from_raw(cleaning.clean(raw_arrays.from_dataset(self), options).arrays).with_mode(self.mode)

    def fingerprint(self) -> str:
        """sha256 of the graph with normalised features and of the split, or of the way in which splits are made."""
        digest = hashlib.sha256(self.graph.fingerprint().encode())
        if self.scheme is not None:
            digest.update(f"{self.task};{self.scheme.description}".encode())
            return digest.hexdigest()
        for ids in self.split.tensors():
            digest.update(f"{len(ids)};".encode() + ids.numpy().astype("<i8").tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        kind = ", synthetic" if self.synthetic else ""
        if self.graph.ptr is not None:
            kind = f", graphs={self.graph.num_graphs}, task={self.task!r}{kind}"
        return (
            f"Dataset({self.name!r}, mode={self.mode!r}, nodes={self.num_nodes}, edges={self.num_edges}, "
            f"features={self.num_features}, classes={self.num_classes}{kind})"
        )


# of the papers' era: names that THUDM/grb has here
__getattr__ = _lazy.attach(
    __name__,
    {
        "CustomDataset": "grb.dataset.load",
        **dict.fromkeys(("CogDLDataset", "OGBDataset", "feat_normalize", "splitting"), "grb.compat.datasets"),
    },
)[0]
