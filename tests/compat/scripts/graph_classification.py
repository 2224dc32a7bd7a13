# %% `GCNGC(in_features, out_features, hidden_features, n_layers, activation, layer_norm, residual, feat_norm, adj_norm_func, dropout)`
# differs: a perceptron behind the sum over nodes
import numpy as np
import scipy.sparse as sp
import torch
from torch.nn import functional as F

import grb.utils as utils
from grb.dataset import CogDLDataset
from grb.evaluator import metric
from grb.model.torch import GCNGC
from grb.utils.normalize import GCNAdjNorm

utils.fix_seed(0)
dataset = CogDLDataset(name="synth-graphs", data_dir=None)
model = GCNGC(
    in_features=dataset.num_features,
    out_features=dataset.num_classes,
    hidden_features=8,
    n_layers=3,
    activation=F.relu,
    layer_norm=False,
    residual=False,
    feat_norm=None,
    adj_norm_func=GCNAdjNorm,
    dropout=0.5,
)
assert utils.get_num_params(model) > 0

# %% `GraphTrainer(dataset, optimizer, loss, batch_size, lr_scheduler, ..., early_stop, ..., eval_metric, device)`
from grb.trainer.trainer import GraphTrainer

trainer = GraphTrainer(
    dataset=dataset,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    loss=F.cross_entropy,
    batch_size=20,
    lr_scheduler=True,
    lr_patience=100,
    lr_factor=0.75,
    lr_min=1e-5,
    early_stop=True,
    early_stop_patience=50,
    early_stop_epsilon=1e-5,
    eval_metric=metric.eval_acc,
    device="cpu",
)

# %% `GraphTrainer.train(model, n_epoch, save_dir, save_name, eval_every, if_save, save_after, return_scores, verbose)`
# differs: the model ends with its best weights
trainer.train(
    model=model,
    n_epoch=3,
    save_dir="saved",
    save_name="graphs.pt",
    eval_every=1,
    if_save=True,
    save_after=0,
    return_scores=True,
    verbose=False,
)

# %% `GraphTrainer.inference(model)`, `GraphTrainer.evaluate(model, index)`
pred = trainer.inference(model)
score = trainer.evaluate(model, dataset.index_test)
assert pred.shape == (dataset.num_graphs, dataset.num_classes)

# %% `utils.build_adj(attr, edge_index, adj_type)`
graph = dataset.graphs[int(dataset.index_test[0])]
adj = utils.build_adj(attr=graph.edge_attr, edge_index=graph.edge_index, adj_type="csr")

# %% attacks on one graph
# differs: an edge is flipped once
from grb.attack.modification.flip import FLIP

adj_attack = FLIP(int(adj.getnnz() * 0.1), flip_type="deg", mode="descend", device="cpu").attack(
    adj, index_target=np.arange(adj.shape[0])
)

# %% `model(graph.x, utils.adj_preprocess(adj, device=...))`
# differs: give adj_norm_func=model.adj_norm_func, else the model sees an adjacency that it was not trained on
logits = model(graph.x, utils.adj_preprocess(adj_attack, device="cpu"))
right = model(graph.x, utils.adj_preprocess(adj, adj_norm_func=model.adj_norm_func, device="cpu"))
assert logits.shape == (1, dataset.num_classes)
assert torch.allclose(right.detach(), pred[int(dataset.index_test[0])], atol=1e-4)

# %% `model(x, adj, batch_index)`
pair = sp.block_diag([adj, adj]).tocsr()
numbers = torch.tensor([0, 1]).repeat_interleave(adj.shape[0])
two = model(torch.cat([graph.x, graph.x]), utils.adj_preprocess(pair, model.adj_norm_func), batch_index=numbers)
assert two.shape == (2, dataset.num_classes)

# %% `trainer.eval_metric(logits, labels)`
trainer.eval_metric(pred, dataset.labels)

# %% `GraphTrainer(loss=F.mse_loss)`
GraphTrainer(dataset=dataset, optimizer=torch.optim.Adam(model.parameters()), loss=F.mse_loss, batch_size=20)
