from __future__ import annotations

import networkx as nx
import pytest
import torch

import grb
from grb.errors import DataError, UnknownName
from grb.perturb import METHODS, Compose, Frag, FragK2, LowPass, NoEdges, NoNodeFtrs, RandFtrs, build_perturbation
from grb.taxonomy import ORIGINAL, PAPER_ORDER, published
from perturb.graphs import generator, graph_of


def test_names_of_the_published_tables_build_what_they_name() -> None:
    assert [build_perturbation(name).title for name in PAPER_ORDER] == list(PAPER_ORDER)
    assert [maker().title for maker in METHODS] == list(PAPER_ORDER)
    assert build_perturbation(ORIGINAL).title == ORIGINAL
    for kind in ("inductive", "transductive"):
        for name in published(kind).profiles.perturbations:
            assert build_perturbation(name).title == name


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("NoFeatures", "NoNodeFtrs"),
        ("NodeDegree", "NodeDeg"),
        ("RandomNodeFeatures", "RandFtrs"),
        ("BandpassFiltering-mid", "MidPass"),
        ("WaveletBankFiltering-hi", "HighPass"),
        ("FullyConnected", "FullyConn"),
        ("RandomEdgeRewire", "RandRewire"),
        ("Fragmented-k3", "Frag-k3"),
    ],
)
def test_names_of_the_papers_code_work_too(theirs: str, ours: str) -> None:
    assert build_perturbation(theirs).title == ours


def test_changes_go_to_the_constructor() -> None:
    assert build_perturbation("frag-k2", compat="gtaxogym") == FragK2(compat="gtaxogym")
    assert build_perturbation("lowpass", filter="wavelet") == LowPass(filter="wavelet")
    both = build_perturbation("nonodeftrs+randftrs", compat="gtaxogym")
    assert both == Compose((NoNodeFtrs(), RandFtrs(compat="gtaxogym")))


def test_a_class_of_ones_own_is_found_by_its_path() -> None:
    assert build_perturbation("grb.perturb.fragments:Frag", k=5) == Frag(5)


def test_unknown_names_and_settings_are_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"no perturbation 'lowpas'. Did you mean 'lowpass'\? `grb ls perturbations`"):
        build_perturbation("lowpas")
    with pytest.raises(UnknownName, match=r"parameter of perturbation 'lowpass' 'filtr'. Did you mean 'filter'\?"):
        build_perturbation("lowpass", filtr="hard")
    with pytest.raises(UnknownName, match="It takes none"):
        build_perturbation("noedges", share=1)
    with pytest.raises(DataError, match="cannot be made"):
        build_perturbation("grb.perturb.build:Compose")


def test_parts_of_a_composition_are_applied_from_left_to_right_with_their_own_numbers() -> None:
    graph = graph_of(nx.path_graph(30))
    both = build_perturbation("randftrs+nodedeg+noedges")
    result = both(graph, generator())
    assert result.num_edges == 0 and result.num_features == 2
    assert build_perturbation("noedges+nodedeg")(graph).num_features == 1
    twice = Compose((Frag(1), Frag(1)))(graph, generator(1))
    assert twice.num_edges < Frag(1)(graph, generator(1)).num_edges
    assert both.random and not Compose((NoEdges(),)).random
    assert Compose(())(graph) is graph


def test_a_random_perturbation_asks_for_a_generator() -> None:
    with pytest.raises(DataError, match="torch.Generator"):
        RandFtrs()(graph_of(nx.path_graph(3)))


def test_they_are_there_after_import_grb() -> None:
    graph = graph_of(nx.path_graph(5))
    assert torch.equal(grb.perturb.NoNodeFtrs()(graph).x, torch.ones(5, 1))
