"""Cards: what its authors say about an attack or a defense that they send, with a strict schema."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from grb.dataset.registry import DIFFICULTIES
from grb.errors import DataError, UnknownName
from grb.evaluator.measurement import submission_label
from grb.pipeline.recipe import SCENARIOS
from grb.pipeline.record import unseen_letter
from grb.pipeline.safe_yaml import parse_mapping, read_text

# short enough to be read before anything is known about it
MAX_CARD = 64 * 2**10
MAX_TEXT = 2_000
MAX_AUTHORS = 100
MAX_COST = 1e30
FIRST_YEAR, LAST_YEAR = 1950, 2100
# single spaces, and none at the ends, so that two names that look the same are the same
_NAMES = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9](?: ?[A-Za-z0-9._+-])*")
# neither a path nor code that a card could have run
_DATASETS = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# code that makes a model, where it is trusted
_MODULES = re.compile(r"(?=.{3,200}\Z)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
# identifiers and expressions of SPDX
_LICENSES = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+ -]{0,63}")
# may have lines
_PROSE = ("about", "unreliable")


@dataclass(frozen=True)
class Card:
    """What its authors say about an entry.

    Args:
        name: As it appears on the board.
        kind: ``attack`` (an edit as npz) or ``defense`` (weights as safetensors).
        dataset: What it was made for.
        mode: Difficulty of an attack's targets.
        scenario: Whose limits an attack keeps.
        authors: Who made it.
        link: Where it is described; http or https.
        year: Year of its paper or release; 0 if not said.
        license: Its licence, as an SPDX identifier such as MIT.
        about: What it does.
        knowledge: What an attack used: ``white-box``, ``transfer`` or ``none``.
        cost: What it took, e.g. ``cpu_seconds``.
        reported: The metric that ranks as its authors found it, shown as claimed beside what is measured: by defense of an
            attack, by attack of a defense (``none`` for the clean graph); a fraction for ``mode``, or, of a defense, fractions
            by difficulty.
        unreliable: Why nobody should rely on it; empty if there is nothing to say.
        module: ``package.module:function`` that makes the module of a defense which is no model of grb's; it is imported only
            where the submission is trusted.
    """

    name: str
    kind: Literal["attack", "defense"]
    dataset: str
    mode: str = "full"
    scenario: str = "injection"
    authors: tuple[str, ...] = ()
    link: str = ""
    year: int = 0
    license: str = ""
    about: str = ""
    knowledge: Literal["white-box", "transfer", "none"] = "transfer"
    cost: Mapping[str, float] = field(default_factory=dict)
    reported: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    unreliable: str = ""
    module: str = ""

    def __post_init__(self) -> None:
        if not _NAMES.fullmatch(self.name):
            raise DataError(
                f"the card's name is {short(self.name)}, but 1 to 64 letters, digits, . _ + - and single spaces are needed, "
                "without spaces at its ends"
            )
        if not _DATASETS.fullmatch(self.dataset):
            raise DataError(
                f"the card's dataset is {short(self.dataset)}, but a name as in `grb ls datasets` is needed"
            )
        _check_one_of("kind", self.kind, ("attack", "defense"))
        _check_one_of("mode", self.mode, DIFFICULTIES)
        _check_one_of("scenario", self.scenario, SCENARIOS)
        _check_one_of("knowledge", self.knowledge, ("white-box", "transfer", "none"))
        if self.link and not re.fullmatch(r"https?://[^\s<>\"']{1,500}", self.link):
            raise DataError(f"the card's link is {short(self.link)}, but an address with http:// or https:// is needed")
        if self.module and (self.kind != "defense" or not _MODULES.fullmatch(self.module)):
            raise DataError(
                f"the card's module is {short(self.module)}, but package.module:function, which makes the model of a defense, "
                "is needed"
            )
        if self.year and not FIRST_YEAR <= self.year <= LAST_YEAR:
            raise DataError(f"the card's year is {short(self.year)}, but {FIRST_YEAR} to {LAST_YEAR} is needed")
        if self.license and not _LICENSES.fullmatch(self.license):
            raise DataError(
                f"the card's license is {short(self.license)}, but a name such as MIT or Apache-2.0 is needed"
            )
        if len(self.authors) > MAX_AUTHORS:
            raise DataError(f"the card names {len(self.authors)} authors, but at most {MAX_AUTHORS} are read")
        for name, value in self.cost.items():
            if value < 0:
                raise DataError(f"the card's cost {short(name)} is {value}, but must not be negative")
        _check_reported(self)

    @property
    def label(self) -> str:
        """Never the name of a method of ours."""
        return submission_label(self.name)

    def displayed(self) -> dict[str, Any]:
        """What a board tells of it."""
        values = {name: value for name, value in asdict(self).items() if value not in ("", (), {}, 0)}
        return {**values, **({"authors": ", ".join(self.authors)} if self.authors else {})}


def read_card(path: str | os.PathLike[str]) -> Card:
    """A card from a YAML or JSON file with a strict schema."""
    return parse_card(read_text(Path(path), max_bytes=MAX_CARD, what="cards"))


def parse_card(text: str) -> Card:
    """A card from YAML or JSON text with a strict schema."""
    return card_from(parse_mapping(text, "the card"))


def card_from(values: Any) -> Card:
    """A card from JSON values, of which nothing is believed."""
    if not isinstance(values, Mapping):
        raise DataError(f"the card must be a mapping of keys to values, got {type(values).__name__}")
    known = [each.name for each in fields(Card)]
    for key in values:
        if key not in known:
            named = key if isinstance(key, str) else short(key)
            raise UnknownName("key of a card", named, known, advice=f"Allowed: {', '.join(known)}.")
    for key in ("name", "kind", "dataset"):
        if key not in values:
            raise DataError(f"the card has no {key}; name, kind and dataset are needed")
    return Card(**{key: _value(key, value) for key, value in values.items()})


def _value(key: str, value: Any) -> Any:
    """One value of a card, of the type that its key asks for."""
    if key in ("cost", "reported"):
        return _numbers(key, value, nested=key == "reported")
    if key == "year":
        if isinstance(value, bool) or not isinstance(value, int):
            raise DataError(f"the card's year is {short(value)}, but a whole number is needed")
        return value
    if key == "authors":
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise DataError(f"the card's authors are {short(value)}, but a list of names is needed")
        return tuple(_text("an author on the card", name)[:200] for name in value)
    return _text(f"the card's {key}", value, allowed="\n\t" if key in _PROSE else "")


def _numbers(key: str, value: Any, *, nested: bool) -> dict[str, Any]:
    """Numbers by name; if ``nested``, mappings of numbers among them."""
    if not isinstance(value, Mapping):
        raise DataError(f"the card's {key} is {short(value)}, but a mapping of names to numbers is needed")
    found: dict[str, Any] = {}
    for name, number in value.items():
        own = _text(f"a name in the card's {key}", name)[:80]
        if nested and isinstance(number, Mapping):
            found[own] = _numbers(f"{key} of {short(name)}", number, nested=False)
            continue
        if isinstance(number, bool) or not isinstance(number, int | float) or number != number:
            raise DataError(f"the card's {key} of {short(name)} is {short(number)}, but a number is needed")
        if abs(number) > MAX_COST:  # before it is a float, which holds no more than 309 digits
            raise DataError(f"the card's {key} of {short(name)} is {short(number)}, but at most {MAX_COST:g} is read")
        found[own] = float(number)
    return found


def _check_reported(card: Card) -> None:
    """Refuse claims that are no fractions, or of targets that the entry does not have."""
    for name, value in card.reported.items():
        values = value if isinstance(value, Mapping) else {card.mode: value}
        for mode, fraction in values.items():
            if mode not in DIFFICULTIES or (card.kind == "attack" and mode != card.mode):
                allowed = card.mode if card.kind == "attack" else ", ".join(DIFFICULTIES)
                raise DataError(
                    f"the card's reported of {short(name)} is for {short(mode)}, but a difficulty of this entry is needed: "
                    f"{allowed}"
                )
            if not 0 <= fraction <= 1:
                raise DataError(f"the card reports an accuracy of {fraction}, but a share from 0 to 1 is needed")


def _text(what: str, value: Any, *, allowed: str = "") -> str:
    """A text of letters that can be seen, and of those in ``allowed``."""
    if not isinstance(value, str):
        raise DataError(f"{what} is {short(value)}, but text is needed")
    if len(value) > MAX_TEXT:
        raise DataError(f"{what} has {len(value)} characters, but at most {MAX_TEXT} printable ones are read")
    if letter := unseen_letter(value, allowed=allowed):
        raise DataError(f"{what} has the character {letter}, but only printable ones are read")
    return value


def _check_one_of(key: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UnknownName(f"{key} of a card", str(value)[:80], allowed, advice=f"Allowed: {', '.join(allowed)}.")


def short(value: Any) -> str:
    """A value as a refusal shows it: printable, and not long."""
    try:
        text = ascii(value)
    except ValueError:  # Python writes no number of thousands of digits
        text = "a number of very many digits"
    return text if len(text) <= 60 else text[:57] + "..."
