"""The report as Markdown, for a pull request or a model card."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from grb.leaderboard.text import sanitize


def to_markdown(values: Mapping[str, Any]) -> str:
    """The report as text; names are escaped, so that they are neither markup nor links."""
    metric, clean = values["metric"]["name"], values["clean"]
    data = values["dataset"]
    lines = [f"# Audit of {_text(values['model']['name'])}", "", f"**{_text(values['headline'])}**", ""]
    lines += [
        f"{_text(data['name'])}: {data['nodes']} nodes, {data['edges']} edges; {data['targets']} targets of "
        f"{data['test_nodes']} test nodes. Effort: {values['settings']['effort']}.",
        "",
    ]
    if values["flags"]:
        lines += [
            "## Read this first",
            "",
            *(f"- **{_text(f['name'])}**: {_text(f['message'])}" for f in values["flags"]),
            "",
        ]
    scenarios = values["scenarios"]
    lines += ["## Clean and attacked", ""]
    lines += _table(
        ["metric", "clean", "largest class", "MLP, no edges", *(f"{each['scenario']}, worst" for each in scenarios)],
        [
            [
                name,
                _number(value),
                _number(clean["baselines"]["majority"].get(name)),
                _number(clean["baselines"]["mlp"].get(name)),
                *(_number(each["values"].get(name)) for each in scenarios),
            ]
            for name, value in clean["values"].items()
        ],
    )
    for each in scenarios:
        lines += [f"## {each['scenario'].capitalize()}", "", f"{_text(each['sentence'])}.", ""]
        lines += _table(
            [each["unit"], metric, "95 % interval", "found by"],
            [
                [
                    point["budget"],
                    _number(point["value"]),
                    f"{_number(point['low'])} to {_number(point['high'])}",
                    point["attack"],
                ]
                for point in each["points"]
            ],
        )
        lines += [f"The curve is the {each['monotone']}.", ""]
        if each["certified"]:
            bounds = ", ".join(f"{point['budget']}: {_number(point['value'])}" for point in each["certified"])
            lines += [f"Certified, by {_text(each['unit'])}: {bounds}.", ""]
        found = [f"transfer from {row['surrogate']} {_number(row['value'])}" for row in each["transfers"]]
        if each["random"] is not None:
            found.append(f"random changes {_number(each['random'])}")
        if each["collateral"]:
            both = each["collateral"]
            found.append(f"other test nodes {_number(both['clean_accuracy'])} to {_number(both['accuracy'])}")
        lines += [f"Also: {_text('; '.join(found))}.", ""] if found else []
        if each["vulnerable"]:
            lines += ["Nodes that fall first:", ""]
            lines += _table(
                ["node", "class", "becomes", f"at {each['unit']}", "degree"],
                [
                    [row["node"], row["class"], row["becomes"], row["budget"], row["degree"]]
                    for row in each["vulnerable"][:10]
                ],
            )
        if each["used"]:
            named = ", ".join(f"{_text(str(row['node']))} ({row['edges']})" for row in each["used"][:10])
            lines += [f"Nodes that the strongest edit uses most: {named}.", ""]
    lines += ["## By class and number of neighbours", ""]
    lines += _table(
        ["class", "all", *values["classes"]["bands"]],
        [[row["class"], _cell(row["all"]), *map(_cell, row["cells"])] for row in values["classes"]["rows"]],
    )
    if values["corruptions"]:
        lines += ["## Corruptions", ""]
        lines += _table(
            ["perturbation", metric, ""],
            [[row["name"], _number(row["value"]), row["reason"]] for row in values["corruptions"]],
        )
    threat = values["threat_model"]
    lines += [f"## Threat model ({threat['source']})", ""]
    lines += [f"- {part}: {_text(threat[part])}" for part in ("stage", "goal", "knowledge")]
    lines += [f"- capability: {_text(line)}" for line in threat["capability"]]
    lines += ["", "## Not tested", "", *(f"- {_text(line)}" for line in values["not_tested"]), ""]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _cell(cell: dict[str, Any]) -> str:
    if not cell["targets"]:
        return "-"
    return f"{cell['clean']:.2f} to {cell['attacked']:.2f} ({cell['targets']})"


def _text(text: str) -> str:
    return re.sub(r"([\\`*\[\]<>|#~])", r"\\\1", sanitize(text, 2000))


def _table(header: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    listed = [[_text(str(cell)) for cell in row] for row in (header, *rows)]
    return [
        "| " + " | ".join(listed[0]) + " |",
        "|" + " --- |" * len(header),
        *("| " + " | ".join(row) + " |" for row in listed[1:]),
        "",
    ]
