"""One file over HTTPS, with suspicion: certificates are checked, and a slow, cut, oversized or wrong answer is refused."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import ipaddress
import os
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from grb._version import __version__
from grb.errors import DataError

CHUNK = 1 << 16
MAGIC = {".npz": b"PK\3\4", ".zip": b"PK\3\4", ".npy": b"\x93NUMPY", ".json": b"{"}
"""First bytes of a file by its ending; a file with another ending is not downloaded."""
Progress = Callable[[str, int, "int | None"], None]
"""Called with the name of a file, its bytes so far, and its total bytes if they are known."""


@dataclass(frozen=True)
class Limits:
    """How long and how much; the defaults end a hopeless attempt within a minute.

    Args:
        connect: Seconds until a connection stands, for each address of a host.
        read: Seconds without a single byte.
        stall: Seconds for the head of an answer, and for every ``trickle`` bytes of its body.
        trickle: Number of bytes that must arrive within ``stall`` seconds.
        max_bytes: Maximum size of one file.
    """

    connect: float = 5.0
    read: float = 15.0
    stall: float = 30.0
    trickle: int = 32 * 1024
    max_bytes: int = 4 * 2**30


@dataclass(frozen=True)
class Known:
    """What a file must be; None is not known."""

    size: int | None = None
    sha256: str | None = None

    def problem(self, size: int, sha256: str) -> str | None:
        """What is wrong with a file, if anything."""
        if self.size is not None and size != self.size:
            return f"has {size} bytes instead of {self.size}"
        if self.sha256 is not None and sha256 != self.sha256:
            return f"has sha256 {sha256[:12]}... instead of {self.sha256[:12]}..."
        return None


class Refused(Exception):
    """An answer that is not the file; says why."""


class Unreachable(Refused):
    """No answer at all: other files of the same host need not be tried."""


class DownloadError(DataError):
    """Nothing that was tried gave the files; ``tried`` says in short what."""

    def __init__(self, name: str, tried: str) -> None:
        self.tried = tried
        super().__init__(
            f"dataset '{name}' could not be downloaded ({tried}); if you have its files, `grb data get {name} --from DIR` "
            f"installs them, or set GRB_DATA to a folder that holds GRB/{name}; 'synth-cora' needs no download"
        )


def host(url: str) -> str:
    """Host and port of an address, for a sentence."""
    return urlsplit(url).netloc or url[:40]


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    name = urlsplit(url).hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_address(url: str) -> None:
    """Refuse whatever is not https; plain http is for a server on this machine."""
    scheme = urlsplit(url).scheme
    if not (scheme == "https" or (scheme == "http" and is_loopback(url))):
        raise Refused(f"{scheme or 'no scheme'}:// is not https")


def download(
    url: str,
    target: Path,
    *,
    known: Known | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> str:
    """Get one file whole or not at all.

    Args:
        url: https, or http on loopback.
        target: Where to put it; its ending says what the first bytes must be.
        known: Size and sha256 that it must have.
        limits: How long and how much.
        progress: Called for every piece that arrives.

    Returns:
        Its sha256.

    Raises:
        Refused: If the answer is not the file.
        DataError: If it cannot be written.
    """
    known, limits = known or Known(), limits or Limits()
    part = target.with_name(f"{target.name}.part")
    try:
        check_address(url)
        with _answer(url, limits) as response:
            total = _check_head(response, known, limits)
            size, digest = _receive(response, part, target, limits, total, progress)
        if total is not None and size < total:
            raise Refused(f"was cut off after {size} of {total} bytes")
        problem = known.problem(size, digest)
        if problem:
            raise Refused(problem)
        os.replace(part, target)
    except DataError:
        raise
    except OSError as error:
        raise Refused(f"broke off ({_short(error)})") from None
    except http.client.IncompleteRead:
        raise Refused("was cut off") from None
    except (http.client.HTTPException, ValueError) as error:
        raise Refused(f"gave an answer that is not HTTP ({type(error).__name__})") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return digest


def _answer(url: str, limits: Limits) -> Any:
    request = urllib.request.Request(url, headers={"User-Agent": f"grb/{__version__}", "Accept-Encoding": "identity"})
    try:
        return _opener(url, limits).open(request, timeout=limits.connect)
    except urllib.error.HTTPError as error:
        error.close()
        raise Refused(f"answered {error.code}") from None
    except urllib.error.URLError as error:
        raise Unreachable(f"is not reachable ({_short(error.reason)})") from None


def _short(reason: object) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return "its certificate is not trusted"
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, socket.gaierror):
        return "its name is not known"
    return " ".join(str(getattr(reason, "strerror", None) or reason).split())[:60]


def _check_head(response: Any, known: Known, limits: Limits) -> int | None:
    if response.headers.get_content_type() in ("text/html", "application/xhtml+xml"):
        raise Refused("is a web page, not data")
    length: int | None = response.length
    if length is not None and known.size is not None and length != known.size:
        raise Refused(f"has {length} bytes instead of {known.size}")
    if length is not None and length > limits.max_bytes:
        raise Refused(f"has {length} bytes, more than {limits.max_bytes}")
    return length


def _receive(
    response: Any, part: Path, target: Path, limits: Limits, total: int | None, progress: Progress | None
) -> tuple[int, str]:
    magic, head, size, digest = MAGIC[target.suffix], b"", 0, hashlib.sha256()
    mark, at_mark = time.monotonic(), 0
    with _written(part) as stream:
        # read1 returns what is there: read would wait for a whole chunk, however slowly it comes
        while piece := response.read1(CHUNK):
            if len(head) < len(magic):
                head += piece[: len(magic)]
                _check_magic(magic, head, piece)
            size += len(piece)
            if size > limits.max_bytes:
                raise Refused(f"has more than {limits.max_bytes} bytes")
            digest.update(piece)
            _write(stream, piece, part)
            if progress:
                progress(target.name, size, total)
            now = time.monotonic()
            if now - mark > limits.stall:
                if size - at_mark < limits.trickle:
                    raise Refused(f"is too slow ({size - at_mark} bytes in {now - mark:.0f} s)")
                mark, at_mark = now, size
    return size, digest.hexdigest()


def _check_magic(magic: bytes, head: bytes, piece: bytes) -> None:
    if not (head.startswith(magic) or magic.startswith(head)):
        page = piece.lstrip()[:9].lower().startswith((b"<!doctype", b"<html", b"<head", b"<?xml"))
        raise Refused("is a web page, not data" if page else "does not begin as such a file does")


@contextlib.contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """A new file; synced if the block succeeds."""
    try:
        stream = path.open("wb")
    except OSError as error:
        raise _unwritable(path, error) from None
    with contextlib.closing(stream):
        yield stream
        try:
            stream.flush()
            os.fsync(stream.fileno())
        except OSError as error:
            raise _unwritable(path, error) from None


def _write(stream: IO[bytes], piece: bytes, path: Path) -> None:
    try:
        stream.write(piece)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(f"cannot write {path.parent}: {error.strerror}; make room or set GRB_HOME to another directory")


def _opener(url: str, limits: Limits) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [_Redirects(), _HTTPHandler(limits), _HTTPSHandler(limits)]
    if is_loopback(url):
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if not (urlsplit(newurl).scheme == "https" or (is_loopback(req.full_url) and is_loopback(newurl))):
            fp.close()
            raise Refused(f"redirects to {urlsplit(newurl).scheme}://{host(newurl)}, which is not https")
        check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Patient:
    """A connection with one timeout until it stands, another between bytes, and a limit for the head of an answer."""

    limits: Limits
    sock: socket.socket

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        self.sock.settimeout(self.limits.read)

    def getresponse(self) -> http.client.HTTPResponse:
        # the timeout of a socket starts again at every byte, so that a head of single bytes could take hours
        watch = threading.Timer(self.limits.stall, _hang_up, [self.sock])
        watch.daemon = True
        watch.start()
        try:
            return super().getresponse()  # type: ignore[misc]
        finally:
            watch.cancel()


def _hang_up(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class _HTTPConnection(_Patient, http.client.HTTPConnection):
    pass


class _HTTPSConnection(_Patient, http.client.HTTPSConnection):
    pass


class _HTTPHandler(urllib.request.HTTPHandler):
    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_maker(_HTTPConnection, self.limits), req)


class _HTTPSHandler(urllib.request.HTTPSHandler):
    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_maker(_HTTPSConnection, self.limits), req, context=ssl.create_default_context())


def _maker(kind: Any, limits: Limits) -> Any:
    def make(where: str, **options: Any) -> Any:
        connection = kind(where, **options)
        connection.limits = limits
        return connection

    return make
