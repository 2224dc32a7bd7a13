"""Files that somebody might send: each with a word of the one sentence that refuses it."""

from __future__ import annotations

import io
import json
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from grb.dataset import Dataset
from grb.threat import Injection

Arrays = dict[str, Any]


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return Path.touch, (self.canary,)


def arrays_of(dataset: Dataset, **changes: Any) -> Arrays:
    """A valid injection of one node with one edge, with other arrays in it."""
    n, d = dataset.graph.n, dataset.graph.num_features
    meta = {"format": 1, "n": n, "cut": 0}
    values: Arrays = {
        "add": np.array([[int(dataset.test_ids("full")[0])], [n]]),
        "drop": np.zeros((2, 0), dtype=np.int64),
        "new_x": np.zeros((1, d), dtype=np.float32),
        "set_ids": np.zeros(0, dtype=np.int64),
        "set_x": np.zeros((0, 0), dtype=np.float32),
        "meta": meta,
    }
    values |= changes
    if isinstance(values["meta"], dict):
        values["meta"] = np.frombuffer(json.dumps({**meta, **values["meta"]}).encode(), dtype=np.uint8)
    return values


def npz_bytes(arrays: Arrays, *, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            inner = io.BytesIO()
            np.lib.format.write_array(inner, np.asanyarray(array), allow_pickle=allow_pickle)
            archive.writestr(f"{name}.npy", inner.getvalue())
    return stream.getvalue()


def declared(shape: str, descr: str = "<i8") -> bytes:
    """An npy header that promises what does not follow."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def with_member(arrays: Arrays, name: str, data: bytes) -> bytes:
    """An npz whose one member is these bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for own, array in arrays.items():
            inner = io.BytesIO()
            np.lib.format.write_array(inner, np.asarray(array), allow_pickle=False)
            archive.writestr(f"{own}.npy", data if own == name else inner.getvalue())
    return stream.getvalue()


def hostile_edits(dataset: Dataset, threat: Injection, canary: Path) -> Iterator[tuple[str, bytes, str]]:
    """Name, bytes and a word of the refusal."""
    n, d = dataset.graph.n, dataset.graph.num_features
    valid = npz_bytes(arrays_of(dataset))
    node, target = n, int(dataset.test_ids("full")[0])
    edge = dataset.graph.adj.edges()[:, :1].numpy()

    def edit(**changes: Any) -> bytes:
        return npz_bytes(arrays_of(dataset, **changes))

    def rows(value: float, count: int = 1, dtype: Any = np.float32) -> Any:
        return np.full((count, d), value, dtype=dtype)

    def pairs(*listed: tuple[int, int], dtype: Any = np.int64) -> Any:
        return np.array(listed, dtype=dtype).T

    # no npz at all
    yield "empty", b"", "is empty"
    yield "pickle", pickle.dumps(Bomb(canary)), "pickle"
    yield "old pickle", pickle.dumps(Bomb(canary), protocol=0), "not an npz"
    torch_file = io.BytesIO()
    torch.save({"weights": Bomb(canary)}, torch_file)
    yield "torch file", torch_file.getvalue(), "no array"
    yield "html", b"<!DOCTYPE html><html><body>Sign in</body></html>", "web page"
    yield "npy", declared("(2, 1)") + bytes(16), "not an npz"
    yield "wrong magic", b"RAR!" + valid[4:], "not an npz"
    yield "text", b"0 1\n1 2\n", "not an npz"
    yield "truncated", valid[: len(valid) // 2], "not an npz"
    yield "almost whole", valid[:-1], "not an npz"
    yield "junk behind", valid + b"x" * 40, "other bytes"
    yield "junk in front", b"#!/bin/sh\n" + valid, "other bytes"
    yield "zeros", bytes(10_000), "not an npz"
    yield "byte flipped", valid[:60] + bytes([valid[60] ^ 255]) + valid[61:], ""
    # arrays that are none of ours
    yield (
        "object array",
        npz_bytes(arrays_of(dataset, add=np.array([Bomb(canary)], dtype=object)), allow_pickle=True),
        "objects",
    )
    yield "extra array", npz_bytes({**arrays_of(dataset), "labels": np.zeros(n)}), "unexpected array 'labels'"
    yield "masks", npz_bytes({**arrays_of(dataset), "test_mask": np.ones(n, dtype=bool)}), "unexpected array"
    yield "path in a name", npz_bytes({**arrays_of(dataset), "../../x": np.zeros(1)}), "unexpected array"
    yield "absolute name", npz_bytes({**arrays_of(dataset), "/etc/passwd": np.zeros(1)}), "unexpected array"
    yield "script in a name", npz_bytes({**arrays_of(dataset), "<script>alert(1)</script>": np.zeros(1)}), "unexpected"
    for missing in ("add", "drop", "new_x", "set_ids", "set_x", "meta"):
        own = arrays_of(dataset)
        del own[missing]
        yield f"without {missing}", npz_bytes(own), f"no array '{missing}'"
    yield "twice", _twice(valid), "twice"
    # declared sizes
    own = arrays_of(dataset)
    yield "10^9 edges", with_member(own, "add", declared("(2, 1000000000)")), "declares shape"
    yield "negative shape", with_member(own, "add", declared("(2, -1)")), "declares shape"
    yield "overflowing shape", with_member(own, "add", declared("(4294967296, 4294967296)")), "declares shape"
    yield "no item size", with_member(own, "add", declared("(2, 1)", "|V0")), ""
    yield "code in the header", with_member(own, "add", declared("__import__('os').getpid()")), "cannot be read"
    yield "short body", with_member(own, "new_x", declared(f"(1, {d})", "<f4") + bytes(8)), "declares shape"
    yield "zip bomb", npz_bytes({**own, "new_x": np.zeros((2_000_000, 64), dtype=np.float32)}), "expands"
    # edges
    yield "loop", edit(add=pairs((node, node))), "with itself"
    yield "edge twice", edit(add=pairs((target, node), (target, node))), "twice"
    yield "edge in both directions", edit(add=pairs((target, node), (node, target))), "twice"
    yield "index below 0", edit(add=pairs((-1, node))), "names node -1"
    yield "index beyond the end", edit(add=pairs((target, node + 1))), "names node"
    yield "huge index", edit(add=pairs((target, 2**62))), "names node"
    yield "unsigned overflow", edit(add=pairs((target, 2**64 - 1), dtype=np.uint64)), "names node -1"
    yield "float indices", edit(add=pairs((target, node), dtype=np.float64)), "integer [2, m]"
    yield "boolean indices", edit(add=pairs((0, 1), dtype=bool)), "integer [2, m]"
    yield "three rows", edit(add=np.zeros((3, 1), dtype=np.int64)), "integer [2, m]"
    yield "flat edges", edit(add=np.zeros(2, dtype=np.int64)), "integer [2, m]"
    yield "text as edges", edit(add=np.array([["a"], ["b"]])), "integer [2, m]"
    yield "added and dropped", edit(add=edge, drop=edge, new_x=rows(0.0)), "both adds and drops"
    # features
    for name, value in (("NaN", np.nan), ("infinite", np.inf), ("minus infinite", -np.inf)):
        yield f"{name} feature", edit(new_x=rows(value)), "NaN or infinite"
    yield "too large for float32", edit(new_x=rows(1e300, dtype=np.float64)), "NaN or infinite"
    yield "complex features", edit(new_x=rows(0.0, dtype=np.complex64)), "float [m, d]"
    yield "integer features", edit(new_x=rows(0, dtype=np.int64)), "float [m, d]"
    yield "denormal features", edit(new_x=rows(1e-40)), "denormals"
    yield "too few features", edit(new_x=np.zeros((1, d - 1), dtype=np.float32)), "features per node"
    yield "flat features", edit(new_x=np.zeros(d, dtype=np.float32)), "float [m, d]"
    high = threat.feature_range[1]
    yield "feature too large", edit(new_x=rows(1.01 * high + 0.01)), "the threat model allows"
    yield "feature too small", edit(new_x=rows(threat.feature_range[0] - 0.01)), "the threat model allows"
    # limits
    many = threat.nodes + 1
    ends = pairs(*((target, n + place) for place in range(many)))
    yield "too many nodes", edit(add=ends, new_x=rows(0.0, many)), f"{many} nodes are injected"
    most = threat.edges_per_node + 1
    star = pairs(*((int(other), node) for other in dataset.test_ids("full")[:most]))
    yield "too many edges", edit(add=star), f"{most} edges"
    yield "edge among old nodes", edit(add=_absent(dataset), new_x=rows(0.0)), "among original nodes"
    yield "edge dropped", edit(drop=edge), "may drop none"
    changed = {"set_ids": np.array([target]), "set_x": rows(0.0)}
    yield "old features changed", edit(**changed), "features of 1 original nodes"
    yield "nodes cut", edit(add=np.zeros((2, 0), dtype=np.int64), new_x=rows(0.0), meta={"cut": 1}), "are removed"
    yield "set_ids twice", edit(set_ids=np.array([1, 1]), set_x=rows(0.0, 2)), "distinct nodes"
    yield "set_ids alone", edit(set_ids=np.array([1])), "go together"
    # meta
    yield "of another graph", edit(meta={"n": n + 1}, add=np.zeros((2, 0), dtype=np.int64)), f"graph of {n + 1} nodes"
    yield "another fingerprint", edit(meta={"fingerprint": "0" * 64}), "says fingerprint"
    yield "another dataset", edit(meta={"dataset": "<img src=x onerror=alert(1)>"}), "says dataset"
    yield "newer format", edit(meta={"format": 99}), "edit format 99"
    yield "meta is no JSON", edit(meta=np.frombuffer(b"{", dtype=np.uint8)), "cannot be read"
    yield "meta is deep", edit(meta=np.frombuffer(b"[" * 100_000, dtype=np.uint8)), "cannot be read"
    yield "meta is a list", edit(meta=np.frombuffer(b"[]", dtype=np.uint8)), "cannot be read"
    yield "n is huge", edit(meta={"n": 2**40}), "nodes"
    yield "n is text", edit(meta={"n": "7"}), "cannot be read"


def _twice(valid: bytes) -> bytes:
    stream = io.BytesIO(valid)
    with zipfile.ZipFile(stream, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("add.npy", b"")
    return stream.getvalue()


def _absent(dataset: Dataset) -> Any:
    """Two nodes that are not joined."""
    graph = dataset.graph
    for other in range(1, graph.n):
        if not graph.adj.has(torch.tensor([[0], [other]])).any():
            return np.array([[0], [other]])
    raise AssertionError("a complete graph")


def hostile_weights(valid: Path, canary: Path) -> Iterator[tuple[str, bytes, str]]:
    """Changes of a checkpoint of ours."""
    from safetensors import safe_open

    with safe_open(valid, framework="pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        spec = json.loads(stored.metadata()["grb"])
    first = sorted(tensors)[0]

    def made(change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
        own, told = {name: value.clone() for name, value in tensors.items()}, json.loads(json.dumps(spec))
        change(own, told)
        return save(own, metadata={"grb": json.dumps(told)})

    data = valid.read_bytes()
    yield "pickle", pickle.dumps(Bomb(canary)), "pickled models are never loaded"
    torch_file = io.BytesIO()
    torch.save(Bomb(canary), torch_file)
    yield "torch file", torch_file.getvalue(), "not a safetensors file"
    yield "empty", b"", "not a safetensors file"
    yield "html", b"<html></html>", "not a safetensors file"
    yield "truncated", data[:-10], "not a safetensors file"
    yield "huge header", struct.pack("<Q", 2**62) + data[8:], "not a safetensors file"
    yield "10 GB tensor", _huge(), "not a safetensors file"
    yield "no spec", save(tensors), "does not say which model"
    yield "missing weight", made(lambda own, told: own.__delitem__(first)), "lacks the weight"
    yield "extra weight", made(lambda own, told: own.update(more=torch.zeros(1))), "unexpected weight"
    yield "wrong shape", made(lambda own, told: own.update({first: torch.zeros(3, 3, 3)})), "has shape"
    yield "NaN", made(lambda own, told: own.update({first: torch.full_like(own[first], torch.nan)})), "NaN or infinite"
    yield "float64", made(lambda own, told: own.update({first: own[first].double()})), "has dtype"
    yield "code", made(lambda own, told: told.update(model="os:system")), "is not imported"
    yield "unknown model", made(lambda own, told: told.update(model="nothing")), "no model 'nothing'"
    yield "huge model", made(lambda own, told: told["params"].update(in_features=10**9)), "asks for in_features"
    yield "newer format", made(lambda own, told: told.update(format=99)), "checkpoint format 99"
    yield "other dataset", made(lambda own, told: told["meta"].update(fingerprint="0" * 64)), "says fingerprint"


def _huge() -> bytes:
    size = 10 * 2**30
    header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header


CARDS: dict[str, tuple[str, str]] = {
    "script as a name": ("name: <script>alert(1)</script>", "the card's name"),
    "path as a name": ("name: ../../x", "the card's name"),
    "NUL in a name": ('name: "a\\0b"', "printable"),
    "right to left": ('name: "a\\u202eb"', "the card's name"),
    "a long name": (f"name: {'x' * 10_000}", "printable"),
    "a formula as a name": ("name: =cmd", "the card's name"),
    "a space behind a name": ('name: "mine "', "without spaces at its ends"),
    "two spaces in a name": ('name: "my  attack"', "without spaces at its ends"),
    "an attack of ours": ("name: FGSM", "grb's own"),
    "a model of ours": ("name: gcn", "grb's own"),
    "a defense of ours": ("name: GCN+LN", "grb's own"),
    "a defended model of ours": ("name: gat-jaccard", "grb's own"),
    "the clean graph": ("name: None", "grb's own"),
    "right to left in a text": ('about: "a\\u202eb"', "the card's about has the character U+202E"),
    "a letter without width": ('authors: ["A\\u200bB"]', "an author on the card has the character U+200B"),
    "right to left in a link": ('link: "https://x/\\u202egpj"', "the card's link has the character U+202E"),
    "half a letter": ('about: "\\ud83d"', "the card's about has the character U+D83D"),
    "an escape": ('unreliable: "\\e[31m"', "the card's unreliable has the character U+001B"),
    "a line in an author": ('authors: ["A\\nB"]', "an author on the card has the character U+000A"),
    "another end of a line": ('about: "a\\u2028b"', "the card's about has the character U+2028"),
    "a number for a name": ("reported: {1: 0.5}", "a name in the card's reported is 1, but text is needed"),
    "a number for an author": ("authors: [1]", "an author on the card is 1, but text is needed"),
    "javascript link": ("link: javascript:alert(1)", "the card's link"),
    "quotes in a link": ('link: "https://x/\'onerror="', "the card's link"),
    "code as a dataset": ("dataset: os:abort", "the card's dataset"),
    "path as a dataset": ("dataset: ../x.npz", "the card's dataset"),
    "negative cost": ("cost: {cpu_seconds: -1}", "must not be negative"),
    "a cost of 400 digits": (f"cost: {{cpu_seconds: {'9' * 400}}}", "but at most 1e+30"),
    "a cost of 5000 digits": (f"cost: {{cpu_seconds: {'9' * 5000}}}", "not readable YAML"),
    "a hexadecimal cost": (f"cost: {{cpu_seconds: 0x{'f' * 5000}}}", "very many digits"),
    "a cost in base 60": (f"cost: {{cpu_seconds: {':'.join('1' * 400)}.0}}", "not readable YAML"),
    "an infinite cost": ("cost: {cpu_seconds: .inf}", "but at most 1e+30"),
    "a large cost": ("cost: {cpu_seconds: 1.0e+308}", "but at most 1e+30"),
    "a number as text": (f"about: 0x{'f' * 5000}", "text is needed"),
    "a number as a key": (f"? 0x{'f' * 5000}\n: x", "no key of a card"),
    "unknown key": ("autor: me", "Did you mean 'authors'"),
    "wrong type": ("name: 7", "text is needed"),
    "list for text": ("about: [a]", "text is needed"),
    "text for a list": ("authors: me", "a list of names"),
    "NaN": ("reported: {gcn: .nan}", "a number is needed"),
    "too good": ("reported: {gcn: 1.2}", "a share from 0 to 1"),
    "unknown kind": ("kind: virus", "no kind of a card"),
    "unknown mode": ("mode: impossible", "no mode of a card"),
    "python object": ("about: !!python/object/apply:os.system [ls]", "not readable YAML"),
    "anchors": ("about: &a x\ncost: *a", "anchors"),
    "a key twice": ("about: x\nabout: y", "twice"),
    "no mapping": ("- a", "YAML"),
    "binary": ("about: \x07", "not readable YAML"),
    "another dataset": ("dataset: grb-cora", "the card is for dataset 'grb-cora'"),
}
