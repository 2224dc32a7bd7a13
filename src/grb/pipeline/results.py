"""From records to boards: which scores belong together, what each cell shows, and what the checks of scores find.

Nothing here loads a dataset, plans a study or builds a model: the records say it all.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from grb.catalogue import is_third_party
from grb.errors import DataError
from grb.evaluator.board import BY_DEFAULT, CLEAN, Board, Ranking, Run, board_from_runs
from grb.evaluator.certified import CertifiedOutcome, check_bracket, summaries
from grb.evaluator.claims import compare_claims
from grb.evaluator.measurement import ENSEMBLES, Measurement, MethodInfo, Outcome
from grb.pipeline.attestation import UNSIGNED, verify_attestations, with_signers
from grb.pipeline.board_flags import card_flags, found_flags, invalid_flags, is_unranked, score_flags
from grb.pipeline.entry import newest_entries, with_versions
from grb.pipeline.gate import content_of
from grb.pipeline.record import Record
from grb.pipeline.store import Store
from grb.pipeline.study import Part, Study, StudyInfo

Measurements = Mapping[str, Measurement]
Certified = Mapping[str, CertifiedOutcome]


def boards(
    store: Store,
    recipes: Iterable[str] | None = None,
    *,
    trusted: Iterable[Any] = (),
    ranking: Ranking = BY_DEFAULT,
) -> list[Board]:
    """The boards of a store: of every study in it, or of the named ones.

    A study whose scores another study of the store shows as well is left out unless it is named.

    Args:
        store: The store.
        recipes: Names of the studies to show; all if None.
        trusted: Public keys (:func:`grb.pipeline.attestation.read_public_key`) whose attestations say who measured a score.
        ranking: What ranks, and which submitted attacks count like ours.
    """
    signed = verify_attestations(store, trusted)
    return build_boards(store.records(), recipes, where=str(store.path), signer_of=signed.signer_of, ranking=ranking)


def build_boards(
    records: Iterable[Record],
    recipes: Iterable[str] | None = None,
    *,
    where: str = "this",
    signer_of: Callable[[str], str] = lambda key: "",
    ranking: Ranking = BY_DEFAULT,
) -> list[Board]:
    """The boards that some records make.

    Args:
        records: Scores, and the studies that say which of them belong together. Scores that no study names stand on boards
            of their own, by dataset, scenario and objective.
        recipes: Names of the studies to show; all if None.
        where: What to call the source in a refusal.
        signer_of: From the key of a score to the name of who vouches for it; empty if nobody does.
        ranking: What ranks, and which submitted attacks count like ours.
    """
    studies, measurements, certified, dates = _read(records)
    check_bracket(certified, measurements)
    measurements, replaced = newest_entries(measurements)
    if not measurements:
        raise DataError(f"{where} has no scores; `grb reproduce synth-cora --store {where}` makes some")
    named = None if recipes is None else list(recipes)
    chosen = _distinct(studies, measurements) if named is None else _named(studies, measurements, named, where)
    if named is None:
        known = {key for info in studies for key in info.scores}
        others = _told_apart({key: each for key, each in measurements.items() if key not in known})
        chosen += list(_unnamed(others))
        measurements |= others
    made = [board for info in chosen for board in study_boards(info, measurements, ranking, certified)]
    return [with_versions(with_signers(with_dates(board, dates), signer_of), replaced) for board in made]


def with_dates(board: Board, dates: Mapping[str, str]) -> Board:
    """Return a board with the day on which each of its scores was measured, and the last of these days."""
    own = {run["score"]: dates[run["score"]] for cell in board.cells for run in cell.metadata if run["score"] in dates}
    if not own:
        return board
    cells = [
        replace(
            each,
            metadata=tuple({**run, "date": own[run["score"]]} if run["score"] in own else run for run in each.metadata),
        )
        for each in board.cells
    ]
    return replace(board, cells=tuple(cells), meta={**board.meta, "date": max(own.values())})


def score_rows(store: Store, recipe: str) -> list[dict[str, Any]]:
    """Every score of the studies of a name as a flat row, for tables; a score that two boards share is there for both."""
    studies, measurements, _, _ = _read(store.records())
    found = []
    for info in _named(studies, measurements, [recipe], str(store.path)):
        for part in info.parts:
            limit = {} if part.limit is None else {"limit": part.limit[0], "limit_value": part.limit[1]}
            ranking = next((measurements[key].metric for key in part.scores if key in measurements), "accuracy")
            found += [
                {
                    "dataset": info.dataset.name,
                    "scenario": info.scenario,
                    **limit,
                    "attack": run.attack,
                    "knowledge": run.knowledge,
                    "labels": run.labels,
                    "defense": run.defense,
                    "difficulty": run.difficulty,
                    "repeat": run.repeat,
                    "victim": run.victim,
                    ranking: round(run.score, 6),
                    **{name: round(value, 6) for name, value in run.metrics.items()},
                    "changed": round(run.changed, 6),
                    "key": run.metadata["score"][:16],
                    "attack_cpu_seconds": run.metadata.get("attack_seconds"),
                }
                for run in _runs(info, part, measurements)
            ]
    return found


def study_boards(
    info: StudyInfo, measurements: Measurements, ranking: Ranking = BY_DEFAULT, certified: Certified | None = None
) -> list[Board]:
    """The boards of one study from the measurements that are there; parts without any are left out."""
    parts = [part for part in info.parts if any(key in measurements for key in part.scores)]
    swept = [part for part in parts if any(key in measurements and measurements[key].attack for key in part.scores)]
    return [_board(info, part, measurements, ranking, certified or {}) for part in swept or parts[:1]]


def studies(store: Store) -> list[StudyInfo]:
    """The studies whose scores a store has, the largest first."""
    found, measurements, _, _ = _read(record for record in store.records() if record.job.kind in ("study", "score"))
    sizes = [(len(_attacked(info, measurements)), info) for info in found]
    return [info for size, info in sorted(sizes, key=lambda each: -each[0]) if size]


def build_board(study: Study, store: Store) -> list[Board]:
    """The boards of a study as they stand in a store: one, or one for every value of a swept limit."""
    assert study.info is not None, "a profiling has no board"
    wanted = (*study.info.scores, *study.info.certificates)
    _, found, certified, dates = _read(store.read(key) for key in wanted if store.has(key))
    if not found:
        raise DataError(f"{store.path} has no scores of '{study.info.name}' yet; `grb run` makes them")
    check_bracket(certified, found)
    return [with_dates(board, dates) for board in study_boards(study.info, found, certified=certified)]


def _read(
    records: Iterable[Record],
) -> tuple[list[StudyInfo], dict[str, Measurement], dict[str, CertifiedOutcome], dict[str, str]]:
    """Studies, scores, certificates, and on which day every score was measured, as far as the records say it."""
    dates: dict[str, str] = {}
    studies: list[StudyInfo] = []
    measurements: dict[str, Measurement] = {}
    certified: dict[str, CertifiedOutcome] = {}
    for record in records:
        if record.job.kind == "study":
            studies.append(content_of(record))
        elif record.job.kind == "score":
            measurements[record.key] = content_of(record)
            if day := record.provenance.get("date"):
                dates[record.key] = str(day)
        elif record.job.kind == "certify":
            certified[record.key] = content_of(record)
    return sorted(studies, key=lambda info: (info.name, info.title)), measurements, certified, dates


def _attacked(info: StudyInfo, measurements: Measurements) -> set[str]:
    return {key for key in info.scores if key in measurements and measurements[key].attack is not None}


def _distinct(studies: list[StudyInfo], measurements: Measurements) -> list[StudyInfo]:
    """Without studies whose scores under attack a larger study shows as well: studies on one dataset share work."""
    found = {number: _attacked(info, measurements) for number, info in enumerate(studies)}
    order = sorted(found, key=lambda number: (-len(found[number]), studies[number].quick, number))
    kept, seen = set(), set[str]()
    for number in order:
        if found[number] - seen:
            kept.add(number)
            seen |= found[number]
    clean_only = [info for info in studies if any(key in measurements for key in info.scores)]
    return [studies[number] for number in sorted(kept)] or clean_only[:1]


def _named(studies: list[StudyInfo], measurements: Measurements, names: list[str], where: str) -> list[StudyInfo]:
    chosen: list[StudyInfo] = []
    for name in names:
        own = [info for info in studies if info.name == name and any(key in measurements for key in info.scores)]
        if not own:
            known = ", ".join(sorted({info.name for info in studies})) or "none with a name"
            raise DataError(f"{where} has no scores of recipe '{name}'; it has {known}")
        chosen += _distinct(own, measurements)
    return chosen


def _unnamed(measurements: Measurements) -> Iterator[StudyInfo]:
    """Scores without a study, by what makes them comparable."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for key, each in measurements.items():
        if each.attack is not None:
            scenario, mode, validation = each.attack.scenario, each.defense.train_mode, each.defense.validation
            aim = repr(each.dataset.targets)
            group = (
                each.dataset.fingerprint,
                scenario,
                each.objective,
                mode,
                validation,
                each.threads,
                each.device,
                aim,
            )
            groups.setdefault(group, []).append(key)
    for (fingerprint, scenario, objective, mode, _, threads, device, aim), keys in groups.items():
        victims = {measurements[key].defense.method.key for key in keys}
        clean = [
            key
            for key, each in measurements.items()
            if each.attack is None
            and (each.dataset.fingerprint, each.threads, each.device) == (fingerprint, threads, device)
            and repr(each.dataset.targets) == aim
            and (each.defense.method.key in victims or objective == "poisoning")
        ]
        first = measurements[keys[0]]
        found = {name: None for key in keys for name in measurements[key].outcomes}
        attacks = [each.attack for key in keys if (each := measurements[key]).attack is not None]
        sources = {each.surrogate.label() for each in attacks if each.surrogate and each.knowledge == "transfer"}
        yield StudyInfo(
            name=f"{first.dataset.name}-{scenario}",
            title=f"{scenario.capitalize()} on {first.dataset.name}",
            dataset=first.dataset,
            scenario=scenario,
            difficulties=tuple(found),
            parts=(Part((*clean, *keys)),),
            objective=objective,
            train_mode=mode,
            surrogates=tuple(sorted(sources)),
        )


def _told_apart(measurements: Measurements) -> dict[str, Measurement]:
    """Scores without a study, with the version and the limits in the name of an attack that has several of them."""
    seen: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for each in measurements.values():
        for name in each.outcomes if each.attack is not None else ():
            values = seen.setdefault(_column(each, name), {})
            for limit, value in _distinctions(each).items():
                values.setdefault(limit, set()).add(value)
    several = {
        (column[:-1], limit) for column, values in seen.items() for limit, found in values.items() if len(found) > 1
    }
    return {key: _renamed(each, several) for key, each in measurements.items()}


def _column(found: Measurement, difficulty: str) -> tuple[str, ...]:
    assert found.attack is not None
    fingerprint, attack = found.dataset.fingerprint, found.attack
    return fingerprint, attack.scenario, attack.method.label(), attack.knowledge, difficulty


def _distinctions(found: Measurement) -> dict[str, str]:
    assert found.attack is not None
    limits = {name: f"{name}={value}" for name, value in sorted(found.attack.threat.items())}
    return {"version": f"version {found.attack.method.version}", **limits}


def _renamed(found: Measurement, several: set[tuple[tuple[str, ...], str]]) -> Measurement:
    if found.attack is None:
        return found
    column, method = _column(found, "")[:-1], found.attack.method
    differing = [value for name, value in _distinctions(found).items() if (column, name) in several]
    title = ", ".join([method.label(), *differing]) if differing else method.title
    return replace(found, attack=replace(found.attack, method=replace(method, title=title)))


# one board


def _board(info: StudyInfo, part: Part, measurements: Measurements, ranking: Ranking, certified: Certified) -> Board:
    runs = list(_runs(info, part, measurements))
    there = [measurements[key] for key in part.scores if key in measurements]
    aims = [each.dataset.targets for each in there if each.dataset.targets is not None]
    made = board_from_runs(
        runs,
        dataset=info.dataset.name,
        scenario=info.scenario,
        difficulties=info.difficulties,
        paper=paper_table(info.paper) if info.paper else None,
        metric=there[0].metric,
        objective=info.objective,
        limit=part.limit,
        unranked={run.defense for run in runs if is_unranked(run)},
        ranking=ranking,
        meta={
            "title": _title(info, part),
            "recipe": info.name,
            "quick": info.quick,
            "synthetic": info.dataset.synthetic,
            "task": info.dataset.task,
            "reference": info.dataset.reference,
            "fingerprint": info.dataset.fingerprint,
            "train_mode": info.train_mode,
            "repeats": info.repeats,
            "victims": info.victims,
            "measured": len(runs),
            "planned": part.planned or len(runs),
            **({"cards": dict(info.cards)} if info.cards else {}),
            **({"targets": aims[0].to_dict()} if aims else {}),
        },
    )
    made = _with_certificates(made, info, [certified[key] for key in part.certificates if key in certified])
    targets = {name: each.targets for found in there for name, each in found.outcomes.items()}
    claims = () if aims else compare_claims(made, info.cards, targets)  # which are about all test nodes
    flags = [*found_flags(runs), *invalid_flags(runs), *card_flags(info, claims), *score_flags(made, targets)]
    return replace(made, flags=tuple(flags), claims=claims)


def _title(info: StudyInfo, part: Part) -> str:
    """The heading of a board: the study's, the value of a swept limit, and how its targets were chosen."""
    swept = "" if part.limit is None else f", {part.limit[0]} {part.limit[1]:g}"
    return info.title + swept + ("" if info.dataset.targets is None else f", targets {info.dataset.targets.label}")


def _with_certificates(board: Board, info: StudyInfo, found: list[CertifiedOutcome]) -> Board:
    """The board with the certified accuracy among the summaries of its defenses, and which model each is about."""
    if not found:
        return board
    values = summaries(found, info.training)
    by_defense = {
        difficulty: {name: {**own, **values.get((name, difficulty), {})} for name, own in sides.items()}
        for difficulty, sides in board.by_defense.items()
    }
    about = [
        {
            "defense": each.defense.method.label(info.training),
            "difficulty": each.mode,
            "seed": each.defense.method.seed,
            "certificate": each.certificate,
            "model": each.model,
            "certified": each.accuracy(),
            "own_model": each.own_model,
            "unit": each.unit,
            "budget": each.budget,
            "curve": {str(budget): value for budget, value in each.curve().items()},
            "samples": each.samples,
            "confidence": each.confidence,
            "refusal": each.refusal,
        }
        for each in found
    ]
    return replace(board, by_defense=by_defense, meta={**board.meta, "certificates": about})


def _runs(info: StudyInfo, part: Part, measurements: Measurements) -> Iterator[Run]:
    for key in part.scores:
        found = measurements.get(key)
        if found is None:
            continue
        metadata = _metadata(key, found, info)
        for name, outcome in found.outcomes.items():
            if name in info.difficulties:
                yield _run(info, found, name, outcome, metadata)


def _run(info: StudyInfo, found: Measurement, name: str, outcome: Outcome, metadata: Mapping[str, Any]) -> Run:
    attack = found.attack
    return Run(
        attack=CLEAN if attack is None else column_name(found, info),
        defense=found.defense.method.label(info.training),
        difficulty=name,
        repeat=0 if attack is None or attack.method.is_submission else attack.method.seed,
        victim=found.defense.method.seed if found.dataset.split is None else found.dataset.split,
        score=outcome.values[found.metric],
        changed=outcome.changed,
        knowledge="none" if attack is None else attack.knowledge,
        correct=outcome.bits(),
        metadata={**metadata, "nan": outcome.invalid} if outcome.invalid else metadata,
        is_submission=attack is not None and attack.method.is_submission,
        metrics={metric: value for metric, value in outcome.values.items() if metric != found.metric},
        labels="predicted" if attack is None else attack.labels,
        battery="" if attack is None else _battery(attack.method),
    )


def _battery(method: MethodInfo) -> str:
    """Name and version of the ensemble, if that is what was run."""
    return f"{method.name} {method.version}" if method.name in ENSEMBLES.values() else ""


def column_name(found: Measurement, info: StudyInfo) -> str:
    """The name of an attack's column: its label, and its surrogate where the study has several."""
    assert found.attack is not None
    label = found.attack.method.label(info.attack)
    source = found.attack.surrogate
    if source is None or found.attack.knowledge == "white-box" or len(info.surrogates) < 2:
        return label
    return f"{label} from {source.label(info.training)}"


def _metadata(key: str, found: Measurement, info: StudyInfo) -> dict[str, Any]:
    """What a reader asks of a cell: which jobs, which seeds, what it took."""
    victim, attack = found.defense, found.attack
    shown: dict[str, Any] = {
        "score": key,
        "victim": victim.method.key,
        "victim_seed": victim.method.seed,
        "victim_seconds": victim.method.cpu_seconds,
        "victim_spec": {"name": victim.method.name, "params": dict(victim.method.params)},
        "parameters": victim.parameters,
        "threads": found.threads,
        "repeat": 0 if attack is None else attack.method.seed,
        "measured_by": UNSIGNED,
    }
    if attack is not None and attack.method.key:
        surrogate = attack.surrogate
        shown |= {
            "attack": attack.method.key,
            "attack_seed": attack.method.seed,
            "attack_seconds": attack.method.cpu_seconds,
            "attack_spec": {"name": attack.method.name, "params": dict(attack.method.params)},
            "attack_megabytes": attack.peak_megabytes,
            "attack_steps": attack.steps,
            "edit_bytes": attack.edit_bytes,
            "budget": dict(attack.budget),
            "threat": dict(attack.threat),
            "preset": attack.preset,
            "surrogate": "" if surrogate is None else surrogate.label(info.training),
            "notes": list(attack.notes),
            "passes": dict(attack.passes),
            **({"trials": [dict(trial) for trial in attack.trials]} if attack.trials else {}),
            **({} if attack.queries is None else {"queries": attack.queries}),
        }
        through = sorted({str(trial["relaxation"]) for trial in attack.trials if trial.get("relaxation")})
        if through:
            declared = "its author" if is_third_party("model", victim.method.name) else "grb"
            shown |= {"attacked_through": through, "relaxations_declared_by": declared}
    if found.flags:
        shown["flags"] = [flag.to_dict() for flag in found.flags]
    return shown


@cache
def paper_table(dataset: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Accuracy and std in per cent of Tables 13 to 17 of the GRB paper by (attack, defense, difficulty)."""
    text = resources.files("grb").joinpath("presets").joinpath("leaderboards.csv").read_text("utf-8")
    letters = dict(zip("EMHF", ("easy", "medium", "hard", "full"), strict=True))
    lines = (line for line in io.StringIO(text) if not line.startswith("#"))
    table = {
        (row["attack"].lower(), row["defense"].lower(), letters[row["difficulty"]]): (
            float(row["accuracy"]),
            float(row["std"] or 0),
        )
        for row in csv.DictReader(lines)
        if row["dataset"] == dataset and row["difficulty"] in letters
    }
    if not table:
        raise DataError(f"the paper has no leaderboard of '{dataset}'")
    return table
