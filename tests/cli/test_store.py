from __future__ import annotations

import csv
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from grb.pipeline import Limits, Store, plan_study, run
from grb.pipeline.provenance import provenance
from grb.pipeline.record import json_bytes
from grb.pipeline.spec import digest
from grb.pipeline.unused import STALE_SECONDS
from pipeline.parts import TINY, recipe

from .conftest import refusal


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    """A store with everything of the tiny recipe on one difficulty; to be read only."""
    path = tmp_path_factory.mktemp("cli-store") / "store"
    study = plan_study(recipe(modes=["full"]))
    store, record = Store(path), study.record(provenance(0.0, 0.0))
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).done == 22 and record is not None
    store.write(record)
    return path


@pytest.fixture
def own(filled, tmp_path) -> Path:
    shutil.copytree(filled, tmp_path / "own")
    return tmp_path / "own"


def a_record(path: Path, kind: str = "score") -> Path:
    store = Store(path)
    return store.record_path(next(record.key for record in store.records() if record.job.kind == kind))


# ls


def test_ls_counts_and_lists(grb, grb_json, filled):
    shown = grb("store", "ls", filled).stdout
    assert "23 records in" in shown and all(kind in shown for kind in ("fit", "attack", "score", "study", "synth-tiny"))
    fits = grb_json("store", "ls", filled, "--kind", "fit")
    assert len(fits) == 4 and {each["job"]["kind"] for each in fits} == {"fit"}
    assert "3 epochs, val" in grb("store", "ls", filled, "--kind", "fit").stdout
    assert "nodes 9" in grb("store", "ls", filled, "--kind", "attack").stdout
    assert "full " in grb("store", "ls", filled, "--kind", "score").stdout
    assert "tiny" in grb("store", "ls", filled, "--kind", "study").stdout
    assert grb_json("store", "ls", filled, "--failed") == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ls", "nowhere"], "no store nowhere"),
        (["verify", "nowhere"], "no store nowhere"),
        (["copy", "nowhere", "x.zip"], "no store nowhere"),
        (["verify", "nowhere.zip"], "no bundle nowhere.zip"),
        (["copy", "nowhere.zip", "s"], "no bundle nowhere.zip"),
        (["ls", "."], "neither a store nor empty"),
    ],
)
def test_what_is_not_there_is_one_sentence(grb, arguments, words, tmp_path, monkeypatch):
    (tmp_path / "thesis.tex").write_text("")
    monkeypatch.chdir(tmp_path)
    done = grb("store", *arguments)
    assert done.exit_code == 2 and words in refusal(done)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_unknown_kinds_are_refused(grb, filled):
    assert "--kind is 'dance'" in refusal(grb("store", "ls", filled, "--kind", "dance"))


def test_a_damaged_record_is_exit_code_3(grb, own):
    a_record(own).write_text("{torn")
    done = grb("store", "ls", own)
    assert done.exit_code == 3 and "damaged" in refusal(done)


# verify


def test_unused_files_are_found_and_removed_if_asked_for(grb, grb_json, own):
    lost = own / "objects" / "ab.npz.part"
    lost.write_text("half")
    os.utime(lost, (time.time() - STALE_SECONDS - 10,) * 2)
    unused = {"files": 1, "bytes": 4, "removed": False}
    assert grb_json("store", "verify", own)["unused"] == unused and lost.exists()
    assert "1 files, 0.0 MB are unused; --clean removes them" in grb("store", "verify", own).stderr
    assert grb_json("store", "verify", own, "--clean")["unused"] == {**unused, "removed": True} and not lost.exists()
    assert grb_json("store", "verify", own)["unused"]["files"] == 0


def test_verify_computes_again(grb_json, filled):
    found = grb_json("store", "verify", filled, "--rerun", "2", "--seed", "1")
    assert found["records"] == 23 and found["problems"] == []
    assert len(found["recomputed"]) >= 4 and all(each["equal"] for each in found["recomputed"])


def test_verify_computes_one_record_again(grb, grb_json, filled):
    key = a_record(filled, "fit").stem
    (one,) = grb_json("store", "verify", filled, "--record", key[:10])["recomputed"]
    assert one["key"] == key and one["equal"]
    assert "23 records of" in refusal(grb("store", "verify", filled, "--record", ""))  # every key begins with nothing


def test_changed_bytes_are_exit_code_3(grb, own):
    store = Store(own)
    record = next(record for record in store.records() if record.job.kind == "fit")
    path = store.find(record, "weights")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    done = grb("store", "verify", own)
    assert (
        done.exit_code == 3 and "other bytes" in done.stderr and "error: 1 records are not what they say" in done.stderr
    )


def test_a_forged_number_is_exit_code_3(grb, own):
    path = a_record(own)
    values = json.loads(path.read_text())
    next(iter(values["measurement"]["outcomes"].values()))["values"]["accuracy"] = 0.987
    del values["sha256"]
    path.write_bytes(json_bytes({**values, "sha256": digest(values)}))
    done = grb("store", "verify", own)
    assert done.exit_code == 3 and "targets are correct" in done.stderr and "1 records are not" in done.stderr


def test_claimed_and_reevaluated_scores_stand_side_by_side(grb, grb_json, filled):
    shown = grb("store", "verify", filled, "--record", a_record(filled).stem)
    assert shown.exit_code == 0 and "re-evaluated (%)" in shown.stdout and "equal" in shown.stdout
    found = grb_json("store", "verify", filled, "--rerun", "1")
    assert 0 <= found["seed"] < 2**31
    assert any(each["claimed"] == each["reevaluated"] != {} for each in found["recomputed"])


def test_the_sample_has_a_fresh_seed_that_can_be_given_again(grb, grb_json, filled):
    drawn = [grb_json("store", "verify", filled, "--rerun", "1")["seed"] for _ in range(2)]
    assert drawn[0] != drawn[1]
    first, again = (
        {each["key"] for each in grb_json("store", "verify", filled, "--rerun", "1", "--seed", "5")["recomputed"]}
        for _ in range(2)
    )
    assert first == again
    assert "drawn with --seed " in grb("store", "verify", filled, "--rerun", "1").stderr


# signatures


def test_a_store_is_signed_verified_and_shown(grb, grb_json, own, tmp_path):
    pytest.importorskip("securesystemslib")
    key = tmp_path / "lab.key"
    assert grb_json("store", "sign", "--new-key", key) == {"private": str(key), "public": f"{key}.pub"}
    assert grb_json("store", "sign", own, "--key", key, "--name", "Our lab")["records"] == 23
    found = grb_json("store", "verify", own, "--key", f"{key}.pub")["attestations"]
    assert found == {"signed": 23, "unsigned": 0, "unverified": 0, "signers": ["Our lab"]}
    shown = grb("leaderboard", own, "--key", f"{key}.pub")
    assert "measured by: Our lab" in shown.stderr
    rows = [line for line in shown.stdout.splitlines() if line.startswith(("gcn", "mlp", "rnd", "fgsm"))]
    assert sum(line.endswith("Our lab") for line in rows) == 4  # two defenses and two attacks
    boards = tmp_path / "boards.json"
    grb("leaderboard", own, "--key", f"{key}.pub", "--format", "json", "-o", boards)
    assert "--key checks the signatures of a store" in refusal(grb("leaderboard", boards, "--key", f"{key}.pub"))
    assert "signatures can be checked in its store only" in grb("leaderboard", boards).stderr
    assert "measured by: unverified" in grb("leaderboard", own).stderr
    a_record(own).unlink()
    done = grb("store", "verify", own, "--key", f"{key}.pub")
    assert done.exit_code == 3 and "signed by Our lab" in done.stderr and "is not in the store" in done.stderr


def test_what_cannot_be_signed_is_one_sentence(grb, own, tmp_path):
    pytest.importorskip("securesystemslib")
    grb("store", "sign", "--new-key", tmp_path / "k")
    assert "either --key FILE" in refusal(grb("store", "sign", own))
    assert "exists already" in refusal(grb("store", "sign", "--new-key", tmp_path / "k"))
    assert "add --name" in refusal(grb("store", "sign", own, "--key", tmp_path / "k"))
    assert "the signer's name is" in refusal(grb("store", "sign", own, "--key", tmp_path / "k", "--name", " x"))
    public = refusal(grb("store", "sign", own, "--key", tmp_path / "k.pub", "--name", "x"))
    assert "is a public key, but the private one signs" in public
    private = refusal(grb("leaderboard", own, "--key", tmp_path / "k"))
    assert "is a private key" in private and "k.pub" in private
    a_record(own).write_text("{torn")
    done = grb("store", "sign", own, "--key", tmp_path / "k", "--name", "Our lab")
    assert done.exit_code == 3 and "is not signed" in refusal(done)


def test_code_is_imported_only_if_trusted(grb, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(TINY.replace("[rnd, fgsm]", "['pipeline.plugins:Idle']").replace("[easy, full]", "[full]"))
    assert grb("run", path, "--store", tmp_path / "s", "--workers", "0", "--repeats", "1").exit_code == 0
    done = grb("store", "verify", tmp_path / "s", "--rerun", "99")
    assert done.exit_code == 3 and "--trust-code" in done.stderr
    assert grb("store", "verify", tmp_path / "s", "--rerun", "99", "--trust-code").exit_code == 0
    assert grb("store", "verify", tmp_path / "s").exit_code == 0  # which imports nothing
    done = grb("store", "copy", tmp_path / "s", tmp_path / "t")
    assert done.exit_code == 3 and "--trust-code" in done.stderr and not (tmp_path / "t" / "records").exists()
    assert grb("store", "copy", tmp_path / "s", tmp_path / "t", "--trust-code").exit_code == 0


# bundles


def test_a_bundle_is_verified_and_taken_in_elsewhere(grb, grb_json, filled, tmp_path):
    bundle = tmp_path / "bundle.zip"
    written = grb_json("store", "copy", filled, bundle)
    assert written == {"target": str(bundle), "records": 23, "bytes": bundle.stat().st_size}
    assert grb_json("store", "verify", bundle, "--rerun", "1")["records"] == 23
    assert grb_json("store", "copy", bundle, tmp_path / "new")["records"] == 23
    assert grb_json("store", "copy", bundle, tmp_path / "new")["records"] == 0
    assert grb("store", "verify", tmp_path / "new").exit_code == 0


def test_a_bundle_of_one_recipe(grb, grb_json, own, tmp_path):
    smaller = plan_study(recipe(modes=["full"], repeats=1, attacks=["rnd"], name="smaller")).record({})
    assert smaller is not None
    Store(own).write(smaller)
    bundle = tmp_path / "bundle.zip"
    count = grb_json("store", "copy", own, bundle, "--recipe", "smaller")["records"]
    assert 10 < count < 22 and grb_json("store", "verify", bundle)["problems"] == []
    assert grb_json("store", "copy", bundle, tmp_path / "new")["records"] == count
    shown = grb_json("leaderboard", tmp_path / "new")["boards"]  # a bundle knows its boards
    assert [(board["meta"]["recipe"], board["meta"]["measured"]) for board in shown] == [("smaller", 6)]


def test_a_spoilt_bundle_is_not_taken_in(grb, filled, own, tmp_path):
    store = Store(own)
    record = next(record for record in store.records() if record.job.kind == "fit")
    bundle = tmp_path / "bundle.zip"
    assert grb("store", "copy", own, bundle).exit_code == 0
    data = bundle.read_bytes()
    name = f"{record.objects['weights']['sha256']}.safetensors".encode()
    bundle.write_bytes(data.replace(name, name[:10] + b"0" * 4 + name[14:]))
    done = grb("store", "copy", bundle, tmp_path / "new")
    assert done.exit_code == 3 and "is not copied" in refusal(done) and not (tmp_path / "new").exists()


# tables


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_scores_are_exported_as_tables(grb_json, filled, tmp_path, suffix):
    path = tmp_path / f"scores{suffix}"
    # clean 2 x all four difficulties of which one was asked for; rnd, fgsm x 2 repeats x 2 victims; 2 white-box
    assert grb_json("store", "copy", filled, path, "--recipe", "tiny")["records"] == 12
    text = path.read_text()
    if suffix == ".csv":
        rows = list(csv.DictReader(text.splitlines()))
    else:
        rows = json.loads(text) if suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    assert len(rows) == 12 and {row["attack"] for row in rows} == {"none", "rnd", "fgsm"}
    assert {row["knowledge"] for row in rows} == {"none", "transfer", "white-box"}
    first = rows[0]
    record = next(record for record in Store(filled).records() if record.key.startswith(first["key"]))
    outcome = record.measurement["outcomes"][first["difficulty"]]
    assert float(first["accuracy"]) == pytest.approx(outcome["values"]["accuracy"], abs=1e-6)
    assert float(first["changed"]) == pytest.approx(outcome["changed"], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["scores.csv"], "a table needs --recipe"),
        (["scores.xls", "--recipe", "tiny"], ".zip, .csv, .json or .jsonl is needed"),
        (["scores.csv", "--recipe", "synth-tiny"], "has no study 'synth-tiny'"),
    ],
)
def test_no_other_exports(grb, filled, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    done = grb("store", "copy", filled, *options)
    assert done.exit_code == 2 and words in refusal(done) and not (tmp_path / options[0]).exists()
