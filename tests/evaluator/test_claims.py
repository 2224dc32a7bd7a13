from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

from grb.evaluator.board import CLEAN, Board, Run, board_from_runs
from grb.evaluator.claims import Claim, compare_claims

ATTACK, DEFENSE = "mine (submitted)", "shield (submitted)"


def board(values: dict[tuple[str, str, str], list[float]]) -> Board:
    runs = [
        Run(attack, defense, "full", number, 0, score, 0.1, knowledge)  # type: ignore[arg-type]
        for (attack, defense, knowledge), scores in values.items()
        for number, score in enumerate(scores)
    ]
    return board_from_runs(runs, dataset="d", scenario="injection", difficulties=("full",))


def claims(made: Board, label: str, targets: int = 800, **card: Any) -> tuple[Claim, ...]:
    return compare_claims(made, {label: card}, {"full": targets})


def test_an_attacks_claim_is_compared_with_the_cell_of_the_same_defense() -> None:
    made = board({(ATTACK, "gcn", "transfer"): [0.5], (ATTACK, "mlp", "transfer"): [0.7]})
    first, second = claims(made, ATTACK, kind="attack", mode="full", reported={"GCN": 0.51, "mlp": 0.6})
    assert (first.against, first.claimed, first.found, first.differs) == ("gcn", 0.51, 0.5, False)
    assert (second.against, second.found, second.differs) == ("mlp", 0.7, True)
    assert second.message().startswith("mine (submitted) claims 60.0 % for mlp (full), but 70.0 % was measured (95 %")


def test_one_run_has_the_interval_of_its_targets() -> None:
    made = board({(ATTACK, "gcn", "transfer"): [0.25]})
    (claim,) = claims(made, ATTACK, 400, kind="attack", reported={"gcn": 0.25})
    wilson = stats.binomtest(100, 400).proportion_ci(method="wilson")
    assert (claim.low, claim.high) == pytest.approx((wilson.low, wilson.high), abs=1e-5)


def test_three_runs_have_students_interval_and_two_have_not() -> None:
    scores = [0.50, 0.52, 0.54]
    made = board({("pgd", DEFENSE, "transfer"): scores, (CLEAN, DEFENSE, "none"): [0.8]})
    (claim,) = claims(made, DEFENSE, kind="defense", reported={"pgd": 0.58})
    low, high = stats.t.interval(0.95, 2, 0.52, stats.sem(scores))
    assert (claim.low, claim.high) == pytest.approx((low, high)) and claim.differs
    two = board({("pgd", DEFENSE, "transfer"): [0.45, 0.55], (CLEAN, DEFENSE, "none"): [0.8]})
    # Student's interval of two would reach from 0 to 1
    assert claims(two, DEFENSE, kind="defense", reported={"pgd": 0.6})[0].differs


def test_equal_runs_leave_room_for_rounding_only() -> None:
    made = board({("pgd", DEFENSE, "transfer"): [0.5, 0.5, 0.5]})
    near, far = (claims(made, DEFENSE, kind="defense", reported={"pgd": value})[0] for value in (0.5015, 0.503))
    assert (near.differs, far.differs) == (False, True)


def test_a_defense_may_claim_by_difficulty_and_for_attacks_on_itself() -> None:
    made = board({("pgd", DEFENSE, "transfer"): [0.6], ("pgd", DEFENSE, "white-box"): [0.2]})
    reported = {"pgd": {"easy": 0.3, "full": 0.6}, "pgd (white-box)": 0.55, "tdgia": 0.5}
    easy, full, white, other = claims(made, DEFENSE, kind="defense", mode="full", reported=reported)
    assert easy.found is None and not easy.differs  # easy targets were not measured
    assert (full.found, full.differs) == (0.6, False)
    assert (white.against, white.found, white.differs) == ("pgd (white-box)", 0.2, True)
    assert other.found is None and other.against == "tdgia"


@pytest.mark.parametrize("reported", [None, [1], {"gcn": "x"}, {"gcn": 7}, {"gcn": {"full": None}}])
def test_a_card_of_a_store_from_anywhere_claims_nothing_that_is_no_fraction(reported: Any) -> None:
    assert claims(board({(ATTACK, "gcn", "transfer"): [0.5]}), ATTACK, kind="attack", reported=reported) == ()


def test_claims_survive_the_json_of_a_board() -> None:
    made = board({(ATTACK, "gcn", "transfer"): [0.5]})
    from dataclasses import replace

    whole = replace(made, claims=claims(made, ATTACK, kind="attack", reported={"gcn": 0.9, "gat": 0.1}))
    assert Board.from_dict(whole.to_dict()) == whole
