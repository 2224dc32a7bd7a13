"""``grb attack --targets``: some test nodes are attacked and scored, and what happens to the others is told beside them.

Jobs of a store know the difficulties of a dataset and no other choice of targets, so that these attacks are run here and kept
nowhere but in the file of ``--output``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb.cli import options, output
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.cli.attack import Roles
    from grb.dataset import Dataset
    from grb.threat import Threat

SUFFIX = ".npz"


def check(difficulties: str | None, figures: Path | None, store: Path | None) -> None:
    """Refuse what does not go with targets of one's own."""
    if difficulties not in (None, "full"):
        raise DataError(f"--difficulty is {difficulties}, but --targets chooses the nodes; leave one of them out")
    if figures is not None or store is not None:
        name = "--figures" if figures is not None else "--store"
        raise DataError(f"{name} does not go with --targets, whose attacks are kept in --output alone; leave it out")


def narrowed(dataset: Dataset, targets: str, roles: Roles, labels: str) -> Dataset:
    """The dataset with the targets that ``--targets`` names or declares as its only test nodes."""
    from grb.attack.targets import declared_targets

    model = None if roles.model is None else roles.files[roles.model][0]
    chosen = declared_targets(targets, dataset, model, labels=labels)  # type: ignore[arg-type]
    return dataset.with_targets(options.chosen_targets(targets) if chosen is None else chosen)


def attack_targets(
    roles: Roles,
    specs: Sequence[Any],
    threats: Mapping[tuple[str, str], Threat],
    whole: Dataset,
    narrowed: Dataset,
    seeds: Sequence[int],
    *,
    labels: str,
    knowledge: str,
    written: Path | None,
) -> dict[str, Any]:
    """Run every attack on the targets and score all victims, targets and other test nodes apart; as JSON values.

    Args:
        roles: Who lends the gradients and who is scored.
        specs: Attacks with their settings.
        threats: Limits by attack and difficulty.
        whole: The dataset.
        narrowed: The same with the targets as its only test nodes.
        seeds: Random seeds.
        labels: ``predicted`` or ``true``.
        knowledge: What the attacker knows.
        written: Where edits are kept.
    """
    from grb.api import evaluate, run_attack, train
    from grb.evaluator.targeted import score_targets

    source: Any = None
    if roles.model is not None:
        source = roles.files[roles.model][0]
    elif roles.surrogate is not None:
        source = train(roles.surrogate, whole)
    victims = {file.stem: roles.files[file][0] for file in roles.victims or roles.files}
    if not victims and source is not None:
        victims = {"surrogate": source}
    ids = narrowed.index_test
    clean = {name: evaluate(model, whole, targets=ids) for name, model in victims.items()}
    runs = []
    for spec in specs:
        threat = threats[spec.name, "full"]
        for seed in seeds:
            found = run_attack(
                spec.name,
                source,
                narrowed,
                threat=threat,
                knowledge=knowledge if source is not None else "none",  # type: ignore[arg-type]
                labels=labels,  # type: ignore[arg-type]
                seed=seed,
                **spec.params,
            )
            saved = _saved(found, spec.name, seed, written, whole, labels)
            rows = []
            for name, model in victims.items():
                after = evaluate(model, whole, found, targets=ids)
                rows.append({"victim": name, "clean": dict(clean[name]), "attacked": dict(after)})
                if whole.labels.dim() == 1 and whole.task == "node":
                    rows[-1]["by_degree"] = score_targets(model, whole, ids, found).to_dict()["bands"]
            runs.append(
                {
                    "attack": spec.name,
                    "seed": seed,
                    "budget": dict(found.budget),
                    "threat": threat.to_dict(),
                    "victims": rows,
                    "cpu_seconds": round(found.cpu_seconds, 3),
                    "notes": list(found.notes),
                    "saved": saved,
                }
            )
            output.echo(f"{spec.name} seed {seed}: done" + (f", {saved}" if saved else ""))
    return {"targets": len(ids), "others": len(whole.index_test) - len(ids), "runs": runs}


def _saved(found: Any, attack: str, seed: int, written: Path | None, dataset: Dataset, labels: str) -> str | None:
    if written is None:
        return None
    path = written if options.is_one_file(written, SUFFIX) else written / f"{attack}-targets-seed{seed}{SUFFIX}"
    meta = {"dataset": dataset.name, "fingerprint": dataset.fingerprint(), "attack": attack, "seed": seed}
    meta |= {"labels": labels} if labels != "predicted" else {}
    return str(found.edit.save(path, **meta))


def show(result: Mapping[str, Any], title: str) -> None:
    """The table of targets and others, before and after."""
    rows = [
        [
            run["attack"],
            run["seed"],
            row["victim"],
            *(
                f"{100 * row[when][whose]:.2f}"
                for whose in ("targets", "others")
                if whose in row["clean"]
                for when in ("clean", "attacked")
            ),
            ", ".join(f"{name} {value:g}" for name, value in run["budget"].items() if value),
        ]
        for run in result["runs"]
        for row in run["victims"]
    ]
    others = ["others", "attacked"] if result["others"] else []
    header = ["attack", "seed", "victim", "targets", "attacked", *others, "budget used"]
    output.table(f"{result['targets']} targets of {title}", header, rows, numbers=header[3:-1])
    listed = [
        [run["attack"], run["seed"], row["victim"], _degrees(band), band["targets"], f"{100 * band['share']:.2f}"]
        for run in result["runs"]
        for row in run["victims"]
        for band in row.get("by_degree", ())
        if band["targets"]
    ]
    if listed:
        header = ["attack", "seed", "victim", "degree", "targets", "misclassified"]
        output.table("Targets by their degree", header, listed, numbers=header[3:])


def _degrees(band: Mapping[str, Any]) -> str:
    low, high = band["low"], band["high"]
    if high is None:
        return f"{low} or more"
    return str(low) if low == high else f"{low} to {high}"
