from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grb.errors import DataError, IntegrityError
from grb.pipeline import DataRef, Job, Limits, Record, Spec, Store, Study, plan_study, run
from grb.pipeline.rerun import choose, rerun
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


def changed(store: Store, key: str, **result: object) -> None:
    record = store.read(key)
    store.write(replace(record, result={**record.result, **result}))


def test_a_number_that_was_made_up_is_found(store: Store, study: Study, tmp_path: Path) -> None:
    """Whoever writes a new checksum too is not found by reading, but by computing."""
    forged = copied(store, tmp_path / "store")
    score = of_kind(study, "score")[0]
    record = forged.read(score.key)
    values = json.loads(json.dumps(record.measurement))
    values["outcomes"]["full"]["values"]["accuracy"] = 1.0
    forged.write(replace(record, measurement=values))
    assert forged.verify() == []
    different = [each for each in rerun(forged, [score.key]) if not each.equal]
    assert [each.key for each in different] == [score.key]
    assert different[0].difference.startswith("its outcomes full values accuracy is 0.")
    assert "but the record says 1.0" in different[0].difference


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
def hostile(tmp_path: Path) -> tuple[Store, Path, list[str]]:
    """A store from somebody else, whose records name what they should not."""
    store, canary = Store(tmp_path / "store"), tmp_path / "canary"
    data = DataRef("synth-tiny", "0" * 64)
    jobs = [
        Job("attack", Spec("subprocess:Popen", {"args": ["touch", str(canary)]}), data, mode="full"),
        Job("fit", Spec("subprocess:Popen", {"args": ["touch", str(canary)]}), data),
        Job("fit", Spec("gcn"), DataRef("antigravity:anything", "0" * 64)),
    ]
    for job in jobs:
        store.write(Record(job.key, job, {}, {}, {}))
    return store, canary, [job.key for job in jobs]


def test_code_that_a_record_names_is_not_imported(hostile: tuple[Store, Path, list[str]]) -> None:
    store, canary, keys = hostile
    assert store.verify() == []
    for key in keys:
        with pytest.raises(IntegrityError, match="names code .*imported only if you trust it"):
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
