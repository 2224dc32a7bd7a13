"""Train GIN and GCN to classify whole graphs and attack every test graph of a fold: MUTAG, or synthetic graphs without it."""

import grb
from grb.errors import MissingDataset
from grb.threat import Modification

try:
    dataset = grb.load_dataset("mutag")
except MissingDataset:
    print("MUTAG is not on this machine (GRB_DATA): synthetic graphs take its place")
    dataset = grb.load_dataset("synth-graphs")

fold = dataset.with_split(0)  # ten folds: this one tests, the next one validates, the others train
print(f"{fold.name}: {fold.num_train} training graphs, {fold.num_test} test graphs")
gin, gcn = (grb.train(name, fold, seed=0, epochs=60) for name in ("gin", "gcn"))
print(f"{'clean':<34} {grb.evaluate(gin, fold)}")

# limits hold for every graph on its own: 5 % of its edges, but at least one
limits = Modification(edge_ratio=0.05)
for attack in ("rnd-edges", "dice", "flip"):
    result = grb.run_attack(attack, None, fold, threat=limits)
    print(f"{attack:<34} {grb.evaluate(gin, fold, result)}  ({result.budget['edges']:.0f} edges)")
transfer = grb.run_attack("fga", gcn, fold, threat=limits, knowledge="transfer")
print(f"{'fga by the gradients of a gcn':<34} {grb.evaluate(gin, fold, transfer)}")
white_box = grb.run_attack("pr-bcd", gin, fold, threat=limits, iterations=5)
print(f"{'pr-bcd by the own gradients':<34} {grb.evaluate(gin, fold, white_box)}")

# one new node per graph with at most three edges, features within those of the dataset
injected = grb.run_attack("pgd", gin, fold, iterations=10, step=0.1)
print(f"{'pgd, one node injected per graph':<34} {grb.evaluate(gin, fold, injected)}")
