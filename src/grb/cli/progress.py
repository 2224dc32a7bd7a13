"""Progress of long work: a live bar on a terminal, a line now and then elsewhere, JSON events if asked for."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

if TYPE_CHECKING:
    from grb.attack import Step
    from grb.pipeline import Event
    from grb.trainer import Epoch

# seconds between two heartbeats without a terminal, two drawings with one, and until silence is broken
HEARTBEAT, REDRAW, SILENCE = 10.0, 0.1, 30.0


@dataclass
class _Task:
    """A running task: epochs or steps done, and the latest loss and scores."""

    label: str
    steps: int | None = None
    done: int = 0
    detail: str = ""
    noun: str = "step"
    bound: str = ""
    best: float | None = None
    begin: float = field(default_factory=time.monotonic)

    def state(self) -> str:
        if self.steps is None or self.done > self.steps:  # unknown, or known wrongly
            return f"{self.done}  {self.detail}"
        left = (time.monotonic() - self.begin) / max(self.done, 1) * max(self.steps - self.done, 0)
        return f"{self.done}/{self.steps}  {self.detail}  ETA {self.bound}{clock(left)}"


class ProgressReporter:
    """Reports the progress of tasks (runs of a command, jobs of a study), as a context manager.

    Args:
        console: The console that progress is written to.
        total: Number of tasks.
        noun: What a task is called.
        costs: Expected seconds of the tasks that are not done yet, by key, which weigh the ETA; all alike if not given.
        workers: Number of tasks that run at a time.
        as_json: Write the events of a study to stdout, one JSON object per line, and nothing else.
    """

    def __init__(
        self,
        console: Console,
        total: int,
        *,
        noun: str = "run",
        costs: Mapping[str, float] | None = None,
        workers: int = 1,
        as_json: bool = False,
    ) -> None:
        self.console, self.total, self.noun, self.workers, self.as_json = console, total, noun, workers, as_json
        self.costs = costs
        self.work = float(total) if costs is None else sum(costs.values()) or 1.0
        self.work_done = 0.0
        self.finished = 0 if costs is None else total - len(costs)
        self.running: dict[str, _Task] = {}
        self.latest = ""
        self.begin = self.reported = time.monotonic()
        self.bars: Progress | None = None
        self.over = threading.Event()

    def __enter__(self) -> ProgressReporter:
        if self.as_json:
            return self
        if _is_live(self.console):
            self.bars = _bars(self.console, TextColumn("{task.fields[state]}", markup=False), auto_refresh=False)
            self.current = self.bars.add_task("", state="", visible=False)
            self.overall = self.bars.add_task(f"all {self.noun}s", total=self.work, state="", visible=self.total > 1)
            self.bars.start()
        threading.Thread(target=self._break_silence, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        if self.bars is not None:
            self.bars.stop()

    def start(self, label: str, steps: int | None = None, *, key: str | None = None) -> None:
        """Report that a task has started.

        Args:
            label: What it is.
            steps: Number of its epochs or steps, if known.
            key: Its key if several run at a time; without one it takes the place of the task before.
        """
        if key is None:
            self.running.clear()
        self.latest = key or label
        self.running[self.latest] = _Task(label, steps)
        if self.bars is not None:
            self._refresh(force=True)

    def update(self, done: int, detail: str = "") -> None:
        """Report the number of steps done of the task that started last, and its state in a few words."""
        task = self.running[self.latest]
        task.done, task.detail = done, detail
        self._refresh()

    def epoch(self, epoch: Epoch) -> None:
        """Report an epoch of a training."""
        task = self.running[self.latest]
        task.noun, task.bound = "epoch", "<"  # an upper bound, because training usually stops early
        detail = f"loss {epoch.loss:.3f}"
        if epoch.val_score is not None:
            task.best = epoch.val_score if task.best is None else max(task.best, epoch.val_score)
            detail += f"  val {100 * epoch.val_score:.2f}  best {100 * task.best:.2f}"
        self.update(epoch.number + 1, detail)

    def step(self, step: Step) -> None:
        """Report a step of an attack, with the fraction of targets that keep their clean label."""
        self.update(self.running[self.latest].done + 1, f"loss {step.loss:.3f}  kept {100 * step.accuracy:.2f}")

    def done(self, message: str = "", *, key: str | None = None) -> None:
        """Report that a task is done, with a line about its result if there is one."""
        self._finish(key)
        if message:
            self.message(message if self.bars is not None else f"[{self.finished}/{self.total}] {message}")
        self._refresh(force=self.bars is not None)

    def failed(self, message: str, *, key: str | None = None) -> None:
        """Report that a task has failed, and why."""
        self._finish(key)
        self.message(f"failed: {message}")
        self._refresh(force=self.bars is not None)

    def message(self, text: str) -> None:
        """Write a line, above the bars if there are any."""
        self.console.print(text)

    def on_event(self, event: Event) -> None:
        """Report an event of a study."""
        key, label = event.job.key, event.job.label
        if self.as_json:
            _write_event(event)
        elif event.kind == "started":
            self.start(label, key=key)
        elif event.kind == "failed":
            self.failed(f"{label}: {event.message}", key=key)
        elif event.kind in ("done", "skipped", "elsewhere"):
            self.done(key=key)
        elif event.kind == "finishing":
            self.message(f"finishing {label}; Ctrl-C once more stops now")

    def _finish(self, key: str | None) -> None:
        key = key or self.latest
        self.running.pop(key, None)
        self.finished += 1
        self.work_done += 1.0 if self.costs is None else self.costs.get(key, 0.0)

    def _break_silence(self) -> None:
        """Report now and then while long tasks run and nothing happens."""
        while not self.over.wait(SILENCE / 6):
            if time.monotonic() - self.reported > SILENCE:
                self._refresh(force=True)

    def _refresh(self, *, force: bool = False) -> None:
        if not force and time.monotonic() - self.reported < (HEARTBEAT if self.bars is None else REDRAW):
            return
        self.reported = time.monotonic()
        running = list(self.running.values())
        # jobs of a study report no steps
        task = running[-1] if running and self.costs is None else None
        if self.bars is not None:
            if task is not None:
                self.bars.update(
                    self.current, total=task.steps, completed=task.done, description=task.label, state=task.state()
                )
            self.bars.update(self.current, visible=task is not None)
            self.bars.update(self.overall, completed=self.work_done, state=self._overall(running))
            self.bars.refresh()
        elif task is not None:
            self.message(f"{task.label}: {task.noun} {task.state()}")
        elif self.costs is not None:
            self.message(self._overall(running))

    def _overall(self, running: Sequence[_Task]) -> str:
        """How many tasks are done, when all will be, and one that runs."""
        left, passed = self.work - self.work_done, time.monotonic() - self.begin
        eta = None if self.costs is None else left / self.workers
        if self.work_done > 0.02 * self.work:
            eta = passed * left / self.work_done
        parts = [f"{self.finished}/{self.total}", "" if eta is None else f"ETA {clock(eta)}"]
        if self.costs is not None:
            parts = [f"{parts[0]} {self.noun}s", parts[1], *(task.label for task in running[:1])]
        return "  ".join(filter(None, parts))


def _write_event(event: Event) -> None:
    if event.kind == "cached":
        return
    value: dict[str, Any] = {"event": event.kind, "key": event.job.key, "job": event.job.label}
    if event.seconds:
        value["seconds"] = round(event.seconds, 3)
    if event.message:
        value["error"] = event.message
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _is_live(console: Console) -> bool:
    return console.is_terminal and not console.is_dumb_terminal


def _bars(console: Console, *columns: Any, auto_refresh: bool = True) -> Progress:
    """Bars that vanish at the end."""
    name = TextColumn("{task.description}", markup=False)
    return Progress(name, BarColumn(16), *columns, console=console, transient=True, auto_refresh=auto_refresh)


@contextmanager
def downloads(console: Console, dataset: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield what a download reports to: a bar for every file on a terminal, a heartbeat elsewhere."""
    if _is_live(console):
        with _bars(console, DownloadColumn(), TransferSpeedColumn()) as bars:
            tasks: dict[str, TaskID] = {}

            def draw(file: str, done: int, total: int | None) -> None:
                if file not in tasks:
                    tasks[file] = bars.add_task(f"{dataset}/{file}", total=total)
                bars.update(tasks[file], completed=done, total=total)

            yield draw
        return
    reported = time.monotonic()

    def report(file: str, done: int, total: int | None) -> None:
        nonlocal reported
        if time.monotonic() - reported >= HEARTBEAT:
            reported = time.monotonic()
            console.print(f"{dataset}/{file}: {done}{f' of {total}' if total else ''} bytes")

    yield report


def duration(seconds: float) -> str:
    """Return seconds with their unit, so that minutes are not taken for hours.

    >>> duration(8), duration(186), duration(9300)
    ('8 s', '3 min', '2 h 35 min')
    """
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds, with hours if there are any.

    >>> clock(75), clock(3700)
    ('1:15', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
