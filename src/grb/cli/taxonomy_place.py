"""What ``grb taxonomy place`` shows: the answer in words, then its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb.cli import output

if TYPE_CHECKING:
    from grb.taxonomy.assignment import Placement

SHOWN = 5


def show(found: Placement, *, neighbours: int = SHOWN) -> None:
    """Words and tables on stdout."""
    console = output.console()
    for sentence in found.words:
        console.print(sentence)
    console.print()
    output.table(
        f"nearest published datasets ({found.reference})",
        ["dataset", "group", "distance", "nearest in %"],
        [
            [each.dataset, each.group, f"{each.distance:.3f}", f"{100 * each.nearest:.0f}"]
            for each in found.neighbours[:neighbours]
        ],
        numbers=["distance", "nearest in %"],
    )
    output.table(
        "group",
        ["group", "draws in %"],
        [[name, f"{100 * share:.0f}"] for name, share in found.probability.items()],
        numbers=["draws in %"],
    )
    heads = [found.dataset, "published", found.group]
    output.table(
        "AUROC in % of the unperturbed dataset's",
        ["perturbation", *heads, "deviations"],
        [
            [
                mark.perturbation,
                *(f"{100 * share:.0f}" for share in (mark.ratio, mark.published, mark.group)),
                f"{mark.deviations:+.1f}",
            ]
            for mark in found.marks
        ],
        numbers=[*heads, "deviations"],
    )
    for note in found.notes:
        output.say(f"note: {note}")
