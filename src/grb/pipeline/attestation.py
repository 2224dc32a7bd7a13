"""Attestations: who vouches for which records, as signed in-toto statements that lie beside the records and never in them.

An attestation is one DSSE envelope with an ed25519 signature over a statement that names records by key and by the sha256 of
their bytes. It needs no network: whoever has the signer's public key can check it.

References:
    *in-toto Attestation Framework*, Statement v1; *DSSE: Dead Simple Signing Envelope*, secure-systems-lab.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from grb._version import __version__
from grb.atomic import size_of, write_atomic
from grb.errors import DataError, IntegrityError, require
from grb.evaluator.board import Board
from grb.pipeline.record import MAX_RECORD, is_key, read_json, unseen_letter
from grb.pipeline.store import Problem, Store

FOLDER = "attestations"
STATEMENT = "https://in-toto.io/Statement/v1"
PAYLOAD = "application/vnd.in-toto+json"
PREDICATE = "urn:graph-robustness-benchmark:measured:v1"
# what boards show where no trusted key vouches for a score: an unknown one does, or none at all
UNVERIFIED = "unverified"
UNSIGNED = "unsigned"
# an envelope of this number of records stays far below MAX_RECORD
BATCH = 100_000
MAX_KEY_BYTES = 2**16
MAX_NAME = 100


@dataclass(frozen=True)
class Statement:
    """What a signer says.

    Args:
        subjects: sha256 of the bytes of every record that is vouched for, by key.
        signer: Name of the signer as boards show it.
        time: When it was signed, in UTC.
        version: Version of grb that signed.
    """

    subjects: Mapping[str, str]
    signer: str
    time: str
    version: str


@dataclass(frozen=True)
class Signed:
    """What :func:`sign_store` wrote: the last envelope's file, and the number of records that are newly signed."""

    path: Path | None
    records: int


@dataclass(frozen=True)
class Signatures:
    """What the attestations of a store say to a reader who trusts some keys.

    Args:
        signers: Name of the signer of every record that a trusted key vouches for and that is unchanged.
        unknown: Keys of the records of every attestation whose key is not trusted, by the file's sha256.
        unsigned: Number of records that no trusted key vouches for.
        problems: Attestations that do not hold: broken signatures, records that were changed or are missing.
    """

    signers: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unsigned: int = 0
    problems: tuple[Problem, ...] = ()

    def signer_of(self, key: str) -> str:
        """Who vouches for a record: a name, ``unverified`` if only unknown keys do, or nothing."""
        known = self.signers.get(key)
        if known is not None:
            return known
        return UNVERIFIED if any(key in keys for keys in self.unknown.values()) else ""


# keys


def create_key(path: str | os.PathLike[str]) -> Path:
    """Make an ed25519 key pair: the private key (PEM, PKCS8, readable by its owner only) and ``PATH.pub`` beside it.

    Returns:
        Path of the public key, which readers need.
    """
    private, public = Path(path), Path(f"{os.fspath(path)}.pub")
    serialization = _cryptography("serialization")
    key = _cryptography("asymmetric.ed25519").Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    opened = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    if public.exists():
        raise DataError(f"{public} exists already; choose another name, for a lost key cannot be made again")
    try:
        private.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise DataError(f"{private} exists already; choose another name, for a lost key cannot be made again") from None
    except OSError as error:
        raise DataError(f"cannot write {private}: {error.strerror}; choose another path") from None
    with os.fdopen(handle, "wb") as stream:
        stream.write(secret)
        stream.flush()
        os.fsync(stream.fileno())
    return write_atomic(public, opened)


def read_private_key(path: str | os.PathLike[str]) -> Any:
    """Read the signer of a private key file; one that others may read is refused."""
    path = Path(path)
    data = _read_key(path)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise DataError(f"{path} can be read by others; `chmod 600 {path}` makes it yours")
    key = _parsed_key(path, data, _cryptography("serialization").load_pem_private_key, password=None)
    if not isinstance(key, _cryptography("asymmetric.ed25519").Ed25519PrivateKey):
        raise DataError(f"{path} holds no ed25519 private key; `grb store sign --new-key FILE` makes one")
    return _library("signer").CryptoSigner(key)


def read_public_key(path: str | os.PathLike[str]) -> Any:
    """Read a public key whose signatures are trusted."""
    path = Path(path)
    key = _parsed_key(path, _read_key(path), _cryptography("serialization").load_pem_public_key)
    if not isinstance(key, _cryptography("asymmetric.ed25519").Ed25519PublicKey):
        raise DataError(f"{path} holds no ed25519 public key; `grb store sign --new-key FILE` writes one to FILE.pub")
    return _library("signer").SSlibKey.from_crypto(key)


def _read_key(path: Path) -> bytes:
    try:
        if size_of(path) > MAX_KEY_BYTES:
            raise DataError(f"{path} has more than {MAX_KEY_BYTES} bytes, which no key needs")
        return path.read_bytes()
    except OSError as error:
        looks = "; a record is chosen with --record" if is_key(path.name.ljust(64, "0")) else "; check the path"
        raise DataError(f"cannot read the key {path}: {error.strerror}{looks}") from None


def _parsed_key(path: Path, data: bytes, load: Callable[..., Any], **options: Any) -> Any:
    try:
        return load(data, **options)
    except (ValueError, TypeError, _cryptography_error()) as error:
        raise DataError(f"{path} holds no such key in PEM format ({str(error)[:60]})") from None


def _library(module: str) -> Any:
    require("securesystemslib", extra="sign", what="signing")
    return require(f"securesystemslib.{module}", extra="sign", what="signing")


def _cryptography(module: str) -> Any:
    require("cryptography", extra="sign", what="signing")
    return require(f"cryptography.hazmat.primitives.{module}", extra="sign", what="signing")


def _cryptography_error() -> type[Exception]:
    found: type[Exception] = require("cryptography.exceptions", extra="sign", what="signing").UnsupportedAlgorithm
    return found


# signing


def sign_store(store: Store, signer: Any, *, name: str) -> Signed:
    """Vouch for every record of a store that this key has not signed yet.

    Args:
        store: The store; verify it before.
        signer: What :func:`read_private_key` gave.
        name: Name of the signer as boards show it.
    """
    if not (name.strip() == name and _is_readable(name)):
        raise DataError(f"the signer's name is {ascii(name)[:60]}, but 1 to {MAX_NAME} printable characters are needed")
    done = verify_attestations(store, [signer.public_key]).signers
    todo = [(key, record_sha256(store, key)) for key in store.keys() if key not in done]  # noqa: SIM118
    if not todo and not done:
        raise DataError(f"{store.path} has no records to sign; run a recipe first")
    path = None
    for start in range(0, len(todo), BATCH):
        path = add_attestation(store, _signed(dict(todo[start : start + BATCH]), signer, name))
    return Signed(path, len(todo))


def _signed(subjects: Mapping[str, str], signer: Any, name: str) -> bytes:
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": key, "digest": {"sha256": sha256}} for key, sha256 in sorted(subjects.items())],
        "predicateType": PREDICATE,
        "predicate": {
            "signer": name,
            "time": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "grb": __version__,
        },
    }
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    envelope = _library("dsse").Envelope(payload, PAYLOAD, {})
    envelope.sign(signer)
    return (json.dumps(envelope.to_dict(), sort_keys=True) + "\n").encode()


def _is_readable(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME and name.isprintable() and not unseen_letter(name)


def record_sha256(store: Store, key: str) -> str:
    """Return the sha256 of a record's bytes."""
    return hashlib.sha256(store.read_bytes(key)).hexdigest()


# in a store


def attestations(store: Store) -> Iterator[tuple[str, bytes]]:
    """Iterate over the envelopes of a store, as file names without suffix and bytes."""
    for path in sorted((store.path / FOLDER).glob("*.json")):
        if is_key(path.stem):
            try:
                if size_of(path) > MAX_RECORD:
                    raise IntegrityError(f"{path} is larger than {MAX_RECORD} bytes; it was not written by grb")
                yield path.stem, path.read_bytes()
            except OSError as error:
                raise DataError(f"{path} cannot be read: {error.strerror}; look after the disk") from None


def add_attestation(store: Store, data: bytes) -> Path:
    """Keep an envelope under the sha256 of its bytes; something that is no envelope is refused."""
    read_envelope(data)
    store.prepare()
    path = store.path / FOLDER / f"{hashlib.sha256(data).hexdigest()}.json"
    return path if path.exists() else write_atomic(path, data)


def read_envelope(data: bytes) -> tuple[dict[str, Any], Statement]:
    """Read an envelope and what it says, of which nothing is believed before its signature is checked."""
    try:
        envelope = read_json(data)
        if envelope["payloadType"] != PAYLOAD or not isinstance(envelope["signatures"], list):
            raise ValueError("another type of payload")
        values = read_json(base64.b64decode(envelope["payload"], validate=True))
        if (values["_type"], values["predicateType"]) != (STATEMENT, PREDICATE):
            raise ValueError("another type of statement")
        subjects = {each["name"]: each["digest"]["sha256"] for each in values["subject"]}
        if not (subjects and all(is_key(each) for pair in subjects.items() for each in pair)):
            raise ValueError("no records named by key and sha256")
        predicate = values["predicate"]
        about = [predicate[name] for name in ("signer", "time", "grb")]
        if not all(isinstance(each, str) and _is_readable(each) for each in about):
            raise ValueError("no signer, time or version")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise IntegrityError(f"this is no attestation of grb ({' '.join(str(error).split())[:80]})") from None
    return envelope, Statement(subjects, *about)


def verify_attestations(store: Store, keys: Iterable[Any]) -> Signatures:
    """Check the attestations of a store.

    Args:
        store: The store.
        keys: Trusted keys, as :func:`read_public_key` gives them.
    """
    trusted = list(keys)
    signers: dict[str, str] = {}
    unknown: dict[str, frozenset[str]] = {}
    problems: list[Problem] = []
    now: dict[str, str] = {}
    for name, data in attestations(store):
        try:
            if hashlib.sha256(data).hexdigest() != name:
                raise IntegrityError("was changed after it was written")
            envelope, statement = read_envelope(data)
            known = _is_signed(envelope, trusted)
        except IntegrityError as error:
            problems.append(Problem(name, f"attestation {name[:12]} does not hold: {error}"))
            continue
        if not known:
            unknown[name] = frozenset(statement.subjects)
            continue
        for key, sha256 in statement.subjects.items():
            if key not in now:
                now[key] = record_sha256(store, key) if store.has(key) else ""
            if now[key] == sha256:
                signers.setdefault(key, statement.signer)
            else:
                what = "was changed since" if now[key] else "is not in the store"
                problems.append(Problem(key, f"signed by {statement.signer} at {statement.time}, but it {what}"))
    unsigned = sum(1 for key in store.keys() if key not in signers)  # noqa: SIM118 - a store is no mapping
    return Signatures(signers, unknown, unsigned, tuple(problems))


def _is_signed(envelope: Mapping[str, Any], trusted: list[Any]) -> bool:
    """Whether a trusted key signed an envelope; a signature under its name that is not its own is refused."""
    named = {str(each.get("keyid")) for each in envelope["signatures"] if isinstance(each, dict)}
    own = [key for key in trusted if key.keyid in named]
    if not own:
        return False
    try:
        _library("dsse").Envelope.from_dict(json.loads(json.dumps(envelope))).verify(own, len(own))
    except Exception as error:  # the library has several errors for bytes that anybody may have written
        raise IntegrityError(f"its signature is not that of key {own[0].keyid[:12]} ({str(error)[:60]})") from None
    return True


def with_signers(board: Board, signer_of: Callable[[str], str]) -> Board:
    """Return a board with who vouches for its scores, in every cell and in total; as it is if nobody does."""
    names = {run["score"]: signer_of(run["score"]) for cell in board.cells for run in cell.metadata}
    if not any(names.values()):
        return board
    counts = Counter(name or UNSIGNED for name in names.values())
    cells = [
        replace(each, metadata=tuple({**run, "measured_by": names[run["score"]] or UNSIGNED} for run in each.metadata))
        for each in board.cells
    ]
    return replace(board, cells=tuple(cells), meta={**board.meta, "measured_by": dict(counts.most_common())})
