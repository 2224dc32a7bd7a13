"""Typical mistakes of a first user: each is answered in one sentence that says what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import eye_array
from torch import nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

import grb
from grb.auditing import AuditReport, check
from grb.auditing.conditions import parse_only
from grb.dataset import Dataset, constraints_of
from grb.errors import GRBError
from grb.threat import Injection, Modification


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def model(dataset: Dataset) -> nn.Module:
    return grb.train("gcn", dataset, epochs=2)


class Net(nn.Module):
    def __init__(self, d: int, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(d, classes)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.layer(x)


class Odd(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return a


class Says(nn.Module):
    def __init__(self, say: Any) -> None:
        super().__init__()
        self.say = say

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.say(x[:, :4])


class Typed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = HeteroConv({("a", "to", "a"): SAGEConv(4, 2)})

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.layer(x, edge_index)


def error_rate(logits: Any, decisions: Any, labels: Any) -> float:
    return float((decisions != labels).double().mean())


error_rate.higher_is_better = False  # type: ignore[attr-defined]


def csv(folder: Path, nodes: str, edges: str) -> Path:
    (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    return folder


ROWS = "".join(f"a{i},{i},{i % 2}\n" for i in range(20))
LINKS = "".join(f"a{i},a{i + 1}\n" for i in range(19))
FEW = {"effort": "quick", "corrupt": False, "surrogates": ()}

# what somebody does with a dataset d, a model m and a folder f, and the words of the answer
MISTAKES: dict[str, tuple[Any, str]] = {
    "a misspelt dataset": (lambda d, m, f: grb.load_dataset("synth-tinny"), "Did you mean 'synth-tiny'"),
    "a misspelt model": (lambda d, m, f: grb.train("gnc", d), "Did you mean 'gcn'"),
    "a misspelt attack": (lambda d, m, f: grb.run_attack("tdgai", m, d), "Did you mean 'tdgia'"),
    "a misspelt metric": (lambda d, m, f: grb.evaluate(m, d, metrics="macro_f"), "Did you mean 'macro-f1'"),
    "epoch for epochs": (lambda d, m, f: grb.train("gcn", d, epoch=5), "did you mean 'epochs'"),
    "metric for metrics": (lambda d, m, f: grb.evaluate(m, d, metric="auroc"), "did you mean metrics="),
    "recall without a class": (lambda d, m, f: grb.evaluate(m, d, metrics="recall"), "as in recall:1"),
    "a class that is not there": (lambda d, m, f: grb.evaluate(m, d, metrics="recall:9"), "classes 0 to 3"),
    "a name for a dataset": (lambda d, m, f: grb.train("gcn", "synth-tiny"), r"load_dataset\('synth-tiny'\) makes one"),
    "a Data for a dataset": (lambda d, m, f: grb.evaluate(m, d.to_pyg()), r"Dataset.from_pyg\(data\) makes one of it"),
    "a Data without edges": (
        lambda d, m, f: Dataset.from_pyg(Data(x=torch.ones(2, 1))),
        "a PyG Data with one is needed",
    ),
    "one mask of three": (
        lambda d, m, f: Dataset.from_pyg(
            Data(
                x=torch.ones(2, 1),
                edge_index=torch.tensor([[0, 1], [1, 0]]),
                y=torch.tensor([0, 1]),
                train_mask=torch.tensor([True, False]),
            )
        ),
        "own_split=False to draw a split",
    ),
    "a HeteroData": (lambda d, m, f: Dataset.from_pyg(HeteroData()), "PyG Data"),
    "a file for a model": (lambda d, m, f: grb.audit("gcn.safetensors", d), "grb.load_model reads a file"),
    "a model that is not there": (lambda d, m, f: grb.load_model(f / "no.safetensors"), "grb train MODEL -o FILE"),
    "a pickled model": (
        lambda d, m, f: (torch.save(m.state_dict(), f / "m.pt"), grb.load_model(f / "m.pt")),
        "pickled models are never loaded",
    ),
    "an unwrapped module": (lambda d, m, f: grb.evaluate(Net(d.num_features, 4), d), r"grb.wrap\(model\)"),
    "a module nobody understands": (lambda d, m, f: grb.wrap(Odd()), "give style="),
    "a function to wrap": (lambda d, m, f: grb.wrap(lambda x: x), "a torch.nn.Module is needed"),
    "saving a module of others": (
        lambda d, m, f: grb.save_model(grb.wrap(Net(4, 2)), f / "n.safetensors"),
        r"save_weights\(module, path\)",
    ),
    "other features": (
        lambda d, m, f: grb.evaluate(m, grb.load_dataset("synth-cora")),
        "give it the dataset it was trained on",
    ),
    "too few columns": (lambda d, m, f: grb.audit(Net(d.num_features, 2), d), "each of which needs a column"),
    "a graph for an edit": (lambda d, m, f: grb.evaluate(m, d, d.graph), "GraphEdit.load reads a file"),
    "no limits": (lambda d, m, f: Modification(), "either edges or edge_ratio"),
    "a negative limit": (lambda d, m, f: Injection(-1, 2, (0.0, 1.0)), "a whole number and not negative"),
    "limits of the other scenario": (
        lambda d, m, f: grb.run_attack("pgd", m, d, threat=Modification(edges=3)),
        "an injection attack needs an Injection",
    ),
    "an attack without its model": (lambda d, m, f: grb.run_attack("pgd", None, d), "needs a model"),
    "training nodes as targets": (
        lambda d, m, f: grb.run_attack("pgd", m, d, targets=d.index_train[:3]),
        "choose among test nodes",
    ),
    "an unknown account": (lambda d, m, f: d.with_targets(["ACC-1"]), "there is no node 'ACC-1'"),
    "per cent for a share": (lambda d, m, f: grb.audit(m, d, below=80), "above 0 and up to 1"),
    "a text for scenarios": (lambda d, m, f: grb.audit(m, d, scenarios="injection"), "a list of injection"),
    "labels that are not named": (
        lambda d, m, f: Dataset.from_csv(csv(f, f"id,x,fraud\n{ROWS}", f"source,target\n{LINKS}")),
        "--label NAME",
    ),
    "ends that are not named": (
        lambda d, m, f: Dataset.from_csv(csv(f, f"id,x,label\n{ROWS}", "payer,payee,when\na0,a1,2\n")),
        "--source and --target",
    ),
    "an account that pays nobody known": (
        lambda d, m, f: Dataset.from_csv(csv(f, f"id,x,label\n{ROWS}", "source,target\na0,a99\n")),
        "dangling=drop leaves such edges out",
    ),
    "text among numbers": (
        lambda d, m, f: Dataset.from_csv(csv(f, f"id,x,label\n{ROWS}b,oops,1\n", f"source,target\n{LINKS}")),
        "has 'oops' in column 'x'",
    ),
    "NaN features": (
        lambda d, m, f: Dataset.from_arrays(eye_array(12, k=1), np.full((12, 1), np.nan), [0, 1] * 6),
        "clean with missing='mean'",
    ),
    "labels of another length": (
        lambda d, m, f: Dataset.from_arrays(eye_array(12, k=1), np.ones((12, 1)), [0, 1]),
        "12",
    ),
    "a split that overlaps": (
        lambda d, m, f: Dataset.from_arrays(
            eye_array(12, k=1), np.ones((12, 1)), [0, 1] * 6, split={"train": [0, 1], "test": [1, 2]}
        ),
        "must be disjoint",
    ),
    "a dense matrix for edges": (
        lambda d, m, f: Dataset.from_arrays([[0, 1], [1, 0]], np.ones((2, 1)), [0, 1]),
        "a scipy sparse matrix",
    ),
    "a column that is not there": (lambda d, m, f: constraints_of(d, fixed=["amount"]), "numbers of columns"),
    "a black box that answers with classes": (
        lambda d, m, f: grb.audit(lambda x, edge_index: np.zeros(len(x)), d, **FEW),
        "each of which needs a column",
    ),
    # of an audit of one's own model
    "model and dataset in the other order": (lambda d, m, f: grb.audit(d, m), r"write grb.audit\(model, dataset\)"),
    "the path of a model": (lambda d, m, f: grb.audit(Path("gcn.safetensors"), d), "grb.load_model reads a file"),
    "weights for a model": (lambda d, m, f: grb.audit(m.state_dict(), d), r"module.load_state_dict\(...\)"),
    "nothing for a model": (lambda d, m, f: grb.audit(None, d), "a trained module, or a function"),
    "a class for a model": (lambda d, m, f: grb.audit(Net, d), "Net is a class"),
    "a Data to audit on": (lambda d, m, f: grb.audit(m, d.to_pyg()), r"from_pyg\(data\) makes one"),
    "the name of a dataset to audit on": (lambda d, m, f: grb.audit(m, "synth-tiny"), "a grb Dataset is needed"),
    "graphs to classify": (lambda d, m, f: grb.audit(m, grb.load_dataset("synth-graphs")), "one label per node"),
    "classes instead of scores": (lambda d, m, f: grb.audit(Says(lambda z: z.argmax(1)), d, **FEW), "one row for each"),
    "arrays instead of tensors": (
        lambda d, m, f: grb.audit(Says(lambda z: z.detach().numpy()), d, **FEW),
        r"grb.wrap\(module, call=...\)",
    ),
    "a module of several types": (
        lambda d, m, f: grb.audit(Typed(), d, **FEW),
        r"HeteroData.to_homogeneous\(\)",
    ),
    "a model of fewer features": (
        lambda d, m, f: grb.audit(Net(3, 4), d, **FEW),
        "give it the columns that it was trained",
    ),
    "a name for surrogates": (lambda d, m, f: grb.audit(m, d, surrogates="gcn"), r"as in \['gcn'\]"),
    "a misspelt surrogate": (lambda d, m, f: grb.audit(m, d, surrogates=["gnc"]), "Did you mean 'gcn'"),
    "budgets without their scenario": (
        lambda d, m, f: grb.audit(m, d, budgets=[1, 2]),
        r"\{'injection': \[1, 2, 4\]\}",
    ),
    "a share for a budget": (
        lambda d, m, f: grb.audit(m, d, budgets={"injection": [0.05]}),
        "whole numbers from 1 on are needed",
    ),
    "a text for a number": (lambda d, m, f: grb.audit(m, d, below="0.8"), "below is '0.8', but a number"),
    "a number for metrics": (lambda d, m, f: grb.audit(m, d, metrics=5), "names such as 'recall:1,accuracy'"),
    "an error rate for a metric": (
        lambda d, m, f: grb.audit(m, d, metrics=[error_rate]),
        "give its negative or complement",
    ),
    "a text for a seed": (lambda d, m, f: grb.audit(m, d, seed="x"), "a whole number from 0 on"),
    "a capital in the effort": (lambda d, m, f: grb.audit(m, d, effort="Quick"), "quick, standard or thorough"),
    "a class for targets": (lambda d, m, f: grb.audit(m, d, targets="fraud"), "fraud"),
    "a mask of another length": (
        lambda d, m, f: grb.audit(m, d, targets=np.ones(5, dtype=bool)),
        r"but \[300\] is needed",
    ),
    "no targets": (lambda d, m, f: grb.audit(m, d, targets=[]), "a list of ids, not empty"),
    "limits without their scenario": (
        lambda d, m, f: grb.audit(m, d, threats=Injection(1, 2, (0.0, 1.0))),
        "a mapping from scenario to limits",
    ),
    "limits of another scenario": (
        lambda d, m, f: grb.audit(m, d, threats={"injection": Modification(edges=3)}),
        "give the one of that scenario",
    ),
    "a misspelt limit": (
        lambda d, m, f: grb.audit(m, d, threats={"injection": {"edge_per_node": 3}}),
        "Did you mean 'edges_per_node'",
    ),
    "a misspelt constraint": (
        lambda d, m, f: grb.audit(m, d, threats={"injection": {"constraints": {"fix": [0]}}}),
        "Did you mean 'fixed'",
    ),
    "a range of one number": (
        lambda d, m, f: grb.audit(m, d, threats={"injection": {"constraints": {"ranges": {0: 3}}}}),
        r"ranges: \{amount: \[0, 100\]\}",
    ),
    "a condition with two signs": (
        lambda d, m, f: parse_only("worst_case.accuracy==0.8", ["injection"]),
        ">=, <=, > or <",
    ),
    "a condition in per cent": (lambda d, m, f: parse_only("clean.accuracy>=80%", ["injection"]), "cannot be read"),
    "a condition about nothing": (lambda d, m, f: parse_only("accuracy>=0.8", ["injection"]), "clean, worst_case"),
    "a condition on a misspelt metric": (
        lambda d, m, f: parse_only("worst_case.acuracy>=0.8", ["injection"]),
        "Did you mean 'accuracy'",
    ),
    "a condition on what is not tried": (
        lambda d, m, f: parse_only("modification.breaking_point>=3", ["injection"]),
        "Allowed: clean, worst_case, corruption, flags, injection",
    ),
    "a file for a report": (lambda d, m, f: check("report.json", "clean.accuracy>=0"), "AuditReport.load reads a file"),
    "another program for a report": (lambda d, m, f: AuditReport.load(f / "r.json"), "grb audit ... -o"),
}


def test_there_are_at_least_thirty_and_thirty_of_an_audit() -> None:
    names = list(MISTAKES)
    assert len(names) >= 60 and len(names[names.index("model and dataset in the other order") :]) >= 30


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_a_mistake_is_answered_in_one_sentence_with_the_next_step(
    mistake: str, dataset: Dataset, model: nn.Module, tmp_path: Path
) -> None:
    call, words = MISTAKES[mistake]
    with pytest.raises(GRBError, match=words) as caught:
        call(dataset, model, tmp_path)
    said = str(caught.value)
    assert len(said.splitlines()) == 1 and len(said) < 420, said
