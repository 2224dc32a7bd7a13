"""Datasets: named ones, embedded ones, and your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb import _lazy

if TYPE_CHECKING:
    from grb.dataset.choices import Choices
    from grb.dataset.custom import CustomDataset
    from grb.dataset.dataset import Dataset
    from grb.dataset.load import load_dataset
    from grb.dataset.partition import DIFFICULTIES, Split
    from grb.dataset.view import View

__all__ = ["DIFFICULTIES", "Choices", "CustomDataset", "Dataset", "Split", "View", "load_dataset"]
__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "Choices": "grb.dataset.choices",
        "CustomDataset": "grb.dataset.custom",
        "Dataset": "grb.dataset.dataset",
        "load_dataset": "grb.dataset.load",
        **dict.fromkeys(("DIFFICULTIES", "Split"), "grb.dataset.partition"),
        "View": "grb.dataset.view",
    },
)
