"""A GAT of torch_geometric on Cora, trained and attacked in ten lines: `python attack_pyg_gat.py planetoid-cora`."""

import sys

from torch import Generator, optim
from torch_geometric.nn.models import GAT

import grb
from grb.trainer import fit

data = grb.load_dataset(sys.argv[1] if sys.argv[1:] else "synth-tiny")
model = grb.wrap(GAT(data.num_features, 8, num_layers=2, out_channels=data.num_classes, heads=8, dropout=0.6))
fit(model, data.transductive_view(), optimizer=optim.Adam(model.parameters(), 0.005), epochs=99, generator=Generator())
attack = grb.run_attack("pgd", model, data, iterations=50)
print(grb.evaluate(model, data), "|", grb.evaluate(model, data, attack))
