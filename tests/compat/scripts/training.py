# %% `Dataset(name, data_dir, mode, feat_norm, verbose, custom)`
# differs: the default of mode is 'full', it was 'easy'
import torch
from torch.nn import functional as F

import grb.utils as utils
from grb.dataset import Dataset

dataset = Dataset(name="synth-tiny", data_dir=None, mode="full", feat_norm="arctan", verbose=True, custom=False)
sizes = dict(in_features=dataset.num_features, out_features=dataset.num_classes, hidden_features=8)

# %% `GCN(..., activation, layer_norm, residual, feat_norm, adj_norm_func, dropout)`
# differs: no layer norm in front of the last convolution; the bias is added behind the sum over neighbours
from grb.model.torch import GCN
from grb.utils.normalize import GCNAdjNorm

model = GCN(
    **sizes,
    n_layers=3,
    activation=F.relu,
    layer_norm=True,
    residual=False,
    feat_norm=None,
    adj_norm_func=GCNAdjNorm,
    dropout=0.5,
)

# %% `APPNP(..., layer_norm, activation, edge_drop, alpha, k, feat_norm, adj_norm_func, dropout)`
# differs: it returns to the initial prediction; no relu on logits
from grb.model.torch import APPNP

appnp = APPNP(
    **sizes,
    n_layers=3,
    layer_norm=False,
    activation=F.relu,
    edge_drop=0.1,
    alpha=0.01,
    k=3,
    feat_norm=None,
    adj_norm_func=GCNAdjNorm,
    dropout=0.5,
)

# %% `GIN(..., n_mlp_layers, activation, layer_norm, batch_norm, eps, feat_norm, adj_norm_func, dropout)`
from grb.model.torch import GIN

gin = GIN(
    **sizes,
    n_layers=3,
    n_mlp_layers=2,
    activation=F.relu,
    layer_norm=False,
    batch_norm=False,
    eps=0.0,
    feat_norm=None,
    adj_norm_func=None,
    dropout=0.5,
)

# %% `GraphSAGE(..., activation, layer_norm, feat_norm, adj_norm_func, mu, dropout)`
from grb.model.torch import GraphSAGE
from grb.utils.normalize import SAGEAdjNorm

sage = GraphSAGE(
    **sizes,
    n_layers=3,
    activation=F.relu,
    layer_norm=False,
    feat_norm=None,
    adj_norm_func=SAGEAdjNorm,
    mu=2.0,
    dropout=0.5,
)

# %% `SGCN(..., activation, feat_norm, adj_norm_func, layer_norm, batch_norm, k, dropout)`
# differs: without batch_norm= its input has one
from grb.model.torch import SGCN

sgcn = SGCN(
    **sizes,
    n_layers=3,
    activation=torch.tanh,
    feat_norm=None,
    adj_norm_func=GCNAdjNorm,
    layer_norm=False,
    batch_norm=False,
    k=4,
    dropout=0.5,
)

# %% `TAGCN(..., k, activation, feat_norm, adj_norm_func, layer_norm, batch_norm, dropout)`
# differs: without activation= it has relu, it was leaky_relu
from grb.model.torch import TAGCN

tagcn = TAGCN(
    **sizes,
    n_layers=3,
    k=2,
    activation=F.leaky_relu,
    feat_norm=None,
    adj_norm_func=GCNAdjNorm,
    layer_norm=False,
    batch_norm=False,
    dropout=0.5,
)

# %% `MLP(..., activation, feat_norm, adj_norm_func, batch_norm, layer_norm, dropout)`
from grb.model.torch import MLP

mlp = MLP(
    **sizes,
    n_layers=3,
    activation=F.relu,
    feat_norm=None,
    adj_norm_func=None,
    batch_norm=False,
    layer_norm=False,
    dropout=0.5,
)

# %% `grb.model.torch.gat.GAT(..., n_heads, activation, layer_norm, ..., feat_dropout, attn_dropout, residual, dropout)`
# differs: without activation= it has elu, it was leaky_relu; it needs no DGL
from grb.model.torch.gat import GAT

gat = GAT(
    **sizes,
    n_layers=3,
    n_heads=2,
    activation=F.leaky_relu,
    layer_norm=False,
    feat_norm=None,
    adj_norm_func=None,
    feat_dropout=0.6,
    attn_dropout=0.6,
    residual=False,
    dropout=0.5,
)

# %% `GAT(num_heads)`
wide = GAT(**sizes, n_layers=2, num_heads=3)

# %% `grb.model.dgl.GRAND(..., s, k, temp, lam, feat_norm, adj_norm_func, node_dropout, input_dropout, hidden_dropout)`
# differs: it needs no DGL, and no weight decay
from grb.model.dgl import GRAND

grand = GRAND(
    **sizes,
    n_layers=2,
    s=2,
    k=3,
    temp=0.5,
    lam=1.0,
    feat_norm=None,
    adj_norm_func=None,
    node_dropout=0.5,
    input_dropout=0.0,
    hidden_dropout=0.5,
)

# %% `RobustGCN(..., feat_norm, adj_norm_func, dropout)`
# differs: no noise in evaluation; the KL term is part of the loss
from grb.defense import RobustGCN
from grb.utils.normalize import RobustGCNAdjNorm

robust = RobustGCN(**sizes, n_layers=2, feat_norm=None, adj_norm_func=RobustGCNAdjNorm, dropout=0.1)

# %% `GCNSVD(..., activation, layer_norm, feat_norm, adj_norm_func, residual, dropout, k)`
# differs: the low-rank graph is normalised, and computed once
from grb.defense.gcnsvd import GCNSVD

svd = GCNSVD(
    **sizes,
    n_layers=2,
    activation=F.relu,
    layer_norm=False,
    feat_norm=None,
    adj_norm_func=None,
    residual=False,
    dropout=0.1,
    k=10,
)

# %% `GCNGuard(..., activation, layer_norm, dropout, feat_norm, adj_norm_func, drop, attention)`
# differs: weights have gradients and the gate is trained
from grb.defense import GCNGuard

guard = GCNGuard(
    **sizes,
    n_layers=2,
    activation=F.relu,
    layer_norm=False,
    dropout=True,
    feat_norm=None,
    adj_norm_func=GCNAdjNorm,
    drop=False,
    attention=True,
)

# %% `GATGuard(..., n_heads, activation, layer_norm, feat_norm, adj_norm_func, drop, attention, dropout)`
# differs: attention is multiplied by the weights
from grb.defense import GATGuard

gat_guard = GATGuard(
    **sizes,
    n_layers=2,
    n_heads=2,
    activation=F.leaky_relu,
    layer_norm=False,
    feat_norm=None,
    adj_norm_func=GCNAdjNorm,
    drop=True,
    attention=True,
    dropout=0.1,
)

# %% `utils.get_num_params(model)`
assert utils.get_num_params(model) == model.num_parameters

# %% `utils.fix_seed(seed)`
# differs: it draws weights alone; attacks and trainings have seeds of their own
utils.fix_seed(seed=0)

# %% `Trainer(dataset, optimizer, loss, feat_norm, lr_scheduler, ..., early_stop, ..., eval_metric, device)`
# differs: patience and schedule watch the validation score, not its loss
from grb.evaluator import metric
from grb.trainer.trainer import Trainer

trainer = Trainer(
    dataset=dataset,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    loss=F.cross_entropy,
    feat_norm=None,
    lr_scheduler=True,
    lr_patience=5,
    lr_factor=0.75,
    lr_min=1e-5,
    early_stop=True,
    early_stop_patience=500,
    early_stop_epsilon=1e-5,
    eval_metric=metric.eval_acc,
    device="cpu",
)

# %% `Trainer.train(model, n_epoch, save_dir, save_name, eval_every, if_save, save_after, train_mode, return_scores, verbose)`
# differs: the default of train_mode is 'inductive'; the model ends with its best weights, which are saved as safetensors
train_scores, val_scores, best = trainer.train(
    model=model,
    n_epoch=8,
    save_dir="saved",
    save_name="model.pt",
    eval_every=1,
    if_save=True,
    save_after=0,
    train_mode="inductive",
    return_scores=True,
    verbose=False,
)
assert len(train_scores) == len(val_scores) == 8 and best == max(val_scores)

# %% `Trainer.train(train_mode='transductive')`
trainer.train(model=model, n_epoch=3, train_mode="transductive", verbose=False)

# %% `torch.load('model.pt')` of a saved model
# new: grb.load_model('model.pt')
import grb

loaded = grb.load_model("saved/model.pt")

# %% every model trains
for other in (appnp, gin, sage, sgcn, tagcn, mlp, gat, wide, grand, robust, svd, guard, gat_guard):
    own = Trainer(
        dataset=dataset, optimizer=torch.optim.Adam(other.parameters(), lr=0.01), loss=F.cross_entropy, feat_norm=None
    )
    own.train(model=other, n_epoch=1, train_mode="inductive", verbose=False)

# %% `Trainer.inference(model)`, `Trainer.evaluate(model, mask)`
logits = trainer.inference(model)
score = trainer.evaluate(model, dataset.test_mask)
assert logits.shape == (dataset.num_nodes, dataset.num_classes)

# %% `trainer.adj, trainer.features = adj_attack, features_attack`, then `Trainer.evaluate(model, mask)`
# differs: training on an assigned graph is refused
from grb.attack.modification.rand import RAND

trainer.adj, trainer.features = RAND(n_edge_mod=50).attack(dataset.adj, dataset.index_test), dataset.features
assert 0 <= trainer.evaluate(model, dataset.test_mask) <= 1 and not torch.equal(trainer.inference(model), logits)

# %% `Trainer(adj_norm_func)` of the first releases
# differs: it must be what the model does
first = Trainer(
    dataset=dataset,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    loss=F.nll_loss,
    adj_norm_func=GCNAdjNorm,
    lr_scheduler=False,
    early_stop=False,
    device="cpu",
)
first.train(model=model, n_epoch=2, eval_every=1, save_after=0, train_mode="inductive", dropout=0.5, verbose=False)


# %% a custom module with `forward(x, adj)` and `adj_norm_func`
class Mine(torch.nn.Module):
    adj_norm_func = staticmethod(GCNAdjNorm)
    model_type = "torch"
    feat_norm = None

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(dataset.num_features, dataset.num_classes)

    def forward(self, x, adj):
        return torch.spmm(adj, self.linear(x))


mine = Mine()
own = Trainer(
    dataset=dataset, optimizer=torch.optim.Adam(mine.parameters(), lr=0.05), loss=F.cross_entropy, feat_norm=None
)
own.train(model=mine, n_epoch=20, train_mode="inductive", save_dir="saved", save_name="mine.pt", verbose=False)
assert own.evaluate(mine, dataset.test_mask) > 0.4

# %% `GCN(feat_norm='arctan')`
GCN(**sizes, n_layers=2, feat_norm="arctan")

# %% `Trainer(feat_norm='arctan')`
Trainer(dataset=dataset, optimizer=torch.optim.Adam(model.parameters()), loss=F.cross_entropy, feat_norm="arctan")

# %% `GCN(activation=<a custom function>)`
GCN(**sizes, n_layers=2, activation=lambda h: h)

# %% `GIN(n_mlp_layers=3)`
GIN(**sizes, n_layers=2, n_mlp_layers=3)

# %% `TAGCN(batch_norm=True)`
TAGCN(**sizes, n_layers=2, k=2, batch_norm=True)
