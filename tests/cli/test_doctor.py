from __future__ import annotations

import builtins
import sys
from importlib import metadata

import pytest

from grb import catalogue
from grb.cli import doctor


def facts_by_name(result):
    return {fact["name"]: fact for fact in result["facts"]}


def test_everything_is_reported(grb_json, grb):
    facts = facts_by_name(grb_json("doctor"))
    wanted = ("Python", "grb", "torch", "CPUs", "device", "transparent huge pages", "OMP_WAIT_POLICY", "GRB_DATA")
    assert set(wanted) <= set(facts)
    assert facts["torch"]["value"] == metadata.version("torch")
    assert facts["synth-tiny"]["value"] == "embedded"
    assert "synth-tiny" in grb("doctor").stdout


def test_what_is_in_order_is_short_unless_everything_is_asked_for(grb):
    short, whole = grb("doctor").stdout.splitlines(), grb("doctor", "--all").stdout.splitlines()
    assert len(short) <= len(whole) - 10
    assert any("networkx" in line and line.startswith("ok") for line in whole)
    assert sum("found:" in line for line in short) == 2


def test_missing_extras_come_with_the_pip_command(grb_json, monkeypatch):
    monkeypatch.setattr(doctor, "installed", lambda name: None if name == "optuna" else "1.0")
    result = grb_json("doctor")
    assert any('pip install ".[automl]"' in advice for advice in result["advice"])
    assert facts_by_name(result)["ogb"]["status"] == "ok"


def test_datasets_that_are_missing_are_one_line_with_counts(grb_json, monkeypatch, tmp_path):
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    facts = grb_json("doctor")["facts"]
    *here, missing = [fact for fact in facts if fact["group"] == "datasets"]
    names = list(catalogue.entries("dataset"))
    assert [fact["name"] for fact in here] == ["synth-tiny", "synth-cora", "synth-graphs", "synth-cora-fresh"]
    files = len(names) - 4
    assert missing["value"] == f"{files} of {len(names)}: 10 in the layout of GRB, {files - 10} of raw files"
    assert missing["status"] == "missing" and "grb data get NAME" in missing["advice"]


@pytest.mark.parametrize("version", ["0.1.0", None])
def test_the_ancestor_is_warned_about(grb_json, monkeypatch, version):
    real = doctor.installed
    monkeypatch.setattr(doctor, "installed", lambda name: version if name == "grb" else real(name))
    facts = facts_by_name(grb_json("doctor"))
    assert ("distribution 'grb'" in facts) == (version is not None)


def test_works_without_metadata(grb_json, monkeypatch):
    def nothing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", nothing)
    monkeypatch.setattr(metadata, "version", nothing)
    assert facts_by_name(grb_json("doctor"))["grb"]["status"] == "warning"


def test_works_without_torch(grb_json, monkeypatch):
    real = builtins.__import__

    def no_torch(name, *args, **options):
        if name == "torch":
            raise ImportError("libtorch.so: cannot open shared object file")
        return real(name, *args, **options)

    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(builtins, "__import__", no_torch)
    facts = [fact for fact in grb_json("doctor")["facts"] if fact["group"] == "machine" and fact["name"] == "torch"]
    assert facts[0]["status"] == "warning" and "cannot open shared object" in facts[0]["value"]


def test_wrong_grb_data_is_pointed_out(grb_json, monkeypatch, tmp_path):
    monkeypatch.setenv("GRB_DATA", str(tmp_path / "nowhere"))
    result = grb_json("doctor")
    assert any("nowhere is no directory" in advice for advice in result["advice"])
    assert "grb-cora" not in facts_by_name(result)


@pytest.mark.parametrize(
    "setting, tunables, status",
    [
        ("always [madvise] never", "", "hint"),
        ("always [madvise] never", "glibc.malloc.hugetlb=1", "ok"),
        ("[always] madvise never", "", "ok"),
        ("always madvise [never]", "glibc.malloc.hugetlb=1", "hint"),
        (None, "", "info"),
    ],
)
def test_huge_pages(monkeypatch, tmp_path, setting, tunables, status):
    file = tmp_path / "enabled"
    if setting is not None:
        file.write_text(setting)
    monkeypatch.setattr(doctor, "HUGE_PAGES", file)
    monkeypatch.setenv("GLIBC_TUNABLES", tunables)
    (fact,) = doctor._huge_pages()
    assert fact.status == status
    assert (fact.advice is not None) == (status == "hint")
