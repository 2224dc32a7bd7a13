"""The page of the committed board of grb-cora, and views that only some boards have, in Chromium."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from grb.evaluator.board import CLEAN, Board, Run, board_from_runs
from grb.leaderboard import read_boards, read_scores, to_json
from grb.leaderboard.data import mentions
from grb.leaderboard.details import with_details
from grb.leaderboard.headline import answers
from grb.leaderboard.page import asset, build_page
from grb.leaderboard.placement_page import build_placement
from grb.leaderboard.site import write_site
from grb.leaderboard.taxonomy_view import PLACEMENT, published_analysis
from grb.pipeline import Store, boards
from made_boards import HOSTILE, made_board, tiny_store

WORST = Path(__file__).resolve().parents[2] / "docs" / "results" / "worst-case-grb-cora.csv"
RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "leaderboard-grb-cora.json"
PLACED = {
    "dataset": "mine",
    "reference": "inductive",
    "group": "I-2",
    "messages": ["mine belongs to I-2."],
    "neighbours": [{"dataset": "MUTAG", "group": "I-2"}, {"dataset": "D&D", "group": "I-2"}],
    "perturbations": [
        {"perturbation": "NoEdges", "ratio": 0.9, "low": 0.8, "high": 1.05},
        {"perturbation": "NodeDeg", "ratio": 1.1, "low": None, "high": None},
    ],
}
SIZES = [(1280, 800), (390, 844)]
# everything that can be operated, by the tab key alone
CONTROLS = "#theme, #tabs [aria-selected=true], #all, #cite, #submit, #csv, #json, #filters > summary, input[name=mode]:checked"


def viewport(size):
    return dict(zip(("width", "height"), size))


@pytest.fixture(scope="module")
def cora(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("cora") / "page.html"
    analysis = {**published_analysis("inductive"), PLACEMENT: PLACED}
    path.write_text(build_page(read_boards(RESULTS), analysis), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def worst(tmp_path_factory) -> str:
    """The board with the whole battery, from its committed scores."""
    path = tmp_path_factory.mktemp("worst") / "page.html"
    path.write_text(build_page(read_scores(WORST)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def detailed(tmp_path_factory) -> str:
    store = Store(tiny_store())
    path = tmp_path_factory.mktemp("detailed") / "page.html"
    path.write_text(build_page([with_details(board, store) for board in boards(store)]), encoding="utf-8")
    return path.as_uri()


NAMES = ("cora", "worst")
# a newcomer's questions, and words of their answers
QUESTIONS = {
    "headline": r"keeps [\d.]+ % under transferred attacks and [\d.]+ % (in the worst case|under white-box attacks)",
    "measured": "the share of test nodes that a model classifies right, before and after attacks",
    "margin": r"leads \S+ by [\d.]+ points in the (worst case|paper's weighted score)",
    "certainty": "First place is (open|certain)",
    "attacker": "add up to 60 nodes with up to 20 edges each",
    "joining": "grb submit FILE --store STORE",
}


def boards_of(name: str) -> list[Board]:
    return read_boards(RESULTS) if name == "cora" else read_scores(WORST)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_headline_chart_and_five_answers_of_grb_cora_are_seen_without_a_click(open_page, request, name, size):
    page = open_page(request.getfixturevalue(name), first_sight=True, viewport=viewport(size))
    (board,) = boards_of(name)
    sentences = answers(board, "full").to_dict()
    leader = min(board.ranks["full"], key=lambda each: -board.by_defense["full"][each][board.rank_by].mean)
    assert sentences["winner"].startswith(leader)
    for part in ("#headline", "#chart svg"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= min(800, size[1]) and box["x"] + box["width"] <= size[0], part
    for about, words in QUESTIONS.items():
        answer = page.locator("#headline" if about == "headline" else f"#answers [data-about={about}]")
        text = answer.inner_text()
        assert answer.is_visible() and re.search(words, text), about
        assert sentences["winner" if about == "headline" else about].replace("`", "") in text
    assert "+ln: layer normalisation; +at: adversarial training" in page.locator("#legend").inner_text()


TABLE = """() => ({
  keys: [...document.querySelectorAll('#board thead th')].map(th => [th.dataset.key, th.querySelector('bdi').textContent]),
  body: [...document.querySelectorAll('#board tbody tr')].map(row => [...row.cells].map(cell => cell.innerText.trim())),
  foot: [...document.querySelectorAll('#board tfoot tr')].map(row => [...row.cells].map(cell => cell.innerText.trim())) })"""
SUMMARIES = {
    "transfer": "weighted",
    "3-min": "three_min",
    "3-max": "three_max",
    "worst case (predicted)": "worst_case_predicted",
}


def spelled(estimate, paper=None) -> str:
    """A mean with its spread as a cell shows it, from the JSON."""
    spread = f" ±{100 * estimate['std']:.1f}" if estimate["n"] > 1 else ""
    return f"{100 * estimate['mean']:.1f}{spread}" + (f" paper {paper[0]:.1f}" if paper else "")


def wanted(board: dict, difficulty: str, key: str, label: str, defense: str) -> str:
    """What the cell of a defense has to show, from the JSON alone."""
    if key == "name":
        return defense
    if key == "rank":
        first, last = board["ranks"][difficulty][defense]
        return str(first) if first == last else f"{first}\u2013{last}"
    if key == "flags":
        count = sum(mentions(flag, defense) for flag in board["flags"])
        return f"\u26a0 {count}" if count else ""
    if key == "signer":
        return "unsigned"
    if key[0] == "s":
        own = board["by_defense"][difficulty][defense]
        name = SUMMARIES.get(label, label.replace(" ", "_").replace("-", "_"))
        return spelled(own[name]) if name in own else "\u2013"
    attack, white = (CLEAN if label == "clean" else label), key[0] == "w"
    cell = next(
        each
        for each in board["cells"]
        if (each["attack"], each["defense"], each["difficulty"], each["knowledge"] == "white-box")
        == (attack, defense, difficulty, white)
    )
    return spelled(cell["score"], None if label == "clean" else cell["paper"])


def same(shown: str, expected: str) -> bool:
    """Equal up to rounding: what lies between two tenths may be rounded to either."""
    pairs = list(zip(shown.split(), expected.split(), strict=True))
    return all(one == other or abs(float(one.strip("±")) - float(other.strip("±"))) < 0.1001 for one, other in pairs)


@pytest.mark.parametrize("view", ["short", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_every_visible_cell_of_grb_cora_equals_the_json(open_page, request, name, view):
    (board,) = json.loads(to_json(boards_of(name)))["boards"]
    page = open_page(request.getfixturevalue(name), first_sight=view == "short")
    compared = 0
    for difficulty in board["difficulties"]:
        if len(board["difficulties"]) > 1:
            page.get_by_label(difficulty, exact=True).check()
        table = page.evaluate(TABLE)
        names = [key for key, _ in table["keys"]]
        for row in table["body"]:
            defense = row[names.index("name")].split(" \u26a0")[0]
            for (key, label), text in zip(table["keys"], row, strict=True):
                text = defense if key == "name" else " ".join(text.split())
                expected = wanted(board, difficulty, key, label, defense)
                assert text == expected or same(text, expected), (difficulty, defense, label, text, expected)
                compared += 1
        for line in table["foot"]:
            for (key, label), text in zip(table["keys"], line, strict=True):
                summary = line[0].removeprefix("attack's ")
                if key[0] == "a" and key[1:].isdigit():
                    found = board["by_attack"][difficulty].get(label, {}).get(SUMMARIES.get(summary, summary))
                    assert text == "\u2013" if found is None else same(text, spelled(found)), (label, summary, text)
                    compared += 1
    assert compared >= len(board["difficulties"]) * len(board["defenses"]) * 5


@pytest.mark.parametrize("width", [360, 390, 640, 768, 1024, 1280, 1600, 1920])
def test_no_tab_of_grb_cora_scrolls_sideways(open_page, cora, width):
    page = open_page(cora, first_sight=True, viewport={"width": width, "height": 800})
    for tab in ("board", "attacks", "taxonomy", "about"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
    page.click("#tab-board")
    page.click("#cite")
    assert page.locator("#record").bounding_box()["width"] <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_tab_or_panel(open_page, detailed, cora, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    for address in (detailed, f"{detailed}#record=w0.0", f"{detailed}#record=d0", f"{cora}#tab=taxonomy"):
        page = open_page(address, first_sight=True, color_scheme=scheme, bypass_csp=True)
        found = axe.Axe().run(page)
        assert [(each["id"], each["nodes"][0]["html"][:120]) for each in found.response["violations"]] == [], address


def test_every_control_is_reached_and_worked_by_keys(open_page, cora):
    page = open_page(cora, first_sight=True)
    wanted = page.eval_on_selector_all(CONTROLS, "all => all.map(each => each.id || each.name || each.textContent)")
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "(document.activeElement.id || document.activeElement.name || document.activeElement.textContent)"
            )
        )
        if page.evaluate("document.activeElement.closest('footer')"):
            break
    assert set(wanted) <= set(seen), set(wanted) - set(seen)
    page.locator("#cite").focus()
    page.keyboard.press("Enter")
    assert "@misc{grb-cora-injection" in page.inner_text("#bibtex")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "cite", "focus comes back"


def test_a_link_restores_what_was_chosen_hidden_and_open(open_page, cora):
    page = open_page(cora)
    page.get_by_label("hard", exact=True).check()
    page.uncheck("#paper")
    page.uncheck("#bars")
    page.locator("summary", has_text="defenses").click()
    page.locator("#pick-defenses label", has_text="gatguard").locator("input").uncheck()
    page.keyboard.press("Escape")
    page.locator("#board thead button", has_text="tdgia").click()
    page.locator("#board tbody tr:not([hidden])").nth(2).locator("td.heat").nth(1).click()
    again = open_page(page.url, first_sight=True)
    for each in (page, again):
        assert each.locator("#record").evaluate("dialog => dialog.open")
    assert again.inner_text("#record-title") == page.inner_text("#record-title")
    assert again.inner_text("#command") == page.inner_text("#command")
    again.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert again.evaluate("location.hash") == page.evaluate("location.hash") and "record" not in again.url
    assert again.inner_text("#board tbody") == page.inner_text("#board tbody")
    assert not again.is_checked("#paper") and "gatguard" not in again.inner_text("#chart")


@pytest.mark.parametrize(
    "view", ["record=a99.99", "record=d77", "record=<b>", "hide=1.x.99999&without=4000", "record=w0.0.0"]
)
def test_strange_links_open_nothing(open_page, cora, view):
    page = open_page(f"{cora}#{view}", first_sight=True)
    assert not page.locator("#record").evaluate("dialog => dialog.open")
    assert page.locator("#board tbody tr").count() == 12


def test_an_entry_says_who_made_it_and_how_to_cite_it(open_page, cora):
    page = open_page(f"{cora}#record=d0", first_sight=True)
    text = page.inner_text("#record")
    for words in ("Zhu et al.", "KDD 2019", "measured by", "unsigned", "@inproceedings{zhu2019robust,"):
        assert words in text
    assert page.get_attribute("#record a", "href") == "https://doi.org/10.1145/3292500.3330851"
    page.keyboard.press("Escape")
    page.click("#submit")
    assert "grb submit my-attack.npz --check" in page.inner_text("#record")


def test_a_submission_shows_card_claims_and_licence(open_page, tmp_path):
    card = {
        "authors": "A. Person",
        "link": "https://example.org/p",
        "year": 2025,
        "license": "MIT",
        "about": "It helps.",
    }
    board = made_board(("mine (submitted)", "gcn"), cards={"mine (submitted)": card})
    path = tmp_path / "page.html"
    path.write_text(build_page([board]), encoding="utf-8")
    page = open_page(f"{path.as_uri()}#record=d0", first_sight=True)
    text = page.inner_text("#record")
    assert all(words in text for words in ("A. Person", "2025", "MIT", "It helps.", "@misc{mine-submitted,"))
    assert text.count("https://example.org/p") == 2, "once as a link, once in BibTeX"


def test_a_cell_shows_the_neighbourhood_that_was_attacked(open_page, detailed):
    page = open_page(f"{detailed}#record=w0.0", first_sight=True)
    assert "before the attack" in page.inner_text("#record") and page.locator("#record svg.near .ring").count() == 1
    stars = page.locator("#record svg.near .injected").count()
    assert f"{stars} injected nodes" in page.inner_text("#record") and stars >= 1
    label = page.get_attribute("#record svg.near", "aria-label")
    assert label.startswith("Neighbourhood of target") and page.locator("svg.near .edge.added").count() >= 1


def test_degrees_are_small_multiples_and_attacks_stand_at_their_cost(open_page, detailed):
    page = open_page(detailed, first_sight=True)
    assert page.locator("#charts svg.bands").count() == page.locator("#board tbody tr").count()
    told = page.eval_on_selector_all("#charts figure", "all => all.map(each => each.querySelector('h3').textContent)")
    assert told == ["Strength over cost", "Accuracy by the degree of the target"]
    assert "clean: " in page.text_content("#charts svg.bands g title")


def test_a_sweep_and_queries_are_lines(open_page, tmp_path):
    def swept(nodes, score):
        rows = [
            Run("none", "gcn", "full", 0, 0, 0.8, 0.0, "none"),
            Run("fgsm", "gcn", "full", 0, 0, score, 0.1),
            Run("ask", "gcn", "full", 0, 0, 0.7 * score, 0.1, "query", metadata={"queries": 500}),
        ]
        meta = {"recipe": "sweep", "title": f"sweep, nodes {nodes}"}
        return board_from_runs(
            rows, dataset="d", scenario="injection", difficulties=["full"], limit=("nodes", nodes), meta=meta
        )

    path = tmp_path / "page.html"
    path.write_text(build_page([swept(20, 0.6), swept(60, 0.4)]), encoding="utf-8")
    page = open_page(path.as_uri(), first_sight=True)
    labels = page.eval_on_selector_all(
        "#charts svg[role=img]", "all => all.map(each => each.getAttribute('aria-label'))"
    )
    assert labels == [
        "Accuracy over nodes: gcn from 51.0 % to 34.0 %",  # means of 0.6 and 0.42, of 0.4 and 0.28
        "Accuracy over queries: gcn from 80.0 % to 42.0 %",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_stay_text_in_every_view_panel_and_page(open_page, tmp_path, scheme):
    cards = {name: {"authors": name, "link": name, "license": name, "year": name} for name in HOSTILE}
    board = made_board(HOSTILE, HOSTILE[:3], difficulties=("full",), dataset=HOSTILE[6], recipe=HOSTILE[0], cards=cards)
    board = replace(board, meta={**board.meta, "date": HOSTILE[0], "title": HOSTILE[1]})
    placed = {**PLACED, "dataset": HOSTILE[0], "messages": list(HOSTILE)}
    write_site([board], tmp_path / "site", {**published_analysis("inductive"), PLACEMENT: placed}, title=HOSTILE[6])
    (tmp_path / "site" / "place.html").write_text(build_placement(placed, HOSTILE), encoding="utf-8")
    for path in sorted((tmp_path / "site").glob("*.html")):
        for view in (
            "",
            "#record=cite",
            "#record=submit",
            "#record=a0.0",
            "#tab=taxonomy",
            *(f"#record=d{n}" for n in range(len(HOSTILE))),
        ):
            if path.name in ("index.html", "place.html") and view:
                continue
            page = open_page(path.as_uri() + view, first_sight=True, color_scheme=scheme)
            assert page.locator("img").count() == 0
            assert page.eval_on_selector_all(
                "a", "all => all.every(each => /^(https?:|[a-z0-9.#=-]+$)/.test(each.getAttribute('href')))"
            )


def test_the_site_and_the_page_of_a_placement_fit_and_pass_axe(open_page, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    write_site(read_boards(RESULTS), tmp_path)
    (tmp_path / "place.html").write_text(build_placement(PLACED), encoding="utf-8")
    for name in ("index.html", "place.html"):
        for width, scheme in ((360, "light"), (1280, "dark")):
            page = open_page(
                (tmp_path / name).as_uri(),
                first_sight=True,
                viewport={"width": width, "height": 800},
                color_scheme=scheme,
                bypass_csp=True,
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if width == 1280 and name == "place.html":
                assert page.evaluate("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('.scroll'))")
            found = axe.Axe().run(page)
            assert [(each["id"], each["nodes"][0]["html"][:120]) for each in found.response["violations"]] == [], name


def test_a_printed_page_has_table_headline_and_charts(open_page, cora):
    page = open_page(cora, first_sight=True)
    page.emulate_media(media="print")
    for part in ("#headline", "#chart svg", "#board tbody tr:last-child"):
        assert page.locator(part).is_visible(), part
    assert page.locator("#board-scroll").evaluate("box => box.scrollHeight <= box.clientHeight + 1"), "nothing is cut"
    for part in ("#controls", "#cite", "#submit"):
        assert not page.locator(part).is_visible(), part


def test_the_code_of_the_charts_stays_small():
    assert len(asset("chart.js").splitlines()) <= 300


# what can be focused and seen; of a group of tabs, of radios and of the grid the tab key reaches one, arrows the others
OPERABLE = """() => [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']")]
  .filter((each) => each.checkVisibility() && each.tabIndex >= 0 && !each.closest("dialog"))
  .filter((each) => each.type !== "radio" || each.checked)
  .map((each, place) => { each.dataset.mark = String(place); return each.dataset.mark; })"""


@pytest.mark.parametrize("tab", ["board", "attacks", "taxonomy", "about"])
def test_the_tab_key_reaches_everything_that_can_be_operated(open_page, cora, tab):
    page = open_page(f"{cora}#tab={tab}", first_sight=True)
    for summary in page.locator("#filters > summary").all():
        if summary.is_visible():
            summary.focus()
            page.keyboard.press("Enter")
    page.evaluate("document.body.focus(); document.activeElement.blur && document.activeElement.blur()")
    wanted = page.evaluate(OPERABLE)
    assert len(wanted) >= 2  # the theme and the tabs
    reached = []
    for _ in range(len(wanted) + 5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.mark"))
    assert set(wanted) <= set(reached)


def test_choices_are_made_by_keys_alone(open_page, cora):
    page = open_page(cora, first_sight=True)
    page.locator("input[name=mode]:checked").focus()
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#board-title").endswith("hard")
    page.locator("#all").focus()
    page.keyboard.press("Space")
    assert page.locator("#board td.heat").count() > 0
    page.locator("#filters > summary").focus()
    page.keyboard.press("Enter")
    for _ in range(4):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "metric"
    page.keyboard.press("ArrowDown")
    assert "metric=drop" in page.url
    page.keyboard.press("Tab")
    page.keyboard.type("gcn")
    assert 0 < page.locator("#board tbody tr:not([hidden])").count() < 12
    page.locator("#board [tabindex='0']").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#record").evaluate("dialog => dialog.open")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.closest('#board') !== null"), "focus is back in the table"
