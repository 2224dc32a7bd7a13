from __future__ import annotations

import numpy as np
import pytest

from grb.errors import DataError
from grb.taxonomy import Profiles, analyse, analyse_published, from_auroc, published
from grb.visualise import draw_heatmap, draw_stability, heatmap, save


@pytest.fixture(scope="module")
def result():
    return analyse_published(published("inductive"), draws=9)


def test_rows_follow_the_tree_and_columns_the_paper(result):
    data = heatmap(result)
    assert data.datasets == result.tree.leaves
    assert data.perturbations == result.given.perturbations
    place = data.datasets.index("PATTERN")
    assert data.log2_ratio[place].tolist() == list(result.given.row("PATTERN").values())
    assert data.original[place] == 0.93255
    assert list(dict.fromkeys(data.groups)) == ["I-1", "I-2", "I-3"]


def test_branches_end_at_the_heights_of_the_merges_and_know_their_group(result):
    data = heatmap(result)
    assert [branch[1][1] for branch in data.branches] == result.tree.heights.tolist()
    # every merge starts where its two parts end: leaves at their rows, merges in the middle of theirs
    tops = {(float(row), 0.0) for row in range(24)}
    for branch in data.branches:
        assert branch[0] in tops and branch[3] in tops
        tops.add(((branch[0][0] + branch[3][0]) / 2, branch[1][1]))
    # 24 leaves in 3 groups: 21 merges inside groups, two above
    assert data.branch_groups[-1] is None and data.branch_groups.count(None) == 2


def test_cells_say_percentages_and_names_their_group(result, tmp_path):
    figure = draw_heatmap(heatmap(result), title="inductive")
    tree, side, cells, bar = figure.axes
    written = [text.get_text() for text in cells.texts]
    assert len(written) == 24 * 13
    assert written[heatmap(result).datasets.index("PATTERN") * 13 + 7] == "54"  # NoEdges
    labels = [label.get_text() for label in side.get_yticklabels()]
    assert labels[0] == "[I-1] ENZYMES" and labels[1] == "CIFAR10" and labels[4] == "[I-2] MalNetTiny"
    assert [text.get_text() for text in side.texts][:2] == [".91", ".92"]
    assert tree.get_xlabel() == "Ward's height" and "unperturbed" in bar.get_xlabel()
    assert save(figure, tmp_path / "figure.svg").stat().st_size > 1000


def test_missing_cells_are_shown_though_the_tree_ignores_their_column(tmp_path):
    found = analyse(
        from_auroc(list("abcd"), ["x", "y"], [0.9] * 4, [[0.8, 0.8], [0.5, np.nan], [0.6, 0.7], [0.9, 0.4]]), draws=9
    )
    data = heatmap(found)
    assert data.perturbations == ("x", "y") and found.profiles.perturbations == ("x",)
    figure = draw_heatmap(data)
    assert [text.get_text() for text in figure.axes[2].texts].count("–") == 1
    assert np.ma.getmaskarray(figure.axes[2].images[0].get_array()).sum() == 1


def test_one_dataset_and_ratios_alone_can_be_drawn(tmp_path):
    found = analyse(Profiles(("a",), ("x", "y"), np.array([[-1.0, 0.0]])), draws=9)
    data = heatmap(found)
    assert data.branches == () and data.original is None and data.groups == ()
    figure = draw_heatmap(data)
    assert [text.get_text() for text in figure.axes[2].texts] == ["50", "100"]
    assert save(figure, tmp_path / "one.png").is_file()
    with pytest.raises(DataError, match="no stability to draw"):
        draw_stability(found)


def test_many_columns_are_not_written():
    values = np.random.default_rng(0).uniform(-0.5, 0, (4, 40))
    found = analyse(Profiles(tuple("abcd"), tuple(f"p{j}" for j in range(40)), values), draws=9)
    assert not draw_heatmap(heatmap(found)).axes[2].texts


def test_stability_shows_every_variant_for_every_number_of_groups(result, tmp_path):
    figure = draw_stability(result)
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == list(result.stability.agreement[3])
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [*result.stability.agreement[3].values(), *result.stability.agreement[4].values()]
    assert axes.get_xlabel() == "adjusted Rand index with the known groups"
    assert axes.get_xlim()[0] < min(widths)
    assert save(figure, tmp_path / "stability.png").is_file()
