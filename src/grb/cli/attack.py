"""``grb attack``: attack saved models under the enforced threat model and show what it cost them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb._version import __version__
from grb.catalogue import spelling
from grb.cli import output
from grb.cli.attack_limits import Given, expected_steps, threats
from grb.cli.attack_report import SUFFIX, Run, attack_params, draw, say_files, show, summaries, write
from grb.cli.eval import check_model, dataset_line, dataset_title, metric_name, model_title, on_split, trained_on
from grb.cli.options import DataDir, Json, check_counts, check_directory, check_seed, check_target, names, use_machine
from grb.cli.progress import Reporter, every_run, reporter
from grb.errors import BudgetError, DataError, GRBError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from grb.attack.base import Attack, Knowledge
    from grb.dataset import Dataset
    from grb.model.base import GraphModel
    from grb.threat import Threat

FAILED = 1


@dataclass(frozen=True, eq=False)
class Victim:
    """A model that is scored under attack, and what it says about the clean graph."""

    name: str
    model: GraphModel
    clean: Tensor  # logits, [n, c]


@dataclass(frozen=True, eq=False)
class Plan:
    """All runs of one command: every attack on every difficulty with every seed."""

    attacks: Mapping[str, Attack]
    threats: Mapping[tuple[str, str], Threat]
    seeds: tuple[int, ...]
    source: nn.Module | None
    knowledge: Knowledge
    victims: list[Victim]
    save: Path | None
    figures: Path | None
    header: dict[str, Any]

    @property
    def runs(self) -> list[tuple[str, str, int]]:
        return [(attack, mode, seed) for attack, mode in self.threats for seed in self.seeds]


Attacks = Annotated[
    list[str], typer.Argument(metavar="ATTACK", help="Attacks of `grb ls attacks`.", autocompletion=names("attack"))
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
    typer.Option(metavar="MODEL", help="Transfer: train this model first, attack it.", autocompletion=names("model")),
]
SurrogateSeed = Annotated[int, typer.Option(metavar="K", help="Of the surrogate's training.")]
VictimOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE.safetensors", help="Score this model, which the attack never sees; repeatable."),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        help="Dataset; the one the model was trained on if not given.",
        autocompletion=names("dataset"),
    ),
]
Mode = Annotated[str, typer.Option(help="Attack easy, medium, hard or full test nodes; all for each.")]
Iterations = Annotated[int | None, typer.Option(help="Steps (of each round), instead of the paper's.")]
Step = Annotated[float | None, typer.Option(help="Size of a step or learning rate, not the paper's.")]
Seed = Annotated[int, typer.Option(metavar="K", help="Of edges and starting features.")]
Repeats = Annotated[int, typer.Option(metavar="R", help="Repeat with the seeds K, K+1, ... K+R-1.")]
Nodes = Annotated[int | None, typer.Option(help="Injected nodes at most, instead of the paper's.")]
EdgesPerNode = Annotated[int | None, typer.Option(help="Edges of one injected node at most.")]
Edges = Annotated[int | None, typer.Option(help="Edges that a modification may change at most.")]
EdgeRatio = Annotated[float | None, typer.Option(help="The same as a share of all edges; 0.05 if not given.")]
FeatureNodes = Annotated[
    int | None, typer.Option(help="Nodes whose features a modification may change, not 5 % of the targets.")
]
FeatureRange = Annotated[
    str | None, typer.Option(metavar="LO,HI", help="Lowest and highest new feature, for instance -0.9,0.9.")
]
Save = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help=f"A file *{SUFFIX} for one run, a directory for any number of runs."),
]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Draw the first repeat: loss curve and attacked neighbourhood.")
]
Threads = Annotated[int, typer.Option(help="Threads of torch; results are reproducible per number.")]


def attack(
    attacks: Attacks,
    model: Model = None,
    surrogate: Surrogate = None,
    surrogate_seed: SurrogateSeed = 0,
    victim: VictimOption = None,
    dataset: DatasetOption = None,
    mode: Mode = "full",
    iterations: Iterations = None,
    step: Step = None,
    seed: Seed = 0,
    repeats: Repeats = 1,
    nodes: Nodes = None,
    edges_per_node: EdgesPerNode = None,
    edges: Edges = None,
    edge_ratio: EdgeRatio = None,
    feature_nodes: FeatureNodes = None,
    feature_range: FeatureRange = None,
    save: Save = None,
    figures: Figures = None,
    threads: Threads = 1,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Attack models with the papers' settings; every edit is checked against the threat model before it counts.

    --save writes the edit, which `grb eval MODEL --edit FILE` applies, and a JSON record beside it.

    \b
    Examples:
      grb attack fgsm tdgia --model gcn.safetensors
      grb attack tdgia --surrogate gcn --victim robust.safetensors --mode all
      grb attack dice pr-bcd --model gcn.safetensors --edge-ratio 0.02
      grb attack pgd --model gcn.safetensors --save edits/ --figures figures/
      grb attack tdgia --surrogate gcn --dataset grb-cora --save my-attack.npz
    """
    victims = victim or []
    alone = surrogate is not None and dataset is not None and save is not None  # for a submission: nobody to score
    _check_roles(model, surrogate, victims, alone=alone)
    check_counts(iterations=iterations, repeats=repeats, threads=threads)
    check_seed("seed", seed)
    check_seed("surrogate-seed", surrogate_seed)
    _check_step(step)
    chosen = list(dict.fromkeys(spelling("attack", name) for name in attacks))
    from grb.dataset import load_dataset
    from grb.trainer.checkpoint import load_model_with_meta

    use_machine(threads)
    read = {file: load_model_with_meta(file) for file in dict.fromkeys([*([model] if model else []), *victims])}
    named = dataset or next(trained_on(file, meta) for file, (_, meta) in read.items())
    loaded = load_dataset(named, data_dir=data_dir)
    loaded = on_split(loaded, [meta for _, meta in read.values()])
    fingerprint = loaded.fingerprint()
    for file, (own, meta) in read.items():
        check_model(file, own, meta, loaded, fingerprint)
    built = _build(chosen, loaded, {"iterations": iterations, "step": step})
    given = Given(nodes, edges_per_node, edges, edge_ratio, feature_nodes, feature_range)
    limits = threats(given, built, loaded, mode)
    seeds = tuple(range(seed, seed + repeats))
    check_seed("seed", seeds[-1])
    check_target(save, len(limits) * len(seeds), SUFFIX, example="edits/")
    _check_figures(figures, loaded)
    source, about = _source(model, read, surrogate, loaded, surrogate_seed)
    knowledge: Knowledge = "none" if source is None else "transfer" if victims or surrogate else "white-box"
    header = _header(loaded, fingerprint, knowledge, about, threads)
    scored: dict[Path, Any] = {file: read[file][0] for file in victims or list(read)} or {Path("surrogate"): source}
    plan = Plan(built, limits, seeds, source, knowledge, _victims(scored, loaded), save, figures, header)
    runs, interrupted = _attack_all(plan, loaded)
    told = {"interrupted": interrupted, "runs": [asdict(run) for run in runs], "summary": summaries(runs)}
    result = {**header, **told}
    if as_json:
        output.print_json(result)
    elif runs:
        show(result, dataset_title(loaded), len(seeds), len(plan.runs))
    say_files(runs, submittable=loaded.task == "node")
    if interrupted:
        raise KeyboardInterrupt
    if any(run.error for run in runs):
        raise typer.Exit(FAILED)


def _header(dataset: Dataset, fingerprint: str, knowledge: Knowledge, attacked: Any, threads: int) -> dict[str, Any]:
    """What holds for all runs of a call."""
    import torch

    return {
        "grb": __version__,
        "torch": torch.__version__,
        "dataset": {"name": dataset.name, "synthetic": dataset.synthetic, "fingerprint": fingerprint},
        "metric": metric_name(dataset),
        "knowledge": knowledge,
        "attacked": attacked,
        "threads": threads,
    }


def _check_step(step: float | None) -> None:
    if step is not None and not (math.isfinite(step) and step > 0):
        raise DataError(f"--step is {step}, but a finite number above 0 is needed, for instance 0.01")


def _check_figures(figures: Path | None, dataset: Dataset) -> None:
    if figures is None:
        return
    if dataset.task == "graph":
        raise DataError(f"--figures draws attacked nodes, but '{dataset.name}' has graphs to classify; leave it out")
    check_directory(figures, figures)


def _check_roles(model: Path | None, surrogate: str | None, victims: list[Path], *, alone: bool) -> None:
    """Who lends the gradients and who is scored; a surrogate alone if its edit is kept."""
    if model is not None and surrogate is not None:
        raise DataError(
            "--model and --surrogate were both given; --model attacks a saved model, --surrogate trains one to attack"
        )
    if model is None and not victims and not alone:
        missing = "--surrogate needs a victim to score, or --dataset and --save" if surrogate else "no model was given"
        raise DataError(
            f"{missing}; attack a saved model with --model FILE, "
            "or train a surrogate with --surrogate NAME and score --victim FILE"
        )
    if model is not None and model.resolve() in [file.resolve() for file in victims]:
        raise DataError(f"{model} is both --model and --victim; leave --victim out for a white-box attack")
    if surrogate is not None:
        from grb.model.build import settings

        settings(surrogate, "")  # refuses an unknown name before anything is loaded


def _build(chosen: list[str], dataset: Dataset, changes: dict[str, Any]) -> dict[str, Attack]:
    """The attacks; one without steps leaves --iterations and --step to the others, and says so."""
    from grb.attack.build import OWN_NAMES, build_attack

    made = {}
    for name in chosen:
        plain = build_attack(name, dataset.name)
        given = [option for option, value in changes.items() if value is not None]
        taken = [option for option in given if any(hasattr(plain, own) for own in OWN_NAMES[option])]
        if len(chosen) > 1:
            for option in sorted(set(given) - set(taken)):
                output.say(f"note: attack '{name}' has no {option}")
        else:
            taken = given
        made[name] = build_attack(name, dataset.name, **{option: changes[option] for option in taken})
        if getattr(made[name], "objective", "evasion") == "poisoning":
            output.say(f"note: attack '{name}' is made for models trained after it, but those here were trained before")
    return made


def _source(
    file: Path | None, read: Mapping[Path, Any], surrogate: str | None, dataset: Dataset, seed: int
) -> tuple[nn.Module | None, dict[str, Any] | None]:
    """The model that lends its gradients, and what the record says about it."""
    if file is not None:
        model = read[file][0]
        return model, {"model": model_title(model), "file": str(file)}
    return _train_surrogate(surrogate, dataset, seed) if surrogate is not None else (None, None)


def _train_surrogate(name: str, dataset: Dataset, seed: int) -> tuple[nn.Module, dict[str, Any]]:
    from grb import api
    from grb.model.build import settings
    from grb.names import ModelName

    chosen = settings(ModelName.parse(name).for_task(dataset.task), dataset.name)
    with reporter(output.console(stderr=True), 1) as progress:
        progress.start(f"surrogate {chosen.model} seed {seed}", chosen.epochs)
        model, fit = api.train_with_history(name, dataset, seed=seed, on_epoch=progress.epoch)
        scores = api.evaluate(model, dataset)
        progress.done(f"surrogate {chosen.model} seed {seed}: {scores}, {fit.epochs} epochs, {fit.seconds:.1f} s")
    about = {"model": chosen.model, "seed": seed, "scores": dict(scores), "epochs": fit.epochs}
    return model, {**about, "seconds": round(fit.seconds, 3)}


def _victims(models: Mapping[Path, GraphModel], dataset: Dataset) -> list[Victim]:
    from grb.model.base import predict

    stems = [file.stem for file in models]
    return [
        Victim(file.stem if stems.count(file.stem) == 1 else str(file), model, predict(model, dataset.graph))
        for file, model in models.items()
    ]


def _attack_all(plan: Plan, dataset: Dataset) -> tuple[list[Run], bool]:
    """All runs, or those that were finished when the user interrupted."""

    def announced(run: tuple[str, str, int]) -> tuple[str, int | None]:
        name, mode, seed = run
        steps = expected_steps(plan.attacks[name], plan.threats[name, mode])
        if steps is not None and dataset.task == "graph":
            steps *= len(dataset.test_ids(mode))
        return f"{name} {mode} seed {seed}", steps

    console = output.console(stderr=True)
    console.print(dataset_line(dataset))
    return every_run(console, plan.runs, announced, lambda run, told: _attack_one(plan, dataset, *run, told))


def _attack_one(plan: Plan, dataset: Dataset, name: str, mode: str, seed: int, progress: Reporter) -> Run:
    from grb import api
    from grb.attack.base import AttackError
    from grb.model.base import predict

    attack, threat = plan.attacks[name], plan.threats[name, mode]
    begun: dict[str, Any] = {
        "attack": name,
        "version": getattr(attack, "version", None),
        "params": attack_params(attack),
        "mode": mode,
        "seed": seed,
        "threat": threat.to_dict(),
        "knowledge": plan.knowledge,
    }
    try:
        result = api.run_attack(
            attack,
            plan.source,
            dataset,
            mode=mode,
            threat=threat,
            knowledge=plan.knowledge,
            seed=seed,
            on_step=progress.step,
        )
    except (BudgetError, AttackError) as refusal:  # the attack is to blame, not the command: the others go on
        return Run(**begun, error=str(refusal))
    attacked_graph = dataset.graph.apply(result.edit)
    attacked = [predict(victim.model, attacked_graph) for victim in plan.victims]
    begun |= {
        "knowledge": result.knowledge,
        "victims": [_outcome(dataset, mode, victim, logits) for victim, logits in zip(plan.victims, attacked)],
        "budget": result.budget,
        "steps": len(result.steps),
        "seconds": round(result.seconds, 3),
        "cpu_seconds": round(result.cpu_seconds, 3),
        "peak_megabytes": round(result.peak_megabytes, 1),
        "notes": list(result.notes),
    }
    saved, drawn, problem = None, [], None
    try:
        if plan.save is not None:
            saved = str(write(plan.save, Run(**begun), result, plan.header))
        if plan.figures is not None and seed == plan.seeds[0]:
            drawn = draw(plan.figures, Run(**begun), result, dataset, plan.victims[0].clean, attacked[0])
    except GRBError as refusal:  # the scores are worth showing all the same
        problem = str(refusal)
    return Run(**begun, saved=saved, figures=drawn, error=problem)


def _outcome(dataset: Dataset, mode: str, victim: Victim, attacked: Tensor) -> dict[str, Any]:
    from grb import metric

    ids = dataset.test_ids(mode)
    y, before, after = dataset.labels[ids], victim.clean[ids], attacked[ids]
    if y.dim() == 1:
        scores = [metric.accuracy(logits, y) for logits in (before, after)]
        changed = before.argmax(1) != after.argmax(1)
    else:
        scores = [metric.f1(logits > 0, y) for logits in (before, after)]
        changed = ((before > 0) != (after > 0)).any(1)
    return {
        "victim": victim.name,
        "model": model_title(victim.model),
        "clean": scores[0],
        "attacked": scores[1],
        "changed": float(changed.double().mean()),
    }
