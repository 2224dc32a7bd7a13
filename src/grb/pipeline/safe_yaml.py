"""YAML files that people write and others may have written: short, safe, and without surprises."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from grb.atomic import size_of
from grb.errors import DataError


def read_text(path: Path, *, most: int, what: str) -> str:
    """The text of a short file.

    Args:
        path: Which.
        most: Bytes at most.
        what: What such files are, for the refusal.
    """
    try:
        if size_of(path) > most:
            raise DataError(f"{path} is larger than {most} bytes; {what} are short")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; {what} are YAML files") from None


def parse_mapping(text: str, what: str) -> dict[Any, Any]:
    """Keys and values of a YAML or JSON text."""
    try:
        values = yaml.load(text, Loader=Strict)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        # a number or a nesting without end, too
        raise DataError(f"{what} is not readable YAML ({' '.join(str(error).split())[:160]})") from None
    if not isinstance(values, dict):
        raise DataError(f"{what} must be a mapping of keys to values, got {type(values).__name__}")
    return values


def double(words: Iterable[str]) -> str | None:
    """The first word that was there before."""
    seen: set[str] = set()
    # add gives None: a word is passed on only if it was seen
    return next((word for word in words if word in seen or seen.add(word)), None)  # type: ignore[func-returns-value]


class Strict(yaml.SafeLoader):
    """Safe YAML without duplicate keys and without anchors, which can blow a short file up to any size."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent) or self.peek_event().anchor is not None:  # type: ignore[no-untyped-call]
            raise yaml.YAMLError("anchors and aliases are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            raise yaml.YAMLError("merge keys are not read")
        again = double(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        if again is not None:
            raise yaml.YAMLError(f"the key '{again[:60]}' is there twice")
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 takes 1e-3 for text, but people and JSON write it for a number
_EXPONENT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
Strict.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
