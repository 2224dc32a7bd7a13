"""The board against a brute-force one, written with loops."""

from __future__ import annotations

import itertools
import json
import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from grb.errors import DataError, UnknownName
from grb.evaluator.board import CLEAN, Board, Estimate, Ranking, Run, board_from_runs, estimate_of, ranks

TARGETS = 6
# whole boards are slow to draw; `make stress` takes more
CASES = settings() if os.environ.get("HYPOTHESIS_PROFILE") == "stress" else settings(max_examples=60)


def board_of(rows: list[Run], **more: Any) -> Board:
    return board_from_runs(rows, dataset="toy", scenario="injection", difficulties=["easy", "full"], **more)


def row(attack: str, defense: str, score: float, repeat: int = 0, victim: int = 0, **more: Any) -> Run:
    return Run(attack, defense, more.pop("difficulty", "full"), repeat, victim, score, more.pop("changed", 0.0), **more)


# brute force

Key = tuple[str, str, str, int, int]


@st.composite
def measurements(draw: st.DrawFn) -> list[Run]:
    """Attacks x defenses x difficulties x repeats x victims, some of them missing."""
    attacks = ["rnd", "fgsm", "pgd", "tdgia"][: draw(st.integers(0, 4))]
    defenses = ["gcn", "mlp", "gat"][: draw(st.integers(1, 3))]
    difficulties = draw(st.sampled_from([["full"], ["easy", "full"]]))
    repeats, victims = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lost = draw(st.sampled_from([0.0, 0.0, 0.05, 0.4]))
    rows = []
    for attack, defense, difficulty, victim in itertools.product(
        [CLEAN, *attacks], defenses, difficulties, range(victims)
    ):
        for repeat in range(1 if attack == CLEAN else repeats):
            if rng.random() < lost:
                continue
            bits = rng.random(TARGETS) < 0.6
            rows.append(
                Run(
                    attack,
                    defense,
                    difficulty,
                    repeat,
                    victim,
                    float(bits.mean()),
                    float(rng.integers(0, 5) / 4),
                    "none" if attack == CLEAN else "transfer",
                    bits,
                )
            )
    return rows


def weigh(values: list[float], *, low_first: bool) -> float:
    ordered = sorted(values, reverse=not low_first)
    weights = [1 / (place + 1) ** 2 for place in range(len(ordered))]
    return sum(weight * value for weight, value in zip(weights, ordered, strict=True)) / sum(weights)


def brute(rows: list[Run], difficulty: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summaries per run of every defense and of every attack, from a plain dictionary of measurements."""
    found = {(r.attack, r.defense, r.victim, r.repeat): r for r in rows if r.difficulty == difficulty}
    attacks = sorted({key[0] for key in found})
    defenses = sorted({key[1] for key in found})
    runs = sorted({key[2:] for key in found if key[0] != CLEAN}) or sorted({key[2:] for key in found})
    complete = [d for d in defenses if all(any(key[:2] == (a, d) for key in found) for a in attacks)]

    def cell(attack: str, defense: str, run: tuple[int, int]) -> Run | None:
        return found.get((attack, defense, run[0], 0 if attack == CLEAN else run[1]))

    by_defense: dict[str, Any] = {}
    for defense in defenses:
        table: dict[str, dict[tuple[int, int], float]] = {}
        for run in runs if defense in complete else []:
            cells = [cell(attack, defense, run) for attack in attacks]
            if any(each is None for each in cells):
                continue
            values = [each.score for each in cells if each is not None]
            for name, value in {
                "average": sum(values) / len(values),
                "three_min": sum(sorted(values)[:3]) / len(values[:3]),
                "weighted": weigh(values, low_first=True),
            }.items():
                table.setdefault(name, {})[run] = value
        # the worst of a training is over everything that it met, whichever repeat that was
        for victim in {key[2] for key in found if key[1] == defense and defense in complete}:
            met = [each for key, each in found.items() if key[1] == defense and key[2] == victim]
            safe = sum(all(each.correct[t] for each in met) for t in range(TARGETS)) / TARGETS  # type: ignore[index]
            table.setdefault("worst_graph", {})[victim, 0] = min(each.score for each in met)
            table.setdefault("worst_node", {})[victim, 0] = safe
        by_defense[defense] = table
    by_attack: dict[str, Any] = {}
    for attack in attacks:
        table = {}
        own = sorted({key[2:] for key in found if key[0] == attack})
        for run in own:
            cells = [cell(attack, defense, run) for defense in complete]
            if not cells or any(each is None for each in cells):
                continue
            values = [each.score for each in cells if each is not None]
            for name, value in {
                "average": sum(values) / len(values),
                "three_max": sum(sorted(values)[-3:]) / len(values[:3]),
                "weighted": weigh(values, low_first=False),
            }.items():
                table.setdefault(name, {})[run] = value
        by_attack[attack] = table
    return by_defense, by_attack


def expected_value(table: dict[tuple[int, int], float]) -> tuple[float, float, float | None, float | None, int]:
    """Mean and std of all runs; Student's interval over victims, or over repeats if there is but one victim.

    Where every victim met every repeat, edits are shared: an analysis of variance with two crossed effects.
    """
    values = list(table.values())
    mean = sum(values) / len(values)
    std = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    victims = sorted({victim for victim, _ in table})
    sample = values
    if len(victims) > 1:
        sample = [float(np.mean([value for run, value in table.items() if run[0] == victim])) for victim in victims]
    if len(sample) == 1:
        return mean, std, None, None, len(values)
    repeats = sorted({repeat for _, repeat in table})
    if len(victims) > 1 and len(repeats) > 1 and len(table) == len(victims) * len(repeats):
        half = crossed_half(table, victims, repeats, mean)
        return mean, std, mean - half, mean + half, len(values)
    half = stats.t.ppf(0.975, len(sample) - 1) * np.std(sample, ddof=1) / math.sqrt(len(sample))
    centre = sum(sample) / len(sample)
    return mean, std, centre - half, centre + half, len(values)


def crossed_half(table: dict[tuple[int, int], float], victims: list[int], repeats: list[int], mean: float) -> float:
    rows = {v: sum(table[v, r] for r in repeats) / len(repeats) for v in victims}
    columns = {r: sum(table[v, r] for v in victims) / len(victims) for r in repeats}
    many, free = len(table), (len(victims) - 1, len(repeats) - 1)
    of_rows = len(repeats) * sum((rows[v] - mean) ** 2 for v in victims) / free[0]
    of_columns = len(victims) * sum((columns[r] - mean) ** 2 for r in repeats) / free[1]
    left = sum((table[v, r] - rows[v] - columns[r] + mean) ** 2 for v in victims for r in repeats)
    of_rest = left / (free[0] * free[1])
    total = of_rows + of_columns - of_rest
    if total <= of_rows:
        return float(stats.t.ppf(0.975, free[0]) * math.sqrt(of_rows / many))
    spread = of_rows**2 / free[0] + of_columns**2 / free[1] + of_rest**2 / (free[0] * free[1])
    return float(stats.t.ppf(0.975, max(1.0, total**2 / spread)) * math.sqrt(total / many))


def same(value: Estimate, table: dict[tuple[int, int], float]) -> bool:
    found = (value.mean, value.std, value.low, value.high, value.n)
    return all(
        a is b is None or (a is not None and b is not None and math.isclose(a, b, abs_tol=1e-9))
        for a, b in zip(found, expected_value(table), strict=True)
    )


@CASES
@given(measurements())
def test_summaries_are_those_of_a_loop_over_every_run(rows: list[Run]) -> None:
    if not rows:
        return
    made = board_of(rows)
    assert made.difficulties == tuple(
        difficulty for difficulty in ("easy", "full") if any(r.difficulty == difficulty for r in rows)
    )
    for difficulty in made.difficulties:
        for found, wanted in zip(
            (made.by_defense[difficulty], made.by_attack[difficulty]), brute(rows, difficulty), strict=True
        ):
            assert found.keys() == wanted.keys()
            for name, summaries in wanted.items():
                assert found[name].keys() == summaries.keys(), name
                for kind, table in summaries.items():
                    assert same(found[name][kind], table), (name, kind)


@CASES
@given(measurements())
def test_cells_hold_every_measurement_once(rows: list[Run]) -> None:
    if not rows:
        return
    made = board_of(rows)
    assert sum(len(cell.values) for cell in made.cells) == len(rows)
    for cell in made.cells:
        own = {
            (r.victim, r.repeat): r.score
            for r in rows
            if (r.attack, r.defense, r.difficulty) == (cell.attack, cell.defense, cell.difficulty)
        }
        assert cell.values == tuple(own[run] for run in sorted(own)) and same(cell.score, own)
        assert made.cell(cell.attack, cell.defense, cell.difficulty) is cell


@CASES
@given(measurements())
def test_the_order_of_rows_does_not_count_and_a_board_is_json(rows: list[Run]) -> None:
    if not rows:
        return
    made, turned = board_of(rows), board_of(rows[::-1])
    for own, other in zip(_numbers(made), _numbers(turned), strict=True):
        assert own == pytest.approx(other, abs=1e-12)
    assert json.loads(json.dumps(made.to_dict(), allow_nan=False))["format"] == 2


def _numbers(made: Board) -> list[float]:
    """Means of all summaries in one order."""
    sides = (made.by_defense, made.by_attack)
    return [
        value.mean
        for side in sides
        for difficulty in sorted(side)
        for name in sorted(side[difficulty])
        for _, value in sorted(side[difficulty][name].items())
    ]


# by hand


def test_summaries_are_taken_per_repeat_and_then_averaged() -> None:
    """Each attack wins one repeat: the weighted score sees that in both, although both means are 0.5."""
    rows = [
        row("a", "gcn", 0.2, 0),
        row("a", "gcn", 0.8, 1),
        row("b", "gcn", 0.8, 0),
        row("b", "gcn", 0.2, 1),
    ]
    own = board_of(rows).by_defense["full"]["gcn"]
    assert own["worst_graph"].mean == pytest.approx(0.2) and own["worst_graph"].std == pytest.approx(0)
    assert own["weighted"].mean == pytest.approx((0.2 + 0.8 / 4) / 1.25)
    assert own["average"].mean == pytest.approx(0.5)


def test_the_clean_graph_counts_as_one_attack_and_joins_every_repeat() -> None:
    rows = [row(CLEAN, "gcn", 0.9), row("a", "gcn", 0.5, 0), row("a", "gcn", 0.7, 1)]
    own = board_of(rows).by_defense["full"]["gcn"]
    assert own["average"].mean == pytest.approx(((0.9 + 0.5) / 2 + (0.9 + 0.7) / 2) / 2) and own["average"].n == 2


def test_the_worst_case_per_node_is_lower_than_that_per_graph() -> None:
    """Two attacks that each break another half leave nothing."""
    half = np.array([True, False])
    rows = [row("a", "gcn", 0.5, correct=half), row("b", "gcn", 0.5, correct=~half)]
    own = board_of(rows).by_defense["full"]["gcn"]
    assert own["worst_graph"].mean == 0.5 and own["worst_node"].mean == 0.0


@pytest.mark.parametrize("bits", [None, np.array([True])])
def test_without_the_bits_of_every_attack_there_is_no_worst_case_per_node(bits: Any) -> None:
    rows = [row("a", "gcn", 0.5, correct=np.array([True, False])), row("b", "gcn", 0.5, correct=bits)]
    assert "worst_node" not in board_of(rows).by_defense["full"]["gcn"]


def test_white_box_attacks_stand_beside_the_others_and_the_strongest_counts() -> None:
    rows = [
        row("pgd", "gcn", 0.8),
        row("pgd", "gcn", 0.3, knowledge="white-box"),
        row("fgsm", "gcn", 0.4, knowledge="white-box"),
        row("pgd", "mlp", 0.6),
    ]
    made = board_of(rows)
    assert made.white_box == ("fgsm", "pgd") and made.attacks == ("pgd",)
    assert made.by_defense["full"]["gcn"]["white_box"].mean == 0.3
    assert made.by_defense["full"]["gcn"]["average"].mean == 0.8
    assert "white_box" not in made.by_defense["full"]["mlp"]
    adaptive = made.cell("pgd", "gcn", "full", white_box=True)
    assert adaptive is not None and adaptive.values == (0.3,)
    assert made.cell("pgd", "mlp", "full", white_box=True) is None


def test_a_defense_that_did_not_meet_every_attack_gets_no_rank_and_spoils_none() -> None:
    rows = [row(attack, defense, 0.5) for attack in ("a", "b") for defense in ("gcn", "mlp")]
    rows += [row("a", "gat", 0.99)]
    made = board_of(rows)
    assert made.by_defense["full"]["gat"] == {} and set(made.ranks["full"]) == {"gcn", "mlp"}
    assert made.defenses[-1] == "gat"  # without a summary it is last
    # the attack is judged by those that every attack has met
    assert made.by_attack["full"]["a"]["average"].mean == made.by_attack["full"]["b"]["average"].mean == 0.5


def test_attacks_whose_repeats_never_meet_give_no_summary_and_no_error() -> None:
    made = board_of([row("a", "gcn", 0.5, 0), row("b", "gcn", 0.5, 1)])
    assert made.by_defense["full"]["gcn"].keys() == {"worst_graph"} and made.ranks["full"] == {}


def test_published_numbers_stand_beside_transferred_attacks_only() -> None:
    paper = {("pgd", "gcn", "full"): (80.5, 1.5)}
    rows = [
        row("pgd", "gcn", 0.8),
        row("pgd", "gcn", 0.3, knowledge="white-box"),
        row("pgd", "gcn", 0.8, difficulty="easy"),
    ]
    made = board_of(rows, paper=paper)
    assert made.cell("pgd", "gcn", "full").paper == (80.5, 1.5)  # type: ignore[union-attr]
    assert made.cell("pgd", "gcn", "full", white_box=True).paper is None  # type: ignore[union-attr]
    assert made.cell("pgd", "gcn", "easy").paper is None  # type: ignore[union-attr]


def test_the_most_robust_defense_and_the_strongest_attack_come_first() -> None:
    rows = [
        row(attack, defense, base + extra)
        for attack, base in (("weak", 0.5), ("strong", 0.1), (CLEAN, 0.6))
        for defense, extra in (("fragile", 0.0), ("sturdy", 0.3))
    ]
    made = board_of(rows)
    assert made.defenses == ("sturdy", "fragile") and made.attacks == ("strong", "weak", CLEAN)


# intervals and ranks


def test_one_victim_has_an_interval_over_repeats_and_several_over_victims() -> None:
    one = estimate_of({(0, 0): 0.4, (0, 1): 0.6})
    assert (one.mean, one.n) == (pytest.approx(0.5), 2) and one.std == pytest.approx(0.1)
    # t(0.975, 1) = 12.706, standard error 0.1
    assert one.high == pytest.approx(0.5 + 12.706 * 0.1, abs=1e-3)
    shared = estimate_of({(0, 0): 0.4, (0, 1): 0.6, (1, 0): 0.4, (1, 1): 0.6})
    # two trainings under the same two edits know nothing of a third edit, however alike they are
    assert shared.high == pytest.approx(0.5 + 12.706 * 0.1, abs=1e-3)
    several = estimate_of({(0, 0): 0.4, (0, 1): 0.6, (1, 2): 0.4, (1, 3): 0.6})
    assert several.low == several.high == pytest.approx(0.5)  # both victims have the same mean
    assert several.std == pytest.approx(0.1)
    alone = estimate_of({(0, 0): 0.4})
    assert alone == Estimate(0.4, 0.0, None, None, 1)


ENDS = st.tuples(st.integers(0, 10), st.integers(0, 5))


@CASES
@given(st.dictionaries(st.sampled_from("abcde"), ENDS | st.none(), min_size=1))
def test_ranks_are_the_places_in_any_order_that_the_intervals_allow(given: dict[str, tuple[int, int] | None]) -> None:
    """Brute force: go through all orders in which nobody stands behind one whose whole interval lies below his."""
    values = {
        name: Estimate(0.5, 0, None, None, 1) if ends is None else Estimate(0.5, 0, ends[0], ends[0] + ends[1], 5)
        for name, ends in given.items()
    }

    def certainly_below(a: str, b: str) -> bool:
        return None not in (given[a], given[b]) and values[a].high < values[b].low  # type: ignore[operator]

    places: dict[str, set[int]] = {name: set() for name in given}
    for order in itertools.permutations(given):
        if any(certainly_below(a, b) for a, b in itertools.combinations(order, 2)):
            continue
        for place, name in enumerate(order, start=1):
            places[name].add(place)
    assert ranks(values) == {name: (min(own), max(own)) for name, own in places.items()}


def test_no_rank_is_claimed_where_intervals_touch() -> None:
    touching = {"a": Estimate(0.6, 0, 0.5, 0.7, 5), "b": Estimate(0.4, 0, 0.3, 0.5, 5)}
    assert ranks(touching) == {"a": (1, 2), "b": (1, 2)}


# refusals


@pytest.mark.parametrize("bad", [{"score": math.nan}, {"score": -0.1}, {"score": 80.0}, {"changed": math.inf}])
def test_a_share_that_is_none_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(DataError, match=f"{next(iter(bad))} of gcn under a is"):
        board_of([row("a", "gcn", **{"score": 0.5, **bad})])


def test_nothing_measured_is_nothing_to_show() -> None:
    with pytest.raises(DataError, match="nothing to show"):
        board_of([])


def test_a_board_keeps_what_the_reader_should_know() -> None:
    made = board_of([row("a", "gcn", 0.5)], meta={"title": "toy"}, metric="micro-f1", limit=("nodes", 5.0))
    assert made.meta == {"title": "toy"} and made.flags == ()
    assert made.to_dict()["metric"] == "micro-f1" and made.to_dict()["limit"] == ["nodes", 5.0]


def test_other_metrics_have_estimates_of_their_own() -> None:
    """One run lacks recall: an estimate over fewer runs would be another number."""
    rows = [
        row("a", "gcn", 0.5, 0, metrics={"macro-f1": 0.2, "recall:1": 0.1}),
        row("a", "gcn", 0.7, 1, metrics={"macro-f1": 0.4}),
    ]
    cell = board_of(rows).cell("a", "gcn", "full")
    assert cell is not None and set(cell.metrics) == {"macro-f1"}
    assert cell.metrics["macro-f1"].mean == pytest.approx(0.3) and cell.score.mean == pytest.approx(0.6)


# the worst case


def fought(defense: str, score: float, source: str, victim: int = 0, **more: Any) -> Run:
    """A run of the ensemble's edit of a source."""
    more = {"knowledge": "white-box" if source == defense else "transfer", "battery": "auto 1", **more}
    labels = more.get("labels", "predicted")
    return row("auto", defense, score, 0, victim, metadata={"attack": f"{source} {victim} {labels}"}, **more)


def battery(scores: dict[str, dict[str, float]], **more: Any) -> list[Run]:
    """Every defense under the edits of every source."""
    return [fought(defense, value, source, **more) for defense, own in scores.items() for source, value in own.items()]


BOTH = {"a": {"a": 0.5, "b": 0.3}, "b": {"a": 0.6, "b": 0.4}}


def test_the_worst_case_is_the_lowest_of_all_and_ranks() -> None:
    rows = [row("pgd", "a", 0.9), row("pgd", "b", 0.7), *battery(BOTH)]
    made = board_of(rows)
    own = {name: values["worst_case"].mean for name, values in made.by_defense["full"].items()}
    assert own == {"a": 0.3, "b": 0.4} and made.rank_by == "worst_case" and made.defenses == ("b", "a")
    assert board_of(rows, ranking=Ranking("weighted")).defenses == ("a", "b")


def test_the_ensembles_edits_count_in_the_worst_case_alone() -> None:
    plain = [row("pgd", "a", 0.9), row("pgd", "b", 0.7)]
    made, without = board_of([*plain, *battery(BOTH)]), board_of(plain)
    for name in ("weighted", "average", "three_min"):
        assert made.by_defense["full"]["a"][name] == without.by_defense["full"]["a"][name]
    assert made.by_attack == without.by_attack and made.attacks == ("pgd", "transfer pool")
    pooled = made.cell("transfer pool", "a", "full")
    assert pooled is not None and pooled.values == (0.3,)


def test_a_defense_that_missed_an_edit_of_the_battery_has_no_worst_case() -> None:
    rows = [row("pgd", "a", 0.9), row("pgd", "b", 0.7), *battery(BOTH)]
    made = board_of([each for each in rows if not (each.defense == "a" and each.score == 0.3)])
    assert "worst_case" not in made.by_defense["full"]["a"] and "a" not in made.ranks["full"]
    assert made.by_defense["full"]["b"]["worst_case"].mean == 0.4


def test_a_defense_that_the_ensemble_did_not_attack_itself_has_no_worst_case() -> None:
    """Meeting the edits of others is not the same effort."""
    rows = [*battery({"a": {"a": 0.5}, "b": {"a": 0.6}}), row("pgd", "a", 0.9), row("pgd", "b", 0.7)]
    made = board_of(rows)
    assert "worst_case" not in made.by_defense["full"]["b"] and "worst_case" in made.by_defense["full"]["a"]


def test_edits_that_aim_at_true_labels_lower_the_worst_case_but_not_that_of_predicted_ones() -> None:
    true = {"a": {"a": 0.2, "b": 0.8}, "b": {"a": 0.8, "b": 0.1}}
    made = board_of([row("pgd", "a", 0.9), row("pgd", "b", 0.7), *battery(BOTH), *battery(true, labels="true")])
    own = made.by_defense["full"]["a"]
    assert own["worst_case"].mean == 0.2 and own["worst_case_predicted"].mean == 0.3
    assert own["white_box"].mean == 0.5
    assert made.cell("auto (true labels)", "a", "full", white_box=True) is not None


def test_trainings_meet_the_edits_of_their_own_number() -> None:
    rows = [*battery(BOTH), *battery({"a": {"a": 0.1}}, victim=1), row("pgd", "a", 0.9), row("pgd", "b", 0.7)]
    own = board_of(rows).by_defense["full"]
    assert own["a"]["worst_case"].mean == pytest.approx(0.2) and own["a"]["worst_case"].n == 2
    assert own["b"]["worst_case"].n == 1


def test_a_submitted_edit_is_part_of_the_battery() -> None:
    sent = row("mine", "a", 0.05, is_submission=True, metadata={"attack": "sent"})
    made = board_of([row("pgd", "a", 0.9), row("pgd", "b", 0.7), *battery(BOTH), sent])
    assert made.by_defense["full"]["a"]["worst_case"].mean == 0.05
    assert "worst_case" not in made.by_defense["full"]["b"]


def test_a_board_without_the_ensemble_is_ranked_by_the_papers_score_and_says_so() -> None:
    rows = [row("pgd", "a", 0.9)]
    assert board_of(rows).rank_by == "weighted"
    with pytest.raises(DataError, match="no worst case was measured here"):
        board_of(rows, ranking=Ranking("worst_case"))
    with pytest.raises(DataError, match="ranked by worst_case or weighted, got 'best'"):
        board_of(rows, ranking=Ranking("best"))


def test_a_promoted_submission_counts_in_the_weighted_score_of_every_repeat() -> None:
    rows = [row("pgd", "a", 0.8, 0), row("pgd", "a", 0.6, 1), row(CLEAN, "a", 0.9)]
    sent = row("mine", "a", 0.1, is_submission=True, metadata={"attack": "sent"})
    before, after = (board_of([*rows, sent], ranking=Ranking(promoted=names)) for names in ((), ("mine",)))
    own = after.by_defense["full"]["a"]["weighted"]
    assert own.n == 2
    assert own.mean == pytest.approx(sum(weigh([0.9, value, 0.1], low_first=True) for value in (0.8, 0.6)) / 2)
    assert before.by_defense["full"]["a"]["weighted"].mean > own.mean and "mine" in after.attacks
    with pytest.raises(UnknownName, match="no submitted attack 'pgd'"):
        board_of([*rows, sent], ranking=Ranking(promoted=("pgd",)))
