"""``grb audit``: a report in all formats, conditions for continuous integration, models of others."""

from __future__ import annotations

import json
import sys

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

QUICK = ("--effort", "quick", "--scenario", "injection", "--no-corruptions")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from typer.testing import CliRunner

    from grb.cli.app import app

    file = tmp_path_factory.mktemp("model") / "gcn.safetensors"
    done = CliRunner().invoke(app, ["train", "gcn", "-d", "synth-tiny", "--param", "epochs=10", "-o", str(file)])
    assert done.exit_code == 0, done.stderr
    return file


def test_a_report_in_every_format(grb, model, tmp_path):
    files = [tmp_path / f"report{end}" for end in (".html", ".md", ".json", ".sarif", ".yaml", ".cdx.json")]
    words = [word for file in files for word in ("-o", file)]
    done = grb("audit", model, *QUICK, *words)
    assert done.exit_code == 0, done.stderr
    assert "in the worst case found" in done.stdout and "nodes that fall first" in done.stderr
    assert all(file.stat().st_size > 200 for file in files)
    values = json.loads(files[2].read_text(encoding="utf-8"))
    assert values["headline"] in done.stdout


def test_conditions_set_the_exit_code(grb, grb_json, model, tmp_path):
    words = ("audit", model, *QUICK, "--store", tmp_path / "steps")
    assert grb(*words, "--fail-under", "worst_case.accuracy>=0").exit_code == 0
    failed = grb(*words, "--fail-under", "worst_case.accuracy>=0,injection.breaking_point>=1000")
    assert failed.exit_code == 1 and "injection.breaking_point>=1000 fails" in failed.stderr
    assert len(list((tmp_path / "steps").iterdir())) > 2
    found = grb_json(*words, "--fail-under", "clean.accuracy>=0")
    assert found["format"] == "grb-audit/1" and found["conditions"][0]["holds"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "one of them"),
        (("--fail-under", "worst >= high"), "cannot be read"),
        (("-o", "report.docx"), "ends in one of .html"),
        (("--budget", "injection=few"), "as in injection=1,2,4"),
        (("--weights", "w.safetensors"), "a model's file has its own"),
        (("--targets", "class=9"), "no class '9'"),
        (("--id", "account"), "is no path"),
        (("--effort", "quik"), "quick, standard or thorough is needed"),
        (("--scenario", "inject"), "Did you mean 'injection'"),
        (("--fail-under", "worst_case.recal:1>=0.8"), "Did you mean 'recall'"),
        (("--no-corruptions", "--fail-under", "corruption.accuracy>=0.8"), "Allowed: clean, worst_case, flags"),
        (("--surrogates", "gnc"), "Did you mean 'gcn'"),
        (("--limits", "none.yaml"), "cannot read none.yaml"),
    ],
)
def test_what_is_wrong_is_one_sentence(grb, model, words, said):
    done = grb("audit", *([model] if words else []), *words)
    assert done.exit_code == 2 and said in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_limits_come_from_a_file(grb, model, tmp_path):
    (tmp_path / "limits.yaml").write_text(
        "injection:\n  edges_per_node: 2\n  constraints: {fixed: [0], connect: targets}\n", encoding="utf-8"
    )
    words = ("--limits", tmp_path / "limits.yaml", "--budget", "injection=1", "--surrogates", "none")
    done = grb("audit", model, *QUICK, *words, "-o", tmp_path / "r.json")
    assert done.exit_code == 0, done.stderr
    values = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    (found,) = values["scenarios"]
    assert found["threat"]["edges_per_node"] == 2 and found["threat"]["constraints"]["fixed"] == [0]
    assert "with up to 2 edges each" in values["threat_model"]["capability"][0] and found["transfers"] == []
    (tmp_path / "limits.yaml").write_text("injection: {edges_per_nodes: 2}", encoding="utf-8")
    done = grb("audit", model, *QUICK, *words)
    assert done.exit_code == 2 and "Did you mean 'edges_per_node'" in done.stderr


def test_modules_by_name_with_weights_and_programs(grb, tmp_path, monkeypatch):
    (tmp_path / "my_net_to_audit.py").write_text(
        "import torch\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(16, 4)\n\n"
        "    def forward(self, x, edge_index):\n        return self.layer(x)\n",
        encoding="utf-8",
    )
    import grb as library

    dataset = library.load_dataset("synth-tiny")
    layer = nn.Linear(dataset.num_features, dataset.num_classes)
    source = (tmp_path / "my_net_to_audit.py").read_text(encoding="utf-8")
    source = source.replace("nn.Linear(16, 4)", f"nn.Linear({dataset.num_features}, {dataset.num_classes})")
    (tmp_path / "my_net_to_audit.py").write_text(source, encoding="utf-8")
    save_file({f"layer.{name}": value for name, value in layer.state_dict().items()}, tmp_path / "w.safetensors")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    words = ("audit", "my_net_to_audit:Net", "-d", "synth-tiny", *QUICK)
    done = grb(*words, "--weights", "w.safetensors", "-o", "r.json")
    assert done.exit_code == 0, done.stderr
    values = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    with torch.no_grad():
        right = layer(dataset.features).argmax(1) == dataset.labels
    assert values["clean"]["values"]["accuracy"] == pytest.approx(float(right[dataset.index_test].double().mean()))
    (tmp_path / "w.safetensors").write_bytes(b"\x80\x04pickle")
    done = grb(*words, "--weights", "w.safetensors")
    assert done.exit_code == 2 and "pickled weights" in done.stderr


def test_a_maker_may_ask_for_the_sizes_of_the_dataset(grb, tmp_path, monkeypatch):
    (tmp_path / "my_maker_to_audit.py").write_text(
        "from torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, in_features, out_features):\n"
        "        super().__init__()\n        self.layer = nn.Linear(in_features, out_features)\n\n"
        "    def forward(self, x, edge_index):\n        return self.layer(x)\n\n\n"
        "def other(width):\n    return Net(width, 2)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    done = grb("audit", "my_maker_to_audit:Net", "-d", "synth-tiny", *QUICK)
    assert done.exit_code == 0, done.stderr
    done = grb("audit", "my_maker_to_audit:other", "-d", "synth-tiny", *QUICK)
    assert done.exit_code == 2 and "in_features and out_features" in done.stderr, done.stderr
