"""Flags of a board: what the checks of models, cards and scores found, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grb.evaluator.board import CLEAN, Board, Run
from grb.evaluator.claims import Claim
from grb.evaluator.score_checks import UNRANKED, check_scores
from grb.pipeline.study import StudyInfo

RANDOM = "rnd"


def is_unranked(run: Run) -> bool:
    """Whether a check of the model took the rank of its defense."""
    return any(flag["name"] in UNRANKED for flag in run.metadata.get("flags", ()))


def found_flags(runs: list[Run]) -> Iterator[str]:
    """What the checks of the models found: for each defense every kind once, with the number of its scores."""
    scores: dict[str, set[str]] = {}
    first: dict[tuple[str, str], tuple[str, set[str]]] = {}
    for run in runs:
        scores.setdefault(run.defense, set()).add(run.metadata["score"])
        for flag in run.metadata.get("flags", ()):
            first.setdefault((run.defense, flag["name"]), (flag["message"], set()))[1].add(run.metadata["score"])
    for (defense, name), (sentence, keys) in first.items():
        where = "" if name not in UNRANKED else f"; without a rank, in {len(keys)} of {len(scores[defense])} scores"
        yield f"{defense}: {name}: {sentence}{where}"


def invalid_flags(runs: list[Run]) -> Iterator[str]:
    """Which defenses give NaN."""
    worst: dict[str, Run] = {}
    for run in runs:
        if run.metadata.get("nan", 0) > (worst[run.defense].metadata["nan"] if run.defense in worst else 0):
            worst[run.defense] = run
    for defense, run in worst.items():
        of = "" if run.correct is None else f" of {len(run.correct)}"
        yield f"{defense} gives NaN for up to {run.metadata['nan']}{of} targets; they count as wrong"


def card_flags(info: StudyInfo, claims: tuple[Claim, ...]) -> Iterator[str]:
    """What the cards of submissions admit, and what they claim that was not found here."""
    for label, card in info.cards.items():
        if card.get("unreliable"):
            yield f"{label} is unreliable: {str(card['unreliable'])[:200]}"
    yield from (claim.message() for claim in claims if claim.differs)


def score_flags(board: Board, targets: Mapping[str, int]) -> Iterator[str]:
    """A sentence for every pair of scores that do not fit together, see :func:`grb.evaluator.check_scores`."""
    for name in board.difficulties:
        for defense in board.defenses:
            cells = [cell for attack in board.attacks if (cell := board.cell(attack, defense, name)) is not None]
            scores = {cell.attack: cell.values for cell in cells}
            whites = [board.cell(attack, defense, name, white_box=True) for attack in board.white_box]
            clean, random = (scores.pop(each, None) for each in (CLEAN, RANDOM))
            flags = check_scores(
                clean=clean,
                random=random,
                transfer=scores,
                white_box={cell.attack: cell.values for cell in whites if cell is not None},
                num_targets=targets.get(name),
                where=f"{defense}, {name}",
                metric=board.metric,
            )
            yield from map(str, flags)
