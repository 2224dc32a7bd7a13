"""Jobs, the store, recipes, and the scheduler that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb import _lazy

if TYPE_CHECKING:
    from grb.pipeline.executor import Limits
    from grb.pipeline.job import DataRef, Job
    from grb.pipeline.plan import plan_study
    from grb.pipeline.recipe import Recipe, read_recipe, recipe_names
    from grb.pipeline.record import Record
    from grb.pipeline.results import boards, build_board, build_boards
    from grb.pipeline.scheduler import Event, Outcome, run
    from grb.pipeline.spec import Spec
    from grb.pipeline.store import Store
    from grb.pipeline.study import Study

_HOMES = {
    "executor": ("Limits",),
    "scheduler": ("Event", "Outcome", "run"),
    "job": ("DataRef", "Job"),
    "results": ("boards", "build_board", "build_boards"),
    "recipe": ("Recipe", "read_recipe", "recipe_names"),
    "spec": ("Spec",),
    "record": ("Record",),
    "store": ("Store",),
    "plan": ("plan_study",),
    "study": ("Study",),
}
__all__ = [
    "DataRef",
    "Event",
    "Job",
    "Limits",
    "Outcome",
    "Recipe",
    "Record",
    "Spec",
    "Store",
    "Study",
    "boards",
    "build_board",
    "build_boards",
    "plan_study",
    "read_recipe",
    "recipe_names",
    "run",
]
__getattr__, __dir__ = _lazy.attach(
    __name__, {name: f"grb.pipeline.{module}" for module, names in _HOMES.items() for name in names}
)
