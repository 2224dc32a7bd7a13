"""Boards as headers and rows of text, for a terminal or a page of Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grb.errors import UnknownName
from grb.evaluator.board import CLEAN, Board, Cell, Estimate, estimate_of
from grb.leaderboard.text import distinct, sanitize
from grb.leaderboard.vouching import Vouching

SUMMARIES = {
    "worst_case": "worst case",
    "certified": "certified",
    "certified_1": "certified at 1",
    "certified_5": "certified at 5",
    "certified_10": "certified at 10",
    "clean": "clean",
    "worst_case_predicted": "worst case (predicted)",
    "weighted": "weighted",
    "average": "average",
    "three_min": "3-min",
    "worst_graph": "worst graph",
    "worst_node": "worst node",
    "white_box": "white-box",
}
"""Summaries of a defense and their labels."""
STRENGTHS = {"weighted": "weighted", "average": "average", "three_max": "3-max"}
"""Summaries of an attack; the lower, the stronger."""
VIEWS = {
    "score": "{metric} (%)",
    "drop": "{metric} lost to the attack (points)",
    "changed": "predictions changed (%)",
    "difference": "{metric} here minus the paper's (points)",
}
"""What the cells of a table can show besides the metrics of a board."""
CLAIMS = ("claimed", "re-evaluated")
MEASURED_BY = "measured by"


@dataclass(frozen=True)
class Table:
    """A title, headers and rows of text."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are set to the right: all but the first and who measured."""
        return tuple(name for name in self.headers[1:] if name != MEASURED_BY)


def chosen_difficulty(board: Board, difficulty: str | None) -> str:
    """A difficulty of the board, its last if none is asked for; also by its first letter as in the paper."""
    if difficulty is None:
        return board.difficulties[-1]
    wanted = [own for own in board.difficulties if difficulty.lower() in (own, own[:1])]
    if not wanted:
        raise UnknownName(
            "difficulty", difficulty, board.difficulties, advice=f"This board has {', '.join(board.difficulties)}."
        )
    return wanted[0]


def check_metric(metric: str, boards: Sequence[Board]) -> None:
    """Refuse what no board shows: neither one of :data:`VIEWS` nor a metric that was computed."""
    known = [*VIEWS, *dict.fromkeys(name for board in boards for name in (board.metric, *_others(board)))]
    if metric not in known:
        raise UnknownName("metric", metric, known, advice=f"Allowed: {', '.join(known)}.")


def _others(board: Board) -> list[str]:
    """Metrics that do not rank."""
    return list(dict.fromkeys(name for cell in board.cells for name in cell.metrics))


def drops(board: Board) -> dict[tuple[str, str, str, bool], Estimate]:
    """Points lost to every attack by (attack, defense, difficulty, white box): each run against its own victim's clean score.

    Cells whose victims are unknown are left out, unless there is only one clean value to compare with.
    """
    found = {}
    for cell in board.cells:
        clean = board.cell(CLEAN, cell.defense, cell.difficulty)
        if cell.attack == CLEAN or clean is None:
            continue
        losses = _losses(cell, clean)
        if losses:
            found[cell.attack, cell.defense, cell.difficulty, cell.knowledge == "white-box"] = estimate_of(losses)
    return found


def _losses(cell: Cell, clean: Cell) -> dict[tuple[int, int], float]:
    before = {metadata.get("victim"): value for metadata, value in zip(clean.metadata, clean.values)}
    victims = [metadata.get("victim") for metadata in cell.metadata]
    if len(clean.values) == 1:
        return {(0, place): clean.values[0] - value for place, value in enumerate(cell.values)}
    if len(victims) != len(cell.values) or None in before or not set(victims) <= set(before):
        return {}
    numbers = {victim: number for number, victim in enumerate(before)}
    return {
        (numbers[victim], place): before[victim] - value
        for place, (victim, value) in enumerate(zip(victims, cell.values))
    }


def metric_value(board: Board, cell: Cell, metric: str, losses: Mapping[Any, Estimate]) -> Estimate | None:
    """What a cell shows of one view or metric; None where it says nothing."""
    if metric in ("score", board.metric):
        return cell.score
    if metric == "changed":
        return cell.changed if cell.attack != CLEAN else None
    if metric == "drop":
        return losses.get((cell.attack, cell.defense, cell.difficulty, cell.knowledge == "white-box"))
    if metric == "difference":
        return None if cell.paper is None else _shifted(cell.score, -cell.paper[0] / 100)
    return cell.metrics.get(metric)


def _shifted(value: Estimate, by: float) -> Estimate:
    low, high = (None if end is None else end + by for end in (value.low, value.high))
    return Estimate(value.mean + by, value.std, low, high, value.n)


def costs(board: Board) -> dict[tuple[str, str, bool], float]:
    """CPU seconds of one run of every attack by (attack, difficulty, white box): the mean over its runs, each counted once."""
    runs: dict[tuple[str, str, bool], dict[Any, float]] = defaultdict(dict)
    for cell in board.cells:
        for place, metadata in enumerate(cell.metadata):
            seconds = metadata.get("attack_seconds")
            if isinstance(seconds, int | float) and seconds > 0:  # a submission need not say what it took
                run = metadata.get("attack", (cell.defense, place))
                runs[cell.attack, cell.difficulty, cell.knowledge == "white-box"][run] = float(seconds)
    return {key: sum(own.values()) / len(own) for key, own in runs.items()}


def percent(value: Estimate | None, sign: str = "±", *, digits: int = 1, signed: bool = False) -> str:
    """Mean and std over runs in per cent; a dash for nothing.

    >>> percent(Estimate(0.8123, 0.0123, None, None, 10)), percent(Estimate(0.5, 0, None, None, 1)), percent(None)
    ('81.2 ±1.2', '50.0', '-')
    """
    if value is None:
        return "-"
    mean = f"{100 * value.mean:{'+' if signed else ''}.{digits}f}"
    return mean if value.n == 1 else f"{mean} {sign}{100 * value.std:.{digits}f}"


def rank_text(places: tuple[int, int] | None) -> str:
    """A place, or the best and the worst that the interval allows.

    >>> rank_text((1, 3)), rank_text((2, 2))
    ('1-3', '2')
    """
    if places is None:
        return "-"
    low, high = places
    return str(low) if low == high else f"{low}-{high}"


def summaries_of(board: Board) -> dict[str, str]:
    """Summaries that a board has and their labels, the one that ranks first."""
    held = {name for own in board.by_defense.values() for values in own.values() for name in values}
    ordered = [board.rank_by, *(name for name in SUMMARIES if name != board.rank_by)]
    return {name: SUMMARIES[name] for name in ordered if name in held or name == board.rank_by}


def leads(summary: str, board: Board) -> bool:
    """Whether a summary stands in the short table of the page: what ranks, and what bounds it from both sides."""
    measured = {name for own in board.by_defense.values() for values in own.values() for name in values}
    worst = next((name for name in ("worst_case", "white_box", "worst_graph") if name in measured), "")
    return summary in {"clean", "weighted", "certified", worst}


def heading(board: Board, difficulty: str) -> str:
    """Title and difficulty of a board, and that its data is made up where it is."""
    title = sanitize(board.meta.get("title") or f"{board.scenario} on {board.dataset}", 120)
    return f"{title}, {difficulty}" + (" [synthetic data]" if board.meta.get("synthetic") else "")


def summary_table(board: Board, difficulty: str | None = None, *, sign: str = "±") -> Table:
    """Defenses by rank: the paper's summaries, the worst case over attacks and the white-box attack, claims, who measured."""
    difficulty = chosen_difficulty(board, difficulty)
    own, vouching = board.by_defense.get(difficulty, {}), Vouching.of(board, difficulty)
    claims = CLAIMS if any(defense in vouching.claims for defense in board.defenses) else ()
    used = [name for name in summaries_of(board) if any(name in values for values in own.values())]
    names = dict(zip(board.defenses, distinct(board.defenses)))
    rows = tuple(
        (
            names[defense],
            rank_text(board.ranks.get(difficulty, {}).get(defense)),
            *(percent(own[defense].get(name), sign) for name in used),
            *(vouching.texts(defense) if claims else ()),
            vouching.defenses[defense],
        )
        for defense in ordered(board, difficulty)
        if defense in own
    )
    headers = ("defense", "rank", *(SUMMARIES[name] for name in used), *claims, MEASURED_BY)
    return Table(heading(board, difficulty), headers, rows)


def ordered(board: Board, difficulty: str) -> list[str]:
    """Defenses with the best of the summary that ranks on this difficulty first; those without one last."""
    own = board.by_defense.get(difficulty, {})
    means = {name: values[board.rank_by].mean for name, values in own.items() if board.rank_by in values}
    return sorted(board.defenses, key=lambda name: -means.get(name, -1.0))


def heat_table(board: Board, difficulty: str | None = None, metric: str = "score", *, sign: str = "±") -> Table:
    """Defenses x attacks in one metric; white-box attacks in columns of their own behind the others."""
    difficulty = chosen_difficulty(board, difficulty)
    losses = drops(board) if metric == "drop" else {}
    columns = [(attack, False) for attack in board.attacks] + [(attack, True) for attack in board.white_box]
    labels = distinct(f"{attack} (white-box)" if white else attack for attack, white in columns)

    def text(defense: str, attack: str, white: bool) -> str:
        cell = board.cell(attack, defense, difficulty, white_box=white)
        value = None if cell is None else metric_value(board, cell, metric, losses)
        return percent(value, sign, signed=metric == "difference")

    names = dict(zip(board.defenses, distinct(board.defenses)))
    rows = tuple(
        (names[defense], *(text(defense, attack, white) for attack, white in columns))
        for defense in ordered(board, difficulty)
    )
    title = VIEWS.get(metric, f"{metric} (%)").format(metric=board.metric)
    return Table(f"{title}, {difficulty}", ("defense", *labels), rows)


def attack_table(board: Board, difficulty: str | None = None, *, sign: str = "±") -> Table:
    """Attacks, the strongest first: accuracy that they leave, beside what one run of them costs, claims, who measured."""
    difficulty = chosen_difficulty(board, difficulty)
    own, spent = board.by_attack.get(difficulty, {}), costs(board)
    vouching = Vouching.of(board, difficulty)
    claims = CLAIMS if any(attack in vouching.claims for attack in board.attacks) else ()
    names = dict(zip(board.attacks, distinct(board.attacks)))
    # the board puts the strongest first on its last difficulty; the order may be another one here
    listed = sorted(
        (attack for attack in board.attacks if attack in own),
        key=lambda attack: (attack == CLEAN, own[attack]["weighted"].mean if "weighted" in own[attack] else 2.0),
    )
    rows = [
        (
            names[attack],
            *(percent(own[attack].get(name), sign) for name in STRENGTHS),
            _seconds(spent.get((attack, difficulty, False))),
            *(vouching.texts(attack) if claims else ()),
            vouching.attacks[attack],
        )
        for attack in listed
    ]
    headers = ("attack", *(f"{word} {board.metric}" for word in STRENGTHS.values()), "CPU s", *claims, MEASURED_BY)
    return Table(f"attacks, {difficulty}", headers, tuple(rows))


def paper_table(board: Board, difficulty: str | None = None, *, sign: str = "±") -> Table | None:
    """The paper's accuracy, ours and the difference of every cell that the paper has; None if it has none."""
    difficulty = chosen_difficulty(board, difficulty)
    attacks, defenses = (dict(zip(names, distinct(names))) for names in (board.attacks, board.defenses))
    rows = []
    for attack in board.attacks:
        for defense in ordered(board, difficulty):
            cell = board.cell(attack, defense, difficulty)
            if cell is not None and cell.paper is not None:
                mean, std = cell.paper
                rows.append(
                    (
                        attacks[attack],
                        defenses[defense],
                        f"{mean:.2f} {sign}{std:.2f}",
                        percent(cell.score, sign, digits=2),
                        f"{100 * cell.score.mean - mean:+.2f}",
                    )
                )
    if not rows:
        return None
    title = f"vs. paper, {difficulty}"
    if board.meta.get("quick"):
        title += "; quick: fewer repeats and steps than the paper's"
    return Table(title, ("attack", "defense", "paper", "ours", "difference"), tuple(rows))


def claims_table(board: Board, difficulty: str | None = None) -> Table | None:
    """What every submission claims beside what was measured in the same cell; None if nothing is claimed."""
    difficulty = chosen_difficulty(board, difficulty)
    own = [claim for claim in board.claims if claim.difficulty == difficulty]
    if not own:
        return None
    rows = tuple(
        (
            sanitize(claim.entry),
            sanitize(claim.against),
            f"{100 * claim.claimed:.1f}",
            "-" if claim.found is None else f"{100 * claim.found:.1f}",
            "-" if claim.low is None or claim.high is None else f"{100 * claim.low:.1f} to {100 * claim.high:.1f}",
            "not measured" if claim.found is None else "differs" if claim.differs else "agrees",
        )
        for claim in own
    )
    headers = ("submission", "against", *CLAIMS, "95 % interval", "verdict")
    return Table(f"claimed vs. re-evaluated {board.metric} (%), {difficulty}", headers, rows)


def adaptive_table(board: Board, difficulty: str | None = None) -> Table | None:
    """Defenses that were attacked through relaxations, which these are and who declared them; None if there are none."""
    difficulty = chosen_difficulty(board, difficulty)
    found = {
        cell.defense: metadata
        for cell in board.cells
        if cell.difficulty == difficulty
        for metadata in cell.metadata
        if metadata.get("attacked_through")
    }
    if not found:
        return None
    rows = tuple(
        (
            sanitize(defense),
            sanitize(", ".join(map(str, found[defense]["attacked_through"]))),
            sanitize(found[defense]["relaxations_declared_by"]),
        )
        for defense in ordered(board, difficulty)
        if defense in found
    )
    return Table(f"adaptive attacks, {difficulty}", ("defense", "attacked through", "declared by"), rows)


def tables(board: Board, difficulty: str | None = None, metric: str = "score", *, sign: str = "±") -> list[Table]:
    """Everything that a terminal shows of a board."""
    found = [
        summary_table(board, difficulty, sign=sign),
        heat_table(board, difficulty, metric, sign=sign),
        attack_table(board, difficulty, sign=sign),
        paper_table(board, difficulty, sign=sign),
        claims_table(board, difficulty),
        adaptive_table(board, difficulty),
    ]
    return [table for table in found if table is not None]


def sweep_tables(boards: Sequence[Board], difficulty: str | None = None, *, sign: str = "±") -> list[Table]:
    """Boards of a sweep as one table per varied limit: every defense's ranking score, and its rank, at each value."""
    limits: dict[tuple[str, str], list[Board]] = defaultdict(list)
    for board in boards:
        if board.limit is not None:
            limits[str(board.meta.get("recipe")), board.limit[0]].append(board)
    found = []
    for (_, limit), own in limits.items():
        name = chosen_difficulty(own[0], difficulty)
        defenses = list(dict.fromkeys(each for board in own for each in ordered(board, name)))
        rows = tuple(
            (label, *(_ranked(board, defense, name, sign) for board in own))
            for defense, label in zip(defenses, distinct(defenses))
        )
        values = tuple(f"{board.limit[1]:g}" for board in own if board.limit is not None)
        title = f"{SUMMARIES[own[0].rank_by]} {own[0].metric} (rank) by {limit}, {own[0].dataset}, {name}"
        found.append(Table(title, ("defense", *values), rows))
        found += _sweep_heat(own, limit, name, sign)
    return found


def _ranked(board: Board, defense: str, difficulty: str, sign: str) -> str:
    value = board.by_defense.get(difficulty, {}).get(defense, {}).get(board.rank_by)
    places = board.ranks.get(difficulty, {}).get(defense)
    return percent(value, sign) + ("" if places is None else f" ({rank_text(places)})")


def _sweep_heat(boards: Sequence[Board], limit: str, difficulty: str, sign: str) -> list[Table]:
    """Every attack against every defense at each value of a limit, white-box attacks included."""
    columns = dict.fromkeys((attack, False) for board in boards for attack in board.attacks if attack != CLEAN)
    columns |= dict.fromkeys((attack, True) for board in boards for attack in board.white_box)
    rows = []
    for attack, white in columns:
        for defense in ordered(boards[0], difficulty):
            cells = [board.cell(attack, defense, difficulty, white_box=white) for board in boards]
            values = [percent(None if cell is None else cell.score, sign) for cell in cells]
            rows.append((f"{attack} (white-box)" if white else attack, defense, *values))
    heads = ("attack", "defense", *(f"{board.limit[1]:g}" for board in boards if board.limit is not None))
    return [Table(f"{boards[0].metric} (%) by {limit}, {difficulty}", heads, tuple(rows))]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
