from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grb.pipeline import Store
from pipeline.parts import TINY

from .conftest import refusal

TESTS = Path(__file__).parents[1]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(TINY.replace("[easy, full]", "[full]"))
    return path


def test_a_run_shows_the_leaderboard_and_running_again_resumes(grb, mine, tmp_path):
    arguments = ["run", mine, "--store", tmp_path / "my store", "--workers", "0"]
    first = grb(*arguments)
    assert first.exit_code == 0, first.stderr
    assert all(word in first.stdout for word in ("gcn", "mlp", "rnd", "fgsm", "weighted", "white-box"))
    assert "22 jobs done, 0 were there already" in first.stderr
    advised = shlex.split(first.stderr.split("as a page: grb ")[1].splitlines()[0])
    page = grb(*advised, "-o", tmp_path / "page.html")
    assert page.exit_code == 0 and (tmp_path / "page.html").exists(), page.stderr
    again = grb(*arguments)
    assert "0 jobs done, 22 were there already" in again.stderr and again.stdout == first.stdout


def test_the_leaderboard_of_the_store_is_that_of_the_run(grb, tmp_path):
    """Three trainings of every victim, as asked for on the command line and nowhere else."""
    options = ["--quick", "--victims", "3", "--difficulty", "easy"]
    ran = grb("run", "synth-tiny", *options, "--store", tmp_path / "store", "--workers", "0")
    assert ran.exit_code == 0, ran.stderr
    shown = grb("leaderboard", tmp_path / "store")
    assert shown.stdout == ran.stdout != "" and "measurements are done" not in shown.stderr
    (board,) = json.loads(grb("leaderboard", tmp_path / "store", "--json").stdout)["boards"]
    clean = [cell for cell in board["cells"] if cell["attack"] == "none"]
    assert {cell["score"]["n"] for cell in clean} == {3} and board["difficulties"] == ["easy"]
    again = grb("run", "synth-tiny", *options, "--store", tmp_path / "store", "--workers", "0", "--json")
    assert json.loads(again.stdout.splitlines()[-1])["boards"] == [board]


def test_jobs_say_what_they_do(grb, mine, tmp_path):
    done = grb("run", mine, "--store", tmp_path / "store", "--workers", "0", "--json")
    labels = {json.loads(line)["job"] for line in done.stdout.splitlines()[:-1]}
    scores = {label for label in labels if label.startswith("score ")}
    assert scores == {
        *(f"score {defense} on synth-tiny" for defense in ("gcn", "mlp")),
        *(
            f"score {defense} under {attack} on synth-tiny full"
            for defense in ("gcn", "mlp")
            for attack in ("rnd", "fgsm", "fgsm (white-box)")
        ),
    }


def test_no_page_is_advised_after_no_score(grb, tmp_path):
    """Every training fails, so that there is nothing to show."""
    path = tmp_path / "mine.yaml"
    path.write_text("dataset: synth-tiny\nattacks: [rnd]\nmodes: [full]\nrepeats: 1\ntraining: {epochs: 1}\n")
    done = grb("run", path, "--store", tmp_path / "store", "--workers", "1", "--timeout", "0.001")
    assert done.exit_code == 1 and "0 jobs done" in done.stderr
    assert "as a page" not in done.stderr and done.stdout == ""
    again = grb("run", path, "--store", tmp_path / "store", "--workers", "0")
    assert again.exit_code == 0 and "as a page: grb leaderboard" in again.stderr


def test_metrics_of_a_recipe_can_be_shown(grb, mine, tmp_path):
    mine.write_text(mine.read_text() + "metrics: [macro-f1, 'recall:1']\n")
    assert grb("run", mine, "--store", tmp_path / "store", "--workers", "0").exit_code == 0
    for metric in ("macro-f1", "recall:1"):
        shown = grb("leaderboard", tmp_path / "store", "--metric", metric)
        assert shown.exit_code == 0 and f"{metric} (%), full" in shown.stdout
    refused = grb("leaderboard", tmp_path / "store", "--metric", "micro-f1")
    assert refused.exit_code == 2 and "Allowed: score, drop" in refusal(refused) and "macro-f1" in refused.stderr
    exported = grb("leaderboard", tmp_path / "store", "--format", "csv").stdout.splitlines()[0]
    assert "macro-f1" in exported and "recall:1" in exported


def test_a_sweep_is_shown_by_its_values(grb, mine, tmp_path):
    mine.write_text(mine.read_text() + "sweep: {nodes: [1, 4]}\n")
    ran = grb("run", mine, "--store", tmp_path / "store", "--workers", "0")
    assert ran.exit_code == 0, ran.stderr
    assert "by nodes" in ran.stdout and "fgsm (white-box)" in ran.stdout and "nodes=" not in ran.stdout
    assert grb("leaderboard", tmp_path / "store").stdout == ran.stdout


def test_events_and_the_board_are_lines_of_json(grb, mine, tmp_path):
    done = grb("run", mine, "--store", tmp_path / "store", "--workers", "0", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [line.get("event") for line in lines[:-1]]
    assert kinds == ["started", "done"] * 22 and {len(line["key"]) for line in lines[:-1]} == {64}
    assert "event" not in lines[-1]


def test_a_shard_does_its_part(grb, mine, tmp_path):
    for index, expected in ((1, "of 12 measurements"), (2, "")):
        done = grb("run", mine, "--store", tmp_path / "store", "--workers", "0", "--shard", f"{index}/2")
        assert done.exit_code == 0 and expected in done.stderr


def test_failed_jobs_are_reported_once_and_the_rest_is_shown(grb, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(TINY.replace("[rnd, fgsm]", "[rnd, 'pipeline.plugins:Failing']").replace("[easy, full]", "[full]"))
    done = grb("run", path, "--store", tmp_path / "store", "--workers", "0", "--repeats", "1")
    assert done.exit_code == 1
    failure = "failed: attack pipeline.plugins:Failing on synth-tiny full, seed 0: RuntimeError: the attack is broken"
    assert done.stderr.count(failure) == 1
    assert "1 jobs failed and 2 wait for them; run again to try once more" in done.stderr
    assert "rnd" in done.stdout and "Traceback" not in done.stderr
    shown = grb("store", "ls", tmp_path / "store", "--failed")
    assert "the attack is broken" in shown.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "-1"], "workers is -1"),
        (["--timeout", "0"], "timeout is 0.0"),
        (["--memory", "-5"], "memory is -5.0"),
        (["--repeats", "0"], "--repeats is 0"),
    ],
)
def test_bad_input_is_one_sentence_and_makes_nothing(grb, mine, tmp_path, options, words):
    done = grb("run", mine, "--store", tmp_path / "store", *options)
    assert done.exit_code == 2 and words in refusal(done) and not (tmp_path / "store").exists()


def test_a_recipe_that_is_wrong_makes_nothing(grb, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(TINY + "defences: [gat]\n")
    done = grb("run", path, "--store", tmp_path / "store")
    assert done.exit_code == 2 and "Did you mean 'defenses'?" in refusal(done) and not (tmp_path / "store").exists()


SLOW = """
dataset: synth-tiny
modes: [full]
repeats: 1
training: {epochs: 1}
attacks:
  - {name: "pipeline.plugins:Idle", seconds: SECONDS}
  - {name: "pipeline.plugins:Idle", seconds: SECONDS, number: 1}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("interrupts", "seconds"), [(1, 4), (2, 300)])
def test_ctrl_c_once_finishes_what_is_running_and_twice_stops_now(tmp_path, interrupts, seconds, number):
    """In a process of its own, with a signal to its whole group as a terminal or a cluster's scheduler sends it."""
    path, store = tmp_path / "slow.yaml", Store(tmp_path / "store")
    path.write_text(SLOW.replace("SECONDS", str(seconds)))
    command = [sys.executable, "-m", "grb", "run", str(path), "--store", str(store.path), "--workers", "1", "--json"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        for line in running.stdout:
            event = json.loads(line)
            if event["event"] == "started" and "Idle" in event["job"]:
                break
        first = event["key"]
        time.sleep(0.5)
        start = time.monotonic()
        for _ in range(interrupts):
            os.killpg(running.pid, number)
            time.sleep(0.5)
        rest = [json.loads(line) for line in running.stdout]
        words = running.stderr.read()
    assert running.returncode == 130, words
    assert "interrupted" in words and "Traceback" not in words
    attacks = [record.key for record in store.records() if record.job.kind == "attack"]
    if interrupts == 1:
        assert attacks == [first] and {"event": "done", "key": first} in [
            {name: line.get(name) for name in ("event", "key")} for line in rest
        ]
    else:
        assert attacks == [] and time.monotonic() - start < 200
    assert store.verify() == [] and not list((store.path / "claims").glob("*"))


def test_code_beside_a_recipe_is_found(grb, tmp_path, monkeypatch):
    """A module in the recipe's folder, named as module:Class; worker processes find it too."""
    (tmp_path / "my_own_attacks_beside.py").write_text(
        "from grb.attack.injection import FGSM\n\n\nclass Mine(FGSM):\n    pass\n", encoding="utf-8"
    )
    (tmp_path / "mine.yaml").write_text(
        "dataset: synth-tiny\nattacks: [{name: 'my_own_attacks_beside:Mine', steps: 2}]\nmodes: [full]\nrepeats: 1\n"
        "training: {epochs: 2}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    monkeypatch.chdir("/")
    done = grb("run", tmp_path / "mine.yaml", "--store", tmp_path / "store", "--workers", "1")
    assert done.exit_code == 0, done.stderr
    assert "Mine" in done.stdout


def test_modules_of_torch_geometric_stand_on_a_board(grb, grb_json, tmp_path, monkeypatch):
    """A plain module beside the recipe: trained, kept as safetensors, made again for every score, and ranked."""
    (tmp_path / "my_net_on_a_board.py").write_text(
        "import torch\nfrom torch_geometric.nn import GCNConv\n\n\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, in_features, out_features, hidden=8):\n"
        "        super().__init__()\n"
        "        self.first, self.second = GCNConv(in_features, hidden), GCNConv(hidden, out_features)\n\n"
        "    def forward(self, x, edge_index, edge_weight=None):\n"
        "        x = torch.dropout(self.first(x, edge_index, edge_weight).relu(), 0.5, self.training)\n"
        "        return self.second(x, edge_index, edge_weight)\n",
        encoding="utf-8",
    )
    (tmp_path / "mine.yaml").write_text(
        "dataset: synth-tiny\ndefenses: [{name: 'my_net_on_a_board:Net', hidden: 16}]\nattacks: [rnd]\nmodes: [full]\n"
        "repeats: 1\ntraining: {epochs: 20}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    scores = []
    for store in ("one", "two"):
        done = grb("run", tmp_path / "mine.yaml", "--store", tmp_path / store, "--workers", "1")
        assert done.exit_code == 0, done.stderr
        assert "my_net_on_a_board:Net" in done.stdout
        records = [
            json.loads(path.read_text()) for path in (tmp_path / store).rglob("*.json") if "records" in path.parts
        ]
        own = [each for each in records if each.get("measurement") and "my_net" in json.dumps(each["measurement"])]
        scores.append(sorted(json.dumps(each["measurement"]["outcomes"], sort_keys=True) for each in own))
    assert scores[0] == scores[1] and scores[0]
