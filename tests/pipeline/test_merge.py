"""Merging two stores: what contradicts is refused, and nothing is dropped without a word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import grb
from grb.errors import IntegrityError
from grb.graph import GraphEdit
from grb.pipeline import Record, Spec, Store, Study
from grb.pipeline.bundle import merge, opened, pack
from grb.pipeline.card import Card
from grb.pipeline.submission import add, check, submissions
from grb.threat import Injection
from pipeline.parts import copied, of_kind

CARD = Card("my attack", "attack", "synth-tiny", authors=("A",))


def keep(store: Store, card: Card, folder: Path, new: int = 0) -> None:
    dataset = grb.load_dataset("synth-tiny")
    rows = None if not new else grb.load_dataset("synth-tiny").graph.x[:new] * 0
    path = GraphEdit(dataset.graph.n, new_x=rows).save(folder / f"edit{new}.npz")
    add(store, check(path, card, dataset, Injection.preset("synth-tiny", "full")))


def test_the_same_job_with_another_result_is_refused_and_nothing_is_copied(
    store: Store, study: Study, tmp_path: Path
) -> None:
    target = copied(store, tmp_path / "target")
    fit, lost = of_kind(study, "fit")[0].key, of_kind(study, "score")[0].key
    record = target.read(fit)
    target.write(replace(record, result={**record.result, "val_score": 0.123}))
    target.record_path(lost).unlink()
    with pytest.raises(IntegrityError, match=f"1 records contradict .*record {fit[:12]} has another result") as refused:
        merge(store, target)
    assert "nothing was copied" in str(refused.value) and "\n" not in str(refused.value)
    assert not target.has(lost) and target.read(fit).result["val_score"] == 0.123


def test_clocks_are_no_conflict(store: Store, study: Study, tmp_path: Path) -> None:
    """Shards of one study train some surrogates on both machines."""
    target = copied(store, tmp_path / "target")
    fit, lost = of_kind(study, "fit")[0].key, of_kind(study, "score")[0].key
    record = target.read(fit)
    target.write(replace(record, provenance={**record.provenance, "cpu_seconds": 77.0}))
    target.record_path(lost).unlink()
    notes: list[str] = []
    assert merge(store, target, on_note=notes.append) == 1
    assert target.read(fit).provenance["cpu_seconds"] == 77.0 and "1 records were measured on both sides" in notes[0]
    assert target.verify() == []


def test_which_study_asked_first_is_no_conflict(store: Store, study: Study, tmp_path: Path) -> None:
    target = copied(store, tmp_path / "target")
    record = target.read(of_kind(study, "score")[0].key)
    assert record.measurement is not None
    target.write(replace(record, measurement={**record.measurement, "study": "another"}))
    assert merge(store, target) == 0 and target.verify() == []


def test_only_the_named_records_are_copied_with_all_that_they_need(store: Store, study: Study, tmp_path: Path) -> None:
    score = next(job for job in of_kind(study, "score") if not job.data.chain)
    target = Store(tmp_path / "target")
    assert merge(store, target, [score.key]) == 2
    assert sorted(target.keys()) == sorted([score.key, *score.needs]) and target.verify() == []


@pytest.mark.parametrize("name", ["os:system", "grb.atomic:write_atomic"])
def test_a_record_that_names_code_is_copied_only_if_trusted(
    store: Store, study: Study, tmp_path: Path, name: str
) -> None:
    """On both ways into a store; nothing else of a refused bundle is copied."""
    source, target = copied(store, tmp_path / "source"), Store(tmp_path / "target")
    record = source.read(of_kind(study, "fit")[0].key)
    job = replace(record.job, spec=Spec(name))
    forged = Record(job.key, job, record.result, record.objects, record.provenance)
    source.write(forged)
    with pytest.raises(IntegrityError, match=f"names code '{name}'"):
        merge(source, target)
    assert list(target.keys()) == []
    target.put(source.find(forged, "weights").read_bytes(), ".safetensors")
    with pytest.raises(IntegrityError, match="names code"):
        target.receive(forged.key, source.read_bytes(forged.key))
    assert merge(source, target, trust_code=True) == len(list(source.keys()))


@pytest.mark.parametrize(
    ("name", "words"), [("my attack", "both have another"), ("My attack", "only by case or spaces")]
)
def test_submissions_that_readers_could_not_distinguish_are_refused(tmp_path: Path, name: str, words: str) -> None:
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    keep(first, CARD, tmp_path)
    keep(second, replace(CARD, name=name), tmp_path, new=1)
    with pytest.raises(IntegrityError, match=words):
        merge(second, first)
    assert len(submissions(first)) == 1


def test_versions_of_one_entry_travel_together(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    keep(first, CARD, tmp_path)
    pack(first, tmp_path / "bundle.zip")
    with opened(tmp_path / "bundle.zip") as inside:
        merge(inside, second)
    keep(second, CARD, tmp_path, new=1)
    assert merge(second, first) == 1
    assert [record.job.version for record in submissions(first)] == [1, 2] and first.verify() == []


def test_a_store_in_which_two_entries_look_the_same_is_reported(tmp_path: Path) -> None:
    own, other = Store(tmp_path / "own"), Store(tmp_path / "other")
    keep(own, CARD, tmp_path)
    keep(other, replace(CARD, name="My Attack"), tmp_path, new=1)
    (record,) = submissions(other)
    own.put(other.find(record, "edit").read_bytes(), ".npz")
    own.write(record)
    messages = [problem.message for problem in own.verify()]
    assert any("only by case or spaces" in each for each in messages), messages
