from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from grb.taxonomy import (
    Correlation,
    Profiles,
    perturbation_correlation,
    profile_components,
    property_components,
    published,
)
from grb.visualise import draw_components, draw_correlation, save
from grb.visualise.taxonomy_components import LETTERS, TALL, WIDE, label_offsets


@pytest.fixture(scope="module")
def reference():
    return published("inductive")


def test_points_are_scores_bars_are_loadings_and_axes_say_the_variance(reference, tmp_path):
    data = profile_components(reference.profiles)
    groups = [reference.groups[name] for name in data.rows]
    figure = draw_components(data, groups, title="inductive")
    above, first, second = figure.axes
    assert above.get_xlabel() == "PC1 (46.4 % of the variance)"
    assert above.get_ylabel() == "PC2 (33.8 % of the variance)"
    assert [text.get_text() for text in above.texts] == list(data.rows)
    own = [name for name, group in zip(data.rows, groups) if group == "I-1"]
    np.testing.assert_array_equal(above.lines[0].get_xdata(), [data.scores[data.rows.index(name), 0] for name in own])
    assert [text.get_text() for text in above.get_legend().texts] == ["I-1", "I-2", "I-3"]
    assert len({line.get_marker() for line in above.lines}) == 3
    for place, axes in enumerate((first, second)):
        assert [bar.get_height() for bar in axes.patches] == data.loadings[place].tolist()
    assert [bool(bar.get_hatch()) for bar in first.patches] == [True] * 6 + [False] * 7
    assert save(figure, tmp_path / "pca.svg").stat().st_size > 1000


def test_one_component_is_drawn_on_a_line(tmp_path):
    data = profile_components(Profiles(("a", "b", "c"), ("x",), np.array([[0.0], [-1.0], [-0.4]])))
    figure = draw_components(data)
    assert len(figure.axes) == 2
    assert figure.axes[0].get_ylabel() == "no second component"
    assert save(figure, tmp_path / "line.png").is_file()


def test_classical_properties_are_drawn_without_a_legend_that_repeats_the_names():
    data = property_components()
    figure = draw_components(data, [name.rpartition(" ")[0] for name in data.rows])
    assert figure.axes[0].get_legend() is None
    assert "IMDB-BINARY (0)" in [text.get_text() for text in figure.axes[0].texts]


def test_names_keep_off_each_other():
    generator = np.random.default_rng(0)
    x, y = generator.uniform(0, 1, 20), generator.uniform(0, 1, 20)
    names = [f"dataset-{place}" for place in range(20)]
    axes = Figure().subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    size = (450.0, 250.0)
    boxes = []
    for name, px, py, (dx, dy) in zip(names, x, y, label_offsets(axes, names, x, y, size)):
        wide = WIDE * LETTERS * len(name)
        left = px * size[0] + dx - (0 if dx > 0 else wide)
        boxes.append(
            (left, left + wide, py * size[1] + dy - TALL * LETTERS / 2, py * size[1] + dy + TALL * LETTERS / 2)
        )
    assert not any(
        a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3] for a, b in itertools.combinations(boxes, 2)
    )


def test_correlations_are_written_and_undefined_ones_are_grey(reference, tmp_path):
    data = perturbation_correlation(reference.profiles)
    figure = draw_correlation(data, over="datasets")
    axes, bar = figure.axes
    assert bar.get_xlabel() == "Pearson's r over 24 datasets"
    assert len(axes.texts) == 13 * 13
    assert axes.texts[2].get_text() == ".95" and axes.texts[3].get_text() == "-.09"
    assert save(figure, tmp_path / "r.svg").is_file()
    undefined = Correlation(("a", "b"), np.array([[1.0, np.nan], [np.nan, np.nan]]), 3)
    assert [text.get_text() for text in draw_correlation(undefined).axes[0].texts] == ["1.00", "–", "–", "–"]
