"""Figure 3 of the GRB paper, left column, character for character."""

from __future__ import annotations

from typing import Any

import torch

from helpers import needs_grb_cora

LEFT_COLUMN = """\
import torch # pytorch backend
from grb.dataset import Dataset
from grb.model.torch import GCN
from grb.utils.trainer import Trainer

# Load data
dataset = Dataset(name='grb-cora', mode='easy',
                 feat_norm='arctan')

# Build model
model = GCN(in_features=dataset.num_features,
            out_features=dataset.num_classes,
            hidden_features=[64, 64])

# Training
adam = torch.optim.Adam(model.parameters(), lr=0.01)
trainer = Trainer(dataset=dataset, optimizer=adam,
                 loss=torch.nn.functional.nll_loss)
trainer.train(model=model, n_epoch=200, dropout=0.5,
             train_mode='inductive')
"""


@needs_grb_cora
def test_left_column_runs_as_printed() -> None:
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(compile(LEFT_COLUMN, "figure 3", "exec"), names)
    dataset, model, trainer = names["dataset"], names["model"], names["trainer"]
    assert trainer.evaluate(model) == trainer.evaluate(model, dataset.test_mask) > 0.75
    assert dataset.mode == "easy" and model.drop.p == 0.0 and not model.training
