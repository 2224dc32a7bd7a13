"""``grb submit``: check what others send, and score it into a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output, run_options
from grb.cli.options import DataDir, Json, StoreOption, check_counts, group, store_at
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline import Limits, Recipe, Store
    from grb.pipeline.card import Card
    from grb.pipeline.submission import Checked

app = group("Check attacks and defenses that others send, and score them into a store.")
File = Annotated[Path, typer.Argument(help="An edit (.npz) or weights (.safetensors).")]
CardFile = Annotated[
    Path | None, typer.Option("--card", help="Its card; the file of the same name that ends in .yaml if not given.")
]

Timeout = Annotated[float, typer.Option(help="Seconds per job, and for the first run of a model.")]
Memory = Annotated[float, typer.Option(help="Megabytes per worker.")]


@app.command()
def check(
    file: File,
    card: CardFile = None,
    fix: Annotated[
        Path | None,
        typer.Option(help="Write an edit without loops, repeated edges and denormals here, and check that."),
    ] = None,
    timeout: Timeout = 600.0,
    memory: Memory = 8192.0,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check a submission against everything in its threat model; a model is run in a worker with limits.

    \b
    Examples:
      grb submit check my-attack.npz                 its card is my-attack.yaml
      grb submit check my-attack.npz --fix fixed.npz
      grb submit check weights.safetensors --card card.yaml
    """
    from grb.pipeline import Limits
    from grb.pipeline.submission import repaired

    where = card or file.with_suffix(".yaml")
    if fix is not None:
        for sentence in repaired(file, fix):
            output.say(f"repaired: {sentence}")
        file = fix
    checked = _checked(file, where, data_dir, Limits(1, timeout, memory))
    if as_json:
        output.print_json(_facts(checked))
        return
    output.table(
        f"{checked.card.name}: a valid {checked.card.kind} on {checked.card.dataset}",
        ["what", "value"],
        [[name, str(value)] for name, value in _facts(checked).items() if name != "notes"],
    )
    for note in checked.notes:
        output.say(f"note: {note}")


@app.command()
def add(
    file: File,
    card: CardFile = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Recipe whose board it joins; by default the one of its dataset and scenario."),
    ] = None,
    store: StoreOption = None,
    workers: run_options.Workers = None,
    timeout: Timeout = 600.0,
    memory: Memory = 8192.0,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check a submission, score it in workers with limits, and show the board that it joins.

    Attacks meet the defenses whose weights the store has; a defense meets the attacks whose edits it has.

    \b
    Examples:
      grb submit add my-attack.npz --store results
      grb submit add weights.safetensors --card card.yaml --recipe grb-cora --store results
    """
    from grb.cli.leaderboard import show_boards
    from grb.pipeline import Limits, build_board, submission
    from grb.pipeline.entry import entry_label
    from grb.pipeline.plan import join_submission

    check_counts(workers=workers)  # not in this process, where no limit would hold
    place = store_at(store)
    checked = _checked(file, card or file.with_suffix(".yaml"), data_dir, Limits(1, timeout, memory))
    own = checked.card
    root = None if data_dir is None else str(data_dir)
    checked = submission.as_version(place, checked)
    made = _joined_recipe(place, own, recipe)
    study, part = join_submission(place, submission.record_of(checked), made, data_dir=root)
    submission.add(place, checked)
    resources = run_options.Resources(workers, timeout, memory)
    outcome = run_options.carry_out(part, place, resources, as_json=as_json)
    show_boards(build_board(study, place), as_json=as_json)
    for note in checked.notes:
        output.say(f"note: {note}")
    output.say(f"{entry_label(checked.job)}: {outcome.done} jobs done; store: {place.path}")
    if code := run_options.exit_code(outcome):
        raise typer.Exit(code)


def _joined_recipe(store: Store, card: Card, named: str | None) -> Recipe:
    """The recipe whose board a submission joins, as it was run in the store: the named one, or the largest that fits."""
    from grb.pipeline.recipe import read_recipe, recipe_from_dict
    from grb.pipeline.results import studies

    name = None if named is None else read_recipe(named).name
    for info in studies(store):
        fits = (info.dataset.name, info.scenario) == (card.dataset, card.scenario) and info.objective == "evasion"
        if info.name == name or (name is None and fits):
            return recipe_from_dict(info.recipe)
    what = f"recipe '{name}'" if name else f"{card.scenario} on '{card.dataset}'"
    raise DataError(
        f"{store.path} has no results of {what} that {card.label} could meet; run it first: grb run RECIPE --store {store.path}"
    )


def _checked(file: Path, card: Path, data_dir: Path | None, limits: Limits) -> Checked:
    from grb.attack.build import default_threat_model
    from grb.dataset import load_dataset
    from grb.pipeline.card import read_card
    from grb.pipeline.submission import check

    own = read_card(card)
    dataset = load_dataset(own.dataset, data_dir=data_dir)
    root = None if data_dir is None else str(data_dir)
    threat = default_threat_model(own.scenario, dataset, own.mode)
    return check(file, own, dataset, threat, limits=limits, data_dir=root)


def _facts(checked: Checked) -> dict[str, object]:
    card = checked.card
    facts: dict[str, object] = {"name": card.name, "kind": card.kind, "dataset": card.dataset, "sha256": checked.sha256}
    if card.kind == "attack":
        facts |= {"mode": card.mode, "scenario": card.scenario, **checked.result["budget"]}
        facts |= {"limits": checked.job.extra["threat"]}
    else:
        facts["parameters"] = checked.result["parameters"]
    return {**facts, "notes": list(checked.notes)}
