"""What a site remembers of its ranks, its feeds, and the workflow that rebuilds it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner

from grb.cli.app import app
from grb.errors import DataError
from grb.leaderboard.changes import FILE, MOST, Change, History, differences
from grb.leaderboard.feed import atom_feed, json_feed
from grb.leaderboard.site import by_page, write_site
from made_boards import HOSTILE, made_board, tiny_store

ATOM = "{http://www.w3.org/2005/Atom}"
WORKFLOW = Path(__file__).resolve().parents[2] / ".github" / "workflows" / "leaderboard.yml"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"a": (1, 1)}, {"a": (1, 1)}, []),
        ({"a": (1, 2), "b": (1, 2)}, {"b": (1, 2), "a": (1, 2)}, ["b leads instead of a."]),
        ({"a": (1, 1)}, {"a": (1, 1), "b": (2, 2)}, ["b joins at place 2."]),
        ({"a": (1, 1), "b": (2, 2)}, {"a": (1, 1)}, ["b is not ranked any more."]),
        ({"a": (1, 1), "b": (2, 3)}, {"a": (1, 1), "b": (2, 2)}, ["b moves from place 2 to 3 to place 2."]),
        ({}, {}, []),
        ({"a": (1, 1)}, {}, ["a is not ranked any more."]),
    ],
)
def test_differences_are_told_in_sentences(before, after, told):
    assert differences(before, after) == told


def test_a_site_tells_how_ranks_changed_since_it_was_built_last(tmp_path):
    first = made_board(("gcn", "gat"), ("fgsm",), dataset="alpha", recipe="alpha")
    first = replace(first, meta={**first.meta, "date": "2026-01-01"})
    write_site([first], tmp_path)
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_site([first], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == again, "nothing happened"
    later = made_board(("gcn+ln", "gcn", "gat"), ("fgsm",), dataset="alpha", recipe="alpha")
    write_site([replace(later, meta={**later.meta, "date": "2026-02-02"})], tmp_path)
    history = History.read(tmp_path / FILE)
    assert history.changes[0] == Change(
        "2026-02-02", "alpha-injection.html", "injection on alpha", "gcn+ln leads instead of gcn."
    )
    assert history.changes[1].text.startswith("gcn+ln joins at place 1")
    assert history.changes[-1].text == "New board: 2 defenses are ranked, gcn leads."
    index = (tmp_path / "index.html").read_text()
    assert "gcn+ln leads instead of gcn." in index and "measured 2026-02-02" in index
    feed = json.loads((tmp_path / "feed.json").read_text())
    assert feed["items"][0]["content_text"] == "gcn+ln leads instead of gcn."
    assert feed["items"][0]["url"] == "alpha-injection.html"


def test_feeds_are_what_readers_take():
    changes = [Change("2026-03-04", "a.html", "A <b> & co", f"{name[:200]} joins") for name in HOSTILE]
    root = ElementTree.fromstring(atom_feed(changes, title="T & <i>", url="https://example.org/"))
    assert root.findtext(f"{ATOM}title") == "T & <i>" and root.findtext(f"{ATOM}updated") == "2026-03-04T00:00:00Z"
    ids = [entry.findtext(f"{ATOM}id") for entry in root.iter(f"{ATOM}entry")]
    assert len(set(ids)) == len(HOSTILE) and all(each.startswith("urn:uuid:") for each in ids)
    assert {link.get("href") for link in root.iter(f"{ATOM}link")} == {
        "https://example.org/index.html",
        "https://example.org/feed.atom",
        "https://example.org/a.html",
    }
    feed = json.loads(json_feed(changes, title="T", url="https://example.org/"))
    assert feed["version"] == "https://jsonfeed.org/version/1.1" and len(feed["items"]) == len(HOSTILE)
    assert [item["id"] for item in feed["items"]] == ids
    assert ElementTree.fromstring(atom_feed([], title="T")).find(f"{ATOM}entry") is None


def test_hostile_names_stay_text_in_history_index_and_feeds(tmp_path):
    write_site([made_board(HOSTILE, ("fgsm",), recipe=HOSTILE[0])], tmp_path)
    write_site([made_board(HOSTILE[1:], ("fgsm",), recipe=HOSTILE[0])], tmp_path)
    index = (tmp_path / "index.html").read_text()
    assert "<script" not in index and "<img" not in index and "not ranked any more" in index
    assert len(ElementTree.fromstring((tmp_path / "feed.atom").read_text())) > 5
    assert json.loads((tmp_path / "feed.json").read_text())["items"]


def test_a_damaged_history_is_refused_and_a_long_one_is_cut(tmp_path):
    (tmp_path / FILE).write_text('{"format": 1, "ranks": [], "changes": []}')
    with pytest.raises(DataError, match="remove it to begin a new history"):
        write_site([made_board()], tmp_path)
    full = History({}, tuple(Change("2026-01-01", "a.html", "A", str(number)) for number in range(MOST)))
    longer = full.after([made_board()], ["b.html"], "2026-01-02")
    assert len(longer.changes) == MOST and longer.changes[0].text.startswith("New board")


def test_boards_of_one_sweep_share_a_page():
    swept = [replace(made_board(recipe="sweep"), limit=("nodes", value)) for value in (1.0, 2.0)]
    other = made_board(recipe="other")
    assert [len(own) for own in by_page([swept[0], other, swept[1], other])] == [2, 1, 1]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://a b", "ftp://example.org"])
def test_an_address_of_a_site_is_http(tmp_path, url):
    with pytest.raises(DataError, match="http"):
        write_site([made_board()], tmp_path / "site", url=url)
    assert not (tmp_path / "site").exists()


def test_the_workflow_runs_commands_that_work(tmp_path, monkeypatch):
    """Its lines that call grb, with a store of true results in place of the repository's."""
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    lines = [line for step in jobs["build"]["steps"] for line in step.get("run", "").splitlines()]
    commands = [line for line in lines if line.startswith("grb ")]
    assert len(commands) == 2
    monkeypatch.chdir(tmp_path)
    for line in commands:
        text = line.replace("$STORE", str(tiny_store())).replace(
            "${{ steps.pages.outputs.base_url }}", "https://a.org/b"
        )
        done = CliRunner().invoke(app, shlex.split(text)[1:])
        assert done.exit_code == 0, done.stderr
    assert {"index.html", "feed.json", "feed.atom", FILE} <= {path.name for path in (tmp_path / "public").iterdir()}
    assert any(step.get("uses", "").startswith("actions/upload-pages-artifact@") for step in jobs["build"]["steps"])


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("curl") is None, reason="needs bash and curl")
def test_every_step_of_the_workflow_runs_in_a_shell_twice(tmp_path):
    """First on a site that was never published, then on the published one, which is served on loopback."""
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["build"]["steps"]
    scripts = {step["name"]: step["run"] for step in steps if "run" in step}
    assert list(scripts)[0] == "Install grb" and len(scripts) == 4
    published, work = tmp_path / "published", tmp_path / "work"
    published.mkdir()
    work.mkdir()
    handler = partial(QuietHandler, directory=str(published))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": paths, "STORE": str(tiny_store()), "GRB_OFFLINE": "1"}
        for build in (1, 2):
            for name, script in list(scripts.items())[1:]:  # installing is what the environment of the tests has done
                script = script.replace("${{ steps.pages.outputs.base_url }}", address)
                done = subprocess.run(
                    ["bash", "-e", "-o", "pipefail", "-c", script],
                    cwd=work,
                    env=environment,
                    capture_output=True,
                    text=True,
                )
                assert done.returncode == 0, f"{name}: {done.stderr}"
                if name.startswith("Take the history"):
                    assert (work / "public" / FILE).exists() == (build == 2)
            shutil.copytree(work / "public", published, dirs_exist_ok=True)
            shutil.rmtree(work / "public")
        server.shutdown()
    history = History.read(published / FILE)
    assert history.changes and all(change.text.startswith("New board:") for change in history.changes), "told once"


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass
