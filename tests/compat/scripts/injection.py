# %% a surrogate
import torch
from torch.nn import functional as F

import grb.utils as utils
from grb.dataset import Dataset
from grb.evaluator import metric
from grb.model.torch import GCN
from grb.trainer.trainer import Trainer
from grb.utils.normalize import GCNAdjNorm

utils.fix_seed(0)
dataset = Dataset(name="synth-tiny", mode="full", feat_norm="arctan")
adj, features, labels, test_mask = dataset.adj, dataset.features, dataset.labels, dataset.test_mask
model_sur = GCN(dataset.num_features, dataset.num_classes, 16, 2, F.relu, False, False, None, GCNAdjNorm, 0.5)
trainer = Trainer(
    dataset=dataset, optimizer=torch.optim.Adam(model_sur.parameters(), lr=0.05), loss=F.cross_entropy, feat_norm=None
)
trainer.train(model=model_sur, n_epoch=30, train_mode="inductive", verbose=False)
limits = dict(n_inject_max=10, n_edge_max=5, feat_lim_min=features.min(), feat_lim_max=features.max())

# %% `RAND(n_inject_max, n_edge_max, feat_lim_min, feat_lim_max, loss, eval_metric, device, verbose)`
# differs: the larger end of the range is the deviation of features
from grb.attack.injection import RAND

rand = RAND(
    n_inject_max=10,
    n_edge_max=5,
    feat_lim_min=-1,
    feat_lim_max=1,
    loss=F.cross_entropy,
    eval_metric=metric.eval_acc,
    device="cpu",
    verbose=True,
)

# %% `FGSM(epsilon, n_epoch, ..., loss, eval_metric, early_stop, early_stop_patience, early_stop_epsilon, verbose, device)`
# differs: the best step is kept, not the last
from grb.attack.injection import FGSM

fgsm = FGSM(
    epsilon=0.05,
    n_epoch=8,
    n_inject_max=10,
    n_edge_max=5,
    feat_lim_min=-1,
    feat_lim_max=1,
    loss=F.cross_entropy,
    eval_metric=metric.eval_acc,
    early_stop=True,
    early_stop_patience=10,
    early_stop_epsilon=1e-5,
    verbose=False,
    device="cpu",
)

# %% `PGD(epsilon, n_epoch, ...)`
# differs: the best step is kept, not the last
from grb.attack.injection import PGD

pgd = PGD(
    epsilon=0.05,
    n_epoch=8,
    n_inject_max=10,
    n_edge_max=5,
    feat_lim_min=-1,
    feat_lim_max=1,
    loss=F.cross_entropy,
    eval_metric=metric.eval_acc,
    early_stop=None,
    early_stop_patience=1000,
    early_stop_epsilon=1e-5,
    verbose=False,
    device="cpu",
)

# %% `SPEIT(lr, n_epoch, ..., inject_mode, ...)`
# differs: 'random-inter' and 'multi-layer' work
from grb.attack.injection import SPEIT

speit = SPEIT(
    lr=0.05,
    n_epoch=8,
    n_inject_max=10,
    n_edge_max=5,
    feat_lim_min=-1,
    feat_lim_max=1,
    loss=F.cross_entropy,
    eval_metric=metric.eval_acc,
    inject_mode="random",
    early_stop=None,
    early_stop_patience=1000,
    early_stop_epsilon=1e-5,
    verbose=False,
    device="cpu",
)

# %% `TDGIA(lr, n_epoch, ..., inject_mode, sequential_step, opt, ...)`
# differs: earlier batches go on being optimised; feat_lim_min counts
from grb.attack.injection import TDGIA

tdgia = TDGIA(
    lr=0.05,
    n_epoch=8,
    n_inject_max=10,
    n_edge_max=5,
    feat_lim_min=-1,
    feat_lim_max=1,
    loss=F.cross_entropy,
    eval_metric=metric.eval_acc,
    inject_mode="tdgia",
    sequential_step=0.2,
    opt="sin",
    early_stop=None,
    early_stop_patience=1000,
    early_stop_epsilon=1e-5,
    verbose=False,
    device="cpu",
)

# %% positional arguments
short = FGSM(0.05, 5, 10, 5, -1, 1)
assert (short.step_size, short.steps, short.n_inject_max, short.feat_lim_max) == (0.05, 5, 10, 1)

# %% limits from `features.min()` and `features.max()`
ranged = PGD(epsilon=0.05, n_epoch=5, **limits, device="cpu")
assert (ranged.feat_lim_min, ranged.feat_lim_max) == (float(features.min()), float(features.max()))

# %% `attack.attack(model, adj, features, target_mask, feat_norm, adj_norm_func)`
# differs: the edit is checked against the limits; seed=0 unless another is given
for attack in (fgsm, pgd, speit, tdgia):
    adj_attack, features_attack = attack.attack(
        model=model_sur,
        adj=adj,
        features=features,
        target_mask=test_mask,
        feat_norm=None,
        adj_norm_func=model_sur.adj_norm_func,
    )
    assert adj_attack.shape == (dataset.num_nodes + 10,) * 2 and features_attack.shape == (10, dataset.num_features)

# %% `RAND.attack(model, adj, features, target_mask, adj_norm_func)`
adj_random, features_random = rand.attack(
    model=model_sur, adj=adj, features=features, target_mask=test_mask, adj_norm_func=model_sur.adj_norm_func
)

# %% `utils.evaluate(...)` under attack
attacked = torch.cat([features, features_attack])
clean = utils.evaluate(model_sur, features=features, adj=adj, labels=labels, mask=test_mask)
after = utils.evaluate(
    model_sur,
    features=attacked,
    adj=adj_attack,
    labels=labels,
    adj_norm_func=model_sur.adj_norm_func,
    mask=test_mask,
    device="cpu",
)
assert after < clean

# %% `utils.save_features(features, file_dir, file_name)`
import numpy as np

utils.save_features(features=features_attack, file_dir="attacks", file_name="features.npy")
assert np.load("attacks/features.npy").shape == features_attack.shape

# %% `utils.save_adj(adj, file_dir, file_name='adj.pkl')`
import scipy.sparse as sp

utils.save_adj(adj=adj_attack, file_dir="attacks", file_name="adj.pkl")
assert (sp.load_npz("attacks/adj.npz") != adj_attack).nnz == 0

# %% `FGSM(loss=F.mse_loss)`
FGSM(epsilon=0.05, n_epoch=5, **limits, loss=F.mse_loss)

# %% `attack(feat_norm='arctan')`
fgsm.attack(model_sur, adj, features, test_mask, feat_norm="arctan")

# %% `attack(adj_norm_func=<not the model's own>)`
from grb.utils.normalize import SAGEAdjNorm

fgsm.attack(model_sur, adj, features, test_mask, adj_norm_func=SAGEAdjNorm)
