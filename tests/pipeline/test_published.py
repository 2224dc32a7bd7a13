"""Publishing a store, and getting what is published: from disk or a server on loopback, and never with other bytes."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import grb
from dataset.loopback import Server, send, serving
from grb import artefacts
from grb.artefacts import Bundle
from grb.errors import DataError, GRBError, IntegrityError, UnknownName
from grb.graph import GraphEdit
from grb.pipeline import Store, plan_study, published
from grb.pipeline.bundle import opened, pack
from grb.pipeline.publish import publish, write_list
from grb.trainer.checkpoint import load_model
from pipeline.parts import copied, forge, recipe


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that lists nothing yet, on a machine that has nothing."""
    monkeypatch.setattr(artefacts, "folder", lambda: tmp_path / "lists")
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GRB_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("GRB_DATA_DIR", raising=False)
    return tmp_path / "lists"


@pytest.fixture
def folder(tmp_path: Path, lists: Path) -> Path:
    """Where bundles are found, below GRB_DATA."""
    return tmp_path / "data" / artefacts.FOLDER


@pytest.fixture
def bundle(own: Store, folder: Path, lists: Path) -> Bundle:
    return publish(own, "tiny", folder, lists)


def relist(bundle: Bundle, path: Path, lists: Path) -> None:
    """List a file of other bytes as if it had been published."""
    values = {**bundle.to_dict(), "bytes": path.stat().st_size}
    values["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    write_list(Bundle.from_dict(values), lists / f"{bundle.name}.json")
    artefacts._read.cache_clear()


# publishing


def test_the_same_store_gives_the_same_bytes_and_the_same_list(own: Store, tmp_path: Path) -> None:
    for name in ("first", "second"):
        publish(copied(own, tmp_path / name), "tiny", tmp_path / name / "out", tmp_path / name / "out")
    for file in ("tiny.zip", "tiny.json"):
        assert (tmp_path / "first" / "out" / file).read_bytes() == (tmp_path / "second" / "out" / file).read_bytes()


def test_the_list_says_what_is_in_the_bundle(own: Store, bundle: Bundle, folder: Path, lists: Path) -> None:
    assert Bundle.from_dict(json.loads((lists / "tiny.json").read_text())) == bundle
    assert (folder / "tiny.zip").stat().st_size == bundle.bytes
    assert bundle.sha256 == hashlib.sha256((folder / "tiny.zip").read_bytes()).hexdigest()
    jobs = [record.job for record in own.records()]
    assert len(bundle.models) == sum(job.kind == "fit" for job in jobs)
    assert len(bundle.edits) == sum(job.kind == "attack" for job in jobs)
    victims = [model for model in bundle.models if model.clean]
    assert victims and all(model.clean.keys() == {"easy", "full"} for model in victims)
    assert not any(model.worst_case for model in victims), "no ensemble ran, so that there is no worst case"
    assert len((lists / "tiny.json").read_text().splitlines()) < 30 + len(bundle.models) + len(bundle.edits)


def test_a_study_that_lacks_scores_and_a_store_that_contradicts_itself_are_not_published(
    own: Store, folder: Path, lists: Path
) -> None:
    info = next(record for record in own.records() if record.job.kind == "study")
    lost = own.record_path(info.result["parts"][0]["scores"][0])
    data = lost.read_bytes()
    lost.unlink()
    with pytest.raises(DataError, match=r"1 of \d+ scores of 'tiny' are not in .*; `grb run` with the same store"):
        publish(own, "tiny", folder, lists)
    lost.write_bytes(data.replace(b'"accuracy": 0.', b'"accuracy": 1.', 1))
    with pytest.raises(IntegrityError, match="is not published"):
        publish(own, "tiny", folder, lists)
    with pytest.raises(DataError, match="has no study to publish; `grb run RECIPE --store"):
        publish(Store(own.path.parent / "empty"), "tiny", folder, lists)
    assert not folder.exists() and not lists.exists()


def test_only_one_study_is_published(own: Store, folder: Path, lists: Path) -> None:
    other = plan_study(recipe(name="other")).record({})
    assert other is not None
    own.write(other)
    with pytest.raises(DataError, match=r"has 2 studies to publish \(other, tiny\); name one with --recipe"):
        publish(own, "tiny", folder, lists)
    with pytest.raises(DataError, match="has no study nobody"):
        publish(own, "tiny", folder, lists, recipe="nobody")
    made = publish(own, "tiny", folder, lists, recipe="other")
    assert made.recipe == "other" and made.records == len(list(own.keys())) - 1


def test_of_two_plans_of_a_recipe_the_larger_is_published(own: Store, folder: Path, lists: Path) -> None:
    smaller = plan_study(recipe(repeats=1)).record({})
    assert smaller is not None
    own.write(smaller)
    made = publish(own, "tiny", folder, lists)
    with opened(folder / "tiny.zip") as inside:
        assert not inside.has(smaller.key) and made.records == len(list(own.keys())) - 1


@pytest.mark.parametrize("name", ["", "../out", "Tiny", "a b", "a/b", "-a"])
def test_names_that_no_bundle_may_have_are_refused_before_the_work(
    own: Store, folder: Path, lists: Path, name: str
) -> None:
    with pytest.raises(DataError, match="small letters, digits and hyphens are needed"):
        publish(own, name, folder, lists)
    assert not folder.exists() and not lists.exists()


def test_code_of_others_is_not_published(own: Store, folder: Path, lists: Path) -> None:
    record = next(record for record in own.records() if record.job.kind == "fit")
    values = record.to_dict()
    values["job"]["spec"]["name"] = "os:system"
    forge(own, values)
    with pytest.raises(IntegrityError, match="is not published: .*names code 'os:system'"):
        publish(own, "tiny", folder, lists)


def test_a_signed_store_gives_a_signed_bundle(own: Store, tmp_path: Path, folder: Path, lists: Path) -> None:
    pytest.importorskip("securesystemslib")
    pytest.importorskip("cryptography")
    from grb.pipeline.attestation import create_key, read_private_key, read_public_key, sign_store, verify_attestations

    public = create_key(tmp_path / "lab.key")
    sign_store(own, read_private_key(tmp_path / "lab.key"), name="Our lab")
    made = publish(own, "tiny", folder, lists)
    assert made.signed_by == ("Our lab",)
    with opened(folder / "tiny.zip") as inside:
        found = verify_attestations(inside, [read_public_key(public)])
        assert found.unsigned == 0 and not found.problems
    again = publish(own, "tiny", tmp_path / "again", lists)
    assert again.sha256 == made.sha256


# getting


def test_a_published_model_is_the_trained_one(own: Store, bundle: Bundle) -> None:
    for model in bundle.models:
        loaded = grb.load_model(f"tiny/{model.name}", seed=model.seed)
        with own.checked(own.read(model.key), "weights") as path:
            kept = load_model(path)
        assert loaded.name == kept.name
        pairs = zip(loaded.state_dict().values(), kept.state_dict().values(), strict=True)
        assert all(torch.equal(*pair) for pair in pairs)


def test_published_scores_are_measured_again(own: Store, bundle: Bundle) -> None:
    dataset = grb.load_dataset("synth-tiny")
    victims = [model for model in bundle.models if model.clean]
    for model in victims[:2]:
        found = grb.evaluate(grb.load_model(f"tiny/{model.name}", seed=model.seed), dataset)
        assert found["full"] == pytest.approx(model.clean["full"], abs=1e-6)


def test_a_published_edit_is_the_one_of_the_attack(own: Store, bundle: Bundle) -> None:
    for edit in bundle.edits:
        choices = {edit.role: edit.model, "training": edit.training} if edit.role else {}
        loaded = grb.load_edit(
            f"tiny/{edit.name}", seed=edit.seed, labels=edit.labels, difficulty=edit.difficulty, **choices
        )
        with own.checked(own.read(edit.key), "edit") as path:
            assert str(loaded) == str(GraphEdit.load(path)) and torch.equal(loaded.add, GraphEdit.load(path).add)


def test_a_file_on_disk_comes_first(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"tiny/{bundle.models[0].name}"
    assert grb.load_model(name).name == grb.load_model(Path(name)).name
    mine = grb.train("mlp", grb.load_dataset("synth-tiny"), epochs=1)
    grb.save_model(mine, name)
    assert grb.load_model(name).name == "mlp"
    GraphEdit(n=7).save(tmp_path / "tiny" / "fgsm")
    assert grb.load_edit("tiny/fgsm").n == 7
    with pytest.raises(DataError, match="'tiny/fgsm' is the path of one edit, but victim chooses among published ones"):
        grb.load_edit("tiny/fgsm", victim="gcn")


def test_paths_without_a_file_are_refused_as_before(bundle: Bundle) -> None:
    with pytest.raises(DataError, match="no model file nowhere/gcn; `grb train MODEL -o FILE` writes one"):
        grb.load_model("nowhere/gcn")
    with pytest.raises(DataError, match="no file tiny/x.npz; check the path"):
        grb.load_edit("tiny/x.npz")
    with pytest.raises(UnknownName, match=r"no published model 'tiny/nothing'\..* It has gcn"):
        grb.load_model("tiny/nothing")


def test_a_file_in_the_cache_that_was_changed_is_made_again(bundle: Bundle) -> None:
    path = published.file_of(bundle, bundle.models[0])
    data = path.read_bytes()
    assert published.file_of(bundle, bundle.models[0]) == path
    for other in (data[:-1], data[:-1] + bytes([data[-1] ^ 1]), b"", b"\x80\x04pickle"):
        path.write_bytes(other)
        assert published.file_of(bundle, bundle.models[0]).read_bytes() == data


def test_a_home_that_cannot_be_written_is_named(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(DataError, match="cannot write .*; set GRB_HOME to a directory that can be written"):
        published.file_of(bundle, bundle.models[0])


def test_what_is_in_the_cache_needs_no_bundle(bundle: Bundle, folder: Path) -> None:
    first, second = bundle.models[:2]
    published.file_of(bundle, first)
    (folder / "tiny.zip").unlink()
    assert published.file_of(bundle, first).is_file()
    with pytest.raises(DataError, match="is not on this machine"):
        published.file_of(bundle, second)


# hostile files


def spoilt(path: Path, kind: str) -> None:
    data = path.read_bytes()
    path.unlink()
    if kind == "truncated":
        path.write_bytes(data[:-100])
    elif kind == "other bytes":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a page":
        path.write_bytes(b"<html>" + bytes(len(data) - 6))


@pytest.mark.parametrize("kind", ["truncated", "other bytes", "empty", "a folder", "a page"])
def test_a_bundle_of_other_bytes_is_never_read(
    bundle: Bundle, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    spoilt(folder / "tiny.zip", kind)
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(GRBError) as refused:
        grb.load_model(f"tiny/{bundle.models[0].name}")
    said = str(refused.value)
    assert "tiny.zip" in said and f"sha256 {bundle.sha256}" in said and "\n" not in said
    assert isinstance(refused.value, IntegrityError) == (kind in ("other bytes", "a page"))
    assert ("is no file" in said) == (kind == "a folder")


def test_another_place_with_the_right_bytes_is_used(
    bundle: Bundle, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / "tiny.zip"  # as a release asset that somebody put there
    other.parent.mkdir()
    other.write_bytes((folder / "tiny.zip").read_bytes())
    spoilt(folder / "tiny.zip", "other bytes")
    monkeypatch.setenv("GRB_DATA", os.pathsep.join([str(folder.parent), str(other.parent)]))
    assert published.find(bundle) == other
    assert published.where(bundle) == folder / "tiny.zip", "by name and size alone"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_bundle_is_not_waited_for(bundle: Bundle, folder: Path) -> None:
    (folder / "tiny.zip").unlink()
    os.mkfifo(folder / "tiny.zip")
    with pytest.raises(DataError, match="is a pipe or a device"):
        published.find(bundle)


def rewritten(path: Path, change: dict[str, bytes]) -> None:
    """The same archive with other or more entries."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()} | change
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def test_a_hostile_bundle_is_refused_even_if_its_hash_is_listed(bundle: Bundle, folder: Path, lists: Path) -> None:
    path, model = folder / "tiny.zip", bundle.models[0]
    sound, name = path.read_bytes(), f"tiny/{bundle.models[0].name}(seed={model.seed})"
    weights = f"objects/{model.sha256[:2]}/{model.sha256}.safetensors"
    record = f"records/{model.key[:2]}/{model.key}.json"
    for change, words in (
        ({"../outside.json": b"{}"}, "does not belong into a bundle"),
        ({"conftest.py": b"1/0"}, "does not belong into a bundle"),
        ({f"objects/ab/{'ab' * 32}.npz": bytes(80 * 2**20)}, "expands from"),
        ({weights: b"\x80\x04pickle"}, "has other bytes than its name says|size"),
        ({record: b"{}"}, "record"),
        ({"store.json": b'{"format": 99}'}, "has store format 99"),
    ):
        path.write_bytes(sound)
        rewritten(path, change)
        relist(bundle, path, lists)
        with pytest.raises(GRBError, match=words):
            grb.load_model(name)
    path.write_bytes(sound[: len(sound) // 2])
    relist(bundle, path, lists)
    with pytest.raises(DataError, match="is not a readable bundle"):
        grb.load_model(name)
    assert not list((folder.parents[1]).rglob("outside.json"))


def test_a_record_that_names_code_is_refused_even_if_it_is_listed(
    own: Store, bundle: Bundle, folder: Path, lists: Path
) -> None:
    values = own.read(bundle.models[0].key).to_dict()
    values["job"]["spec"]["name"] = "os:system"
    key = forge(own, values)
    pack(own, folder / "tiny.zip", [key])
    model = {**bundle.to_dict()["models"][0], "key": key}
    relist(Bundle.from_dict({**bundle.to_dict(), "models": [model], "edits": []}), folder / "tiny.zip", lists)
    with pytest.raises(IntegrityError, match="names code 'os:system'"):
        grb.load_model(f"tiny/{model['name']}", seed=model["seed"])


def test_a_list_that_names_another_artefact_is_refused(bundle: Bundle, folder: Path, lists: Path) -> None:
    values = bundle.to_dict()
    first, second = values["models"][:2]
    values["models"] = [{**first, "key": second["key"]}]
    relist(Bundle.from_dict(values), folder / "tiny.zip", lists)
    with pytest.raises(IntegrityError, match="has another .* than its list says"):
        grb.load_model(f"tiny/{first['name']}", seed=first["seed"])
    values["models"] = [{**first, "key": "ab" * 32}]
    relist(Bundle.from_dict(values), folder / "tiny.zip", lists)
    with pytest.raises(DataError, match="does not hold record abababababab"):
        grb.load_model(f"tiny/{first['name']}", seed=first["seed"])


def test_some_records_come_with_all_that_they_need_and_nothing_else(bundle: Bundle, folder: Path) -> None:
    edit = next(each for each in bundle.edits if each.role == "victim")
    with opened(folder / "tiny.zip", [edit.key]) as inside:
        jobs = [record.job.kind for record in inside.records()]
        assert sorted(jobs) == ["attack", "fit"] and inside.verify() == []
        assert len(list(inside.path.rglob("*.*"))) == 5
    with pytest.raises(DataError, match="is no key"), opened(folder / "tiny.zip", ["../../x"]):
        pass


# the network


@pytest.fixture
def server(bundle: Bundle, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A mirror that has the bundle, and a machine that has not."""
    monkeypatch.delenv("GRB_OFFLINE")
    with serving() as made:
        made.content = {"tiny.zip": (folder / "tiny.zip").read_bytes()}
        (folder / "tiny.zip").unlink()
        monkeypatch.setenv("GRB_MIRROR", made.base)
        yield made


def test_a_bundle_is_downloaded_once(server: Server, bundle: Bundle, tmp_path: Path) -> None:
    for _ in range(2):
        assert published.find(bundle).read_bytes() == server.content["tiny.zip"]
    assert server.asked == ["tiny.zip"]
    assert [path.name for path in (tmp_path / "home").rglob("*") if path.is_file()] == ["tiny.zip"]
    assert grb.load_model(f"tiny/{bundle.models[0].name}")


@pytest.mark.parametrize("kind", ["other bytes", "truncated", "longer", "page", "missing"])
def test_a_wrong_answer_is_refused_and_leaves_nothing(
    server: Server, bundle: Bundle, tmp_path: Path, kind: str
) -> None:
    body = server.content["tiny.zip"]
    answers = {
        "other bytes": body[:-1] + bytes([body[-1] ^ 1]),
        "truncated": body[:-10],
        "longer": body + b"x",
        "page": b"<html>not here</html>",
    }
    if kind in answers:
        server.answers["tiny.zip"] = lambda handler: send(handler, answers[kind])
    else:
        server.content = {}
    with pytest.raises(DataError, match=r"is not on this machine \(searched .*; 127.0.0.1:\d+ ") as refused:
        published.find(bundle)
    assert f"sha256 {bundle.sha256}" in str(refused.value)
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == []


def test_nobody_is_asked_without_tls_offline_or_without_an_address(
    server: Server, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRB_OFFLINE", "1")
    with pytest.raises(DataError, match=r"; GRB_OFFLINE forbids to download it\). Put tiny.zip \("):
        published.find(bundle)
    monkeypatch.delenv("GRB_OFFLINE")
    monkeypatch.setenv("GRB_MIRROR", "http://example.org")
    with pytest.raises(DataError, match=r"example.org http:// is not https"):
        published.find(bundle)
    monkeypatch.delenv("GRB_MIRROR")
    with pytest.raises(DataError, match="no address of it is known"):
        published.find(bundle)
    assert server.asked == []


def test_the_release_is_the_address_of_every_bundle_without_its_own(
    server: Server, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRB_MIRROR")
    monkeypatch.setattr(artefacts, "RELEASES", f"{server.base}/releases")
    assert published.addresses(bundle) == [f"{server.base}/releases/tiny.zip"]
    assert published.find(bundle).is_file() and server.asked == ["tiny.zip"]
    assert not artefacts.RELEASES.startswith("http:") or server.base in artefacts.RELEASES
