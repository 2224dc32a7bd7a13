"""When to stop: no better validation score for a while."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass
class Best:
    """The best score so far and the weights that had it.

    A score counts as better if it is higher, or equal with a lower loss: on a small validation set many epochs share
    the best accuracy, and the loss distinguishes them.
    """

    score: float = -math.inf
    loss: float = math.inf
    epoch: int = -1
    weights: dict[str, Tensor] = field(default_factory=dict)

    def update(self, epoch: int, score: float, loss: float, model: nn.Module) -> bool:
        """Take the model's weights if this epoch is better; NaN never is."""
        if not (score > self.score or (score == self.score and loss < self.loss)):
            return False
        self.epoch, self.score, self.loss = epoch, score, loss
        with torch.no_grad():
            state = model.state_dict()
            if not self.weights:
                self.weights = {name: value.clone() for name, value in state.items()}
            else:
                for name, value in state.items():
                    self.weights[name].copy_(value)
        return True

    def restore(self, model: nn.Module) -> None:
        """Give the model its best weights back, if there are any."""
        if self.weights:
            model.load_state_dict(self.weights)
