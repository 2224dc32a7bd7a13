"""``grb run`` and ``grb reproduce``: carry out a recipe; running again resumes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output, run_options
from grb.cli.options import Json, StoreOption, TrustCode, find_code, store_at
from grb.cli.progress import duration

if TYPE_CHECKING:
    from grb.pipeline import Recipe, Store, Study


def run(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe (`grb ls recipes`), or a YAML file.")],
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show the jobs, and the time, memory and disk they need.")
    ] = False,
    store: StoreOption = None,
    quick: run_options.Quick = False,
    victims: run_options.Victims = None,
    repeats: run_options.Repeats = None,
    difficulty: run_options.Difficulties = None,
    shard: run_options.Shard = None,
    workers: run_options.WorkerCounts = None,
    timeout: run_options.Timeout = None,
    memory: run_options.Memory = None,
    dask: run_options.Dask = None,
    trust_code: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Train what is missing, attack, score, and show the leaderboard; running again resumes.

    `grb reproduce` is the same under the paper's word. The paper's numbers stand beside ours where it has some.

    Ctrl-C (or SIGTERM) once lets running jobs finish, twice stops now; nothing that was done is lost.

    \b
    Examples:
      grb reproduce synth-cora                           needs no download
      grb run grb-cora --quick --plan                    how many jobs, how long
      grb run grb-cora --plan --workers 8,32,128         how long on a cluster
      grb run grb-cora --victims 5                       intervals over five trainings
      grb run my-recipe.yaml --store results --workers 2
      grb run grb-cora --shard 1/4
      grb run grb-cora --dask tcp://127.0.0.1:8786
    """
    from grb.pipeline.cached_plan import cached_plan
    from grb.pipeline.entry import usable

    place = store_at(store)
    made = run_options.chosen(recipe, quick=quick, victims=victims, repeats=repeats, modes=difficulty)
    submitted, left_out = usable(place, trust_code=trust_code)
    for sentence in left_out:
        output.echo(f"note: {sentence}")
    find_code([record.job.sent_code or "" for record in submitted])
    whole = cached_plan(made, submitted=submitted)
    study = run_options.part(whole, shard)
    counts = run_options.worker_counts(workers, several=plan)
    limits = run_options.Resources(counts[0] if counts else None, timeout, memory, dask)
    if plan:
        show_plan(made, study, place, counts or [limits.cores], as_json)
        return
    outcome = run_options.carry_out(study, place, limits, as_json=as_json)
    scored = [key for key in whole.targets if place.has(key)]
    if scored:
        from grb.cli.leaderboard import show_boards
        from grb.pipeline import build_board

        if whole.info is not None and whole.info.certificates:
            from grb.pipeline.sampled_bracket import check_sampled

            check_sampled(place, [*whole.info.scores, *whole.info.certificates])
        show_boards(build_board(whole, place), as_json=as_json)
    output.echo(f"{outcome.done} jobs done, {outcome.cached} were there already; store: {place.path}")
    if scored:
        output.echo("as a page: " + shlex.join(["grb", "leaderboard", str(place.path), "--format", "html"]))
    if code := run_options.exit_code(outcome):
        raise typer.Exit(code)


def show_plan(recipe: Recipe, study: Study, store: Store, counts: list[int], as_json: bool) -> None:
    """What a study will run, what is done already, and what the rest will cost."""
    from grb.pipeline.estimate import costs_of, lines_of
    from grb.pipeline.simulate import wall_seconds

    costs = costs_of(study, store)
    lines = lines_of(study, costs)
    seconds = sum(line.seconds for line in lines)
    each = {key: cost.seconds for key, cost in costs.items()}
    wall = {count: wall_seconds(study, each, max(count, 1)) for count in counts}
    if as_json:
        output.print_json(
            {
                "recipe": recipe.name,
                "dataset": recipe.dataset,
                "store": str(store.path),
                "jobs": [vars(line) for line in lines],
                "cpu_seconds": seconds,
                "workers": max(counts[0], 1),
                "wall_seconds": {str(count): value for count, value in wall.items()},
                "measurements": len(study.targets),
            }
        )
        return
    rows = [
        [
            line.kind,
            line.jobs,
            line.cached,
            line.jobs - line.cached,
            ("" if line.measured else "~") + duration(line.seconds),
            f"{line.bytes / 2**20:.1f}",
            f"{line.megabytes:.0f}" if line.jobs > line.cached else "-",
        ]
        for line in lines
    ]
    headers = ["jobs", "all", "done", "to do", "CPU time", "disk MB", "memory MB"]
    output.table(study.title, headers, rows, numbers=headers[1:])
    sure = all(line.measured for line in lines)
    output.echo(
        "about "
        + ", ".join(f"{duration(value)} on {count} workers" for count, value in wall.items())
        + ("" if sure else "; ~ is guessed from the dataset's size")
        + f"; store: {store.path}"
    )
