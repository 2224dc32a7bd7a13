"""``grb submit``: check what others send, and score it into a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output, run_options
from grb.cli.options import Json, StoreOption, TrustCode, check_counts, find_code, store_at
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline import Limits, Recipe, Store
    from grb.pipeline.card import Card
    from grb.pipeline.submission import Checked


def submit(
    file: Annotated[Path, typer.Argument(help="An edit (.npz) or weights (.safetensors).")],
    card: Annotated[
        Path | None, typer.Option("--card", help="Its card; the file of the same name that ends in .yaml by default.")
    ] = None,
    only_check: Annotated[bool, typer.Option("--check", help="Only check it, and write into no store.")] = False,
    fix: Annotated[
        Path | None,
        typer.Option(help="Write the edit without loops, repeated edges and denormals to this file, and use that."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Recipe whose board it joins; by default the one of its dataset and scenario."),
    ] = None,
    store: StoreOption = None,
    workers: run_options.Workers = None,
    timeout: Annotated[float, typer.Option(help="Maximum seconds of a job, and of the first run of a model.")] = 600.0,
    memory: Annotated[float, typer.Option(help="Maximum megabytes of a worker.")] = 8192.0,
    trust_code: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Check a submission against everything in its threat model, score it in workers with limits, and show its board.

    Attacks meet the defenses whose weights the store has; a defense meets the attacks whose edits it has.

    \b
    Examples:
      grb submit my-attack.npz --check                 its card is my-attack.yaml
      grb submit my-attack.npz --store results
      grb submit my-attack.npz --fix fixed.npz --check
      grb submit weights.safetensors --card card.yaml --recipe grb-cora --store results
      grb submit my-gat.safetensors --store results --trust-code    a module of one's own, made by the card's `module`
    """
    from grb.pipeline import Limits
    from grb.pipeline.card import read_card
    from grb.pipeline.submission import repaired

    check_counts(workers=workers)  # not in this process, where no limit would hold
    where = card or file.with_suffix(".yaml")
    if fix is not None:
        for sentence in repaired(file, fix):
            output.echo(f"repaired: {sentence}")
        file = fix
    own = read_card(where)
    place = None if only_check and recipe is None else store_at(store)
    joined = None if place is None else _joined_recipe(place, own, recipe, trust_code)
    find_code([own.module], where.parent)
    checked = _checked(file, own, joined, Limits(1, timeout, memory), trust_code)
    if only_check:
        _show(checked, as_json)
        return
    assert place is not None and joined is not None
    resources = run_options.Resources(workers, timeout, memory)
    _add(checked, place, joined, resources, trust_code=trust_code, as_json=as_json)


def _show(checked: Checked, as_json: bool) -> None:
    values = _values(checked)
    if as_json:
        output.print_json(values)
        return
    output.table(
        f"{checked.card.name}: a valid {checked.card.kind} on {checked.card.dataset}",
        ["what", "value"],
        [[name, str(value)] for name, value in values.items() if name != "notes"],
    )
    for note in checked.notes:
        output.echo(f"note: {note}")


def _add(
    checked: Checked,
    store: Store,
    recipe: Recipe,
    resources: run_options.Resources,
    *,
    trust_code: bool,
    as_json: bool,
) -> None:
    """Score a submission into a store, and show the board that it joins."""
    from grb.cli.leaderboard import show_boards
    from grb.pipeline import build_board, submission
    from grb.pipeline.entry import entry_label, usable
    from grb.pipeline.plan import join_submission

    checked = submission.as_version(store, checked)
    for sentence in usable(store, trust_code=trust_code)[1]:
        output.echo(f"note: {sentence}")
    study, part = join_submission(store, submission.record_of(checked), recipe, trust_code=trust_code)
    submission.add(store, checked)
    outcome = run_options.carry_out(part, store, resources, as_json=as_json)
    show_boards(build_board(study, store), as_json=as_json)
    for note in checked.notes:
        output.echo(f"note: {note}")
    output.echo(f"{entry_label(checked.job)}: {outcome.done} jobs done; store: {store.path}")
    if code := run_options.exit_code(outcome):
        raise typer.Exit(code)


def _joined_recipe(store: Store, card: Card, named: str | None, trust_code: bool) -> Recipe:
    """The recipe whose board a submission joins, as it was run in the store: the named one, or the largest that fits."""
    from grb.pipeline.gate import check_recipe
    from grb.pipeline.recipe import read_recipe, recipe_from_dict
    from grb.pipeline.results import studies

    known = studies(store)
    name = named
    if named is not None and named not in {info.name for info in known}:
        name = read_recipe(named).name
    for info in known:
        fits = (info.dataset.name, info.scenario) == (card.dataset, card.scenario) and info.objective == "evasion"
        if info.name == name or (name is None and fits):
            if not trust_code:
                check_recipe(info.recipe, f"the study '{info.name[:60]}' of {store.path}")
            return recipe_from_dict(info.recipe)
    if named is not None:
        return read_recipe(named)
    raise DataError(
        f"{store.path} has no results of {card.scenario} on '{card.dataset}' that {card.label} could meet; "
        f"run them first: grb run RECIPE --store {store.path}"
    )


def _checked(file: Path, card: Card, recipe: Recipe | None, limits: Limits, trust_code: bool) -> Checked:
    """Check a submission against the limits of the recipe that it joins, or else against the dataset's presets."""
    from grb.attack.build import submission_threats
    from grb.dataset import load_dataset
    from grb.pipeline.planner import recipe_threat
    from grb.pipeline.submission import check

    dataset = load_dataset(card.dataset)
    fits = recipe is not None and recipe.scenario == card.scenario and card.kind == "attack"
    threats = [recipe_threat(recipe, dataset, card.mode)] if fits and recipe else []
    kept = threats or submission_threats(card.scenario, dataset, card.mode)
    return check(file, card, dataset, kept, limits=limits, trust_code=trust_code)


def _values(checked: Checked) -> dict[str, object]:
    card = checked.card
    values: dict[str, object] = {
        "name": card.name,
        "kind": card.kind,
        "dataset": card.dataset,
        "sha256": checked.sha256,
    }
    if card.kind == "attack":
        values |= {"mode": card.mode, "scenario": card.scenario, **checked.result["budget"]}
        values |= {"limits": checked.job.extra["threat"]}
    else:
        values["parameters"] = checked.result["parameters"]
    return {**values, "notes": list(checked.notes)}
