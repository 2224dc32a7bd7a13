"""Edge lists of every shape that people keep, and a sentence with its line for every row that cannot be read."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grb
from grb.dataset import Dataset, folder, load_dataset, tables
from grb.errors import DataError

NAMES = [f"n{place}" for place in range(12)]
PAIRS = [(place, (place + 1) % 12) for place in range(12)]  # a ring


def write(place: Path, **files: str) -> Path:
    place.mkdir(exist_ok=True)
    for name, text in files.items():
        (place / f"{name}.csv").write_text(text, encoding="utf-8")
    return place


def ring(place: Path, **others: str) -> Path:
    edges = "source,target\n" + "".join(f"n{u},n{v}\n" for u, v in PAIRS)
    nodes = "id,a,b,label\n" + "".join(f"n{i},{i / 4},{i % 2},{'xy'[i % 2]}\n" for i in range(12))
    return write(place, **{"edges": edges, "nodes": nodes, **others})


def pairs_of(found) -> set[tuple[int, int]]:
    return {(min(u, v), max(u, v)) for u, v in found.edges.T.tolist()}


RING = {(min(u, v), max(u, v)) for u, v in PAIRS}


def test_names_and_headers(tmp_path) -> None:
    found = folder.from_csv(ring(tmp_path / "ring"))
    assert pairs_of(found) == RING
    assert (found.name, found.n, found.weights, found.splits) == ("ring", 12, None, [])
    assert found.ids == NAMES
    assert found.x.tolist() == [[i / 4, i % 2] for i in range(12)]
    assert found.y.tolist() == [0, 1] * 6 and found.classes == ["x", "y"]


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|", " ", "   "])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_no_headers_and_any_delimiter(tmp_path, delimiter: str, ending: str) -> None:
    """As the files of Cora are: node, features, label; and two nodes."""
    edges = ending.join(f"{u}{delimiter}{v}" for u, v in PAIRS)
    nodes = ending.join(delimiter.join(map(str, (i, i / 4, i % 2, "xy"[i % 2]))) for i in range(12))
    found = folder.from_csv(write(tmp_path, edges=edges + ending, nodes=nodes))
    assert pairs_of(found) == RING and found.x[5].tolist() == [1.25, 1] and found.classes == ["x", "y"]


def test_numbers_that_are_no_places_are_names(tmp_path) -> None:
    """Ids 1000, 1007, ... in shuffled rows: the place of a node is its row."""
    order = [5, 0, 7, 2, 11, 1, 3, 4, 10, 6, 9, 8]
    edges = "".join(f"{1000 + 7 * u} {1000 + 7 * v}\n" for u, v in PAIRS)
    nodes = "".join(f"{1000 + 7 * i},{i},{i % 2}\n" for i in order)
    found = folder.from_csv(write(tmp_path, edges=edges, nodes=nodes))
    assert {(order[u], order[v]) for u, v in found.edges.T.tolist()} == set(PAIRS)
    assert found.x[:, 0].tolist() == order


def test_labels_features_and_split_in_files_of_their_own_in_any_order(tmp_path) -> None:
    labels = "id,label\n" + "".join(f"n{i},{i % 3}\n" for i in range(12))
    features = "id,f\n" + "".join(f"n{i},{i}\n" for i in reversed(range(12)))
    parts = ["train"] * 6 + ["validation"] * 2 + ["Test"] * 3
    split = "node,split\n" + "".join(f"n{i},{part}\n" for i, part in enumerate(parts))
    edges = "".join(f"n{u},n{v}\n" for u, v in PAIRS)
    found = folder.from_csv(write(tmp_path, edges=edges, labels=labels, features=features, split=split))
    assert found.x[:, 0].tolist() == list(range(12)) and found.classes is None
    assert {part: ids.tolist() for part, ids in found.splits[0].items()} == {
        "train": [0, 1, 2, 3, 4, 5],
        "val": [6, 7],
        "test": [8, 9, 10],
    }
    dataset = load_dataset(str(tmp_path))
    assert (dataset.num_train, dataset.num_val, dataset.num_test) == (6, 2, 3)


def test_rows_are_nodes_where_they_have_no_names(tmp_path) -> None:
    found = folder.from_csv(
        write(tmp_path, edges="".join(f"{u},{v}\n" for u, v in PAIRS), labels="".join(f"{i % 2}\n" for i in range(12)))
    )
    assert (found.n, found.ids, found.x) == (12, None, None) and pairs_of(found) == RING


def test_weights_comments_quotes_blank_lines_and_gzip(tmp_path) -> None:
    ring(tmp_path)
    (tmp_path / "edges.csv").unlink()
    rows = "\n".join(f'"n{u}", "n{v}", {u + 0.5}' for u, v in PAIRS)
    with gzip.open(tmp_path / "edges.csv.gz", "wt", encoding="utf-8-sig") as stream:
        stream.write("# a comment\n% another\n\nfrom,to,weight\n" + rows.replace("\n", "\n\n", 1) + "\n")
    found = folder.from_csv(tmp_path)
    assert pairs_of(found) == RING and found.weights.tolist() == [u + 0.5 for u in range(12)]


def test_features_from_an_npz_file(tmp_path) -> None:
    write(tmp_path, edges="".join(f"{u},{v}\n" for u, v in PAIRS), labels="\n".join("ab" * 6))
    np.savez(tmp_path / "features.npz", data=np.ones((12, 3), dtype=np.float32))
    assert folder.from_csv(tmp_path).x.shape == (12, 3)
    np.savez(tmp_path / "features.npz", data=np.ones((11, 3), dtype=np.float32))
    with pytest.raises(DataError, match=r"features.npz has shape \[11, 3\], but \[12, d\] is needed"):
        folder.from_csv(tmp_path)


def test_missing_cells_are_nan_and_hidden_labels_are_minus_one(tmp_path) -> None:
    nodes = "id,a,label\n" + "".join(
        f"n{i},{'' if i == 2 else 'NA' if i == 3 else i},{'?' if i == 4 else i % 2}\n" for i in range(12)
    )
    found = folder.from_csv(ring(tmp_path, nodes=nodes))
    assert np.isnan(found.x[:, 0]).nonzero()[0].tolist() == [2, 3]
    assert found.y[4] == -1 and (found.y >= 0).sum() == 11


def test_columns_that_are_no_features(tmp_path) -> None:
    nodes = "id,title,a,label\n" + "".join(f"n{i},word {i},{i},{i % 2}\n" for i in range(12))
    ring(tmp_path, nodes=nodes)
    with pytest.raises(
        DataError, match="line 2 of .*nodes.csv has 'word 0' in column 'title', but features.*are numbers"
    ):
        folder.from_csv(tmp_path)
    assert folder.from_csv(tmp_path, leave_out=["Title"]).x.shape == (12, 1)


def test_edges_of_nodes_that_no_table_has(tmp_path) -> None:
    """As in the files of CiteSeer."""
    edges = "source,target\nn0,n1\nn1,gone\nn1,n2\n"
    ring(tmp_path, edges=edges)
    with pytest.raises(DataError, match="line 3 of .*edges.csv names node 'gone', which no table of nodes has"):
        folder.from_csv(tmp_path)
    found = folder.from_csv(tmp_path, dangling="drop")
    assert pairs_of(found) == {(0, 1), (1, 2)} and "1 edges of nodes that no table has dropped" in " ".join(found.notes)


EDGES = "source,target,weight\nn0,n1,1\n"
NODES = "id,a,label\nn0,1,x\n"


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"edges": EDGES + "n1,n2\n"}, r"line 3 of .*edges.csv has 2 columns, but 3 are needed"),
        ({"edges": EDGES + "\nn1,n2,1,4\n"}, r"line 4 of .*edges.csv has 4 columns, but 3 are needed"),
        ({"edges": EDGES + "n1,n2,heavy\n"}, r"line 3 of .*edges.csv has 'heavy' in column 'weight', but weights are"),
        ({"edges": EDGES + "n1,n2,inf\n"}, r"line 3 of .*edges.csv has weight 'inf', but it must be finite"),
        ({"edges": EDGES + "n1,n2,\n"}, r"line 3 of .*edges.csv has weight '', but it must be finite"),
        ({"edges": EDGES + "n1,n99,1\n"}, r"line 3 of .*edges.csv names node 'n99'"),
        ({"edges": EDGES + '"n1,n2,1\n'}, r"line 3 of .*edges.csv is no CSV"),
        ({"edges": "n0\nn1\n"}, r"edges.csv has one column, but an edge has two nodes"),
        ({"edges": "n0,n1,1,1\n"}, r"edges.csv has 4 columns and no header"),
        ({"edges": "# nothing\n\n"}, r"edges.csv has no rows"),
        ({"edges": "source,target\n"}, r"edges.csv has a header and no rows"),
        ({"edges": "src,from,to\nn0,n1,n2\n"}, r"has columns 'src' and 'from', which mean the same"),
        ({"edges": "source,a,b,c\nn0,n1,n2,n3\n"}, r"but none named source and target"),
        ({"nodes": NODES + "n1,2,x\nn0,3,y\n"}, r"line 4 of .*nodes.csv names node 'n0' again"),
        ({"nodes": NODES + "n1,two,x\n"}, r"line 3 of .*nodes.csv has 'two' in column 'a', but features"),
        ({"nodes": NODES + "n1,2\n"}, r"line 3 of .*nodes.csv has 2 columns, but 3 are needed"),
        ({"nodes": "id,a\n" + "".join(f"n{i},1\n" for i in range(12))}, r"has no labels; put a column 'label'"),
        ({"nodes": "id,label\n" + "".join(f"n{i},?\n" for i in range(12))}, r"no node has a label"),
        ({"labels": "id,label\nn0,x\n"}, r"nodes.csv and labels.csv both have labels"),
        ({"features": "id,z\nn0,1\n"}, r"nodes.csv and features.csv both have features"),
        ({"split": "id,split\nn0,train\nn1,exam\n"}, r"line 3 of .*split.csv has part 'exam', but train, val"),
        ({"split": "id,split\nn0,train\nn99,test\n"}, r"line 3 of .*split.csv names node 'n99'"),
        (
            {"split": "id,split\nn0,val\nn1,test\n"},
            r"the split has val, test, but train and some test nodes are needed",
        ),
    ],
)
def test_a_malformed_file_is_one_sentence_with_its_line(tmp_path, files: dict[str, str], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        folder.from_csv(ring(tmp_path, **files))


def test_a_word_that_names_a_column_makes_no_header_beside_numbers(tmp_path) -> None:
    nodes = "".join(f"{i},{i * 10},{'yn'[i % 2]}\n" for i in range(12))
    found = folder.from_csv(write(tmp_path, edges="".join(f"{u},{v}\n" for u, v in PAIRS), nodes=nodes))
    assert found.n == 12 and pairs_of(found) == RING
    assert found.x.flatten().tolist() == [i * 10 for i in range(12)] and found.classes == ["n", "y"]


@pytest.mark.parametrize("label", ["\u00b2", "-+3", "7" * 5000])
def test_odd_numbers_are_names_of_classes(tmp_path, label: str) -> None:
    nodes = "id,label\n" + "".join(f"n{i},{label if i else 1}\n" for i in range(12))
    assert sorted(folder.from_csv(ring(tmp_path / "ring", nodes=nodes)).classes) == sorted(["1", label])


def test_long_words_in_columns_that_nobody_wants_cost_nothing(tmp_path) -> None:
    nodes = "id,a,label,abstract\n" + "".join(
        f"n{i},{'' if i == 3 else i},x,{'w' * 100_000 * (i == 5)}\n" for i in range(12)
    )
    found = folder.from_csv(ring(tmp_path / "ring", nodes=nodes), leave_out=("abstract",))
    assert found.x.shape == (12, 1) and np.isnan(found.x[3, 0])


@pytest.mark.parametrize(
    ("name", "word"), [("zzz", "'zzz' is to be left out, but there are"), ("label", "is no feature")]
)
def test_only_features_can_be_left_out(tmp_path, name: str, word: str) -> None:
    with pytest.raises(DataError, match=word):
        folder.from_csv(ring(tmp_path / "ring"), leave_out=(name,))


def test_an_endless_line_and_a_spoilt_archive_are_refused(tmp_path, monkeypatch) -> None:
    place = ring(tmp_path / "ring")
    monkeypatch.setattr(tables, "LONGEST_LINE", 50)
    (place / "edges.csv").write_text("source,target\n" + "0," * 60 + "\n")
    with pytest.raises(DataError, match="line 2 of .*edges.csv has more than 50 characters"):
        folder.from_csv(place)
    monkeypatch.undo()
    packed = bytearray(gzip.compress(b"".join(b"n%d,n%d\n" % (u, v) for u, v in PAIRS) * 50))
    packed[20:40] = bytes(255 - byte for byte in packed[20:40])
    (place / "edges.csv").unlink()
    (place / "edges.csv.gz").write_bytes(packed)
    with pytest.raises(DataError, match="cannot be read|no UTF-8|is no CSV|column"):
        folder.from_csv(place)


def test_what_is_missing_or_no_text_is_said(tmp_path) -> None:
    with pytest.raises(DataError, match="has no edges.csv"):
        folder.from_csv(tmp_path)
    write(tmp_path, edges="a,b\n")
    with pytest.raises(DataError, match="has edges and no nodes; a nodes.csv"):
        folder.from_csv(tmp_path)
    ring(tmp_path)
    (tmp_path / "edges.tsv").write_text("n0\tn1\n")
    with pytest.raises(DataError, match="has edges.csv and edges.tsv"):
        folder.from_csv(tmp_path)
    (tmp_path / "edges.tsv").unlink()
    (tmp_path / "nodes.csv").write_bytes(b"id,label\nn\xff\xfe0,x\n")
    with pytest.raises(DataError, match="nodes.csv is no UTF-8 text"):
        folder.from_csv(tmp_path)
    (tmp_path / "edges.csv").unlink()
    (tmp_path / "edges.csv.gz").write_bytes(b"\x1f\x8bnot")
    with pytest.raises(DataError, match="cannot be read"):
        folder.from_csv(write(tmp_path, nodes="id,label\nn0,x\n"))


def test_a_header_may_be_denied(tmp_path) -> None:
    """A first line that looks like a header may be an edge."""
    ring(tmp_path, edges="u,v\n", labels="u,0\nv,1\n")
    (tmp_path / "nodes.csv").unlink()
    with pytest.raises(DataError, match="a header and no rows"):
        folder.from_csv(tmp_path)
    assert folder.from_csv(tmp_path, header=False).edges.tolist() == [[0], [1]]


cells = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"], exclude_characters=",;|#%\"'"),
    min_size=1,
    max_size=6,
)
names = st.lists(cells.filter(lambda cell: not tables.is_missing(cell)), min_size=2, max_size=12, unique=True)


@settings(max_examples=60)
@given(names, st.data())
def test_any_names_come_back(tmp_path_factory, names: list[str], data) -> None:
    place = st.integers(0, len(names) - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), min_size=1, max_size=20))
    where = tmp_path_factory.mktemp("any")
    write(
        where,
        edges="source,target\n" + "".join(f"{names[u]},{names[v]}\n" for u, v in pairs),
        nodes="id,a,label\n" + "".join(f"{name},{i},c{i % 2}\n" for i, name in enumerate(names)),
    )
    found = folder.from_csv(where)
    assert found.edges.T.tolist() == [list(pair) for pair in pairs] and list(found.ids) == names


def test_a_million_edges_take_seconds(tmp_path) -> None:
    """Of CPU: numbers by numpy's parser, names by the csv module."""
    rng = np.random.default_rng(0)
    n, m = 100_000, 1_000_000
    pairs = rng.integers(0, n, (m, 2))
    (tmp_path / "edges.csv").write_text("\n".join(f"{u},{v}" for u, v in pairs.tolist()))
    (tmp_path / "labels.csv").write_text("\n".join(map(str, rng.integers(0, 5, n))))
    start = time.process_time()
    found = folder.from_csv(tmp_path)
    assert time.process_time() - start < 3
    assert np.array_equal(found.edges.T, pairs)


def test_from_csv_to_an_attack(tmp_path) -> None:
    """A folder goes wherever a dataset's name does, and gets limits from its own features."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    pairs = [(u, v) for u, v in rng.integers(0, 60, (150, 2)) if u != v]
    nodes = "".join(f"{i},{labels[i] + rng.normal():.3f},{rng.random():.3f},{labels[i]}\n" for i in range(60))
    write(tmp_path / "mine", edges="".join(f"{u},{v}\n" for u, v in pairs), nodes=nodes)
    dataset = load_dataset(str(tmp_path / "mine"), mode="easy")
    assert sorted(dataset.split.test) == ["easy", "full", "hard", "medium"] and dataset.name == "mine"
    model = grb.train("gcn", dataset, epochs=3, hidden_features=[8])
    result = grb.run_attack("pgd", model, dataset, iterations=2)
    low, high = dataset.feature_range
    assert result.edit.new_x.min() >= low and result.edit.new_x.max() <= high
    same = Dataset.from_csv(tmp_path / "mine" / "edges.csv", name="other", seed=0)
    assert same.fingerprint() == dataset.fingerprint() and same.name == "other"


def test_a_header_wider_than_its_rows_is_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,more,target\n" + "".join(f"{u},{v}\n" for u, v in PAIRS))
    rows = "".join(f"{place},{place / 12},{place % 2}\n" for place in range(12))
    (tmp_path / "nodes.csv").write_text("id,size,label\n" + rows)
    with pytest.raises(DataError, match="line 2"):
        load_dataset(str(tmp_path))


def test_account_ids_are_names_and_come_back(tmp_path) -> None:
    """Neither account_id nor another identifier is a feature, and whatever is cleaned keeps the names."""
    nodes = "account_id,amount,device_id,label\n" + "".join(f"n{i},{i / 4},{900 + i},{i % 2}\n" for i in range(12))
    edges = "source,target\n" + "".join(f"n{u},n{v}\n" for u, v in PAIRS if {u, v} != {3, 4} and {u, v} != {4, 5})
    place = ring(tmp_path / "accounts", nodes=nodes, edges=edges)
    found = folder.from_csv(place)
    assert found.ids == NAMES and found.feature_names == ["amount"] and found.x.shape == (12, 1)
    assert any("device_id" in note for note in found.notes)
    dataset = Dataset.from_csv(place, components="largest")
    kept = dataset.names.of_nodes(range(dataset.num_nodes))
    assert "n4" not in kept and len(kept) == 11
    assert dataset.names.find_nodes(["n5"], dataset.num_nodes).tolist() == [kept.index("n5")]
    with pytest.raises(DataError, match="there is no node 'n4'"):
        dataset.names.find_nodes(["n4"], dataset.num_nodes)
    from grb.dataset import storage

    back = load_dataset(str(storage.save(dataset, tmp_path / "stored")))
    assert back.names.of_nodes(range(11)) == kept and back.names.of_feature(0) == "amount"
    test = kept[int(dataset.index_test[0])]
    assert dataset.with_targets([test]).index_test.tolist() == [int(dataset.index_test[0])]


def test_columns_by_their_own_names_words_and_time(tmp_path) -> None:
    nodes = "konto,opened,country,fraud\n" + "".join(
        f"n{i},2024-01-{i + 1:02d},{['DE', 'FR', 'DE'][i % 3]},{'yes' if i % 4 == 0 else 'no'}\n" for i in range(12)
    )
    edges = "sender,receiver,amount,when\n" + "".join(f"n{u},n{v},{u},x\n" for u, v in PAIRS)
    place = ring(tmp_path / "bank", nodes=nodes, edges=edges)
    columns = {"id": "konto", "label": "Fraud", "time": "opened", "source": "sender", "target": "receiver"}
    dataset = Dataset.from_csv(place, columns=columns)
    assert dataset.names.features == ["country=DE", "country=FR"] and dataset.names.classes == ["no", "yes"]
    assert dataset.features[:3].tolist() == [[1, 0], [0, 1], [1, 0]]
    assert dataset.names.of_nodes(dataset.index_train) == [f"n{i}" for i in range(8)]
    assert dataset.names.of_nodes(dataset.index_test) == ["n9", "n10", "n11"]
    with pytest.raises(DataError, match="no table of nodes has a column 'konot'"):
        Dataset.from_csv(place, columns={**columns, "id": "konot"})
    with pytest.raises(DataError, match="no column 'sendr' for the source"):
        Dataset.from_csv(place, columns={**columns, "source": "sendr"})
    with pytest.raises(grb.errors.UnknownName, match="role of a column"):
        Dataset.from_csv(place, columns={"idd": "konto"})
