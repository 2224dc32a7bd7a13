"""YAML files that people write and others may have written: short, safe, and without surprises."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from grb.atomic import size_of
from grb.errors import DataError


def read_text(path: Path, *, max_bytes: int, what: str) -> str:
    """Read the text of a short file.

    Args:
        path: The file.
        max_bytes: Maximum size of the file.
        what: What such files are, for the refusal.
    """
    try:
        if size_of(path) > max_bytes:
            raise DataError(f"{path} is larger than {max_bytes} bytes; {what} are short")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; {what} are YAML files") from None


def parse_mapping(text: str, what: str) -> dict[Any, Any]:
    """Return the keys and values of a YAML or JSON text.

    Args:
        text: The text.
        what: What it is, for the refusal.
    """
    try:
        values = yaml.load(text, Loader=StrictLoader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        # a number or a nesting without end, too
        raise DataError(f"{what} is not readable YAML ({' '.join(str(error).split())[:160]})") from None
    if not isinstance(values, dict):
        raise DataError(f"{what} must be a mapping of keys to values, got {type(values).__name__}")
    return values


def first_duplicate(names: Iterable[str]) -> str | None:
    """Return the first name that occurs for the second time, None if all are different."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


class StrictLoader(yaml.SafeLoader):
    """Safe YAML without duplicate keys and without anchors, which can blow a short file up to any size."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node that is neither an anchor nor an alias."""
        if self.check_event(yaml.AliasEvent) or self.peek_event().anchor is not None:  # type: ignore[no-untyped-call]
            raise yaml.YAMLError("anchors and aliases are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Construct a mapping whose keys are all different."""
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            raise yaml.YAMLError("merge keys are not read")
        again = first_duplicate(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        if again is not None:
            raise yaml.YAMLError(f"the key '{again[:60]}' occurs twice")
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 takes 1e-3 for text, but people and JSON write it for a number
_EXPONENT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
StrictLoader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
