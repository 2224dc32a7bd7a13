"""What is published: bundles of trained models and edits by name, with the sha256 that their files must have.

Nothing is read here but the list itself, one JSON file per bundle below ``presets/artefacts``, which
``docs/tools/artefacts.py`` writes; :mod:`grb.pipeline.published` gets the files. A name is ``BUNDLE/MODEL`` or
``BUNDLE/ATTACK``, with keys in brackets where there are several: ``grb-cora/gat+at(seed=1)``,
``grb-cora/auto(victim=gcn+ln, labels=true)``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal, TypeVar

from grb import serial
from grb.entries import find
from grb.errors import DataError, GRBError, UnknownName, nearest
from grb.names import Label, ModelName, PublishedName
from grb.serial import Count, Fraction

FORMAT = 1
# where the files lie that a release of grb brings: BASE/FILE; empty as long as the project has no public address
RELEASES = ""
# where a source checkout has them, and their folder below the roots of GRB_DATA and in the cache
FOLDER = "artefacts"
ADVICE = "`grb ls artefacts` shows all names."
# as many as fit on a line or two
SHOWN = 40
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
Value = TypeVar("Value")


@dataclass(frozen=True)
class PublishedModel:
    """One trained model.

    Args:
        name: As boards show it: the model, and what differs from the settings that all trainings of the study share.
        seed: Random seed of the training.
        key: Key of its record in the bundle.
        sha256: Hash of its weights.
        bytes: Size of its weights.
        parameters: Number of weights.
        clean: Accuracy on the clean graph by difficulty; empty for a surrogate, which no board shows.
        worst_case: Lowest accuracy under any edit that it met, by difficulty, where it met the whole battery.
    """

    name: str
    seed: Count
    key: str
    sha256: str
    bytes: Count
    parameters: Count
    clean: Mapping[str, Fraction] = field(default_factory=dict)
    worst_case: Mapping[str, Fraction] = field(default_factory=dict)

    @cached_property
    def label(self) -> Label:
        """The name taken apart."""
        return Label.parse(self.name)

    @property
    def title(self) -> str:
        """Name and seed, as its file is called."""
        return f"{self.name}-seed{self.seed}"


@dataclass(frozen=True)
class PublishedEdit:
    """One edit that an attack made.

    Args:
        name: The attack as boards show it.
        seed: Random seed of the attack.
        key: Key of its record in the bundle.
        sha256: Hash of its file.
        bytes: Size of its file.
        difficulty: Which test nodes were attacked.
        knowledge: ``white-box`` and ``query`` edits have a victim, ``transfer`` ones a surrogate, others none.
        labels: Labels that it aims at.
        model: Name of the victim or surrogate; empty without one.
        training: Random seed of that model's training; None without one.
    """

    name: str
    seed: Count
    key: str
    sha256: str
    bytes: Count
    difficulty: str
    knowledge: Literal["none", "transfer", "query", "white-box"]
    labels: Literal["predicted", "true"] = "predicted"
    model: str = ""
    training: Count | None = None

    @cached_property
    def label(self) -> Label:
        """The attack's name taken apart."""
        return Label.parse(self.name)

    @property
    def role(self) -> str:
        """What its model was to it: ``victim``, ``surrogate`` or nothing."""
        return {"none": "", "transfer": "surrogate"}.get(self.knowledge, "victim") if self.model else ""

    @property
    def title(self) -> str:
        """What distinguishes it within its bundle, as its file is called."""
        source = [f"{self.model}-training{self.training}"] if self.model else []
        aims = ["true"] if self.labels == "true" else []
        return "-".join([self.name, *source, *aims, self.difficulty, f"seed{self.seed}"])


@dataclass(frozen=True)
class Bundle:
    """One published bundle.

    Args:
        name: Its name, the first part of every name in it.
        title: Heading of its board.
        recipe: Name of the recipe that made it.
        dataset: Name of the dataset.
        fingerprint: Fingerprint of the dataset.
        bytes: Size of its file.
        sha256: Hash of its file.
        records: Number of records in it.
        difficulties: In the order of the tables.
        models: Its trained models.
        edits: The edits of its attacks.
        signed_by: Names of the signers, as the signed statements in it say; checked by ``grb store verify --key``.
        url: Where the file is, if not below :data:`RELEASES`.
    """

    name: str
    title: str
    recipe: str
    dataset: str
    fingerprint: str
    bytes: Count
    sha256: str
    records: Count
    difficulties: tuple[str, ...]
    models: tuple[PublishedModel, ...]
    edits: tuple[PublishedEdit, ...] = ()
    signed_by: tuple[str, ...] = ()
    url: str = ""

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.name}.zip"

    @property
    def address(self) -> str:
        """Where its file can be downloaded; empty if no address is known."""
        return self.url or (f"{RELEASES}/{self.file}" if RELEASES else "")

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; :meth:`from_dict` reads it back."""
        return serial.to_versioned(self, FORMAT)

    @classmethod
    def from_dict(cls, values: Any) -> Bundle:
        """Back from :meth:`to_dict`; anything else is refused."""
        found = serial.from_versioned(cls, values, FORMAT, "the list of a published bundle")
        check_name(found.name)
        hashes = [found.sha256, *(each.sha256 for each in found.models), *(each.sha256 for each in found.edits)]
        for text in (*hashes, *(each.key for each in found.models), *(each.key for each in found.edits)):
            if not _SHA256.fullmatch(text):
                raise DataError(f"bundle '{found.name}' names something by '{text[:70]}', which is no sha256")
        return found


def check_name(name: str) -> None:
    """Refuse a name that no bundle may have."""
    if not _NAME.fullmatch(name):
        raise DataError(f"a bundle is called '{name[:60]}', but small letters, digits and hyphens are needed")


def folder() -> Any:
    """The folder of the lists, which come with the package."""
    return resources.files("grb").joinpath("presets").joinpath("artefacts")


def bundles() -> dict[str, Bundle]:
    """All published bundles by name."""
    return _read(folder())


@cache
def _read(place: Any) -> dict[str, Bundle]:
    listed = sorted(each.name for each in place.iterdir() if each.name.endswith(".json")) if place.is_dir() else []
    found = [Bundle.from_dict(json.loads(place.joinpath(name).read_text("utf-8"))) for name in listed]
    return {bundle.name: bundle for bundle in found}


def published(text: str) -> PublishedName | None:
    """The name of something published; None for what is none, such as a path.

    A name whose bundle is misspelt is refused with the nearest one.

    >>> published("models/gcn.safetensors"), published("gcn")
    (None, None)
    """
    known, head = bundles(), text.partition("/")[0]
    if head not in known and nearest(head, known) is None:
        return None
    name = PublishedName.parse(text)
    return name and PublishedName(bundle_named(name.bundle).name, name.label)


def bundle_named(name: str) -> Bundle:
    """The bundle of a name; an unknown one is refused with the nearest."""
    known = bundles()
    if name not in known:
        raise UnknownName("published bundle", name, known, advice=ADVICE)
    return known[name]


def find_model(name: PublishedName, *, seed: int | None = None) -> tuple[Bundle, PublishedModel]:
    """The model of a name.

    Args:
        name: As :func:`published` gives it.
        seed: Random seed of the training; 0 if neither this nor the name says it.
    """
    bundle = bundle_named(name.bundle)
    label, given = _choices(name, seed=seed)
    found = _named("model", bundle, label, bundle.models, model_spelling)
    wanted = _number(given, "seed")
    chosen = [each for each in found if each.seed == (wanted or 0)]
    if not chosen:
        seeds = ", ".join(str(each.seed) for each in found)
        raise DataError(f"'{bundle.name}/{found[0].name}' has no training of seed {wanted or 0}; it has seeds {seeds}")
    return bundle, chosen[0]


def find_edit(
    name: PublishedName,
    *,
    victim: str | None = None,
    surrogate: str | None = None,
    labels: str | None = None,
    seed: int | None = None,
    training: int | None = None,
    difficulty: str | None = None,
) -> tuple[Bundle, PublishedEdit]:
    """The edit of a name; what is said in its brackets need not be said again.

    Args:
        name: As :func:`published` gives it.
        victim: Name of the model that was attacked with its own gradients or by asking it. Without one, an edit that needed no
            victim is chosen if the attack has one.
        surrogate: Name of the model whose gradients a transfer used, where there are several.
        labels: Labels that it aims at, ``predicted`` (by default) or ``true``.
        seed: Random seed of the attack; 0 by default.
        training: Random seed of the victim's training; 0 by default.
        difficulty: Which test nodes were attacked; the last of the bundle by default.
    """
    bundle = bundle_named(name.bundle)
    label, given = _choices(
        name,
        victim=victim,
        surrogate=surrogate,
        labels=labels,
        seed=seed,
        training=training,
        difficulty=difficulty,
    )
    found = list(_named("attack", bundle, label, bundle.edits, _attack_spelling))
    title = f"{bundle.name}/{found[0].name}"
    for role in ("victim", "surrogate"):
        if role in given:
            own = [each for each in found if each.role == role]
            if not own:
                raise DataError(f"no edit of '{title}' has a {role}; leave {role} out")
            models = _matching(Label.parse(given[role]), own, lambda each: Label.parse(each.model), model_spelling)
            if not models:
                names = sorted({each.model for each in own})
                raise UnknownName(f"{role} of {title}", given[role], names, advice=f"It has {_some(names)}.")
            found = models
    if "victim" not in given:
        found = [each for each in found if each.role != "victim"] or found
    found = _narrowed(title, found, "labels", given.get("labels"), "predicted", lambda each: each.labels)
    usual = next((each for each in reversed(bundle.difficulties) if any(each == own.difficulty for own in found)), "")
    found = _narrowed(title, found, "difficulty", given.get("difficulty"), usual, lambda each: each.difficulty)
    found = _narrowed(title, found, "seed", _number(given, "seed"), 0, lambda each: each.seed)
    trained = _number(given, "training")
    if trained is not None or any(each.role == "victim" for each in found):
        found = _narrowed(title, found, "training", trained, 0, lambda each: each.training)
    if len(found) > 1:
        role = found[0].role or "seed"
        names = sorted({each.model for each in found})
        raise DataError(f"'{title}' has {len(found)} edits; choose one by {role}, which is one of {_some(names)}")
    return bundle, found[0]


def model_spelling(name: str) -> str:
    """A model's name as the catalogue spells it; any other name in small letters."""
    try:
        return str(ModelName.parse(name))
    except GRBError:
        return name.lower()


def _attack_spelling(name: str) -> str:
    return find("attack", name) or name.lower()


def _choices(name: PublishedName, **given: Any) -> tuple[Label, dict[str, str]]:
    """The label without the keys that choose, and what these say, from the brackets and the arguments."""
    own = {key: value for key, value in name.label.settings.items() if key not in given}
    inside = {key: value for key, value in name.label.settings.items() if key in given}
    said = {key: str(value) for key, value in given.items() if value is not None}
    for key in inside.keys() & said.keys():
        if inside[key] != said[key]:
            raise DataError(f"{key} is {inside[key][:40]} in the name and {said[key][:40]} beside it; say it once")
    return Label(name.label.name, own), {**inside, **said}


def _number(given: Mapping[str, str], key: str) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise DataError(f"{key} is '{value[:40]}', but a whole number of at least 0 is needed")
    return int(value)


def _named(kind: str, bundle: Bundle, label: Label, items: Iterable[Any], spelling: Callable[[str], str]) -> list[Any]:
    """What has a name in a bundle, all of one label; an unknown name is refused with the nearest."""
    listed = list(items)
    found = _matching(label, listed, lambda each: each.label, spelling)
    names = list(dict.fromkeys(each.name for each in found))
    if not names:
        known = sorted({f"{bundle.name}/{each.name}" for each in listed})
        has = _some(sorted({each.name for each in listed})) or "none"
        raise UnknownName(f"published {kind}", f"{bundle.name}/{_text(label)}", known, advice=f"It has {has}.")
    if len(names) > 1:
        raise DataError(
            f"'{bundle.name}/{_text(label)}' may be {' or '.join(names)}; give one of them with its brackets"
        )
    return found


def _matching(
    label: Label, items: Iterable[Value], label_of: Callable[[Value], Label], spelling: Callable[[str], str]
) -> list[Value]:
    """What has the name and all of the settings; nothing but exactly these settings if there is such."""
    wanted, settings = spelling(label.name), _bare(label.settings)
    found = [each for each in items if spelling(label_of(each).name) == wanted]
    found = [each for each in found if settings.items() <= _bare(label_of(each).settings).items()]
    return [each for each in found if _bare(label_of(each).settings) == settings] or found


def _bare(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: "".join(value.split()) for key, value in settings.items()}


def _narrowed(
    title: str, found: list[PublishedEdit], key: str, given: Any, usual: Any, value_of: Callable[[PublishedEdit], Any]
) -> list[PublishedEdit]:
    wanted = usual if given is None else given
    chosen = [each for each in found if value_of(each) == wanted]
    if not chosen:
        known = dict.fromkeys(str(value_of(each)) for each in found)
        raise DataError(f"no edit of '{title}' has {key} {str(wanted)[:40]}; there is {_some(known)}")
    return chosen


def _text(label: Label) -> str:
    inside = ", ".join(f"{key}={value}" for key, value in label.settings.items())
    return f"{label.name}({inside})" if inside else label.name


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:SHOWN]) + (f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else "")
