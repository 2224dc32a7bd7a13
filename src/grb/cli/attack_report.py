"""What ``grb attack`` keeps and tells: one run, its files and figures, the summary over repeats, the table."""

from __future__ import annotations

import json
import math
import re
import shlex
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from grb.cli import output
from grb.cli.eval import dataset_title
from grb.cli.options import is_one_file

if TYPE_CHECKING:
    from torch import Tensor

    from grb.attack.base import AttackResult
    from grb.dataset import Dataset

SUFFIX = ".npz"


@dataclass(frozen=True)
class Run:
    """How one attack went; ``error`` says why it, or writing its files, failed. Scores are fractions."""

    attack: str
    version: int | None
    params: dict[str, Any]
    mode: str
    seed: int
    threat: dict[str, Any]
    knowledge: str
    victims: list[dict[str, Any]] = field(default_factory=list)
    budget: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    seconds: float | None = None
    cpu_seconds: float | None = None
    peak_megabytes: float | None = None
    notes: list[str] = field(default_factory=list)
    saved: str | None = None
    figures: list[str] = field(default_factory=list)
    error: str | None = None

    def message(self) -> str:
        words = f"{self.attack} {self.mode} seed {self.seed}"
        if self.victims:
            scores = ", ".join(
                f"{own['victim']} {100 * own['clean']:.2f} -> {100 * own['attacked']:.2f}" for own in self.victims
            )
            words += f": {scores}, {self.seconds:.1f} s"
        return words if self.error is None else f"{words}: FAILED: {self.error}"


def attack_params(attack: object) -> dict[str, Any]:
    """The constructor's arguments as plain values; a function by its name. Limits are in the threat model, not here."""
    if not is_dataclass(attack) or isinstance(attack, type):
        return {}
    values = {each.name: getattr(attack, each.name) for each in fields(attack)}
    return {
        name: value if isinstance(value, bool | int | float | str) else getattr(value, "__name__", str(value))
        for name, value in values.items()
        if value is not None
    }


def _stem(run: Run, dataset: str) -> str:
    parts = [re.sub(r"[^\w.+-]", "-", part) for part in (run.attack, dataset, run.mode)]
    return "-".join([*parts, f"seed{run.seed}"])


def write(save: Path, run: Run, result: AttackResult, header: dict[str, Any]) -> Path:
    """The edit, and beside it the record with the history of loss and accuracy."""
    from grb.atomic import write_atomic

    dataset = header["dataset"]
    place = save if is_one_file(save, SUFFIX) else save / f"{_stem(run, dataset['name'])}{SUFFIX}"
    facts = asdict(run)
    told = {key: facts[key] for key in ("attack", "version", "params", "mode", "seed", "threat", "knowledge")}
    versions = {key: header[key] for key in ("grb", "torch", "threads", "attacked")}
    result.edit.save(place, **told, **versions, dataset=dataset["name"], fingerprint=dataset["fingerprint"])
    for key in ("saved", "figures", "error"):
        del facts[key]
    trace = {
        # what a diverged attack reports is no number in JSON
        "loss": [step.loss if math.isfinite(step.loss) else None for step in result.steps],
        "clean_labels_kept": [step.accuracy for step in result.steps],
    }
    text = json.dumps({**header, **facts, "edit": place.name, "trace": trace}, indent=1, allow_nan=False)

    def put(stream: IO[bytes]) -> None:
        stream.write(text.encode() + b"\n")

    write_atomic(place.with_suffix(".json"), put)
    return place


def draw(directory: Path, run: Run, result: AttackResult, dataset: Dataset, before: Tensor, after: Tensor) -> list[str]:
    """The loss curve, and what the first victim says around one target; ``before`` and ``after`` are its logits."""
    from grb import visualise

    place = directory / _stem(run, dataset.name)
    title = f"{run.attack} on {dataset_title(dataset)}, {run.mode}"
    drawn = []
    if result.steps:
        curve = visualise.curve(result.steps)
        drawn.append(visualise.save(visualise.draw_curve(curve, title=title), f"{place}-curve.png"))
    if dataset.labels.dim() == 1:
        said = before.argmax(1), after.argmax(1)
        target = visualise.telling_target(dataset.graph, result.edit, dataset.test_ids(run.mode), *said)
        around = visualise.neighbourhood(dataset.graph, result.edit, target, *said)
        figure = visualise.draw_neighbourhood(around, title=f"{title}, {run.victims[0]['victim']}")
        drawn.append(visualise.save(figure, f"{place}-neighbourhood.png"))
    return [str(path) for path in drawn]


def summaries(runs: list[Run]) -> list[dict[str, Any]]:
    """Every attack, difficulty and victim over its repeats."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.attack, run.mode), []).append(run)
    return [
        row
        for (attack, mode), own in groups.items()
        for row in _summary({"attack": attack, "mode": mode, "failed": sum(run.error is not None for run in own)}, own)
    ]


def _summary(begun: dict[str, Any], runs: list[Run]) -> list[dict[str, Any]]:
    from grb.metric import mean_std

    done = [run for run in runs if run.victims]
    if not done:
        return [begun]

    def over(values: list[float]) -> dict[str, float | None]:
        found = mean_std(values)
        return {"mean": float(found.mean), "std": float(found.std) if len(values) > 1 else None}

    costs = {
        "repeats": len(done),
        "budget": {key: max(run.budget[key] for run in done) for key in done[0].budget},
        **{key: sum(getattr(run, key) for run in done) / len(done) for key in ("seconds", "cpu_seconds")},
        "peak_megabytes": max(run.peak_megabytes or 0.0 for run in done),
    }
    rows = []
    for place, victim in enumerate(done[0].victims):
        own = [run.victims[place] for run in done]
        scores = {
            "clean": victim["clean"],
            "attacked": over([each["attacked"] for each in own]),
            "drop": victim["clean"] - sum(each["attacked"] for each in own) / len(own),
            "changed": over([each["changed"] for each in own]),
        }
        rows.append({**begun, "victim": victim["victim"], "model": victim["model"], **scores, **costs})
    return rows


def show(result: dict[str, Any], title: str, seeds: int, total: int) -> None:
    failed = any(row["failed"] for row in result["summary"])
    heads = [
        "attack",
        "mode",
        "victim",
        "clean",
        "attacked",
        "drop",
        "changed",
        "budget",
        "seconds",
        "CPU s",
        "peak MB",
    ]
    rows = [
        [row["attack"], row["mode"], *_cells(row), *([f"{row['failed']} of {seeds}"] if failed else [])]
        for row in result["summary"]
    ]
    several = f", mean {output.plus_minus()} std of {seeds} repeats" if seeds > 1 else ""
    if result["interrupted"]:
        several = f", interrupted after {len(result['runs'])} of {total} runs"
    about = result["attacked"]
    how = {
        "white-box": "white-box",
        "transfer": f"transfer from {about['model']}" if about else "",
        "none": "without a model",
    }[result["knowledge"]]
    title = f"{title}, {how}: {result['metric']} in %{several}"
    output.table(title, [*heads, *(["failed"] if failed else [])], rows, numbers=[*heads[3:7], *heads[8:], "failed"])


def _cells(row: dict[str, Any]) -> list[str | None]:
    if "victim" not in row:
        return [None] * 9
    budget = ", ".join(
        f"{value:g} {key.replace('_', ' ')}" for key, value in row["budget"].items() if "most" not in key
    )
    return [
        row["victim"],
        f"{100 * row['clean']:.2f}",
        _score(row["attacked"]),
        f"{100 * row['drop']:.2f}",
        _score(row["changed"]),
        budget,
        f"{row['seconds']:.1f}",
        f"{row['cpu_seconds']:.1f}",
        f"{row['peak_megabytes']:.0f}",
    ]


def _score(score: dict[str, float | None]) -> str:
    mean, std = score["mean"], score["std"]
    assert mean is not None
    return f"{100 * mean:.2f}" + ("" if std is None else f"{output.plus_minus()}{100 * std:.2f}")


def say_files(runs: list[Run], *, submittable: bool) -> None:
    """Which files were written, and how to go on with an edit."""
    saved = [run.saved for run in runs if run.saved]
    drawn = [path for run in runs for path in run.figures]
    if len(saved) > 1:
        output.say(f"saved {len(saved)} edits and their records in {Path(saved[0]).parent}")
    elif saved:
        output.say(f"saved {saved[0]} and its record {Path(saved[0]).with_suffix('.json').name}")
        if submittable:
            card, command = Path(saved[0]).with_suffix(".yaml").name, shlex.join(["grb", "submit", "check", saved[0]])
            output.say(f"to submit it: write the card {card} beside it, then {command}")
    if drawn:
        output.say(f"drew {', '.join(Path(path).name for path in drawn)} in {Path(drawn[0]).parent}")
