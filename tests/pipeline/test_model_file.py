from __future__ import annotations

import hashlib

import pytest

import grb
from grb.pipeline import DataRef, Job, Limits, Spec, Store, run
from grb.pipeline.model_file import add_model_file
from grb.trainer.checkpoint import load_model_with_meta, save_model


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    model = grb.train("gcn", grb.load_dataset("synth-tiny"), epochs=2, seed=3)
    return save_model(model, tmp_path_factory.mktemp("models") / "mine.safetensors", seed=3, dataset="synth-tiny")


def added(store, file):
    data = DataRef("synth-tiny", grb.load_dataset("synth-tiny").fingerprint())
    return add_model_file(store, file, *load_model_with_meta(file), data)


def test_the_key_follows_from_the_bytes_and_not_from_the_name(file, tmp_path):
    store = Store(tmp_path / "store")
    copy = tmp_path / "other.safetensors"
    copy.write_bytes(file.read_bytes())
    job = added(store, file)
    assert job.key == added(store, copy).key
    assert job.spec == Spec("file", {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()})
    record = store.read(job.key)
    assert (record.result["title"], record.result["model"], record.job.seed) == ("mine", "gcn", 3)
    assert store.verify() == [] and not job.third_party_code


def test_a_score_of_a_file_says_whose_it_is(file, tmp_path):
    store = Store(tmp_path / "store")
    fit = added(store, file)
    score = Job("score", Spec("score"), fit.data, inputs={"model": fit.key})
    assert run([fit, score], store, limits=Limits(workers=0)).complete
    found = store.read(score.key).measurement
    model = load_model_with_meta(file)[0]
    assert found["defense"]["method"]["title"] == "mine" and found["attack"] is None
    assert (
        found["outcomes"]["full"]["values"]["accuracy"] == grb.evaluate(model, grb.load_dataset("synth-tiny"))["full"]
    )


def test_models_of_a_store_are_found_beside_files(file, tmp_path):
    store = Store(tmp_path / "store")
    added(store, file)
    with pytest.raises(grb.errors.DataError, match="it has no model of that dataset"):
        grb.load_model("synth-tiny/gcn", store.path)
