"""``grb taxonomy analyse NAME --against left-out``: how often ``place`` is right about groups that it states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from grb.cli import output, taxonomy_views
from grb.errors import DataError

HEADS = ["placed", "probability in %", "mean", "right", "of", "right in %"]


def show_reliability(
    taxonomy: str | None, model: str, where: Mapping[str, str], seed: int, form: str, out: Path | None
) -> None:
    """Place every published dataset without its own row, and print how often the stated group is right.

    Placed are its own row, its rows by other models, and its row with noise; what the probabilities were fitted to is left out.
    """
    from grb.taxonomy import PUBLISHED, published, reliability
    from grb.taxonomy.read import pick

    if taxonomy not in PUBLISHED or where:
        raise DataError(
            f"--against left-out is of a published taxonomy; name one of {', '.join(PUBLISHED)}, without --where"
        )
    name = pick(published(taxonomy).models, model, f"the published {taxonomy} taxonomy").model
    found = reliability(taxonomy, model=name or model, seed=seed)
    cells = [
        [
            curve.setting,
            f"{100 * each.low:.0f} to {100 * each.high:.0f}",
            f"{100 * each.stated:.0f}",
            str(each.right),
            str(each.cases),
            f"{100 * each.right / each.cases:.0f}",
        ]
        for curve in found
        for each in curve.bins
    ]
    rows = [{"setting": curve.setting, **each._asdict()} for curve in found for each in curve.bins]
    value = [each.to_dict() for each in found]
    markdown = taxonomy_views.markdown_of(HEADS, cells)
    if not taxonomy_views.emit(form, out, value=value, rows=rows, markdown=markdown):
        title = f"stated groups of {taxonomy} datasets, each without its own row"
        output.table(title, HEADS, cells, numbers=HEADS[1:])
    for curve in found:
        output.echo(f"{curve.setting}: {curve.nowhere} of {curve.count} are said to fit nowhere")
