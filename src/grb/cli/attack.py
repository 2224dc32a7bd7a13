"""``grb attack``: attack models under the enforced threat model and show what it costs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.catalogue import resolve, spelling
from grb.cli import attack_report, attack_targets, jobs, options, output
from grb.cli.eval import check_model, dataset_title, on_split, trained_on
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.pipeline import Store
    from grb.pipeline.planner import Planner
    from grb.threat import Threat

Attacks = Annotated[
    list[str],
    typer.Argument(metavar="ATTACK", help="Attacks of `grb ls attacks`.", autocompletion=options.names("attack")),
]
Model = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.safetensors",
        help="White-box: attack this model with its own gradients. With --victim it is a surrogate instead.",
    ),
]
Surrogate = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="Transfer: train this model first, and attack it.", autocompletion=options.names("model")
    ),
]
Victims = Annotated[
    list[Path] | None,
    typer.Option(
        "--victim", metavar="FILE.safetensors", help="Score this model, which the attack never sees; repeatable."
    ),
]
Limits = Annotated[
    list[str] | None,
    options.limit_option(
        "nodes, edges_per_node, edges, edge_ratio, per_target=1,2, feature_nodes, feature_range=-0.9,0.9, queries, answers"
    ),
]
AimedLabels = Annotated[
    str,
    typer.Option(
        "--labels",
        metavar="KIND",
        help="Labels to take away: predicted, as an attacker has them, or true, for the worst case of --model.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="PATH", help="Write the edits: a file *.npz for one run, or a directory."),
]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Draw the first seed: loss curve and attacked neighbourhood.")
]


@dataclass(frozen=True)
class Roles:
    """Who lends the gradients and who is scored.

    Args:
        files: Models of files, by file, with what the files say about them.
        model: The file whose gradients are used, if any.
        surrogate: Name of the model to train first, if any.
        victims: Files of the models that are scored.
    """

    files: Mapping[Path, tuple[Any, dict[str, Any]]]
    model: Path | None
    surrogate: str | None
    victims: tuple[Path, ...]

    @property
    def knowledge(self) -> str:
        """What the attacker knows of the victims."""
        if self.model is None and self.surrogate is None:
            return "none"
        return "transfer" if self.victims or self.surrogate else "white-box"


def attack(
    attacks: Attacks,
    model: Model = None,
    surrogate: Surrogate = None,
    victim: Victims = None,
    dataset: options.TrainedOn = None,
    difficulty: options.Difficulties = "full",
    params: options.Params = None,
    limits: Limits = None,
    labels: AimedLabels = "predicted",
    targets: options.TargetNodes = None,
    seed: options.Seed = None,
    seeds: options.Seeds = None,
    written: Output = None,
    figures: Figures = None,
    threads: options.Threads = "1",
    store: options.KeptStore = None,
    as_json: options.Json = False,
) -> None:
    """Attack models with the papers' settings; every edit is checked against the threat model before it counts.

    Settings for --param are iterations, step and the constructor's arguments of the attack. --output writes the edit, which
    `grb eval MODEL FILE` applies, and a JSON record beside it.

    \b
    Examples:
      grb attack fgsm tdgia --model gcn.safetensors
      grb attack tdgia --surrogate gcn --victim robust.safetensors --difficulty all
      grb attack tdgia --model synth-tiny/gcn+ln+at          a published model of `grb ls artefacts`
      grb attack dice pr-bcd --model gcn.safetensors --limit edge_ratio=0.02
      grb attack auto --model gcn.safetensors --labels true
      grb attack pgd --model gcn.safetensors --param iterations=100 -o edits/ --figures figures/
      grb attack tdgia --surrogate gcn --dataset grb-cora -o my-attack.npz
      grb attack rnd --dataset grb-cora -o random.npz
      grb attack random-search --model gcn.safetensors --limit queries=1000 --limit answers=labels
      grb attack pgd --model gcn.safetensors --targets class=1 --limit nodes=5
      grb attack nettack --model gcn.safetensors --targets degrees=10 --limit per_target=1,2
    """
    from grb.dataset import load_dataset

    options.check_threads(threads)
    if targets is not None:
        attack_targets.check(difficulty, figures, store)
    listed, changes, allowed = (
        options.chosen_seeds(seed, seeds),
        options.settings_of(params, "--param"),
        options.settings_of(limits, "--limit"),
    )
    chosen = list(dict.fromkeys(spelling("attack", name) for name in attacks))
    nobody = model is None and surrogate is None and not victim
    blind = nobody and not any(getattr(resolve("attack", name), "needs_model", True) for name in chosen)
    submission_only = (
        (surrogate is not None or blind) and dataset is not None and written is not None
    )  # a submission: nobody to score
    model = None if model is None else options.model_file(model)
    victims = [options.model_file(file) for file in victim or []]
    roles = _roles(model, surrogate, victims, submission_only=submission_only)
    _check_labels(labels, chosen, roles.knowledge)
    options.use_machine(threads)
    source = dataset or next(trained_on(file, meta) for file, (_, meta) in roles.files.items())
    loaded = load_dataset(source)
    count = options.use_threads(threads, loaded)
    loaded, number = on_split(loaded, [meta for _, meta in roles.files.values()])
    planner = jobs.planner(loaded, source, split=number, threads=count)
    for file, (own, meta) in roles.files.items():
        check_model(file, own, meta, loaded, planner.data.fingerprint)
    if labels == "true" and loaded.labels.dim() != 1:
        raise DataError(f"--labels is true, but nodes of '{loaded.name}' have several labels; leave it out")
    specs = _specs(chosen, loaded, changes, has_model=roles.knowledge != "none")
    narrowed = loaded
    if targets is not None:
        narrowed = attack_targets.narrowed(loaded, targets, roles, labels)
    threats = _threats(specs, allowed, narrowed, options.chosen_difficulties(difficulty, narrowed))
    asking = roles.knowledge == "white-box" and any(threat.queries is not None for threat in threats.values())
    knowledge = "query" if asking else roles.knowledge
    options.check_target(written, len(threats) * len(listed), attack_report.SUFFIX, example="edits/")
    _check_figures(figures, loaded)
    if targets is not None:
        found_on = attack_targets.attack_targets(
            roles, specs, threats, loaded, narrowed, listed, labels=labels, knowledge=knowledge, written=written
        )
        if as_json:
            output.print_json(found_on)
        else:
            attack_targets.show(found_on, dataset_title(loaded))
        return
    with jobs.opened_store(store) as place:
        runs, about = _plan(planner, place, roles, specs, threats, listed, labels, knowledge)
        interrupted = jobs.do(
            planner.jobs,
            place,
            runs,
            loaded,
            message=lambda run: attack_report.message(place, run),
            steps=lambda job: attack_report.expected_steps(job, loaded),
        )
        header = {**jobs.header(loaded, planner.data.fingerprint, count), "knowledge": knowledge}
        header |= {"attacked": about, "labels": labels}
        over = [run for run in runs if run.error or all(map(place.has, run.keys))]
        for run in over:
            attack_report.write(place, run, header, written)
            attack_report.draw(place, run, loaded, figures if run.seed == listed[0] else None)
        found = [attack_report.values(place, run) for run in over]
    result = {**header, "interrupted": interrupted, "runs": found, "summary": attack_report.summaries(found)}
    if as_json:
        output.print_json(result)
    elif found:
        attack_report.show(result, dataset_title(loaded), len(listed), len(runs))
    attack_report.say_files(runs, submittable=loaded.task == "node")
    jobs.end(runs, interrupted)


def _check_labels(labels: str, attacks: Sequence[str], knowledge: str) -> None:
    """True labels are for the evaluator: attacks of grb on the victim itself."""
    from grb.pipeline.true_labels import check_true_labels

    if labels not in ("predicted", "true"):
        raise DataError(f"--labels is '{labels[:40]}', but predicted or true is needed")
    for name in attacks if labels == "true" else ():
        check_true_labels(name, knowledge)
        if not getattr(resolve("attack", name), "needs_model", True):
            raise DataError(f"attack '{name}' aims at no labels; leave --labels out")


def _check_figures(figures: Path | None, dataset: Dataset) -> None:
    if figures is None:
        return
    if dataset.task == "graph":
        raise DataError(f"--figures draws attacked nodes, but '{dataset.name}' has graphs to classify; leave it out")
    options.check_directory(figures, figures)


def _roles(model: Path | None, surrogate: str | None, victims: Sequence[Path], *, submission_only: bool) -> Roles:
    """Read the files; a surrogate alone is enough if its edit is kept."""
    from grb.model.build import settings
    from grb.trainer.checkpoint import load_model_with_meta

    if model is not None and surrogate is not None:
        raise DataError(
            "--model and --surrogate were both given; --model attacks a saved model, --surrogate trains one to attack"
        )
    if model is None and not victims and not submission_only:
        missing = (
            "--surrogate needs a victim to score, or --dataset and --output" if surrogate else "no model was given"
        )
        raise DataError(
            f"{missing}; attack a saved model with --model FILE, "
            "write the edit of an attack without a model with --dataset NAME --output FILE, "
            "or train a surrogate with --surrogate NAME and score --victim FILE"
        )
    if model is not None and model.resolve() in [file.resolve() for file in victims]:
        raise DataError(f"{model} is both --model and --victim; leave --victim out for a white-box attack")
    if surrogate is not None:
        settings(surrogate, "")  # refuses an unknown name before anything is loaded
    files = dict.fromkeys([*([model] if model else []), *victims])
    return Roles({file: load_model_with_meta(file) for file in files}, model, surrogate, tuple(victims))


def _specs(chosen: Sequence[str], dataset: Dataset, changes: Mapping[str, Any], *, has_model: bool) -> list[Any]:
    """The attacks with their settings; of several attacks, one without steps leaves those to the others, and says so."""
    from grb.attack.build import OWN_NAMES, build_attack
    from grb.pipeline import Spec

    options.check_counts(**{"param iterations": changes.get("iterations")})
    specs = []
    for name in chosen:
        plain = build_attack(name, dataset.name)
        missing = [
            key for key in OWN_NAMES if key in changes and not any(hasattr(plain, own) for own in OWN_NAMES[key])
        ]
        if len(chosen) == 1:
            missing = []
        for option in missing:
            output.echo(f"note: attack '{name}' has no {option}")
        if getattr(plain, "needs_model", True) and not has_model:
            raise DataError(f"attack '{name}' needs a model; give one with --model FILE or --surrogate NAME")
        if getattr(plain, "objective", "evasion") == "poisoning":
            output.echo(
                f"note: attack '{name}' is made for models trained after it, but those here were trained before; "
                "a recipe with 'objective: poisoning' trains them on the attacked graph"
            )
        specs.append(Spec(name, {key: value for key, value in changes.items() if key not in missing}))
    return specs


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _threats(
    specs: Sequence[Any], allowed: Mapping[str, Any], dataset: Dataset, difficulties: Sequence[str]
) -> dict[tuple[str, str], Threat]:
    """The papers' threat model of every attack and difficulty, with the limits that the user gave instead."""
    from grb.attack.build import default_threat_model, has_limits, scenario_of
    from grb.pipeline.planner import change_threat
    from grb.threat import Injection, Modification

    known = {kind.__name__.lower(): {each.name for each in fields(kind)} for kind in (Injection, Modification)}
    scenarios = {spec.name: scenario_of(resolve("attack", spec.name)) for spec in specs}
    for name, value in allowed.items():
        kinds = [kind for kind, own in known.items() if name in own]
        if kinds and not set(kinds) & set(scenarios.values()):
            raise DataError(f"--limit {name} is a limit of {kinds[0]} attacks, but none was named; leave it out")
        if isinstance(value, int) and name not in ("edges", "feature_range") and not 0 <= value <= dataset.num_nodes:
            raise DataError(
                f"--limit {name} is {value}, but 0 to {dataset.num_nodes} are possible, the nodes of {dataset.name}"
            )
        if name == "feature_range" and [type(end) in (int, float) for end in _listed(value)] != [True, True]:
            raise DataError(
                f"--limit {name} is {value}, but two numbers, the lower first, are needed, for instance {name}=-0.9,0.9"
            )
    if {"edges", "edge_ratio"} <= allowed.keys():
        raise DataError("--limit has both edges and edge_ratio; the second is the first as a fraction of all edges")
    given = {each.name for each in fields(Injection) if each.default is MISSING} <= allowed.keys()
    if "injection" in scenarios.values() and dataset.task == "node" and not has_limits(dataset.name) and not given:
        output.echo(
            f"the papers have no limits for '{dataset.name}': what is not given is inferred, nodes and edges as on grb-cora "
            "(7.5 % of the targets, 20 edges each), features within the range of the data"
        )
    other = {kind: known[other] - own for kind, own in known.items() for other in known if other != kind}
    return {
        (name, difficulty): change_threat(
            default_threat_model(scenario, dataset, difficulty),
            {key: value for key, value in allowed.items() if key not in other[scenario]},
        )
        for name, scenario in scenarios.items()
        for difficulty in difficulties
    }


def _plan(
    planner: Planner,
    store: Store,
    roles: Roles,
    specs: Sequence[Any],
    threats: Mapping[tuple[str, str], Threat],
    seeds: Sequence[int],
    labels: str,
    knowledge: str,
) -> tuple[list[attack_report.Attacked], dict[str, Any] | None]:
    """All attacks with the scores of their victims, and what is attacked."""
    from grb.pipeline import Spec
    from grb.pipeline.model_file import add_model_file

    keys = {
        file: planner.add(add_model_file(store, file, own, meta, planner.data))
        for file, (own, meta) in roles.files.items()
    }
    source, about = None, None
    if roles.model is not None:
        source = keys[roles.model]
        about = {"model": roles.files[roles.model][0].title, "file": str(roles.model)}
    elif roles.surrogate is not None:
        spec = planner.model(Spec(roles.surrogate))
        source, about = planner.fit(spec, 0), {"model": spec.name, "seed": 0}
    stems = [file.stem for file in keys]
    victims = {
        file.stem if stems.count(file.stem) == 1 else str(file): keys[file] for file in roles.victims or roles.files
    }
    if not victims and source is not None:
        victims = {"surrogate": source}
    clean = {name: planner.score(key, None, None, name) for name, key in victims.items()}
    runs = []
    for spec in specs:
        own = source if getattr(resolve("attack", spec.name), "needs_model", True) else None
        for difficulty in [difficulty for name, difficulty in threats if name == spec.name]:
            for seed in seeds:
                threat = threats[spec.name, difficulty]
                edit = planner.attack(spec, own, difficulty, threat, seed, knowledge, labels)
                scores = {
                    name: planner.score(key, edit, difficulty, f"{name} under {spec.name}")
                    for name, key in victims.items()
                }
                title = f"{spec.name} {difficulty} seed {seed}"
                own_names = {"attack": spec.name, "difficulty": difficulty, "seed": seed}
                runs.append(attack_report.Attacked(title, edit, scores, clean=clean, **own_names))
    return runs, about
