"""``grb.audit``: how robust is this model on this data? One call from clean metrics to breaking points."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from grb._version import __version__
from grb.auditing import baselines, corruptions, curve, findings
from grb.auditing.attacks import QUERIES, check_effort
from grb.auditing.cache import Cache
from grb.auditing.limits import check_threats, threats_of
from grb.auditing.report import KIND, AuditReport
from grb.auditing.scenario import attack_scenario
from grb.auditing.steps import Steps
from grb.auditing.threat_words import NOT_TESTED, threat_model
from grb.auditing.victim import as_victim
from grb.dataset import Dataset
from grb.dataset.targets import Targets
from grb.defense import build_defense
from grb.errors import DataError, GRBError, UnknownName
from grb.evaluator.baseline import check_constant, check_majority, majority
from grb.evaluator.sanity_checks import check_model
from grb.evaluator.score_checks import Flag, check_scores
from grb.evaluator.scoring import Metrics, prediction_of
from grb.metric import Metric, get_all
from grb.pipeline.spec import jsonable
from grb.threat import Threat

SCENARIOS = ("injection", "modification")
IMBALANCED = 0.8
BREAKS_BELOW = 0.8


def audit(
    model: Any,
    dataset: Dataset,
    *,
    metrics: Metrics | None = None,
    targets: Targets | None = None,
    scenarios: Sequence[str] = SCENARIOS,
    budgets: Mapping[str, Sequence[int]] | None = None,
    threats: Mapping[str, Threat | Mapping[str, Any]] | None = None,
    below: float | None = None,
    effort: str = "standard",
    surrogates: Sequence[str] = ("gcn",),
    corrupt: bool = True,
    queries: int | None = None,
    seed: int = 0,
    name: str | None = None,
    store: str | os.PathLike[str] | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit a trained model: clean metrics, worst cases by budget, breaking points, transfers, corruptions, and who suffers.

    Args:
        model: A model of grb, any ``nn.Module`` of torch_geometric, DGL, CogDL or torch, a function of (x, edge_index) that
            answers with scores, or a :class:`~grb.auditing.Program`. The last two are attacked by queries alone.
        dataset: One graph with nodes to classify; the model must not have seen its test nodes' labels.
        metrics: What counts, names (``recall:1``, or by the name of the class ``recall:fraud``) or functions; the first one
            leads. By default accuracy, or where one class has more than 80 % the recall of the rarest class.
        targets: Only these test nodes are attacked and scored, the rest is collateral; ids, a mask, ``class=NAME`` or a column.
            If the leading metric is the recall of a class, its test nodes by default.
        scenarios: ``injection``, ``modification`` or both.
        budgets: Numbers of injected nodes or changed edges by scenario; five up to the default limits otherwise.
        threats: Threat models by scenario instead of the default ones, or what changes in those as a mapping (``{"injection":
            {"edges_per_node": 5, "constraints": {"fixed": ["age"]}}}``; constraints are those of
            :func:`~grb.dataset.constraints_of`). The budgets replace their number of nodes or edges.
        below: The model is broken where the leading metric falls below this; 0.8, or four fifths of the clean value where that
            is less, by default.
        effort: ``quick`` (a few cheap attacks), ``standard`` (the standard ensemble) or ``thorough``.
        surrogates: Models that transfers start from; they are trained here.
        corrupt: Whether to try the corruptions.
        queries: How often an attack on a black box may ask it, for every budget; 150, 1000 or 4000 by effort if not given.
        seed: Random seed of everything.
        name: Name of the model in the report.
        store: Directory in which steps are kept: an audit that was interrupted goes on where it stopped.
        on_progress: Called with a line for every step.

    >>> import grb
    >>> dataset = grb.load_dataset("synth-tiny")
    >>> report = audit(grb.train("gcn", dataset, epochs=20), dataset, effort="quick", scenarios=["injection"], corrupt=False)
    >>> report.values["worst_case"]["values"]["accuracy"] <= report.values["clean"]["values"]["accuracy"]
    True
    """
    if isinstance(model, Dataset) and not isinstance(dataset, Dataset):
        raise DataError("model and dataset are the other way round; write grb.audit(model, dataset)")
    _check(dataset, scenarios, budgets, threats, below, effort)
    _check_surrogates(surrogates, dataset)
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise DataError(f"seed is {seed!r}, but a whole number from 0 on is needed")
    say = on_progress or (lambda line: None)
    chosen = _metrics(dataset, metrics)
    leading = next(iter(chosen.values()))
    if not leading.higher_is_better:
        raise DataError(
            f"metric '{leading.name}' is better where it is lower, but an audit follows what falls; give its negative or "
            "complement, with range and higher_is_better as attributes"
        )
    whole, scored = dataset, dataset
    if targets is None and leading.label is not None and leading.name.startswith("recall:"):
        # precision and accuracy of these nodes alone would say nothing, so that all test nodes are scored
        counted = dataset.labels[dataset.index_test] == leading.label
        if not bool(counted.any()):
            named = dataset.names.of_class(leading.label)
            raise DataError(
                f"metric '{leading.name}' counts class '{named}', which no test node of '{dataset.name}' has; choose another"
            )
        dataset = dataset.with_targets(dataset.labels == leading.label)
        said = f"the test nodes of class '{dataset.names.of_class(leading.label)}', those that {leading.name} counts,"
    elif targets is not None:
        dataset = scored = dataset.with_targets(targets)
        said = f"the targets ({targets})" if isinstance(targets, str) else "the targets"
    else:
        dataset = scored = dataset.with_targets(dataset.index_test)
        said = "the test nodes"
    allowed = threats_of(threats, dataset)
    say("clean metrics and baselines")
    victim = as_victim(model, dataset, name)
    asks = _queries(queries, effort, black_box=victim.black_box)
    run = Steps(victim, dataset, whole, scored, leading, chosen, effort, seed, Cache(store), say, asks)
    clean = _clean(run)
    threshold = _threshold(below, clean["values"][leading.name], leading)
    made = [
        attack_scenario(run, scenario, (budgets or {}).get(scenario), allowed.get(scenario), threshold, surrogates)
        for scenario in scenarios
    ]
    rows = [_corruption(run, each) for each in corruptions.NAMES] if corrupt else []
    worst = _worst_case(run, made)
    values = {
        "format": KIND,
        "grb": __version__,
        "model": {"name": victim.name, "fingerprint": victim.fingerprint, "black_box": victim.black_box},
        "dataset": _about(dataset, whole),
        "metric": {"name": leading.name, "description": _described(leading, dataset), "below": threshold},
        "metrics": list(chosen),
        "threat_model": threat_model([each["limits"] for each in made], said, queries=asks),
        "clean": clean,
        "scenarios": [{key: value for key, value in each.items() if key not in ("limits", "logits")} for each in made],
        "worst_case": worst,
        "corruptions": rows,
        "classes": findings.by_class_and_degree(dataset, victim.clean, _of(made, worst["scenario"])["logits"]),
        "flags": _flags(run, made),
        "notes": [*victim.notes, *_failures(made)],
        "not_tested": [*NOT_TESTED, *_left_out(made, rows, corrupt=corrupt)],
        "headline": _headline(run, clean, made, worst),
        "settings": {
            "effort": effort,
            "seed": seed,
            "scenarios": list(scenarios),
            "surrogates": list(surrogates),
            "queries": asks,
        },
    }
    return AuditReport.from_dict(jsonable(values))


def _check(
    dataset: Any,
    scenarios: Sequence[str],
    budgets: Mapping[str, Sequence[int]] | None,
    threats: Mapping[str, Threat | Mapping[str, Any]] | None,
    below: float | None,
    effort: str,
) -> None:
    check_effort(effort)
    if not isinstance(dataset, Dataset):
        made = "grb.Dataset.from_pyg(data)" if hasattr(dataset, "edge_index") else "grb.load_dataset(name)"
        raise DataError(f"dataset is a {type(dataset).__name__}, but a grb Dataset is needed; {made} makes one")
    if dataset.graph.ptr is not None or dataset.labels.dim() != 1:
        raise DataError(
            f"'{dataset.name}' has graphs to classify or several labels per node, but an audit is of one graph with one label "
            "per node"
        )
    if not len(dataset.index_test):
        raise DataError(f"'{dataset.name}' has no test nodes to audit; give a split with test nodes")
    if isinstance(scenarios, str) or not scenarios:
        raise DataError(f"scenarios is {scenarios!r}, but a list of {' and '.join(SCENARIOS)} is needed")
    check_threats(threats or {})
    if budgets is not None and not isinstance(budgets, Mapping):
        raise DataError(
            f"budgets are {budgets!r:.60}, but a mapping from scenario to budgets is needed, as in {{'injection': [1, 2, 4]}}"
        )
    for scenario in (*scenarios, *(budgets or ()), *(threats or ())):
        if scenario not in SCENARIOS:
            raise UnknownName("scenario", str(scenario), SCENARIOS, advice=f"Allowed: {', '.join(SCENARIOS)}.")
    for scenario, listed in (budgets or {}).items():
        given: Any = listed
        if not isinstance(given, Sequence) or not given or any(type(each) is not int or each < 1 for each in given):
            raise DataError(
                f"budgets of {scenario} are {given!r}, but whole numbers from 1 on are needed, as in [1, 2, 4]"
            )
    limit: Any = below  # a text, too
    if limit is not None and not (isinstance(limit, int | float) and 0 < limit <= 1):
        raise DataError(f"below is {below!r}, but a number above 0 and up to 1 is needed")


def _check_surrogates(given: Any, dataset: Dataset) -> None:
    """Refuse surrogates that cannot be trained, before minutes are spent."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise DataError(f"surrogates is {given!r}, but a list of models is needed, as in ['gcn']; [] for no transfers")
    for each in given:
        build_defense(each, dataset.name)


def _queries(given: int | None, effort: str, *, black_box: bool) -> int | None:
    """How often an attack may ask; None for a model whose gradients are known."""
    if given is not None and (type(given) is not int or given < 1):
        raise DataError(f"queries is {given!r}, but a whole number of at least 1 is needed")
    if given is not None and not black_box:
        raise DataError(
            "queries is for black boxes, but this model is a module that gives gradients; leave it out, or give a function of "
            "(x, edge_index) that asks it"
        )
    return None if not black_box else given or QUERIES[effort]


def _metrics(dataset: Dataset, given: Metrics | None) -> dict[str, Metric]:
    y = dataset.labels[dataset.index_test]
    top, share = majority(y)
    if given is not None:
        if callable(given):
            given = [given]
        if not isinstance(given, Iterable):
            raise DataError(f"metrics is {given!r}, but names such as 'recall:1,accuracy', or functions, are needed")
        chosen = get_all(dataset.names.in_metrics(given))
        if not chosen:
            raise DataError("metrics is empty; name at least one, for instance accuracy")
        for each in chosen.values():
            if each.label is not None and each.label >= dataset.num_classes:
                raise DataError(
                    f"metric '{each.name}' names class {each.label}, but '{dataset.name}' has the classes 0 to "
                    f"{dataset.num_classes - 1}"
                )
        return {**chosen, **get_all("accuracy")}
    if share <= IMBALANCED:
        return get_all("accuracy,balanced-accuracy,macro-f1")
    counts = torch.bincount(y, minlength=dataset.num_classes)
    rare = int(torch.where(counts > 0, counts, counts.max() + 1).argmin())
    return get_all(f"recall:{rare},accuracy,balanced-accuracy,precision:{rare},f1:{rare}")


def _clean(run: Steps) -> dict[str, Any]:
    metrics = dict(run.metrics)
    values = run.values(run.victim.clean)
    resampled = curve.bootstrap(run.metric, [run.victim.clean[run.dataset.index_test]], run.labels(), seed=run.seed)
    low, high = curve.interval(resampled[:, 0]) if len(resampled) else (values[run.metric.name],) * 2
    _, share = majority(run.whole.labels[run.whole.index_test])

    def make() -> tuple[Any, None]:
        scores, reason = baselines.mlp_scores(run.scored, metrics, seed=run.seed, balanced=share > IMBALANCED)
        return {"scores": scores, "reason": reason}, None

    mlp, _ = run.cache.step(run.key(step="mlp", metrics=list(metrics)), make)
    everything = {}
    for name, metric in metrics.items():
        ids = run.whole.index_test
        try:
            everything[name] = curve.value_of(metric, run.victim.clean[ids], run.whole.labels[ids])
        except GRBError:
            continue
    return {
        "values": values,
        "interval": [low, high],
        "all_test_nodes": everything,
        "baselines": {
            "majority": baselines.majority_scores(run.scored, metrics),
            "mlp": mlp["scores"],
        },
        "mlp_failed": mlp["reason"],
    }


def _threshold(below: float | None, clean: float, metric: Metric) -> float:
    if below is not None:
        return below
    if metric.range != (0.0, 1.0):
        raise DataError(f"metric '{metric.name}' has no range from 0 to 1, so that 'below' must say where it is broken")
    # rounded down, so that exactly four fifths are not below
    return math.floor(min(BREAKS_BELOW, 0.8 * clean) * 1e4 + 1e-9) / 1e4


def _corruption(run: Steps, name: str) -> dict[str, Any]:
    def make() -> tuple[Any, None]:
        run.say(f"corruption: {name}")
        return corruptions.corrupted(name, run.victim.model, run.dataset, run.metric, seed=run.seed), None

    found: dict[str, Any] = run.cache.step(run.key(step="corruption", name=name), make)[0]
    return found


def _worst_case(run: Steps, made: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The scenario whose largest budget leaves least, and every metric's lowest value over all scenarios."""
    name = run.metric.name
    transfers = {
        each["scenario"]: min([row["value"] for row in each["transfers"] if row["value"] is not None], default=None)
        for each in made
    }
    lowest = {key: min(each["values"][key] for each in made if key in each["values"]) for key in made[0]["values"]}
    for value in transfers.values():
        if value is not None:
            lowest[name] = min(lowest[name], value)
    worst = min(made, key=lambda each: each["values"][name])
    return {"scenario": worst["scenario"], "values": lowest, "transfers": transfers}


def _of(made: Sequence[Mapping[str, Any]], scenario: str) -> Mapping[str, Any]:
    return next(each for each in made if each["scenario"] == scenario)


def _about(dataset: Dataset, whole: Dataset) -> dict[str, Any]:
    counts = torch.bincount(whole.labels[whole.labels >= 0], minlength=whole.num_classes).tolist()
    return {
        "name": dataset.name,
        "fingerprint": whole.fingerprint(),
        "nodes": dataset.num_nodes,
        "edges": dataset.num_edges,
        "features": dataset.num_features,
        "classes": {dataset.names.of_class(number): count for number, count in enumerate(counts)},
        "targets": len(dataset.index_test),
        "test_nodes": len(whole.index_test),
        "synthetic": dataset.synthetic,
        "notes": list(dataset.notes),
    }


def _flags(run: Steps, made: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Signs that the numbers say less than they seem to."""
    whole = run.whole
    said = prediction_of(run.victim.clean, whole)
    flags = check_majority(said, whole, whole.index_test, whole.mode) or check_constant(said, whole)
    if not run.victim.black_box:
        try:
            flags += check_model(run.victim.model, run.dataset, seed=run.seed)
        except Exception as error:  # code of others may raise anything, and the curves are known by now
            run.say(f"the checks of gradients do not take this model: {' '.join(str(error).split())[:200]}")
    clean = curve.value_of(run.metric, run.victim.clean[run.dataset.index_test], run.labels())
    for each in made:
        transfer = {row["surrogate"]: row["value"] for row in each["transfers"] if row["value"] is not None}
        own = {"the audit's attacks": each["values"][run.metric.name]}
        flags += check_scores(
            clean=clean,
            random=each["random"],
            transfer=transfer,
            white_box={} if run.victim.black_box else own,
            num_targets=len(run.dataset.index_test),
            where=f"{run.victim.name}, {each['scenario']}",
            metric=run.metric.name,
        )
    for each in made:
        failed, alone = findings.failed_attacks(each["points"])
        if alone:
            name, why = next(iter(failed.items()))
            message = (
                f"in the scenario {each['scenario']} no attack ran but random changes ({name}: {why}): its curve says nothing "
                "about an attacker who searches; mend what the reason names, or leave the scenario out"
            )
            flags.append(Flag("attacks-failed", message, {"failed": float(len(failed))}))
    return [flag.to_dict() for flag in flags]


def _failures(made: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences on attacks that failed at every budget, where others ran."""
    said = []
    for each in made:
        failed, alone = findings.failed_attacks(each["points"])
        if not alone:
            said += [f"{each['scenario']}: the attack {name} failed ({why})" for name, why in failed.items()]
    return said


def _left_out(made: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], *, corrupt: bool) -> list[str]:
    missing = [row["name"] for row in rows if row["value"] is None]
    said = (
        ["certified lower bounds: grb certify gives them for some models"]
        if all(each["certified"] is None for each in made)
        else []
    )
    if not corrupt:
        return [*said, "corruptions: they were switched off"]
    if missing:
        said.append(f"corruptions {', '.join(missing)}, which this model or this graph does not allow")
    absent = [scenario for scenario in SCENARIOS if scenario not in {each["scenario"] for each in made}]
    return [*said, *(f"{scenario} attacks: they were not asked for" for scenario in absent)]


def _headline(run: Steps, clean: Mapping[str, Any], made: Sequence[Mapping[str, Any]], worst: Mapping[str, Any]) -> str:
    name = run.metric.name
    before, after = clean["values"][name], worst["values"][name]
    parts = "; ".join(each["sentence"] for each in made)
    majority_value = clean["baselines"]["majority"].get(name)
    base = "" if majority_value is None else f" (always the largest class: {majority_value:.2f})"
    change = f"falls from {before:.2f}{base} to {after:.2f}" if after < before else f"stays at {before:.2f}{base}"
    kind = ""
    if run.metric.label is not None and run.dataset.names.classes is not None:
        kind = f" (class '{run.dataset.names.of_class(run.metric.label)}')"
    return f"{_capital(name)}{kind} of {run.victim.name} {change} in the worst case found. {_capital(parts)}."


def _capital(sentence: str) -> str:
    """The sentence with a capital; a name such as ``recall:1`` that begins it stays as one writes it."""
    first = sentence.partition(" ")[0]
    return sentence if ":" in first else sentence[:1].upper() + sentence[1:]


def _described(metric: Metric, dataset: Dataset) -> str:
    """What a metric measures, with the class by its name."""
    if metric.label is None or dataset.names.classes is None:
        return metric.description
    return f"{metric.description}, '{dataset.names.of_class(metric.label)}'"
