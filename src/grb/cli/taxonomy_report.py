"""What ``grb taxonomy analyse`` shows and writes: tables, CSV, JSON and figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grb.cli import output
from grb.taxonomy import as_groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grb.taxonomy import Analysis, Components, Profiles

COMPONENTS = 2


def show(found: Analysis, title: str) -> None:
    """Print the tables."""
    _show_profiles(found, title)
    if found.groups:
        _show_groups(found)
    if found.components is not None:
        _show_components(found)
    if found.stability is not None:
        _show_stability(found)
    _show_correlations(found)
    if found.separability:
        _show_separability(found)
    if found.seeds:
        heads = ["dataset", "perturbation", "runs", "mean", "std", "std/mean %"]
        rows = [[*row[:3], f"{row.mean:.3f}", f"{row.std:.3f}", f"{row.percent:.2f}"] for row in found.seeds]
        output.table("Frag-k over seeds", heads, rows, numbers=heads[2:])
    if found.chosen is not None:
        rows = [["chosen here", ", ".join(found.chosen.datasets), f"{found.chosen.distance:.4f}"]]
        if found.recommended is not None:
            rows.append(["the paper's", ", ".join(found.recommended.datasets), f"{found.recommended.distance:.4f}"])
        output.table(
            "representatives, and the mean distance of a profile to the nearest of its group",
            ["", "datasets", "distance"],
            rows,
            numbers=["distance"],
        )


def profile_table(found: Analysis) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the profiles: group, unperturbed AUROC, and what is left under every perturbation in per cent."""
    order = found.tree.leaves if found.tree is not None else found.profiles.datasets
    given = found.given.select(datasets=order)
    heads = ["dataset", *(["group"] if found.groups else []), *(["AUROC"] if given.original is not None else [])]
    known = given.complementarity
    heads += ["complementarity"] if known else []
    rows = []
    for i, name in enumerate(order):
        row = [name, *([found.groups[name]] if found.groups else [])]
        row += [] if given.original is None else [f"{given.original[i]:.3f}"]
        row += [f"{known[name]:.2f}" if name in known else "-"] if known else []
        row += ["-" if np.isnan(value) else f"{100 * value:.0f}" for value in given.ratio[i]]
        rows.append(row)
    return [*heads, *given.perturbations], rows


def _show_separability(found: Analysis) -> None:
    """What changes beyond chance, one row per dataset."""
    rows = []
    for dataset in found.given.datasets:
        own = [row for row in found.separability if row.dataset == dataset]
        sure = [f"{row.perturbation} ({row.holm:.2g})" for row in own if row.significant]
        least = min((row.holm for row in own), default=float("nan"))
        rows.append([dataset, f"{len(sure)} of {len(own)}", ", ".join(sure) or f"none (smallest p {least:.2g})"])
    output.table(
        "perturbations that change the AUROC beyond chance (permutation tests, Holm's p below .05)",
        ["dataset", "significant", "which"],
        rows,
    )


def _show_profiles(found: Analysis, title: str) -> None:
    model = f", {found.given.model}" if found.given.model else ""
    headers, rows = profile_table(found)
    title = f"{title}{model}: AUROC in % of the unperturbed dataset's"
    output.table(title, headers, rows, numbers=["AUROC", "complementarity", *found.given.perturbations])


def _show_groups(found: Analysis) -> None:
    members = as_groups(found.profiles.datasets, found.labels)
    joined = "".join(f", {first} and {second} joined" for first, second in found.joins)
    known = "" if found.agreement is None else f"; agreement with the known groups {found.agreement:.3f}"
    rows = [[name, len(own), ", ".join(own)] for name, own in members.items()]
    title = f"groups: Ward's tree cut into {found.cut}{joined}{known}"
    output.table(title, ["group", "size", "datasets"], rows, numbers=["size"])


def _show_components(found: Analysis) -> None:
    parts = found.components
    assert parts is not None
    count = min(COMPONENTS, len(parts.explained))
    heads = [f"PC{number + 1}" for number in range(count)]
    rows = [
        [name, *(f"{parts.loadings[c, j].round(3) + 0.0:+.3f}" for c in range(count))]
        for j, name in enumerate(parts.columns)
    ]
    rows.append(["variance in %", *(f"{100 * parts.explained[c]:.3f}" for c in range(count))])
    output.table("principal components: loadings", ["perturbation", *heads], rows, numbers=heads)


def _show_stability(found: Analysis) -> None:
    stability = found.stability
    assert stability is not None
    sizes = sorted(stability.agreement)
    heads = [f"{size} groups" for size in sizes]
    variants = list(stability.agreement[sizes[0]])
    rows = [[name, *(f"{stability.agreement[size][name]:.3f}" for size in sizes)] for name in variants]
    output.table(
        f"stability: agreement (adjusted Rand index) with {_whose(stability.against)} if something else is chosen",
        ["variant", *heads],
        rows,
        numbers=heads,
    )
    pairs: list[tuple[str, Any]] = [("verdict", stability.verdict)]
    if stability.bootstrap is not None:
        low, middle, high = np.quantile(stability.bootstrap.agreement, [0.05, 0.5, 0.95])
        draws = len(stability.bootstrap.agreement)
        pairs.append(("resampled runs", f"agreement {middle:.3f} ({low:.3f} to {high:.3f}, {draws} draws)"))
    names = {"distance": "mean distance", "within": "distance inside groups"}
    for name, test in stability.permutation.items():
        sentence = (
            f"{test.observed:.4f}, shuffled columns {test.null_mean:.4f}, p = {test.p:.3g} ({test.draws} shuffles)"
        )
        pairs.append((names[name], sentence))
    if stability.silhouettes:
        pairs.append(("silhouette", {str(size): round(value, 3) for size, value in stability.silhouettes.items()}))
    shaky = sorted((share, name) for name, share in stability.kept.items() if share < 1)
    if shaky:
        pairs.append(("least sure", ", ".join(f"{name} (stays in {100 * share:.0f} %)" for share, name in shaky[:6])))
    output.facts(None, pairs)


def _whose(against: str) -> str:
    return f"the {against}" if against.startswith("known") else against


def _show_correlations(found: Analysis) -> None:
    table = found.perturbations
    if table is not None:
        pairs = [
            (table.r[i, j], table.names[i], table.names[j])
            for i in range(len(table.names))
            for j in range(i + 1, len(table.names))
            if not np.isnan(table.r[i, j])
        ]
        strong = sorted(pairs, key=lambda pair: -abs(pair[0]))[:8]
        rows = [[first, second, f"{r:+.3f}"] for r, first, second in strong]
        title = f"perturbations that tell the same: largest correlations over {table.cells} datasets"
        if rows:
            output.table(title, ["perturbation", "and", "r"], rows, numbers=["r"])
    kinds = {
        "log2": "log2 ratios",
        "log2-auroc": "logarithms of AUROCs (not of ratios)",
        "figure-5": "logarithms of AUROCs of the 21 datasets of the paper's Figure 5",
    }
    for of, models in found.models.items():
        rows = [[name, *(f"{r:.3f}" for r in models.r[i])] for i, name in enumerate(models.names)]
        title = f"correlation of models over {models.cells} {kinds[of]}"
        output.table(title, ["model", *models.names], rows, numbers=models.names)


def write_tables(found: Analysis, title: str, directory: Path) -> list[Path]:
    """Everything as JSON, and the tables as CSV; log2 ratios and AUROCs can be read again by ``grb taxonomy analyse``."""
    from grb.atomic import write_atomic

    texts = {"analysis.json": json.dumps({"source": title, **found.to_dict()}, indent=1, allow_nan=False) + "\n"}
    texts |= {name: _csv(rows) for name, rows in _tables(found).items()}

    return [write_atomic(directory / name, text.encode()) for name, text in texts.items()]


def _tables(found: Analysis) -> dict[str, list[list[Any]]]:
    given = found.given
    tables = {"log2-ratio.csv": _matrix("dataset", given.perturbations, given.datasets, given.values)}
    if given.original is not None:
        # ten digits, because the way through the logarithm leaves 0.9127399999999999 of 0.91274
        scores = np.column_stack([given.original, given.original[:, None] * given.ratio]).round(10)
        tables["auroc.csv"] = _matrix("dataset", ["-", *given.perturbations], given.datasets, scores)
    if found.spread is not None:
        used = found.profiles
        low = _matrix("dataset", used.perturbations, used.datasets, found.spread.low)
        high = _matrix("dataset", used.perturbations, used.datasets, found.spread.high)
        tables |= {"log2-ratio-low.csv": low, "log2-ratio-high.csv": high}
    if found.separability:
        heads = ["dataset", "perturbation", "difference", "p", "holm", "runs", "paired"]
        tables["separability.csv"] = [heads, *map(list, found.separability)]
    if found.seeds:
        tables["seeds.csv"] = [list(found.seeds[0]._fields), *map(list, found.seeds)]
    if found.tree is not None:
        order = found.tree.leaves
        known = found.known or {}
        rows = [[name, found.groups[name], *([known[name]] if known else [])] for name in order]
        tables["groups.csv"] = [["dataset", "group", *(["known"] if known else [])], *rows]
        tables["linkage.csv"] = [["left", "right", "height", "size"], *found.tree.linkage.tolist()]
    if found.components is not None:
        parts = found.components
        heads = [f"PC{number + 1}" for number in range(len(parts.explained))]
        tables["pca-scores.csv"] = _matrix("dataset", heads, parts.rows, parts.scores)
        tables["pca-loadings.csv"] = _matrix("perturbation", heads, parts.columns, parts.loadings.T)
        tables["pca-variance.csv"] = [["component", "share"], *map(list, zip(heads, parts.explained.tolist()))]
    if found.perturbations is not None:
        names = found.perturbations.names
        tables["correlation.csv"] = _matrix("perturbation", names, names, found.perturbations.r)
    if found.stability is not None:
        scored = [[size, name, r] for size, own in found.stability.agreement.items() for name, r in own.items()]
        tables["stability.csv"] = [["groups", "variant", "adjusted_rand"], *scored]
    return tables


def _matrix(corner: str, heads: Sequence[str], names: Sequence[str], values: Any) -> list[list[Any]]:
    # repr of a float reads back as the same float; nothing stands for a missing cell
    cells = [["" if np.isnan(value) else float(value) for value in row] for row in values]
    return [[corner, *heads], *([name, *row] for name, row in zip(names, cells))]


def _csv(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def draw_figures(
    found: Analysis,
    title: str,
    classical: Components | None,
    directory: Path,
    kind: str,
    taxonomy: str | None = None,
    models: Mapping[str, Profiles] | None = None,
) -> list[Path]:
    """Draw and save those figures that the results allow; of a published taxonomy also how reliable groups are."""
    from grb import visualise

    model = f", {found.given.model}" if found.given.model else ""
    title = f"{Path(title).name}{model}"
    figures: dict[str, Figure] = {"heatmap": visualise.draw_heatmap(visualise.heatmap(found), title=title)}
    if found.components is not None:
        figures["pca"] = visualise.draw_components(found.components, found.labels, title=title)
    if found.perturbations is not None:
        figures["correlation"] = visualise.draw_correlation(found.perturbations, over="datasets", title=title)
    if "log2" in found.models:
        figures["models"] = visualise.draw_correlation(found.models["log2"], over="log2 ratios")
    if models is not None and len(models) > 1:
        figures["profiles-by-model"] = visualise.draw_model_profiles(models, found)
    if found.stability is not None:
        figures["stability"] = visualise.draw_stability(found, title=title)
    if classical is not None:
        owners = [name.rpartition(" ")[0] for name in classical.rows]
        figures["classical"] = visualise.draw_components(
            classical, owners, title="classical properties by dataset and class, published Table D.1"
        )
    if taxonomy is not None:
        from grb.taxonomy import reliability

        figures["reliability"] = visualise.draw_reliability(reliability(taxonomy), f"{taxonomy} datasets")
    return [visualise.save(figure, directory / f"{name}.{kind}") for name, figure in figures.items()]
