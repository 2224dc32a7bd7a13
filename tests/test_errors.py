"""What a refusal says."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import grb
from grb.attack.modification.centrality import exact_betweenness
from grb.automl import tune
from grb.catalogue import canonical
from grb.dataset import ogb
from grb.dataset.registry import SOURCES
from grb.errors import MissingExtra, UnknownName
from grb.evaluator.testing import parametrize_with_checks
from grb.pipeline.attestation import create_key, read_public_key
from grb.pipeline.dask_executor import DaskExecutor
from grb.pipeline.isolation import Limits
from grb.pipeline.store import Store


@pytest.mark.parametrize(
    ("kind", "typo", "meant"),
    [
        ("model", "gnc", "gcn"),
        ("attack", "fgms", "fgsm"),
        ("dataset", "grb-corra", "grb-cora"),
        ("model", "GNI", "gin"),
    ],
)
def test_the_nearest_name_is_proposed(kind: str, typo: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"Did you mean '{meant}'"):
        canonical(kind, typo)


# extra, package that is not there, what needs it
EXTRAS: list[tuple[str, str, Callable[[Path], object]]] = [
    ("automl", "optuna", lambda _: tune("gcn", grb.load_dataset("synth-tiny"), trials=1)),
    ("dask", "distributed", lambda path: DaskExecutor("local", Store(path), Limits(), [])),
    ("dev", "pytest", lambda _: parametrize_with_checks("attack", [])),
    ("igraph", "igraph", lambda _: exact_betweenness(grb.load_dataset("synth-tiny").graph)),
    ("ogb", "ogb.lsc", lambda path: ogb.read(SOURCES["pcqm4mv2-subset"], path)),
    ("parquet", "pyarrow", lambda path: grb.Dataset.from_parquet(path / "nodes.parquet", path / "edges.parquet")),
    ("sign", "cryptography", lambda path: create_key(path / "key")),
    ("sign", "securesystemslib", lambda path: read_public_key(create_key(path / "key"))),
]


@pytest.mark.parametrize(("extra", "package", "use"), EXTRAS, ids=[package for _, package, _ in EXTRAS])
def test_an_extra_that_is_missing_is_one_sentence_with_the_way_to_get_it(
    extra: str, package: str, use: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")] + [package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra) as refused:
        use(tmp_path)
    said = str(refused.value)
    what, advice = said.split(". Install it with: ")
    assert re.fullmatch(rf"((an?|this) [\w ]+|\w+ing|exact betweenness|pytest) needs {re.escape(package)}", what)
    assert f"[{extra}]" in advice and "\n" not in said
