from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
import torch

from grb.errors import DataError
from grb.graph import Graph
from grb.perturb import (
    Compose,
    FiedlerFrag,
    Frag,
    FullyConn,
    LowPass,
    MidPass,
    NodeDeg,
    NoEdges,
    RandFtrs,
    RandRewire,
    perturbed,
)
from grb.perturb.cache import key
from perturb.graphs import collection_of, generator


@pytest.fixture
def graph() -> Graph:
    return collection_of([nx.gnm_random_graph(n, 2 * n, seed=n) for n in (25, 31)])


@pytest.mark.parametrize(
    "perturbation",
    [
        LowPass(),
        FiedlerFrag(),
        Compose((FiedlerFrag(), RandFtrs())),
        Compose((LowPass(), FullyConn())),
        Compose((FiedlerFrag(), NodeDeg(sparse=True))),
        Compose((FiedlerFrag(), RandRewire(compat="gtaxogym"))),
    ],
    ids=lambda perturbation: perturbation.title,
)
def test_what_was_kept_is_what_was_computed(perturbation, graph: Graph, tmp_path: Path, monkeypatch) -> None:
    plain = perturbation(graph, generator(3))
    first = perturbed(perturbation, graph, 3, folder=tmp_path)
    (path,) = tmp_path.iterdir()
    monkeypatch.setattr(type(perturbation), "__call__", lambda *_: pytest.fail("computed again"))
    second = perturbed(perturbation, graph, 3, folder=tmp_path)
    assert plain.fingerprint() == first.fingerprint() == second.fingerprint()
    assert path.name == f"{key(perturbation, graph, 3)}.npz"


def test_what_is_quick_is_not_kept(graph: Graph, tmp_path: Path) -> None:
    for perturbation in (Frag(1), RandFtrs(), NoEdges(), LowPass(filter="wavelet"), RandRewire()):
        perturbed(perturbation, graph, folder=tmp_path)
    perturbed(LowPass(), graph)
    assert list(tmp_path.iterdir()) == []


def test_keys_tell_graphs_settings_and_seeds_apart(graph: Graph) -> None:
    other = graph.with_features(graph.x + 1)
    keys = [
        key(LowPass(), graph, 0),
        key(LowPass(), other, 0),
        key(MidPass(), graph, 0),
        key(LowPass(compat="gtaxogym"), graph, 0),
        key(Frag(1), graph, 0),
        key(Frag(2), graph, 0),
        key(Frag(1), graph, 1),
        key(Compose((Frag(1), LowPass())), graph, 0),
        key(Compose((LowPass(), Frag(1))), graph, 0),
    ]
    assert len(set(keys)) == len(keys)
    assert key(LowPass(), graph, 0) == key(LowPass(), graph, 1)  # the seed does not matter there


def test_a_damaged_file_is_made_again(graph: Graph, tmp_path: Path) -> None:
    first = perturbed(FiedlerFrag(), graph, folder=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damage in (b"", whole[: len(whole) // 2], b"nonsense"):
        path.write_bytes(damage)
        assert perturbed(FiedlerFrag(), graph, folder=tmp_path).fingerprint() == first.fingerprint()
        assert path.read_bytes() == whole


def test_a_file_of_another_graph_is_made_again(graph: Graph, tmp_path: Path) -> None:
    other = collection_of([nx.gnm_random_graph(60, 99, seed=0)])
    perturbed(FiedlerFrag(), other, folder=tmp_path)
    (foreign,) = tmp_path.iterdir()
    own = tmp_path / f"{key(FiedlerFrag(), graph, 0)}.npz"
    foreign.rename(own)
    assert perturbed(FiedlerFrag(), graph, folder=tmp_path).n == graph.n


def test_a_perturbation_without_known_settings_is_refused(graph: Graph, tmp_path: Path) -> None:
    class Mine:
        random, version, title = False, 1, "Mine"

        def costly(self, graph: Graph) -> bool:
            return True

        def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
            return graph

    with pytest.raises(DataError, match="a Mine is not a dataclass"):
        perturbed(Mine(), graph, folder=tmp_path)
