from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from grb import catalogue
from grb.dataset import Dataset, load_dataset, readers, registry
from grb.dataset.registry import SOURCES
from grb.dataset.splits import Random
from grb.errors import DataError, MissingDataset, MissingExtra
from grb.graph import Graph


def write_mutag(root: Path, graphs: int = 30) -> Path:
    """Raw files in the layout of TUDataset: triangles and paths of three nodes by turns, with labels and edge labels."""
    raw = root / "TUDataset" / "MUTAG" / "raw"
    raw.mkdir(parents=True)
    edges, indicator = [], []
    for graph in range(graphs):
        first = 3 * graph + 1
        pairs = [(0, 1), (1, 2)] + ([(0, 2)] if graph % 2 else [])
        edges += [(first + a, first + b) for a, b in pairs] + [(first + b, first + a) for a, b in pairs]
        indicator += [graph + 1] * 3
    edges.sort()
    (raw / "MUTAG_A.txt").write_text("".join(f"{a}, {b}\n" for a, b in edges))
    (raw / "MUTAG_edge_labels.txt").write_text("".join(f"{i % 2}\n" for i in range(len(edges))))
    (raw / "MUTAG_graph_indicator.txt").write_text("".join(f"{i}\n" for i in indicator))
    (raw / "MUTAG_graph_labels.txt").write_text("".join(f"{2 * (graph % 2) - 1}\n" for graph in range(graphs)))
    (raw / "MUTAG_node_labels.txt").write_text("".join(f"{i % 3}\n" for i in range(3 * graphs)))
    return raw


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Path:
    """A root with raw files of MUTAG and nothing else, and an empty cache."""
    monkeypatch.setenv("GRB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    return write_mutag(tmp_path / "data")


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_dataset_of_graphs_from_its_raw_files(machine) -> None:
    dataset = load_dataset("mutag")
    assert (dataset.task, dataset.title, dataset.num_classes, dataset.num_items) == ("graph", "MUTAG", 2, 30)
    assert dataset.graph.num_graphs == 30 and dataset.num_edges == 15 * 2 + 15 * 3
    assert dataset.labels.tolist() == [0, 1] * 15
    assert dataset.num_features == 3 and dataset.graph.x[:3].tolist() == torch.eye(3).tolist()
    assert dataset.notes == ("edge attributes (2 columns) dropped",)
    assert (dataset.num_train, dataset.num_val, dataset.num_test) == (24, 3, 3)
    assert dataset.train_mask.sum() == 24 and len(dataset.train_mask) == 30


def test_nothing_is_written_beside_the_raw_files_and_the_second_time_they_are_not_read(machine, monkeypatch) -> None:
    before = files(machine.parent)
    first = load_dataset("mutag")
    assert files(machine.parent) == before
    monkeypatch.setattr(readers, "_read", None)
    assert load_dataset("mutag").fingerprint() == first.fingerprint()


def test_other_raw_files_are_read_again(machine) -> None:
    first = load_dataset("mutag")
    labels = machine / "MUTAG_graph_labels.txt"
    labels.write_text(labels.read_text().replace("-1", "3"))
    second = load_dataset("mutag")
    assert second.fingerprint() != first.fingerprint()
    assert len(list((registry.home() / "data" / "external").iterdir())) == 1


def test_a_torn_file_in_the_cache_is_made_again(machine) -> None:
    first = load_dataset("mutag")
    (kept,) = (registry.home() / "data" / "external").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert load_dataset("mutag").fingerprint() == first.fingerprint()


def test_splits_by_number(machine) -> None:
    dataset = load_dataset("mutag")
    other = dataset.with_split(3)
    assert other.split.test["full"].tolist() != dataset.split.test["full"].tolist()
    assert other.fingerprint() == dataset.fingerprint()
    assert dataset.with_split(0).split.train.tolist() == dataset.split.train.tolist()


def test_the_class_is_an_entrance_too(machine) -> None:
    assert Dataset("mutag").fingerprint() == load_dataset("mutag").fingerprint()
    assert "graphs=30, task='graph'" in repr(Dataset("mutag"))


def test_views_of_a_collection_are_of_graphs(machine) -> None:
    dataset = load_dataset("mutag")
    assert dataset.defender_view().graph.num_graphs == dataset.num_train + dataset.num_val
    assert dataset.attacker_view().graph.num_graphs == 30


def test_nodes_of_a_collection_are_refused_in_words(machine) -> None:
    graph = load_dataset("mutag").graph
    nodes = Graph(graph.adj, graph.x, torch.zeros(graph.n, dtype=torch.int64), graph.ptr)
    dataset = Dataset.of_graph(nodes, Random(graph.num_graphs), task="node")
    for view in ("defender_view", "attacker_view", "transductive_view"):
        with pytest.raises(DataError, match="collection of 30 graphs with nodes to classify"):
            getattr(dataset, view)()


def test_bonds_are_kept_where_a_dataset_is_there_for_them(machine) -> None:
    bare, featured = load_dataset("mutag").graph, load_dataset("mutag-bonds").graph
    assert bare.num_edge_features == 0 < featured.num_edge_features
    assert featured.adj.features.shape[0] == featured.adj.pattern.entries
    again = load_dataset("mutag-bonds").graph  # from the cache
    assert again.fingerprint() == featured.fingerprint() != bare.fingerprint()


def test_raw_files_that_are_broken(machine) -> None:
    (machine / "MUTAG_A.txt").write_text("1, 2\n2, x\n")
    with pytest.raises(DataError, match="TUDataset cannot read .*get the files again"):
        load_dataset("mutag")
    assert not (registry.home() / "data" / "external").exists()


def test_a_raw_file_that_is_missing_is_not_downloaded(machine) -> None:
    (machine / "MUTAG_graph_labels.txt").unlink()
    with pytest.raises(MissingDataset, match="not on this machine"):
        load_dataset("mutag")


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"mutag", "mutag-bonds"}))
def test_absent_datasets_are_named_with_a_remedy(machine, name: str) -> None:
    with pytest.raises(MissingDataset, match=f"dataset '{name}' is not on this machine .*GRB_DATA=<root>"):
        load_dataset(name)


def test_the_catalogue_and_the_sources_have_the_same_names() -> None:
    others = (*registry.EMBEDDED, *registry.REBUILT)
    listed = [name for name in catalogue.KINDS["dataset"] if name not in others and not name.startswith("grb-")]
    assert sorted(listed) == sorted(SOURCES)


def test_every_loader_is_a_class_of_torch_geometric() -> None:
    import torch_geometric.datasets

    classes = {source.loader for source in SOURCES.values()} - {"nx", "ogb"}
    assert all(hasattr(torch_geometric.datasets, loader) for loader in classes)


def test_the_paper_s_datasets_are_all_there() -> None:
    from grb import taxonomy

    titles = {source.title for source in SOURCES.values()}
    for kind in ("inductive", "transductive"):
        assert set(taxonomy.published(kind).profiles.datasets) <= titles


def test_ogb_says_which_package_it_needs(machine) -> None:
    (machine.parents[2] / "ogb" / "pcqm4m-v2").mkdir(parents=True)
    try:
        import ogb  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match=r"this dataset of OGB needs ogb.lsc. .*\[ogb\]"):
            load_dataset("pcqm4mv2-subset")


def here(name: str) -> bool:
    try:
        registry.find(name)
    except MissingDataset:
        return False
    return True


@pytest.mark.skipif(not here("enzymes"), reason="needs the raw files of ENZYMES below GRB_DATA")
def test_enzymes_has_the_paper_s_statistics() -> None:
    dataset = load_dataset("enzymes")
    found = (dataset.graph.num_graphs, dataset.num_nodes, dataset.num_edges, dataset.num_features, dataset.num_classes)
    assert found == (600, 19580, 37282, 21, 6)
    assert np.allclose(dataset.graph.x[:, 18:].sum(1), 1)


@pytest.mark.skipif(not here("webkb-texas"), reason="needs the raw files of Texas below GRB_DATA")
def test_a_directed_graph_is_made_undirected_and_its_ten_splits_take_turns() -> None:
    dataset = load_dataset("webkb-texas")
    assert "made undirected" in " ".join(dataset.notes)
    assert dataset.with_split(10).split.train.tolist() == dataset.split.train.tolist()
    assert dataset.with_split(1).split.train.tolist() != dataset.split.train.tolist()
    assert dataset.features.shape == (183, 1703) and dataset.feature_range == (0.0, 1.0)


def test_reading_needs_no_network(machine, monkeypatch) -> None:
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.delenv("GRB_OFFLINE", raising=False)
    assert load_dataset("mutag").num_items == 30
    assert os.environ.get("GRB_OFFLINE") is None
