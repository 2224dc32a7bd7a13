"""Stores, bundles and files made by somebody who wants to be believed: nothing crashes, nothing runs, and what is forged shows.

`make stress` takes the large counts; every test prints what it counted.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import random
import struct
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import grb
from grb.cli.app import app
from grb.errors import BudgetError, GRBError
from grb.evaluator.certified import CertifiedOutcome
from grb.evaluator.measurement import Measurement, pack_bits, unpack_bits
from grb.graph import GraphEdit
from grb.pipeline import DataRef, Record, Spec, Store, Study
from grb.pipeline.bundle import merge, opened, pack
from grb.pipeline.card import Card
from grb.pipeline.gate import content_of
from grb.pipeline.job import Job
from grb.pipeline.record import FORMAT, MAX_RECORD, json_bytes
from grb.pipeline.rerun import choose, rerun
from grb.pipeline.results import boards
from grb.pipeline.spec import digest
from grb.pipeline.submission import add, check
from grb.threat import Injection
from pipeline.hostile import Bomb, arrays_of, npz_bytes
from pipeline.parts import copied, forge, of_kind

STRESS = os.environ.get("HYPOTHESIS_PROFILE") == "stress"
RECORDS = 10_000 if STRESS else 300
SWAPS = 200 if STRESS else 40
STORES = 12 if STRESS else 1
CARD = Card("mine", "attack", "synth-tiny", authors=("A",))
Property = Callable[[str, object], None]


# records


@pytest.fixture(scope="module")
def small(study: Study, store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One record of every kind: the smallest store with a board, a submission in it."""
    made = Store(tmp_path_factory.mktemp("small") / "store")
    score = next(job for job in of_kind(study, "score") if job.data.edits)
    clean = next(
        job for job in of_kind(study, "score") if not job.data.chain and job.inputs["model"] == score.inputs["model"]
    )
    merge(store, made, [score.key, clean.key])
    record = study.record({})
    assert record is not None
    made.write(record)
    edit = GraphEdit(grb.load_dataset("synth-tiny").num_nodes).save(made.path / "edit.npz")
    add(made, check(edit, CARD, grb.load_dataset("synth-tiny"), Injection.preset("synth-tiny", "full")))
    edit.unlink()
    assert made.verify() == []
    return made


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 10**400, 5000, 0.5, -0.0, 1e308, 5e-324, 1.5),
    *(
        "",
        "x",
        "0.999",
        "x" * 3000,
        "a\nb",
        "a\u202eb",
        "\u3164",
        "\x1b[31m",
        "<script>",
        "=cmd()",
        "../../etc",
        "os:system",
    ),
    *("none", "score", "fit", "cpu", "submission", "file", "0" * 64, "é" * 100, "\ud800", "grb.atomic:write_atomic"),
    *(
        [],
        {},
        [[]],
        [{}],
        {"": {}},
        {"x": None},
        [0.1] * 5000,
        ["a"] * 5000,
        {"name": "os:system"},
        {"kind": "injection"},
    ),
    *(partial(deep, levels) for levels in (20, 31, 60, 900)),
)


def hostile(rng: random.Random) -> Any:
    """One of these values, made anew: what is put into it later must not come back in other records."""
    value = rng.choice(HOSTILE)
    return value() if isinstance(value, partial) else deepcopy(value)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record, containers too."""
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value[:5]) if isinstance(value, list) else ()
    for name, item in pairs:
        yield from places(item, (*path, name))


def spoilt(values: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A record with one to three places changed, left out or added."""
    made = json.loads(json.dumps(values))
    known = list(places(made))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        *way, last = rng.choice(known)
        holder = made
        try:
            for step in way:
                holder = holder[step]
            holder[last]
        except (LookupError, TypeError):  # an earlier change took it away
            continue
        action = rng.random()
        if action < 0.1 and isinstance(holder, dict | list):
            del holder[last]
        elif action < 0.2 and isinstance(holder, dict):
            holder[rng.choice(["x", "name", "", "sha256", "format"])] = hostile(rng)
        elif isinstance(holder, dict | list):
            holder[last] = hostile(rng)
    return made


COMMANDS = (
    ("store", "ls", "{}"),
    ("store", "ls", "{}", "--json"),
    *(("store", "ls", "{}", "--kind", kind) for kind in ("fit", "attack", "score", "study", "profile")),
    ("store", "verify", "{}"),
    ("store", "verify", "{}", "--json"),
    ("leaderboard", "{}"),
    ("leaderboard", "{}", "--format", "json"),
    ("leaderboard", "{}", "--format", "csv"),
)


def said(command: tuple[str, ...], store: Store) -> str:
    """The sentence with which a command refuses a store; empty if it does not. Anything but a sentence fails."""
    done = CliRunner().invoke(app, [word.format(store.path) for word in command])
    assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
    assert "Traceback" not in done.output and done.exit_code in (0, 2, 3), (command, done.output)
    return "" if done.exit_code == 0 else done.stderr.strip().splitlines()[-1]


def library_says(store: Store) -> str:
    """What verifying a store finds in one record; the same for the boards and the records by themselves."""
    for use in (lambda: list(store.records()), lambda: boards(store)):
        with suppress(GRBError):
            use()
    problems = Store(store.path).verify()
    assert all("\n" not in problem.message and len(problem.message) < 500 for problem in problems), problems
    return problems[0].message if problems else ""


def test_hostile_records_are_refused_in_one_sentence_or_read_harmlessly(
    small: Store, tmp_path: Path, record_property: Property
) -> None:
    """Whatever stands in a record with a right key and checksum: no command and no function ends in a traceback."""
    rng, own = random.Random(11), copied(small, tmp_path / "store")
    originals = [json.loads(own.read_bytes(key)) for key in own.keys()]  # noqa: SIM118 - a store is no mapping
    refused = commands = 0
    for number in range(RECORDS):
        values = rng.choice(originals)
        before = own.read_bytes(values["key"])
        made = spoilt({name: value for name, value in values.items() if name != "sha256"}, rng)
        own.record_path(values["key"]).unlink()
        try:
            key = forge(own, {"job": None, **made})
        except ValueError:  # no JSON says this
            key = values["key"]
            own.record_path(key).write_bytes(repr(made).encode(errors="replace"))
        refused += bool(library_says(own))
        if number % 10 == 0 or number < 50:
            said(rng.choice(COMMANDS), own)
            commands += 1
        own.record_path(key).unlink(missing_ok=True)
        own.record_path(values["key"]).write_bytes(before)
    assert own.verify() == []
    harmless = RECORDS - refused
    record_property(
        "counted", f"{RECORDS} hostile records: {refused} refused, {harmless} read, {commands} commands, 0 crashes"
    )
    assert refused > 0.7 * RECORDS


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("fit", lambda values: values["provenance"].update(x=deep(900))),
        ("attack", lambda values: values.pop("result")),
        ("score", lambda values: values.pop("result")),
        ("score", lambda values: values.update(measurement=None)),
        (
            "score",
            lambda values: next(iter(values["measurement"]["outcomes"].values()))["values"].update(accuracy="high"),
        ),
        ("score", lambda values: values["measurement"].update(outcomes={"full": "high"})),
        (
            "score",
            lambda values: next(iter(values["measurement"]["outcomes"].values())).update(targets=10**400),
        ),
        ("study", lambda values: values["result"].update(parts=[{"scores": "all"}])),
        ("attack", lambda values: values["job"].update(threads=5000)),
        ("attack", lambda values: values["result"]["card"].update(authors=["A\u200bB"])),
        ("attack", lambda values: values["result"]["card"].update(authors=["A\u3164"])),
        ("study", lambda values: values["result"].update(title="a\u202eb")),
    ],
)
def test_what_crashed_a_command_is_one_sentence(
    small: Store, tmp_path: Path, command: tuple[str, ...], kind: str, change: Callable[[dict[str, Any]], object]
) -> None:
    own = copied(small, tmp_path / "store")
    sent = "card" in str(change.__code__.co_consts)
    key = next(record.key for record in own.records() if record.job.kind == kind and sent == ("card" in record.result))
    values = json.loads(own.read_bytes(key))
    own.record_path(key).unlink()
    change(values)
    forge(own, values)
    sentence = said(command, own)
    assert sentence and len(sentence) < 500
    with pytest.raises(GRBError):
        merge(own, Store(tmp_path / "target"))
    assert not list(Store(tmp_path / "target").keys())


# bundles


def listed(name: str, data: bytes) -> dict[str, bytes]:
    return {"store.json": json.dumps({"format": FORMAT}).encode(), name: data}


def lists(size: int) -> bytes:
    """JSON that is thirty times as large in memory."""
    return b'{"format": 2, "x": [' + b"[]," * (size // 3) + b"[]]}"


def with_artefact(record: Record, data: bytes) -> dict[str, bytes]:
    """A record of a store with another artefact."""
    ((name, entry),) = record.objects.items()
    sha256 = hashlib.sha256(data).hexdigest()
    values = {**record.to_dict(), "objects": {name: {**entry, "sha256": sha256, "bytes": len(data)}}}
    return listed(
        f"records/{values['key'][:2]}/{values['key']}.json", json_bytes({**values, "sha256": digest(values)})
    ) | {f"objects/{sha256[:2]}/{sha256}{entry['suffix']}": data}


def certificates(score: Record, count: int, targets: int) -> dict[str, bytes]:
    """Many records that are deflated to almost nothing, each of which a verification has to remember."""
    files: dict[str, bytes] = {}
    found: Measurement = content_of(score)
    threat = Injection(nodes=1, edges_per_node=1, feature_range=(0.0, 1.0)).to_dict()
    held = CertifiedOutcome(
        "by-construction", found.dataset, found.defense, "full", threat, targets, budgets=(1,) * targets
    )
    result = replace(held, correct=pack_bits(np.ones(targets, dtype=bool))).to_dict()
    for seed in range(count):
        data, inputs = replace(score.job.data, chain=()), {"model": score.job.inputs["model"]}
        job = Job("certify", Spec("by-construction"), data, {}, inputs, "full", seed, extra={"threat": threat})
        files[f"records/{job.key[:2]}/{job.key}.json"] = Record(job.key, job, result, {}, {}).to_json()
    return files


def test_what_deflates_to_almost_nothing_is_packed_so_that_it_is_read(small: Store, tmp_path: Path) -> None:
    """Certificates of large graphs: ten of 50,000 targets each, and a hundred of 1,000."""
    score = next(each for each in small.records() if each.job.kind == "score")
    for count, targets in ((10, 50_000), (100, 1_000)):
        made = Store(tmp_path / f"store{count}")
        for name, data in certificates(score, count, targets).items():
            path = made.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        (made.path / "store.json").write_text(json.dumps({"format": FORMAT}))
        assert pack(made, tmp_path / "bundle.zip") == count
        with opened(tmp_path / "bundle.zip") as found:
            assert len(list(found.records())) == count


def bombs(store: Store, canary: Path) -> Iterator[tuple[str, dict[str, bytes], int]]:
    """Bundles that are small in the mail and large in memory, or that would run something: name, files, way of packing."""
    key, deflated, stored = "ab" * 32, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED
    record, size = f"records/ab/{key}.json", MAX_RECORD - 1000
    fit, attack, score = (
        next(each for each in store.records() if each.job.kind == kind and "card" not in each.result)
        for kind in ("fit", "attack", "score")
    )
    edit = arrays_of(grb.load_dataset("synth-tiny"))
    yield "a record of lists, stored", listed(record, lists(size)), stored
    yield "many certificates", listed(*certificates(score, 1, 9).popitem()) | certificates(score, 100, 50_000), deflated
    yield "a record of lists just short enough", listed(record, lists(2**20 - 100)), deflated
    payload = base64.b64encode(lists(size * 3 // 5)).decode()
    envelope = {"payloadType": "application/vnd.in-toto+json", "payload": payload, "signatures": []}
    yield "an attestation of lists", listed(f"attestations/{key}.json", json.dumps(envelope).encode()), stored
    meta = np.frombuffer(lists(50_000_000), dtype=np.uint8)
    yield "an edit that tells a lot", with_artefact(attack, npz_bytes({**edit, "meta": meta})), stored
    stream = io.BytesIO()
    np.savez(stream, **{**edit, "add": np.array([Bomb(canary)], dtype=object)})
    yield "a pickle in an edit", with_artefact(attack, stream.getvalue()), deflated
    nested = b"[" + b",".join([b'{"a":' * 30 + b"0" + b"}" * 30] * 23_000) + b"]"
    yield "a record of nested mappings", listed(record, nested), stored
    many = np.full((2, 3_700_000), 10**9)
    yield "an edit of equal edges", with_artefact(attack, npz_bytes({**edit, "add": many})), stored
    yield "weights with more behind them", with_artefact(fit, store.load(fit, "weights") + bytes(100)), stored
    spec = Spec("os:system", {"command": f"touch {canary}"})
    for data in (DataRef("os:getcwd", "f"), replace(score.job.data, chain=(spec,))):
        job = replace(score.job, data=data)
        values = replace(score, key=job.key, job=job).to_dict()
        named = f"records/{job.key[:2]}/{job.key}.json"
        yield f"code as {data.dataset}", listed(named, json_bytes({**values, "sha256": digest(values)})), deflated
    if not STRESS:
        return
    yield "a stamp of lists", {"store.json": lists(2**20 - 100)}, deflated
    text = json.dumps({"format": FORMAT, "x": "a" * 8_000_000 + "\U0001f600"}, ensure_ascii=False).encode()
    yield "a record of wide letters", listed(record, text), stored
    keys = b"{" + b",".join(b'"%x":0' % number for number in range(800_000)) + b"}"
    yield "a record of keys", listed(record, keys), stored
    told = np.frombuffer(lists(1_000_000), dtype=np.uint8)
    yield "an edit that tells much", with_artefact(attack, npz_bytes({**edit, "meta": told})), stored
    nobody = np.zeros((10**9, 0), dtype=np.float32)
    yield "an edit of nodes without features", with_artefact(attack, npz_bytes({**edit, "new_x": nobody})), stored
    yield "weights and zeros", with_artefact(fit, store.load(fit, "weights") + bytes(60_000_000)), deflated
    yield "a record of lists", listed(record, lists(size)), deflated
    yield "a record of one text", listed(record, b'"' + b"a" * size + b'"'), deflated
    yield "a record of escapes", listed(record, b'"' + b"\\u0041" * (size // 6) + b'"'), stored
    yield "a record of brackets", listed(record, b"[" * size), deflated
    yield "many small files", {f"{number:05x}": b"" for number in range(100_000)}, stored
    zeros = np.zeros((1_000_000, 64), dtype=np.float32)
    yield "an edit of zeros", with_artefact(attack, npz_bytes({**edit, "new_x": zeros})), stored
    noise = np.random.default_rng(0).integers(0, 255, 2_000_000, dtype=np.uint8)
    expanding = npz_bytes({**edit, "add": np.concatenate([noise, np.zeros(250_000_000, dtype=np.uint8)])})
    yield "an edit that expands a hundredfold", with_artefact(attack, expanding), stored
    header = lists(50_000_000)
    yield "weights of names", with_artefact(fit, struct.pack("<Q", len(header)) + header), deflated


_PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, done.returncode, "Traceback" in done.stderr)
print(done.stderr.strip().splitlines()[-1:] or done.stdout.strip().splitlines()[-1:])
"""


def peak_megabytes(*command: str) -> tuple[int, int, str]:
    """Peak memory, exit code and last line of a command, measured through a small process."""
    words = [sys.executable, "-c", _PEAK, sys.executable, "-m", "grb", *command]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    numbers, line = done.stdout.splitlines()
    peak, code, traceback = numbers.split()
    assert traceback == "False", line
    return int(peak), int(code), line


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_hostile_bundles_take_little_memory_and_run_nothing(
    small: Store, tmp_path: Path, record_property: Property
) -> None:
    """At most ten times the bundle more than a tiny sound one takes; 4 MB are what pages, arenas and one small record take."""
    canary, target = tmp_path / "canary", tmp_path / "target"
    pack(small, tmp_path / "sound.zip")
    usual, code, _ = peak_megabytes("store", "verify", str(tmp_path / "sound.zip"))
    assert code == 0
    most, count = 0, 0
    for name, files, kind in bombs(small, canary):
        path = tmp_path / "bundle.zip"
        with zipfile.ZipFile(path, "w", kind) as archive:
            for inside, data in files.items():
                archive.writestr(inside, data)
        size = path.stat().st_size / 2**20
        for command in (("store", "verify", str(path), "--rerun", "1"), ("store", "copy", str(path), str(target))):
            peak, code, line = peak_megabytes(*command)
            assert code in (2, 3) and len(line) < 600, (name, line)
            assert peak <= usual + 4 + 10 * size, (name, command[1], f"{size:.2f} MB of bundle took {peak} MB")
            most = max(most, peak - usual)
            count += 1
            if STRESS:
                record_property(
                    "counted", f"{name}, {command[1]}: {size:.2f} MB of bundle, {peak - usual} MB of memory"
                )
        assert not target.exists() or not list(Store(target).keys())
    assert not canary.exists()
    record_property(
        "counted",
        f"{count} commands on hostile bundles: 0 ran code, at most {most} MB beside the {usual} MB of a sound one",
    )


# files that are swapped


def test_a_file_that_is_swapped_during_its_check_never_brings_in_another(
    tmp_path: Path, record_property: Property
) -> None:
    """A file within the limits and one beyond them under one name, in turn, as fast as it goes."""
    dataset, threat = grb.load_dataset("synth-tiny"), Injection.preset("synth-tiny", "full")
    n, path, over = dataset.num_nodes, tmp_path / "edit.npz", threading.Event()
    rows = np.zeros((1, dataset.num_features), dtype=np.float32)
    targets = dataset.test_ids("full")[: threat.edges_per_node + 1].numpy()
    pairs = {"fine": targets[:1], "beyond": targets}
    contents = {
        name: npz_bytes({**arrays_of(dataset), "add": np.stack([ends, np.full_like(ends, n)]), "new_x": rows})
        for name, ends in pairs.items()
    }
    path.write_bytes(contents["fine"])

    def swap() -> None:
        number = 0
        while not over.is_set():
            number += 1
            other = tmp_path / "other"
            other.write_bytes(contents["beyond" if number % 2 else "fine"])
            os.replace(other, path)

    thread, found = threading.Thread(target=swap), Counter[str]()
    thread.start()
    try:
        while found.total() < SWAPS:
            try:
                checked = check(path, CARD, dataset, threat)
                found["beyond" if checked.data != contents["fine"] else "fine"] += 1
            except BudgetError:
                found["refused"] += 1
    finally:
        over.set()
        thread.join()
    record_property(
        "counted", f"{SWAPS} checks of a file that was swapped all the time: {dict(found)}, 0 beyond the limits"
    )
    assert found["beyond"] == 0 and found["fine"] and found["refused"]


def test_an_artefact_that_is_swapped_during_verification_is_one_or_the_other(
    small: Store, tmp_path: Path, record_property: Property
) -> None:
    """The bytes that are counted are those that were hashed: an edit beyond its limits is never counted as another."""
    own = copied(small, tmp_path / "store")
    attack = next(each for each in own.records() if each.job.kind == "attack" and "card" not in each.result)
    fine, path = own.load(attack, "edit"), own.find(attack, "edit")
    wide = npz_bytes({**arrays_of(grb.load_dataset("synth-tiny")), "new_x": np.ones((50, 4), dtype=np.float32)})
    values = {**attack.to_dict(), "objects": {"edit": own.put(wide, ".npz")}}
    forge(own, values)
    beyond, over = own.find(own.read(attack.key), "edit"), threading.Event()
    assert beyond != path

    def swap() -> None:
        number = 0
        while not over.is_set():
            number += 1
            other = tmp_path / "other"
            other.write_bytes(wide if number % 2 else fine)
            os.replace(other, beyond)

    thread, accepted = threading.Thread(target=swap), 0
    thread.start()
    try:
        for _ in range(SWAPS):
            accepted += not own.verify()
    finally:
        over.set()
        thread.join()
    record_property("counted", f"{SWAPS} verifications while an edit was swapped: {accepted} accepted")
    assert accepted == 0


# forged scores


def flipped(values: dict[str, Any], rng: random.Random) -> None:
    """Other bits, with an accuracy and a number of changes that fit them: reading finds nothing wrong."""
    for outcome in values["measurement"]["outcomes"].values():
        bits = unpack_bits(outcome["correct"], outcome["targets"])
        wrong = [place for place, right in enumerate(bits) if not right] or [0]
        bits[rng.choice(wrong)] ^= True
        outcome["correct"] = pack_bits(bits)
        outcome["values"]["accuracy"] = float(bits.sum() / len(bits))
        outcome["changed"] = float(
            min(1.0, outcome["changed"] + 1 / len(bits)) if values["job"]["data"]["chain"] else 0.0
        )
        outcome["changed"] = round(outcome["changed"] * len(bits)) / len(bits)


def test_every_forged_score_in_the_sample_shows_when_it_is_computed_again(
    own: Store, study: Study, tmp_path: Path, record_property: Property
) -> None:
    rng, found = random.Random(5), Counter[str]()
    for number in range(STORES):
        place = copied(own, tmp_path / f"store{number}")
        scores = [job.key for job in of_kind(study, "score")]
        forged = set(rng.sample(scores, len(scores) // 3))
        for key in forged:
            values = json.loads(place.read_bytes(key))
            flipped(values, rng)
            assert forge(place, values) == key
        found["found by reading"] += len({problem.key for problem in place.verify()} & forged)
        sample = choose(place, 6, seed=rng.randrange(2**31))
        verdicts = {each.key: each.verdict for each in rerun(place, sample)}
        for key in sample:
            assert (verdicts[key] == "different") == (key in forged), (key, verdicts[key])
        found["forged"] += len(forged)
        found["in the sample"] += len(forged & set(sample))
        found["found by computing again"] += sum(verdicts[key] == "different" for key in sample)
    record_property("counted", f"{STORES} stores: {dict(found)}")
    assert found["found by computing again"] == found["in the sample"] > 0
