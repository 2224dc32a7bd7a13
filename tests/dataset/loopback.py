"""A tiny published dataset and a server on loopback that serves it, well or badly."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

FILES = ("adj.npz", "features.npz", "labels.npz", "index.npz")
NODES = 12
STATISTICS = {"nodes": NODES, "edges": NODES, "features": 40, "classes": 3}
Answer = Callable[[BaseHTTPRequestHandler], None]


def files() -> dict[str, bytes]:
    """The four files of a ring of twelve nodes."""
    ring = np.arange(NODES)
    neighbours = np.sort(np.stack([(ring - 1) % NODES, (ring + 1) % NODES], axis=1), axis=1)
    adj = {"indices": neighbours.ravel(), "indptr": np.arange(0, 2 * NODES + 1, 2), "shape": np.array([NODES, NODES])}
    features = np.random.default_rng(0).random((NODES, 40)).astype(np.float32)
    parts = {"index_train": [0, 1, 2, 3, 4, 5], "index_val": [6], "index_test_easy": [7], "index_test_medium": [8]}
    arrays: dict[str, dict[str, object]] = {
        "adj.npz": {**adj, "format": np.array(b"csr"), "data": np.ones(2 * NODES)},
        "features.npz": {"data": features},
        "labels.npz": {"data": ring % 3},
        "index.npz": {**parts, "index_test_hard": [9, 10, 11]},
    }
    return {name: packed(**each) for name, each in arrays.items()}


def packed(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


class Server(ThreadingHTTPServer):
    """Serves ``content`` under any folder; ``answers`` overrides single files."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = files()
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.done = threading.Event()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that hangs up is what many tests are about


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.asked.append(name)
        if name in self.server.answers:
            self.server.answers[name](self)
        elif name in self.server.content:
            send(self, self.server.content[name])
        else:
            self.send_error(404)

    def log_message(self, *args: object) -> None:
        pass


def send(handler: BaseHTTPRequestHandler, body: bytes, kind: str = "application/octet-stream") -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def send_unsized(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.done.set()
            server.shutdown()
            thread.join(5)


def table(*bases: str, hashes: bool = True) -> dict[str, dict[str, object]]:
    """What ``mirrors.yaml`` would say about the tiny dataset."""
    described: dict[str, dict[str, object]] = {}
    for name, body in files().items():
        known = {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()} if hashes else {}
        described[name] = {**known, "urls": [f"{base}/grb-cora/{name}" for base in bases]}
    return described
