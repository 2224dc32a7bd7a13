"""Profiles of several models beside each other, by hand and with the published numbers."""

from __future__ import annotations

import numpy as np
import pytest

from grb.errors import DataError
from grb.taxonomy import Profiles, compare_models, from_auroc, from_runs, published


def table(scores: dict[str, list[float]], names: tuple[str, ...] = ("NoEdges", "LowPass", "Frag-k1")) -> Profiles:
    """AUROCs by dataset, the unperturbed one first."""
    values = np.array(list(scores.values()))
    return from_auroc(list(scores), list(names), values[:, 0], values[:, 1:])


def test_differences_are_those_of_log2_ratios() -> None:
    gcn = table({"a": [0.8, 0.4, 0.8, 0.6], "b": [0.8, 0.8, 0.4, 0.6]})
    gin = table({"a": [0.9, 0.9, 0.9, 0.9], "b": [0.8, 0.4, 0.4, 0.6], "c": [0.9, 0.5, 0.5, 0.5]})
    found = compare_models({"gcn": gcn, "gin": gin})
    by_name = {row.perturbation: row for row in found.differences}
    assert by_name["NoEdges"][3:] == pytest.approx((0.0, -1.0, 1.0))
    assert by_name["LowPass"][3:] == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    assert by_name["Frag-k1"].mean == pytest.approx(-np.log2(0.75) / 2) and by_name["Frag-k1"].datasets == 2
    assert found.datasets == ("a", "b") and found.left_out == {"c": ("gin",)}
    assert found.coverage == "2 models on 2 datasets: a, b. Left out: c (gin only)"


def test_the_correlations_are_numpys() -> None:
    rng = np.random.default_rng(0)
    one, two = (table({name: rng.uniform(0.5, 1, 4).tolist() for name in "abcd"}) for _ in range(2))
    found = compare_models({"gcn": one, "gin": two})
    assert found.ratios.r[0, 1] == pytest.approx(np.corrcoef(one.values.ravel(), two.values.ravel())[0, 1])
    scores = [
        np.log2(np.column_stack([each.original, each.original[:, None] * each.ratio])).ravel() for each in (one, two)
    ]
    assert found.scores is not None and found.scores.r[0, 1] == pytest.approx(np.corrcoef(scores)[0, 1])
    assert found.published is None  # nobody published a, b, c, d


def test_gin_keeps_more_without_features_as_the_paper_says() -> None:
    models = published("inductive").models
    found = compare_models(models)
    row = next(each for each in found.differences if each[:2] == ("GIN", "NoNodeFtrs"))
    gin, gcn = (own.values[:, own.perturbations.index("NoNodeFtrs")] for own in (models["GIN"], models["GCN"]))
    assert row.mean == pytest.approx(float(np.mean(gin - gcn))) and row.mean > 0.1
    assert found.published is None, "published numbers have no other published ones beside them"


def test_own_runs_stand_beside_the_published_cells_of_the_same_datasets() -> None:
    models = published("inductive").models
    names = ["MUTAG", "ENZYMES"]
    own = {
        model.lower(): from_auroc(
            [*names, "mine"],
            list(table.perturbations),
            np.append(table.select(names).original, 0.9),
            np.vstack([table.select(names).original[:, None] * table.select(names).ratio, np.full((1, 13), 0.8)]),
        )
        for model, table in list(models.items())[:3]
    }
    found = compare_models(own, "gin")
    assert found.base == "gin" and found.published_datasets == ("MUTAG", "ENZYMES")
    assert (
        found.published is not None and found.published.cells == 2 * 12
    )  # FiedlerFrag was published by another definition


def test_single_runs_are_said() -> None:
    runs = [("a", name, 0, value) for name, value in (("-", 0.9), ("NoEdges", 0.5), ("LowPass", 0.7), ("Frag-k1", 0.8))]
    found = compare_models({"gcn": from_runs(runs), "gin": from_runs(runs)})
    assert found.notes == ("one run of each kind, so nothing is known about spread: gcn, gin",)
    assert found.to_dict()["differences"][0]["mean"] == 0.0
    assert found.to_markdown().startswith("2 models on 1 datasets: a.")


@pytest.mark.parametrize(
    ("models", "base", "message"),
    [
        ({"gcn": table({"a": [0.9, 0.5, 0.5, 0.5]})}, "gcn", "at least two models"),
        ({"gcn": table({"a": [0.9] * 4}), "gin": table({"b": [0.9] * 4})}, "gcn", "share no dataset"),
        ({"gin": table({"a": [0.9] * 4}), "gcnii": table({"a": [0.9] * 4})}, "gcn", "choose one by --model"),
        (
            {"gcn": table({"a": [0.9] * 4}), "gin": table({"a": [0.9] * 4}, ("x", "y", "z"))},
            "gcn",
            "share no perturbation",
        ),
    ],
)
def test_what_cannot_be_compared(models: dict[str, Profiles], base: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        compare_models(models, base)
