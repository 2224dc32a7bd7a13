"""What an input may mean is chosen by name; counted against networkx and by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from grb.dataset import CleaningOptions, CustomDataset, Dataset, load_dataset, storage
from grb.dataset.cleaning import Refused, clean, edge_facts, find_problems
from grb.dataset.load import read_raw
from grb.dataset.raw_arrays import RawArrays, from_dataset
from grb.dataset.report import refused, report
from grb.errors import DataError, UnknownName
from grb.graph.files import write_npz
from made_collections import tiny_graphs

# two components of 12 and 4 nodes: a ring listed one way, a pair listed both ways and again, a loop, and an isolated node
RING = [(i, (i + 1) % 12) for i in range(12)]
LISTED = [*RING, (12, 13), (13, 12), (12, 13), (3, 3), (13, 14)]

PARTS = {"train": np.array([0, 1]), "val": np.array([2]), "test": np.array([3])}


def arrays(**changes) -> RawArrays:
    basis = {
        "name": "made",
        "n": 16,
        "edges": np.array(LISTED).T,
        "y": np.arange(16) % 2,
        "x": np.arange(32, dtype=np.float32).reshape(16, 2),
    }
    return RawArrays(**{**basis, **changes})


def cleaned_dataset(raw: RawArrays, options: CleaningOptions | None = None) -> Dataset:
    return Dataset.from_raw(clean(raw, options).arrays)


def test_the_edges_are_counted_as_they_are_listed() -> None:
    assert edge_facts(arrays()) == {"listed": 17, "self_loops": 1, "duplicates": 1, "pairs": 14, "one_way": 13}


def test_defaults_mend_and_tell() -> None:
    made = clean(arrays())
    dataset = Dataset.from_raw(made.arrays)
    assert (dataset.num_nodes, dataset.num_edges) == (16, 14)
    assert [(problem.option, problem.count, problem.choice) for problem in made.problems] == [
        ("loops", 1, "drop"),
        ("duplicates", 1, "merge"),
        ("directed", 13, "symmetrise"),
        ("components", 2, "keep"),
    ]
    assert dataset.notes == (
        "1 self-loop: loops=drop",
        "1 edge listed again: duplicates=merge",
        "13 of 14 edges listed in one direction only: directed=symmetrise",
        "3 connected components: components=keep",
        "split: easy, medium and hard by degree (60 / 10 / 3 x 10 %), seed 0",
    )
    assert made.problems[2].others == ("mutual", "refuse")


@pytest.mark.parametrize(
    ("choice", "value", "nodes", "edges"),
    [
        ("directed", "mutual", 16, 1),
        ("components", "largest", 12, 12),
        ("directed", "symmetrise", 16, 14),
    ],
)
def test_other_choices_make_other_graphs(choice: str, value: str, nodes: int, edges: int) -> None:
    dataset = cleaned_dataset(arrays(), CleaningOptions(**{choice: value}))  # type: ignore[arg-type]
    assert (dataset.num_nodes, dataset.num_edges) == (nodes, edges)


def test_the_largest_component_keeps_rows_and_parts_together() -> None:
    """Components of 4 and 12 nodes: what stays is renumbered from 4 on."""
    edges = np.array([(0, 1), (1, 2), (2, 3), *((u + 4, v + 4) for u, v in RING)]).T
    split = {"train": np.array([0, 4, 5]), "val": np.array([6]), "test": np.array([1, 7, 15])}
    dataset = cleaned_dataset(arrays(edges=edges, splits=[split]), CleaningOptions(components="largest"))
    assert dataset.features[:, 0].tolist() == [2.0 * (4 + i) for i in range(12)]
    assert dataset.index_train.tolist() == [0, 1] and dataset.index_test.tolist() == [3, 11]


@pytest.mark.parametrize("option", ["loops", "duplicates", "directed", "components"])
def test_a_choice_may_be_to_refuse(option: str) -> None:
    with pytest.raises(Refused, match=f"which {option}=refuse refuses; .* would go on"):
        clean(arrays(), CleaningOptions(**{option: "refuse"}))  # type: ignore[arg-type]


def test_weights_are_kept_dropped_or_refused() -> None:
    weighted = arrays(weights=np.linspace(0.5, 2, 17))
    kept = cleaned_dataset(weighted).graph.adj
    assert kept.values is not None and float(kept.values.max()) == 2.0
    # of the two entries of (12, 13) the larger stays: places 12 and 14 of the list
    at = (kept.keys == 12 * 16 + 13).nonzero().item()
    assert float(kept.values[at]) == pytest.approx(np.linspace(0.5, 2, 17)[14])
    assert cleaned_dataset(weighted, CleaningOptions(weights="drop")).graph.adj.values is None
    with pytest.raises(Refused, match="17 edges with weights other than one"):
        clean(weighted, CleaningOptions(weights="refuse"))


def test_missing_features_are_refused_or_filled() -> None:
    x = np.arange(32, dtype=np.float32).reshape(16, 2)
    x[3, 0], x[5, 1] = np.nan, np.inf
    holes = arrays(x=x)
    with pytest.raises(Refused, match="2 feature values NaN or infinite, which missing=refuse refuses; zero or mean"):
        clean(holes)
    assert refused(holes, CleaningOptions()).input["missing_features"] == 2 and not refused(holes, CleaningOptions()).ok
    zero = cleaned_dataset(holes, CleaningOptions(missing="zero")).features
    assert (zero[3, 0], zero[5, 1], zero[4, 0]) == (0, 0, 8)
    mean = cleaned_dataset(holes, CleaningOptions(missing="mean")).features
    assert float(mean[3, 0]) == pytest.approx(np.delete(x[:, 0], 3).mean())
    assert float(mean[5, 1]) == pytest.approx(np.delete(x[:, 1], 5).mean())


def test_no_features_become_a_constant_and_hidden_labels_stay_out_of_the_split() -> None:
    y = np.arange(16) % 2
    y[[0, 7]] = -1
    made = clean(arrays(x=None, y=y))
    dataset = Dataset.from_raw(made.arrays)
    assert dataset.features.tolist() == [[1.0]] * 16
    used = torch.cat([dataset.index_train, dataset.index_val, dataset.index_test])
    assert sorted(used.tolist()) == [i for i in range(16) if i not in (0, 7)]
    assert {"no features", "2 nodes without a label"} <= {problem.what for problem in made.problems}


def test_normalised_features_declare_their_range() -> None:
    dataset = cleaned_dataset(arrays(), CleaningOptions(feat_norm="arctan"))
    assert -1 < dataset.feature_range[0] < dataset.feature_range[1] < 1
    assert cleaned_dataset(arrays()).feature_range == (0.0, 31.0)


def test_an_unknown_choice_names_those_that_there_are() -> None:
    with pytest.raises(UnknownName, match="no components 'biggest'.*Allowed: keep, largest, refuse"):
        CleaningOptions(components="biggest")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="no split 'hard'.*Allowed: own, difficulty"):
        load_dataset("synth-tiny", split="hard")  # type: ignore[arg-type]


edge_lists = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=25))
)


@settings(max_examples=150)
@given(edge_lists)
def test_counts_agree_with_networkx(made) -> None:
    n, listed = made
    edges = np.array(listed, dtype=np.int64).reshape(-1, 2).T
    found = edge_facts(arrays(n=n, edges=edges, y=np.zeros(n, dtype=np.int64), x=None))
    directed, plain = nx.DiGraph(), nx.Graph()
    for graph in (directed, plain):
        graph.add_nodes_from(range(n))
        graph.add_edges_from((u, v) for u, v in listed if u != v)
    assert found["listed"] == len(listed) and found["self_loops"] == sum(u == v for u, v in listed)
    assert found["duplicates"] == len(listed) - found["self_loops"] - directed.number_of_edges()
    assert found["pairs"] == plain.number_of_edges()
    assert found["one_way"] == sum(not directed.has_edge(v, u) for u, v in directed.edges)
    problems = find_problems(arrays(n=n, edges=edges, y=np.zeros(n, dtype=np.int64), x=None), CleaningOptions())
    parts = [problem.count + 1 for problem in problems if problem.option == "components"] or [1]
    assert parts == [nx.number_connected_components(plain)]


def test_the_report_has_every_fact() -> None:
    found = report(clean(arrays(classes=["even", "odd"])))
    facts = found.facts
    assert facts["nodes"] == 16 and facts["edges"] == 14 and facts["components"] == 3
    assert (facts["largest_component"], facts["isolated_nodes"], facts["feature_range"]) == (12, 1, [0.0, 31.0])
    assert facts["class_counts"] == {"even": 8, "odd": 8} and facts["homophily"] == 0.0
    assert facts["degree_quantiles"] == {"0 %": 0.0, "25 %": 2.0, "50 %": 2.0, "75 %": 2.0, "95 %": 2.0, "100 %": 2.0}
    assert facts["split"] == {"train": 9, "val": 4, "easy": 1, "medium": 1, "hard": 1, "full": 3}
    assert facts["constant_columns"] == 0 and found.ok
    assert "2 of 2 classes have fewer than 10 members: even, odd" in found.warnings


def test_warnings_name_what_has_no_remedy() -> None:
    x = np.ones((16, 2), dtype=np.float32)
    x[:, 1] = np.arange(16) * 100
    split = {"train": np.array([0, 2]), "val": np.array([4]), "test": np.array([1, 3])}
    told = " | ".join(report(clean(arrays(x=x, splits=[split]))).warnings)
    assert "no training node has class 1" in told and "1 of 2 features are the same for all nodes" in told
    assert "features reach from 0 to 1500, far for the step" in told
    alike = " | ".join(report(clean(arrays(y=np.zeros(16, dtype=np.int64), weights=np.zeros(17)))).warnings)
    assert "one class only" in alike and "17 listed edges have weight 0" in alike


def test_any_dataset_gets_the_difficulties() -> None:
    tiny = load_dataset("synth-tiny")
    drawn = load_dataset("synth-tiny", split="difficulty", mode="hard")
    assert drawn.mode == "hard" and drawn.graph.fingerprint() == tiny.graph.fingerprint()
    degrees = tiny.graph.adj.degrees.double()
    means = [float(degrees[drawn.test_ids(band)].mean()) for band in ("easy", "medium", "hard")]
    assert means[0] < means[1] < means[2]
    assert drawn.with_split(1).index_train.tolist() == tiny.with_difficulty(1).index_train.tolist()
    assert drawn.index_train.tolist() != tiny.with_difficulty(1).index_train.tolist()
    same = Dataset.from_arrays(tiny.adj, tiny.features, tiny.labels)
    assert same.index_train.tolist() == drawn.index_train.tolist()


def test_a_dataset_goes_to_disk_and_back(tmp_path) -> None:
    made = cleaned_dataset(arrays(), CleaningOptions(components="largest"))
    storage.save(made, tmp_path / "clean")
    back = load_dataset(str(tmp_path / "clean"))
    assert back.graph.fingerprint() == made.graph.fingerprint()
    assert {part: ids.tolist() for part, ids in back.split.test.items()} == {
        part: ids.tolist() for part, ids in made.split.test.items()
    }
    with pytest.raises(DataError, match="exists already"):
        storage.save(made, tmp_path / "clean")
    assert [path.name for path in tmp_path.iterdir()] == ["clean"]


def test_a_directory_without_a_split_and_with_directed_edges(tmp_path) -> None:
    """The layout of GRB as somebody's script may write it."""
    u, v = np.array(RING).T
    matrix = coo_array((np.ones(12), (u, v)), shape=(16, 16)).tocsr()
    csr = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data, "shape": np.array([16, 16])}
    write_npz(tmp_path / "adj.npz", csr)
    write_npz(tmp_path / "features.npz", {"data": np.ones((16, 2))})
    write_npz(tmp_path / "labels.npz", {"data": np.arange(16) % 2})
    dataset = load_dataset(str(tmp_path))
    assert dataset.num_edges == 12 and len(dataset.test_ids("easy")) == 1
    assert "12 of 12 edges listed in one direction only: directed=symmetrise" in dataset.notes
    write_npz(tmp_path / "adj.npz", {**csr, "indptr": csr["indptr"][:-1]})
    with pytest.raises(DataError, match="is no square CSR matrix"):
        read_raw(tmp_path)


def test_paths_that_are_nothing(tmp_path) -> None:
    with pytest.raises(DataError, match="does not exist; a folder with edges.csv, edges.parquet or adj.npz"):
        read_raw(tmp_path / "none")
    with pytest.raises(DataError, match="neither edges.csv nor adj.npz"):
        load_dataset(str(tmp_path))
    write_npz(tmp_path / "a.npz", {"edge_index": np.array(RING).T, "y": np.zeros(12, dtype=np.int64)})
    with pytest.raises(DataError, match="dangling is about text files"):
        read_raw(tmp_path / "a.npz", dangling="drop")


def test_a_collection_keeps_its_graphs_and_their_splits() -> None:
    graphs = tiny_graphs()
    found = clean(from_dataset(graphs))
    assert Dataset.from_raw(found.arrays).scheme is graphs.scheme and found.problems == ()
    assert Dataset.from_raw(found.arrays).graph.fingerprint() == graphs.graph.fingerprint()
    facts = report(found).facts
    assert (facts["task"], facts["graphs"]) == ("classify graphs", 40)
    sizes = np.array([4] * 4)
    nodes = cleaned_dataset(arrays(edges=np.array([[0, 4], [1, 5]]), sizes=sizes, splits=[PARTS]))
    assert nodes.task == "node" and nodes.index_test.tolist() == [3]
    with pytest.raises(DataError, match="an edge joins two graphs"):
        clean(arrays(edges=np.array([[0], [5]]), sizes=sizes, splits=[PARTS]))


def test_a_collection_has_no_difficulties() -> None:
    many = arrays(sizes=np.array([12, 4]), y=np.array([0, 1]))
    with pytest.raises(DataError, match="this is a collection of graphs"):
        clean(many, CleaningOptions(split="difficulty"))


def test_a_loaded_dataset_is_given_as_it_is() -> None:
    tiny = load_dataset("synth-tiny")
    again = cleaned_dataset(from_dataset(tiny))
    assert again.graph.fingerprint() == tiny.graph.fingerprint()
    assert {part: len(ids) for part, ids in again.split.test.items()} == {
        part: len(ids) for part, ids in tiny.split.test.items()
    }


def test_the_authors_name_for_a_graph_of_ones_own() -> None:
    u, v = np.array(RING).T
    adj = coo_array((np.ones(12), (u, v)), shape=(12, 12))
    x, y = np.eye(12, dtype=np.float32), np.arange(12) % 2
    masks = [np.arange(12) < 6, np.arange(12) == 6, np.arange(12) > 6]
    dataset = CustomDataset(adj=adj, features=x, labels=y, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])
    assert (dataset.num_train, dataset.num_val, dataset.num_test) == (6, 1, 5) and isinstance(dataset, Dataset)
    assert CustomDataset(adj, x, y, name="ring").with_mode("easy").num_test == 1
    with pytest.raises(DataError, match="val_mask is missing"):
        CustomDataset(adj, x, y, train_mask=masks[0], test_mask=masks[2])


@pytest.mark.parametrize("weighted", [False, True])
def test_a_file_of_arrays_is_reported_as_it_is_loaded(tmp_path, weighted: bool) -> None:
    pairs = np.array([[place, (place + 1) % 30] for place in range(30)]).T
    arrays = {"edge_index": pairs, "x": np.eye(30, 4, dtype=np.float32), "y": np.arange(30) % 2}
    if weighted:
        arrays["edge_weight"] = np.linspace(0.5, 1, 30, dtype=np.float32)
    np.savez(tmp_path / "mine.npz", **arrays)
    loaded, shown = load_dataset(str(tmp_path / "mine.npz")), cleaned_dataset(read_raw(tmp_path / "mine.npz"))
    assert loaded.fingerprint() == shown.fingerprint()
    assert {part: ids.tolist() for part, ids in loaded.split.test.items()} == {
        part: ids.tolist() for part, ids in shown.split.test.items()
    }
