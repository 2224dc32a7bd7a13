"""Data frames as datasets: the same as the CSV files of them, with ids and names kept."""

from __future__ import annotations

import sys

import pytest

from grb.dataset import Dataset, load_dataset
from grb.errors import DataError, MissingExtra

pandas = pytest.importorskip("pandas")


def frames(n: int = 20):
    nodes = pandas.DataFrame(
        {
            "account_id": [f"a{i}" for i in range(n)],
            "balance": [i / 2 for i in range(n)],
            "vip": [i % 5 == 0 for i in range(n)],
            "country": [["DE", "FR"][i % 2] for i in range(n)],
            "opened": pandas.date_range("2024-01-01", periods=n),
            "label": [i % 2 for i in range(n)],
        }
    )
    edges = pandas.DataFrame({"source": [f"a{i}" for i in range(n)], "target": [f"a{(i + 1) % n}" for i in range(n)]})
    return nodes, edges


def test_frames_equal_their_csv_files(tmp_path) -> None:
    nodes, edges = frames()
    nodes.assign(vip=nodes.vip.astype(int)).to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    columns = {"time": "opened"}
    made, read = Dataset.from_pandas(nodes, edges, columns=columns), Dataset.from_csv(tmp_path, columns=columns)
    assert made.fingerprint() == read.fingerprint()
    assert made.names.features == read.names.features == ["balance", "vip", "country=DE", "country=FR"]
    assert made.names.of_nodes(made.index_train) == [f"a{i}" for i in range(12)]
    vips = made.with_targets("vip")
    assert vips.names.of_nodes(vips.index_test) == ["a15"]
    assert made.with_targets("country=DE").num_test == 3


def test_split_columns_and_the_index_as_ids() -> None:
    nodes, edges = frames()
    nodes["split"] = ["train"] * 10 + ["val"] * 4 + ["test"] * 6
    made = Dataset.from_pandas(nodes.drop(columns="opened").set_index("account_id"), edges)
    assert (made.num_train, made.num_val, made.num_test) == (10, 4, 6)
    assert made.names.of_nodes([3]) == ["a3"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda n, e: (n.drop(columns="label"), e), "give columns={'label': NAME}"),
        (lambda n, e: (n, e.rename(columns={"source": "sender"})), "none named source; give columns={'source': NAME}"),
        (lambda n, e: (n, e.assign(target="nobody")), "row 0 of edges names node 'nobody'"),
        (lambda n, e: (pandas.concat([n, n]), e), "two rows of nodes have the id 'a0'"),
        (lambda n, e: (n.to_dict(), e), "nodes is a dict, but a pandas DataFrame is needed"),
        (lambda n, e: (n.assign(note=[f"text {i}" for i in range(20)]), e), r"leave_out=\['note'\]"),
    ],
)
def test_what_is_wrong_is_said_with_the_next_step(change, words: str) -> None:
    nodes, edges = frames()
    with pytest.raises(DataError, match=words):
        Dataset.from_pandas(*change(nodes.drop(columns="opened"), edges))


def test_parquet_says_what_it_needs(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pyarrow.*\[parquet\]"):
        Dataset.from_parquet(tmp_path / "nodes.parquet", tmp_path / "edges.parquet")


@pytest.fixture
def parquet():
    return pytest.importorskip("pyarrow", reason="Parquet files need pyarrow: the extra parquet")


def test_parquet_files_equal_their_frames(tmp_path, parquet) -> None:
    nodes, edges = frames()
    nodes.to_parquet(tmp_path / "nodes.parquet")
    edges.to_parquet(tmp_path / "edges.parquet")
    columns = {"time": "opened"}
    made = Dataset.from_parquet(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", columns=columns)
    assert made.fingerprint() == Dataset.from_pandas(nodes, edges, columns=columns).fingerprint()
    assert made.names.of_nodes([0, 1]) == ["a0", "a1"]
    assert Dataset.from_csv(tmp_path, columns=columns).fingerprint() == made.fingerprint()
    nodes.drop(columns="opened").to_parquet(tmp_path / "nodes.parquet")
    assert load_dataset(str(tmp_path) + "/").num_nodes == 20  # a folder of them is a dataset by its path
    with pytest.raises(DataError, match="dangling is about text files"):
        Dataset.from_csv(tmp_path, dangling="drop")


def test_parquet_types_that_numpy_lacks_are_read_or_refused_in_a_sentence(tmp_path, parquet) -> None:
    """Categories, whole numbers with gaps, arrow's own strings, decimals."""
    nodes, edges = frames()
    nodes = nodes.drop(columns="opened").assign(country=nodes.country.astype("category"))
    plain = Dataset.from_pandas(nodes, edges)

    def read(changed, **options):
        changed.to_parquet(tmp_path / "nodes.parquet")
        edges.to_parquet(tmp_path / "edges.parquet")
        return Dataset.from_parquet(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", **options)

    assert read(nodes).fingerprint() == plain.fingerprint()
    assert read(nodes.convert_dtypes()).fingerprint() == plain.fingerprint()
    gaps = nodes.assign(balance=pandas.array([None, *range(19)], dtype="Int64"))
    with pytest.raises(DataError, match="zero or mean would go on"):
        read(gaps)
    assert read(gaps, missing="mean").features[0, 0] == 9.0
    (tmp_path / "nodes.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="is no Parquet file"):
        Dataset.from_parquet(tmp_path / "nodes.parquet", tmp_path / "edges.parquet")
    with pytest.raises(DataError, match="does not exist; a Parquet file"):
        Dataset.from_parquet(tmp_path / "none.parquet", tmp_path / "edges.parquet")
