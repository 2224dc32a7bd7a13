from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from grb.errors import DataError, IntegrityError
from grb.pipeline import DataRef, Job, Record, Spec, Store, Study
from grb.pipeline.gate import admit, check_model_params, check_schema, named_code, snapshot
from grb.pipeline.record import MAX_DEPTH
from pipeline.parts import forge, of_kind


def deep(levels: int) -> object:
    value: object = 0.5
    for _ in range(levels):
        value = [value]
    return value


def test_every_record_of_a_study_is_admitted(study: Study, store: Store) -> None:
    for key in study.jobs:
        assert admit(store.read(key)).key == key


@pytest.mark.parametrize("kind", ["fit", "attack", "score"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: replace(record, job=replace(record.job, threads=5000)), "5000 threads"),
        (lambda record: replace(record, job=replace(record.job, threads=0)), "0 threads"),
        (lambda record: replace(record, job=replace(record.job, seed=-1)), "its seed is -1"),
        (lambda record: replace(record, job=replace(record.job, device="/dev/sda")), "its device is"),
        (lambda record: replace(record, provenance={"cpu_seconds": float("nan")}), "cpu_seconds is nan"),
        (lambda record: replace(record, provenance={"seconds": "many"}), "seconds is many"),
        (lambda record: replace(record, provenance={"date": "<b>"}), "date is <b>"),
        (lambda record: replace(record, result={"other": 1}, measurement={"other": 1}), "this is not"),
        (lambda record: replace(record, result={}, measurement=None), "this is not"),
        (lambda record: replace(record, job=replace(record.job, data=DataRef("x" * 3000, "f"))), "3000 characters"),
    ],
)
def test_a_record_that_is_not_what_its_kind_holds_is_refused(study: Study, store: Store, kind, change, words) -> None:
    record = store.read(of_kind(study, kind)[0].key)
    with pytest.raises(IntegrityError, match=words) as refusal:
        check_schema(change(record))
    assert "\n" not in str(refusal.value) and record.key[:12] in str(refusal.value)


def test_only_our_own_attacks_on_the_victim_may_aim_at_true_labels(study: Study, store: Store) -> None:
    record = store.read(of_kind(study, "attack")[0].key)
    extra = {**record.job.extra, "knowledge": "white-box", "labels": "true"}
    aimed = replace(record.job, spec=Spec("auto"), extra=extra)
    assert check_schema(replace(record, job=aimed))
    for wrong, words in (
        (replace(aimed, spec=Spec("submission", {"name": "mine"})), "not in grb's own catalogue"),
        (replace(aimed, spec=Spec("my_package.attacks:Mine")), "not in grb's own catalogue"),
        (replace(aimed, extra={**extra, "knowledge": "transfer"}), "not on a surrogate"),
        (replace(aimed, extra={**extra, "labels": "mine"}), "'predicted' or 'true' is needed"),
    ):
        with pytest.raises(IntegrityError, match=words):
            check_schema(replace(record, job=wrong))


def test_a_record_that_is_nested_too_deep_or_too_large_is_neither_written_nor_read(
    study: Study, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, own = store.read(of_kind(study, "fit")[0].key), Store(tmp_path / "store")
    for changes in ({"x": deep(900)}, {"x": deep(MAX_DEPTH)}):
        with pytest.raises(DataError, match=f"could not be read again: it is nested more than {MAX_DEPTH} deep"):
            own.write(replace(record, objects={}, provenance=changes))
        with pytest.raises(IntegrityError, match=rf"damaged \(it is nested more than {MAX_DEPTH} deep"):
            own.read(forge(own, {**record.to_dict(), "provenance": changes}))
    flat = {"format": 2, **record.to_dict(), "objects": {}, "provenance": {"x": [{}] * 100}}
    assert own.read(forge(own, flat)).provenance["x"] == [{}] * 100
    monkeypatch.setattr("grb.pipeline.record.MAX_VALUES", 90)
    with pytest.raises(IntegrityError, match="or 90 values"):
        own.read(record.key)


def test_what_could_not_be_read_is_not_written(study: Study, store: Store, tmp_path: Path) -> None:
    own = Store(tmp_path / "store")
    record = store.read(of_kind(study, "score")[0].key)
    with pytest.raises(IntegrityError, match="this is not a measurement"):
        own.write(replace(record, measurement={"other": 1}))
    assert not own.has(record.key)


@pytest.mark.parametrize(
    "change",
    [
        {"data": DataRef("synth-tiny", "f", (Spec("os:system", {"command": "true"}),))},
        {"data": DataRef("synth-tiny", "f", (Spec("lowpass+os:system"),))},
        {"data": DataRef("os:getcwd", "f")},
        {"spec": Spec("os:system")},
        {"spec": Spec("a-file-of-mine:run")},
        {"spec": Spec("7zip:Übung")},
        {"spec": Spec("antigravity:1")},
        {"spec": Spec("gcn+at", {"attack": "antigravity:1st"})},
        {"data": DataRef("antigravity:0", "f")},
        {"extra": {"metrics": ["antigravity:1"]}},
        {"spec": Spec("gcn+at", {"attack": "os:system"})},
        {"spec": Spec("gcn+at", {"attack": {"name": "os:system"}})},
        {"spec": Spec("fgsm", {"deep": [{"deeper": ["subprocess:run"]}]})},
        {"spec": Spec("grb.atomic:write_atomic", {"path": "x", "content": "y"})},
        {"extra": {"metrics": ["os:system"]}},
        {"extra": {"perturbation": {"type": "os:system"}}},
    ],
)
def test_code_is_found_wherever_a_job_names_it(study: Study, store: Store, change) -> None:
    record = store.read(of_kind(study, "attack")[0].key)
    if "extra" in change:
        change = {"extra": {**record.job.extra, **change["extra"]}}
    job = replace(record.job, **change)
    assert named_code(job)
    forged = Record(job.key, job, record.result, record.objects, record.provenance)
    with pytest.raises(IntegrityError, match="names code"):
        admit(forged)
    assert admit(forged, trust_code=True) is forged


def test_what_is_no_code_is_not_taken_for_it(study: Study) -> None:
    for job in study.jobs.values():
        assert named_code(job) == []
    score = replace(of_kind(study, "score")[0], extra={"metrics": ["recall:1", "macro-f1"]})
    assert named_code(score) == []


def test_a_file_as_dataset_is_read_only_if_it_is_trusted(study: Study, store: Store) -> None:
    record = store.read(of_kind(study, "fit")[0].key)
    job = replace(record.job, data=DataRef("/etc/passwd", "f"))
    forged = Record(job.key, job, record.result, record.objects, record.provenance)
    with pytest.raises(IntegrityError, match="names the file '/etc/passwd'"):
        admit(forged)
    assert admit(forged, trust_code=True)


def test_checks_and_use_see_the_bytes_that_were_read(tmp_path: Path) -> None:
    path = tmp_path / "edit.npz"
    path.write_bytes(b"before")
    with snapshot(path) as taken:
        path.write_bytes(b"after!")
        assert taken.data == taken.path.read_bytes() == b"before"
        assert taken.path.stat().st_mode & 0o077 == 0 or taken.path.parent.stat().st_mode & 0o077 == 0
    assert not taken.path.exists()


def test_a_file_that_is_swapped_all_the_time_is_one_file_or_the_other(tmp_path: Path) -> None:
    path, over = tmp_path / "edit.npz", threading.Event()
    contents = (b"a" * 4096, b"b" * 4096)
    path.write_bytes(contents[0])

    def swap() -> None:
        number = 0
        while not over.is_set():
            number += 1
            other = tmp_path / "other"
            other.write_bytes(contents[number % 2])
            os.replace(other, path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(200):
            with snapshot(path) as taken:
                assert taken.data in contents and taken.path.read_bytes() == taken.data
    finally:
        over.set()
        thread.join()


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"), snapshot(tmp_path / "missing"):
        pass
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with pytest.raises(DataError, match="pipe or a device"), snapshot(fifo):
        pass


def test_a_submitted_model_repeats_nothing_very_often() -> None:
    check_model_params({"k": 10, "hidden_features": 5000}, "a file")
    with pytest.raises(DataError, match="k=800000, but at most 100"):
        check_model_params({"k": 800_000}, "a file")
    with pytest.raises(DataError, match="101 numbers as hidden_features"):
        check_model_params({"hidden_features": [1] * 101}, "a file")


def test_a_job_of_any_name_has_a_key() -> None:
    assert len(Job("score", Spec("score"), DataRef("a", "b")).key) == 64
