from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grb.errors import DataError, GRBError, IntegrityError
from grb.pipeline import Store, Study
from grb.pipeline import bundle as module
from grb.pipeline.bundle import merge, opened, pack
from grb.pipeline.record import FORMAT
from grb.pipeline.rerun import rerun
from pipeline.parts import bits, copied, of_kind

KEY = "ab" * 32

STAMP = json.dumps({"format": FORMAT})


@pytest.fixture(scope="module")
def packed(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "bundle.zip"
    pack(store, path)
    return path


def test_everything_comes_back_verified(store: Store, study: Study, packed: Path, tmp_path: Path) -> None:
    with opened(packed) as inside:
        assert inside.verify() == [] and bits(inside, study.jobs) == bits(store, study.jobs)
        assert list(inside.records()) == list(store.records())
        place = inside.path
        target = Store(tmp_path / "store")
        assert merge(inside, target) == len(study.jobs) and merge(inside, target) == 0
    assert not place.exists()
    assert list(target.records()) == list(store.records()) and target.verify() == []
    score = next(job for job in of_kind(study, "score") if job.data.chain)
    assert all(each.equal for each in rerun(target, [score.key]))


def test_the_same_records_give_the_same_bytes(store: Store, packed: Path, tmp_path: Path) -> None:
    pack(copied(store, tmp_path / "elsewhere"), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_records_are_deflated_as_far_as_the_limit_of_the_whole_bundle_allows(
    store: Store, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(packed) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}
    monkeypatch.setattr(module, "MAX_VALUES_RATIO", 12)
    monkeypatch.setattr(module, "FREE_MEMORY", 0)
    pack(store, tmp_path / "tight.zip")
    with zipfile.ZipFile(tmp_path / "tight.zip") as archive:
        assert zipfile.ZIP_STORED in {info.compress_type for info in archive.infolist()}
    monkeypatch.setattr(module, "memory_limit", lambda size: 2**30)
    with opened(tmp_path / "tight.zip") as inside:
        assert inside.verify() == []


def test_chosen_records_come_with_all_that_they_need(store: Store, study: Study, tmp_path: Path) -> None:
    score = next(job for job in of_kind(study, "score") if job.data.chain)
    count = pack(store, tmp_path / "one.zip", [score.key])
    with opened(tmp_path / "one.zip") as inside:
        keys = set(inside.keys())
        assert len(keys) == count and score.key in keys and inside.verify() == []
        assert keys >= set(score.needs) and keys < set(study.jobs)


def test_an_empty_store_makes_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no records"):
        pack(Store(tmp_path / "store"), tmp_path / "bundle.zip")
    assert not (tmp_path / "bundle.zip").exists()


def test_a_damaged_store_makes_no_bundle(store: Store, study: Study, tmp_path: Path) -> None:
    spoilt = copied(store, tmp_path / "store")
    spoilt.find(spoilt.read(of_kind(study, "fit")[0].key), "weights").write_bytes(b"other")
    with pytest.raises(IntegrityError, match="other bytes"):
        pack(spoilt, tmp_path / "bundle.zip")
    assert not (tmp_path / "bundle.zip").exists()


def test_what_the_target_has_already_is_kept(store: Store, study: Study, packed: Path, tmp_path: Path) -> None:
    target = copied(store, tmp_path / "store")
    before = {path: path.stat().st_mtime_ns for path in (target.path / "records").rglob("*.json")}
    lost = of_kind(study, "score")[0].key
    target.record_path(lost).unlink()
    with opened(packed) as inside:
        assert merge(inside, target) == 1
    after = {path: path.stat().st_mtime_ns for path in before if path != target.record_path(lost)}
    assert after.items() <= before.items() and target.has(lost)


# hostile files


def rewritten(source: Path, target: Path, change: Callable[[str, bytes], tuple[str, bytes] | None]) -> Path:
    """The same archive with some entries changed or left out."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name in archive.namelist():
            entry = change(name, archive.read(name))
            if entry is not None:
                out.writestr(*entry)
    return target


@pytest.mark.parametrize(
    "name",
    [
        "../outside.json",
        "/tmp/outside.json",
        "records/../../outside.json",
        f"records/ab/../{KEY}.json",
        f"records/ab/{KEY}.json/x",
        f"records\\ab\\{KEY}.json",
        f"objects/ab/{KEY}.py",
        f"objects/ab/{KEY}.npz/",
        f"records/ab/{KEY}.json\n",
        "claims/x",
        "conftest.py",
        "C:/outside.json",
        "",
    ],
)
def test_names_that_lead_elsewhere_are_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("store.json", STAMP)
        archive.writestr(zipfile.ZipInfo(name), b"x")
    with pytest.raises(DataError, match=r"does not belong into a bundle|not a readable bundle"), opened(path):
        pytest.fail("it was opened")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bundle.zip"]


def test_symbolic_links_are_files_here(packed: Path, tmp_path: Path) -> None:
    info = zipfile.ZipInfo(f"records/ab/{KEY}.json")
    info.external_attr = 0o120777 << 16
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("store.json", STAMP)
        archive.writestr(info, "/etc/passwd")
    with opened(path) as inside:
        assert not inside.record_path(KEY).is_symlink()
        assert [problem.key for problem in inside.verify()] == [KEY]


def test_a_bomb_is_refused_by_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("store.json", STAMP)
        with archive.open(f"objects/ab/{KEY}.npz", "w") as stream:
            for _ in range(80):
                stream.write(bytes(2**20))
    assert path.stat().st_size < 200_000
    with pytest.raises(DataError, match="expands from"), opened(path):
        pass


def test_a_record_of_gigabytes_is_refused_by_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORD", 1000)
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"records/ab/{KEY}.json", bytes(1001))
    with pytest.raises(DataError, match="holds a record of 1001 bytes"), opened(path):
        pass


def test_an_entry_that_lies_about_its_size_stays_small(tmp_path: Path) -> None:
    """The directory says 10 bytes, the stream holds a megabyte."""
    path = tmp_path / "bundle.zip"
    name = f"objects/ab/{KEY}.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(2**20))
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<L", 2**20), struct.pack("<L", 10)))
    try:
        with opened(path) as inside:
            assert inside.object_path(KEY, ".npz").stat().st_size == 10
    except DataError as error:
        assert "not a readable bundle" in str(error)


def test_a_name_that_is_there_twice_is_refused(packed: Path, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("store.json", STAMP)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("store.json", STAMP)
    with pytest.raises(DataError, match="holds a file twice"), opened(path):
        pass


@pytest.mark.parametrize("content", [b"", b"PK", b"<html>", b"\x80\x04pickle", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_zip_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(content)
    if content.startswith(b"PK\x05"):  # an empty archive
        with opened(path) as inside:
            assert list(inside.keys()) == []
        return
    with pytest.raises(DataError, match="not a readable bundle"), opened(path):
        pass


def test_missing_files_and_directories(tmp_path: Path) -> None:
    for path in (tmp_path / "none.zip", tmp_path):
        with pytest.raises(DataError), opened(path):
            pass


@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_flipped_and_lost_bytes_never_pass(packed: Path, tmp_path: Path, at: float) -> None:
    data = bytearray(packed.read_bytes())
    place = int(at * len(data))
    for spoilt in (data[:place], bytes([*data[:place], data[place] ^ 0x55, *data[place + 1 :]])):
        path = tmp_path / "bundle.zip"
        path.write_bytes(spoilt)
        try:
            with opened(path) as inside:
                assert inside.verify() != []
        except GRBError as error:
            assert "\n" not in str(error)


def test_tampered_weights_are_found(packed: Path, tmp_path: Path) -> None:
    def change(name: str, data: bytes) -> tuple[str, bytes]:
        return name, data[:-1] + bytes([data[-1] ^ 1]) if name.endswith(".safetensors") else data

    with opened(rewritten(packed, tmp_path / "bundle.zip", change)) as inside:
        problems = inside.verify()
    assert problems and all("has other bytes than its name says" in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("field", "value"), [("result", {"accuracy": {"full": 1.0}}), ("provenance", {}), ("key", KEY), ("objects", {})]
)
def test_a_tampered_record_is_found(packed: Path, study: Study, tmp_path: Path, field: str, value: object) -> None:
    attack = of_kind(study, "attack")[0].key

    def change(name: str, data: bytes) -> tuple[str, bytes]:
        if attack not in name:
            return name, data
        return name, json.dumps({**json.loads(data), field: value}).encode()

    with opened(rewritten(packed, tmp_path / "bundle.zip", change)) as inside:
        assert [problem.key for problem in inside.verify()] == [attack]


def test_lost_artefacts_and_records_are_found(packed: Path, study: Study, tmp_path: Path) -> None:
    attack = of_kind(study, "attack")[0].key
    without = rewritten(packed, tmp_path / "a.zip", lambda name, data: None if name.endswith(".npz") else (name, data))
    with opened(without) as inside:
        assert {problem.key for problem in inside.verify()} >= {job.key for job in of_kind(study, "attack")}
    without = rewritten(packed, tmp_path / "b.zip", lambda name, data: None if attack in name else (name, data))
    with opened(without) as inside:
        assert {problem.key for problem in inside.verify()} == {
            job.key for job in study.jobs.values() if attack in job.needs
        }


def test_a_bundle_of_a_newer_version_is_refused(packed: Path, tmp_path: Path) -> None:
    newer = rewritten(
        packed, tmp_path / "a.zip", lambda name, data: (name, b'{"format": 9}' if name == "store.json" else data)
    )
    with pytest.raises(DataError, match="has store format 9"), opened(newer):
        pass
