from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grb
from grb import metric
from grb.errors import BudgetError, DataError, IntegrityError
from grb.evaluator.measurement import Measurement
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.pipeline import Job, Limits, Spec, Store, Study, plan_study, run
from grb.pipeline.attack_job import TRACE, trace
from grb.pipeline.worker import LRUCache, Worker
from grb.trainer.checkpoint import load_model
from pipeline.parts import FEW, bare, bits, copied, of_kind

# what a job gives


def test_a_fit_gives_the_weights_of_the_same_training(store: Store, study: Study) -> None:
    job = next(job for job in of_kind(study, "fit") if job.spec.name == "gcn" and job.seed == 0)
    record = store.read(job.key)
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, seed=0, epochs=3)
    loaded = load_model(store.find(record, "weights"))
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[name])
    assert record.result["epochs"] == 3 and record.result["parameters"] == sum(p.numel() for p in model.parameters())
    assert 0 <= record.result["val_score"] <= 1


def test_an_attack_gives_the_edit_of_the_same_attack(store: Store, study: Study) -> None:
    dataset = grb.load_dataset("synth-tiny")
    for job in of_kind(study, "attack"):
        record = store.read(job.key)
        edit = GraphEdit.load(store.find(record, "edit"))
        surrogate = job.inputs.get("surrogate")
        model = load_model(store.find(store.read(surrogate), "weights")) if surrogate else None
        params = {} if job.spec.name == "rnd" else {"iterations": 2}
        again = grb.run_attack(job.spec.name, model, dataset, mode=job.mode, seed=job.seed, **params)
        assert torch.equal(edit.add, again.edit.add) and torch.equal(edit.new_x, again.edit.new_x)
        assert record.result["budget"] == again.budget
        assert len(record.result["loss"]) == len(record.result["kept"]) == record.result["steps"] <= TRACE


def test_a_model_of_the_whole_graph_is_not_told_which_nodes_are_injected(
    store: Store, study: Study, tmp_path: Path
) -> None:
    """It saw the test nodes in training; if it were told so, the others would be the injected ones."""
    own, dataset = copied(store, tmp_path / "store"), grb.load_dataset("synth-tiny")
    fit = store.read(of_kind(study, "fit")[0].key)
    job = replace(fit.job, extra={**fit.job.extra, "train_mode": "transductive"})
    own.write(replace(fit, key=job.key, job=job))
    known = Worker(own)._known(job.key, dataset)
    assert known[dataset.index_train].all() and not known[dataset.test_ids("full")].any()
    assert torch.equal(known, Worker(own)._known(fit.key, dataset))


def test_a_score_is_accuracy_and_share_of_changed_predictions(store: Store, study: Study) -> None:
    dataset = grb.load_dataset("synth-tiny")
    for job in of_kind(study, "score"):
        record = store.read(job.key)
        measured = Measurement.from_dict(record.measurement)
        model = load_model(store.find(store.read(job.inputs["model"]), "weights"))
        graph = dataset.graph
        for key in job.data.chain:
            graph = graph.apply(GraphEdit.load(store.find(store.read(key), "edit")))
        before, after = predict(model, dataset.graph).argmax(1), predict(model, graph).argmax(1)
        modes = [job.mode] if job.mode else ["easy", "medium", "hard", "full"]
        assert set(measured.outcomes) == set(modes) and record.result == {} and measured.metric == "accuracy"
        for mode in modes:
            ids = dataset.test_ids(mode)
            right = (after[ids] == dataset.labels[ids]).numpy()
            outcome = measured.outcomes[mode]
            assert outcome.values == {"accuracy": pytest.approx(right.mean(), abs=1e-12)}
            assert outcome.changed == pytest.approx(metric.changed(before[ids], after[ids]), abs=1e-12)
            assert np.array_equal(outcome.bits(), right) and outcome.invalid == 0


def test_records_say_where_they_come_from(store: Store) -> None:
    for record in store.records():
        assert record.provenance["torch"] == str(torch.__version__) and record.provenance["grb"] == grb.__version__
        assert record.provenance["cpu_seconds"] >= 0 and record.provenance["peak_megabytes"] > 10


# the same again


def test_computing_again_gives_the_same_bits(store: Store, study: Study, tmp_path: Path) -> None:
    again = Store(tmp_path / "again")
    run(study.jobs.values(), again, limits=Limits(workers=0))
    assert bits(again, study.jobs) == bits(store, study.jobs)


def test_a_job_that_is_done_is_only_read(store: Store, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(store)
    monkeypatch.setattr(worker, "compute", lambda job: pytest.fail("it was computed again"))
    for job in study.jobs.values():
        assert worker.do(job) == store.read(job.key)


def test_the_number_of_threads_is_the_jobs(store: Store, study: Study) -> None:
    job = replace(of_kind(study, "score")[0], threads=2)
    Worker(store).compute(job)
    assert torch.get_num_threads() == 2


# refusals


def refused(job: Job, store: Store, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Worker(store).compute(job)


def test_another_dataset_than_the_planned_one_is_refused(store: Store, study: Study) -> None:
    job = of_kind(study, "fit")[0]
    refused(replace(job, data=replace(job.data, fingerprint="0" * 64)), store, IntegrityError, "plan again")


def test_other_presets_than_the_planned_ones_are_refused(store: Store, study: Study) -> None:
    for job in (of_kind(study, "fit")[0], of_kind(study, "attack")[0]):
        refused(replace(job, method={**job.method, "lr": 5}), store, IntegrityError, "other presets here")


def test_an_attack_that_raises_its_limits_is_refused(store: Store) -> None:
    """Also where it reaches into its caller: the job's own limits are made anew once it has ended."""
    (job,) = of_kind(plan_study(bare("LimitRaising")), "attack")
    refused(job, store, BudgetError, "100 nodes are injected, but the threat model allows nodes=9")


def test_an_edit_beyond_the_limits_is_no_result(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    (job,) = of_kind(plan_study(bare("Greedy")), "attack")
    refused(job, store, BudgetError, "nodes are injected, but the threat model allows")
    assert not list(store.keys())


def test_changed_weights_and_edits_are_not_used(store: Store, study: Study, tmp_path: Path) -> None:
    spoilt = copied(store, tmp_path / "store")
    job = next(job for job in of_kind(study, "score") if job.data.chain)
    for key, name in ((job.inputs["model"], "weights"), (job.data.chain[0], "edit")):
        path = spoilt.find(spoilt.read(key), name)
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        refused(job, spoilt, IntegrityError, f"artefact '{name}' .* has other bytes")
        path.write_bytes(data)


def test_training_on_an_attacked_graph_is_another_training(store: Store, study: Study, tmp_path: Path) -> None:
    own = copied(store, tmp_path / "store")
    clean = next(job for job in of_kind(study, "fit") if job.spec.name == "gcn" and job.seed == 0)
    edit = next(job for job in of_kind(study, "attack") if job.mode == "full").key
    transductive = {"extra": {"train_mode": "transductive", "validation": "attacked"}}
    job = replace(clean, data=clean.data.with_edit(edit), **transductive)
    weights = Worker(own).compute(job).objects["weights"]["sha256"]
    assert weights != own.read(clean.key).objects["weights"]["sha256"]
    perturbed = replace(clean, data=clean.data.perturbed(Spec("noedges")))
    refused(perturbed, own, DataError, "profiles are of perturbed ones")


# small parts


def test_the_values_used_last_are_kept() -> None:
    recent: LRUCache[int] = LRUCache(2)
    made: list[str] = []

    def get(key: str) -> int:
        return recent.get(key, lambda: made.append(key) or len(made))  # type: ignore[func-returns-value]

    assert [get(key) for key in "abacab"] == [1, 2, 1, 3, 1, 4]
    assert made == ["a", "b", "c", "b"]


@FEW
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=200))
def test_a_trace_is_short_and_finite_and_keeps_its_ends(values: list[float]) -> None:
    shown = trace(values)
    assert len(shown) <= TRACE and all(map(math.isfinite, shown))
    if values and all(map(math.isfinite, values)):
        assert shown[0] == round(values[0], 6) and shown[-1] == round(values[-1], 6)
