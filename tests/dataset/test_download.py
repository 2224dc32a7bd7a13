"""The downloader against a server on loopback that does everything wrong."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from grb import catalogue
from grb.dataset import Dataset, download, storage, transfer
from grb.dataset.transfer import Limits
from grb.errors import DataError, IntegrityError, MissingDataset

from . import loopback
from .loopback import Server, send, send_unsized, serving

NAME, FILE = "grb-cora", "features.npz"
QUICK = Limits(connect=1.0, read=0.4, stall=0.5, trickle=1000, max_bytes=100_000)


class World:
    """Two mirrors, tables that point at them, and an empty machine."""

    def __init__(self, first: Server, second: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.first, self.second, self.home = first, second, home
        self.monkeypatch = monkeypatch
        self.archives: list[str] = []
        self.list(first, second)

    def list(self, *servers: Server, hashes: bool = True) -> None:
        tables = {
            "mirrors": {
                "archives": self.archives,
                "datasets": {NAME: loopback.table(*(server.base for server in servers), hashes=hashes)},
            },
            "datasets": {NAME: loopback.STATISTICS},
        }
        self.monkeypatch.setattr(catalogue, "preset", tables.__getitem__)

    @property
    def place(self) -> Path:
        return self.home / "data" / "GRB" / NAME

    def nothing_is_left(self) -> bool:
        return not self.place.parent.exists() or os.listdir(self.place.parent) == []

    def whole(self) -> bool:
        if os.listdir(self.place.parent) != [NAME]:
            return False
        return {path.name: path.read_bytes() for path in self.place.iterdir()} == loopback.files()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GRB_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("GRB_OFFLINE")
    monkeypatch.setattr(transfer, "CHUNK", 512)
    with serving() as first, serving() as second:
        yield World(first, second, tmp_path / "home", monkeypatch)


def test_a_dataset_is_downloaded_checked_and_put_in_its_place(world: World) -> None:
    seen: dict[str, tuple[int, int | None]] = {}
    done = download.fetch(NAME, progress=lambda file, size, total: seen.update({file: (size, total)}))
    assert world.whole()
    assert done.path == world.place and done.source == transfer.host(world.first.base)
    assert {each.check for each in done.files} == {"sha256 as listed"}
    assert seen == {name: (len(body), len(body)) for name, body in loopback.files().items()}
    assert world.second.asked == []
    assert world.place.stat().st_mode & 0o700 == 0o700


# ---- faults: what the first mirror does with one file, and the words that say so


def cut(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(loopback.files()[FILE])))
    handler.end_headers()
    handler.wfile.write(loopback.files()[FILE][:1000])


def cut_between_chunks(handler: BaseHTTPRequestHandler) -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"400\r\n" + loopback.files()[FILE][:500])


def cut_before_the_head_ends(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.0 200 O")


def flipped(handler: BaseHTTPRequestHandler) -> None:
    body = bytearray(loopback.files()[FILE])
    body[len(body) // 2] ^= 1
    send(handler, bytes(body))


def shorter(handler: BaseHTTPRequestHandler) -> None:
    send(handler, loopback.files()[FILE][:-7])


def shorter_and_unsized(handler: BaseHTTPRequestHandler) -> None:
    send_unsized(handler, loopback.files()[FILE][:-7])


def web_page(handler: BaseHTTPRequestHandler) -> None:
    send(handler, b"<!DOCTYPE html><p>please log in to this wireless network", "text/html; charset=utf-8")


def disguised_web_page(handler: BaseHTTPRequestHandler) -> None:
    send_unsized(handler, b"\n <html>please log in")


def pickle(handler: BaseHTTPRequestHandler) -> None:
    send_unsized(handler, b"\x80\x04\x95 not a zip file")


def endless(handler: BaseHTTPRequestHandler) -> None:
    send_unsized(handler, loopback.files()[FILE][:4] + bytes(200_000))


def silent(handler: BaseHTTPRequestHandler) -> None:
    handler.server.done.wait(3)  # type: ignore[attr-defined]


def drip(handler: BaseHTTPRequestHandler, body: bytes, head: bool) -> None:
    if head:
        handler.send_response(200)
        handler.end_headers()
    for byte in body[:40]:
        handler.wfile.write(bytes([byte]))
        if handler.server.done.wait(0.1):  # type: ignore[attr-defined]
            return


def slow(handler: BaseHTTPRequestHandler) -> None:
    drip(handler, loopback.files()[FILE], head=True)


def slow_head(handler: BaseHTTPRequestHandler) -> None:
    drip(handler, b"HTTP/1.0 200 OK\r\nX-Padding: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", head=False)


def status(code: int) -> loopback.Answer:
    return lambda handler: handler.send_error(code)


def redirect(target: str) -> loopback.Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.end_headers()

    return answer


FAULTS = {
    "cut": (cut, "was cut off after 1000 of"),
    "cut between chunks": (cut_between_chunks, "was cut off"),
    "cut before the head ends": (cut_before_the_head_ends, "features.npz"),
    "wrong hash": (flipped, "has sha256"),
    "wrong size": (shorter, "bytes instead of"),
    "wrong size, not announced": (shorter_and_unsized, "bytes instead of"),
    "web page": (web_page, "is a web page, not data"),
    "web page sent as data": (disguised_web_page, "is a web page, not data"),
    "pickle": (pickle, "does not begin as such a file does"),
    "too large": (endless, "has more than 100000 bytes"),
    "no answer": (silent, "no answer in time"),
    "slow": (slow, "is too slow"),
    "slow head": (slow_head, "features.npz"),
    "absent": (status(404), "answered 404"),
    "server error": (status(500), "answered 500"),
    "redirect to http": (redirect("http://mirror.example/features.npz"), "redirects to http://mirror.example"),
    "redirect to a file": (redirect("file:///etc/passwd"), "features.npz"),
    "redirect to itself": (redirect(FILE), "answered 302"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_answer_is_refused_and_the_next_mirror_is_asked(world: World, fault: str) -> None:
    answer, words = FAULTS[fault]
    world.first.answers[FILE] = answer
    begin = time.monotonic()
    tried: list[str] = []
    with storage.staged(NAME) as stage:
        hosts = download._from_mirrors(NAME, stage, QUICK, None, tried)
        assert sorted(os.listdir(stage)) == sorted(loopback.FILES)  # no .part is left
    assert world.whole()
    assert hosts is not None and transfer.host(world.second.base) in hosts
    (why,) = tried
    assert words in why and "\n" not in why
    assert world.second.asked == [FILE]
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("fault", ["cut", "wrong hash", "web page", "absent"])
def test_without_another_mirror_nothing_appears_and_one_sentence_says_why(world: World, fault: str) -> None:
    answer, words = FAULTS[fault]
    world.list(world.first)
    world.first.answers[FILE] = answer
    with pytest.raises(download.DownloadError) as refusal:
        download.fetch(NAME, limits=QUICK)
    sentence = str(refusal.value)
    assert words in sentence and transfer.host(world.first.base) in sentence and "\n" not in sentence
    assert "grb data get grb-cora --from DIR" in sentence and "GRB_DATA" in sentence and "synth-cora" in sentence
    assert world.nothing_is_left()


@pytest.mark.parametrize("answer", [shorter_and_unsized, flipped], ids=["cut", "damaged"])
def test_without_a_known_hash_damage_is_still_found_and_the_report_says_what_was_not_checked(
    world: World, answer: loopback.Answer
) -> None:
    world.list(world.first, world.second, hashes=False)
    world.first.answers[FILE] = answer
    done = download.fetch(NAME, limits=QUICK)
    assert world.whole() and transfer.host(world.second.base) in done.source
    assert {each.check for each in done.files} == {"not checked: no known hash"}


def test_without_a_known_hash_the_statistics_must_be_the_papers(world: World) -> None:
    world.list(world.first, hashes=False)
    world.first.content["labels.npz"] = loopback.packed(data=[0, 1] * 6)
    with pytest.raises(DataError, match="have 2 classes, but grb-cora of the paper has 3"):
        download.fetch(NAME, limits=QUICK)
    assert world.nothing_is_left()


def test_a_broken_array_is_named_without_the_temporary_directory(world: World) -> None:
    world.list(world.first, hashes=False)
    world.first.content["labels.npz"] = loopback.packed(other=[0, 1, 2] * 4)
    with pytest.raises(DataError, match=r"^labels\.npz has no array 'data'"):
        download.fetch(NAME, limits=QUICK)


def test_a_redirect_on_loopback_is_followed(world: World) -> None:
    world.first.answers[FILE] = redirect(f"{world.second.base}/elsewhere/{FILE}")
    download.fetch(NAME, limits=QUICK)
    assert world.whole() and world.second.asked == [FILE]


def test_a_host_that_cannot_be_reached_is_tried_once(world: World) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]  # bound but not listening: connections are refused
        table = loopback.table(f"http://127.0.0.1:{port}", world.second.base)
        catalogue.preset("mirrors")["datasets"][NAME] = table
        tried: list[str] = []
        with storage.staged(NAME) as stage:
            assert download._from_mirrors(NAME, stage, QUICK, None, tried)
    assert tried == [f"127.0.0.1:{port} is not reachable (Connection refused)"]


def test_an_untrusted_certificate_is_refused(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the command openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = server.base.replace("http:", "https:")
        with pytest.raises(transfer.Unreachable, match="certificate is not trusted"):
            transfer.download(f"{url}/{FILE}", tmp_path / FILE, limits=QUICK)
        assert server.asked == []


@pytest.mark.parametrize("url", ["http://mirror.example/a.npz", "ftp://127.0.0.1/a.npz", "file:///etc/passwd", "a.npz"])
def test_only_https_is_asked(tmp_path: Path, url: str) -> None:
    with pytest.raises(transfer.Refused, match="is not https"):
        transfer.download(url, tmp_path / "a.npz")


def test_offline_asks_nobody_and_is_read_at_call_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRB_OFFLINE", "1")
    with pytest.raises(download.DownloadError, match="GRB_OFFLINE forbids the network"):
        download.fetch(NAME)
    with pytest.raises(MissingDataset, match="GRB_OFFLINE forbids to download it"):
        Dataset(NAME)
    assert world.first.asked == [] and world.nothing_is_left()
    monkeypatch.setenv("GRB_OFFLINE", "0")
    download.fetch(NAME)
    assert world.whole()


def test_own_mirror_is_asked_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRB_MIRROR", f"{world.second.base}/datasets/")
    download.fetch(NAME, limits=QUICK)
    assert world.whole() and world.first.asked == [] and len(world.second.asked) == 4
    monkeypatch.setenv("GRB_MIRROR", "http://mirror.example")
    with pytest.raises(DataError, match="GRB_MIRROR is 'http://mirror.example', but an https address is needed"):
        download.mirrors(NAME)


def test_loading_a_dataset_that_is_not_here_downloads_it(world: World) -> None:
    assert Dataset(NAME).num_nodes == loopback.NODES
    assert len(world.first.asked) == 4
    assert Dataset(NAME).num_nodes == loopback.NODES
    assert len(world.first.asked) == 4


def test_loading_says_what_was_tried_and_never_asks_for_the_archive(world: World) -> None:
    world.archives.append(f"{world.second.base}/archive.zip")
    world.list(world.first)
    world.first.answers["adj.npz"] = status(404)
    with pytest.raises(MissingDataset) as refusal:
        Dataset(NAME)
    sentence = str(refusal.value)
    assert "adj.npz answered 404" in sentence and "grb data get grb-cora" in sentence and "\n" not in sentence
    assert world.second.asked == []


def zipped(path: Path, folder: str = "grb/grb-cora") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in loopback.files().items():
            archive.writestr(f"{folder}/{name}", body)
    return path


def test_the_archive_of_all_datasets_is_the_last_resort(world: World, tmp_path: Path) -> None:
    world.archives.append(f"{world.second.base}/archive.zip")
    world.second.content["archive.zip"] = zipped(tmp_path / "archive.zip").read_bytes()
    world.list(world.first)
    world.first.answers["adj.npz"] = status(404)
    done = download.fetch(NAME, limits=QUICK)
    assert world.whole() and done.source == transfer.host(world.second.base)
    assert world.second.asked == ["archive.zip"]


def test_an_archive_without_the_dataset_is_refused(world: World, tmp_path: Path) -> None:
    world.archives.append(f"{world.second.base}/archive.zip")
    world.second.content["archive.zip"] = zipped(tmp_path / "archive.zip", "grb/grb-other").read_bytes()
    world.list(world.first)
    world.first.answers["adj.npz"] = status(404)
    with pytest.raises(download.DownloadError, match="the archive holds 0 files grb-cora/adj.npz"):
        download.fetch(NAME, limits=QUICK)
    assert world.nothing_is_left()


def test_an_interrupted_download_leaves_nothing(world: World) -> None:
    def interrupt(file: str, size: int, total: int | None) -> None:
        if file == "labels.npz":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download.fetch(NAME, progress=interrupt)
    assert world.nothing_is_left()


def test_a_full_disk_is_one_sentence_and_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device; make room or set GRB_HOME"):
        download.fetch(NAME)
    assert world.nothing_is_left()
    assert world.second.asked == []  # another mirror would not help


def test_an_unwritable_home_is_one_sentence(world: World) -> None:
    world.home.mkdir()
    (world.home / "data").write_text("a file where the directory should be")
    with pytest.raises(DataError, match="cannot write .*set GRB_HOME to another directory"):
        download.fetch(NAME)


def test_what_a_killed_process_left_is_swept_after_a_day(world: World) -> None:
    for name, age in ((".grb-cora.old.part", 2 * storage.ABANDONED), (".grb-cora.new.part", 10.0)):
        (world.place.parent / name).mkdir(parents=True)
        os.utime(world.place.parent / name, (time.time() - age,) * 2)
    download.fetch(NAME)
    assert sorted(os.listdir(world.place.parent)) == [".grb-cora.new.part", NAME]


WORKER = """
import json, sys
from grb import catalogue
from grb.dataset import download
tables = json.loads(sys.argv[1])
catalogue.preset = tables.__getitem__
print(download.fetch("grb-cora").path)
"""


def test_two_processes_download_the_same_dataset_at_once(world: World) -> None:
    together = threading.Barrier(2)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        together.wait(20)  # both are in the middle of their download
        send(handler, loopback.files()["index.npz"])

    world.first.answers["index.npz"] = answer
    tables = json.dumps({name: catalogue.preset(name) for name in ("mirrors", "datasets")})
    command = [sys.executable, "-c", WORKER, tables]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    results = [worker.communicate(timeout=60) for worker in workers]
    assert [out.strip() for out, _ in results] == [str(world.place)] * 2, results
    assert world.whole()


# ---- from a folder or an archive


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.mkdir()
    for name, body in loopback.files().items():
        (path / name).write_bytes(body)
    return path


@pytest.mark.parametrize("depth", ["", "grb-cora", "GRB/grb-cora"])
def test_install_from_a_folder_or_a_root(world: World, folder: Path, depth: str, tmp_path: Path) -> None:
    if depth:
        (tmp_path / "root" / depth).parent.mkdir(parents=True)
        folder = folder.rename(tmp_path / "root" / depth)
    done = download.install_from(NAME, tmp_path / "root" if depth else folder)
    assert world.whole() and {each.check for each in done.files} == {"sha256 as listed"}
    assert world.first.asked == []


def test_install_from_an_archive(world: World, tmp_path: Path) -> None:
    download.install_from(NAME, zipped(tmp_path / "a.zip"))
    assert world.whole()


def test_install_refuses_files_that_are_not_the_published_ones(world: World, folder: Path) -> None:
    (folder / "labels.npz").write_bytes(loopback.packed(data=[2, 1, 0] * 4))
    with pytest.raises(IntegrityError, match=r"labels\.npz of .*mine has .*so it is not the listed file"):
        download.install_from(NAME, folder)
    assert world.nothing_is_left()


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\3\4 cut"])
def test_install_refuses_a_broken_archive(world: World, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(DataError, match="neither a folder nor a sound zip archive"):
        download.install_from(NAME, tmp_path / "a.zip")


def test_install_refuses_an_archive_with_a_damaged_member(world: World, tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip")
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    with pytest.raises(DataError, match="is damaged in the archive"):
        download.install_from(NAME, path)
    assert world.nothing_is_left()


def test_install_names_what_a_folder_lacks(world: World, folder: Path) -> None:
    (folder / FILE).unlink()
    with pytest.raises(DataError, match=r"mine lacks features\.npz of dataset 'grb-cora'"):
        download.install_from(NAME, folder)
    with pytest.raises(DataError, match=r"nowhere lacks adj\.npz, features\.npz, labels\.npz, index\.npz"):
        download.install_from(NAME, folder / "nowhere")


def test_a_dataset_that_is_here_stays_unless_forced(world: World) -> None:
    download.get(NAME)
    (world.place / "mark").touch()
    assert download.get(NAME).source == "already here"
    assert (world.place / "mark").exists()
    download.get(NAME, force=True)
    assert world.whole()


def test_an_incomplete_directory_is_replaced(world: World) -> None:
    world.place.mkdir(parents=True)
    (world.place / "adj.npz").write_bytes(b"half")
    download.get(NAME)
    assert world.whole()


def test_embedded_datasets_have_nothing_to_get(world: World) -> None:
    assert download.get("synth-tiny") == download.Obtained("synth-tiny", None, "embedded: there is nothing to get")


def test_every_published_address_is_https_and_every_dataset_of_the_papers_is_listed() -> None:
    table = catalogue.preset("mirrors")
    assert set(table["datasets"]) == set(catalogue.preset("datasets"))
    listed = list(table["archives"])
    for files in table["datasets"].values():
        assert set(files) == set(loopback.FILES)
        for entry in files.values():
            assert set(entry) <= {"size", "sha256", "urls"}
            assert len(entry.get("sha256", "0" * 64)) == 64 and entry.get("size", 1) > 0
            listed += entry["urls"]
    assert all(url.startswith("https://") for url in listed)
