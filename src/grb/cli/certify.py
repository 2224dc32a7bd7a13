"""``grb certify``: what no attack within a threat model can change."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import jobs, options, output
from grb.cli.eval import check_model, dataset_title, on_split, trained_on
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.evaluator.certified import CertifiedOutcome
    from grb.pipeline import Store
    from grb.pipeline.planner import Planner
    from grb.threat import Threat

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A model to train, a file that `grb train` wrote, or a published model of `grb ls artefacts`.",
        autocompletion=options.names("model"),
    ),
]
Certificates = Annotated[
    list[str] | None,
    typer.Option(
        "--certificate",
        "-c",
        metavar="NAME",
        help="Certificate of `grb ls certificates`; repeatable. The one that fits the model if not given.",
        autocompletion=options.names("certificate"),
    ),
]
Scenario = Annotated[str, typer.Option(help="What an adversary does: injection or modification.")]
Limits = Annotated[
    list[str] | None, options.limit_option("nodes, edges_per_node, edges, edge_ratio, allow, feature_nodes")
]
ModelParams = Annotated[
    list[str] | None,
    typer.Option("--model-param", metavar="NAME=VALUE", help="Setting of the training, as in `grb train`; repeatable."),
]
# budgets of the table, beside the threat model's own
BUDGETS = (1, 2, 3, 5, 10, 20, 60)


def certify(
    model: Model,
    dataset: options.TrainedOn = None,
    certificate: Certificates = None,
    scenario: Scenario = "injection",
    limits: Limits = None,
    params: options.Params = None,
    model_params: ModelParams = None,
    difficulty: options.Difficulties = "full",
    seed: options.Seed = None,
    seeds: options.Seeds = None,
    threads: options.Threads = "1",
    store: options.KeptStore = None,
    as_json: options.Json = False,
) -> None:
    """Bound from below what a model keeps under every attack that a threat model allows.

    The table says which model is certified: a certificate of a vote or of random changes is about the voting or smoothed model,
    not about the model inside. --param are settings of the certificate, such as samples or groups.

    \b
    Examples:
      grb certify gcn+known --dataset synth-cora
      grb certify gcn+hash-vote --dataset synth-cora --model-param divide=senders --limit nodes=5
      grb certify gcn+smooth -d synth-cora --scenario modification --model-param p_drop=0.8 --param samples=1000
      grb certify gcn.safetensors --certificate bi-smoothing --json
    """
    from grb.dataset import load_dataset
    from grb.pipeline.recipe import SCENARIOS
    from grb.trainer.checkpoint import load_model_with_meta

    options.check_threads(threads)
    if scenario not in SCENARIOS:
        raise DataError(f"--scenario is '{scenario}', but {' or '.join(SCENARIOS)} is needed")
    settings, training = options.settings_of(params, "--param"), options.settings_of(model_params, "--model-param")
    allowed, listed = options.settings_of(limits, "--limit"), options.chosen_seeds(seed, seeds)
    file = options.model_file(Path(model)) if model.endswith(".safetensors") or "/" in model else None
    if file is not None and (training or seed is not None or seeds is not None):
        raise DataError(f"{file} is trained already; leave --model-param, --seed and --seeds out")
    if file is None and dataset is None:
        raise DataError(f"'{model}' has to be trained first; name the dataset with --dataset")
    options.use_machine(threads)
    own, meta = (None, {}) if file is None else load_model_with_meta(file)
    source = dataset or trained_on(file or Path(model), meta)
    loaded, number = on_split(load_dataset(source), [meta])
    count = options.use_threads(threads, loaded)
    planner = jobs.planner(loaded, source, split=number, threads=count)
    threats = _threats(scenario, loaded, options.chosen_difficulties(difficulty, loaded), allowed)
    with jobs.opened_store(store) as place:
        fits, shown = _fits(planner, place, file, own, meta, model, training, listed)
        runs = _runs(planner, fits, certificate or [_fitting(shown, threats)], threats, settings)
        interrupted = jobs.do(
            planner.jobs,
            place,
            runs,
            loaded,
            message=lambda run: _line(_outcome(place, run)),
            steps=lambda job: None,
        )
        found = {run.job: _outcome(place, run) for run in runs if run.error is None and place.has(run.job)}
    result = {
        **jobs.header(loaded, planner.data.fingerprint, count),
        "scenario": scenario,
        "results": [_values(each, key) for key, each in found.items()],
        "failed": [{"run": run.title, "error": run.error} for run in runs if run.error],
        "interrupted": interrupted,
    }
    if as_json:
        output.print_json(result)
    elif found:
        _show(list(found.values()), loaded)
    jobs.end(runs, interrupted)


def _threats(
    scenario: str, dataset: Dataset, difficulties: Sequence[str], allowed: Mapping[str, Any]
) -> dict[str, Threat]:
    """The papers' limits of every difficulty with those that the user gave instead; features stay unless they are named."""
    from grb.attack.build import default_threat_model
    from grb.pipeline.planner import change_threat

    changes = dict(allowed)
    if isinstance(changes.get("allow"), str):
        changes["allow"] = [changes["allow"]]
    if scenario == "modification":
        changes.setdefault("feature_nodes", 0)
    return {mode: change_threat(default_threat_model(scenario, dataset, mode), changes) for mode in difficulties}


def _fits(
    planner: Planner,
    store: Store,
    file: Path | None,
    own: Any,
    meta: dict[str, Any],
    model: str,
    training: Mapping[str, Any],
    seeds: Sequence[int],
) -> tuple[dict[str, str], Any]:
    """Keys of the trained models by title, and a model like them."""
    from grb.defense import build_defense
    from grb.model.build import build
    from grb.pipeline import Spec
    from grb.pipeline.model_file import add_model_file

    dataset = planner.dataset
    if file is not None:
        check_model(file, own, meta, dataset, planner.data.fingerprint)
        return {file.name: planner.add(add_model_file(store, file, own, meta, planner.data))}, own
    spec = planner.model(Spec(model, training))
    like = build(build_defense(spec.name, dataset.name, **training).settings, dataset.num_features, dataset.num_classes)
    return {f"{spec.label}, seed {seed}": planner.fit(spec, seed) for seed in seeds}, like


def _fitting(model: Any, threats: Mapping[str, Threat]) -> str:
    from grb.certificate import default_certificate

    return default_certificate(model, next(iter(threats.values())))


def _runs(
    planner: Planner,
    fits: Mapping[str, str],
    certificates: Sequence[str],
    threats: Mapping[str, Threat],
    settings: Mapping[str, Any],
) -> list[jobs.Run]:
    from grb.catalogue import resolve, spelling
    from grb.pipeline import Spec

    named = dict.fromkeys(spelling("certificate", name) for name in certificates)
    accepted = {name: set(inspect.signature(resolve("certificate", name)).parameters) for name in named}
    every = set().union(*accepted.values())
    specs = [
        # of several certificates each takes the settings that it has; one that none has is refused
        Spec(name, {key: value for key, value in settings.items() if key in accepted[name] or key not in every})
        for name in named
    ]
    return [
        jobs.Run(f"{title}, {spec.name}, {mode}", planner.certify(spec, fit, mode, threat, title), {})
        for title, fit in fits.items()
        for spec in (specs if len(specs) > 1 else [Spec(name, settings) for name in named])
        for mode, threat in threats.items()
    ]


def _outcome(store: Store, run: jobs.Run) -> CertifiedOutcome:
    from grb.pipeline.gate import content_of

    found: CertifiedOutcome = content_of(store.read(run.job))
    return found


def _values(found: CertifiedOutcome, key: str) -> dict[str, Any]:
    return {
        "key": key,
        **found.to_dict(),
        "clean_accuracy": found.accuracy(0),
        "certified_accuracy": found.accuracy(),
        "curve": {str(budget): found.accuracy(budget) for budget in BUDGETS},
    }


def _line(found: CertifiedOutcome) -> str:
    if found.refusal:
        return f"no certificate: {found.refusal}"
    return f"clean {100 * found.accuracy(0):.2f} %, certified {100 * found.accuracy():.2f} % at {found.budget} {found.unit}"


def _show(found: Sequence[CertifiedOutcome], dataset: Dataset) -> None:
    """One row per certificate: accuracy of the certified model, clean and at every budget."""
    held = [each for each in found if not each.refusal]
    several = len({each.defense.method.seed for each in held}) > 1
    for unit in dict.fromkeys(each.unit for each in held):
        own = [each for each in held if each.unit == unit]
        most = max(each.budget for each in own)
        budgets = sorted({budget for budget in BUDGETS if budget <= max(most, 10)})
        heads = ["clean", *map(str, budgets), "threat model", "together", "abstains"]
        rows = [
            [
                each.model,
                *([each.defense.method.seed] if several else []),
                each.mode,
                f"{100 * each.accuracy(0):.2f}",
                *(f"{100 * each.accuracy(budget):.2f}" for budget in budgets),
                f"{100 * each.accuracy():.2f} at {each.budget}",
                "-" if each.collective is None else f"{100 * each.collective / each.targets:.2f}",
                str(sum(budget < 0 for budget in each.budgets)),
            ]
            for each in own
        ]
        title = f"{dataset_title(dataset)}: accuracy in % that no attack can undercut, by number of {unit}"
        output.table(title, ["certified model", *(["seed"] if several else []), "targets", *heads], rows, numbers=heads)
    for line in dict.fromkeys(map(_sureness, held)):  # that of several seeds and difficulties is the same
        output.echo(line)
    for each in found:
        if each.refusal:
            output.echo(f"{each.defense.method.label()}, {each.certificate}: no certificate: {each.refusal}")


def _sureness(found: CertifiedOutcome) -> str:
    sure = "with certainty" if not found.samples else f"with probability {found.confidence:g} ({found.samples} samples)"
    return f"{found.model}: every statement holds {sure}" + "".join(f"; {note}" for note in found.notes)
