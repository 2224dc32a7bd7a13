"""What docstrings say about arguments, as values: for ``grb info`` and for methods that are composed of others."""

from __future__ import annotations

import inspect
import re
from typing import Any


def argument_docs(target: Any) -> dict[str, str]:
    """Argument and meaning from the section ``Args:`` of a docstring; for a class those of its bases too, nearest first."""
    classes = reversed(inspect.getmro(target)) if isinstance(target, type) else [target]
    return {name: text for each in classes for name, text in read_arguments(each.__doc__ or "").items()}


def read_arguments(doc: str) -> dict[str, str]:
    """Argument and meaning from one docstring.

    >>> read_arguments("What.\\n\\nArgs:\\n    a: First,\\n        in two lines.\\n    b: Second.\\n\\nReturns: c")
    {'a': 'First, in two lines.', 'b': 'Second.'}
    """
    section = re.search(r"^Args:\n((?:[ ]{4}.*\n?|\n(?=[ ]{4}))+)", inspect.cleandoc(doc), re.MULTILINE)
    if section is None:
        return {}
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section.group(1), re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def arguments_section(arguments: dict[str, str]) -> str:
    """The inverse of :func:`read_arguments`.

    >>> print(arguments_section({"a": "First."}))
    Args:
        a: First.
    """
    return "\n".join(["Args:", *(f"    {name}: {text}" for name, text in arguments.items())])
