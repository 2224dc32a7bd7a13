from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grb import __version__
from grb.errors import DataError, IntegrityError
from grb.evaluator.measurement import pack_bits, unpack_bits
from grb.pipeline import DataRef, Job, Limits, Record, Spec, Store, Study, plan_study, run
from grb.pipeline.provenance import other_environment, provenance
from grb.pipeline.rerun import SCORE_TOLERANCE, _content, choose, rerun
from grb.trainer import checkpoint
from pipeline.parts import bare, copied, of_kind


def everything(store: Store) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in store.path.rglob("*")}


def test_random_scores_are_chosen_without_repetition_and_the_same_again(store: Store, study: Study) -> None:
    scores = {job.key for job in of_kind(study, "score")}
    chosen = choose(store, 5, seed=3)
    assert len(set(chosen)) == 5 and set(chosen) <= scores and chosen == choose(store, 5, seed=3)
    assert chosen != choose(store, 5, seed=4)
    assert sorted(choose(store, 10**6, seed=0)) == sorted(scores)


def test_a_rerun_computes_all_that_a_score_was_made_of_and_writes_nothing(store: Store, study: Study) -> None:
    score = next(job for job in of_kind(study, "score") if job.data.chain and job.mode == "full")
    before, told = everything(store), []
    found = rerun(store, [score.key], on_job=told.append)
    attack = study.jobs[score.data.chain[0]]
    expected = {score.key, attack.key, score.inputs["model"], *attack.inputs.values()}
    assert {each.key for each in found} == expected and all(each.equal for each in found) and told == found
    kinds = [study.jobs[each.key].kind for each in found]
    assert kinds == sorted(kinds, key=["fit", "attack", "score"].index)
    assert everything(store) == before


def test_the_same_weights_written_by_another_version_are_equal(
    store: Store, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of weights names the version that wrote it: every store was called forged after an update."""
    score = next(job for job in of_kind(study, "score") if not job.data.chain)
    monkeypatch.setattr(checkpoint, "__version__", "99.0")
    fit = next(each for each in rerun(store, [score.key]) if each.key == score.inputs["model"])
    assert fit.equal and fit.verdict == "equal"
    # other weights, other settings and files of others are still told apart
    data = store.load(store.read(score.inputs["model"]), "weights")
    texts = [
        data,
        data[:-1] + bytes([data[-1] ^ 1]),
        data.replace(b"dropout", b"dropput"),
        data[:40],
        b"",
        b"\xff" * 99,
    ]
    assert len({_content(each) for each in texts}) == len(texts)
    version = f'"version\\": \\"{__version__}'.encode()
    assert version in data and _content(data.replace(version, version[:-1] + b"9")) == _content(data)


def test_a_number_that_was_made_up_is_found(store: Store, study: Study, tmp_path: Path) -> None:
    """Whoever forges bits, accuracy, changes and the checksum together is not found by reading, but by computing."""
    forged = copied(store, tmp_path / "store")
    score = next(job for job in of_kind(study, "score") if job.data.edits and job.mode == "full")
    perfect(forged, study, score)
    assert forged.verify() == []
    different = [each for each in rerun(forged, [score.key]) if not each.equal]
    assert [(each.key, each.verdict) for each in different] == [(score.key, "different")]
    assert different[0].difference.startswith("its outcomes full changed is 0.")
    claimed, found = different[0].scores["full"]
    assert claimed == 1.0 and found == store.read(score.key).measurement["outcomes"]["full"]["values"]["accuracy"]


def perfect(store: Store, study: Study, score: Job) -> None:
    """Claim that every target is right, and as many changes as that takes."""
    clean = next(job for job in of_kind(study, "score") if not job.data.chain and job.inputs == score.inputs)
    right = unpack_bits(store.read(clean.key).measurement["outcomes"]["full"]["correct"], 90)
    rewrite(
        store,
        score.key,
        {"correct": pack_bits([True] * 90), "values": {"accuracy": 1.0}, "changed": float((~right).mean())},
    )


def rewrite(store: Store, key: str, outcome: dict[str, object], **provenance: object) -> None:
    record = store.read(key)
    ((name, values),) = record.measurement["outcomes"].items()
    measurement = {**record.measurement, "outcomes": {name: {**values, **outcome}}}
    store.write(replace(record, measurement=measurement, provenance={**record.provenance, **provenance}))


def test_rounding_of_another_machine_and_forgery_are_different_answers(
    store: Store, study: Study, tmp_path: Path
) -> None:
    """One bit of 90 on another CPU is within the tolerances; the same bit on this one, or many bits there, are not."""
    other = copied(store, tmp_path / "store")
    score = next(job for job in of_kind(study, "score") if job.data.edits and job.mode == "full")
    bits = unpack_bits(store.read(score.key).measurement["outcomes"]["full"]["correct"], 90)
    bits[0] = not bits[0]
    near: dict[str, object] = {"correct": pack_bits(bits), "values": {"accuracy": float(bits.mean())}}

    def verdict() -> str:
        (found,) = [each for each in rerun(other, [score.key]) if each.key == score.key]
        return found.verdict

    tolerant = SCORE_TOLERANCE >= 1 / 90
    rewrite(other, score.key, near)
    assert verdict() == "different"
    rewrite(other, score.key, near, cpu="Z80")
    assert verdict() == ("rounding" if tolerant else "different")
    perfect(other, study, score)
    assert verdict() == "different"


def test_what_a_record_does_not_say_excuses_nothing() -> None:
    here = provenance(0.0, 0.0)
    assert other_environment(here, here) == "" and other_environment({}, here) == ""
    assert other_environment({**here, "cpu": "Z80"}, here).startswith("cpu Z80, here ")
    assert other_environment({**here, "threads": {"torch": 64}}, here).startswith("threads 64, here ")
    assert here["numpy"] and here["scipy"] and here["threads"]["torch"] >= 1


def test_other_weights_are_found(store: Store, study: Study, tmp_path: Path) -> None:
    forged = copied(store, tmp_path / "store")
    mine, other = [job for job in of_kind(study, "fit") if job.spec.name == "gcn"][:2]
    record = forged.read(mine.key)
    forged.write(replace(record, objects=forged.read(other.key).objects))
    (comparison,) = rerun(forged, [mine.key])
    assert comparison.difference == "other bytes of its weights"


def test_another_machine_is_named_where_bits_differ(store: Store, study: Study, tmp_path: Path) -> None:
    forged = copied(store, tmp_path / "store")
    job = of_kind(study, "fit")[0]
    record = forged.read(job.key)
    forged.write(
        replace(record, result={**record.result, "epochs": 99}, provenance={**record.provenance, "torch": "1.0"})
    )
    (comparison,) = rerun(forged, [job.key])
    assert "(made with torch 1.0, here " in comparison.difference


def test_a_field_that_is_new_or_gone_is_a_difference(store: Store, study: Study, tmp_path: Path) -> None:
    forged = copied(store, tmp_path / "store")
    job = of_kind(study, "fit")[0]
    record = forged.read(job.key)
    forged.write(replace(record, result={key: value for key, value in record.result.items() if key != "epochs"}))
    assert not rerun(forged, [job.key])[0].equal


def test_a_missing_input_is_one_sentence(store: Store, study: Study, tmp_path: Path) -> None:
    partial = copied(store, tmp_path / "store")
    score = next(job for job in of_kind(study, "score") if job.data.chain)
    partial.record_path(score.data.chain[0]).unlink()
    with pytest.raises(DataError, match="is needed, but is not there"):
        rerun(partial, [score.key])


# records that name code


@pytest.fixture
def hostile(store: Store, study: Study, tmp_path: Path) -> tuple[Store, Path, list[str]]:
    """A store from somebody else, whose records name what they should not and hold what is usual."""
    usual = {kind: store.read(of_kind(study, kind)[0].key) for kind in ("fit", "attack", "score")}
    forged, canary = Store(tmp_path / "store"), tmp_path / "canary"
    data = DataRef("synth-tiny", "0" * 64)
    limits = dict(usual["attack"].job.extra)
    jobs = [
        Job("attack", Spec("subprocess:Popen", {"args": ["touch", str(canary)]}), data, mode="full", extra=limits),
        Job("fit", Spec("subprocess:Popen", {"args": ["touch", str(canary)]}), data),
        Job("fit", Spec("gcn"), DataRef("antigravity:anything", "0" * 64)),
        Job("score", Spec("score"), replace(data, chain=(Spec("os:system", {"command": f"touch {canary}"}),))),
    ]
    for job in jobs:
        held = usual[job.kind]
        forged.write(Record(job.key, job, held.result, {}, held.provenance, held.measurement))
    return forged, canary, [job.key for job in jobs]


def test_code_that_a_record_names_is_not_imported(hostile: tuple[Store, Path, list[str]]) -> None:
    store, canary, keys = hostile
    assert store.verify() != []  # and nothing is imported for it
    for key in keys:
        with pytest.raises(IntegrityError, match="names code .*used only if you trust it"):
            rerun(store, [key])
    assert not canary.exists()


def test_ones_own_code_is_computed_again_if_trusted(tmp_path: Path) -> None:
    study = plan_study(bare("Idle", defenses=["pipeline.plugins:Linear"]))
    store = Store(tmp_path / "store")
    run(study.jobs.values(), store, limits=Limits(workers=0))
    keys = [job.key for job in of_kind(study, "score")]
    assert all(each.equal for each in rerun(store, keys, trust_code=True))
    with pytest.raises(IntegrityError, match="pipeline.plugins"):
        rerun(store, keys)
    json.dumps([store.read(key).to_dict() for key in keys])
