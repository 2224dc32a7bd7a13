from __future__ import annotations

from dataclasses import replace

from grb.leaderboard.citing import citations, cite_board
from made_boards import HOSTILE, made_board

CARD = {
    "authors": "A. Person, B. Person",
    "link": "https://example.org/paper",
    "year": 2025,
    "license": "MIT",
    "name": "mine",
}


def test_a_board_is_cited_with_the_day_it_was_measured_and_its_benchmark():
    board = made_board(dataset="grb-cora", recipe="grb-cora")
    board = replace(board, meta={**board.meta, "date": "2026-02-03", "fingerprint": "ab" * 32})
    text = cite_board(board)
    assert text.startswith("@misc{grb-cora-injection-2026-02-03,\n") and "year = {2026}," in text
    assert "dataset grb-cora (abababababababab), measured 2026-02-03" in text
    assert "@inproceedings{zheng2021grb," in text and "Zheng, Qinkai and Zou, Xu" in text


def test_a_method_of_the_catalogue_is_cited_by_its_papers_and_an_entry_by_its_card():
    board = made_board(("r-gcn+at", "mine (submitted)", "mlp"), cards={"mine (submitted)": CARD})
    found = dict(zip(board.defenses, citations(board, "defense")))
    ours, theirs, plain = found["r-gcn+at"], found["mine (submitted)"], found["mlp"]
    assert (
        ours.authors.startswith("Zhu et al.") and ours.year == "2019" and "@inproceedings{zhu2019robust," in ours.bibtex
    )
    assert theirs.to_dict() == {
        "authors": "A. Person, B. Person",
        "link": "https://example.org/paper",
        "year": "2025",
        "license": "MIT",
        "bibtex": "@misc{mine-submitted,\n  title = {{mine (submitted)}},\n  author = {A. Person and B. Person},\n"
        "  year = {2025},\n  url = {https://example.org/paper},\n}",
    }
    assert plain.to_dict() == {}


def test_attacks_are_cited_too_and_the_day_is_that_of_their_last_score():
    board = made_board(attacks=("tdgia", "fgsm", "rnd"))
    dated = [
        replace(cell, metadata=tuple({**run, "date": f"2026-01-0{1 + run['repeat']}"} for run in cell.metadata))
        for cell in board.cells
    ]
    found = dict(zip(board.attacks, citations(replace(board, cells=tuple(dated)), "attack")))
    assert found["tdgia"].date == "2026-01-03" and found["none"].date == "2026-01-01"
    assert "zou2021tdgia" in found["tdgia"].bibtex and found["rnd"].bibtex == ""


def test_hostile_cards_cannot_end_an_entry():
    cards = {name: {**CARD, "authors": f"{{}}}}, x = {name}", "link": f"https://a/{name}"} for name in HOSTILE}
    for each in citations(made_board(HOSTILE, ("fgsm",), cards=cards), "defense"):
        assert each.bibtex.count("{") == each.bibtex.count("}") and "\\" not in each.bibtex
        assert each.link in ("", f"https://a/{HOSTILE[2]}")
