"""``grb replay``: score models on attacked graphs that are stored somewhere, theirs or ours."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, check_counts, edit_file, use_machine
from grb.errors import DataError, GRBError

if TYPE_CHECKING:
    from grb.dataset.pool import Pool
    from grb.defense.base import Training
    from grb.evaluator.replay import Replayed

PROTOCOLS = ("literature", "grb")


def replay(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="A pool in Pro-GNN's layout (a folder with clean, splits, meta and nettack), or npz files: edits of grb, "
            "attacked adjacencies, or injections as in KDD Cup 2020.",
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", "-d", help="Graphs of the pool, joined by commas; of files, the dataset they belong to."
        ),
    ] = None,
    models: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME,...", help="Models or defenses to score.")
    ] = "gcn",
    objective: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Objective: poisoning trains on the attacked graph, evasion on the clean one; or both.",
        ),
    ] = "poisoning",
    attack: Annotated[
        str | None, typer.Option(help="Only graphs of this attack, for instance meta or nettack.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Number of trainings, with the seeds 0, 1, ...")] = 3,
    protocol: Annotated[
        str,
        typer.Option(
            help="Settings of the trainings: literature (one hidden layer of 16, 200 epochs, weight decay) or grb (GRB's)."
        ),
    ] = "literature",
    epochs: Annotated[int | None, typer.Option(help="Maximum number of epochs instead of the protocol's.")] = None,
    threads: Annotated[int, typer.Option(help="Number of threads that torch uses.")] = 1,
    as_json: Json = False,
) -> None:
    """Score models on stored attacked graphs, retrained on them or not.

    \b
    Examples:
      grb replay ProGNN --dataset cora --attack meta
      grb replay edits/pr-bcd.npz edits/dice.npz --dataset grb-cora --model gcn,gat --objective evasion,poisoning
    """
    check_counts(threads=threads, repeats=repeats)
    use_machine(threads)
    if protocol not in PROTOCOLS:
        raise DataError(f"--protocol is '{protocol}', but {' or '.join(PROTOCOLS)} is needed")
    objectives = [name.strip() for name in objective.split(",")]
    result: list[dict[str, Any]] = []
    for pool in _pools([edit_file(source) for source in sources], dataset):
        chosen = _chosen(pool, attack)
        for file, sentence in chosen.refused.items():
            output.echo(f"refused {file}: {sentence}")
        for name in (each.strip() for each in models.split(",")):
            rows = _rows(
                chosen, _defense(name, chosen.dataset.name, protocol, epochs), objectives, range(repeats), name
            )
            result.append(
                {
                    "dataset": chosen.dataset.name,
                    "fingerprint": chosen.dataset.fingerprint(),
                    "model": name,
                    "protocol": protocol,
                    "repeats": repeats,
                    "rows": [row.to_dict() for row in rows],
                    "refused": dict(chosen.refused),
                }
            )
            if not as_json:
                _show(chosen.dataset.name, name, rows)
    if as_json:
        output.print_json(result)


def _pools(sources: Sequence[Path], dataset: str | None) -> list[Pool]:
    from grb.dataset import load_dataset
    from grb.dataset.pool import AttackedGraph, Pool, read_edit, read_pool

    if len(sources) == 1 and (sources[0] / "clean").is_dir():
        folder = sources[0]
        names = dataset.split(",") if dataset else sorted(path.stem for path in (folder / "clean").glob("*.npz"))
        return [read_pool(folder, name.strip()) for name in names]
    if dataset is None:
        raise DataError("the graphs that were attacked are not here; name their dataset with --dataset")
    files = [file for source in sources for file in (sorted(source.glob("*.npz")) if source.is_dir() else [source])]
    if not files:
        raise DataError(f"{sources[0]} has no npz files; name a pool, a folder of edits, or files")
    clean = load_dataset(dataset)
    graphs, refused = [], {}
    for file in files:
        try:
            edit, notes = read_edit(file, clean.graph)
            graphs.append(AttackedGraph(file.stem, edit, notes=tuple(notes)))
        except GRBError as error:
            refused[str(file)] = str(error)
    if not graphs:
        raise DataError(next(iter(refused.values())))
    return [Pool(clean, tuple(graphs), refused)]


def _chosen(pool: Pool, attack: str | None) -> Pool:
    from grb.dataset.pool import Pool

    if attack is None:
        return pool
    kept = tuple(graph for graph in pool.graphs if graph.attack == attack)
    if not kept:
        known = sorted({graph.attack for graph in pool.graphs if graph.attack})
        raise DataError(
            f"there is no graph of the attack '{attack}'; there are {', '.join(known) or 'none with a name'}"
        )
    return Pool(pool.dataset, kept, pool.refused)


def _defense(name: str, dataset: str, protocol: str, epochs: int | None) -> Training:
    from grb.defense import build_defense
    from grb.evaluator.replay import literature_defense

    changes = {} if epochs is None else {"epochs": epochs}
    return (literature_defense if protocol == "literature" else build_defense)(name, dataset, **changes)


def _rows(pool: Pool, defense: Training, objectives: Sequence[Any], seeds: Sequence[int], name: str) -> list[Replayed]:
    from grb.evaluator.replay import replay as replayed

    def tell(row: Replayed) -> None:
        output.echo(f"{name} on {row.graph or 'clean'} ({row.objective}): {100 * statistics.fmean(row.accuracy):.2f}")

    return replayed(pool, defense, objectives=objectives, seeds=seeds, on_row=tell)


def _show(dataset: str, model: str, rows: Sequence[Replayed]) -> None:
    sign = output.plus_minus()

    def spread(scores: Sequence[float]) -> str:
        if not scores:
            return "-"
        mean = f"{100 * statistics.fmean(scores):.2f}"
        return mean if len(scores) == 1 else f"{mean} {sign} {100 * statistics.pstdev(scores):.2f}"

    cells = [
        [
            row.graph or "clean",
            row.objective,
            row.added,
            row.dropped,
            row.injected,
            spread(row.accuracy),
            spread(row.target_accuracy),
        ]
        for row in rows
    ]
    headers = ["graph", "objective", "added", "dropped", "injected", "test", "attacked nodes"]
    output.table(f"{model} on {dataset}: accuracy in %", headers, cells, numbers=headers[2:])
