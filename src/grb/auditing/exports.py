"""The report in formats of others: Hugging Face's ``model-index``, SARIF, and CycloneDX's ``modelCard``.

CycloneDX is written by hand in the fields that its specification 1.6 names; its own library is not needed for them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from grb.leaderboard.text import sanitize

HOME = "https://pypi.org/project/graph-robustness-benchmark/"
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_model_index(values: Mapping[str, Any]) -> str:
    """YAML for the head of a model card on the Hugging Face Hub: clean and worst-case values as metrics."""
    import yaml

    name = sanitize(values["model"]["name"], 200)
    data = {"type": sanitize(values["dataset"]["name"], 200), "name": sanitize(values["dataset"]["name"], 200)}
    task = {"type": "node-classification", "name": "Node classification"}
    listed = [(f"clean {key}", key, value) for key, value in values["clean"]["values"].items()]
    listed += [(f"worst-case {key}", key, value) for key, value in values["worst_case"]["values"].items()]
    metrics = [{"type": kind, "name": title, "value": round(float(value), 6)} for title, kind, value in listed]
    source = {"name": f"grb {values['grb']} audit", "url": HOME}
    index = [{"name": name, "results": [{"task": task, "dataset": data, "metrics": metrics, "source": source}]}]
    return str(yaml.safe_dump({"model-index": index}, sort_keys=False, allow_unicode=True))


def to_sarif(values: Mapping[str, Any]) -> str:
    """SARIF 2.1.0, which code-scanning services show: a result for every breaking point and every flag."""
    rules = {"breaking-point": "The leading metric falls below its threshold within the budgets that were tried."}
    results: list[dict[str, Any]] = []
    model = sanitize(values["model"]["name"], 200)
    for each in values["scenarios"]:
        broken = each["breaking_point"]["budget"] is not None
        results.append(
            _result("breaking-point", "error" if broken else "note", f"{each['scenario']}: {each['sentence']}", model)
        )
    for flag in values["flags"]:
        name = sanitize(flag["name"], 80)
        rules[name] = "A sign that the numbers say less than they seem to."
        results.append(_result(name, "warning", flag["message"], model))
    driver = {
        "name": "grb audit",
        "version": values["grb"],
        "informationUri": HOME,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()],
    }
    whole = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def _result(rule: str, level: str, text: str, model: str) -> dict[str, Any]:
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": sanitize(text, 2000)},
        "locations": [{"logicalLocations": [{"name": model, "kind": "module"}]}],
    }


def to_cyclonedx(values: Mapping[str, Any]) -> str:
    """A CycloneDX 1.6 bill of materials with one component, the model, and its ``modelCard``."""
    name = sanitize(values["model"]["name"], 200)
    metrics = [
        {"type": f"clean {key}", "value": f"{value:.6f}"} for key, value in values["clean"]["values"].items()
    ] + [
        {"type": f"worst-case {key}", "value": f"{value:.6f}"} for key, value in values["worst_case"]["values"].items()
    ]
    first = next(iter(values["clean"]["values"]))
    low, high = values["clean"]["interval"]
    metrics[0]["confidenceInterval"] = {"lowerBound": f"{low:.6f}", "upperBound": f"{high:.6f}"}  # type: ignore[assignment]
    card = {
        "modelParameters": {
            "task": "node classification",
            "datasets": [{"type": "dataset", "name": sanitize(values["dataset"]["name"], 200)}],
        },
        "quantitativeAnalysis": {"performanceMetrics": metrics},
        "considerations": {
            "technicalLimitations": [sanitize(values["headline"], 2000)]
            + [sanitize(f"not tested: {line}", 500) for line in values["not_tested"]],
        },
    }
    digest = values["model"]["fingerprint"]
    component = {
        "type": "machine-learning-model",
        "bom-ref": f"model-{digest[:16]}",
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "modelCard": card,
        "properties": [{"name": "grb:leading-metric", "value": first}],
    }
    # the same report has the same serial number
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{digest}:{values['dataset']['fingerprint']}:{values['settings']['seed']}")
    whole = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"tools": {"components": [{"type": "application", "name": "grb", "version": values["grb"]}]}},
        "components": [component],
    }
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"
