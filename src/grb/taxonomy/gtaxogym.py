"""Result files of GTaxoGym, the taxonomy paper's code: their names of datasets, perturbations and models, and their layout."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from grb.entries import find
from grb.errors import DataError
from grb.taxonomy.profile import ORIGINAL, PAPER_ORDER, Profiles, from_auroc

Row = dict[str, Any]

COLUMNS = ("dataset", "perturbation", "split", "score-auc")
"""Columns, in lower case, by which its aggregated result files are known."""
MODELS: Mapping[str, str] = {
    "gcn": "GCN",
    "gin": "GIN",
    "gin_small": "GIN-2L",
    "cheb": "ChebNet",
    "gatedgcn": "GatedGCN",
    "gcn2": "GCNII",
}
"""Models by the part of the file name that stands for them, as in ``graph_cheb_results.json``."""
TITLES: Mapping[str, str] = {
    "DD": "D&D",
    "MalNetTiny_LocalDegreeProfile": "MalNetTiny",
    "smallworld": "Small-World",
    "scalefree": "Scale-Free",
    "PPI_ppi": "PPI",
    "Amazon_Computers": "Am-Comp",
    "Amazon_Photo": "Am-Phot",
    "CitationFull_CiteSeer": "CF-CiteSr",
    "CitationFull_Cora": "CF-Cora",
    "CitationFull_Cora_ML": "CF-CoraML",
    "CitationFull_DBLP": "CF-DBLP",
    "CitationFull_PubMed": "CF-PubMed",
    "Coauthor_CS": "Coau-CS",
    "Coauthor_Physics": "Coau-Phy",
    "DeezerEurope": "DzEu",
    "FacebookPagePage": "FBPP",
    "GitHub": "Github",
    "LastFMAsia": "LFMA",
    "Twitch_DE": "Twitch-DE",
    "Twitch_EN": "Twitch-EN",
    "Twitch_ES": "Twitch-ES",
    "Twitch_PT": "Twitch-PT",
    "WebKB_Cornell": "WebKB-Cor",
    "WebKB_Texas": "WebKB-Tex",
    "WebKB_Wisconsin": "WebKB-Wis",
    "WikipediaNetwork_chameleon": "WikiNet-cham",
    "WikipediaNetwork_squirrel": "WikiNet-squir",
}
"""The paper's names of datasets that its code calls otherwise, without the loader in front."""
MEANS_ONLY = "means over runs that GTaxoGym's result files do not hold, so nothing is known about their spread"
_LOADERS = ("TUDataset_", "GNNBenchmarkDataset_")
_UNPERTURBED = ("nopert", "none")


def perturbation_title(name: str) -> str:
    """The paper's name of a perturbation that its code, or the catalogue, calls otherwise; others stay as they are.

    >>> perturbation_title("pert_WaveletBankFiltering-lo"), perturbation_title("NodeDegree"), perturbation_title("mine")
    ('LowPass', 'NodeDeg', 'mine')
    """
    bare = re.sub(r"^pert_", "", name.strip())
    if bare.lower() in _UNPERTURBED:
        return ORIGINAL
    found = find("perturbation", bare) or bare.lower()
    return next((known for known in PAPER_ORDER if known.lower() == found), name)


def dataset_title(name: str) -> str:
    """The paper's name of a dataset that its code calls ``loader-class_name``.

    >>> dataset_title("PyG-TUDataset_DD"), dataset_title("OGB_ogbg-molhiv"), dataset_title("PyG-Actor")
    ('D&D', 'ogbg-molhiv', 'Actor')
    """
    bare = re.sub(r"^(PyG-|OGB_|nx_)", "", name.strip())
    for loader in _LOADERS:
        bare = bare.removeprefix(loader)
    return TITLES.get(bare, bare)


def model_of(path: PurePath) -> str:
    """The model whose results a file holds, by its name; nothing if the name does not say.

    >>> model_of(PurePath("agg_results/graph_gin_small_results.json")), model_of(PurePath("node_results.json"))
    ('GIN-2L', 'GCN')
    """
    found = re.fullmatch(r"(?:graph|node)_?(.*?)(?:_v\d\w*)?_?results", path.stem)
    return "" if found is None else MODELS.get(found[1] or "gcn", found[1])


def is_gtaxogym(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether rows, with names in lower case, have the layout of GTaxoGym's aggregated results."""
    return bool(rows) and all(name in rows[0] for name in COLUMNS)


def to_profiles(rows: Sequence[Row], source: PurePath) -> Profiles:
    """Turn aggregated results into profiles: the means of the test split, which carry no uncertainty.

    Args:
        rows: Objects of the file, with names in lower case.
        source: The file, whose name says the model.
    """
    found: dict[str, dict[str, float]] = {}
    for number, row in enumerate(rows, 1):
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise DataError(f"result {number} of {source} has no {missing[0]}, which GTaxoGym's results have")
        if str(row["split"]).lower() != "test":
            continue
        dataset, name = dataset_title(str(row["dataset"])), perturbation_title(str(row["perturbation"]))
        own = found.setdefault(dataset, {})
        if name in own:
            raise DataError(f"{source} has two test results of {dataset} under {name}; keep one")
        own[name] = _score(row["score-auc"], source, dataset, name)
    if not found:
        raise DataError(f"{source} has no result of the test split, which is what a profile is made of")
    datasets = sorted(found)
    there = dict.fromkeys(name for own in found.values() for name in own if name != ORIGINAL)
    names = [*(name for name in PAPER_ORDER if name in there), *(name for name in there if name not in PAPER_ORDER)]
    if not names:
        raise DataError(f"{source} has results of unperturbed datasets only; a profile needs perturbed ones")
    table = np.array([[found[dataset].get(name, np.nan) for name in (ORIGINAL, *names)] for dataset in datasets])
    made = from_auroc(datasets, names, table[:, 0], table[:, 1:], model=model_of(source) or None)
    return replace(made, notes=(*made.notes, MEANS_ONLY))


def _score(value: Any, source: PurePath, dataset: str, name: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{source} has '{str(value)[:40]}' for {dataset} under {name}, but a number is needed")
    return float(value)
