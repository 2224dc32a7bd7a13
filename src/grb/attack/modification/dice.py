"""DICE: delete internally, connect externally."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from grb.attack.base import Scene
from grb.attack.modification.base import Ground, Limits, finished
from grb.attack.modification.picks import Uniform
from grb.attack.modification.scores import Labels, known_labels
from grb.errors import DataError
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class DICE(Limits):
    """Random edges inside a class go, random pairs between classes come; each has an end among the targets.

    Labels are the visible ones and, where hidden, what the model predicts on the clean graph; without a model they are
    passed on along the edges. Where one of both pools runs dry, the other one gets the rest of the budget.

    Args:
        ratio_delete: Share of the budget that is deleted, rounded down.

    Differs from THUDM/grb, which reads the labels of test nodes and joins the k-th target with node k alone.

    References:
        Waniek et al., *Hiding Individuals and Communities in a Social Network*, Nature Human Behaviour 2018.
    """

    ratio_delete: float = 0.6
    version = 1

    def __post_init__(self) -> None:
        if not 0 <= self.ratio_delete <= 1:
            raise DataError(f"ratio_delete is {self.ratio_delete}, but 0 to 1 is needed")

    def __call__(self, scene: Scene, *, generator: torch.Generator) -> GraphEdit:
        ground = Ground.of(scene)
        if ground.left <= 0 or ground.space.count == 0:
            return ground.edit
        labels = Labels(known_labels(scene))
        deleted = math.floor(self.ratio_delete * ground.left + 1e-9)
        ground = Uniform(deleted)(ground.only("drop"), labels, generator)
        missing = deleted - ground.edit.drop.shape[1]
        ground = Uniform()(ground.only("add"), labels, generator)
        if ground.left:  # also where edges were missing: an added one may let another go, where no node may be isolated
            missing = missing or -ground.left
            ground = Uniform()(ground.only("drop"), labels, generator)
        if missing:
            dry = "edges inside a class" if missing > 0 else "pairs between classes"
            scene.note(f"{abs(missing)} changes went to the other kind: there were too few {dry}")
        return finished(scene, ground)
