from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError
from grb.evaluator.board import Board
from grb.leaderboard import read_boards
from grb.leaderboard.brackets import BracketTable, Row
from grb.leaderboard.data import KEY, mentions, page_data, script_json
from grb.leaderboard.page import asset, build_page, render
from grb.leaderboard.site import build_index, file_names, write_site
from made_boards import HOSTILE, made_board

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "leaderboard-grb-cora.json"


class Reader(HTMLParser):
    """Tags with their attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inner: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.open.append(tag)
            self.inner.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.inner[self.open[-1]][-1] += data


@pytest.fixture(scope="module")
def page():
    return build_page([made_board(paper=True)])


def data_of(text):
    return json.loads(Reader(text).inner["script"][0])


def test_the_page_is_one_file_that_asks_for_nothing(page):
    reader = Reader(page)
    asked = [(tag, attrs) for tag, attrs in reader.tags if {"src", "srcset", "action", "background"} & set(attrs)]
    assert asked == []
    links = [attrs["href"] for tag, attrs in reader.tags if "href" in attrs]
    assert links == ["data:,"]
    assert not re.search(r"@import|url\(", page)


def test_the_policy_allows_our_script_and_style_and_nothing_else(page):
    reader = Reader(page)
    (policy,) = [attrs["content"] for tag, attrs in reader.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    assert parts["base-uri"] == parts["form-action"] == "'none'"
    assert "unsafe" not in policy and "*" not in policy

    def digest(text):
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    assert parts["script-src"] == digest(reader.inner["script"][1])
    assert parts["style-src"] == digest(reader.inner["style"][0])
    assert len(reader.inner["script"]) == 2 and len(reader.inner["style"]) == 1
    # a policy with hashes refuses these, so that they would be dead anyway
    assert not any(name == "style" or name.startswith("on") for _, attrs in reader.tags for name in attrs)


def test_the_policy_stands_before_everything_that_it_governs(page):
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<script")


def test_the_same_boards_give_the_same_bytes(page):
    assert build_page([made_board(paper=True)]) == page


def test_boards_and_their_plain_values_give_the_same_page(page):
    assert build_page([made_board(paper=True).to_dict()]) == page


def test_a_page_needs_a_board():
    with pytest.raises(DataError, match="at least one board"):
        build_page([])


def test_templates_escape_every_value():
    assert "&lt;b&gt;" in render("page.html.j2", **{**_blank(), "title": "<b>"})
    assert "<b>" not in render("page.html.j2", **{**_blank(), "title": "<b>"})
    row = Row("<b>", ("<b>",), '"><b>', '"><b>', '"><b>')
    shown = render("page.html.j2", **{**_blank(), "brackets": [BracketTable("<b>", '"><b>', (0,), (row,), (1.0,))]})
    assert "&lt;b&gt;" in shown and "<b>" not in shown


def _blank():
    names = ("title", "version", "home", "style", "script", "data", "style_hash", "script_hash")
    return {**dict.fromkeys(names, ""), "taxonomy": [], "plain": [], "brackets": []}


def test_our_own_script_and_style_cannot_end_their_element():
    for name in ("page.js", "page.css"):
        text = asset(name).lower()
        assert "</script" not in text and "</style" not in text and "<!--" not in text
    assert not re.search(
        r"innerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|outerHTML", asset("page.js")
    )


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists, max_leaves=5))
def test_json_in_a_script_element_comes_back_and_has_no_bracket(value):
    text = script_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


def test_nan_in_the_data_is_a_bug_and_raises():
    with pytest.raises(ValueError):
        script_json(float("nan"))


def hostile():
    cards = {name: {name: name, "link": "javascript:alert(1)", "home": "https://example.org/a"} for name in HOSTILE}
    board = made_board(
        defenses=HOSTILE,
        attacks=HOSTILE[:3],
        difficulties=("full",),
        dataset=HOSTILE[0],
        scenario=HOSTILE[1],
        recipe=HOSTILE[5],
        flags=[f"look at {HOSTILE[0]}", HOSTILE[6]],
        cards=cards,
    )
    return board, {HOSTILE[0]: {HOSTILE[1]: HOSTILE[6], "rows": [HOSTILE[3]]}, "list": list(HOSTILE)}


def test_hostile_names_leave_no_tag_behind():
    board, taxonomy = hostile()
    plain = Reader(
        build_page([made_board(difficulties=("full",))], {"a": {"b": "c", "rows": ["d"]}, "list": list("efghijkl")})
    )
    found = Reader(build_page([board], taxonomy, title=HOSTILE[1]))
    assert {tag for tag, _ in found.tags} <= {tag for tag, _ in plain.tags} | {"details", "summary", "p"}
    assert len(found.inner["script"]) == 2
    assert "img" not in {tag for tag, _ in found.tags}
    assert found.inner["script"][1] == plain.inner["script"][1]


def test_hostile_names_are_cut_visible_and_never_a_link():
    board, taxonomy = hostile()
    text = build_page([board], taxonomy, title=HOSTILE[1])
    data = data_of(text)["boards"][0]
    assert max(map(len, data["defenses"])) <= 70
    assert "\u202e" not in text
    assert any("<U+202E>" in name for name in data["defenses"])
    lines = [line for card in data["cards"]["defenses"].values() for line in card]
    assert {line["link"] for line in lines if "link" in line} == {"https://example.org/a"}
    assert len(text) < 250_000
    assert "javascript:alert" not in {attrs.get("href") for _, attrs in Reader(text).tags}


def test_the_data_are_the_boards_numbers():
    board = made_board(paper=True, victims=2)
    data = page_data(board)
    assert len(data["cells"]) == len(board.cells)
    for cell in data["cells"]:
        attack, defense, difficulty, white, accuracy, changed, drop, paper, values, scores, victims, edits, extras = (
            cell[:13]
        )
        assert cell[13:] == [None, "unsigned"]
        names = data["whiteBox"] if white else data["attacks"]
        own = board.cell(names[attack], data["defenses"][defense], data["modes"][difficulty], white_box=bool(white))
        assert own is not None
        assert accuracy[0] == pytest.approx(own.score.mean, rel=1e-4)
        assert accuracy[1] == pytest.approx(own.score.std, rel=1e-4, abs=1e-9)
        assert accuracy[4] == own.score.n == len(values) == len(scores) == len(victims) == len(edits) == len(extras)
        assert changed[0] == pytest.approx(own.changed.mean, rel=1e-4)
        assert scores == [metadata["score"][:KEY] for metadata in own.metadata]
        for place, metadata in zip(victims, own.metadata):
            assert data["victims"][place]["victim"] == metadata["victim"][:KEY]
        for place, metadata in zip(edits, own.metadata):
            assert data["edits"][place].get("attack") == (metadata["attack"][:KEY] if "attack" in metadata else None)
        if own.attack == "none":
            assert drop is None and paper == [0.8, 0.005]
        elif not white:
            assert paper == [0.6125, 0.015]


def test_each_record_is_kept_once():
    data = page_data(made_board(repeats=3, victims=2))
    assert len(data["victims"]) == 4 * 2
    # three attacks, four difficulties, three repeats; one white-box attack on every victim; and nothing for the clean graph
    assert len(data["edits"]) == 3 * 4 * 3 + 4 * 4 * 2 + 1


def test_facts_that_nobody_foresaw_are_shown_too():
    board = made_board(difficulties=("full",))
    plain = board.to_dict()
    for cell in plain["cells"]:
        for metadata in cell["metadata"]:
            metadata["novelty"] = "seen"
    assert page_data(Board.from_dict(plain))["extras"] == [{"novelty": "seen"}]


def test_a_warning_knows_of_whom_it_speaks():
    data = page_data(made_board(flags=["gcn+ln hides its gradients", "fgsm never ran"]))
    first, second = data["flags"]
    assert [data["defenses"][place] for place in first["defenses"]] == ["gcn+ln"]
    assert first["attacks"] == [] and second["defenses"] == []
    assert [data["attacks"][place] for place in second["attacks"]] == ["fgsm"]
    assert not mentions("anything", "")


def test_without_a_script_the_ranks_are_there(page):
    (body,) = re.findall(r"<noscript>\s*<h2>(.*?)</noscript>", page, re.DOTALL)
    assert all(name in body for name in ("gcn+ln", "weighted", "worst node"))


def test_the_taxonomy_has_a_tab_only_with_data(page):
    assert 'id="tab-taxonomy"' not in page
    shown = build_page([made_board()], {"datasets": ["cora", "flickr"], "auroc": [0.5, 0.75]})
    assert 'id="tab-taxonomy"' in shown and "flickr" in shown


def test_a_site_has_an_index_and_a_page_per_board(tmp_path):
    boards = [made_board(), made_board(dataset="other"), made_board(recipe="../../evil", flags=["odd"])]
    paths = write_site(boards, tmp_path / "site")
    names = sorted(path.name for path in paths)
    assert names == sorted(
        ["boards.csv", "boards.json", "evil-injection.html", "index.html", "made-up-injection--2.html"]
        + ["made-up-injection.html", "changes.json", "feed.atom", "feed.json"]
    )
    assert all(path.parent == tmp_path / "site" for path in paths)
    index = Reader((tmp_path / "site" / "index.html").read_text("utf-8"))
    links = [attrs["href"] for tag, attrs in index.tags if tag == "a"]
    assert list(dict.fromkeys(link for link in links if link.endswith(".html"))) == file_names(boards)
    assert "script" not in index.inner
    assert all((tmp_path / "site" / link).exists() for link in links)
    one = (tmp_path / "site" / "evil-injection.html").read_text("utf-8")
    assert 'href="index.html"' in one and len(data_of(one)["boards"]) == 1


def test_the_index_says_what_to_know_before_reading_on():
    board = made_board(flags=["odd"])
    plain = board.to_dict()
    plain["meta"] |= {"measured": 3, "planned": 7, "synthetic": True, "title": HOSTILE[0]}
    text = build_index([Board.from_dict(plain)], ["a.html"], title=HOSTILE[1])
    assert "incomplete: 3 of 7 measurements" in text and "synthetic data" in text and "1 warning" in text
    assert "<script" not in text and "<img" not in text
    assert "gcn+ln keeps" in text and "grb submit mine.npz --check" in text
    weighted = 100 * board.by_defense["full"]["gcn+ln"]["weighted"].mean
    assert f"weighted {weighted:.1f} %" in text


def test_a_site_is_not_written_into_a_file(tmp_path):
    (tmp_path / "site").write_text("mine")
    with pytest.raises(DataError, match="a site is a directory"):
        write_site([made_board()], tmp_path / "site")
    assert (tmp_path / "site").read_text() == "mine"


def test_the_committed_board_of_grb_cora_is_a_small_page():
    (board,) = read_boards(RESULTS)
    text = build_page([board])
    assert len(text.encode()) <= 2**20
    data = data_of(text)["boards"][0]
    assert data["dataset"] == "grb-cora" and not data["synthetic"]
    # Table 13: five attacks and the clean graph, ten defenses, four difficulties
    assert sum(cell[7] is not None for cell in data["cells"]) == 6 * 10 * 4
