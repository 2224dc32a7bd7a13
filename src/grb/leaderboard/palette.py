"""Colours of the heat map: distinguishable in every kind of colour vision, letters always readable on them."""

from __future__ import annotations

from collections.abc import Sequence

Rgb = tuple[int, int, int]

# Cividis (Nuñez, Anderton and Renslow 2018): lightness rises evenly, also for people who do not see red or green
CIVIDIS = ("#00224e", "#1a386f", "#434e6c", "#61656f", "#7d7c78", "#9b9476", "#bcae6c", "#dec958", "#fee838")
# orange below zero, violet above (ColorBrewer's PuOr, which has no red-green pair); numbers carry their sign too
DIVERGING = ("#b35806", "#e08214", "#fdb863", "#fee0b6", "#f7f7f7", "#d8daeb", "#b2abd2", "#8073ac", "#542788")
STEPS = 17


def scale(anchors: Sequence[str], steps: int = STEPS) -> list[str]:
    """Colours at even distances along the anchors, which are joined linearly.

    >>> scale(["#000000", "#ffffff"], 3)
    ['#000000', '#808080', '#ffffff']
    """
    colours = [_rgb(anchor) for anchor in anchors]
    found = []
    for step in range(steps):
        place = step / (steps - 1) * (len(colours) - 1)
        low = min(int(place), len(colours) - 2)
        part = place - low
        mixed = [round(a + part * (b - a) + 1e-9) for a, b in zip(colours[low], colours[low + 1])]
        found.append("#{:02x}{:02x}{:02x}".format(*mixed))
    return found


def luminance(colour: str) -> float:
    """Relative luminance as the web's guidelines for contrast define it (WCAG 2.2)."""
    parts = [value / 255 for value in _rgb(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """From 1 to 21.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink(background: str) -> str:
    """Black or white, whichever is easier to read there; at least 4.5 on every colour."""
    return max(("#000000", "#ffffff"), key=lambda letter: contrast(letter, background))


def rules() -> str:
    """CSS classes ``s0`` to ``s16`` of the sequential scale and ``d0`` to ``d16`` of the diverging one."""
    return "\n".join(
        f".{prefix}{step}{{background-color:{colour};color:{ink(colour)}}}"
        for prefix, anchors in (("s", CIVIDIS), ("d", DIVERGING))
        for step, colour in enumerate(scale(anchors))
    )


def _rgb(colour: str) -> Rgb:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return red, green, blue
