from __future__ import annotations

import io
import json
import shlex

import pytest
import torch
from rich.console import Console

from grb import GraphEdit, api, attack, evaluate, load_dataset, load_model, save_model, train
from grb.cli.attack_report import expected_steps
from grb.cli.progress import ProgressReporter
from grb.errors import BudgetError
from grb.pipeline import DataRef, Job, Spec, Store, worker
from grb.threat import Injection

from .conftest import refusal

QUICK = ("--param", "iterations=3")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Two trained models of synth-tiny."""
    dataset = load_dataset("synth-tiny")
    place = tmp_path_factory.mktemp("models")
    return [
        save_model(
            train("gcn", dataset, seed=seed, epochs=20),
            place / f"gcn{seed}.safetensors",
            dataset="synth-tiny",
            fingerprint=dataset.fingerprint(),
        )
        for seed in (0, 1)
    ]


def without_clock(run: dict) -> dict:
    return {key: value for key, value in run.items() if key not in ("seconds", "cpu_seconds", "peak_megabytes")}


def test_white_box_agrees_with_the_python_interface(grb_json, checkpoints):
    result = grb_json("attack", "fgsm", "--model", checkpoints[0], *QUICK, "--seed", 4)
    dataset, model = load_dataset("synth-tiny"), load_model(checkpoints[0])
    expected = api.run_attack("fgsm", model, dataset, iterations=3, seed=4)
    (run,) = result["runs"]
    (own,) = run["victims"]
    assert own["clean"] == evaluate(model, dataset)["full"]
    assert own["attacked"] == evaluate(model, dataset, expected)["full"]
    assert run["budget"] == expected.budget
    assert (run["knowledge"], run["steps"], run["params"]) == ("white-box", 3, {"iterations": 3})
    assert result["dataset"] == {"name": "synth-tiny", "synthetic": True, "fingerprint": dataset.fingerprint()}
    assert result["attacked"] == {"model": "gcn", "file": str(checkpoints[0])}


def test_the_table_labels_synthetic_data_and_the_kind_of_attack(grb, checkpoints):
    done = grb("attack", "rnd", "fgsm", "--model", checkpoints[0], *QUICK, "--seeds", 2)
    assert done.exit_code == 0, done.stderr
    title, heads, _, first, second = done.stdout.splitlines()[:5]
    assert title == "synth-tiny (synthetic), white-box: accuracy in %, mean ± std of 2 seeds"
    assert (
        " ".join(heads.split()) == "attack difficulty victim clean attacked drop changed budget seconds CPU s peak MB"
    )
    assert first.split()[:3] == ["rnd", "full", "gcn0"]
    assert "45 edges, 9 nodes" in second and "±" in second
    assert "note: attack 'rnd' has no iterations" in done.stderr
    assert "[4/4] fgsm full seed 1: gcn0 " in done.stderr


def test_a_surrogate_is_trained_and_the_victims_are_scored(grb, checkpoints):
    victims = [word for file in checkpoints for word in ("--victim", file)]
    arguments = ["attack", "pgd", "--surrogate", "gcn", *victims, *QUICK]
    done = grb(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["knowledge"] == "transfer"
    assert result["attacked"] == {"model": "gcn", "seed": 0}
    assert [own["victim"] for own in result["runs"][0]["victims"]] == ["gcn0", "gcn1"]
    assert [row["victim"] for row in result["summary"]] == ["gcn0", "gcn1"]
    dataset = load_dataset("synth-tiny")
    surrogate = train("gcn", dataset)
    edit = api.run_attack("pgd", surrogate, dataset, iterations=3, knowledge="transfer")
    assert result["runs"][0]["victims"][1]["attacked"] == evaluate(load_model(checkpoints[1]), dataset, edit)["full"]
    assert "synth-tiny (synthetic), transfer from gcn: accuracy in %" in grb(*arguments).stdout


def test_running_again_in_a_store_resumes(grb_json, checkpoints, tmp_path, monkeypatch):
    store = tmp_path / "store"
    arguments = ("attack", "fgsm", "--model", checkpoints[0], *QUICK, "--seeds", 2, "--store", store)
    first = grb_json(*arguments)
    monkeypatch.setattr(worker, "run_attack", lambda *args, **options: pytest.fail("attacked again"))
    assert grb_json(*arguments) == first
    (fit,) = [record for record in Store(store).records() if record.job.kind == "fit"]
    assert Store(store).find(fit, "weights").read_bytes() == checkpoints[0].read_bytes()
    assert (fit.job.spec.name, fit.result["title"]) == ("file", "gcn0")


def test_the_code_that_a_model_file_names_is_not_imported(grb, tmp_path):
    model = train("gcn", load_dataset("synth-tiny"), epochs=1)
    model.name = "os:system"
    file = save_model(model, tmp_path / "evil.safetensors", dataset="synth-tiny")
    done = grb("attack", "rnd", "--model", file)
    assert done.exit_code == 2 and "names code 'os:system'" in refusal(done)


def test_records_of_files_are_not_computed_again(grb, checkpoints, tmp_path):
    assert grb("attack", "rnd", "--model", checkpoints[0], "--store", tmp_path / "store").exit_code == 0
    done = grb("store", "verify", tmp_path / "store", "--rerun", 5)
    assert done.exit_code == 0 and "3/3 equal again" in done.stderr


def test_a_saved_model_may_be_the_surrogate(grb_json, checkpoints):
    result = grb_json("attack", "fgsm", "--model", checkpoints[0], "--victim", checkpoints[1], *QUICK)
    assert result["knowledge"] == result["runs"][0]["knowledge"] == "transfer"
    assert [row["victim"] for row in result["summary"]] == ["gcn1"]


def test_an_attack_without_a_model_needs_only_a_victim(grb, grb_json, checkpoints):
    assert grb_json("attack", "rnd", "--victim", checkpoints[0])["runs"][0]["knowledge"] == "none"
    done = grb("attack", "fgsm", "--victim", checkpoints[0])
    assert done.exit_code == 2
    assert refusal(done) == "attack 'fgsm' needs a model; give one with --model FILE or --surrogate NAME"


def test_all_difficulties_have_limits_of_their_own(grb_json, checkpoints):
    result = grb_json("attack", "rnd", "--model", checkpoints[0], "--difficulty", "all")
    assert [(run["difficulty"], run["threat"]["nodes"]) for run in result["runs"]] == [
        ("easy", 3),
        ("medium", 3),
        ("hard", 3),
        ("full", 9),
    ]


def test_saved_edit_passes_the_threat_check_and_is_what_eval_applies(grb, grb_json, checkpoints, tmp_path):
    arguments = ["attack", "tdgia", "--model", checkpoints[0], *QUICK, "--difficulty", "easy", "-p", "step=0.1"]
    (run,) = grb_json(*arguments, "-o", tmp_path / "edit.npz")["runs"]
    dataset = load_dataset("synth-tiny")
    edit, meta = GraphEdit.load_with_meta(tmp_path / "edit.npz")
    assert (tmp_path / "edit.npz").stat().st_size < 10_000
    allowed = meta["threat"]
    limits = Injection(allowed["nodes"], allowed["edges_per_node"], tuple(allowed["feature_range"]))
    assert limits == Injection.preset("synth-tiny", "easy")
    assert limits.check(dataset.graph, edit) == run["budget"]
    assert {key: meta[key] for key in ("attack", "difficulty", "seed", "dataset", "fingerprint", "knowledge")} == {
        "attack": "tdgia",
        "difficulty": "easy",
        "seed": 0,
        "dataset": "synth-tiny",
        "fingerprint": dataset.fingerprint(),
        "knowledge": "white-box",
    }
    assert (meta["params"], meta["torch"]) == ({"iterations": 3, "step": 0.1}, torch.__version__)
    _, edited = grb_json("eval", checkpoints[0], tmp_path / "edit.npz")["results"]
    assert edited["values"]["accuracy"]["easy"] == run["victims"][0]["attacked"]
    record = json.loads((tmp_path / "edit.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    # three injected nodes are three rounds
    assert len(record["trace"]["loss"]) == len(record["trace"]["clean_labels_kept"]) == record["steps"] == 9
    assert (record["edit"], record["threads"], record["budget"]) == ("edit.npz", 1, run["budget"])
    assert record["seconds"] > 0 and record["dataset"]["synthetic"] is True


def test_same_seed_same_bytes(grb_json, checkpoints, tmp_path):
    arguments = ["attack", "pgd", "--model", checkpoints[0], *QUICK, "--seeds", 2]
    first, second = (grb_json(*arguments, "-o", tmp_path / name) for name in ("one", "two"))
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    stems = [f"pgd-synth-tiny-full-seed{seed}" for seed in (0, 1)]
    assert files == sorted(f"{stem}{suffix}" for stem in stems for suffix in (".npz", ".json"))
    one, two = ([(tmp_path / name / f"{stem}.npz").read_bytes() for stem in stems] for name in ("one", "two"))
    assert one == two
    assert one[0] != one[1]
    for result in (first, second):
        for run in result["runs"]:
            run.pop("saved")
    assert [without_clock(run) for run in first["runs"]] == [without_clock(run) for run in second["runs"]]


def test_limits_can_be_overridden(grb_json, checkpoints):
    limits = ["--limit", "nodes=2", "--limit", "edges_per_node=4", "--limit", "feature_range=-0.5,0.25"]
    (run,) = grb_json("attack", "fgsm", "--model", checkpoints[0], *QUICK, *limits)["runs"]
    assert run["threat"] == {"kind": "injection", "nodes": 2, "edges_per_node": 4, "feature_range": [-0.5, 0.25]}
    assert run["budget"] == {"nodes": 2, "edges": 8, "most_edges_per_node": 4}


def test_figures_are_drawn_for_the_first_repeat(grb, checkpoints, tmp_path):
    done = grb("attack", "rnd", "fgsm", "--model", checkpoints[0], *QUICK, "--seeds", 2, "--figures", tmp_path / "f")
    assert done.exit_code == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == [
        "fgsm-synth-tiny-full-seed0-curve.png",
        "fgsm-synth-tiny-full-seed0-neighbourhood.png",
        "rnd-synth-tiny-full-seed0-neighbourhood.png",
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "f").iterdir())


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["-p", "step=nan"], "--param is 'step=nan', but only finite numbers are possible"),
        (["-p", "step=-1"], "step_size is -1.0, but must be positive"),
        (["-p", "iterations=0"], "--param iterations is 0, but at least 1 is needed"),
        (["-p", "iteration=3"], "no parameter of attack 'fgsm' 'iteration'. Did you mean 'iterations'?"),
        (["--threads", "0"], "--threads is 0, but at least 1 is needed"),
        (["--seed", "-1"], "--seed is -1, but a whole number"),
        (["--seeds", "0"], "--seeds is '0', but"),
        (["--difficulty", "eazy"], "no difficulty 'eazy'. Did you mean 'easy'?"),
        (["--limit", "nodes=-1"], "--limit nodes is -1, but 0 to 300 are possible"),
        (["--limit", "nodes=1000000000000"], "--limit nodes is 1000000000000, but 0 to 300"),
        (["--limit", "edges_per_node=-2"], "--limit edges_per_node is -2, but"),
        (["--limit", "edges=3"], "--limit edges is a limit of modification attacks, but none was named; leave it out"),
        (["--limit", "knots=3"], "no limit 'knots'."),
        (["--limit", "feature_range=0.9,-0.9"], "the feature range is [0.9, -0.9], but"),
        (["--limit", "feature_range=nan,1"], "--limit is 'feature_range=nan,1', but only finite numbers"),
        (["--limit", "feature_range=1"], "--limit feature_range is 1, but two numbers, the lower first, are needed"),
        (["--limit", "feature_range=a,b"], "--limit feature_range is ['a', 'b'], but two numbers"),
        (["--surrogate", "gcn"], "--model and --surrogate were both given"),
        (["--dataset", "synth-tinny"], "no dataset 'synth-tinny'. Did you mean 'synth-tiny'?"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(grb, checkpoints, arguments, sentence):
    done = grb("attack", "fgsm", "--model", checkpoints[0], *arguments)
    assert done.exit_code == 2
    assert refusal(done).startswith(sentence)


def test_roles_must_be_clear(grb, checkpoints):
    assert refusal(grb("attack", "fgsm", "-d", "synth-tiny")).startswith(
        "no model was given; attack a saved model with"
    )
    alone = ["attack", "fgsm", "--surrogate", "gcn"]
    for more in ([], ["-d", "synth-tiny"], ["-o", "edit.npz"]):
        assert refusal(grb(*alone, *more)).startswith(
            "--surrogate needs a victim to score, or --dataset and --output; "
        )
    both = grb("attack", "fgsm", "--model", checkpoints[0], "--victim", checkpoints[0])
    assert refusal(both).endswith("is both --model and --victim; leave --victim out for a white-box attack")
    unknown = grb("attack", "fgsm", "--surrogate", "gcnn", "--victim", checkpoints[0])
    assert refusal(unknown).startswith("no model 'gcnn'. Did you mean 'gcn'?")


def test_an_edit_can_be_made_from_a_surrogate_alone(grb, tmp_path):
    path = tmp_path / "my attack.npz"
    done = grb("attack", "fgsm", "--surrogate", "gcn", "-d", "synth-tiny", *QUICK, "-o", path)
    assert done.exit_code == 0, done.stderr
    assert "transfer from gcn" in done.stdout and "surrogate" in done.stdout
    edit, meta = GraphEdit.load_with_meta(path)
    assert edit.num_new == Injection.preset("synth-tiny", "full").nodes and meta["knowledge"] == "transfer"
    advice = done.stderr.splitlines()[-1]
    assert advice == f"to submit it: write the card my attack.yaml beside it, then grb submit '{path}' --check"
    path.with_suffix(".yaml").write_text("name: mine\nkind: attack\ndataset: synth-tiny")
    checked = grb(*shlex.split(advice.partition("then grb ")[2]))
    assert checked.exit_code == 0 and "a valid attack on synth-tiny" in checked.stdout


def test_unknown_attack_gets_the_nearest_name(grb, checkpoints):
    done = grb("attack", "fgsn", "--model", checkpoints[0])
    assert done.exit_code == 2
    assert refusal(done) == "no attack 'fgsn'. Did you mean 'fgsm'? `grb ls attacks` shows all names."


def test_a_dataset_without_limits_gets_those_of_its_size_and_is_told(grb, monkeypatch, checkpoints):
    monkeypatch.setattr("grb.attack.build.has_limits", lambda name: False)
    done = grb("attack", "rnd", "--model", checkpoints[0], "--limit", "edges_per_node=2")
    assert (
        done.exit_code == 0
        and "the papers have no limits for 'synth-tiny': what is not given is inferred" in done.output
    )
    limits = ["--limit", "nodes=3", "--limit", "edges_per_node=2", "--limit", "feature_range=0,1"]
    given = grb("attack", "rnd", "--model", checkpoints[0], *limits)
    assert given.exit_code == 0 and "inferred" not in given.output


def test_places_are_checked_before_the_attack(grb, checkpoints, tmp_path):
    (tmp_path / "file").write_text("mine")
    start = ["attack", "fgsm", "--model", checkpoints[0], *QUICK]
    assert "is not a directory" in refusal(grb(*start, "-o", tmp_path / "file" / "deep"))
    assert "is not a directory" in refusal(grb(*start, "--figures", tmp_path / "file"))
    assert refusal(grb(*start, "--seeds", 2, "-o", tmp_path / "edit.npz")).startswith(
        "--output is one file, but there are 2 runs; give a directory, for instance edits/"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_refused_edit_is_reported_and_the_others_go_on(grb, monkeypatch, checkpoints):
    real = worker.run_attack

    def over_budget_at_seed_0(*args, seed, **options):
        if seed == 0:
            raise BudgetError("10 nodes are injected, but the threat model allows nodes=9")
        return real(*args, seed=seed, **options)

    monkeypatch.setattr(worker, "run_attack", over_budget_at_seed_0)
    done = grb("attack", "rnd", "--model", checkpoints[0], "--seeds", 2)
    assert done.exit_code == 1
    assert "rnd full seed 0: FAILED: 10 nodes are injected" in done.stderr
    assert "1 of 2" in done.stdout


def test_interrupt_shows_what_was_finished(grb, monkeypatch, checkpoints):
    real = worker.run_attack

    def interrupted_at_seed_1(*args, seed, **options):
        if seed == 1:
            raise KeyboardInterrupt
        return real(*args, seed=seed, **options)

    monkeypatch.setattr(worker, "run_attack", interrupted_at_seed_1)
    done = grb("attack", "rnd", "--model", checkpoints[0], "--seeds", 3)
    assert done.exit_code == 130
    assert "interrupted after 1 of 3 runs" in done.stdout


def test_eval_refuses_an_edit_of_another_dataset_and_warns_about_other_data(grb, checkpoints, tmp_path):
    edit = GraphEdit(n=load_dataset("synth-tiny").num_nodes)
    edit.save(tmp_path / "other.npz", dataset="grb-cora", fingerprint="0" * 64)
    assert refusal(grb("eval", checkpoints[0], tmp_path / "other.npz")).endswith(
        "was made for dataset 'grb-cora', but this is 'synth-tiny'; give the dataset it was made for with --dataset"
    )
    edit.save(tmp_path / "old.npz", dataset="synth-tiny", fingerprint="0" * 64)
    done = grb("eval", checkpoints[0], tmp_path / "old.npz")
    assert done.exit_code == 0
    assert "was made for a 'synth-tiny' with another fingerprint" in done.stderr


@pytest.mark.parametrize(
    "attack, params, steps",
    [("fgsm", {"steps": 10}, 10), ("tdgia", {"steps": 10, "sequential_step": 0.2}, 50), ("rnd", {}, None)],
)
def test_steps_of_all_rounds_are_expected(attack, params, steps):
    limits = {"threat": Injection(20, 5, (0, 1)).to_dict(), "knowledge": "white-box"}
    job = Job("attack", Spec(attack, params), DataRef("synth-tiny", "0"), mode="full", extra=limits)
    assert expected_steps(job, load_dataset("synth-tiny")) == steps


def test_live_line_of_an_attack(monkeypatch):
    monkeypatch.setattr("grb.cli.progress.REDRAW", 0.0)
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, markup=False, color_system=None)
    with ProgressReporter(console, 1) as progress:
        progress.start("fgsm full seed 0", 20)
        progress.step(attack.Step(0.5, 0.75))
        progress.step(attack.Step(0.75, 0.8))
    assert "2/20  loss 0.750  kept 80.00  ETA 0:0" in stream.getvalue()


def test_an_attack_of_unknown_length_still_gives_a_heartbeat(monkeypatch):
    monkeypatch.setattr("grb.cli.progress.HEARTBEAT", 0.0)
    stream = io.StringIO()
    with ProgressReporter(Console(file=stream, width=200), 1) as progress:
        progress.start("own full seed 0", None)
        progress.step(attack.Step(0.5, 0.75))
    assert stream.getvalue() == "own full seed 0: step 1  loss 0.500  kept 75.00\n"


def test_help_has_an_example(grb):
    shown = grb("attack", "--help").stdout
    assert "Example" in shown and "grb attack fgsm" in shown


def test_true_labels_are_those_of_the_python_interface_and_the_record_says_so(grb_json, checkpoints, tmp_path):
    file = tmp_path / "edit.npz"
    result = grb_json("attack", "pgd", "--model", checkpoints[0], *QUICK, "--labels", "true", "-o", file)
    dataset, model = load_dataset("synth-tiny"), load_model(checkpoints[0])
    (run,) = result["runs"]
    for labels in ("predicted", "true"):
        expected = api.run_attack("pgd", model, dataset, iterations=3, labels=labels)
        same = torch.equal(GraphEdit.load(file).new_x, expected.edit.new_x)
        assert same is (labels == "true")
    assert result["labels"] == run["labels"] == json.loads(file.with_suffix(".json").read_text())["labels"] == "true"
    assert GraphEdit.load_with_meta(file)[1]["labels"] == "true"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("pgd", "--surrogate", "gcn", "--victim", 0, "--labels", "true"), "not on a surrogate or without a model"),
        (("pgd", "--model", 1, "--victim", 0, "--labels", "true"), "not on a surrogate or without a model"),
        (("rnd", "--model", 0, "--labels", "true"), "aims at no labels"),
        (("grb.attack.injection:PGD", "--model", 0, "--labels", "true"), "is not in grb's own catalogue"),
        (("pipeline.plugins:Nothing", "--model", 0, "--labels", "true"), "is not in grb's own catalogue"),
        (("pgd", "--model", 0, "--labels", "mine"), "predicted or true is needed"),
    ],
)
def test_true_labels_are_for_our_own_attacks_on_the_victim_itself(grb, checkpoints, arguments, sentence):
    words = [checkpoints[word] if isinstance(word, int) else word for word in arguments]
    assert sentence in refusal(grb("attack", *words))


def test_an_edit_against_true_labels_cannot_be_submitted(grb, checkpoints, tmp_path):
    file = tmp_path / "mine.npz"
    assert grb("attack", "pgd", "--model", checkpoints[0], *QUICK, "--labels", "true", "-o", file).exit_code == 0
    card = "kind: attack\nname: mine\nauthors: [me]\ndataset: synth-tiny\n"
    file.with_suffix(".yaml").write_text(card)
    assert "an attack on true labels, which no attacker has" in refusal(grb("submit", file, "--check"))


def test_an_attack_without_a_model_writes_its_edit(grb, grb_json, tmp_path):
    found = grb_json("attack", "rnd", "rnd-edges", "--dataset", "synth-tiny", "--output", tmp_path)
    assert found["knowledge"] == "none" and len(list(tmp_path.glob("*.npz"))) == 2
    sentence = refusal(grb("attack", "fgsm", "--dataset", "synth-tiny", "--output", tmp_path))
    assert sentence.startswith("no model was given; attack a saved model")


def test_an_attack_without_a_model_shows_what_it_changed(grb, tmp_path):
    title, heads, _, row, *_ = grb("attack", "rnd", "-d", "synth-tiny", "-o", tmp_path / "rnd.npz").stdout.splitlines()
    assert title.endswith("without a model")
    assert heads.split()[:3] == ["attack", "difficulty", "budget"] and "victim" not in heads
    assert "45 edges, 9 nodes" in row


def test_attacks_by_queries_show_how_many_they_used(grb, grb_json, checkpoints):
    line = ("attack", "random-search", "--model", checkpoints[0], "--limit", "queries=7")
    _, heads, _, row, *_ = grb(*line).stdout.splitlines()
    (run,) = grb_json(*line)["runs"]
    assert 0 < run["queries"] <= 7
    assert "queries" in heads and row.split()[-4] == str(run["queries"])


def test_steps_that_exceed_those_expected_have_no_share_and_no_time_left(monkeypatch):
    monkeypatch.setattr("grb.cli.progress.HEARTBEAT", 0.0)
    stream = io.StringIO()
    with ProgressReporter(Console(file=stream, width=200), 1) as progress:
        progress.start("own full seed 0", 1)
        progress.step(attack.Step(0.5, 0.75))
        progress.step(attack.Step(0.5, 0.75))
    assert stream.getvalue().splitlines()[-1] == "own full seed 0: step 2  loss 0.500  kept 75.00"


def test_chosen_targets_are_attacked_and_the_others_are_told_beside_them(grb, grb_json, tmp_path):
    import grb as library

    dataset = library.load_dataset("synth-tiny")
    model = library.train("gcn", dataset, epochs=20)
    file = library.save_model(model, tmp_path / "gcn.safetensors", dataset="synth-tiny")
    ids = dataset.with_targets("class=1").index_test
    words = ("attack", "fgsm", "--model", file, "--targets", "class=1", "--limit", "nodes=4", "--param", "iterations=5")
    found = grb_json(*words, "-o", tmp_path / "edit.npz")
    assert found["targets"] == len(ids) and found["others"] == len(dataset.index_test) - len(ids)
    (run,) = found["runs"]
    edit = library.GraphEdit.load(tmp_path / "edit.npz")
    own = library.evaluate(model, dataset, edit, targets=ids)
    assert run["victims"][0]["attacked"] == dict(own) and run["budget"]["nodes"] <= 4
    assert run["victims"][0]["clean"]["targets"] == library.evaluate(model, dataset, targets=ids)["targets"]
    ends = edit.add[edit.add < dataset.num_nodes]
    assert torch.isin(ends, ids).all()
    (tmp_path / "ids.txt").write_text("\n".join(map(str, ids.tolist())), encoding="utf-8")
    listed = grb(*[tmp_path / "ids.txt" if word == "class=1" else word for word in words])
    assert listed.exit_code == 0 and f"{len(ids)} targets of" in listed.stdout
    banded = grb_json(*["degrees=2" if word == "class=1" else word for word in words])
    bands = banded["runs"][0]["victims"][0]["by_degree"]
    assert sum(band["targets"] for band in bands) == banded["targets"] and all(band["targets"] <= 2 for band in bands)
    wrong = 1 - banded["runs"][0]["victims"][0]["attacked"]["targets"]
    assert sum(band["targets"] * (band["share"] or 0) for band in bands) == pytest.approx(wrong * banded["targets"])
    shown = grb(*["margin-low=3" if word == "class=1" else word for word in words])
    assert "3 targets of" in shown.stdout and "Targets by their degree" in shown.stdout
    for wrong, said in (
        (("--targets", "random=0"), "a number of nodes of at least 1 is needed after random="),
        (("--targets", "class=9"), "no class '9'"),
        (("--targets", "class=1", "--difficulty", "easy"), "--targets chooses the nodes"),
        (("--targets", "class=1", "--store", tmp_path / "s"), "--store does not go with --targets"),
    ):
        refused = grb("attack", "fgsm", "--model", file, *wrong)
        assert refused.exit_code == 2 and said in refused.stderr, refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1
