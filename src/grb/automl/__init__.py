"""Search for good settings of models, defenses and attacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb import _lazy

if TYPE_CHECKING:
    from grb.automl.search import AutoTrainer, Trial, TuningResult, recipe_of, tune
    from grb.automl.space import Dimension, default_space, space_of

__all__ = ["AutoTrainer", "Dimension", "Trial", "TuningResult", "default_space", "recipe_of", "space_of", "tune"]
__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **dict.fromkeys(("Dimension", "default_space", "space_of"), "grb.automl.space"),
        **dict.fromkeys(("AutoTrainer", "Trial", "TuningResult", "recipe_of", "tune"), "grb.automl.search"),
    },
)
