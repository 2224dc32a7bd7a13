"""What a model may use of the machine while it is asked in a new process: its code, and nothing that changed since."""

from __future__ import annotations

import errno
import importlib
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grb.dataset.registry import roots

# what imports read, and where interpreter and system keep what libraries look up
CODE = (".py", ".pyc", ".so", ".pyd", ".dll", ".dylib", ".pth", ".zip")
SYSTEM = ("/proc", "/sys", "/etc", "/usr", "/lib", "/lib64", "/dev/null", "/dev/urandom", "/dev/random")
# of /proc, the machine and the own process: what others hold there could be a memory
MACHINE = ("cpuinfo", "filesystems", "meminfo", "stat", "sys", "version")
FORBIDDEN = (
    "mmap.__new__", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "socket.bind",
    "socket.connect", "socket.getaddrinfo", "socket.sendto", "sqlite3.connect", "subprocess.Popen", "urllib.Request",
)  # fmt: skip
# whoever only answers changes nothing on a disk
CHANGES = (
    "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.setxattr", "os.symlink", "os.truncate",
    "os.utime",
)  # fmt: skip
LISTING = ("os.listdir", "os.scandir", "os.listxattr", "os.getxattr")
# of these Python tells nobody
LOOKING = ("access", "lstat", "pathconf", "readlink", "stat", "statvfs")


@dataclass(eq=False)
class Seal:
    """An audit hook that denies a model what it is not given, and notes the first thing that it wanted.

    While a model is loaded, its package may read its own files, but no dataset, and libraries may write, for instance caches.
    While it answers, only code is read. Never is a file read that changed after the run had begun: it could hold what the model
    said before. Whether other files are there cannot be seen either. What C libraries open by themselves, such as safetensors,
    is not seen.

    Args:
        denied: The first thing that was denied.
        stage: ``loading`` or ``answering``; empty before.
        since: When the run began, in nanoseconds of the clock; None if any file may be new.
        places: Directories and what they hold.
        given: The one new file that is read while a model is loaded: its weights.
    """

    denied: str = ""
    stage: str = ""
    since: int | None = None
    places: dict[Path, str] = field(default_factory=lambda: _places())
    given: Path | None = None
    _own: threading.local = field(default_factory=threading.local)

    def close(self) -> None:
        """Let the seal hold in this process, for ever."""
        system = importlib.import_module(os.name if os.name in sys.builtin_module_names else "os")
        for name in LOOKING:
            if hasattr(os, name):
                sealed = self._looking(getattr(os, name))
                for module in (os, system):
                    setattr(module, name, sealed)
        sys.addaudithook(self)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let this thread, and no other, do what grb itself does."""
        before = getattr(self._own, "free", False)
        self._own.free = True
        try:
            yield
        finally:
            self._own.free = before

    @property
    def holds(self) -> bool:
        """Whether this thread is denied anything."""
        return bool(self.stage) and not getattr(self._own, "free", False)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raise an error if an event is not allowed now."""
        if not self.holds:
            return
        if event in FORBIDDEN or (event in CHANGES and self.stage == "answering"):
            self._deny(event)
        elif event in LISTING:
            self._look(arguments[0])
        elif event == "open" and not isinstance(arguments[0], int):
            wanted, flags = arguments[0], arguments[2]
            if wanted is not None and not self._may_open(os.fsdecode(wanted), flags if isinstance(flags, int) else 0):
                self._deny(os.fsdecode(wanted))

    def _looking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, for which there is only what may be seen now."""

        def look(path: Any, *rest: Any, **options: Any) -> Any:
            if self.holds and options.get("dir_fd") is None:
                self._look(path)
            return function(path, *rest, **options)

        return look

    def _look(self, wanted: Any) -> None:
        """Raise what a missing file raises if a path is none of the model's business; libraries look for many files."""
        if wanted is None or isinstance(wanted, int):
            return
        name = os.fsdecode(wanted)
        with self.opened():
            # a link is looked at as such: where it leads to says something too
            given = Path(os.path.abspath(name))
            path, real = given.parent.resolve() / given.name, given.resolve()
            if path == self.given and self.stage == "loading":
                return
            kinds = self._kind(path), self._kind(real)
            hidden = self._is_new(path) or "data" in kinds
            if self.stage == "answering" and not any(place.is_relative_to(path) for place in self.places):
                hidden = hidden or "other" in kinds
        if hidden:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)

    def _may_open(self, name: str, flags: int) -> bool:
        with self.opened():  # looking at the path is no deed of the model's
            path = Path(name).resolve()
            new = bool(flags & (os.O_WRONLY | os.O_EXCL))  # nothing old is read
            if new or flags & os.O_RDWR:
                return str(path) == os.devnull or (new and self.stage == "loading")
            if path == self.given and self.stage == "loading":
                return True
            if self._is_new(path):
                if path.suffix == ".pyc":  # of a module that this run imported first; its source is read instead
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
                return False
            kind = self._kind(path)
            return kind == "library" or (kind == "code" and (self.stage == "loading" or path.suffix in CODE))

    def _kind(self, path: Path) -> str:
        """What the innermost known directory around a path holds."""
        if path.parts[1:2] == ("proc",) and not {*path.parts[2:3]} <= {str(os.getpid()), *MACHINE}:
            return "other"
        around = [place for place in self.places if path.is_relative_to(place)]
        return self.places[max(around, key=lambda place: len(place.parts))] if around else "other"

    def _is_new(self, path: Path) -> bool:
        """Whether a file, or a link itself, changed after the run had begun; directories change all the time."""
        if self.since is None or path.parts[1:2] in (("proc",), ("sys",), ("dev",)):
            return False
        try:
            found = os.lstat(path)
        except (OSError, ValueError):
            return False
        # nobody can set this time back, as he can that of the content
        return not stat.S_ISDIR(found.st_mode) and found.st_ctime_ns > self.since

    def _deny(self, what: str) -> None:
        self.denied = self.denied or what
        raise PermissionError(f"a model may not use '{what[:60]}' while it is evaluated")


def _places() -> dict[Path, str]:
    """Directories and what they hold; of several that a file lies in, the innermost counts."""
    libraries = [Path(name).resolve() for name in (sys.prefix, sys.base_prefix, *SYSTEM)]
    code = [Path(name).resolve() for name in sys.path if name]
    own = [path for path in code if not any(path.is_relative_to(place) for place in libraries)]
    places = {"data": [root.resolve() for root in roots()], "code": own, "library": libraries}
    return {path: kind for kind, paths in places.items() for path in paths}
