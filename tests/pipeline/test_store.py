from __future__ import annotations

import errno
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError, GRBError, IntegrityError
from grb.pipeline import Record, Store
from grb.pipeline import store as module
from grb.pipeline.plan import Study
from grb.pipeline.record import FORMAT, MAX_RECORD
from grb.pipeline.spec import digest
from grb.pipeline.store import Problem
from grb.pipeline.unused import EMPTY_SECONDS, STALE_SECONDS
from pipeline.parts import FEW, claimed_by, copied
from pipeline.parts import small_job as job
from pipeline.parts import small_record as record

HERE = socket.gethostname()


@pytest.fixture
def own(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def unreadable(store: Store) -> list[Problem]:
    """What is wrong with the files of a store, whose records here are of trainings without weights."""
    return [problem for problem in store.verify() if "a fit holds weights" not in problem.message]


def files(store: Store) -> set[str]:
    return {str(path.relative_to(store.path)) for path in store.path.rglob("*") if path.is_file()}


# records


def test_a_record_comes_back_as_it_was_written(own: Store) -> None:
    written = record()
    assert not own.has(written.key)
    own.write(written)
    assert own.has(written.key) and own.read(written.key) == written
    assert list(own.keys()) == [written.key] and list(own.records()) == [written]
    assert files(own) == {"store.json", f"records/{written.key[:2]}/{written.key}.json"}


def test_a_store_that_nobody_wrote_to_makes_no_directory(own: Store) -> None:
    assert list(own.keys()) == [] and own.verify() == [] and own.garbage() == [] and own.failures() == []
    assert not own.path.exists()


def test_a_field_that_no_record_has_is_refused(own: Store) -> None:
    own.write(record())
    path = own.record_path(job().key)
    values = {key: value for key, value in json.loads(path.read_text()).items() if key != "sha256"} | {"rank": 1}
    path.write_text(json.dumps({**values, "sha256": digest(values)}))
    with pytest.raises(IntegrityError, match="unknown field 'rank'"):
        own.read(job().key)


def test_a_job_that_is_spelt_otherwise_is_another_job(own: Store) -> None:
    """Its key would be the hash of what is written, and not the key that the same job has when it is planned."""
    job_values = {**job().to_dict(), "note": "mine"}
    values = {**record().to_dict(), "job": job_values, "key": digest(job_values)}
    path = own.record_path(values["key"])
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**values, "sha256": digest(values)}))
    with pytest.raises(IntegrityError, match="this is no job of format 1"):
        own.read(values["key"])


def test_records_are_read_without_the_packages_that_compute() -> None:
    code = "import sys, grb.pipeline.store; print({'torch', 'numpy', 'scipy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_missing_record_says_what_to_do(own: Store) -> None:
    with pytest.raises(DataError, match="no record .* run the recipe that makes it"):
        own.read("0" * 64)


def spoilt(text: str) -> dict[str, Callable[[str], str]]:
    return {
        "empty": lambda _: "",
        "torn": lambda text: text[: len(text) // 2],
        "not JSON": lambda _: "{records are JSON}",
        "a list": lambda _: "[]",
        "NaN": lambda text: text.replace("0.5", "NaN"),
        "too large": lambda text: text.replace("0.5", "1e999"),
        "infinite": lambda text: text.replace("0.5", "-Infinity"),
        "too deep": lambda _: "[" * 100_000,
        "no result": lambda text: text.replace('"result"', '"rseult"'),
        "another job": lambda text: text.replace('"seed": 0', '"seed": 1'),
        "another key": lambda text: text.replace(job().key, job(1).key),
        "another result": lambda text: text.replace("0.5", "0.6"),
        "another clock": lambda text: text.replace("0.1", "0.2"),
        "a foreign artefact": lambda text: text.replace(
            '"objects": {}', '"objects": {"weights": {"sha256": "../../x"}}'
        ),
        "an artefact without bytes": lambda text: text.replace('"objects": {}', '"objects": {"weights": []}'),
        "another format of jobs": lambda text: text.replace('"format": 1', '"format": 9'),
    }


@pytest.mark.parametrize("how", spoilt(""))
def test_a_spoilt_record_is_refused_in_one_sentence(own: Store, how: str) -> None:
    own.write(record())
    path = own.record_path(job().key)
    text = spoilt("")[how](path.read_text())
    assert text != path.read_text()
    path.write_text(text)
    with pytest.raises(GRBError, match=r"remove it and run again|was not written by grb") as refused:
        own.read(job().key)
    assert "\n" not in str(refused.value)
    (problem,) = own.verify()
    assert problem.key == job().key and problem.message == str(refused.value)


@FEW
@given(st.binary(max_size=300), st.integers(0, 10**6))
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int) -> None:
    own = Store(tmp_path_factory.getbasetemp() / "junk")
    own.write(record())
    path = own.record_path(job().key)
    data = path.read_bytes()
    path.write_bytes(data[: at % len(data)] + junk + data[at % len(data) + len(junk) :])
    try:
        assert own.read(job().key) == record()
    except GRBError as refused:
        assert "\n" not in str(refused)
    path.unlink()


def test_a_record_without_its_checksum_is_refused(own: Store) -> None:
    """Whoever forges a number would only have to leave it out."""
    own.write(record())
    path = own.record_path(job().key)
    values = json.loads(path.read_text())
    del values["sha256"]
    path.write_text(json.dumps(values))
    with pytest.raises(IntegrityError, match="has no sha256 of its content"):
        own.read(job().key)


def test_a_record_that_is_too_large_is_not_even_read(own: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = own.record_path("0" * 64)
    path.parent.mkdir(parents=True)
    with path.open("wb") as stream:
        stream.truncate(MAX_RECORD + 1)

    class Unread(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            pytest.fail("it was read")

    monkeypatch.setattr(module, "open", lambda path, *_, **__: Unread(path), raising=False)
    with pytest.raises(IntegrityError, match="larger than"):
        own.read("0" * 64)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(own: Store) -> None:
    weights = own.put(b"weights", ".safetensors")
    own.write(record(weights=weights))
    artefact, path = own.find(own.read(job().key), "weights"), own.record_path(job().key)
    for file, words in ((artefact, "other bytes than its name says"), (path, "is damaged")):
        file.unlink()
        os.mkfifo(file)
        (problem,) = own.verify()
        assert words in problem.message


def test_a_result_that_is_not_finite_is_never_written(own: Store) -> None:
    own_job = job()
    with pytest.raises(ValueError, match="Out of range float"):
        own.write(Record(own_job.key, own_job, {"accuracy": float("nan")}, {}, {}))
    assert not own.has(own_job.key) and [name for name in files(own) if name.startswith("records")] == []


@pytest.mark.parametrize(
    "key",
    ["", "..", "../" * 21 + "x", "/etc/passwd", "A" * 64, "a" * 63, "a" * 65, "a" * 63 + "/", "a" * 64 + "\n", None],
)
def test_no_key_leads_out_of_the_store(own: Store, key: Any) -> None:
    for use in (own.record_path, own.has, own.read, own.claim, own.release, lambda key: own.object_path(key, ".npz")):
        with pytest.raises(DataError, match="is no key"):
            use(key)
    assert not own.path.exists()


@pytest.mark.parametrize("suffix", ["", ".py", ".npz/../../x", "/x.npz", ".pkl"])
def test_no_suffix_leads_out_of_the_store(own: Store, suffix: str) -> None:
    with pytest.raises(DataError, match="an artefact ends in"):
        own.object_path("a" * 64, suffix)


def test_other_files_beside_the_records_are_not_taken_for_some(own: Store) -> None:
    own.write(record())
    for name in ("readme.json", f"{job(1).key}.json.part", f"{job(1).key[:-1]}.json"):
        (own.record_path(job().key).parent / name).write_text("{}")
    assert list(own.keys()) == [job().key]


# artefacts


def test_artefacts_are_kept_once_under_their_sha256(own: Store) -> None:
    entry = own.put(b"bytes", ".npz")
    # echo -n bytes | sha256sum
    assert entry["sha256"] == "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9"
    path = own.object_path(entry["sha256"], ".npz")
    before = path.stat().st_ino
    assert own.put(b"bytes", ".npz") == entry and path.stat().st_ino == before
    assert own.take(lambda path: path.write_bytes(b"bytes"), ".npz") == entry and path.stat().st_ino == before
    assert own.find(record(edit=entry), "edit") == path and own.load(record(edit=entry), "edit") == b"bytes"
    assert {name for name in files(own) if name != "store.json"} == {str(path.relative_to(own.path))}


def test_what_was_checked_cannot_be_changed_any_more(own: Store) -> None:
    own.write(record(0, edit=own.put(b"bytes", ".npz")))
    with own.checked(own.read(job(0).key), "edit") as copy:
        own.find(own.read(job(0).key), "edit").write_bytes(b"other")
        assert copy.read_bytes() == b"bytes" and copy.suffix == ".npz"
    assert not copy.exists()
    with pytest.raises(IntegrityError, match="other bytes"), own.checked(own.read(job(0).key), "edit"):
        pass


def test_an_artefact_is_not_read_beyond_the_size_that_its_record_says(own: Store) -> None:
    own.write(record(0, edit=own.put(b"bytes", ".npz")))
    with own.find(own.read(job(0).key), "edit").open("wb") as stream:
        stream.truncate(2**40)  # a hole, which would be read as zeros
    with pytest.raises(IntegrityError, match="other bytes"):
        own.load(own.read(job(0).key), "edit")


def test_an_artefact_that_was_cut_off_is_written_again(own: Store) -> None:
    path = own.object_path(own.put(b"bytes", ".npz")["sha256"], ".npz")
    path.write_bytes(b"byt")
    own.put(b"bytes", ".npz")
    assert path.read_bytes() == b"bytes"
    path.write_bytes(b"byt")
    own.take(lambda path: path.write_bytes(b"bytes"), ".npz")
    assert path.read_bytes() == b"bytes"


def test_a_writer_that_fails_leaves_nothing_behind(own: Store) -> None:
    def write(path: Path) -> None:
        path.write_bytes(b"half")
        raise RuntimeError("out of ideas")

    own.prepare()
    with pytest.raises((RuntimeError, DataError)):
        own.take(write, ".npz")
    assert files(own) == {"store.json"}


def test_missing_and_changed_artefacts_are_found(own: Store) -> None:
    own.write(record(0, edit=own.put(b"first", ".npz")))
    own.write(record(1, edit=own.put(b"second", ".npz")))
    assert unreadable(own) == []
    first, second = (own.find(own.read(job(number).key), "edit") for number in (0, 1))
    first.write_bytes(b"First")
    second.unlink()
    problems = {problem.key: problem.message for problem in own.verify()}
    assert "has other bytes than its name says" in problems[job(0).key]
    assert "is missing" in problems[job(1).key]
    with pytest.raises(IntegrityError, match="other bytes"):
        own.load(own.read(job(0).key), "edit")
    with pytest.raises(IntegrityError, match="has no artefact 'weights'"):
        own.find(own.read(job(0).key), "weights")


def test_a_missing_input_is_found(store: Store, study: Study, tmp_path: Path) -> None:
    spoilt = copied(store, tmp_path / "store")
    lost = next(job for job in study.jobs.values() if job.kind == "attack")
    users = {job.key for job in study.jobs.values() if lost.key in job.needs}
    spoilt.record_path(lost.key).unlink()
    problems = spoilt.verify()
    assert users and {problem.key for problem in problems} == users
    assert all(f"its input {lost.key[:12]} is not in the store" == problem.message for problem in problems)


# places


def test_a_moved_store_is_the_same_store(store: Store, tmp_path: Path) -> None:
    moved = copied(store, tmp_path / "räumlich getrennt")
    assert list(moved.keys()) == list(store.keys()) and moved.verify() == []


@pytest.mark.parametrize(("step", "advice"), [(1, "update grb"), (-1, "run the recipes again with a new store")])
def test_a_store_of_another_version_is_left_alone(own: Store, step: int, advice: str) -> None:
    own.write(record())
    (own.path / "store.json").write_text(json.dumps({"format": FORMAT + step}))
    with pytest.raises(DataError, match=f"has store format {FORMAT + step}, but this version reads {FORMAT}; {advice}"):
        Store(own.path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "no JSON"])
def test_a_stamp_that_says_nothing_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "store.json").write_text(text)
    with pytest.raises(DataError, match="it is not a store of grb"):
        Store(tmp_path)


def test_neither_a_file_nor_a_full_directory_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for path, words in ((tmp_path / "thesis.tex", "is a file"), (tmp_path, "neither a store nor empty")):
        with pytest.raises(DataError, match=words):
            Store(path)


@contextmanager
def powerless() -> Iterator[None]:
    """As somebody without the rights of root, who may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs users that may not write")
def test_a_directory_that_cannot_be_written_is_read_and_refuses_in_one_sentence() -> None:
    with tempfile.TemporaryDirectory() as folder:
        own = Store(Path(folder) / "store")
        own.write(record())
        before = files(own)
        for path in [own.path, *own.path.rglob("*"), Path(folder)]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        writers = [
            lambda: own.write(record(1)),
            lambda: own.put(b"x", ".npz"),
            lambda: own.take(lambda path: path.write_bytes(b"x"), ".npz"),
            lambda: own.claim(job(1).key),
            lambda: own.write_failure(job(1), "it failed", kind="DataError"),
            lambda: Store(Path(folder) / "another").prepare(),
        ]
        with powerless():
            assert Store(own.path).read(job().key) == record() and unreadable(own) == []
            for write in writers:
                with pytest.raises(DataError, match=r"cannot write .*: Permission denied; "):
                    write()
        for path in [Path(folder), own.path, *own.path.rglob("*")]:
            path.chmod(0o755)
        assert files(own) == before


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_file_that_the_disk_does_not_give_back_is_told_of(
    own: Store, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    own.write(record(edit=own.put(b"x", ".npz")))

    def broken(path: str | Path, flags: int = 0) -> int:
        if str(path).endswith(suffix):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.open(path, os.O_RDONLY)

    monkeypatch.setattr(module, "_open", broken)
    (problem,) = own.verify()
    assert problem.key == record().key
    assert re.fullmatch(r".* cannot be read: Input/output error; .*", problem.message)


def test_a_claim_that_cannot_be_written_is_no_claim(own: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DataError, match=r"cannot write .*: No space left"):
        own.claim(job().key)
    monkeypatch.undo()
    assert not list((own.path / "claims").glob("*")) and own.claim(job().key)


def test_many_writers_at_once_lose_nothing(own: Store) -> None:
    """Eight threads write the same twenty records and artefacts while another one reads them."""
    over, torn = threading.Event(), []

    def write() -> None:
        for number in range(20):
            own.write(record(number, edit=own.put(str(number).encode() * 1000, ".npz")))

    def read() -> None:
        while not over.is_set():
            for number in range(20):
                if own.has(job(number).key) and not torn:
                    try:
                        found = own.read(job(number).key)
                        own.load(found, "edit")
                    except GRBError as error:
                        torn.append(str(error))

    threads = [threading.Thread(target=write) for _ in range(8)]
    reader = threading.Thread(target=read)
    for thread in [reader, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    reader.join()
    assert torn == [] and unreadable(own) == [] and len(list(own.keys())) == 20
    assert not [name for name in files(own) if name.endswith(".part")]


# failures


def test_a_failure_is_kept_until_the_job_is_done(own: Store) -> None:
    own.write_failure(job(), "it was too hot", kind="weather")
    own.write_failure(job(1), "it was too cold", kind="weather")
    (own.path / "failed" / f"{job(2).key}.json").write_text("{torn")
    assert {(each["key"], each["error"]) for each in own.failures()} == {
        (job().key, "it was too hot"),
        (job(1).key, "it was too cold"),
    }
    own.write(record())
    assert [each["key"] for each in own.failures()] == [job(1).key]


# claims


def test_only_one_of_many_gets_a_claim(own: Store) -> None:
    own.prepare()
    won: list[int] = []
    threads = [
        threading.Thread(target=lambda n=number: won.append(n) if own.claim(job().key) else None)
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert not own.claim(job().key) and own.claim(job(1).key)
    own.release(job().key)
    assert own.claim(job().key)


@pytest.mark.parametrize(
    ("words", "age", "free"),
    [
        ("me", 0, False),
        ("me", STALE_SECONDS + 10, True),
        (f"{HERE} 1", 0, False),
        ("another-host 1", 0, False),
        ("another-host 1", STALE_SECONDS - 10, False),
        ("another-host 1", STALE_SECONDS + 10, True),
        ("", 0, False),
        ("", EMPTY_SECONDS + 5, True),
        ("torn", EMPTY_SECONDS + 5, True),
        (f"{HERE} not-a-number", 0, False),
        (f"{HERE} {10**30}", 0, False),
        (f"{HERE} not-a-number", STALE_SECONDS + 10, True),
    ],
)
def test_a_claim_is_kept_while_somebody_may_be_behind_it(own: Store, words: str, age: float, free: bool) -> None:
    # a parameter must not hold a process id: test workers would collect different tests
    claimed_by(own, f"{HERE} {os.getpid()}" if words == "me" else words, age)
    assert own.claim(job().key) is free


def test_the_claim_of_a_process_that_is_gone_is_free_at_once(own: Store, gone: int) -> None:
    claimed_by(own, f"{HERE} {gone}")
    assert own.claim(job().key)


def test_a_renewed_claim_is_fresh(own: Store) -> None:
    claimed_by(own, "another-host 1", STALE_SECONDS + 10)
    own.renew([job().key, job(1).key])
    assert not own.claim(job().key)


def test_a_crash_between_the_bytes_and_their_name_leaves_no_record(own: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(DataError, match="cannot write .*No space left on device"):
        own.write(record())
    assert not own.has(job().key) and files(own) == set()
