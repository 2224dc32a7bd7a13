"""Figures that are drawn from boards: rankings, difficulty, limits, gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grb.errors import DataError
from grb.evaluator.board import CLEAN, POOL, Estimate, Run, board_from_runs
from grb.metric import weighted
from grb.visualise import (
    difficulty,
    draw_attacks,
    draw_difficulty,
    draw_gains,
    draw_models,
    draw_rankings,
    gains,
    ranking,
    save,
    sweeps,
)
from grb.visualise.budget import Series, Sweep
from grb.visualise.rankings import is_vanilla, worst_of
from grb.visualise.style import error_bar
from made_boards import made_board


def board_of(values, *, difficulties=("full",)):
    """A board from {(attack, defense, difficulty): [accuracy of every repeat]}."""
    rows = [
        Run(attack, defense, difficulty, repeat, 0, accuracy, 0.0, "none" if attack == CLEAN else "transfer")
        for (attack, defense, difficulty), own in values.items()
        for repeat, accuracy in enumerate(own)
    ]
    return board_from_runs(rows, dataset="d", scenario="injection", difficulties=difficulties)


@pytest.mark.parametrize(
    ("name", "vanilla"),
    [
        ("gcn", True),
        ("mlp", True),
        ("gcn(hidden=8)", True),
        ("gcn+ln", False),
        ("gatguard", False),
        ("mine:Model", False),
    ],
)
def test_vanilla_models_have_no_defense_in_or_behind_their_name(name, vanilla):
    assert is_vanilla(name) is vanilla


def test_a_ranking_holds_one_kind_of_model_the_best_first():
    board = made_board(("gcn", "gat+ln", "gat", "r-gcn"), ("fgsm", "rnd"))
    vanilla, defended = (ranking(board, "full", kind) for kind in ("vanilla", "defended"))
    assert set(vanilla.names) == {"gcn", "gat"} and set(defended.names) == {"gat+ln", "r-gcn"}
    assert [value.mean for value in vanilla.values] == sorted((value.mean for value in vanilla.values), reverse=True)
    everyone = ranking(board, "full")
    assert len(everyone.names) == 4
    assert all(1 <= low <= high <= 2 for low, high in vanilla.places)
    assert ranking(board, "full", top=1).names == everyone.names[:1]


def test_a_ranking_is_by_the_papers_weighted_accuracy():
    board = board_of({("a", "gcn", "full"): [0.5], ("b", "gcn", "full"): [0.9]})
    (value,) = ranking(board, "full").values
    assert value.mean == pytest.approx(weighted([0.5, 0.9], side="defense")) == pytest.approx(0.8 * 0.5 + 0.2 * 0.9)


def test_a_ranking_of_nobody_is_refused():
    with pytest.raises(DataError, match="has no defended models on 'full'"):
        ranking(made_board(("gcn",)), "full", "defended")


def test_the_panels_of_a_ranking_show_its_numbers(tmp_path):
    board = made_board()
    data = [ranking(board, difficulty) for difficulty in board.difficulties]
    figure = draw_rankings(data, title="ranks")
    assert [axes.get_title() for axes in figure.axes] == [f"made-up, {difficulty}" for difficulty in board.difficulties]
    labels = [label.get_text().split()[0] for label in figure.axes[3].get_yticklabels()]
    assert labels == list(data[3].names)
    drawn = [float(line.get_xdata()[0]) for line in figure.axes[3].lines if line.get_marker() == "D"]
    assert drawn == pytest.approx([100 * value.mean for value in data[3].values])
    assert save(figure, tmp_path / "ranks.png", dpi=60).stat().st_size > 1000


def test_what_an_attack_takes_by_difficulty():
    board = board_of(
        {
            (CLEAN, "gcn", "easy"): [0.8],
            (CLEAN, "mlp", "easy"): [0.6],
            ("fgsm", "gcn", "easy"): [0.4, 0.5],
            ("fgsm", "mlp", "easy"): [0.6, 0.6],
            (CLEAN, "gcn", "full"): [0.9],
            (CLEAN, "mlp", "full"): [0.7],
            ("fgsm", "gcn", "full"): [0.7, 0.7],
            ("fgsm", "mlp", "full"): [0.7, 0.7],
        },
        difficulties=("easy", "full"),
    )
    data = difficulty(board)
    assert data.difficulties == ("easy", "full") and list(data.attacks) == ["fgsm"]
    assert data.attacks["fgsm"]["easy"].mean == pytest.approx(0.525)
    assert data.clean["easy"].mean == pytest.approx(0.7)
    assert data.lost("fgsm") == pytest.approx({"easy": 17.5, "full": 10.0})
    left, right = draw_difficulty(data).axes
    assert left.get_legend_handles_labels()[1][-2:] == ["clean graph", "worst edit met"]
    # all targets together are a point beside the line through the difficulties
    assert [list(line.get_ydata()) for line in right.lines] == [pytest.approx([17.5]), pytest.approx([10.0])]


def test_one_difficulty_has_no_effect_to_show():
    with pytest.raises(DataError, match="one difficulty only"):
        difficulty(made_board(difficulties=("full",)))


def swept():
    boards = []
    for limit, value in (("nodes", 20), ("nodes", 10), ("edges_per_node", 5)):
        values = {(CLEAN, name, "full"): [0.9] for name in ("gcn", "mlp")}
        for attack, loss in (("fgsm", 0.02), ("rnd", 0.01)):
            for place, name in enumerate(("gcn", "mlp")):
                hit = 0.9 - loss * value * (1 - place)
                values[attack, name, "full"] = [hit, hit - 0.02]
        boards.append(replace(board_of(values), limit=(limit, float(value))))
    return boards


def test_a_sweep_is_the_boards_of_one_limit_in_the_order_of_its_values():
    nodes, edges = sorted(sweeps(swept()), key=lambda sweep: sweep.limit, reverse=True)
    assert (nodes.limit, edges.limit) == ("nodes", "edges_per_node")
    # the mean over both attacks, run by run: fgsm 0.7 and 0.68, rnd 0.8 and 0.78
    value = nodes.models["gcn"][10.0]
    assert (value.mean, value.std, value.n) == (pytest.approx(0.74), pytest.approx(0.01), 2)
    assert nodes.models["gcn"][20.0].mean == pytest.approx((0.5 + 0.48 + 0.7 + 0.68) / 4)
    # the mean over both models
    assert nodes.attacks["fgsm"][20.0].mean == pytest.approx((0.5 + 0.9) / 2 - 0.01)
    assert list(nodes.models["gcn"]) == [10.0, 20.0] and list(edges.models["gcn"]) == [5.0]
    assert nodes.clean == {"gcn": 0.9, "mlp": 0.9}


def test_sweeps_are_drawn_with_one_panel_per_limit():
    data = sweeps(swept())
    for draw, names in ((draw_models, {"gcn", "mlp"}), (draw_attacks, {"fgsm", "rnd", "worst edit met"})):
        figure = draw(data)
        assert {axes.get_xlabel() for axes in figure.axes} == {"nodes", "edges per node"}
        assert set(figure.axes[0].get_legend_handles_labels()[1]) == names


def test_a_sweep_with_the_battery_shows_the_worst_case_and_keeps_it_out_of_the_means():
    runs = []
    for name, other, own, met in (("gcn", "mlp", 0.2, 0.5), ("mlp", "gcn", 0.6, 0.6)):
        common = {"difficulty": "full", "repeat": 0, "victim": 0, "changed": 0.1, "defense": name}
        runs.append(Run("none", score=0.9, knowledge="none", **common))
        runs.append(Run("fgsm", score=0.6, metadata={"attack": "fgsm"}, **common))
        edits = {"white-box": (name, own), "transfer": (other, met)}
        runs += [
            Run("auto", score=score, knowledge=knowledge, metadata={"attack": made}, battery="auto 1", **common)
            for knowledge, (made, score) in edits.items()
        ]
    board = board_from_runs(
        runs, dataset="d", scenario="injection", difficulties=["full"], limit=("nodes", 10.0), meta={}
    )
    (sweep,) = sweeps([board])
    assert POOL in board.attacks and sweep.battery and sweep.models["gcn"][10.0].mean == pytest.approx(0.6)
    assert list(sweep.attacks) == ["fgsm"] and sweep.lowest == {10.0: pytest.approx(0.4)}
    figure = draw_attacks([sweep])
    assert set(figure.axes[0].get_legend_handles_labels()[1]) == {"fgsm", "worst case"}


def test_an_attack_that_lacks_a_point_does_not_bend_the_mean():
    board = board_of({("fgsm", "gcn", "full"): [0.5], ("rnd", "mlp", "full"): [0.9]})
    (sweep,) = sweeps([replace(board, limit=("nodes", 10.0))])
    assert sweep.models == {}


def test_a_board_without_a_sweep_says_so():
    with pytest.raises(DataError, match="varies no limit"):
        sweeps([made_board()])


def test_gains_pair_models_with_their_defended_selves():
    board = board_of(
        {
            ("fgsm", "gcn", "full"): [0.5],
            ("fgsm", "gcn+ln", "full"): [0.7],
            ("fgsm", "gat", "full"): [0.6],
            ("fgsm", "gat+ln", "full"): [0.55],
            ("fgsm", "gin+at", "full"): [0.9],
        }
    )
    data = gains(board, "ln")
    assert [(gain.model, round(gain.points, 9)) for gain in data.models] == [("gcn", 20.0), ("gat", -5.0)]
    with pytest.raises(DataError, match=r"without and with '\+at'"):
        gains(board, "at")
    figure = draw_gains(data)
    assert [text.get_text() for text in figure.axes[0].texts] == ["+20.0, +20.0", "-5.0, -5.0"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["gcn", "gat"]


def test_error_bars_are_intervals_within_shares():
    assert error_bar(Estimate(0.5, 0.1, None, None, 1)) is None
    below, above = error_bar(Estimate(0.9, 0.1, 0.6, 1.3, 2), 100)
    assert np.allclose([below, above], [[30], [10]])


def test_figures_show_the_worst_case_beside_the_mean():
    """Of the battery where it ran, else under the worst edit that a defense met."""
    board = made_board()

    data = ranking(board, "full")
    for name, worst in zip(data.names, data.worst):
        assert worst == board.by_defense["full"][name]["worst_graph"]
    assert worst_of({"worst_case": data.values[0], "worst_graph": data.values[1]}) is data.values[0]
    assert worst_of({}) is None
    named = {axes.get_legend_handles_labels()[1][-1] for axes in draw_rankings([data]).axes}
    assert named == {"worst edit met"}, "the worst case is a word for the whole battery"
    named = draw_rankings([replace(data, battery=True)]).axes[0].get_legend_handles_labels()[1]
    assert named == ["clean", "transferred attacks, weighted", "worst case"]
    found = difficulty(board)
    lowest = [own["worst_graph"].mean for own in board.by_defense["easy"].values()]
    assert found.worst["easy"] == pytest.approx(sum(lowest) / len(lowest))
    assert all(found.worst[name] <= mean.mean for own in found.attacks.values() for name, mean in own.items())


def test_a_model_looks_the_same_in_all_panels_of_a_sweep_whatever_its_rank_there() -> None:
    def series(**means: float) -> Series:
        return {
            name: {at: Estimate(mean / at, 0.0, None, None, 1) for at in (1.0, 2.0)} for name, mean in means.items()
        }

    nodes = Sweep("d", "full", "nodes", series(gcn=0.9, mlp=0.6), {}, {}, worst={"mlp": {1.0: 0.5}})
    edges = Sweep("d", "full", "edges_per_node", series(mlp=0.8, gcn=0.7, late=0.1), {}, {})
    figure = draw_models([nodes, edges])
    colours = [{bars.get_label(): bars.lines[0].get_color() for bars in axes.containers} for axes in figure.axes]
    assert colours[0]["gcn"] == colours[1]["gcn"] != colours[0]["mlp"] == colours[1]["mlp"]
    assert colours[1]["late"] not in colours[0].values()
    shown = {
        text.get_text(): mark for legend in figure.legends for text, mark in zip(legend.texts, legend.legend_handles)
    }
    assert list(shown) == ["gcn", "mlp", "late"]
