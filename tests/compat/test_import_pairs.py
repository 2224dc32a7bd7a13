"""Every public name that THUDM/grb's examples and tests import resolves under its old path."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PAIRS = """
grb.attack.injection: FGSM PGD RAND SPEIT TDGIA
grb.attack.injection.fgsm: FGSM
grb.attack.injection.pgd: PGD
grb.attack.injection.rnd: RAND
grb.attack.injection.speit: SPEIT
grb.attack.injection.tdgia: TDGIA
grb.attack.modification: DICE FGA FLIP NEA PGD PRBCD RAND STACK
grb.attack.modification.dice: DICE
grb.attack.modification.fga: FGA
grb.attack.modification.flip: FLIP
grb.attack.modification.nea: NEA
grb.attack.modification.prbcd: PRBCD
grb.attack.modification.rand: RAND
grb.attack.modification.stack: STACK
grb.dataset: CogDLDataset Dataset GRB_SUPPORTED_DATASETS OGBDataset
grb.defense: AdvTrainer GATGuard GCNGuard RobustGCN
grb.defense.gcnsvd: GCNSVD
grb.defense.gnnguard: GATGuard GCNGuard
grb.evaluator: AttackEvaluator metric
grb.evaluator.metric: eval_acc eval_rocauc
grb.model.dgl: GAT GRAND
grb.model.dgl.grand: GRAND
grb.model.torch: APPNP GCN GCNGC GIN GraphSAGE MLP SGCN TAGCN
grb.model.torch.gat: GAT
grb.model.torch.gcn: GCN
grb.trainer: AutoTrainer GraphTrainer Trainer
grb.trainer.trainer: AutoTrainer GraphTrainer Trainer
grb.utils: adj_preprocess build_adj evaluate feat_preprocess
grb.utils: fix_seed get_num_params inference save_adj save_df_to_csv save_df_to_xlsx
grb.utils: save_features Logger
grb.utils.normalize: GCNAdjNorm SAGEAdjNorm
"""
NAMES = [
    (home, name)
    for line in PAIRS.strip().splitlines()
    for home, _, names in [line.partition(":")]
    for name in names.split()
]
# beside those of the examples: documented, or used inside
MORE = [
    ("grb.dataset", "CustomDataset"),
    ("grb.dataset.dataset", "CogDLDataset"),
    ("grb.defense.adv_trainer", "AdvTrainer"),
    ("grb.defense.robustgcn", "RobustGCN"),
    ("grb.evaluator.metric", "eval_f1multilabel"),
    ("grb.model.cogdl", "GCN"),
    ("grb.model.dgl", "GCN"),
    ("grb.model.dgl", "GIN"),
    ("grb.utils.trainer", "Trainer"),
    ("grb.utils.visualize", "plot_graph"),
    ("grb.utils.logger", "Logger"),
    ("grb.utils.normalize", "RobustGCNAdjNorm"),
]


def test_there_are_75_pairs_with_the_module_and_a_repeated_name() -> None:
    assert len(NAMES) + len(["grb.utils", "fix_seed"]) == 75


@pytest.mark.parametrize(("home", "name"), [*NAMES, *MORE], ids=lambda part: part)
def test_a_name_resolves(home: str, name: str) -> None:
    assert getattr(importlib.import_module(home), name, None) is not None or importlib.import_module(f"{home}.{name}")


def test_old_paths_load_the_layer_and_ours_do_not() -> None:
    ours = "grb.api, grb.cli.app, grb.model.torch, grb.attack.injection, grb.trainer, grb.defense, grb.evaluator"
    code = f"import sys, {ours}; {{}}; "
    report = "print([name for name in sys.modules if name.startswith('grb.compat')][:1])"
    for line, wanted in (("grb", "[]"), ("from grb.trainer import GraphTrainer", "['grb.compat']")):
        done = subprocess.run(
            [sys.executable, "-c", code.format(line) + report], capture_output=True, text=True, check=True, timeout=120
        )
        assert done.stdout.strip() == wanted
