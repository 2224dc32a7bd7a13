"""The bundles that are published with this checkout: their bytes, a sample of their records, and scores measured again."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

import pytest
from docs.tools import artefacts as tool

import grb
from grb import artefacts
from grb.artefacts import Bundle, PublishedModel
from grb.errors import MissingDataset
from grb.pipeline import gate, published
from grb.pipeline.bundle import opened

ROOT = Path(__file__).resolve().parents[1]
BUNDLES = list(artefacts.bundles().values())
# what another machine may compute: the tolerance of `grb store verify --rerun`
TOLERANCE = 0.01
SAMPLE = 25


def file_of(bundle: Bundle) -> Path:
    path = published.where(bundle)
    if path is None:
        pytest.skip(f"{bundle.file} is neither in this checkout nor in GRB_DATA or the cache")
    return path


def ids(bundle: Bundle) -> str:
    return bundle.name


def test_every_list_is_of_the_file_of_its_name() -> None:
    listed = {path.stem for path in tool.LISTS.glob("*.json")}
    assert listed == set(artefacts.bundles()) and "synth-tiny" in listed
    assert all(re.fullmatch(r"(https://.*)?", bundle.address) for bundle in BUNDLES)


@pytest.mark.parametrize("bundle", BUNDLES, ids=ids)
def test_a_bundle_in_the_checkout_has_the_bytes_of_its_list(bundle: Bundle) -> None:
    path = ROOT / artefacts.FOLDER / bundle.file
    if not path.is_file():
        pytest.skip(f"{bundle.file} is not in this checkout")
    data = path.read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (bundle.bytes, bundle.sha256)
    assert len(data) < 100 * 2**20, "hosts of repositories refuse larger files"


@pytest.mark.parametrize("bundle", BUNDLES, ids=ids)
def test_a_sample_of_a_bundle_is_verified(bundle: Bundle) -> None:
    """Every model and every edit of a small bundle; a fixed sample of a large one, as `grb store verify` takes longer."""
    listed = [*bundle.models, *bundle.edits]
    sample = random.Random(bundle.sha256).sample(listed, min(SAMPLE, len(listed)))
    with opened(file_of(bundle), [each.key for each in sample]) as store:
        assert store.verify(on_record=gate.admit) == []
        for each in sample:
            record = store.read(each.key)
            (entry,) = record.objects.values()
            assert (entry["sha256"], entry["bytes"]) == (each.sha256, each.bytes)
            assert record.job.data.fingerprint == bundle.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize("bundle", BUNDLES, ids=ids)
def test_a_whole_bundle_is_verified(bundle: Bundle) -> None:
    with published.opened(bundle) as store:
        assert sum(1 for _ in store.keys()) == bundle.records  # noqa: SIM118 - a store is no mapping


@pytest.mark.parametrize("bundle", BUNDLES, ids=ids)
def test_the_signature_of_a_bundle_is_that_of_a_key_in_the_repository(bundle: Bundle) -> None:
    if not bundle.signed_by:
        pytest.skip(f"{bundle.file} is not signed")
    pytest.importorskip("securesystemslib")
    pytest.importorskip("cryptography")
    from grb.pipeline.attestation import read_public_key, verify_attestations

    keys = [read_public_key(path) for path in sorted((ROOT / artefacts.FOLDER).glob("*.pub"))]
    with opened(file_of(bundle)) as store:
        found = verify_attestations(store, keys)
    assert not found.problems and found.unsigned == 0
    assert set(found.signers.values()) == set(bundle.signed_by)


@pytest.mark.parametrize("bundle", BUNDLES, ids=ids)
def test_scores_of_a_bundle_are_measured_again(bundle: Bundle) -> None:
    """Two models on the clean graph and under the edit of the ensemble that knows them best."""
    file_of(bundle)
    try:
        dataset = grb.load_dataset(bundle.dataset)
    except MissingDataset as missing:
        pytest.skip(f"needs {bundle.dataset}: {missing}")
    assert dataset.fingerprint() == bundle.fingerprint
    difficulty = bundle.difficulties[-1]
    victims = [each for each in bundle.models if difficulty in each.worst_case and each.parameters < 10**6]
    for each in random.Random(bundle.sha256).sample(victims, 2):
        model = grb.load_model(f"{bundle.name}/{each.name}", seed=each.seed)
        clean = grb.evaluate(model, dataset)[difficulty]
        assert clean == pytest.approx(each.clean[difficulty], abs=TOLERANCE)
        attacked = grb.evaluate(model, dataset, strongest(bundle, each))[difficulty]
        assert each.worst_case[difficulty] - TOLERANCE <= attacked <= clean


def strongest(bundle: Bundle, model: PublishedModel) -> grb.GraphEdit:
    return grb.load_edit(f"{bundle.name}/auto", victim=model.name, training=model.seed, labels="true")


def test_no_private_key_is_in_the_repository() -> None:
    for path in (ROOT / artefacts.FOLDER).glob("*"):
        assert b"PRIVATE KEY" not in path.read_bytes()[:200]


def test_the_page_has_the_table_of_what_is_published() -> None:
    text = tool.PAGE.read_text(encoding="utf-8")
    assert text == tool.renewed(text), "python docs/tools/artefacts.py renews it"
    with pytest.raises(ValueError, match="marks"):
        tool.renewed("no table here")
