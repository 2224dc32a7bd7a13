# %% `AdvTrainer(dataset, optimizer, loss, feat_norm, attack, attack_mode, lr_scheduler, ..., early_stop, ..., eval_metric, device)`
import torch
from torch.nn import functional as F

import grb.utils as utils
from grb.attack.injection import FGSM
from grb.dataset import Dataset
from grb.defense import AdvTrainer
from grb.evaluator import metric
from grb.model.torch import GCN
from grb.utils.normalize import GCNAdjNorm

utils.fix_seed(0)
dataset = Dataset(name="synth-tiny", mode="full", feat_norm="arctan")
model = GCN(
    in_features=dataset.num_features,
    out_features=dataset.num_classes,
    hidden_features=8,
    n_layers=2,
    adj_norm_func=GCNAdjNorm,
    layer_norm=True,
    residual=False,
    dropout=0.5,
)
attack = FGSM(
    epsilon=0.01,
    n_epoch=3,
    n_inject_max=5,
    n_edge_max=5,
    feat_lim_min=-1,
    feat_lim_max=1,
    early_stop=False,
    device="cpu",
    verbose=False,
)
trainer = AdvTrainer(
    dataset=dataset,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.05),
    loss=F.cross_entropy,
    feat_norm=None,
    attack=attack,
    attack_mode="injection",
    lr_scheduler=False,
    lr_patience=100,
    lr_factor=0.75,
    lr_min=1e-5,
    early_stop=True,
    early_stop_patience=500,
    early_stop_epsilon=1e-5,
    eval_metric=metric.eval_acc,
    device="cpu",
)

# %% `AdvTrainer.train(model, n_epoch, save_dir, save_name, eval_every, save_after, train_mode, verbose)`
# differs: a warm-up, dropout stays on, targets are training nodes; inductive unless asked otherwise
trainer.train(
    model=model,
    n_epoch=6,
    save_dir="saved",
    save_name="model_at.pt",
    eval_every=1,
    save_after=0,
    train_mode="inductive",
    verbose=False,
)

# %% `AdvTrainer.train(train_mode='transductive')`
trainer.train(model=model, n_epoch=4, train_mode="transductive", verbose=False)

# %% `AdvTrainer.inference(model)`, `AdvTrainer.evaluate(model, mask)`
assert trainer.inference(model).shape[0] == dataset.num_nodes
assert 0 <= trainer.evaluate(model, dataset.test_mask) <= 1

# %% `AdvTrainer(attack_mode='modification')`
from grb.attack.modification import PRBCD

modified = AdvTrainer(
    dataset=dataset,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    loss=F.cross_entropy,
    attack=PRBCD(0.01, 2, 0, 5, -1, 1),
    attack_mode="modification",
)
modified.train(model=model, n_epoch=2, train_mode="inductive", verbose=False)

# %% `AdvTrainer(attack_mode=<not the attack's own>)`
AdvTrainer(
    dataset=dataset,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    loss=F.cross_entropy,
    attack=attack,
    attack_mode="modification",
)
