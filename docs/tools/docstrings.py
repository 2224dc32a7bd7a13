r"""Docstrings as the site shows them: formulas become MathML, which browsers draw without any script; roles become links.

The docstrings themselves keep the spelling that every editor and ``help()`` shows: ``:math:`x^2```, ``.. math::`` and
``:class:`~grb.graph.Graph```.
"""

from __future__ import annotations

import html
import re
from typing import Any

import griffe
from latex2mathml.converter import convert

FORMULA = re.compile(r"^( *)\.\. math::([^\n]*)\n((?:[ ]*\n|\1 +\S[^\n]*(?:\n|\Z))*)", re.MULTILINE)
INLINE = re.compile(r":math:`([^`]+)`")
# of pages: between dollars that touch the formula
SHOWN = re.compile(r"^\$\$(.+?)\$\$$", re.MULTILINE | re.DOTALL)
WITHIN = re.compile(r"(?<![\w$\\])\$(?![\s$])([^$`]+?)(?<![\s\\])\$(?![\w$])")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)([\w.]+)`")
DOCTEST = re.compile(r"^( *)>>> [^\n]*(?:\n\1\S[^\n]*)*", re.MULTILINE)
# letters that Markdown would take for markup inside of a formula
MARKUP = re.compile(r"[*_`\[\]\\<&]")


def readable(text: str) -> str:
    r"""A docstring in Markdown: formulas as MathML, roles as links where there is something to link to, doctests fenced.

    >>> readable("See :class:`~grb.graph.Graph` and :meth:`plain`.")
    'See <autoref identifier="grb.graph.Graph" optional><code>Graph</code></autoref> and `plain`.'
    """
    text = FORMULA.sub(lambda found: f"\n{found[1]}{displayed(found[2] + found[3])}\n\n", text)
    # a span, because Markdown takes a line that begins with <math> for a paragraph of its own
    text = INLINE.sub(lambda found: f"<span>{mathml(found[1])}</span>", text)
    text = DOCTEST.sub(_fenced, text)
    return ROLE.sub(_link, text)


def displayed(formula: str) -> str:
    """A formula on a line of its own, which scrolls by itself where it is wider than the page."""
    return f'<div style="overflow: auto hidden" tabindex="0">{mathml(formula, "block")}</div>'


def pages_formulas(text: str) -> str:
    r"""A page with its formulas, ``$x^2$`` and ``$$ x^2 $$``, as MathML; code keeps its dollars.

    >>> pages_formulas("`$HOME` is 5 $ and $a_1$")[:32], "msub" in pages_formulas("`$HOME` is 5 $ and $a_1$")
    ('`$HOME` is 5 $ and <span><math x', True)
    """
    parts = CODE.split(text)  # every second one is code
    return "".join(part if place % 2 else _formulas(part) for place, part in enumerate(parts))


def _formulas(text: str) -> str:
    text = SHOWN.sub(lambda found: displayed(found[1]), text)
    return WITHIN.sub(lambda found: f"<span>{mathml(found[1])}</span>", text)


def mathml(formula: str, display: str = "inline") -> str:
    """One formula on one line, its letters spelled so that Markdown leaves them alone."""
    made = " ".join(convert(" ".join(formula.split()), display=display).split())
    return re.sub(r">([^<]+)<", lambda found: f">{_spelled(found[1])}<", made)


def _spelled(text: str) -> str:
    return MARKUP.sub(lambda found: f"&#{ord(found[0])};", html.unescape(text))


def _fenced(found: re.Match[str]) -> str:
    indent = found[1]
    return f"\n{indent}```python\n{found[0]}\n{indent}```\n"


def _link(found: re.Match[str]) -> str:
    name = found[2]
    shown = name.rpartition(".")[2] if found[1] else name
    if not name.startswith("grb."):
        return f"`{shown}`"
    return f'<autoref identifier="{name}" optional><code>{shown}</code></autoref>'


class Readable(griffe.Extension):
    """Applies :func:`readable` to every docstring that is loaded."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        # a NamedTuple has no signature of its own that griffe could compare its arguments with
        if cls.docstring is not None and any(str(base).endswith("NamedTuple") for base in cls.bases):
            cls.docstring.value = cls.docstring.value.replace("Args:\n", "Attributes:\n", 1)
