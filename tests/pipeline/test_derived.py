from __future__ import annotations

import base64
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import grb
from grb.evaluator.measurement import pack_bits, unpack_bits
from grb.graph import GraphEdit
from grb.pipeline import DataRef, Job, Record, Spec, Store, Study
from grb.pipeline.card import Card
from grb.pipeline.derived import check_derived
from grb.pipeline.outcome_checks import packed_bits
from grb.pipeline.record import json_bytes
from grb.pipeline.spec import digest
from grb.pipeline.submission import add, check
from grb.threat import Injection
from pipeline.parts import copied, forge, of_kind

CARD = {"name": "mine", "kind": "attack", "dataset": "synth-tiny"}
EMPTY = {"sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "bytes": 0, "suffix": ".npz"}
FORGERIES = 500 if os.environ.get("HYPOTHESIS_PROFILE") == "stress" else 90
# what nothing in a store says twice: who forges only this is found by computing again
UNDERIVED = (
    "provenance",
    "result.loss",
    "result.kept",
    "result.seconds",
    "result.cpu_seconds",
    "result.epochs",
    "result.best_epoch",
    "result.val_score",
    "result.stopped",
    "result.passes",
    "result.history",
    "measurement.study",
    "invalid",
    "cpu_seconds",
    "peak_megabytes",
    "result.recipe",
)


def test_a_store_that_nobody_touched_has_no_contradictions(own: Store) -> None:
    assert own.verify() == []


def test_verification_needs_no_torch(own: Store) -> None:
    code = f"import sys; from grb.pipeline.store import Store; print(Store({str(own.path)!r}).verify(), 'torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[] False\n"
    )


# forgers who write a new checksum


def forged(store: Store, key: str, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """The problems of a store in which one record was changed by somebody who knows the format."""
    path = store.record_path(key)
    values = json.loads(path.read_text())
    del values["sha256"]
    change(values)
    path.write_bytes(json_bytes({**values, "sha256": digest(values)}))
    return [problem.message for problem in store.verify()]


def outcome(values: dict[str, Any]) -> dict[str, Any]:
    return next(iter(values["measurement"]["outcomes"].values()))


def attacked(study: Study) -> Job:
    return next(job for job in of_kind(study, "score") if job.data.edits)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda values: outcome(values)["values"].update(accuracy=0.999), "targets are correct"),
        (lambda values: outcome(values).update(correct=pack_bits([True] * 30)), "targets are correct"),
        (lambda values: outcome(values).update(changed=0.123), "is no fraction of"),
        (lambda values: outcome(values).update(changed=1.0), "the bits here and on the clean graph allow"),
        (lambda values: outcome(values).update(targets=3_000), "do not hold the bits of 3000 targets"),
        (lambda values: outcome(values).update(targets=10**15), "at most 134217728 are read"),
        (lambda values: outcome(values).update(correct="????"), "no packed bits"),
        (lambda values: outcome(values)["values"].update(auroc=0.9), "were asked for"),
        (lambda values: values["measurement"]["attack"]["budget"].update(nodes=1.0), "attack budget nodes"),
        (lambda values: values["measurement"]["attack"]["threat"].update(nodes=900), "attack threat nodes"),
        (lambda values: values["measurement"]["attack"]["method"].update(seed=77), "attack method seed"),
        (lambda values: values["measurement"]["defense"]["method"].update(name="best"), "defense method name"),
        (lambda values: values["measurement"]["defense"]["method"].update(version=9), "defense method version"),
        (lambda values: values["measurement"]["dataset"].update(fingerprint="0" * 64), "dataset fingerprint"),
        (lambda values: values["measurement"]["dataset"].update(name="grb-cora"), "of the same kind says"),
        (lambda values: values["measurement"].update(attack=None), "attack"),
        (lambda values: values["measurement"].update(metric="micro-f1"), "it is ranked by micro-f1, but has none"),
        (lambda values: values["measurement"]["attack"].update(preset="custom"), "its preset is custom"),
        (lambda values: values["measurement"]["dataset"].update(task="graph"), "of the same kind says"),
        (lambda values: values.update(objects={"edit": EMPTY}), "other bytes|holds none|is missing"),
        (lambda values: values["measurement"].update(objective="poisoning"), "objective"),
        (lambda values: values["measurement"].update(outcomes={}), "its job is of difficulty"),
        (lambda values: values.update(measurement=None), "this is not a measurement"),
        (lambda values: values["result"].update(accuracy=1), "holds a measurement and nothing else"),
        (lambda values: values["measurement"].pop("metric"), "not what a score gives"),
        (lambda values: values["measurement"].pop("defense"), "this is not a measurement"),
        (lambda values: outcome(values).update(changed="much"), "this is not an outcome"),
    ],
)
def test_a_forged_score_is_found_by_reading(
    own: Store, study: Study, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    found = forged(own, attacked(study).key, change)
    assert any(re.search(words, sentence) for sentence in found), found
    assert all("\n" not in sentence and len(sentence) < 400 for sentence in found)


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("attack", lambda values: values["result"]["budget"].update(nodes=1.0), "its budget of nodes is 1.0"),
        ("attack", lambda values: values["result"].update(budget={}), "its budget of nodes is None"),
        ("attack", lambda values: values["result"].update(steps=-1), "steps"),
        ("attack", lambda values: values.update(objects={}), "holds an edit"),
        ("attack", lambda values: values["result"].update(planned_steps=900), "its number of planned steps is 900"),
        ("attack", lambda values: values["result"]["budget"].update(graphs=1.0), "its task is graph"),
        ("attack", lambda values: values["result"]["budget"].update(graphs=1e9), "is of 1000000000.0 graphs"),
        ("attack", lambda values: values["result"].update(card=CARD), "it has a card, but nobody submitted it"),
        ("fit", lambda values: values["result"].update(title="gat+at"), "it calls itself 'gat+at', but is a training"),
        ("fit", lambda values: values["result"].update(card=CARD), "it calls itself 'submitted', but is a training"),
        ("fit", lambda values: values["result"].update(parameters=10**9), "its weights have"),
        ("fit", lambda values: values["result"]["settings"].update(epochs=7), "its setting epochs is 7"),
        ("fit", lambda values: values["result"].update(best_epoch=10**6), "its best epoch is"),
        ("study", lambda values: values["result"]["parts"][0]["scores"].pop(), "study scores"),
        ("study", lambda values: values["result"].update(repeats=100), "repeats"),
        ("study", lambda values: values["result"].update(surrogates=["gat"]), "surrogates"),
        ("study", lambda values: values["result"].update(attack={"iterations": 900}), "attack iterations"),
        ("study", lambda values: values["result"]["recipe"].update(attacks=["os:system", 1]), "not what a study gives"),
        (
            "study",
            lambda values: values["result"].update(recipe={}, paper="grb-cora"),
            "the paper's table of 'grb-cora'",
        ),
        (
            "study",
            lambda values: values["result"]["dataset"].update(name="grb-cora"),
            "it calls its dataset 'grb-cora'",
        ),
        ("study", lambda values: values["result"]["dataset"].update(synthetic=False), "of the same kind says"),
        ("study", lambda values: values["provenance"].update(cpu_seconds="long"), "cpu_seconds"),
    ],
)
def test_what_scores_are_made_of_is_checked_too(
    own: Store, study: Study, kind: str, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    key = next(record.key for record in own.records() if record.job.kind == kind)
    found = forged(own, key, change)
    assert any(words in sentence for sentence in found), found


def test_an_edit_beyond_its_limits_is_found_without_its_graph(own: Store, study: Study) -> None:
    """The edit of a full attack under the record of an easy one, whose limits are tighter."""
    easy, full = (
        next(job for job in of_kind(study, "attack") if (job.mode, job.spec.name) == (mode, "rnd"))
        for mode in ("easy", "full")
    )
    other = own.read(full.key)
    found = forged(
        own,
        easy.key,
        lambda values: values.update(objects=other.objects, result=other.result),
    )
    assert any("but its threat model allows 3" in sentence for sentence in found), found


def test_a_study_has_one_set_of_limits_for_every_difficulty(own: Store, study: Study) -> None:
    """An attack with more nodes than the others, whose records agree with one another and with its edit."""
    score = attacked(study)
    attack, values = own.read(score.data.edits[-1]), json.loads(own.read_bytes(score.key))
    wide = replace(attack.job, extra={**attack.job.extra, "threat": {**attack.job.extra["threat"], "nodes": 900}})
    own.write(replace(attack, key=wide.key, job=wide))
    values["job"]["data"]["chain"] = [wide.key]
    values["measurement"]["attack"]["threat"]["nodes"] = 900
    values["measurement"]["attack"]["method"]["key"] = wide.key
    values["measurement"]["attack"]["preset"] = "custom"
    made = forge(own, values)
    assert own.verify() == []
    (info,) = [record for record in own.records() if record.job.kind == "study"]
    told = json.loads(own.read_bytes(info.key))
    scores = [made if key == score.key else key for key in told["result"]["parts"][0]["scores"]]
    told["result"]["parts"][0]["scores"] = scores
    told["job"]["spec"]["params"]["scores"] = digest(sorted(scores))
    own.record_path(info.key).unlink()
    forge(own, told)
    (problem,) = own.verify()
    assert "on one board, but their attacks have different limits" in problem.message


def test_a_study_shows_the_card_of_the_submission(own: Store, study: Study, tmp_path: Path) -> None:
    dataset = grb.load_dataset("synth-tiny")
    edit = GraphEdit(dataset.num_nodes).save(tmp_path / "edit.npz")
    card = Card("mine", "attack", "synth-tiny", authors=("Ada",), unreliable="not yet")
    add(own, check(edit, card, dataset, Injection.preset("synth-tiny", "full")))
    key = next(record.key for record in own.records() if record.job.kind == "study")
    for change, words in (
        ({"authors": "Eve"}, "card authors is 'Eve'"),
        ({"unreliable": "never"}, "card unreliable is 'never'"),
        ({"reported": {"gcn": "high"}}, "a number is needed"),
        ({"authors": 7}, "text is needed"),
    ):
        shown = {**card.displayed(), **change}
        found = forged(own, key, lambda values, shown=shown: values["result"].update(cards={card.label: shown}))
        assert any(words in sentence for sentence in found), found


def test_what_only_a_dataset_or_a_run_tells_is_not_compared(own: Store, study: Study) -> None:
    """The name of the limits needs the data; which study asked first, and what the checks of a model found, need the run."""
    flag = {"name": "zero-gradient", "message": "no gradient", "numbers": {}}
    key = attacked(study).key
    assert own.read(key).measurement["attack"]["preset"]
    assert forged(own, key, lambda values: values["measurement"]["attack"].update(preset="")) == []
    assert forged(own, key, lambda values: values["measurement"].update(study="another", flags=[flag])) == []


def test_a_checksum_is_needed(own: Store, study: Study) -> None:
    path = own.record_path(attacked(study).key)
    values = json.loads(path.read_text())
    del values["sha256"]
    path.write_bytes(json_bytes(values))
    (problem,) = own.verify()
    assert "has no sha256" in problem.message


def test_a_bomb_of_bits_is_not_expanded() -> None:
    text = base64.b64encode(zlib.compress(bytes(2**28), 9)).decode()
    with pytest.raises(Exception, match="do not hold the bits of 80 targets"):
        packed_bits(text, 80)


def test_bits_as_one_number_are_those_of_the_measurement() -> None:
    for count in (1, 7, 8, 9, 300):
        bits = [bool(number % 3) for number in range(count)]
        value = packed_bits(pack_bits(bits), count)
        assert value.bit_count() == unpack_bits(pack_bits(bits), count).sum()
        assert [bool(value >> (count - 1 - place) & 1) for place in range(count)] == bits
    with pytest.raises(Exception, match="do not hold"):
        packed_bits(pack_bits([True] * 8), 7)  # a bit beyond the last target


def test_a_perturbation_that_names_code_is_not_built(tmp_path: Path, study: Study, store: Store) -> None:
    own, canary = copied(store, tmp_path / "store"), tmp_path / "canary"
    clean = own.read(next(job.key for job in of_kind(study, "score") if not job.data.chain))
    spec = Spec("os:system", {"command": f"touch {canary}"})
    job = replace(clean.job, data=DataRef(clean.job.data.dataset, clean.job.data.fingerprint, (spec,)))
    own.write(Record(job.key, job, {}, {}, {}, measurement=clean.measurement))
    assert own.verify() and not canary.exists()


def test_one_record_can_be_checked_alone(own: Store, study: Study) -> None:
    record = own.read(attacked(study).key)
    assert check_derived(record, own.read, {}) == []
    assert record.measurement is not None
    wrong = replace(record, measurement={**record.measurement, "threads": 99})
    assert check_derived(wrong, own.read, {}) == ["its threads is 99, but what it was made of says 1"]


# random forgeries


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, item in pairs:
            yield from leaves(item, (*path, name))
    else:
        yield path


def other_value(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 7])
    if isinstance(value, float):
        return rng.choice([value + 0.01, value * 0.9 + 0.033, 0.999])
    if isinstance(value, str):
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    return 0 if value is None else {"x": 1} if value == {} else ["x"]


def test_random_forgeries_show(own: Store, record_property: Callable[[str, object], None]) -> None:
    """Any field of any record, with a new checksum: at least 99 % are found where a derived value contradicts."""
    rng, missed, derived = random.Random(7), Counter[str](), 0
    keys = list(own.keys())
    while derived < FORGERIES:
        path = own.record_path(rng.choice(keys))
        before = path.read_bytes()
        values = json.loads(before)
        del values["sha256"]
        place = rng.choice(list(leaves(values)))
        name = ".".join(map(str, place))
        holder = values
        for step in place[:-1]:
            holder = holder[step]
        old, holder[place[-1]] = holder[place[-1]], other_value(holder[place[-1]], rng)
        if old == holder[place[-1]] or any(name.startswith(each) or name.endswith(f".{each}") for each in UNDERIVED):
            continue
        derived += 1
        path.write_bytes(json_bytes({**values, "sha256": digest(values)}))
        if not own.verify():
            missed[f"{values['job']['kind']} {name}"] += 1
        path.write_bytes(before)
    record_property("counted", f"{derived - missed.total()} of {derived} forged stores found: missed {dict(missed)}")
    assert missed.total() <= 0.01 * derived, missed
    shutil.rmtree(own.path)
