"""``grb submit``: check what others send, and score it into a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output, run_options
from grb.cli.options import DataDir, Json, check_counts, group
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline import Limits
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
        typer.Option(help="Whose board it joins: a name or a YAML file; the one of its dataset and scenario."),
    ] = None,
    store: run_options.StoreDir = None,
    quick: run_options.Quick = False,
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
    from grb.cli.leaderboard import show_board
    from grb.leaderboard.boards import shown_board, variant_in
    from grb.pipeline import Limits, submission
    from grb.pipeline.plan import joined

    check_counts(workers=workers)  # not in this process, where no limit would hold
    place = run_options.store_at(store)
    checked = _checked(file, card or file.with_suffix(".yaml"), data_dir, Limits(1, timeout, memory))
    own = checked.card
    root = None if data_dir is None else str(data_dir)
    made = run_options.chosen(recipe or _usual_recipe(own), quick=quick)
    if not quick:
        made = variant_in(place, made, data_dir=root)
    study, part = joined(place, submission.record_of(checked), made, data_dir=root)
    submission.add(place, checked)
    outcome = run_options.carry_out(part, place, workers=workers, timeout=timeout, memory=memory, as_json=as_json)
    show_board(shown_board(study, place), as_json=as_json)
    for note in checked.notes:
        output.say(f"note: {note}")
    output.say(f"{own.label}: {outcome.done} jobs done; store: {place.path}")
    if code := run_options.exit_code(outcome):
        raise typer.Exit(code)


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


def _usual_recipe(card: Card) -> str:
    """The recipe of grb for a card's dataset and scenario."""
    from grb.pipeline import recipe_names

    name = card.dataset if card.scenario == "injection" else f"{card.dataset}-{card.scenario}"
    if name not in recipe_names():
        raise DataError(
            f"no recipe of grb is for {card.scenario} on '{card.dataset}'; name the one that was run with --recipe FILE.yaml"
        )
    return name


def _facts(checked: Checked) -> dict[str, object]:
    card = checked.card
    facts: dict[str, object] = {"name": card.name, "kind": card.kind, "dataset": card.dataset, "sha256": checked.sha256}
    if card.kind == "attack":
        facts |= {"mode": card.mode, "scenario": card.scenario, **checked.result["budget"]}
        facts |= {"limits": checked.job.extra["threat"]}
    else:
        facts["parameters"] = checked.result["parameters"]
    return {**facts, "notes": list(checked.notes)}
