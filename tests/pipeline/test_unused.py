from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from grb.errors import IntegrityError
from grb.pipeline import Store
from grb.pipeline.unused import STALE_SECONDS, find_unused, remove_unused
from pipeline.parts import claimed_by
from pipeline.parts import small_job as job
from pipeline.parts import small_record as record

HERE = socket.gethostname()


@pytest.fixture
def own(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def aged(path: Path) -> Path:
    os.utime(path, (time.time() - STALE_SECONDS - 10,) * 2)
    return path


def test_garbage_is_what_no_record_names_and_nobody_may_still_be_writing(own: Store, gone: int) -> None:
    kept = own.put(b"kept", ".npz")
    own.write(record(0, edit=kept))
    own.write_failure(job(2), "it failed", kind="DataError")
    old = [
        own.object_path(own.put(b"lost", ".safetensors")["sha256"], ".safetensors"),
        own.path / "objects" / "ab.npz.part",
        own.record_path(job().key).parent / ".half.json.part",
        own.path / "failed" / ".half.json.part",
    ]
    for path in old[1:]:
        path.write_text("half")
    for path in old:
        os.utime(path, (time.time() - STALE_SECONDS - 10,) * 2)
    young = own.object_path(own.put(b"its record is on its way", ".npz")["sha256"], ".npz")
    (own.path / "objects" / "cd.npz.part").write_text("half")
    stale, live = claimed_by(own, f"{HERE} {gone}"), own.path / "claims" / job(1).key
    live.write_text(f"{HERE} {os.getpid()}")
    # an artefact that is named may be as old as it likes
    os.utime(own.object_path(kept["sha256"], ".npz"), (0, 0))
    assert set(own.garbage()) == {*old, stale}
    assert young.exists() and live.exists()


def test_an_old_artefact_that_is_put_again_is_new(own: Store) -> None:
    """Its record may be on its way, so that it is no garbage any more."""
    path = own.object_path(own.put(b"lost", ".npz")["sha256"], ".npz")
    for again in (lambda: own.put(b"lost", ".npz"), lambda: own.take(lambda path: path.write_bytes(b"lost"), ".npz")):
        os.utime(path, (0, 0))
        assert own.garbage() == [path]
        again()
        assert own.garbage() == []


def test_a_damaged_record_keeps_everything(own: Store) -> None:
    """Nobody knows which artefacts it names."""
    own.write(record(0, edit=own.put(b"x", ".npz")))
    own.record_path(job().key).write_text("{torn")
    with pytest.raises(IntegrityError, match="damaged"):
        own.garbage()


@pytest.mark.parametrize("folder", ["objects", "objects/ab", "records", "claims"])
def test_files_behind_a_link_are_not_of_the_store(own: Store, tmp_path: Path, folder: str) -> None:
    outside = tmp_path / "home"
    outside.mkdir()
    names = ("thesis.tex", "old.json.part", job().key)
    for name in names:
        (outside / name).write_text("mine")
        aged(outside / name)
    own.prepare()
    link = own.path / folder
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside, target_is_directory=True)
    assert own.garbage() == []
    (own.path / "failed").mkdir()
    (own.path / "failed" / "x.part").symlink_to(outside / names[0])
    assert own.garbage() == [] and remove_unused(own.garbage()) == 0
    assert sorted(each.name for each in outside.iterdir()) == sorted(names)


def test_a_record_never_names_an_artefact_that_was_removed(own: Store) -> None:
    """Its writer was asleep while somebody else cleaned up."""
    entry = own.put(b"edit", ".npz")
    aged(own.object_path(entry["sha256"], ".npz"))
    assert remove_unused(own.garbage()) == 1
    with pytest.raises(IntegrityError, match=r"artefact .* is missing; run the job again"):
        own.write(record(edit=entry))
    assert not own.has(job().key)


def test_an_artefact_whose_record_is_written_meanwhile_stays(own: Store) -> None:
    entry = own.put(b"edit", ".npz")
    path = aged(own.object_path(entry["sha256"], ".npz"))
    found = own.garbage()
    assert found == [path]
    own.write(record(edit=entry))
    assert remove_unused(found) == 0
    assert path.read_bytes() == b"edit" and own.garbage() == []


def test_what_is_removed_is_gone(own: Store, gone: int) -> None:
    path = aged(own.object_path(own.put(b"lost", ".npz")["sha256"], ".npz"))
    claim = claimed_by(own, f"{HERE} {gone}")
    found = find_unused(own.path, set())
    assert found == [path, claim]
    claim.write_text(f"{HERE} {os.getpid()}")  # taken over since
    assert remove_unused(found) == 1 and not path.exists() and claim.exists()
    assert [each.name for each in own.path.rglob("*") if each.is_file() and each.name != "store.json"] == [claim.name]
