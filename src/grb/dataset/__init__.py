"""Datasets: named ones, embedded ones, and custom ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb import _lazy

if TYPE_CHECKING:
    from grb.dataset.cleaning import CleaningOptions
    from grb.dataset.dataset import Dataset
    from grb.dataset.facts import DatasetFacts, dataset_facts
    from grb.dataset.limits import constraints_of
    from grb.dataset.load import CustomDataset, load_dataset
    from grb.dataset.registry import DIFFICULTIES, dataset_reference
    from grb.dataset.splits import Split
    from grb.dataset.view import View

__all__ = [
    "DIFFICULTIES",
    "CleaningOptions",
    "CustomDataset",
    "Dataset",
    "DatasetFacts",
    "Split",
    "View",
    "constraints_of",
    "dataset_facts",
    "dataset_reference",
    "load_dataset",
]
__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "CleaningOptions": "grb.dataset.cleaning",
        "Dataset": "grb.dataset.dataset",
        **dict.fromkeys(("DatasetFacts", "dataset_facts"), "grb.dataset.facts"),
        "constraints_of": "grb.dataset.limits",
        **dict.fromkeys(("CustomDataset", "load_dataset"), "grb.dataset.load"),
        **dict.fromkeys(("DIFFICULTIES", "dataset_reference"), "grb.dataset.registry"),
        "Split": "grb.dataset.splits",
        "View": "grb.dataset.view",
        # of the papers' era
        **dict.fromkeys(("CogDLDataset", "GRB_SUPPORTED_DATASETS", "OGBDataset"), "grb.compat.datasets"),
    },
)
