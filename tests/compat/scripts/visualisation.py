# %% `visualize.plot_graph(adj, pos, labels, nodelist, figsize, title)`
# differs: no window is opened
import sys
from pathlib import Path

import networkx as nx

from grb.dataset import Dataset
from grb.utils.visualize import plot_graph

dataset = Dataset(name="synth-tiny")
pos = nx.circular_layout(nx.from_scipy_sparse_array(dataset.adj))
plot_graph(
    adj=dataset.adj,
    pos=pos,
    labels=dataset.labels,
    nodelist=list(range(dataset.num_nodes)),
    figsize=(3, 3),
    title="graph",
)
assert Path("images/graph.png").stat().st_size > 0

# %% `Logger(file_dir, file_name, stream)`
from grb.utils import Logger

with Logger(file_dir="logs", file_name="run.out", stream=sys.stderr) as log:
    log.write("")
    log.flush()
assert Path("logs/run.out").exists()
