"""Pages of boards that lack something or have too much of it, in Chromium: they still fit, answer and pass axe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from grb.evaluator.board import CLEAN, Board, Run, board_from_runs
from grb.leaderboard.page import build_page
from grb.leaderboard.site import write_site
from made_boards import made_board

LONG = "a-defense-with-a-name-that-somebody-made-far-too-long(alpha=0.123456789,beta=[1,2,3,4,5,6,7,8,9])"
RIGHT_TO_LEFT = ("דיפנס-א", "مدافع+ln", "gcn", "mlp")


def runs(scores: Sequence[tuple[str, str, str, float]], **meta: object) -> Board:
    """(attack, knowledge, defense, score), without limits or costs."""
    rows = [
        Run(attack, defense, "full", 0, 0, score, 0.0, knowledge)  # type: ignore[arg-type]
        for attack, knowledge, defense, score in scores
    ]
    scenario = str(meta.pop("scenario", "injection"))
    return board_from_runs(rows, dataset="odd", scenario=scenario, difficulties=["full"], meta=meta)


def battery() -> Board:
    rows = [
        Run(attack, defense, "full", 0, 0, score, 0.0, knowledge, labels=labels, battery=name)  # type: ignore[arg-type]
        for number, defense in enumerate(["mlp", *(f"model-{place}+ln" for place in range(24)), "gcn"])
        for attack, knowledge, score, labels, name in (
            (CLEAN, "none", 0.85, "predicted", ""),
            ("fgsm", "transfer", 0.8 - 0.01 * number, "predicted", ""),
            ("auto", "white-box", 0.6 - 0.02 * number, "predicted", "auto 1"),
        )
    ]
    return board_from_runs(rows, dataset="odd", scenario="injection", difficulties=["full"])


BOARDS: dict[str, Callable[[], Board]] = {
    "long names": lambda: made_board([f"{number}-{LONG}" for number in range(6)], [f"{LONG}-{n}" for n in range(4)]),
    "many defenses": lambda: made_board([f"method-{number}" for number in range(39)] + ["gcn"], repeats=2),
    "battery": battery,
    "without mlp": lambda: made_board(("gcn+ln", "gcn")),
    "one attack": lambda: made_board(attacks=("fgsm",), white_box=()),
    "one defense": lambda: made_board(("mine",)),
    "right to left": lambda: made_board(RIGHT_TO_LEFT, ("תקיפה", "fgsm")),
    "clean only": lambda: runs([(CLEAN, "none", "gcn", 0.8), (CLEAN, "none", "mlp", 0.6)]),
    "white-box only": lambda: runs([("pgd", "white-box", "gcn", 0.2), ("pgd", "white-box", "mlp", 0.6)]),
    "modification": lambda: runs(
        [(CLEAN, "none", "gcn", 0.8), ("dice", "transfer", "gcn", 0.7), ("dice", "transfer", "mlp", 0.6)],
        scenario="modification",
    ),
    "holes": lambda: runs(
        [(CLEAN, "none", "gcn", 0.8), ("dice", "transfer", "gcn", 0.7), ("fgsm", "transfer", "mlp", 0.6)]
    ),
    "poisoning": lambda: replace(made_board(), objective="poisoning"),
    "perturbations": lambda: runs(
        [(CLEAN, "none", "gcn", 0.8), ("NoEdges", "transfer", "gcn", 0.7)], scenario="corruption"
    ),
}
SIZES = [(360, 780), (1280, 800)]
QUESTIONS = ("measured", "margin", "certainty", "attacker", "joining")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("odd")
    found = {}
    for name, made in BOARDS.items():
        path = folder / f"{name.replace(' ', '-')}.html"
        path.write_text(build_page([made()]), encoding="utf-8")
        found[name] = path.as_uri()
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BOARDS)
def test_an_odd_board_fits_and_answers_five_questions(open_page, addresses, name, size):
    page = open_page(addresses[name], first_sight=True, viewport=dict(zip(("width", "height"), size)))
    for view in ("board", "attacks"):
        page.click(f"#tab-{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0], view
    page.click("#tab-board")
    headline = page.inner_text("#headline")
    assert headline.endswith(".") and "  " not in headline and "NaN" not in page.inner_text("main")
    for about in QUESTIONS:
        answer = page.locator(f"#answers [data-about={about}]")
        assert answer.is_visible() and len(answer.inner_text()) > 30, about
    marks = page.eval_on_selector_all(
        "#chart svg text",
        "all => all.map(each => { const box = each.getBoundingClientRect(); return [box.left, box.right]; })",
    )
    assert all(left >= 0 and right <= size[0] for left, right in marks)


def test_a_site_of_odd_boards_has_a_card_for_each(tmp_path):
    made = [replace(make(), dataset=name, meta={"title": name}) for name, make in BOARDS.items()]
    write_site(made, tmp_path)
    index = (tmp_path / "index.html").read_text("utf-8")
    assert index.count('class="card"') == len(made)
    assert index.index(">battery<") < index.index(">long names<"), "the worst case comes first"


@pytest.mark.parametrize("name", BOARDS)
def test_axe_finds_nothing_on_an_odd_board(open_page, addresses, name):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = open_page(addresses[name], first_sight=True, bypass_csp=True)
    found = axe.Axe().run(page)
    assert [(each["id"], each["nodes"][0]["html"][:120]) for each in found.response["violations"]] == []


def test_a_sentence_with_a_name_from_right_to_left_runs_from_left_to_right(open_page, addresses):
    page = open_page(addresses["right to left"], first_sight=True)
    sentences = page.locator("#headline > bdi, #answers li > bdi")
    assert sentences.count() >= 5
    for place in range(sentences.count()):
        assert sentences.nth(place).evaluate("each => getComputedStyle(each).direction") == "ltr"
    places = page.evaluate(
        """() => { const texts = [...headline.querySelectorAll('bdi')].flatMap((each) => [...each.childNodes].map((node) => {
          const range = document.createRange(); range.selectNodeContents(node); return range.getClientRects()[0]; }));
          return [texts[0].left, texts[1].left]; }"""
    )
    assert places[0] <= places[1], "the name of the winner stands before what it keeps"


def test_the_chart_has_the_model_that_the_headline_compares_with(open_page, addresses):
    page = open_page(addresses["battery"], first_sight=True)
    assert "undefended gcn falls from 85.0" in page.inner_text("#headline")
    names = page.eval_on_selector_all("#chart g title", "all => all.map(each => each.textContent.split(':')[0])")
    assert names[0] == "mlp" and names[-1] == "gcn" and len(names) < 26
    assert page.inner_text("#chart figcaption").endswith(f"{len(names)} of 26")
