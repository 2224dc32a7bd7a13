from __future__ import annotations

import pytest
import torch

from grb import Graph, GraphEdit
from grb.errors import DataError
from grb.graph import adjacency_from_edges
from grb.visualise import draw_neighbourhood, layout, neighbourhood, save, telling_target

# 0 - 1 - 2 - 3 - 4 and 5 alone; node 2 is the target
EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
LABELS = torch.tensor([0, 0, 1, 1, 0, 2])
BEFORE = torch.tensor([0, 0, 1, 1, 0, 2])
# nodes 6 and 7 are injected: 6 hangs on 2 and 5, 7 on 0 alone
ADD = torch.tensor([[2, 5, 0], [6, 6, 7]])
AFTER = torch.tensor([0, 0, 0, 1, 0, 1, 3, 3])


@pytest.fixture
def graph():
    return Graph(adjacency_from_edges(EDGES, 6)[0], torch.zeros(6, 2), LABELS)


@pytest.fixture
def edit():
    return GraphEdit(n=6, add=ADD, new_x=torch.ones(2, 2))


def test_nodes_edges_and_predictions_within_two_hops(graph, edit):
    data = neighbourhood(graph, edit, 2, BEFORE, AFTER)
    # nearest first, injected ones first among them, last those that only an injected node leads to
    assert data.hops == {2: 0, 6: 1, 1: 1, 3: 1, 0: 2, 4: 2, 5: 2}
    assert list(data.hops) == [2, 6, 1, 3, 0, 4, 5]
    assert data.injected == {6}
    assert data.kept == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert data.added == ((2, 6), (5, 6))
    assert data.dropped == ()
    assert data.before == {2: 1, 1: 0, 3: 1, 0: 0, 4: 0, 5: 2}
    assert data.after == {2: 0, 1: 0, 3: 1, 0: 0, 4: 0, 5: 1}
    assert data.labels[2] == 1
    assert data.classes == [0, 1, 2]
    assert data.near_before == {0, 1, 2, 3, 4}
    assert data.left_out == 0


def test_one_hop_sees_less(graph, edit):
    data = neighbourhood(graph, edit, 2, BEFORE, AFTER, hops=1)
    assert set(data.nodes) == {1, 2, 3, 6}
    assert data.added == ((2, 6),)


def test_of_too_many_nodes_the_nearest_stay_and_the_rest_is_counted(graph, edit):
    data = neighbourhood(graph, edit, 2, BEFORE, AFTER, max_nodes=3)
    assert data.nodes == (2, 6, 1)
    assert data.left_out == 4
    assert "not shown: 4 more within reach" in draw_neighbourhood(data).get_suptitle()


def test_dropped_edges_still_lead_to_what_was_near(graph):
    edit = GraphEdit(n=6, drop=torch.tensor([[2], [3]]), add=torch.tensor([[2], [5]]))
    data = neighbourhood(graph, edit, 2, BEFORE, AFTER[:6])
    assert data.dropped == ((2, 3),)
    assert (2, 3) not in data.kept
    assert data.hops[3] == 1 and data.hops[4] == 2
    assert data.added == ((2, 5),)


def test_an_isolated_target_stands_alone(graph, tmp_path):
    data = neighbourhood(graph, GraphEdit(n=6), 5, BEFORE, BEFORE)
    assert data.nodes == (5,) and data.edges == ()
    assert layout(data) == {5: (0.5, 0.5)}
    assert save(draw_neighbourhood(data), tmp_path / "alone.svg").is_file()


def test_hidden_labels_are_not_known(edit):
    graph = Graph(adjacency_from_edges(EDGES, 6)[0], torch.zeros(6, 2), torch.tensor([0, 0, -1, 1, 0, 2]))
    data = neighbourhood(graph, edit, 2, BEFORE, AFTER)
    assert 2 not in data.labels
    titles = [axes.get_title() for axes in draw_neighbourhood(data).axes]
    assert titles == ["before: node 2 is taken for class 1", "after: node 2 is taken for class 0"]


@pytest.mark.parametrize(
    "target, after, sentence",
    [
        (6, AFTER, "target 6 is not an original node; there are nodes 0 to 5"),
        (-1, AFTER, "target -1 is not"),
        (2, AFTER[:6], "predictions for 6 and 6 nodes were given, but the graphs have 6 and 8"),
    ],
)
def test_what_does_not_fit_is_refused(graph, edit, target, after, sentence):
    with pytest.raises(DataError, match=sentence):
        neighbourhood(graph, edit, target, BEFORE, after)


def test_the_telling_target_is_touched_and_changed(graph, edit):
    # 2 and 5 change, both are touched; 2 has neighbours
    assert telling_target(graph, edit, torch.tensor([0, 1, 2, 5]), BEFORE, AFTER) == 2
    # nothing changes: the one that is touched
    assert telling_target(graph, edit, torch.tensor([1, 5]), BEFORE, torch.cat([BEFORE, AFTER[6:]])) == 5
    with pytest.raises(DataError, match="no targets"):
        telling_target(graph, edit, torch.tensor([], dtype=torch.int64), BEFORE, AFTER)


def test_layout_is_the_same_every_time_and_inside_the_unit_square(graph, edit):
    data = neighbourhood(graph, edit, 2, BEFORE, AFTER)
    places = layout(data)
    assert places == layout(data)
    assert set(places) == set(data.nodes)
    assert all(0 <= value <= 1 for place in places.values() for value in place)


def test_panels_show_injected_nodes_and_added_edges_after_the_attack_alone(graph, edit, tmp_path):
    figure = draw_neighbourhood(neighbourhood(graph, edit, 2, BEFORE, AFTER), title="fgsm")
    before, after = figure.axes
    stars = [[line.get_marker() for line in axes.lines].count("*") for axes in (before, after)]
    dashed = [len(axes.collections[1].get_segments()) for axes in (before, after)]
    assert stars == [0, 1]
    assert dashed == [0, 2]
    assert before.get_title() == "before: node 2 is taken for class 1 (right)"
    assert after.get_title() == "after: node 2 is taken for class 0 (wrong, it is 1)"
    words = [text.get_text() for text in figure.legends[0].texts]
    assert words == ["class 0", "class 1", "class 2", "target", "wrong", "injected node", "added edge"]
    for kind in ("png", "svg", "pdf"):
        assert save(figure, tmp_path / f"figure.{kind}").stat().st_size > 1000
