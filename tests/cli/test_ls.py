from __future__ import annotations

import pytest

from grb import catalogue
from grb.cli.ls import known_kind

from .conftest import refusal


def test_without_a_kind_everything_is_listed(grb_json):
    found = grb_json("ls")
    assert list(found) == catalogue.kinds()
    assert {row["name"] for row in found["dataset"]} == set(catalogue.entries("dataset"))


@pytest.mark.parametrize("word", ["model", "models", "Models"])
def test_kind_in_singular_and_plural(grb_json, word):
    assert list(grb_json("ls", word)) == ["model"]


@pytest.mark.parametrize("kind", catalogue.kinds())
def test_table_names_everything(grb, kind):
    shown = grb("ls", f"{kind}s").stdout
    assert all(name in shown for name in catalogue.entries(kind))


def test_known_kind_of_every_kind():
    assert [known_kind(f"{kind}s") for kind in catalogue.kinds()] == catalogue.kinds()


def test_datasets_say_where_they_are(grb_json, monkeypatch, tmp_path):
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    rows = {row["name"]: row for row in grb_json("ls", "datasets")["dataset"]}
    assert rows["synth-tiny"]["where"] == "embedded"
    assert rows["grb-cora"]["where"] == "not on this machine"
    assert rows["grb-cora"]["nodes"] == 2680


def test_unknown_kind(grb):
    done = grb("ls", "modles")
    assert done.exit_code == 2
    assert refusal(done).startswith("no kind 'modles'. Did you mean 'models'? Allowed: ")


def test_markdown_has_every_name_in_the_row_of_its_family(grb):
    lines = grb("ls", "--markdown").stdout.splitlines()
    assert lines[:2] == ["| what | names |", "|---|---|"]
    rows = {what: names.split(", ") for what, names in (line.strip("| ").split(" | ") for line in lines[2:])}
    shown = [name.strip("`") for names in rows.values() for name in names]
    assert set(shown) >= {name for kind in catalogue.kinds() for name in catalogue.entries(kind)}
    assert "`tdgia`" in rows["attacks, injection"] and "`dice`" in rows["attacks, modification"]
    assert "`gcnguard`" in rows["models that are defenses"] and "`gcn`" in rows["models"]
    assert "`synth-tiny`" in rows["datasets, embedded"] and "`grb-cora`" in rows["datasets, GRB"]
    assert {"`injection`", "`modification`", "`corruption`"} <= set(rows["scenarios"])


@pytest.mark.parametrize(("kind", "what"), [("models", "models"), ("recipes", "recipes")])
def test_markdown_of_one_kind(grb, kind, what):
    lines = grb("ls", kind, "--markdown").stdout.splitlines()
    assert lines[2].startswith(f"| {what} | `") and not any("scenarios" in line for line in lines)


def test_markdown_and_json_are_refused_together(grb):
    done = grb("ls", "--markdown", "--json")
    assert done.exit_code == 2
    assert refusal(done) == "--markdown and --json were both given; give one of them"


def test_datasets_are_listed_with_size_and_kind(grb_json):
    rows = {row["name"]: row for row in grb_json("ls", "datasets")["dataset"]}
    assert all(row["kind"] for row in rows.values())
    assert (rows["mutag"]["kind"], rows["mutag"]["graphs"], rows["mutag"]["nodes"]) == ("molecules", 188, 3371)
    assert rows["grb-cora"]["kind"] == "citation" and rows["grb-cora"]["nodes"] == 2680
    lacking = [name for name, row in rows.items() if row["nodes"] is None]
    assert set(lacking) <= {"flickr-rebuilt", "reddit-rebuilt"}
