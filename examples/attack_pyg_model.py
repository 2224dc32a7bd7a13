"""Train a model of torch_geometric in the way of its own examples, wrap it, and attack it: by edges and by injected nodes."""

import torch
from torch_geometric.nn.models import GCN

import grb
from grb.threat import Injection, Modification

dataset = grb.load_dataset("synth-tiny")
data = dataset.to_pyg()
x, y, edge_index, train = data.x, data.y, data.edge_index, data.train_mask

torch.manual_seed(0)
net = GCN(x.shape[1], 16, num_layers=2, out_channels=dataset.num_classes, dropout=0.5)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x, edge_index)[train], y[train]).backward()
    optimizer.step()

model = grb.wrap(net)
print(f"clean            {grb.evaluate(model, dataset)['full']:.3f}")
changed = grb.run_attack("prbcd", model, dataset, threat=Modification(edge_ratio=0.05), n_epoch=20)
print(f"5 % of edges     {grb.evaluate(model, dataset, changed)['full']:.3f}")
injected = grb.run_attack("pgd", model, dataset, threat=Injection.preset("synth-tiny", "full"), iterations=50)
print(f"injected nodes   {grb.evaluate(model, dataset, injected)['full']:.3f}")
