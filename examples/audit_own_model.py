"""A student's way: a GAT and a module that takes a Data, trained outside grb; audited, compared with defenses, on a page.

Run it with the name of a folder to keep the reports there.
"""

import sys
import tempfile
from pathlib import Path

import torch
from my_nets import GAT, OfData  # the file beside this one
from torch import nn
from torch.nn import functional
from torch_geometric.data import Data

import grb
from grb.leaderboard import build_page
from grb.pipeline import Limits, Store, build_board, plan_study, run
from grb.pipeline.recipe import parse_recipe


def train(module: nn.Module, data: Data, ask: object) -> nn.Module:
    """A plain loop of torch; the masks of the data say which nodes may be seen."""
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(60):
        module.train()
        optimizer.zero_grad()
        functional.nll_loss(ask(module)[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    return module.eval()


folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
data = grb.load_dataset("synth-tiny").to_pyg()  # your own Data, with train_mask, val_mask and test_mask
dataset = grb.Dataset.from_pyg(data, name="my-graph")  # takes these masks: no test node was trained on
classes = int(data.y.max()) + 1
gat = train(GAT(data.num_features, classes), data, lambda module: module(data.x, data.edge_index))
of_data = train(OfData(data.num_features, classes), data, lambda module: module(data))

# the same graph as CSV files, as somebody else would send it
parts = {int(node): part for part in ("train", "val", "test") for node in getattr(dataset, f"index_{part}")}
columns = [f"x{i}" for i in range(data.num_features)]
values = [",".join(f"{value:.6g}" for value in row) for row in data.x.tolist()]
lines = [f"{i},{parts[i]},{int(data.y[i])},{values[i]}" for i in range(len(values))]
(folder / "nodes.csv").write_text("\n".join([f"id,split,label,{','.join(columns)}", *lines]))
(folder / "edges.csv").write_text("\n".join(["source,target", *(f"{u},{v}" for u, v in data.edge_index.T.tolist())]))
from_csv = grb.Dataset.from_csv(folder, name="my-graph")
print("from CSV:", from_csv, "GAT:", round(grb.evaluate(grb.wrap(gat), from_csv)["full"], 2))

options = {"effort": "quick", "scenarios": ["injection"], "corrupt": False, "surrogates": ()}
options["budgets"] = {"injection": [1, 3]}
for name, module in (("GAT", gat), ("OfData", of_data)):
    report = grb.audit(module, dataset, name=name, **options)
    report.save(folder / f"{name}.html")
    print(report.headline)

for name in ("gcn", "gcn+ln", "gcnguard"):  # the same questions to three defenses, trained here
    model = grb.train(name, dataset, epochs=60)
    report = grb.audit(model, dataset, name=name, **options)
    worst, clean = (report.values[part]["values"]["accuracy"] for part in ("worst_case", "clean"))
    print(f"{name:10} clean {clean:.2f}  worst case {worst:.2f}")

# your own model on a board, beside others: exported with what it says, made again by the code that the recipe names
sizes = {"features": data.num_features, "classes": classes}
on = grb.load_dataset("synth-tiny")
weights = grb.export_model(gat, folder / "gat.safetensors", on, module="my_nets:GAT", params=sizes)
recipe = parse_recipe(
    "dataset: synth-tiny\nattacks: [rnd, fgsm]\nmodes: [full]\nrepeats: 1\niterations: 5\ntraining: {epochs: 20}\n"
    f"defenses: [gcn+ln, {{module: 'my_nets:GAT', weights: '{weights}'}}]\n",
    name="mine",
)
study, store = plan_study(recipe), Store(folder / "store")
run(study, store, limits=Limits(workers=0))
(board,) = build_board(study, store)
(folder / "board.html").write_text(build_page([board]), encoding="utf-8")
print("on the board:", ", ".join(board.defenses))
print("reports in", folder)
