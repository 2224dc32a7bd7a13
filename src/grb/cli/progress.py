"""What long work says while it runs: a live line on a terminal, finished runs and a sign of life elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

if TYPE_CHECKING:
    from grb.attack import Step
    from grb.trainer import Epoch

SIGN_OF_LIFE = 10.0
REDRAW = 0.1


class Reporter(Protocol):
    """Told about runs, and about the epochs of a training or the steps of an attack."""

    def __enter__(self) -> Reporter: ...
    def __exit__(self, *error: object) -> None: ...
    def start(self, run: str, total: int | None) -> None: ...
    def epoch(self, epoch: Epoch) -> None: ...
    def step(self, step: Step) -> None: ...
    def done(self, sentence: str) -> None: ...


class Outcome(Protocol):
    """What is said of a finished run."""

    def sentence(self) -> str: ...


Planned = TypeVar("Planned")
Done = TypeVar("Done", bound=Outcome)


def reporter(console: Console, runs: int) -> Reporter:
    """Bars if somebody is watching, lines if not."""
    watched = console.is_terminal and not console.is_dumb_terminal
    return Bars(console, runs) if watched else Lines(console, runs)


def every_run(
    console: Console,
    runs: Sequence[Planned],
    announced: Callable[[Planned], tuple[str, int | None]],
    do: Callable[[Planned, Reporter], Done],
) -> tuple[list[Done], bool]:
    """Do all runs and tell about them; True beside those that were finished if the user interrupted.

    Args:
        announced: Name of a run and how many epochs or steps it has, if that is known.
        do: Does a run, which tells the reporter about its epochs or steps.
    """
    finished: list[Done] = []
    try:
        with reporter(console, len(runs)) as progress:
            for run in runs:
                progress.start(*announced(run))
                finished.append(do(run, progress))
                progress.done(finished[-1].sentence())
    except KeyboardInterrupt:
        return finished, True
    return finished, False


class _Watch:
    """Where the running training or attack is: epochs or steps done, loss, scores, time."""

    def __init__(self, run: str, total: int | None) -> None:
        self.run = run
        self.total = total
        self.unit, self.bound = "epoch", "<"  # "at most", because training usually stops early
        self.done = 0
        self.best: float | None = None
        self.last = ""
        self.begin = self.told = time.monotonic()

    def epoch(self, epoch: Epoch) -> None:
        self.done = epoch.number + 1
        if epoch.val_score is not None:
            self.best = epoch.val_score if self.best is None else max(self.best, epoch.val_score)
        self.last = f"loss {epoch.loss:.3f}"
        if epoch.val_score is not None and self.best is not None:
            self.last += f"  val {100 * epoch.val_score:.2f}  best {100 * self.best:.2f}"

    def step(self, step: Step) -> None:
        self.unit, self.bound = "step", ""
        self.done += 1
        # the share of targets that keep their clean label; short, because all has to fit into 80 columns
        self.last = f"loss {step.loss:.3f}  kept {100 * step.accuracy:.2f}"

    def due(self, seconds: float) -> bool:
        """Whether so many seconds have passed since this was last true."""
        now = time.monotonic()
        if now - self.told < seconds:
            return False
        self.told = now
        return True

    def state(self) -> str:
        if self.total is None:
            return f"{self.done}  {self.last}"
        left = (time.monotonic() - self.begin) / max(self.done, 1) * max(self.total - self.done, 0)
        return f"{self.done}/{self.total}  {self.last}  ETA {self.bound}{clock(left)}"


class Lines:
    """One line for a finished run, and one every ten seconds so that a long run is seen to live."""

    def __init__(self, console: Console, runs: int) -> None:
        self.console = console
        self.runs = runs
        self.finished = 0
        self.watch = _Watch("", 1)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def start(self, run: str, total: int | None) -> None:
        self.watch = _Watch(run, total)

    def epoch(self, epoch: Epoch) -> None:
        self.watch.epoch(epoch)
        self._sign_of_life()

    def step(self, step: Step) -> None:
        self.watch.step(step)
        self._sign_of_life()

    def _sign_of_life(self) -> None:
        if self.watch.due(SIGN_OF_LIFE):
            self.console.print(f"{self.watch.run}: {self.watch.unit} {self.watch.state()}")

    def done(self, sentence: str) -> None:
        self.finished += 1
        self.console.print(f"[{self.finished}/{self.runs}] {sentence}")


class Bars:
    """A live line for what runs, one for all runs if there are several; finished runs stay above them."""

    def __init__(self, console: Console, runs: int) -> None:
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[state]}", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,  # drawn from the work's own thread: a second one would take turns with it
        )
        self.runs = runs
        self.finished = 0
        self.begin = time.monotonic()
        self.watch = _Watch("", 1)
        self.current = self.progress.add_task("", state="")
        self.all = self.progress.add_task("all runs", total=runs, state=f"0/{runs}", visible=runs > 1)

    def __enter__(self) -> Bars:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def start(self, run: str, total: int | None) -> None:
        self.watch = _Watch(run, total)
        self.progress.reset(self.current, total=total, description=run, state="")
        self.progress.refresh()

    def epoch(self, epoch: Epoch) -> None:
        self.watch.epoch(epoch)
        self._redraw()

    def step(self, step: Step) -> None:
        self.watch.step(step)
        self._redraw()

    def _redraw(self) -> None:
        if self.watch.due(REDRAW):
            self.progress.update(self.current, completed=self.watch.done, state=self.watch.state())
            self.progress.refresh()

    def done(self, sentence: str) -> None:
        self.finished += 1
        left = (time.monotonic() - self.begin) / self.finished * (self.runs - self.finished)
        self.progress.update(self.all, completed=self.finished, state=f"{self.finished}/{self.runs}  ETA {clock(left)}")
        self.progress.console.print(sentence)
        self.progress.refresh()


@contextmanager
def downloads(console: Console, dataset: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """What a download is told about: a bar for every file if somebody is watching, a sign of life if not."""
    if console.is_terminal and not console.is_dumb_terminal:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(16),
            DownloadColumn(),
            TransferSpeedColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bars:
            tasks: dict[str, TaskID] = {}

            def draw(file: str, done: int, total: int | None) -> None:
                if file not in tasks:
                    tasks[file] = bars.add_task(f"{dataset}/{file}", total=total)
                bars.update(tasks[file], completed=done, total=total)

            yield draw
        return
    told = time.monotonic()

    def tell(file: str, done: int, total: int | None) -> None:
        nonlocal told
        if time.monotonic() - told >= SIGN_OF_LIFE:
            told = time.monotonic()
            console.print(f"{dataset}/{file}: {done}{f' of {total}' if total else ''} bytes")

    yield tell


def duration(seconds: float) -> str:
    """In words, so that minutes are not taken for hours.

    >>> duration(8), duration(186), duration(9300)
    ('8 s', '3 min', '2 h 35 min')
    """
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours if there are any.

    >>> clock(75), clock(3700)
    ('1:15', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
