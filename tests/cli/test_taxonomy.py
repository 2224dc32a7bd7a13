from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from grb.errors import IntegrityError
from grb.pipeline import DataRef, Job, Record, Spec, Store
from grb.taxonomy import PerturbationInfo, ProfileMeasurement, published, read_profiles

from .conftest import refusal

FEW = ("--n-bootstrap", "9")


@pytest.fixture
def runs(tmp_path):
    """AUROCs of two models on eight datasets, four seeds each."""
    generator = np.random.default_rng(0)
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["dataset", "perturbation", "model", "seed", "auroc"])
        for model in ("gcn", "gin"):
            for place in range(8):
                for name, factor in (
                    ("-", 1.0),
                    ("NoEdges", 0.7 + 0.3 * (place % 2)),
                    ("RandFtrs", 0.9),
                    ("Frag-k1", 0.8),
                ):
                    for seed in range(4):
                        score = 0.85 * factor + 0.01 * generator.standard_normal()
                        writer.writerow([f"d{place}", name, model, seed, round(score, 5)])
    return path


def keep(store, dataset, perturbation, seed, auroc, *, model="gcn", version=1, **training):
    """Write one profiling run into a store."""
    settings = {"epochs": 300, "patience": None, "lr": 0.001, **training}
    run = ProfileMeasurement(
        dataset,
        reference=dataset.lower(),
        fingerprint="f",
        task="graph",
        split=seed,
        perturbations=()
        if perturbation == "-"
        else (PerturbationInfo(perturbation.lower(), perturbation, {}, version),),
        perturbation=perturbation,
        model=model,
        model_version=1,
        seed=seed,
        training=settings,
        auroc=auroc,
        val_auroc=auroc,
        best_epoch=1,
        epochs=2,
        stopped="all epochs done",
        parameters=10,
        curve=(0.5, auroc),
    )
    method = {**settings, "version": version}
    job = Job("profile", Spec(model, {"on": perturbation}), DataRef(dataset, "f"), method, seed=seed)
    spent = {"cpu_seconds": 1.0, "peak_megabytes": 1.0}
    store.write(Record(job.key, job, {}, {}, spent, run.to_dict()))


def write(path, *rows):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def test_published_results_as_tables(grb):
    done = grb("taxonomy", "analyse", "inductive", *FEW)
    assert done.exit_code == 0, done.stderr
    shown = done.stdout
    assert shown.startswith("published inductive datasets, GCN: AUROC in % of the unperturbed dataset's\n")
    assert "groups: Ward's tree cut into 4, 3 and 4 joined; agreement with the known groups 1.000" in shown
    assert "46.419  33.820" in shown
    assert "fragile: lowest agreement 0.10 (average)" in shown
    assert "the paper's" in shown and "0.2496" in shown
    assert "note: published means over nominally ten seeds or folds" in done.stderr


def test_published_results_as_json(grb_json, grb):
    found = grb_json("taxonomy", "analyse", "transductive", *FEW)
    assert found["groups"]["members"]["T-1"] == ["Actor", "DzEu", "WebKB-Cor", "WebKB-Wis"]
    assert found["known"]["agreement"] == 1.0 and found["written"] == []
    assert found["stability"]["agreement"]["3"]["average"] == pytest.approx(0.143, abs=5e-4)
    assert json.loads(grb("--json", "taxonomy", "analyse", "transductive", *FEW).stdout) == found


def test_another_model_of_the_published(grb_json):
    found = grb_json("taxonomy", "analyse", "inductive", "--model", "gin", *FEW)
    assert found["model"] == "GIN" and found["groups"]["cut"] == 3 and found["groups"]["joins"] == []
    assert found["known"]["agreement"] == pytest.approx(0.308, abs=5e-4)


def test_everything_is_written_and_can_be_read_again(grb, tmp_path):
    out = tmp_path / "new" / "taxonomy"
    done = grb("taxonomy", "analyse", "inductive", "-o", out, "--format", "svg", *FEW)
    assert done.exit_code == 0, done.stderr
    names = {path.name for path in out.iterdir()}
    assert {
        f"{name}.svg"
        for name in (
            "heatmap",
            "pca",
            "correlation",
            "models",
            "profiles-by-model",
            "stability",
            "classical",
            "reliability",
        )
    } <= names
    assert "wrote 18 files" in done.stderr and len(names) == 18
    profiles = published("inductive").profiles
    np.testing.assert_array_equal(read_profiles(out / "log2-ratio.csv").values, profiles.values)
    np.testing.assert_allclose(read_profiles(out / "auroc.csv").values, profiles.values, atol=1e-8)
    assert json.loads((out / "analysis.json").read_text())["groups"]["cut"] == 4
    with (out / "groups.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0] == {"dataset": "ENZYMES", "group": "I-1", "known": "I-1"}
    again = grb(
        "taxonomy", "analyse", out / "log2-ratio.csv", "--labels", out / "groups.csv", "--groups", 4, "--json", *FEW
    )
    assert json.loads(again.stdout)["known"]["agreement"] == pytest.approx(0.8506, abs=5e-5)


def test_models_beside_each_other(grb, grb_json, tmp_path):
    found = grb_json("taxonomy", "analyse", "inductive", "--against", "models")
    assert found["base"] == "GCN" and len(found["datasets"]) == 24 and found["published"] is None
    assert {row["model"] for row in found["differences"]} == {"GIN", "GIN-2L", "ChebNet", "GatedGCN", "GCNII"}
    shown = grb("taxonomy", "analyse", "inductive", "--against", "models", "--format", "markdown").stdout
    assert "as the paper's Figure 5:" in shown and "| NoNodeFtrs | +0.11 (" in shown


def test_alternatives_of_a_setting(grb_json, tmp_path):
    rows = [
        f"{name},{cell},gcn,0.{value}" for name in "abc" for cell, value in (("-", 9), ("NoEdges", 7), ("LowPass", 8))
    ]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["dataset,perturbation,model,auroc", *rows]) + "\n")
    found = grb_json("taxonomy", "analyse", path, "--where", "dataset=a,c", *FEW)
    assert found["datasets"] == ["a", "c"]


def test_runs_of_two_models(grb, grb_json, runs):
    done = grb("taxonomy", "analyse", runs, *FEW)
    assert done.exit_code == 0, done.stderr
    assert "has 2 models (gcn, gin); these are the profiles of gcn" in done.stderr
    for words in ("Frag-k over seeds", "resampled runs", "correlation of models over 24 log2 ratios"):
        assert words in done.stdout
    found = grb_json("taxonomy", "analyse", runs, "--model", "gin", "--groups", 2, *FEW)
    groups = found["groups"]["of"]
    assert groups["d0"] == groups["d2"] != groups["d1"] == groups["d3"]
    assert found["interval"]["draws"] == 9 and len(found["seeds"]) == 8


def test_labels_and_joins_of_the_user(grb_json, runs, tmp_path):
    labels = write(
        tmp_path / "labels.csv", ["dataset", "group"], *([f"d{i}", "even" if i % 2 == 0 else "odd"] for i in range(8))
    )
    found = grb_json("taxonomy", "analyse", runs, "--model", "gcn", "--labels", labels, "--groups", 2, *FEW)
    assert found["known"]["agreement"] == 1.0 and set(found["groups"]["members"]) == {"even", "odd"}
    three = grb_json("taxonomy", "analyse", "inductive", "--groups", 4, "--merge-groups", "1+2", *FEW)
    assert three["groups"]["joins"] == [[1, 2]] and len(three["groups"]["members"]) == 3


HEAD = ["dataset", "-", "NoEdges", "NodeDeg"]


def test_missing_cells_are_told_and_the_rule_can_be_chosen(grb, grb_json, tmp_path):
    path = write(
        tmp_path / "t.csv", HEAD, ["a", 0.9, 0.5, 0.8], ["b", 0.9, "", 0.7], ["c", 0.8, 0.8, 0.7], ["d", 0.8, 0.7, 0.5]
    )
    done = grb("taxonomy", "analyse", path, *FEW)
    assert done.exit_code == 0
    assert "note: left out, because a cell is missing: NoEdges" in done.stderr
    assert grb_json("taxonomy", "analyse", path, "--missing", "drop-datasets", *FEW)["used"]["datasets"] == [
        "a",
        "c",
        "d",
    ]
    assert "Did you mean 'mean'?" in refusal(grb("taxonomy", "analyse", path, "--missing", "meen"))


def test_profiles_as_csv_and_markdown_and_figures_beside_json(grb, grb_json, runs, tmp_path):
    rows = list(csv.DictReader(grb("taxonomy", "analyse", runs, "--format", "csv", *FEW).stdout.splitlines()))
    assert len(rows) == 8 and {"dataset", "group", "AUROC", "NoEdges"} <= set(rows[0])
    lines = grb("taxonomy", "analyse", runs, "--format", "markdown", *FEW).stdout.splitlines()
    assert lines[0].startswith("| dataset | group | AUROC |") and len(lines) == 10
    found = grb_json("taxonomy", "analyse", runs, "-o", tmp_path / "out", "--format", "svg", *FEW)
    assert str(tmp_path / "out" / "heatmap.svg") in found["written"]


@pytest.mark.parametrize("rows", [[["a", 0.9, 0.5, 0.8]], [["a", 0.9, 0.5, 0.8], ["b", 0.8, 0.7, 0.4]]])
def test_one_or_two_datasets_get_an_answer(grb, tmp_path, rows):
    done = grb("taxonomy", "analyse", write(tmp_path / "t.csv", HEAD, *rows), "-o", tmp_path / "out", *FEW)
    assert done.exit_code == 0, done.stderr
    assert "note: not done: " in done.stderr
    assert (tmp_path / "out" / "heatmap.png").is_file() and (tmp_path / "out" / "analysis.json").is_file()


def test_one_perturbation_gets_an_answer(grb, tmp_path):
    rows = [[name, 0.9, score] for name, score in zip("abcd", (0.9, 0.88, 0.5, 0.51))]
    done = grb("taxonomy", "analyse", write(tmp_path / "t.csv", HEAD[:3], *rows), "-o", tmp_path / "out", *FEW)
    assert done.exit_code == 0, done.stderr
    assert "correlations need two perturbations, but there is only 'NoEdges'" in done.stderr


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((), "there is no store at"),
        (("inductiv",), "no file inductiv"),
        (("inductive", "--model", "gat"), "no model 'gat'"),
        (("inductive", "--merge-groups", "3,4"), "--merge-groups is '3,4', but two numbers of groups are needed"),
        (("inductive", "--groups", "4", "--merge-groups", "1+3"), "groups 1 and 3 are not siblings"),
        (("inductive", "--groups", "0"), "--groups is 0, but at least 1 is needed"),
        (("inductive", "--groups", "30"), "30 groups were asked for, but 1 to 24 are possible"),
        (("inductive", "--n-bootstrap", "1"), "--n-bootstrap is 1, but at least 2 are needed"),
        (("inductive", "--seed", "-1"), "--seed is -1"),
        (("inductive", "--format", "gif"), "no format 'gif'"),
        (("inductive", "--representatives", "2"), "2 representatives of 3 groups"),
        (("gone.csv",), "no file gone.csv"),
        (("inductive", "--against", "paper"), "no comparison 'paper'"),
        (("zero.csv",), "the AUROC of dataset 'a' under 'NoEdges' is 0"),
        (("nan.csv",), "no dataset has an AUROC of its unperturbed self"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing_behind(grb, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "zero.csv", HEAD, ["a", 0.9, 0.0, 0.8], ["b", 0.9, 0.8, 0.8])
    write(tmp_path / "nan.csv", HEAD, ["a", "nan", 0.5, 0.8], ["b", "NaN", 0.8, 0.8])
    done = grb("taxonomy", "analyse", *arguments, "-o", "out")
    assert done.exit_code == 2
    assert sentence in refusal(done)
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_refused_before_the_work(grb, tmp_path):
    (tmp_path / "file").write_text("")
    done = grb("taxonomy", "analyse", "inductive", "-o", tmp_path / "file" / "deep")
    assert done.exit_code == 2 and "is not a directory" in refusal(done)


def test_help_shows_examples_and_no_verb_shows_help(grb):
    shown = grb("taxonomy", "analyse", "--help").stdout
    assert "grb taxonomy analyse transductive" in shown
    done = grb("taxonomy")
    assert done.exit_code == 0 and "analyse" in done.stdout


def test_the_runs_of_a_store(grb_json, grb, runs, tmp_path):
    """The same runs as records of a store and as a file give the same profiles."""
    store = Store(tmp_path / "store")
    with runs.open() as stream:
        for row in csv.DictReader(stream):
            seed = int(row["seed"])
            keep(store, row["dataset"], row["perturbation"], seed, float(row["auroc"]), model=row["model"])
    found = grb_json("taxonomy", "analyse", str(store.path), "--model", "gin", *FEW)
    expected = grb_json("taxonomy", "analyse", str(runs), "--model", "gin", *FEW)
    rows = [found["datasets"].index(name) for name in expected["datasets"]]
    columns = [found["perturbations"].index(name) for name in expected["perturbations"]]
    np.testing.assert_allclose(np.array(found["log2_ratio"])[np.ix_(rows, columns)], expected["log2_ratio"])


def test_a_store_without_runs_is_refused(grb, tmp_path):
    done = grb("taxonomy", "analyse", str(tmp_path), *FEW)
    assert done.exit_code == 2 and "has no run of a perturbed dataset" in refusal(done)


@pytest.fixture
def mixed(tmp_path):
    """A store with two trainings of different length: other seeds, so that nothing but the settings tells them apart."""
    store = Store(tmp_path / "store")
    for dataset in ("a", "b", "c"):
        for name, score in (("-", 0.9), ("NoEdges", 0.6), ("NodeDeg", 0.7)):
            for seed in (0, 1):
                keep(store, dataset, name, seed, score)
    for name, score in (("-", 0.5), ("NoEdges", 0.5), ("NodeDeg", 0.5)):
        keep(store, "a", name, 2, score, epochs=5, patience=2)
    return store


def test_trainings_of_different_length_never_share_a_cell(grb, grb_json, mixed):
    done = grb("taxonomy", "analyse", mixed.path, *FEW)
    assert done.exit_code == 2
    told = refusal(done)
    assert "runs of a with gcn under 2 different settings" in told
    assert "epochs=300 patience=none (6 runs)" in told and "epochs=5 patience=2 (3 runs)" in told
    assert "--where epochs=300" in told
    for against in ("published", "attacks"):
        assert "--where epochs=300" in refusal(grb("taxonomy", "analyse", mixed.path, "--against", against))
    long = grb_json("taxonomy", "analyse", mixed.path, "--where", "epochs=300", *FEW)
    assert long["datasets"] == ["a", "b", "c"] and long["original"] == pytest.approx([0.9, 0.9, 0.9])
    short = grb_json("taxonomy", "analyse", mixed.path, "--where", "patience=2", *FEW)
    assert short["datasets"] == ["a"] and short["original"] == [0.5]
    assert "no run of" in refusal(grb("taxonomy", "analyse", mixed.path, "--where", "epochs=7"))
    assert "Did you mean 'epochs'?" in refusal(grb("taxonomy", "analyse", mixed.path, "--where", "epoch=5"))


def test_an_exported_table_of_mixed_runs_is_refused_too(grb, mixed, tmp_path):
    for name in ("runs.csv", "runs.jsonl"):
        assert grb("store", "copy", mixed.path, tmp_path / name).exit_code == 0
        assert "--where epochs=300" in refusal(grb("taxonomy", "analyse", tmp_path / name))
        done = grb("taxonomy", "analyse", tmp_path / name, "--where", "epochs=300", *FEW)
        assert done.exit_code == 0, done.stderr


def test_versions_of_a_perturbation_never_share_a_cell(grb, tmp_path):
    store = Store(tmp_path / "store")
    for seed in (0, 1):
        keep(store, "a", "-", seed, 0.9)
        keep(store, "a", "NoEdges", seed, 0.6, version=1 + seed)
    told = refusal(grb("taxonomy", "analyse", store.path))
    assert "runs of a under NoEdges" in told and "--where perturbation_version=" in told


def test_runs_of_an_earlier_version_are_refused_in_a_sentence(tmp_path):
    store, job = Store(tmp_path / "store"), Job("profile", Spec("gcn"), DataRef("a", "f"))
    with pytest.raises(
        IntegrityError, match="this is not a profiling run of format 1; `grb taxonomy run` makes new ones"
    ):
        store.write(Record(job.key, job, {"dataset": "a", "perturbation": "-", "auroc": 0.9}, {}, {}))


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], "AUROC in % of the unperturbed dataset's"),
        (["--format", "csv"], "dataset,group,AUROC,NodeDeg,NoEdges"),
        (["--against", "attacks"], "AUROC lost: features"),
        (["--json"], '"log2_ratio"'),
    ],
)
def test_a_store_is_analysed_without_torch_and_without_data(mixed, tmp_path, options, shown):
    code = (
        "import sys\n"
        "from grb.cli.app import app\n"
        "try:\n"
        f"    app(['taxonomy', 'analyse', {str(mixed.path)!r}, '--where', 'epochs=300', '--n-bootstrap', '9', *{options!r}])\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("GRB_DATA", "GRB_HOME")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
