# %% models
import numpy as np
import torch
from torch.nn import functional as F

import grb.utils as utils
from grb.attack.injection import RAND
from grb.dataset import Dataset
from grb.model.torch import GCN, MLP
from grb.trainer.trainer import Trainer

utils.fix_seed(0)
dataset = Dataset(name="synth-tiny", mode="full", feat_norm="arctan")
models = {
    "gcn": GCN(dataset.num_features, dataset.num_classes, [8]),
    "mlp": MLP(dataset.num_features, dataset.num_classes, [8]),
}
for name, model in models.items():
    trainer = Trainer(dataset, torch.optim.Adam(model.parameters(), lr=0.05), F.cross_entropy)
    trainer.train(model, 10, save_dir="saved", save_name=f"{name}.pt", verbose=False)
attack = RAND(5, 5, -1, 1)
adj_attack, features_attack = attack.attack(model, dataset.adj, dataset.features, dataset.test_mask, None)
attacked = torch.cat([dataset.features, features_attack])

# %% `AttackEvaluator(dataset, build_model, device)`
from grb.evaluator import AttackEvaluator

evaluator = AttackEvaluator(dataset=dataset, build_model=None, device="cpu")

# %% `AttackEvaluator.eval_attack(model_dict, adj_attack, features_attack, verbose)`
# differs: the original graph must be unchanged in it
found = evaluator.eval_attack(
    model_dict={"gcn": "saved/gcn.pt", "mlp": "saved/mlp.pt"},
    adj_attack=adj_attack,
    features_attack=attacked,
    verbose=False,
)
assert set(found) == {"gcn", "mlp", "average", "3-max", "weighted"}

# %% `AttackEvaluator.eval(model, adj, features, adj_norm_func)`
score = evaluator.eval(
    model=models["gcn"], adj=adj_attack, features=attacked, adj_norm_func=models["gcn"].adj_norm_func
)
assert abs(score - found["gcn"]) < 1e-6

# %% `AttackEvaluator.eval_metric(test_score_sorted, metric_type, order)`
weighted = evaluator.eval_metric(test_score_sorted=[0.5, 1.0], metric_type="polynomial", order="a")
assert abs(weighted - 0.9) < 1e-9

# %% `utils.inference(model, features, adj, feat_norm, adj_norm_func, device)`
# differs: no gradients are kept
pred = utils.inference(
    models["gcn"],
    features=dataset.features,
    adj=dataset.adj,
    feat_norm=None,
    adj_norm_func=models["gcn"].adj_norm_func,
    device="cpu",
)

# %% `utils.evaluate(model, features, adj, labels, feat_norm, adj_norm_func, eval_metric, mask, device)`
from grb.evaluator import metric

score = utils.evaluate(
    models["gcn"],
    features=dataset.features,
    adj=dataset.adj,
    labels=dataset.labels,
    feat_norm=None,
    adj_norm_func=None,
    eval_metric=metric.eval_acc,
    mask=dataset.test_mask,
    device="cpu",
)

# %% `metric.eval_acc(pred, labels, mask)`
from grb.evaluator.metric import (
    eval_acc,
    eval_f1multilabel,
    eval_rocauc,
    get_weights_arithmetic,
    get_weights_polynomial,
)

assert abs(float(eval_acc(pred=pred, labels=dataset.labels, mask=dataset.test_mask)) - score) < 1e-9

# %% `metric.eval_rocauc(pred, labels, mask)`, `metric.eval_f1multilabel(pred, labels, mask)`
# differs: tied scores share their rank; the input is not overwritten
truth = F.one_hot(dataset.labels, dataset.num_classes)
values = (
    eval_rocauc(pred=pred, labels=truth, mask=dataset.test_mask),
    eval_f1multilabel(pred=pred.softmax(1), labels=truth, mask=None),
)

# %% `metric.get_weights_polynomial(n, p, order)`, `metric.get_weights_arithmetic(n, w_1, order)`
assert np.isclose(sum(get_weights_polynomial(n=5, p=2, order="a")), 1) and np.isclose(
    sum(get_weights_arithmetic(n=5, w_1=0.005, order="d")), 1
)

# %% `utils.adj_preprocess(adj, adj_norm_func, mask, model_type, device)`
# differs: a sub-graph is normalised by its own degrees
from grb.utils.normalize import GCNAdjNorm, RobustGCNAdjNorm, SAGEAdjNorm, SPARSEAdjNorm, feature_normalize

prepared = utils.adj_preprocess(
    adj=dataset.adj, adj_norm_func=GCNAdjNorm, mask=dataset.train_mask, model_type="torch", device="cpu"
)
assert prepared.shape == (dataset.num_train,) * 2

# %% `GCNAdjNorm(adj, order)`, `SAGEAdjNorm(adj, order)`, `SPARSEAdjNorm(adj, order)`, `RobustGCNAdjNorm(adj)`
# differs: self-loops of the input do not count twice
mean, variance = RobustGCNAdjNorm(adj=dataset.adj)
assert np.allclose(SAGEAdjNorm(adj=dataset.adj, order=-1).sum(1), 1)
assert abs(GCNAdjNorm(adj=dataset.adj, order=-0.5) - SPARSEAdjNorm(adj=dataset.adj, order=-0.5)).max() == 0

# %% `normalize.feature_normalize(features)`
feature_normalize(features=dataset.features.abs())

# %% `utils.adj_to_tensor(adj)`, `utils.feat_preprocess(features, feat_norm, device)`, `utils.label_preprocess(labels, device)`
assert utils.adj_to_tensor(adj=dataset.adj).is_sparse
assert utils.feat_preprocess(features=dataset.features, feat_norm="arctan", device="cpu").abs().max() < 1
assert utils.label_preprocess(labels=dataset.labels, device="cpu").dtype == torch.int64

# %% `utils.get_index_induc(index_a, index_b)`
assert utils.get_index_induc(index_a=[1, 7], index_b=[3]) == ([0, 2], [1])

# %% `utils.check_symmetry(adj)`, `utils.check_feat_range(features, feat_lim_min, feat_lim_max)`
assert utils.check_symmetry(adj=dataset.adj) and utils.check_feat_range(
    features=dataset.features, feat_lim_min=-1, feat_lim_max=1
)

# %% `utils.save_model(model, save_dir, name, verbose)`
utils.save_model(model=models["gcn"], save_dir="saved", name="again.pt", verbose=False)

# %% `utils.save_dict_to_json(result_dict, file_dir, file_name, verbose)`
utils.save_dict_to_json(result_dict=found, file_dir="results", file_name="result.json", verbose=False)

# %% `model.load_state_dict(...)` of a `.pt` file of THUDM/grb
# new: utils.load_weights(model, path), which reads state dicts and refuses pickled modules
state = {
    "layers.0.linear.weight": models["gcn"].convs[0].linear.weight.T,
    "layers.0.linear.bias": models["gcn"].convs[0].linear.bias,
    "layers.1.linear.weight": models["gcn"].convs[1].linear.weight.T,
    "layers.1.linear.bias": models["gcn"].convs[1].linear.bias,
}
torch.save({key: value.detach() for key, value in state.items()}, "saved/weights.pt")
again = utils.load_weights(GCN(dataset.num_features, dataset.num_classes, [8]), "saved/weights.pt")
assert torch.equal(trainer.inference(again), trainer.inference(models["gcn"]))

# %% a pickled module
torch.save(torch.nn.Linear(2, 2), "saved/module.pt")
utils.load_weights(again, "saved/module.pt")

# %% `utils.download(url, save_path)`
utils.download(url="https://example.org/adj.npz", save_path="adj.npz")
