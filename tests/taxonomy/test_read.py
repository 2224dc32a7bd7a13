from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from grb.errors import DataError, UnknownName
from grb.taxonomy import from_runs, published, read_groups, read_models, read_profiles

ROWS = [
    {
        "dataset": dataset,
        "perturbation": name,
        "model": model,
        "seed": seed,
        "auroc": 0.9 - 0.1 * i - 0.05 * j - 0.01 * seed,
    }
    for model in ("gcn", "gin")
    for i, dataset in enumerate(("a", "b"))
    for j, name in enumerate(("-", "NoEdges", "mine"))
    for seed in range(3)
]


def write_csv(path, rows):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    return path


@pytest.fixture(params=["csv", "json", "jsonl", "wrapped", "capitals"])
def runs(request, tmp_path):
    if request.param == "csv":
        return write_csv(tmp_path / "runs.csv", [list(ROWS[0]), *(list(row.values()) for row in ROWS)])
    if request.param == "capitals":
        heads = [name.upper() for name in ROWS[0]]
        words = {"-": "Original", "NoEdges": "noedges", "mine": "mine"}
        changed = [{**row, "perturbation": words[row["perturbation"]]} for row in ROWS]
        return write_csv(tmp_path / "runs.csv", [heads, *(list(row.values()) for row in changed)])
    path = tmp_path / f"runs.{'jsonl' if request.param == 'jsonl' else 'json'}"
    text = {
        "json": json.dumps(ROWS),
        "wrapped": json.dumps({"made": "today", "runs": ROWS}),
        "jsonl": "\n".join(json.dumps(row) for row in ROWS),
    }[request.param]
    path.write_text(text, encoding="utf-8")
    return path


def test_runs_of_several_models_in_every_format(runs):
    found = read_models(runs)
    assert list(found) == ["gcn", "gin"]
    expected = from_runs(
        [(row["dataset"], row["perturbation"], row["seed"], row["auroc"]) for row in ROWS if row["model"] == "gcn"]
    )
    assert found["gcn"].perturbations == expected.perturbations == ("NoEdges", "mine")
    np.testing.assert_array_equal(found["gcn"].runs, expected.runs)
    assert found["gcn"].paired.all()
    assert read_profiles(runs, model="GIN").model == "gin"
    with pytest.raises(DataError, match="has results of 2 models; choose one of: gcn, gin"):
        read_profiles(runs)
    with pytest.raises(UnknownName, match="no model 'gat'"):
        read_profiles(runs, model="gat")


def test_wide_tables_of_auroc_and_of_ratios_give_the_same(tmp_path):
    reference = published("transductive").profiles
    scores = np.column_stack([reference.original, reference.original[:, None] * reference.ratio])
    rows = [[name, *row] for name, row in zip(reference.datasets, scores.tolist())]
    wide = write_csv(tmp_path / "auroc.csv", [["dataset", "-", *reference.perturbations], *rows])
    rows = [[name, *row] for name, row in zip(reference.datasets, reference.values.tolist())]
    ratios = write_csv(tmp_path / "log2.csv", [["dataset", *reference.perturbations], *rows])
    first, second = read_profiles(wide), read_profiles(ratios)
    np.testing.assert_allclose(first.values, reference.values, atol=1e-12)
    np.testing.assert_array_equal(second.values, reference.values)
    np.testing.assert_allclose(first.original, reference.original)
    assert second.original is None and first.runs is None


@pytest.mark.parametrize("word", ["", "NaN", "na", "OOM", "None"])
def test_words_for_a_missing_result(tmp_path, word):
    path = write_csv(tmp_path / "t.csv", [["dataset", "original", "x"], ["a", 0.9, word], ["b", 0.8, 0.7]])
    assert read_profiles(path).missing == [("a", "x")]


def test_a_byte_order_mark_and_empty_lines_do_not_matter(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfdataset,-,x\r\n\r\na,0.5,0.25\r\n")
    assert read_profiles(tmp_path / "t.csv").row("a") == {"x": -1.0}


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "t.csv is empty"),
        ("dataset,-,x\n", "has a header but no rows"),
        ("dataset,-,x\na,0.9\n", "line 2 of .*t.csv has 2 cells, but the header has 3"),
        ("dataset,-,x\na,0.9,good\n", "has 'good' for dataset 'a' under 'x', but a number is needed"),
        ("dataset,-,x,x\na,1,1,1\n", "has two columns 'x'"),
        ("dataset,-,none,x\na,1,1,1\n", "several columns for the unperturbed dataset, '-' and 'none'"),
        ("dataset,-\na,0.9\n", "has no column but that of the unperturbed dataset"),
        ("graph,x\na,1\n", "the first column of .*t.csv is 'graph', but 'dataset' is needed"),
        ("dataset,x\na,0.9\nb,0.8\n", "no negative number: if these are AUROCs, add that column"),
        ("dataset,-,x\na,0.9,0.8\na,0.9,0.8\n", "dataset 'a' occurs twice"),
        ("dataset,perturbation,auroc\n,-,0.9\n", "run 1 of .*t.csv names no dataset"),
        ('dataset,-,x\n"a,0.9,0.8\n', "is not a CSV file"),
        ("[1, 2]", "must hold a list of objects"),
        ('[{"dataset": "a", "auroc": 1}]', "run 1 of .*t.csv has no perturbation"),
        ('[{"dataset": "a", "perturbation": "-", "auroc": true}]', "has 'True' for dataset 'a'"),
        ('{"a": 1}', "a JSON object with 0 lists of objects"),
        ("{oops", "line 1 of .*t.csv is not JSON"),
    ],
)
def test_broken_files_get_one_sentence(tmp_path, text, sentence):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=sentence):
        read_profiles(tmp_path / "t.csv")


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataError, match="no file .*gone.csv"):
        read_profiles(tmp_path / "gone.csv")
    with pytest.raises(DataError, match="is a directory"):
        read_profiles(tmp_path)
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is not text in UTF-8"):
        read_profiles(tmp_path / "t.csv")


def test_kind_can_be_said(tmp_path):
    path = write_csv(tmp_path / "t.csv", [["dataset", "x"], ["a", 0.2], ["b", 0.1]])
    assert read_profiles(path, kind="log2").values.tolist() == [[0.2], [0.1]]
    with pytest.raises(DataError, match="has no column for the unperturbed dataset"):
        read_profiles(path, kind="auroc")
    with pytest.raises(UnknownName, match="no kind of table 'log'"):
        read_profiles(path, kind="log")
    (tmp_path / "t.json").write_text("[{}]")
    with pytest.raises(DataError, match="is JSON, which holds runs"):
        read_profiles(tmp_path / "t.json", kind="log2")


def test_groups_from_a_file(tmp_path):
    path = write_csv(tmp_path / "g.csv", [["Dataset", "Group"], ["a", "I-1"], ["b", "I-2"]])
    assert read_groups(path) == {"a": "I-1", "b": "I-2"}
    with pytest.raises(DataError, match="needs dataset and group; add group"):
        read_groups(write_csv(tmp_path / "h.csv", [["dataset", "label"], ["a", "1"]]))
    with pytest.raises(DataError, match="puts dataset 'a' into two groups, '1' and '2'"):
        read_groups(write_csv(tmp_path / "i.csv", [["dataset", "group"], ["a", "1"], ["a", "2"]]))


def test_a_file_of_empty_rows_is_refused(tmp_path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text(",\n,,\n")
    for read in (read_groups, read_models):
        with pytest.raises(DataError, match="only empty rows"):
            read(path)
