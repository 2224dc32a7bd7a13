"""Every way in: what one door refuses, no other lets in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import grb
from grb.dataset import Dataset
from grb.errors import BudgetError, DataError, GRBError, IntegrityError
from grb.graph import GraphEdit
from grb.model.build import build, settings
from grb.pipeline import DataRef, Job, Record, Spec, Store, Study, plan_study
from grb.pipeline.bundle import merge, opened, pack
from grb.pipeline.card import Card
from grb.pipeline.planner import recipe_threat
from grb.pipeline.rerun import rerun
from grb.pipeline.submission import check, record_of
from grb.pipeline.worker import Worker
from grb.threat import Injection
from grb.trainer.checkpoint import save_model
from pipeline.parts import copied, of_kind, recipe

CARD = Card("mine", "attack", "synth-tiny")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


def huge_edit(dataset: Dataset) -> GraphEdit:
    """200 nodes with 90 edges each, and features a thousand times too large."""
    n = dataset.num_nodes
    ends = torch.stack([torch.arange(n, n + 200).repeat_interleave(90), torch.arange(90).repeat(200)])
    features = torch.full((200, dataset.num_features), 1000.0)
    return GraphEdit(n, ends, torch.empty(2, 0, dtype=torch.int64), features)


def sent(dataset: Dataset, edit: GraphEdit, path: Path, threat: Injection) -> tuple[Record, bytes]:
    """A record as ``submit`` would have written it, made without any check."""
    edit.save(path)
    small = GraphEdit(dataset.num_nodes, torch.empty(2, 0, dtype=torch.int64), torch.empty(2, 0, dtype=torch.int64))
    fine = small.save(path.with_name("fine.npz"))
    record = record_of(check(fine, CARD, dataset, Injection.preset("synth-tiny", "full")))
    job = replace(record.job, extra={**record.job.extra, "threat": threat.to_dict()})
    return replace(record, key=job.key, job=job), path.read_bytes()


def keep(store: Store, record: Record, data: bytes, name: str, suffix: str) -> Record:
    forged = replace(record, objects={name: store.put(data, suffix)})
    store.write(forged)
    return forged


def test_a_bundle_with_an_edit_beyond_the_limits_counts_nowhere(
    dataset: Dataset, study: Study, store: Store, tmp_path: Path
) -> None:
    wide = Injection(10**6, 10**6, (-1e9, 1e9))
    usual = recipe_threat(recipe(), dataset, "full")
    for number, threat in enumerate((wide, usual)):
        place = copied(store, tmp_path / f"store{number}")
        record, data = sent(dataset, huge_edit(dataset), tmp_path / "edit.npz", threat)
        forged = keep(place, record, data, "edit", ".npz")
        assert any(problem.key == forged.key for problem in place.verify()) or threat is wide
        planned = plan_study(recipe(), submitted=list(place.submitted()))
        if threat is wide:  # says itself that it has other limits: joins no board of these
            assert forged.key not in planned.jobs
            continue
        scores = [job for job in of_kind(planned, "score") if forged.key in job.needs]
        assert scores
        with pytest.raises(BudgetError, match="200 injected nodes|200 nodes"):
            Worker(place).compute(scores[0])


def test_the_limits_of_the_recipe_count_not_those_of_the_dataset(dataset: Dataset, tmp_path: Path) -> None:
    tight = recipe(threat={"nodes": 1})
    result = grb.run_attack("rnd", None, dataset)
    assert result.budget["nodes"] > 1
    file = result.edit.save(tmp_path / "edit.npz")
    usual = check(file, CARD, dataset, Injection.preset("synth-tiny", "full"))
    assert record_of(usual).key not in plan_study(tight, submitted=[record_of(usual)]).jobs
    with pytest.raises(BudgetError, match="1"):
        check(file, CARD, dataset, recipe_threat(tight, dataset, "full"))


@pytest.mark.parametrize(
    "data",
    [
        DataRef("synth-tiny", "f", (Spec("os:system", {"command": "touch canary"}),)),
        DataRef("os:getcwd", "f"),
    ],
)
def test_code_in_a_bundle_is_never_run(study: Study, store: Store, tmp_path: Path, monkeypatch, data: DataRef) -> None:
    monkeypatch.chdir(tmp_path)
    place = copied(store, tmp_path / "store")
    good = store.read(of_kind(study, "score")[0].key)
    job = replace(good.job, data=replace(data, fingerprint=good.job.data.fingerprint))
    forged = replace(good, key=job.key, job=job)
    place.write(forged)
    with pytest.raises(IntegrityError, match="names code"):
        rerun(place, [forged.key])
    bundle = tmp_path / "bundle.zip"
    pack(place, bundle)
    with opened(bundle) as source, pytest.raises(GRBError, match="names code"):
        merge(source, Store(tmp_path / "other"))
    assert not (tmp_path / "canary").exists() and not list(Store(tmp_path / "other").keys())


def test_a_model_that_repeats_forever_is_refused_before_it_runs(dataset: Dataset, store: Store, tmp_path: Path) -> None:
    chosen = settings("appnp", "synth-tiny").override(k=800_000)
    model = build(chosen, dataset.num_features, dataset.num_classes, torch.Generator().manual_seed(0))
    file = save_model(model, tmp_path / "appnp.safetensors")
    card = Card("slow", "defense", "synth-tiny")
    with pytest.raises(DataError, match="k=800000, but"):
        check(file, card, dataset, Injection.preset("synth-tiny", "full"))
    place = copied(store, tmp_path / "store")
    job = Job(
        "fit", Spec("submission", {"name": "slow", "sha256": "0" * 64}), DataRef("synth-tiny", dataset.fingerprint())
    )
    record = Record(job.key, job, {"parameters": 1}, {}, {})
    forged = keep(place, record, file.read_bytes(), "weights", ".safetensors")
    with pytest.raises(DataError, match="k=800000, but"):
        Worker(place).model(forged.key)
