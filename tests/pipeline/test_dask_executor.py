"""A Dask cluster of two workers on loopback: the same records as without it, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grb.cli.app import app
from grb.errors import DataError, IntegrityError
from grb.pipeline import Job, Limits, Outcome, Store, Study, plan_study, read_recipe, run
from grb.pipeline import dask_executor as module
from grb.pipeline.dask_executor import DaskExecutor
from grb.pipeline.isolation import run_job_isolated
from grb.pipeline.scheduler import Event, JobGraph, Scheduler
from helpers import needs_grb_cora
from pipeline.parts import BARE, bare, bits, forge, of_kind, recipe

distributed = pytest.importorskip("distributed", reason="needs dask: pip install distributed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a scheduler with two workers, each behind a nanny that starts it anew when it dies."""
    here = str(Path(__file__).parents[1])
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
        env={"PYTHONPATH": here, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
    ) as made:
        yield made.scheduler_address


class Killer:
    """Kills a worker of the cluster, once, as soon as the first attack is done."""

    def __init__(self, address: str) -> None:
        with distributed.Client(address, set_as_default=False) as client:
            self.pid = next(iter(client.run(os.getpid).values()))
        self.done = False

    def __call__(self, event: Event) -> None:
        if event.kind == "done" and event.job.kind == "attack" and not self.done:
            self.done = True
            os.kill(self.pid, signal.SIGKILL)


def jobs_of(*attacks: Any, **changes: Any) -> list[Job]:
    return of_kind(plan_study(bare(*attacks, **changes)), "attack")


def test_the_records_are_those_of_this_process(study: Study, store: Store, address: str, tmp_path: Path) -> None:
    own = Store(tmp_path / "store")
    events: list[str] = []
    outcome = run(study.jobs.values(), own, cluster=address, on_event=lambda event: events.append(event.kind))
    assert outcome == Outcome(done=len(study.jobs))
    assert bits(own, study.jobs) == bits(store, study.jobs)
    assert own.verify() == [] and events.count("done") == events.count("started") == len(study.jobs)
    assert list((own.path / "claims").iterdir()) == []
    assert run(study.jobs.values(), own, cluster=address).cached == len(study.jobs)


def test_profiles_of_the_taxonomy_are_those_of_this_process(address: str, tmp_path: Path) -> None:
    command = ["taxonomy", "run", "made_collections:tiny_graphs", "--epochs", "2", "--seeds", "2"]
    command += ["--perturbations", "NoEdges,RandRewire"]
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    for own, place in ((here, ("--workers", "0")), (there, ("--dask", address))):
        done = CliRunner().invoke(app, [*command, "--store", str(own.path), *place])
        assert done.exit_code == 0, done.stderr
    keys = sorted(here.keys())
    assert len(keys) == 6 and keys == sorted(there.keys()) and there.verify() == []
    assert [here.read(key).measurement for key in keys] == [there.read(key).measurement for key in keys]


def test_certificates_are_those_of_this_process(address: str, tmp_path: Path) -> None:
    """Certain ones, sampled ones and refusals; done again there is nothing to do."""
    made = recipe(
        BARE,
        attacks=["rnd"],
        defenses=["gcn+known", {"name": "gcn+smooth", "p_drop": 0.9, "p_node": 0.8, "samples": 20}],
        certificates=["by-construction", {"name": "bi-smoothing", "samples": 40}],
        threat={"nodes": 1, "edges_per_node": 2},
    )
    study = plan_study(made)
    certified = {job.key for job in of_kind(study, "certify")}
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    assert run(study.jobs.values(), here, limits=Limits(workers=0)) == Outcome(done=len(study.jobs))
    assert run(study.jobs.values(), there, cluster=address) == Outcome(done=len(study.jobs))
    assert len(certified) >= 6 and there.verify() == []
    assert bits(here, certified) == bits(there, certified)
    assert run(study.jobs.values(), there, cluster=address).cached == len(study.jobs)


def test_workers_that_do_not_see_the_store_get_parcels(
    study: Study, store: Store, address: str, tmp_path: Path
) -> None:
    own = Store(tmp_path / "store")
    graph = JobGraph(study.jobs.values(), own, lambda event: None)
    own.prepare()
    made = DaskExecutor(address, own, Limits(), study.jobs.values())
    made.run_context = replace(made.run_context, store=str(tmp_path / "of another machine"))
    with made as workers:
        Scheduler(own, Limits(), graph).run(workers)
        assert made.shipping and module._scratch(made.run_context.token).exists()
    assert graph.outcome == Outcome(done=len(study.jobs))
    assert bits(own, study.jobs) == bits(store, study.jobs) and own.verify() == []
    assert not module._scratch(made.run_context.token).exists()


def test_a_parcel_is_checked_before_it_enters_the_store(study: Study, store: Store, tmp_path: Path) -> None:
    job = of_kind(study, "attack")[0]
    parcel = module._pack(store, [job.key])
    (artefact,) = [name for name in parcel if name.startswith("objects/")]
    with pytest.raises(DataError, match="other bytes than its name says"):
        module._unpack(Store(tmp_path / "a"), {**parcel, artefact: parcel[artefact] + b"x"}, [job.key])
    (record,) = [name for name in parcel if name.startswith("records/")]
    spoilt = parcel[record].replace(b'"result": {', b'"result": {"more": 1,')
    for place, changed in enumerate([{**parcel, record: spoilt}, {record: parcel[record]}]):
        own = Store(tmp_path / f"b{place}")
        with pytest.raises(Exception, match=r"damaged|changed|missing"):
            module._unpack(own, changed, [job.key])
        assert not own.has(job.key)


def test_only_the_records_that_were_asked_for_enter_the_store(study: Study, store: Store, tmp_path: Path) -> None:
    """A worker that answers with more, with another record, or with none."""
    asked, other = (job.key for job in of_kind(study, "attack")[:2])
    own = Store(tmp_path / "store")
    for parcel, words in (
        (module._pack(store, [asked, other]), f"{other}.json' was sent, which nobody asked for"),
        (module._pack(store, [other]), "which nobody asked for"),
        ({"records/aa/../../../x.json": b"{}"}, "which nobody asked for"),
        ({"claims/x": b""}, "which nobody asked for"),
        ({}, f"record {asked[:12]} was not sent"),
    ):
        with pytest.raises(DataError, match=words):
            module._unpack(own, parcel, [asked])
        assert not list(own.keys())
    module._unpack(own, module._pack(store, [asked]), [asked])
    assert list(own.keys()) == [asked]


def test_a_record_that_contradicts_its_inputs_does_not_enter(study: Study, store: Store, tmp_path: Path) -> None:
    """A worker that improves the score that it was asked for, with a right checksum."""
    job = next(job for job in of_kind(study, "score") if job.data.edits)
    own = Store(tmp_path / "store")
    module._unpack(own, module._pack(store, job.needs), job.needs)
    values = store.read(job.key).to_dict()
    next(iter(values["measurement"]["outcomes"].values()))["values"]["accuracy"] = 0.999
    scratch = Store(tmp_path / "scratch")
    forge(scratch, values)
    with pytest.raises(IntegrityError, match="is not kept: its accuracy .* targets are correct"):
        module._unpack(own, module._pack(scratch, [job.key]), [job.key])
    assert not own.has(job.key)


@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 64, bytes(64)])
@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_what_listens_but_is_no_scheduler_is_refused_within_seconds(
    tmp_path: Path, scheme: str, answer: bytes | None
) -> None:
    """A port that nobody serves, a server that waits for us to speak, and servers that speak something else."""
    open_connections = []

    def serve() -> None:
        with suppress(OSError):
            while answer is not None:
                connection, _ = listening.accept()
                open_connections.append(connection)
                connection.sendall(answer)

    jobs = jobs_of("Idle")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        start = time.monotonic()
        with pytest.raises(DataError, match="no Dask scheduler answers at") as refused:
            run(jobs, Store(tmp_path / "store"), cluster=f"{scheme}://127.0.0.1:{listening.getsockname()[1]}")
        assert time.monotonic() - start < 10 and "\n" not in str(refused.value)
    for connection in open_connections:
        connection.close()


def test_kill_9_of_a_worker_costs_nothing(address: str, tmp_path: Path) -> None:
    study = plan_study(bare({"name": "Idle", "seconds": 0.2}, repeats=6))
    own = Store(tmp_path / "store")
    killer = Killer(address)
    outcome = run(study.jobs.values(), own, cluster=address, on_event=killer)
    assert killer.done and outcome.complete and own.verify() == []
    assert all(own.has(key) for key in study.jobs)


def test_a_cluster_of_our_own_listens_on_loopback_only_and_is_gone_afterwards(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    heard: set[str] = set()

    def listen(event: Event) -> None:
        if event.kind == "done":
            family = [psutil.Process(), *psutil.Process().children(recursive=True)]
            sockets = [each for process in family for each in process.net_connections("inet")]
            heard.update(each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN)

    own = Store(tmp_path / "store")
    before = set(psutil.Process().children(recursive=True))
    outcome = run(plan_study(recipe(BARE, attacks=["rnd"])).jobs.values(), own, cluster="local:1", on_event=listen)
    assert outcome.complete and heard == {"127.0.0.1"}
    left = [
        each for each in set(psutil.Process().children(recursive=True)) - before if "grb" in " ".join(each.cmdline())
    ]
    assert left == []


def test_a_failing_job_takes_nothing_with_it(address: str, tmp_path: Path) -> None:
    jobs = jobs_of("Failing", "Idle")
    own = Store(tmp_path / "store")
    outcome = run(jobs, own, cluster=address)
    assert outcome.done == 1 and outcome.failed == {jobs[0].key: "RuntimeError: the attack is broken"}
    assert [failure["key"] for failure in own.failures()] == [jobs[0].key]


def test_our_own_job_that_takes_too_long_is_ended_with_its_worker(address: str, tmp_path: Path) -> None:
    study = plan_study(recipe(BARE, attacks=["rnd"], training={"epochs": 10_000_000, "patience": 10_000_000}))
    (fit, *_), jobs = of_kind(study, "fit"), of_kind(study, "fit")[:1] + of_kind(study, "attack")
    outcome = run(jobs, Store(tmp_path / "store"), limits=Limits(timeout=4.0), cluster=address)
    assert outcome == Outcome(done=1, failed={fit.key: "it took more than 4 seconds"})


def test_a_cluster_without_workers_ends_the_run_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORKER_TIMEOUT", 3.0)
    own = Store(tmp_path / "store")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as made:

        def leave(event: Event) -> None:
            if event.kind == "started":
                made.scale(0)

        with pytest.raises(DataError, match=r"has no worker left; what is done is kept: .*"):
            run(
                plan_study(recipe(BARE, attacks=["rnd"])).jobs.values(),
                own,
                cluster=made.scheduler_address,
                on_event=leave,
            )
    assert own.verify() == [] and not list((own.path / "claims").glob("*"))


def test_a_plug_in_for_which_nobody_waits_any_more_is_ended(tmp_path: Path) -> None:
    """Its run was stopped, and has taken its claim back."""
    (job,) = jobs_of({"name": "Idle", "seconds": 300})
    own = Store(tmp_path / "store")
    claim = tmp_path / "claim that is gone"
    outcome = run_job_isolated(str(own.path), job.to_dict(), None, limits=Limits(), wanted=claim.exists)
    assert outcome.message == "nobody waits for it any more" and outcome.seconds < 60


@pytest.mark.stress
def test_the_commands_of_the_docs_listen_on_loopback_only() -> None:
    psutil = pytest.importorskip("psutil")
    text = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    commands = [line.removesuffix(" &").split() for line in text.splitlines() if line.startswith("dask ")]
    assert [command[1] for command in commands] == ["scheduler", "worker"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    commands = [[word.replace("8786", port) for word in command] for command in commands]
    commands[0] += ["--port", port]
    running: list[Any] = []
    heard: dict[int, set[str]] = {}
    try:
        for command in commands:
            running.append(subprocess.Popen([sys.executable, "-m", *command], stderr=subprocess.DEVNULL))
        end = time.monotonic() + 60
        while len(heard) < 4 and time.monotonic() < end:  # a scheduler, a nanny of two, and they
            time.sleep(0.5)
            family = [each for made in running for each in psutil.Process(made.pid).children(recursive=True)]
            for process in [*family, *(psutil.Process(made.pid) for made in running)]:
                for each in process.net_connections("inet"):
                    if each.status == psutil.CONN_LISTEN:
                        heard.setdefault(process.pid, set()).add(each.laddr.ip)
    finally:
        for made in reversed(running):
            made.terminate()
            made.wait(20)
    assert len(heard) == 4 and set().union(*heard.values()) == {"127.0.0.1"}


def test_a_job_that_takes_too_long_is_ended_once(address: str, tmp_path: Path) -> None:
    jobs = jobs_of({"name": "Idle", "seconds": 120}, "Idle")
    start = time.monotonic()
    outcome = run(jobs, Store(tmp_path / "store"), limits=Limits(timeout=20.0), cluster=address)
    assert outcome.done == 1 and outcome.failed == {jobs[0].key: "it took more than 20 seconds"}
    assert time.monotonic() - start < 90


def test_what_is_no_cluster_is_refused_in_one_sentence(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = jobs_of("Idle")
    with pytest.raises(DataError, match="no Dask scheduler answers at"):
        run(jobs, Store(tmp_path / "store"), cluster="tcp://127.0.0.1:9")
    for wrong in ("nonsense", "local:0"):
        with pytest.raises(DataError, match="local or local:4 is needed"):
            run(jobs, Store(tmp_path / "store"), cluster=wrong)
    gpu = [replace(job, device="cuda") for job in jobs]
    with pytest.raises(DataError, match="the jobs need a GPU"):
        run(gpu, Store(tmp_path / "store"), cluster=address)
    monkeypatch.setattr(module, "__version__", "0.0.0")
    with pytest.raises(DataError, match="but here it is 0.0.0; install one"):
        run(jobs, Store(tmp_path / "store"), cluster=address)
    monkeypatch.undo()
    monkeypatch.setattr(module, "WORKER_TIMEOUT", 0.5)
    with (
        distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
        ) as empty,
        pytest.raises(DataError, match="has no worker"),
    ):
        run(jobs, Store(tmp_path / "store"), cluster=empty.scheduler_address)
    assert list((tmp_path / "store").glob("claims/*")) == []


def test_without_dask_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ImportError, match=r"a cluster needs distributed.*\[dask\]"):
        run(jobs_of("Idle"), Store(tmp_path / "store"), cluster="local")


def of_grb_cora(**changes: Any) -> Study:
    return plan_study(read_recipe("grb-cora").quickly().changed(**changes))


@needs_grb_cora
def test_a_board_of_grb_cora_has_the_same_bits_here_and_there(address: str, tmp_path: Path) -> None:
    small = {"defenses": ["gcn+ln"], "attacks": ["fgsm"], "white_box": [], "modes": ["full"]}
    study = of_grb_cora(**small, iterations=10, training={"epochs": 10})
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    assert run(study.jobs.values(), here, limits=Limits(workers=2)).complete
    assert run(study.jobs.values(), there, cluster=address).complete
    assert bits(here, study.jobs) == bits(there, study.jobs)


@pytest.mark.stress
@needs_grb_cora
def test_the_quick_board_of_grb_cora_has_the_same_bits_although_a_worker_dies(
    address: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    study = of_grb_cora()
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    assert run(study.jobs.values(), here, limits=Limits(workers=2)).complete
    killer = Killer(address)
    assert run(study.jobs.values(), there, cluster=address, on_event=killer).complete and killer.done
    assert bits(here, study.jobs) == bits(there, study.jobs)
    record_property("counted", f"{len(study.jobs)} jobs, the same bits")
