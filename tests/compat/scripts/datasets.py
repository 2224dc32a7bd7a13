# %% `GRB_SUPPORTED_DATASETS`
from grb.dataset import GRB_SUPPORTED_DATASETS

assert "grb-cora" in GRB_SUPPORTED_DATASETS

# %% attributes of a dataset
from grb.dataset import Dataset

dataset = Dataset("synth-tiny", None, "easy", "arctan", False)
adj, features, labels = dataset.adj, dataset.features, dataset.labels
masks = (dataset.train_mask, dataset.val_mask, dataset.test_mask)
index = (dataset.index_train, dataset.index_val, dataset.index_test)
counts = (
    dataset.num_nodes,
    dataset.num_edges,
    dataset.num_features,
    dataset.num_classes,
    dataset.num_train,
    dataset.num_val,
    dataset.num_test,
)
assert [int(mask.sum()) for mask in masks] == [len(ids) for ids in index] == list(counts[-3:])

# %% `dataset.adj[dataset.test_mask]`
assert adj[dataset.test_mask].shape[0] == dataset.num_test

# %% `CustomDataset(adj, features, labels, train_mask, ..., name, data_dir, mode, feat_norm, save, verbose, seed)`
# differs: another split for the same seed; repairs of the graph are in `notes`
from grb.dataset import CustomDataset

custom = CustomDataset(
    adj=adj,
    features=features,
    labels=labels,
    train_mask=None,
    val_mask=None,
    test_mask=None,
    name="mine",
    data_dir=None,
    mode="full",
    feat_norm=None,
    save=False,
    verbose=False,
    seed=42,
)
assert custom.num_nodes == dataset.num_nodes

# %% `CustomDataset(train_mask, val_mask, test_mask)`
own = CustomDataset(
    adj=adj, features=features, labels=labels, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2], name=None
)
assert own.num_train == dataset.num_train

# %% `CogDLDataset(name, data_dir, mode, verbose)`
# differs: CogDL is not needed; 'lcc' is the largest component; graphs are split by a fixed seed
from grb.dataset import CogDLDataset

graphs = CogDLDataset(name="synth-graphs", data_dir=None, mode="origin", verbose=False)
assert graphs.num_graphs == len(graphs.graphs) and graphs.num_nodes_max >= graphs.graphs[0].num_nodes

# %% `CogDLDataset(mode='lcc')`
connected = CogDLDataset(name="synth-tiny", mode="lcc")
assert connected.num_nodes <= dataset.num_nodes

# %% `CogDLDataset(name)` of graphs: mutag, imdb-b, imdb-m, collab, reddit-b
# differs: files are those of TUDataset
CogDLDataset(name="imdb-m", data_dir="nowhere")

# %% `OGBDataset(name, data_dir, verbose)`
# differs: hyphens or underscores; files come from OGB's archives
from grb.dataset import OGBDataset

OGBDataset(name="ogbn_arxiv", data_dir="nowhere", verbose=False)

# %% `grb.dataset.dataset.feat_normalize(features, norm, lim_min, lim_max)`
from grb.dataset.dataset import feat_normalize, splitting

assert float(feat_normalize(features=features, norm="linearize", lim_min=-1.0, lim_max=1.0).max()) == 1.0

# %% `grb.dataset.dataset.splitting(adj, ..., seed)`
# differs: another split for the same seed
assert set(splitting(adj=adj, seed=42)) == {
    "index_train",
    "index_val",
    "index_test",
    "index_test_easy",
    "index_test_medium",
    "index_test_hard",
}

# %% `Dataset(custom=True)`
Dataset(name="mine", data_dir="somewhere", custom=True)

# %% `CustomDataset(save=True)`
CustomDataset(adj=adj, features=features, labels=labels, save=True)

# %% `OGBDataset(name='ogbg-code2')`
OGBDataset(name="ogbg-code2")
