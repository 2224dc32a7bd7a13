"""Accuracy over queries: points of a sweep, from the cells of attacks that ask."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grb.errors import DataError
from grb.pipeline import Limits, Recipe, Spec, Store, boards, plan_study, run
from grb.visualise import draw_query_curves, query_curves
from made_boards import made_board


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    recipe = Recipe(
        "asking",
        "synth-tiny",
        scenario="modification",
        defenses=(Spec("gcn"), Spec("mlp")),
        attacks=(Spec("rnd-edges"),),
        white_box=(Spec("random-search"),),
        modes=("full",),
        repeats=1,
        training={"epochs": 3},
        sweep={"queries": [3, 20]},
    )
    store, study = Store(tmp_path_factory.mktemp("asked") / "store"), plan_study(recipe)
    assert run(study, store, limits=Limits(workers=0)).complete
    return list(boards(store))


def test_a_curve_begins_at_the_clean_graph_and_has_a_point_for_every_number(swept: list[object]) -> None:
    curves = query_curves(swept)  # type: ignore[arg-type]
    assert {curve.defense for curve in curves} == {"gcn", "mlp"}
    for curve in curves:
        assert list(curve.points) == [0, 3, 20] and curve.attack.startswith("random-search")
    (deaf,) = [curve for curve in curves if curve.defense == "mlp"]
    assert len({value.mean for value in deaf.points.values()}) == 1
    (heard,) = [curve for curve in curves if curve.defense == "gcn"]
    assert heard.points[20].mean < heard.points[0].mean


def test_curves_are_drawn_by_attack_and_defense(swept: list[object], tmp_path: Path) -> None:
    figure = draw_query_curves(query_curves(swept))  # type: ignore[arg-type]
    (axes,) = figure.axes
    assert axes.get_xlabel() == "queries" and set(axes.get_legend_handles_labels()[1]) == {"gcn", "mlp"}
    figure.savefig(tmp_path / "queries.png")
    assert (tmp_path / "queries.png").stat().st_size > 1000


def test_boards_without_attacks_by_queries_say_so() -> None:
    for board in (
        made_board(),
        replace(made_board(), limit=("nodes", 3.0)),
        replace(made_board(), limit=("queries", 3.0)),
    ):
        with pytest.raises(DataError, match="no attacks by queries"):
            query_curves([board])
