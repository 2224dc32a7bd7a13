# %% a surrogate, and edges at the test nodes
import numpy as np
import torch
from torch.nn import functional as F

import grb.utils as utils
from grb.dataset import Dataset
from grb.evaluator import metric
from grb.model.torch import GCN
from grb.trainer.trainer import Trainer

utils.fix_seed(0)
dataset = Dataset(name="synth-tiny", mode="full", feat_norm="arctan")
adj, features, labels = dataset.adj, dataset.features, dataset.labels
model_sur = GCN(dataset.num_features, dataset.num_classes, 16, n_layers=2)
trainer = Trainer(dataset=dataset, optimizer=torch.optim.Adam(model_sur.parameters(), lr=0.05), loss=F.cross_entropy)
trainer.train(model=model_sur, n_epoch=30, train_mode="inductive", verbose=False)
n_edge_mod = int(adj[dataset.test_mask].getnnz() * 0.1)


def changed(after):
    return int(abs(after - adj).sum()) // 2


# %% `DICE(n_edge_mod, ratio_delete, allow_isolate, device, verbose)`, `DICE.attack(adj, index_target, labels)`
# differs: labels of the targets are not used; any pair may be joined
from grb.attack.modification.dice import DICE

attack = DICE(n_edge_mod=n_edge_mod, ratio_delete=0.6, allow_isolate=True, device="cpu", verbose=False)
assert changed(attack.attack(adj, dataset.index_test, labels)) == n_edge_mod

# %% `RAND(n_edge_mod, allow_isolate, device, verbose)`, `RAND.attack(adj, index_target)`
# differs: an edge is flipped once
from grb.attack.modification.rand import RAND

attack = RAND(n_edge_mod=n_edge_mod, allow_isolate=True, device="cpu", verbose=False)
assert changed(attack.attack(adj=adj, index_target=dataset.index_test)) == n_edge_mod

# %% `FLIP(n_edge_mod, flip_type, mode, allow_isolate, device, verbose)`, `FLIP.attack(adj, index_target)`
# differs: an edge is flipped once
from grb.attack.modification.flip import FLIP

for flip_type, mode in (("deg", "descend"), ("bet", "ascend"), ("eigen", "descend")):
    attack = FLIP(
        n_edge_mod=n_edge_mod, flip_type=flip_type, mode=mode, allow_isolate=True, device="cpu", verbose=False
    )
    assert changed(attack.attack(adj, dataset.index_test)) == n_edge_mod

# %% `NEA(n_edge_mod, allow_isolate, device, verbose)`, `NEA.attack(adj, index_target)`
# differs: edges are added too
from grb.attack.modification.nea import NEA

attack = NEA(n_edge_mod=n_edge_mod, allow_isolate=True, device="cpu", verbose=False)
assert changed(attack.attack(adj, np.asarray(dataset.index_test))) == n_edge_mod

# %% `STACK(n_edge_mod, allow_isolate, device, verbose)`, `STACK.attack(adj, index_target)`
# differs: edges are added too
from grb.attack.modification.stack import STACK

attack = STACK(n_edge_mod=n_edge_mod, allow_isolate=True, device="cpu", verbose=False)
assert changed(attack.attack(adj, dataset.index_test)) == n_edge_mod

# %% `FGA(n_edge_mod, loss, allow_isolate, device, verbose)`, `FGA.attack(model, adj, features, index_target, feat_norm, adj_norm_func)`
# differs: an edge goes only if that raises the loss; without loss= it is the tanh-margin
from grb.attack.modification.fga import FGA

attack = FGA(n_edge_mod=n_edge_mod, loss=F.cross_entropy, allow_isolate=True, device="cpu", verbose=False)
adj_attack = attack.attack(
    model=model_sur,
    adj=adj,
    features=features,
    index_target=dataset.index_test,
    feat_norm=None,
    adj_norm_func=model_sur.adj_norm_func,
)
assert 0 < changed(adj_attack) <= n_edge_mod

# %% `PGD(epsilon, n_epoch, n_node_mod, n_edge_mod, feat_lim_min, feat_lim_max, allow_isolate, loss, ...)`
# differs: it changes features alone; edges=RAND() adds random deletions
from grb.attack.modification import PGD

attack = PGD(
    epsilon=0.05,
    n_epoch=5,
    n_node_mod=5,
    n_edge_mod=5,
    feat_lim_min=-1,
    feat_lim_max=1,
    allow_isolate=False,
    loss=F.cross_entropy,
    eval_metric=metric.eval_acc,
    early_stop=None,
    early_stop_patience=1000,
    early_stop_epsilon=1e-5,
    device="cpu",
    verbose=False,
)
adj_pgd, features_pgd = attack.attack(model_sur, adj, features, dataset.index_test)
assert int((features_pgd != features).any(1).sum()) <= 5 and changed(adj_pgd) == 0

# %% `PRBCD(epsilon, n_epoch, n_node_mod, n_edge_mod, ..., search_space_size, make_undirected, lr_factor, ...)`
# differs: features are attacked by PGD behind it; the step size does not grow from call to call
from grb.attack.modification.prbcd import PRBCD

attack = PRBCD(
    epsilon=0.05,
    n_epoch=5,
    n_node_mod=5,
    n_edge_mod=5,
    feat_lim_min=-1,
    feat_lim_max=1,
    n_epoch_resampling=None,
    allow_isolate=True,
    loss=None,
    eval_metric=metric.eval_acc,
    early_stop=None,
    early_stop_patience=1000,
    early_stop_epsilon=1e-5,
    max_final_samples=5,
    eps=1e-7,
    search_space_size=1000,
    make_undirected=True,
    lr_factor=100,
    device="cpu",
    verbose=False,
)
adj_prbcd, features_prbcd = attack.attack(
    model=model_sur,
    adj=adj,
    features=features,
    index_target=dataset.test_mask,
    feat_norm=None,
    adj_norm_func=model_sur.adj_norm_func,
)
assert 0 < changed(adj_prbcd) <= 5

# %% positional arguments: `DICE(n_edge_mod, ratio_delete)`, `FGA(n_edge_mod)`, `PRBCD(epsilon, n_epoch, ...)`
assert DICE(10, 0.5).ratio_delete == 0.5 and FGA(7).n_edge_mod == 7
assert PRBCD(0.01, 9, 0, 4, -1, 1).steps == 9

# %% `utils.evaluate(...)` under attack
score = utils.evaluate(
    model_sur,
    features=features,
    adj=adj_attack,
    labels=labels,
    feat_norm=model_sur.feat_norm,
    adj_norm_func=model_sur.adj_norm_func,
    mask=dataset.test_mask,
    device="cpu",
)

# %% `PRBCD(make_undirected=False)`
PRBCD(epsilon=0.01, n_epoch=5, n_node_mod=0, n_edge_mod=5, feat_lim_min=-1, feat_lim_max=1, make_undirected=False)
