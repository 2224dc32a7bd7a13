"""``grb detect``: what a defender notices of an attack who has seen the training graph alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import options, output
from grb.cli.eval import dataset_title
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.detector import Detection

Detectors = Annotated[
    list[str] | None,
    typer.Option(
        "--detector",
        metavar="NAME",
        help="Detector of `grb ls detectors`; repeatable. All of them if not given.",
        autocompletion=options.names("detector"),
    ),
]


def detect(
    edits: Annotated[
        list[Path],
        typer.Argument(metavar="EDIT...", help="Edits that `grb attack -o` wrote, folders of them, or published ones."),
    ],
    dataset: Annotated[str, typer.Option("--dataset", "-d", help="Dataset that they belong to.")],
    detector: Detectors = None,
    seed: options.Seed = None,
    threads: options.Threads = "1",
    as_json: options.Json = False,
) -> None:
    """Score the nodes and edges of attacked graphs by detectors that have seen the training graph alone.

    AUROC 0.5 is unnoticeable. Injected nodes (or nodes whose edges were changed, if none are injected) are compared with test
    nodes, added edges with clean edges of test nodes. Noticed is what is more
    suspicious than 95 % of what the defender has seen.

    \b
    Examples:
      grb detect edits/fgsm.npz edits/tdgia.npz --dataset grb-cora
      grb detect edits -d synth-cora --detector homophily --detector joint --json
    """
    from grb.catalogue import entries, spelling
    from grb.dataset import load_dataset
    from grb.dataset.pool import read_edit
    from grb.detector import build_detector
    from grb.detector import detect as detected

    options.check_threads(threads)
    options.use_machine(threads)
    names = list(dict.fromkeys(spelling("detector", name) for name in detector or entries("detector")))
    loaded = load_dataset(dataset)
    options.use_threads(threads, loaded)
    if loaded.task != "node":
        raise DataError(f"a detector scores nodes, but '{loaded.name}' has graphs to classify")
    edits = [options.edit_file(path) for path in edits]
    files = [file for path in edits for file in (sorted(path.glob("*.npz")) if path.is_dir() else [path])]
    if not files:
        raise DataError(f"{edits[0]} has no npz files; name a folder of edits, or files")
    found: list[tuple[str, Detection]] = []
    read = {file: read_edit(file, loaded.graph)[0] for file in files}
    view = loaded.defender_view()
    for name in names:
        made = build_detector(name, loaded.num_features, loaded.num_classes).fit(view, seed=seed or 0)
        found += [(file.stem, detected(made, loaded, edit)) for file, edit in read.items()]
    if as_json:
        output.print_json(
            {
                "dataset": loaded.name,
                "fingerprint": loaded.fingerprint(),
                "seed": seed or 0,
                "results": [{"edit": edit, **each.to_dict()} for edit, each in found],
            }
        )
        return
    _show(dataset_title(loaded), found)


def _show(title: str, found: Sequence[tuple[str, Detection]]) -> None:
    heads = ["AUROC", "noticed", "false alarms"]
    rows: list[list[Any]] = []
    for edit, each in sorted(found, key=lambda pair: pair[0]):
        for kind, roc in each.roc.items():
            shares = (f"{100 * value:.1f}" for value in (roc.detected, roc.false_alarms))
            rows.append([edit, each.detector, kind, f"{roc.auroc:.3f}", *shares])
        if not each.roc:
            rows.append([edit, each.detector, "-", "-", "-", "-"])
    headers = ["edit", "detector", "what", *heads]
    output.table(f"{title}: AUROC of detectors, noticed and false alarms in %", headers, rows, numbers=heads)
