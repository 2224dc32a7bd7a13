"""What ``grb attack`` writes and shows: its files and figures, the summary over seeds, the table."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb.cli import jobs, output
from grb.cli.eval import dataset_title
from grb.cli.options import is_one_file
from grb.errors import GRBError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.pipeline import Job, Store

SUFFIX = ".npz"
Values = dict[str, Any]


@dataclass
class Attacked(jobs.Run):
    """One attack: a difficulty and a seed, scored on every victim."""

    attack: str = ""
    difficulty: str = "full"
    seed: int = 0
    clean: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> set[str]:
        """Keys of all its jobs, the clean scores included."""
        return {*super().keys, *self.clean.values()}


def values(store: Store, run: Attacked) -> Values:
    """Return one attack as JSON values, for JSON and tables; scores are fractions."""
    found: Values = {"attack": run.attack, "difficulty": run.difficulty, "seed": run.seed, "victims": []}
    ended: Values = {"saved": run.saved, "figures": run.figures, "error": run.error}
    if not store.has(run.job):
        return {**found, **ended}
    record = store.read(run.job)
    victims = [
        _victim(store, name, run.clean[name], key, run.difficulty) for name, key in run.scores.items() if store.has(key)
    ]
    return {
        **found,
        "version": record.job.version,
        "params": dict(record.job.spec.params),
        "threat": dict(record.job.extra["threat"]),
        "knowledge": record.job.extra["knowledge"],
        "labels": record.job.extra.get("labels", "predicted"),
        "victims": victims,
        **{name: record.result[name] for name in ("budget", "steps", "seconds", "cpu_seconds", "notes")},
        "peak_megabytes": record.provenance["peak_megabytes"],
        **({"queries": record.result["queries"]} if record.result.get("queries") is not None else {}),
        **({"trials": list(record.result["trials"])} if record.result.get("trials") else {}),
        **ended,
    }


def _victim(store: Store, name: str, clean: str, attacked: str, difficulty: str) -> Values:
    before, after = jobs.measurement(store, clean), jobs.measurement(store, attacked)
    outcome = after.outcomes[difficulty]
    return {
        "victim": name,
        "model": store.read(after.defense.method.key).result.get("model", after.defense.method.name),
        "clean": before.outcomes[difficulty].values[before.metric],
        "attacked": outcome.values[after.metric],
        "changed": outcome.changed,
    }


def message(store: Store, run: jobs.Run) -> str:
    """Return the scores of a finished attack in one line."""
    assert isinstance(run, Attacked)
    found = values(store, run)
    scores = [f"{own['victim']} {100 * own['clean']:.2f} -> {100 * own['attacked']:.2f}" for own in found["victims"]]
    return ", ".join([*scores, f"{found['seconds']:.1f} s"])


def expected_steps(job: Job, dataset: Dataset) -> int | None:
    """Return the number of epochs or steps of a job, for its ETA; None if it does not say."""
    from grb.attack.build import OWN_NAMES, build_attack
    from grb.model.build import settings

    if job.kind == "fit":
        return settings(job.spec.name, dataset.name).epochs
    attack = build_attack(job.spec.name, dataset.name, **job.spec.params)
    steps = next((getattr(attack, name) for name in OWN_NAMES["iterations"] if hasattr(attack, name)), None)
    nodes = job.extra["threat"].get("nodes")
    if not isinstance(steps, int) or hasattr(attack, "attack_name"):  # those of the surrogate, not of its attack
        return None
    if nodes:
        batch = max(1, math.floor(getattr(attack, "sequential_step", 1.0) * nodes))
        steps *= math.ceil(nodes / batch)
    return steps * (len(dataset.test_ids(str(job.mode))) if dataset.task == "graph" else 1)


def _stem(run: Attacked, dataset: str) -> str:
    parts = [re.sub(r"[^\w.+-]", "-", part) for part in (run.attack, dataset, run.difficulty)]
    return "-".join([*parts, f"seed{run.seed}"])


def write(store: Store, run: Attacked, header: Values, written: Path | None) -> None:
    """Write the edit, and beside it the record with the course of loss and kept labels."""
    from grb.atomic import write_atomic
    from grb.graph import GraphEdit

    if written is None or run.error:
        return
    dataset, found, record = header["dataset"], values(store, run), store.read(run.job)
    path = written if is_one_file(written, SUFFIX) else written / f"{_stem(run, dataset['name'])}{SUFFIX}"
    named = ("attack", "version", "params", "difficulty", "seed", "threat", "knowledge", "labels")
    meta = {key: found[key] for key in named} | {key: header[key] for key in ("grb", "torch", "threads", "attacked")}
    trace = {"loss": record.result["loss"], "clean_labels_kept": record.result["kept"]}
    facts = {key: value for key, value in found.items() if key not in ("saved", "figures", "error")}
    text = json.dumps({**header, **facts, "edit": path.name, "trace": trace}, indent=1, allow_nan=False)
    try:
        with store.checked(record, "edit") as kept:
            edit = GraphEdit.load(kept)
        edit.save(path, **meta, dataset=dataset["name"], fingerprint=dataset["fingerprint"])
        write_atomic(path.with_suffix(".json"), text.encode() + b"\n")
        run.saved = str(path)
    except GRBError as refusal:  # the scores are worth showing all the same
        run.error = str(refusal)


def draw(store: Store, run: Attacked, dataset: Dataset, directory: Path | None) -> None:
    """Draw the loss curve, and the predictions of the first victim around one target."""
    from grb import visualise
    from grb.evaluator.scoring import predict_checked
    from grb.graph import GraphEdit
    from grb.pipeline.worker import Worker
    from grb.visualise.curve import Curve

    if directory is None or run.error:
        return
    record, path = store.read(run.job), directory / _stem(run, dataset.name)
    title = f"{run.attack} on {dataset_title(dataset)}, {run.difficulty}"
    try:
        loss, kept = (tuple(record.result[name]) for name in ("loss", "kept"))
        if kept and len(loss) == len(kept):
            figure = visualise.draw_curve(Curve(loss, kept, record.result["steps"]), title=title)
            run.figures.append(str(visualise.save(figure, f"{path}-curve.png")))
        if dataset.labels.dim() == 1:
            name, score = next(iter(run.scores.items()))
            model = Worker(store).model(store.read(score).job.inputs["model"])
            with store.checked(record, "edit") as stored:
                edit = GraphEdit.load(stored)
            graphs = dataset.graph, dataset.graph.apply(edit)
            before, after = (predict_checked(model, graph, dataset).logits.argmax(1) for graph in graphs)
            target = visualise.telling_target(dataset.graph, edit, dataset.test_ids(run.difficulty), before, after)
            around = visualise.neighbourhood(dataset.graph, edit, target, before, after)
            figure = visualise.draw_neighbourhood(around, title=f"{title}, {name}")
            run.figures.append(str(visualise.save(figure, f"{path}-neighbourhood.png")))
    except GRBError as refusal:
        run.error = str(refusal)


def summaries(runs: Sequence[Values]) -> list[Values]:
    """Return every attack, difficulty and victim over its seeds."""
    groups: dict[tuple[str, str], list[Values]] = {}
    for run in runs:
        groups.setdefault((run["attack"], run["difficulty"]), []).append(run)
    return [
        row
        for (attack, difficulty), own in groups.items()
        for row in _summary(
            {"attack": attack, "difficulty": difficulty, "failed": sum(run["error"] is not None for run in own)}, own
        )
    ]


def _summary(begun: Values, runs: Sequence[Values]) -> list[Values]:
    scored = [run for run in runs if run["victims"]]
    done = scored or [run for run in runs if "budget" in run]  # an attack without a model has nobody to score
    if not done:
        return [begun]
    costs = {
        "repeats": len(done),
        "budget": {key: max(run["budget"][key] for run in done) for key in done[0]["budget"]},
        **{key: sum(run[key] for run in done) / len(done) for key in ("seconds", "cpu_seconds")},
        "peak_megabytes": max(run["peak_megabytes"] for run in done),
    }
    if all("queries" in run for run in done):
        costs["queries"] = max(run["queries"] for run in done)
    if not scored:
        return [{**begun, **costs}]
    rows = []
    for index, victim in enumerate(scored[0]["victims"]):
        own = [run["victims"][index] for run in scored]
        scores = {
            "clean": victim["clean"],
            "attacked": jobs.over([each["attacked"] for each in own]),
            "drop": victim["clean"] - sum(each["attacked"] for each in own) / len(own),
            "changed": jobs.over([each["changed"] for each in own]),
        }
        rows.append({**begun, "victim": victim["victim"], "model": victim["model"], **scores, **costs})
    return rows


def show(result: Values, title: str, seeds: int, total: int) -> None:
    """Show the summary as a table."""
    scored = result["knowledge"] != "none" or any("victim" in row for row in result["summary"])
    numbers = ("clean", "attacked", "drop", "changed") if scored else ()
    asked = ("queries",) if result["knowledge"] == "query" else ()
    costs = (*asked, "seconds", "CPU s", "peak MB")
    about = result["attacked"]
    knowledge = {
        "white-box": "white-box",
        "query": "by queries",
        "transfer": f"transfer from {about['model']}" if about else "",
        "none": "without a model",
    }[result["knowledge"]]
    jobs.show(
        result,
        f"{title}, {knowledge}" + (" on true labels" if result["labels"] == "true" else ""),
        ["attack", "difficulty", *(["victim", *numbers] if scored else []), "budget", *costs],
        lambda row: [row["attack"], row["difficulty"], *_scores(row, scored), *_costs(row, asked)],
        numbers=[*numbers, *costs],
        seeds=seeds,
        total=total,
        scored=scored,
    )
    for run in result["runs"]:
        if run.get("trials"):
            _show_trials(run)


def _show_trials(run: Values) -> None:
    """Show what an ensemble tried, in its order."""
    columns = ("trial", "level", "kept (%)", "CPU s", "forward", "backward", "error")
    rows = [
        [
            trial["name"],
            trial["level"],
            None if trial["kept"] is None else f"{100 * trial['kept']:.2f}",
            f"{trial['cpu_seconds']:.2f}",
            trial["forward"],
            trial["backward"],
            trial["error"] or None,
        ]
        for trial in run["trials"]
    ]
    title = f"trials of {run['attack']}, {run['difficulty']}, seed {run['seed']}"
    output.table(title, columns, rows, numbers=columns[1:-1])


def _scores(row: Mapping[str, Any], scored: bool) -> list[str | None]:
    if not scored:
        return []
    if "victim" not in row:
        return [None] * 5
    return [
        row["victim"],
        f"{100 * row['clean']:.2f}",
        jobs.percent(row["attacked"]),
        f"{100 * row['drop']:.2f}",
        jobs.percent(row["changed"]),
    ]


def _costs(row: Mapping[str, Any], asked: Sequence[str]) -> list[str | None]:
    if "budget" not in row:
        return [None] * (4 + len(asked))
    budget = ", ".join(
        f"{value:g} {key.replace('_', ' ')}" for key, value in row["budget"].items() if "most" not in key
    )
    return [
        budget,
        *(str(row[name]) if name in row else None for name in asked),
        f"{row['seconds']:.1f}",
        f"{row['cpu_seconds']:.1f}",
        f"{row['peak_megabytes']:.0f}",
    ]


def say_files(runs: Sequence[jobs.Run], *, submittable: bool) -> None:
    """Say which files were written, and what to do with an edit."""
    saved = [run.saved for run in runs if run.saved]
    drawn = [path for run in runs for path in run.figures]
    if len(saved) > 1:
        output.echo(f"saved {len(saved)} edits and their records in {Path(saved[0]).parent}")
    elif saved:
        output.echo(f"saved {saved[0]} and its record {Path(saved[0]).with_suffix('.json').name}")
        if submittable:
            card, command = Path(saved[0]).with_suffix(".yaml").name, shlex.join(["grb", "submit", saved[0], "--check"])
            output.echo(f"to submit it: write the card {card} beside it, then {command}")
    if drawn:
        output.echo(f"drew {', '.join(Path(path).name for path in drawn)} in {Path(drawn[0]).parent}")
