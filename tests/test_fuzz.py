"""Every reader of files, fed with damaged ones: it reads, or it refuses in one sentence; nothing else ever leaves it.

A mutation takes bytes away, repeats them, or puts others in. In an npz it also happens inside of a member, whose checksum is
then made anew, so that the damage reaches the reader behind the archive.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grb
from grb.dataset import Dataset, load_dataset
from grb.dataset.storage import save as save_dataset
from grb.errors import GRBError
from grb.graph import GraphEdit
from grb.leaderboard import export
from grb.pipeline import Limits, Store, bundle, plan_study, run
from grb.pipeline.card import read_card
from grb.pipeline.recipe import parse_recipe, read_recipe
from grb.pipeline.results import build_board
from grb.taxonomy.read import read_groups, read_models, read_profiles
from grb.trainer.checkpoint import load_model, save_model

EXAMPLES = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "stress" else 60
LONGEST_SENTENCE = 1000
# what is done, where, over how much, and with which bytes
Mutation = tuple[str, float, float, bytes]
JUNK = (
    *(b"\x00", b"\xff", b"-1", b"9" * 20, b"1e999", b"nan", b"NaN", b"inf", b"null", b"0x", b"_"),
    *(b"[]", b"{}", b'"', b"'", b"\n", b",", b":", b"- ", b"&a [*a]", b"!!python/object:os.system", b"../"),
    *(b"\xe2\x80\xae", b"\xed\xa0\x80", b"PK\x03\x04", b"\x93NUMPY"),
)

RECIPE = """
title: small
dataset: synth-tiny
defenses: [gcn]
attacks: [rnd]
modes: [full]
repeats: 1
training: {epochs: 5}
"""
CARD = """
name: mine
authors: [A. Author]
link: https://example.org
kind: attack
dataset: synth-tiny
scenario: injection
mode: full
knowledge: transfer
cost: {cpu_seconds: 3.0}
reported: {gcn: 0.5}
"""


@dataclass(frozen=True)
class Reader:
    """A good file or folder, and what reads it.

    Args:
        path: File that is damaged; the folder around it is read where ``whole`` is set.
        read: Of the path.
        whole: Folder that is copied together with the file.
    """

    path: Path
    read: Callable[[Path], object]
    whole: Path | None = None


def _mutations() -> st.SearchStrategy[list[Mutation]]:
    kinds = st.sampled_from(["put", "over", "cut", "end", "twice", "bit"])
    share = st.floats(0, 1, exclude_max=True)
    junk = st.sampled_from(JUNK) | st.binary(min_size=1, max_size=8)
    return st.lists(st.tuples(kinds, share, share, junk), min_size=1, max_size=4)


def damaged(data: bytes, mutations: list[Mutation]) -> bytes:
    for kind, where, length, junk in mutations:
        start = int(where * len(data))
        stop = min(len(data), start + 1 + int(length * 64))
        if kind == "put":
            data = data[:start] + junk + data[start:]
        elif kind == "over":
            data = data[:start] + junk + data[start + len(junk) :]
        elif kind == "cut":
            data = data[:start] + data[stop:]
        elif kind == "end":
            data = data[:start]
        elif kind == "twice":
            data = data[:stop] + data[start:]
        elif data:
            data = data[:start] + bytes([data[start] ^ (1 << int(length * 8))]) + data[start + 1 :]
    return data


def damaged_inside(data: bytes, member: float, mutations: list[Mutation]) -> bytes:
    """A zip archive, one of whose members is damaged and has a checksum that fits."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        chosen = names[int(member * len(names))]
        for name in names:
            new.writestr(name, damaged(old.read(name), mutations) if name == chosen else old.read(name))
    return stream.getvalue()


def _survives(reader: Reader, data: bytes, where: Path) -> None:
    if where.exists():
        shutil.rmtree(where)
    if reader.whole is None:
        where.mkdir()
        path = target = where / reader.path.name
    else:
        shutil.copytree(reader.whole, where)
        path, target = where / reader.path.relative_to(reader.whole), where
    path.write_bytes(data)
    try:
        reader.read(target)
    except GRBError as refusal:
        sentence = str(refusal)
        assert sentence and "\n" not in sentence and len(sentence) < LONGEST_SENTENCE


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, Reader]:
    """One good file of every kind."""
    folder = tmp_path_factory.mktemp("good")
    dataset = load_dataset("synth-tiny")
    return {
        **_datasets(folder, dataset),
        **_artefacts(folder, dataset),
        **_records(folder),
        **_tables(folder),
    }


def _datasets(folder: Path, dataset: Dataset) -> dict[str, Reader]:
    own = folder / "own"
    save_dataset(dataset, own)
    graph = dataset.graph
    assert isinstance(graph.x, torch.Tensor) and graph.y is not None
    edges = graph.adj.edges()
    np.savez(folder / "arrays.npz", edge_index=edges, x=graph.x, y=graph.y)
    text = folder / "text"
    text.mkdir()
    pairs = edges.T.tolist()
    (text / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    rows = enumerate(zip(graph.y.tolist(), graph.x[:, :3].tolist(), strict=True))
    lines = [f"{node},{label}," + ",".join(f"{value:.3f}" for value in x) for node, (label, x) in rows]
    (text / "nodes.csv").write_text("id,label,a,b,c\n" + "\n".join(lines) + "\n")
    return {
        **{f"dataset {path.name}": Reader(path, _dataset, own) for path in sorted(own.iterdir()) if path.is_file()},
        "arrays": Reader(folder / "arrays.npz", _dataset),
        "edges": Reader(text / "edges.csv", _dataset, text),
        "nodes": Reader(text / "nodes.csv", _dataset, text),
    }


def _dataset(path: Path) -> Dataset:
    return load_dataset(str(path))


def _artefacts(folder: Path, dataset: Dataset) -> dict[str, Reader]:
    n, d = dataset.graph.n, dataset.graph.num_features
    edit = GraphEdit(n=n, add=torch.tensor([[0, 1], [n, n]]), new_x=torch.zeros(1, d))
    edit.save(folder / "edit.npz")
    save_model(grb.train("gcn", dataset, epochs=2), folder / "model.safetensors")
    (folder / "card.yaml").write_text(CARD)
    (folder / "recipe.yaml").write_text(RECIPE)
    read_card(folder / "card.yaml")
    return {
        "edit": Reader(folder / "edit.npz", GraphEdit.load),
        "model": Reader(folder / "model.safetensors", load_model),
        "card": Reader(folder / "card.yaml", read_card),
        "recipe": Reader(folder / "recipe.yaml", read_recipe),
    }


def _records(folder: Path) -> dict[str, Reader]:
    study = plan_study(parse_recipe(RECIPE, name="small"))
    store = Store(folder / "store")
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    bundle.pack(store, folder / "bundle.zip")
    (folder / "board.json").write_text(export.to_json(build_board(study, store)))
    record = next(store.path.glob("records/*/*.json"))
    return {
        "record": Reader(record, lambda path: list(Store(path).records()), store.path),
        "store": Reader(store.path / "store.json", lambda path: list(Store(path).records()), store.path),
        "bundle": Reader(folder / "bundle.zip", _opened),
        "boards": Reader(folder / "board.json", export.read_boards),
    }


def _opened(path: Path) -> list[Any]:
    with bundle.opened(path) as store:
        return list(store.records())


def _tables(folder: Path) -> dict[str, Reader]:
    rng = np.random.default_rng(0)
    columns = ["-", "NoEdges", "LowPass", "RandFtrs"]
    rows = [
        ",".join([f"d{place}", *(f"{value:.3f}" for value in rng.uniform(0.5, 1, len(columns)))]) for place in range(6)
    ]
    (folder / "profiles.csv").write_text("\n".join([",".join(["dataset", *columns]), *rows]) + "\n")
    runs = [
        {"dataset": f"d{d}", "perturbation": name, "model": "gcn", "seed": seed, "auroc": float(rng.uniform(0.5, 1))}
        for d in range(5)
        for name in columns
        for seed in range(2)
    ]
    (folder / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in runs))
    (folder / "groups.csv").write_text("dataset,group\n" + "".join(f"d{place},g{place % 2}\n" for place in range(6)))
    return {
        "profiles": Reader(folder / "profiles.csv", read_profiles),
        "runs": Reader(folder / "runs.jsonl", read_models),
        "groups": Reader(folder / "groups.csv", read_groups),
    }


NAMES = [
    *(f"dataset {part}.npz" for part in ("adj", "features", "index", "labels")),
    *("arrays", "edges", "nodes"),
    *("edit", "model", "card", "recipe", "record", "store", "bundle", "boards", "profiles", "runs", "groups"),
]
FEW = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def test_every_good_file_is_read(made, tmp_path):
    assert set(NAMES) <= set(made)
    for reader in made.values():
        reader.read(reader.whole or reader.path)


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(mutations=_mutations())
def test_a_damaged_file_is_read_or_refused(made, tmp_path_factory, name, mutations):
    where = tmp_path_factory.getbasetemp() / f"damaged {name}"
    _survives(made[name], damaged(made[name].path.read_bytes(), mutations), where)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith("dataset") or name in ("arrays", "edit", "bundle")]
)
@FEW
@given(member=st.floats(0, 1, exclude_max=True), mutations=_mutations())
def test_damage_behind_a_right_checksum_is_read_or_refused(made, tmp_path_factory, name, member, mutations):
    where = tmp_path_factory.getbasetemp() / f"damaged {name}"
    _survives(made[name], damaged_inside(made[name].path.read_bytes(), member, mutations), where)
