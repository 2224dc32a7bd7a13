"""Which lines of a script should change, without running any of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import refusal
from grb.catalogue import preset
from grb.cli.migration import Finding, find_in_cells, find_in_file, rules

SCRIPT = """\
import torch
import grb.utils as utils
from grb.dataset import Dataset
from grb.model.torch import GCN as Net
from grb.trainer.trainer import Trainer
from grb.attack.modification.dice import DICE

raise SystemExit("nothing of this is run")
feat_norm = None
dataset = Dataset(name="grb-cora")
other = Dataset("grb-cora", None, "full")
model = Net(dataset.num_features, dataset.num_classes, 64, 3, feat_norm="arctan")
trainer = Trainer(dataset=dataset, optimizer=None, loss=None, feat_norm=feat_norm)
trainer.train(model=model, n_epoch=10,
              verbose=False)
attack = DICE(10, device="cuda:0")
attack.attack(dataset.adj, dataset.index_test, labels=dataset.labels)
attack = None
attack.attack(labels=1)
model = torch.load("model.pt")
utils.save_adj(dataset.adj, ".")
"""


def found(text: str) -> list[tuple[int, str, str]]:
    return [(each.line, each.level, each.old) for each in find_in_cells([(0, text)])]


def test_lines_of_a_script_are_found_by_what_their_names_stand_for() -> None:
    told = found(SCRIPT)
    assert [each for each in told if each[1] == "must"] == [
        (10, "must", "Dataset()"),
        (12, "must", "GCN(feat_norm=)"),
        (14, "must", "grb.trainer.Trainer.train()"),
        (20, "must", "torch.load"),
        (21, "must", "grb.utils.save_adj"),
    ]
    assert (15, "should", "grb.trainer.Trainer.train(verbose=)") in told
    assert (16, "should", "grb.attack.modification.dice.DICE(device=)") in told
    assert (17, "should", "grb.attack.modification.DICE.attack(labels=)") in told or any(
        line == 17 for line, *_ in told
    )
    assert not any(line in (11, 13, 18, 19) for line, *_ in told)


def test_other_packages_are_told_what_their_names_are_here() -> None:
    text = "from deeprobust.graph.global_attack import Metattack\nfrom greatx.defense import GNNGUARD\n"
    text += (
        "from torch_geometric.contrib.nn import PRBCDAttack as Attack\nimport deeprobust.graph.defense as d\nd.GCN(1)\n"
    )
    findings = find_in_cells([(0, text)])
    assert [each.package for each in findings] == ["DeepRobust", "GreatX", "PyG contrib", "DeepRobust"]
    assert all(each.level == "must" and "grb." in each.new for each in findings)


def test_a_script_for_nothing_of_this_has_nothing_to_change() -> None:
    assert found("import torch\nmodel = torch.load('x.pt')\nimport numpy as np\nnp.load('y')\n") == []
    assert found("from . import grb\nfrom .grb.dataset import Dataset\nDataset('x')\n") == []
    assert found("") == []


def test_our_own_spelling_has_nothing_to_change() -> None:
    text = "import grb\ndataset = grb.load_dataset('synth-tiny')\ngrb.evaluate(grb.train('gcn', dataset), dataset)\n"
    assert found(text) == []


def test_a_notebook_has_cells_and_magics(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["from grb.dataset import Dataset"]},
        {
            "cell_type": "code",
            "source": ["%matplotlib inline\n", "!pip install grb\n", "from grb.dataset import Dataset"],
        },
        {"cell_type": "code", "source": ["%%bash\n", "this is no Python"]},
        {"cell_type": "code", "source": ["Dataset('grb-cora')"]},
    ]
    path = tmp_path / "notebook.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert [(each.cell, each.line, each.old) for each in find_in_file(path)] == [
        (2, 3, "grb.dataset.Dataset"),
        (4, 1, "Dataset()"),
    ]


def test_the_command_prints_a_table_or_json_and_its_exit_code_says_whether_a_line_must_change(
    grb, grb_json, tmp_path
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = grb("migrate", str(path))
    assert done.exit_code == 1 and "5 lines must change" in done.stderr and "grb.load_model(path)" in done.stdout
    path.write_text("from grb.dataset import Dataset\nDataset('grb-cora', mode='full')\n")
    assert grb("migrate", str(path)).exit_code == 0
    (only,) = grb_json("migrate", str(path))[str(path)]
    assert only["line"] == 1 and only["level"] == "should" and "cell" not in only


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("broken.py", b"def f(:\n", "is no Python 3"),
        ("binary.py", b"\xff\xfe\x00", "is no text"),
        ("nul.py", b"x = '\x00'\n", "is no Python 3"),
        ("deep.py", b"(" * 5000 + b")" * 5000, "is no Python 3"),
        ("book.ipynb", b"[]", "is no notebook"),
    ],
)
def test_what_is_no_script_is_refused(grb, tmp_path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert said in refusal(grb("migrate", str(tmp_path / name)))


def test_an_absent_script_is_refused(grb, tmp_path) -> None:
    assert "no script" in refusal(grb("migrate", str(tmp_path / "absent.py")))


def test_every_rule_has_a_new_spelling_and_every_new_name_of_ours_exists() -> None:
    import importlib
    import re

    names, calls = rules()
    for old, (_, rule) in names.items():
        assert rule["new"], old
        for kind, name in re.findall(r"grb\.(train|run_attack|load_dataset)\('([\w+-]+)'", rule["new"]):
            from grb import catalogue

            catalogue.canonical(
                {"train": "model", "run_attack": "attack", "load_dataset": "dataset"}[kind], name.partition("+")[0]
            )
        for dotted in re.findall(r"\bgrb\.[a-z_.]*[A-Za-z_]\w*", rule["new"]):
            home, _, last = dotted.rpartition(".")
            assert hasattr(importlib.import_module(home), last) or importlib.import_module(dotted), dotted
    assert all("new" in each or "absent" in each for each in sum(calls.values(), []))
    assert set(preset("migration")) == {"THUDM/grb", "DeepRobust", "GreatX", "PyG contrib"}
    assert Finding(0, 1, "must", "a", "b", "c").to_dict() == {
        "line": 1,
        "level": "must",
        "old": "a",
        "new": "b",
        "package": "c",
    }


PUBLIC = """
deeprobust.graph.defense: GCN GCNSVD GCNJaccard RGCN ProGNN GraphConvolution GGCL_F GGCL_D GAT MedianGCN ChebNet SGC SimPGCN
deeprobust.graph.defense: Node2Vec DeepWalk
deeprobust.graph.defense_pyg: GCN GAT APPNP SAGE GPRGNN AirGNN
deeprobust.graph.global_attack: BaseAttack DICE MetaApprox Metattack Random MinMax PGDAttack NIPA NodeEmbeddingAttack
deeprobust.graph.global_attack: OtherNodeEmbeddingAttack PRBCD
deeprobust.graph.targeted_attack: BaseAttack FGA RND Nettack IGAttack RLS2V SGAttack
deeprobust.graph.data: Dataset PtbDataset PrePtbDataset Pyg2Dpr Dpr2Pyg AmazonPyg CoauthorPyg
greatx.attack.targeted: TargetedAttacker RandomAttack DICEAttack FGAttack IGAttack SGAttack Nettack GFAttack PGDAttack
greatx.attack.untargeted: UntargetedAttacker RandomAttack DICEAttack FGAttack IGAttack Metattack PGDAttack
greatx.attack.injection: InjectionAttacker RandomInjection AdvInjection
greatx.attack.backdoor: BackdoorAttacker FGBackdoor LGCBackdoor
greatx.defense: CosinePurification JaccardPurification SVDPurification EigenDecomposition TSVD GNNGUARD UniversalDefense GUARD
greatx.defense: DegreeGUARD RandomGUARD FeaturePropagation
greatx.nn.models.supervised: GCN SGC SSGC DGC GAT APPNP DAGNN JKNet TAGCN NLGCN NLGAT NLMLP LogisticRegression MLP MedianGCN
greatx.nn.models.supervised: RobustGCN AirGNN ElasticGNN SoftMedianGCN SimPGCN GNNGUARD SAT RTGCN SpikingGCN
greatx.training: Trainer UnspuervisedTrainer get_trainer callbacks SATTrainer
greatx.datasets: GraphDataset
torch_geometric.contrib.nn: PRBCDAttack GRBCDAttack
"""


def test_every_public_name_of_the_other_packages_has_a_line() -> None:
    """As their ``__all__`` lists them: DeepRobust and GreatX in November 2026."""
    names, _ = rules()
    listed = [
        f"{home}.{name}"
        for line in PUBLIC.strip().splitlines()
        for home, _, given in [line.partition(": ")]
        for name in given.split()
    ]
    assert [each for each in listed if each not in names] == []


def test_what_has_no_counterpart_is_really_not_in_the_catalogue() -> None:
    from grb import catalogue

    ours = {
        letters(name)
        for kind in ("attack", "model")
        for key, entry in catalogue.entries(kind).items()
        for name in (key, *entry.aliases)
    }
    names, _ = rules()
    lacking = [old for old, (_, rule) in names.items() if rule["new"].startswith("no counterpart")]
    assert len(lacking) > 5
    assert [old for old in lacking if letters(old.rpartition(".")[2]).removesuffix("attack") in ours] == []


def letters(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum())
