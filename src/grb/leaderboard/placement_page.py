"""One self-contained HTML page of a placed dataset: where it stands among the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grb._version import __version__
from grb.errors import DataError
from grb.leaderboard import palette
from grb.leaderboard.page import asset, render, source_hash
from grb.leaderboard.taxonomy_view import PLACEMENT, placed_name, published_analysis, taxonomy_view
from grb.leaderboard.text import MESSAGE_LENGTH, sanitize


def build_placement(placement: Mapping[str, Any], notes: Sequence[str] = ()) -> str:
    """The page as text: heat map with the placed dataset, its profile beside its neighbours', components, words.

    Args:
        placement: JSON values of a placement, as ``grb taxonomy place --json`` gives them.
        notes: Remarks below the words.
    """
    from markupsafe import Markup

    whole = {**published_analysis(str(placement.get("reference"))), PLACEMENT: placement}
    view = taxonomy_view(whole)
    if view is None or not view.profile:
        raise DataError("this is no placement; `grb taxonomy place --json` writes one")
    style = asset("page.css") + "\n" + palette.rules()
    told = [*placement.get("notes", []), *notes]
    return render(
        "place.html.j2",
        title=f"Where {placed_name(whole)} belongs",
        version=__version__,
        style=Markup(style),
        style_hash=source_hash(style),
        view=view,
        placed=placed_name(whole),
        notes=[sanitize(note, MESSAGE_LENGTH) for note in told[:50]],
    )
