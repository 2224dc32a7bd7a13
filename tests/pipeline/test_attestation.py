from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grb.errors import DataError, IntegrityError
from grb.pipeline import Store, Study
from grb.pipeline.bundle import merge, opened, pack
from grb.pipeline.results import boards
from pipeline.parts import of_kind

pytest.importorskip("securesystemslib")
pytest.importorskip("cryptography")

from grb.pipeline.attestation import (
    FOLDER,
    add_attestation,
    attestations,
    create_key,
    read_envelope,
    read_private_key,
    read_public_key,
    record_sha256,
    sign_store,
    verify_attestations,
)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    create_key(tmp_path / "lab.key")
    return tmp_path / "lab.key"


@pytest.fixture
def public(key: Path) -> Any:
    return read_public_key(f"{key}.pub")


# keys


def test_a_private_key_is_its_owners_alone_and_never_overwritten(key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert Path(f"{key}.pub").read_text().startswith("-----BEGIN PUBLIC KEY-----")
    before = key.read_bytes()
    with pytest.raises(DataError, match="exists already"):
        create_key(key)
    Path(f"{key}.pub").unlink()
    with pytest.raises(DataError, match="exists already"):
        create_key(key)
    assert key.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="permissions of files")
def test_a_key_that_others_can_read_is_refused(key: Path) -> None:
    key.chmod(0o644)
    with pytest.raises(DataError, match="can be read by others; `chmod 600"):
        read_private_key(key)


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    for read in (read_private_key, read_public_key):
        with pytest.raises(DataError, match=r"holds no (such|ed25519)") as refused:
            read(path)
        assert "\n" not in str(refused.value)
    with pytest.raises(DataError, match="cannot read the key"):
        read_public_key(tmp_path / "none")
    with pytest.raises(DataError, match="chosen with --record"):
        read_public_key(tmp_path / "0123abcd")


def test_a_public_key_signs_nothing_and_other_kinds_of_keys_neither(key: Path, tmp_path: Path) -> None:
    public = Path(f"{key}.pub")
    public.chmod(0o600)
    with pytest.raises(DataError, match="holds no such key"):
        read_private_key(public)
    from cryptography.hazmat.primitives import serialization as kinds
    from cryptography.hazmat.primitives.asymmetric import ec

    other = ec.generate_private_key(ec.SECP256R1())
    path = tmp_path / "ec"
    path.write_bytes(other.private_bytes(kinds.Encoding.PEM, kinds.PrivateFormat.PKCS8, kinds.NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(DataError, match="no ed25519 private key"):
        read_private_key(path)


# signing and verifying


def test_one_envelope_vouches_for_a_whole_store(own: Store, key: Path, public: Any) -> None:
    before = {each: record_sha256(own, each) for each in own.keys()}  # noqa: SIM118
    made = sign_store(own, read_private_key(key), name="Our lab")
    assert made.records == len(before) and len(list(attestations(own))) == 1
    assert {each: record_sha256(own, each) for each in own.keys()} == before  # noqa: SIM118
    found = verify_attestations(own, [public])
    assert dict(found.signers) == dict.fromkeys(before, "Our lab")
    assert (found.problems, found.unsigned, found.unknown) == ((), 0, {})
    assert own.verify() == []


def test_the_envelope_is_an_in_toto_statement(own: Store, key: Path) -> None:
    made = sign_store(own, read_private_key(key), name="Our lab")
    assert made.path is not None
    envelope = json.loads(made.path.read_bytes())
    assert envelope["payloadType"] == "application/vnd.in-toto+json" and len(envelope["signatures"]) == 1
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    first = statement["subject"][0]
    assert first["digest"]["sha256"] == record_sha256(own, first["name"])
    assert statement["predicate"].keys() == {"signer", "time", "grb"}


def test_only_what_is_new_is_signed_again(own: Store, study: Study, key: Path, public: Any) -> None:
    lost = of_kind(study, "score")[0].key
    data = own.read_bytes(lost)
    own.record_path(lost).unlink()
    signer = read_private_key(key)
    sign_store(own, signer, name="Our lab")
    own.record_path(lost).write_bytes(data)
    assert verify_attestations(own, [public]).unsigned == 1
    assert sign_store(own, signer, name="Our lab").records == 1
    assert sign_store(own, signer, name="Our lab").records == 0
    assert verify_attestations(own, [public]).unsigned == 0


def test_changed_and_missing_records_are_named(own: Store, study: Study, key: Path, public: Any) -> None:
    sign_store(own, read_private_key(key), name="Our lab")
    changed, missing = (job.key for job in of_kind(study, "score")[:2])
    record = own.read(changed)
    own.write(replace(record, provenance={**record.provenance, "seconds": 9.0}))
    own.record_path(missing).unlink()
    problems = {problem.key: problem.message for problem in verify_attestations(own, [public]).problems}
    assert problems.keys() == {changed, missing}
    assert problems[changed].startswith("signed by Our lab at 2") and problems[changed].endswith("was changed since")
    assert problems[missing].endswith("but it is not in the store")


def test_an_unknown_key_vouches_for_nothing(own: Store, key: Path, tmp_path: Path) -> None:
    sign_store(own, read_private_key(key), name="Our lab")
    create_key(tmp_path / "other.key")
    found = verify_attestations(own, [read_public_key(tmp_path / "other.key.pub")])
    assert found.signers == {} and len(found.unknown) == 1 and found.problems == ()
    assert {found.signer_of(each) for each in own.keys()} == {"unverified"}  # noqa: SIM118


def _changed(own: Store, change: Any) -> None:
    """Another envelope in place of the one of the store, under its right name."""
    ((name, data),) = attestations(own)
    envelope = json.loads(data)
    change(envelope)
    (own.path / FOLDER / f"{name}.json").unlink()
    add_attestation(own, json.dumps(envelope).encode())


def test_a_statement_that_nobody_signed_does_not_hold(own: Store, key: Path, public: Any) -> None:
    sign_store(own, read_private_key(key), name="Our lab")

    def forge(envelope: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(envelope["payload"]))
        statement["predicate"]["signer"] = "Somebody else"
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    _changed(own, forge)
    found = verify_attestations(own, [public])
    assert found.signers == {} and "its signature is not that of key" in found.problems[0].message


@pytest.mark.parametrize("sig", ["", "AAAA", "?", 7, None])
def test_a_broken_signature_is_one_sentence(own: Store, key: Path, public: Any, sig: Any) -> None:
    sign_store(own, read_private_key(key), name="Our lab")
    _changed(own, lambda envelope: envelope["signatures"][0].update(sig=sig))
    (problem,) = verify_attestations(own, [public]).problems
    assert "does not hold" in problem.message and "\n" not in problem.message


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"[" * 10_000, b'{"payloadType": "text/plain", "payload": "", "signatures": []}', b"\xff"],
)
def test_what_is_no_attestation_never_enters(own: Store, data: bytes) -> None:
    with pytest.raises(IntegrityError, match="this is no attestation of grb"):
        add_attestation(own, data)
    assert list(attestations(own)) == []


def test_a_file_that_was_changed_is_found(own: Store, key: Path, public: Any) -> None:
    path = sign_store(own, read_private_key(key), name="Our lab").path
    assert path is not None
    path.write_bytes(path.read_bytes() + b" ")
    (problem,) = verify_attestations(own, [public]).problems
    assert "was changed after it was written" in problem.message


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\u202eb", "a\u200bb", "a\u3164", "\u2800", "x" * 101])
def test_a_signer_has_a_name_that_can_be_read(own: Store, key: Path, name: str) -> None:
    with pytest.raises(DataError, match="the signer's name is"):
        sign_store(own, read_private_key(key), name=name)


def test_an_empty_store_is_not_signed(tmp_path: Path, key: Path) -> None:
    with pytest.raises(DataError, match="has no records to sign"):
        sign_store(Store(tmp_path / "none"), read_private_key(key), name="Our lab")


# bundles and boards


def test_bundles_carry_attestations_and_import_keeps_them(own: Store, key: Path, public: Any, tmp_path: Path) -> None:
    sign_store(own, read_private_key(key), name="Our lab")
    pack(own, tmp_path / "bundle.zip")
    target = Store(tmp_path / "target")
    with opened(tmp_path / "bundle.zip") as inside:
        assert verify_attestations(inside, [public]).unsigned == 0
        merge(inside, target)
    found = verify_attestations(target, [public])
    assert found.unsigned == 0 and found.problems == () and set(found.signers.values()) == {"Our lab"}


def test_an_attestation_never_travels_without_its_records(own: Store, study: Study, key: Path, tmp_path: Path) -> None:
    sign_store(own, read_private_key(key), name="Our lab")
    pack(own, tmp_path / "part.zip", [of_kind(study, "score")[0].key])
    with opened(tmp_path / "part.zip") as inside:
        assert list(attestations(inside)) == [] and inside.verify() == []


def test_a_board_says_who_measured(own: Store, key: Path, public: Any) -> None:
    (plain,) = boards(own, ["tiny"])
    assert "measured_by" not in plain.meta
    sign_store(own, read_private_key(key), name="Our lab")
    (unknown,) = boards(own, ["tiny"])
    (known,) = boards(own, ["tiny"], trusted=[public])
    assert list(unknown.meta["measured_by"]) == ["unverified"] and list(known.meta["measured_by"]) == ["Our lab"]
    assert {run["measured_by"] for cell in known.cells for run in cell.metadata} == {"Our lab"}
    assert [cell.score for cell in known.cells] == [cell.score for cell in plain.cells]


def test_reading_attestations_needs_no_library(own: Store, key: Path) -> None:
    """Whoever trusts no key needs nothing installed, and nothing loads torch."""
    sign_store(own, read_private_key(key), name="Our lab")
    code = (
        "import sys; from grb.pipeline.store import Store; from grb.pipeline.attestation import verify_attestations; "
        f"found = verify_attestations(Store({str(own.path)!r}), []); "
        "print(len(found.unknown), {'torch', 'securesystemslib', 'cryptography'} & set(sys.modules))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1 set()\n"
    )


def test_an_envelope_says_what_it_says(own: Store, key: Path) -> None:
    sign_store(own, read_private_key(key), name="Our lab")
    ((_, data),) = attestations(own)
    _, statement = read_envelope(data)
    assert statement.signer == "Our lab" and set(statement.subjects) == set(own.keys())
