"""Placing a dataset among the published ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from grb.cli.taxonomy_place import show
from grb.errors import DataError, UnknownName
from grb.graph import CSR, Graph, Pattern, adjacency_from_edges
from grb.taxonomy import Profiles, assign, check_placeable, from_runs, published, reference_for
from grb.taxonomy.assignment import VOTES


def leave_one_out(kind: str, **settings) -> tuple[int, int]:
    """How many published datasets have their nearest neighbour in their group, and how many are put into it."""
    reference = published(kind)
    near = found = 0
    for name in reference.profiles.datasets:
        own = assign(reference.profiles.row(name), reference, exclude=name, draws=20, **settings)
        near += own.nearest.group == reference.groups[name]
        found += own.group == reference.groups[name]
    return near, found


def test_published_datasets_return_to_their_group_without_their_own_row() -> None:
    assert leave_one_out("transductive") == (25, 25)
    assert leave_one_out("inductive") == (23, 22)  # Synthie's nearest is ogbg-molpcba; CLUSTER is far from everything
    assert leave_one_out("inductive", ignore=()) == (23, 24)


def test_a_dataset_is_its_own_nearest_neighbour_unless_left_out() -> None:
    row = published("transductive").profiles.row("Actor")
    same = assign(row, "transductive", draws=10)
    assert same.nearest == ("Actor", "T-1", 0.0, 1.0) and same.probability["T-1"] == 1.0
    without = assign(row, "transductive", exclude="Actor", draws=10)
    assert without.nearest.dataset == "DzEu" and "Actor" not in [each.dataset for each in without.neighbours]


def test_distances_are_euclidean_over_what_both_sides_have() -> None:
    reference = published("inductive").profiles
    row = {"NoEdges": -0.3, "NodeDeg": 0.1, "FiedlerFrag": -9.0, "unheard of": 1.0, "Frag-k1": float("nan")}
    found = assign(row, "inductive", draws=5)
    for each in found.neighbours:
        other = reference.row(each.dataset)
        expected = np.hypot(other["NoEdges"] + 0.3, other["NodeDeg"] - 0.1)
        assert each.distance == pytest.approx(expected)
    assert {mark.perturbation for mark in found.marks} == {"NoEdges", "NodeDeg"}
    assert any("no result there" in note and "Frag-k1" in note for note in found.notes)


def test_the_group_is_a_vote_of_the_nearest_by_inverse_distance() -> None:
    reference = published("inductive")
    found = assign(reference.profiles.row("NCI1"), reference, exclude="NCI1", draws=5)
    weights: dict[str, float] = {}
    for each in found.neighbours[:VOTES]:
        weights[each.group] = weights.get(each.group, 0.0) + 1 / each.distance
    assert found.group == max(weights, key=weights.__getitem__)


def test_probabilities_are_shares_of_draws_and_follow_the_seed() -> None:
    row = published("inductive").profiles.row("Synthie")
    one, again, other = (assign(row, "inductive", exclude="Synthie", draws=300, seed=seed) for seed in (0, 0, 1))
    assert one.probability == again.probability != other.probability
    assert sum(one.probability.values()) == pytest.approx(1) == sum(each.nearest for each in one.neighbours)
    assert 0.5 < one.probability["I-2"] < 0.9  # nobody is sure about Synthie


def test_uncertain_results_make_the_group_less_sure() -> None:
    row = published("inductive").profiles.row("ENZYMES")
    sure = assign(row, "inductive", exclude="ENZYMES", draws=300)
    errors = dict.fromkeys(row, 0.5)
    unsure = assign(row, "inductive", exclude="ENZYMES", errors=errors, draws=300)
    assert sure.probability["I-1"] > 0.95 > unsure.probability["I-1"]


def test_runs_are_resampled_where_they_are_known() -> None:
    means = published("transductive").profiles.row("Actor")
    rng = np.random.default_rng(0)

    def runs(noise: float) -> Profiles:
        rows = [("mine", "-", seed, 0.66) for seed in range(5)]
        for name, value in means.items():
            rows += [("mine", name, seed, 0.66 * 2**value + noise * rng.normal()) for seed in range(5)]
        return from_runs(rows)

    still, shaky = (assign(runs(noise), "transductive", exclude="Actor", draws=200) for noise in (0.0, 0.06))
    assert still.dataset == "mine" and still.nearest.dataset == "DzEu"
    assert still.nearest.nearest > shaky.nearest.nearest
    assert any("0.66" in sentence for sentence in still.messages)  # the unperturbed AUROC came with them


def test_one_of_several_profiles_is_chosen_by_name() -> None:
    many = published("transductive").profiles
    assert assign(many, "transductive", dataset="Github", exclude="Github", draws=5).nearest.dataset == "Am-Phot"
    with pytest.raises(DataError, match="profiles are of 25 datasets; say which"):
        assign(many, "transductive")


def test_what_sets_a_dataset_apart_is_named() -> None:
    found = assign(published("inductive").profiles.row("ENZYMES"), "inductive", dataset="ENZYMES", exclude="ENZYMES")
    assert [mark.perturbation for mark in found.apart][:3] == ["MidPass", "HighPass", "NoNodeFtrs"]
    text = found.text()
    assert text.startswith("ENZYMES belongs to I-1") and "Features matter much: without them 58 %" in text
    assert "Edges hardly matter" in text and "MidPass (it keeps 78 %" in text


def test_a_dataset_like_none_is_said_to_fit_nowhere() -> None:
    row = published("inductive").profiles.row("CLUSTER")
    assert any("fits nowhere well" in note for note in assign(row, "inductive", exclude="CLUSTER", draws=5).notes)
    usual = published("inductive").profiles.row("D&D")
    assert assign(usual, "inductive", exclude="D&D", draws=5).notes == ()


def test_everything_is_plain_values_for_json() -> None:
    found = assign(published("transductive").profiles.row("Flickr"), "transductive", exclude="Flickr", draws=5)
    as_json = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert as_json["group"] == found.group and len(as_json["neighbours"]) == 24
    assert as_json["neighbours"] == found.rows()


def test_it_is_shown_as_words_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    row = published("inductive").profiles.row("PROTEINS")
    show(assign({**row, "NoEdges": float("nan")}, "inductive", dataset="mine", exclude="PROTEINS", draws=20))
    shown = capsys.readouterr()
    assert "mine belongs to I-2" in shown.out and "D&D" in shown.out and "deviations" in shown.out
    assert "note: not compared" in shown.err and "NoEdges" in shown.err


def test_what_cannot_be_placed_is_refused_in_one_sentence() -> None:
    with pytest.raises(DataError, match=r"has results under 1 of the 13 published perturbations; at least 2"):
        assign({"NoEdges": -0.1}, "inductive")
    with pytest.raises(DataError, match=r"has results under 0"):
        assign(dict.fromkeys(published("inductive").profiles.perturbations, float("nan")), "inductive")
    with pytest.raises(DataError, match="under 'NoEdges' is infinite"):
        assign({"NoEdges": float("-inf"), "NodeDeg": 0.0}, "inductive")
    with pytest.raises(DataError, match="error under 'NoEdges' is -1"):
        assign({"NoEdges": 0.0, "NodeDeg": 0.0}, "inductive", errors={"NoEdges": -1})
    with pytest.raises(UnknownName, match=r"published dataset 'Actr'. Did you mean 'Actor'\?"):
        assign({"NoEdges": 0.0, "NodeDeg": 0.0}, "transductive", exclude="Actr")
    with pytest.raises(UnknownName, match="published model 'GAT'"):
        assign({"NoEdges": 0.0, "NodeDeg": 0.0}, "transductive", model="GAT")
    with pytest.raises(UnknownName, match="published taxonomy 'both'"):
        assign({"NoEdges": 0.0, "NodeDeg": 0.0}, "both")
    with pytest.raises(DataError, match="at least one draw"):
        assign({"NoEdges": 0.0, "NodeDeg": 0.0}, "inductive", draws=0)


def test_half_a_picture_is_said_to_be_one() -> None:
    found = assign({"NoEdges": -0.1, "Frag-k1": 0.0}, "inductive", draws=5)
    assert any("no perturbation of the features" in note for note in found.notes)


def made(labels: list[int] | torch.Tensor, *, edges: bool = True, x: torch.Tensor | CSR | None = None) -> Graph:
    n = len(labels)
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)]) if edges else np.zeros((2, 0), dtype=np.int64)
    values = torch.arange(2.0 * n).view(n, 2) if x is None else x
    return Graph(adjacency_from_edges(pairs, n)[0], values, torch.as_tensor(labels))


def test_datasets_that_have_no_place_get_a_clear_answer() -> None:
    assert check_placeable(made([0, 1] * 15)) == []
    with pytest.raises(DataError, match="all labelled examples are of one class"):
        check_placeable(made([0] * 30))
    with pytest.raises(DataError, match="one class"):
        check_placeable(made([0] * 30 + [-1] * 4))
    with pytest.raises(DataError, match="too small: it has 8 labelled examples and 2 classes"):
        check_placeable(made([0, 1] * 4))
    with pytest.raises(DataError, match="too small: it has 30 labelled examples and 1 classes"):
        check_placeable(made([0] * 28 + [1, 2]))
    with pytest.raises(DataError, match="no edges.*a table, not a graph"):
        check_placeable(made([0, 1] * 15, edges=False))
    graph = made([0, 1] * 15)
    with pytest.raises(DataError, match="no labels"):
        check_placeable(Graph(graph.adj, graph.x))


def test_datasets_without_features_are_placed_with_a_note() -> None:
    for x in (
        torch.ones(30, 1),
        torch.zeros(30, 0),
        CSR(Pattern(torch.arange(31), torch.zeros(30, dtype=torch.int64), 3)),
    ):
        (note,) = check_placeable(made([0, 1] * 15, x=x))
        assert "same features" in note


def test_several_labels_need_one_that_can_be_measured() -> None:
    labels = torch.zeros(30, 2)
    with pytest.raises(DataError, match="no label has 3 positive"):
        check_placeable(made(labels))
    labels[:5, 1] = 1
    labels[5:9, 1] = float("nan")
    assert check_placeable(made(labels)) == []


def test_collections_are_compared_with_collections() -> None:
    graph = made([0, 1] * 15)
    assert reference_for(graph) == "transductive"
    assert reference_for(Graph(graph.adj, graph.x, None, torch.tensor([0, 30]))) == "inductive"
