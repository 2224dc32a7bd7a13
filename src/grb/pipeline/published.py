"""Getting what is published: from the source checkout, GRB_DATA, the cache, or its address, never without its sha256.

The list of :mod:`grb.artefacts` says which bytes a bundle has. They are compared before anything in them is read; then the
records that are asked for are unpacked, verified and admitted like those of any bundle (:mod:`grb.pipeline.bundle`), and the
artefact is kept in the cache, where its own sha256 is compared at every use.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb import artefacts
from grb.artefacts import FOLDER, Bundle, PublishedEdit, PublishedModel
from grb.atomic import make_directory, size_of, write_atomic
from grb.dataset import registry
from grb.dataset.transfer import Known, Limits, Refused, check_address, download, host
from grb.errors import DataError, IntegrityError
from grb.names import PublishedName

if TYPE_CHECKING:
    from grb.pipeline.store import Store

log = logging.getLogger(__name__)

_UNUSUAL = re.compile(r"[^\w.+=,()\[\]-]+")
# name of the artefact and ending of its file, by kind of the record
_ARTEFACTS = {"fit": ("weights", ".safetensors"), "attack": ("edit", ".npz")}


def model_file(name: PublishedName, *, seed: int | None = None) -> Path:
    """The file of a published model, checked; see :func:`grb.artefacts.find_model`."""
    return file_of(*artefacts.find_model(name, seed=seed))


def edit_file(name: PublishedName, **choices: Any) -> Path:
    """The file of a published edit, checked; see :func:`grb.artefacts.find_edit`."""
    return file_of(*artefacts.find_edit(name, **choices))


def resolved(given: str | os.PathLike[str], kind: str, **choices: Any) -> Path:
    """The path of a model or an edit: a file that exists is itself, and a published name is its file.

    Args:
        given: Path, or published name.
        kind: ``model`` or ``edit``.
        choices: Which of several, for a published name; refused for a path.
    """
    text = os.fspath(given)
    name = None if os.path.exists(text) else artefacts.published(Path(text).as_posix())
    if name is not None:
        return model_file(name, **choices) if kind == "model" else edit_file(name, **choices)
    if said := [key for key, value in choices.items() if value is not None and kind == "edit"]:
        raise DataError(
            f"'{text[:80]}' is the path of one {kind}, but {said[0]} chooses among published ones; leave it out"
        )
    return Path(text)


def file_of(bundle: Bundle, item: PublishedModel | PublishedEdit) -> Path:
    """The file of something published, from the cache or its bundle; nothing is read before its sha256 was compared."""
    kind = "fit" if isinstance(item, PublishedModel) else "attack"
    what, suffix = _ARTEFACTS[kind]
    kept = _cache(bundle) / f"{_UNUSUAL.sub('-', item.title)}{suffix}"
    if _is(kept, Known(item.bytes, item.sha256)):
        return kept
    with opened(bundle, [item.key]) as store:
        record = store.read(item.key)
        entry = record.objects.get(what, {})
        if record.job.kind != kind or (entry.get("sha256"), entry.get("suffix")) != (item.sha256, suffix):
            raise IntegrityError(f"bundle '{bundle.name}' has another '{item.title}' than its list says; get grb again")
        data = store.load(record, what)
    try:
        return write_atomic(kept, data)
    except DataError as error:
        reason = str(error).partition(";")[0]
        raise DataError(f"{reason}; set GRB_HOME to a directory that can be written") from None


@contextmanager
def opened(bundle: Bundle, keys: Iterable[str] | None = None) -> Iterator[Store]:
    """Open a published bundle, or some of its records with all that they need, verified like any bundle that comes in.

    Args:
        bundle: The bundle.
        keys: Keys of the records; all of them if None.
    """
    from grb.pipeline import gate
    from grb.pipeline.bundle import opened as unpacked

    with gate.snapshot(find(bundle)) as taken:
        if problem := _known(bundle).problem(len(taken.data), taken.sha256):
            raise IntegrityError(f"{bundle.file} {problem}; it was changed while it was read")
        with unpacked(taken.path, keys) as store:
            if problems := store.verify(on_record=gate.admit):
                raise IntegrityError(
                    f"bundle '{bundle.name}' is not used: {problems[0].message} ({len(problems)} problems)"
                )
            yield store


def find(bundle: Bundle) -> Path:
    """The file of a bundle with the published bytes, downloaded if it is nowhere on this machine."""
    wrong = ""
    for place in places(bundle):
        problem = _problem(place, _known(bundle))
        if problem is None:
            return place
        wrong = wrong or (f" {place} {problem}." if problem else "")
    return _download(bundle, wrong)


def where(bundle: Bundle) -> Path | None:
    """Where a file of the bundle's name and size lies on this machine; its bytes are compared when it is used."""
    for place in places(bundle):
        if place.is_file() and place.stat().st_size == bundle.bytes:
            return place
    return None


def places(bundle: Bundle) -> list[Path]:
    """Where a bundle is looked for: the source checkout, the roots of GRB_DATA, the cache."""
    source = Path(__file__).resolve().parents[2]
    checkout = [source.parent] if source.name == "src" and (source.parent / "pyproject.toml").is_file() else []
    below = [place for root in registry.roots() for place in (root / FOLDER / bundle.file, root / bundle.file)]
    return [*(root / FOLDER / bundle.file for root in checkout), *below, _cache(bundle) / bundle.file]


def addresses(bundle: Bundle) -> list[str]:
    """Where a bundle can be downloaded, in the order of trying: ``$GRB_MIRROR``, then its own address."""
    base = os.environ.get("GRB_MIRROR", "").rstrip("/")
    own = [f"{base}/{FOLDER}/{bundle.file}"] if base else []
    return [*own, *([bundle.address] if bundle.address else [])]


def _cache(bundle: Bundle) -> Path:
    # versions of grb that share a cache may know other bytes of the same name
    return registry.home() / FOLDER / bundle.sha256[:16]


def _known(bundle: Bundle) -> Known:
    return Known(bundle.bytes, bundle.sha256)


def _is(path: Path, known: Known) -> bool:
    return _problem(path, known) is None


def _problem(path: Path, known: Known) -> str | None:
    """What is wrong with the file of a place; empty if there is none."""
    try:
        size = size_of(path)
        if not path.is_file():
            return "is no file"
        if size != known.size:
            return known.problem(size, "")
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            while block := stream.read(2**20):
                digest.update(block)
        return known.problem(size, digest.hexdigest())
    except FileNotFoundError:
        return ""
    except DataError as error:
        return f"cannot be read ({error})"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _download(bundle: Bundle, wrong: str) -> Path:
    """Put a bundle into the cache, or say in one sentence why that cannot be done."""
    tried = []
    if registry.offline():
        tried.append("GRB_OFFLINE forbids to download it")
    elif not addresses(bundle):
        tried.append("no address of it is known")
    else:
        kept = _cache(bundle) / bundle.file
        for url in addresses(bundle):
            log.info("Downloading bundle '%s' from %s.", bundle.name, host(url))
            try:
                check_address(url)
                make_directory(kept.parent)
                with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".part-") as part:
                    fresh = Path(part) / bundle.file
                    download(url, fresh, known=_known(bundle), limits=Limits(max_bytes=bundle.bytes))
                    os.replace(fresh, kept)
                return kept
            except Refused as refused:
                tried.append(f"{host(url)} {refused}")
            except OSError as error:
                raise DataError(
                    f"cannot write {kept.parent}: {error.strerror}; set GRB_HOME to another directory"
                ) from None
    searched = ", ".join(dict.fromkeys(str(place.parent) for place in places(bundle)[:-1]))
    sentence = (
        f"bundle '{bundle.name}' is not on this machine (searched {searched}; {'; '.join(tried)}).{wrong} Put {bundle.file} "
        f"({bundle.bytes} bytes, sha256 {bundle.sha256}) into one of these folders."
    )
    raise IntegrityError(sentence) if wrong and "sha256" in wrong else DataError(sentence)
