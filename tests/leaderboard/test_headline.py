from __future__ import annotations

from dataclasses import replace

import pytest

from grb.evaluator.board import Run, board_from_runs
from grb.leaderboard.headline import answers, baseline, limits_in_words
from made_boards import HOSTILE, made_board

THREAT = {"kind": "injection", "nodes": 60, "edges_per_node": 20, "feature_range": [-0.94, 0.94]}


def board(scores, *, victims=1, battery=False, threat=THREAT):
    """Defense to (clean, score under fgsm of every repeat, worst case)."""
    rows = []
    for defense, (clean, attacked, worst) in scores.items():
        for victim in range(victims):
            common = {"defense": defense, "difficulty": "full", "victim": victim, "changed": 0.0}
            rows.append(Run("none", repeat=0, score=clean, knowledge="none", **common))
            for repeat, value in enumerate(attacked):
                metadata = {"attack": f"fgsm {repeat}", "threat": threat}
                rows.append(Run("fgsm", repeat=repeat, score=value, metadata=metadata, **common))
            if battery:
                own = {"attack": f"auto {victim}", "threat": threat}
                rows.append(
                    Run("auto", repeat=0, score=worst, knowledge="white-box", metadata=own, battery="auto 1", **common)
                )
    meta = {"victims": victims}
    return board_from_runs(rows, dataset="grb-cora", scenario="injection", difficulties=["full"], meta=meta)


def test_the_winner_its_worst_case_and_what_becomes_of_an_undefended_model():
    scores = {"r-gcn+at": (0.86, (0.8, 0.8), 0.5), "gcn": (0.85, (0.4, 0.4), 0.1), "gat": (0.84, (0.3, 0.3), 0.2)}
    found = answers(board(scores, battery=True), "full")
    assert found.winner.startswith("r-gcn+at keeps ")
    assert "under transferred attacks and 50.0 % in the worst case on grb-cora" in found.winner
    assert found.winner.endswith("; undefended gcn falls from 85.0 to 10.0 %.")
    assert found.margin == "r-gcn+at leads gat by 30.0 points in the worst case."


def test_a_leader_that_sees_no_edges_is_called_so_and_the_best_that_does_is_named():
    scores = {"mlp": (0.64, (0.64, 0.64), 0.64), "gcn+ln": (0.85, (0.7, 0.7), 0.3), "gcn": (0.85, (0.4, 0.4), 0.1)}
    found = answers(board(scores, battery=True), "full").winner
    assert found.startswith(
        "mlp, which sees no edges, leads on grb-cora with 64.0 %; gcn+ln, the best that sees them, keeps "
    )
    assert "and 30.0 % in the worst case; undefended gcn falls from 85.0 to 10.0 %." in found
    alone = answers(board({"mlp": (0.64, (0.64, 0.64), 0.64)}, battery=True), "full").winner
    assert alone.startswith("mlp keeps 64.0 %")


def test_a_leader_is_not_told_twice():
    scores = {"mlp": (0.64, (0.64, 0.64), 0.64), "mine": (0.85, (0.7, 0.7), 0.3), "other": (0.85, (0.6, 0.6), 0.2)}
    assert answers(board(scores, battery=True), "full").winner.endswith(" and 30.0 % in the worst case.")


def test_a_defense_alone_is_not_sure_to_be_the_first():
    for repeats in ((0.5,), (0.5, 0.5)):
        found = answers(board({"gcn": (0.85, repeats, 0.1)}, battery=True), "full")
        assert found.certainty == "Nothing is claimed: a first place needs a second one."


def test_a_leader_that_ignores_new_nodes_is_called_so():
    scores = {
        "gcn+ln+known": (0.8, (0.8,), 0.8),
        "mlp": (0.64, (0.64,), 0.64),
        "gcn+ln": (0.85, (0.7,), 0.3),
        "gcn": (0.85, (0.4,), 0.1),
    }
    found = answers(board(scores, battery=True), "full").winner
    assert found.startswith("gcn+ln+known, which ignores new nodes, leads on grb-cora with 80.0 %; gcn+ln, the best ")
    assert "the best that does not, keeps 73.0 %" in found and "30.0 % in the worst case; undefended gcn" in found


def test_white_box_attacks_are_told_where_no_worst_case_was_measured():
    made = made_board(("gcn+ln", "gcn"), ("fgsm",))
    own = made.by_defense["full"]
    found = answers(made, "full").winner
    assert f"and {100 * own['gcn+ln']['white_box'].mean:.1f} % under white-box attacks on made-up" in found
    assert found.endswith(f"to {100 * own['gcn']['white_box'].mean:.1f} %.")


def test_what_is_measured_is_said_in_plain_words():
    assert answers(made_board(), "full").measured.startswith("Accuracy: the share of test nodes that a model")
    assert "test nodes (easy)" in answers(made_board(), "easy").measured
    assert "The macro-f1 on test nodes" in answers(replace(made_board(), metric="macro-f1"), "full").measured


def test_a_baseline_that_nothing_harms_stays_and_the_leader_is_not_compared_with_itself():
    found = answers(board({"gcn": (0.85, (0.8, 0.8), 0.8), "mlp": (0.64, (0.64, 0.64), 0.64)}), "full")
    assert found.winner.endswith("on grb-cora; mlp stays at 64.0 %.")


def test_first_place_is_claimed_only_if_the_intervals_allow_it():
    apart = answers(board({"a": (0.9, (0.8, 0.81), 0), "b": (0.5, (0.4, 0.41), 0)}), "full")
    assert apart.certainty.startswith("First place is certain at 95 %") and "trained once" in apart.certainty
    close = answers(board({"a": (0.9, (0.9, 0.7), 0), "b": (0.9, (0.75, 0.8), 0)}), "full")
    assert close.certainty.startswith("First place is open: the 95 % interval of b reaches it")
    single = answers(board({"a": (0.9, (0.9,), 0), "b": (0.5, (0.4,), 0)}), "full")
    assert single.certainty.startswith("First place is open: without repeats there is no interval")
    several = answers(board({"a": (0.9, (0.8, 0.81), 0), "b": (0.5, (0.4, 0.41), 0)}, victims=3), "full")
    assert "over 3 trainings" in several.certainty and "trained once" not in several.certainty


@pytest.mark.parametrize(
    ("threat", "allowed"),
    [
        (THREAT, "add up to 60 nodes with up to 20 edges each"),
        ({"kind": "modification", "edge_ratio": 0.05}, "add or drop up to 5 % of the edges"),
        ({"kind": "modification", "edges": 7, "allow": ["drop"]}, "drop up to 7 edges"),
        (
            {"kind": "modification", "edges": 7, "feature_nodes": 3},
            "7 edges and change the features of up to 3 nodes",
        ),
        (
            {"kind": "modification", "edges": 7, "feature_ratio": 0.1},
            "change the features of up to 10 % of the targets",
        ),
        ({"kind": "modification", "edges": 7, "feature_ratio": "<b>"}, "add or drop up to 7 edges."),
        ({"kind": "modification", "per_target": [1, 2]}, "add or drop up to its degree + 2 flips for every target"),
        (
            {"kind": "modification", "per_target": 3, "edge_ratio": 0.1},
            "10 % of the edges and 3 flips for every target",
        ),
    ],
)
def test_what_the_attacker_may_do(threat, allowed):
    assert allowed in answers(board({"a": (0.9, (0.8,), 0)}, threat=threat), "full").attacker


def test_equal_defenses_are_called_equal():
    assert "are equal" in answers(board({"a": (0.9, (0.8,), 0), "b": (0.9, (0.8,), 0)}), "full").margin


def test_hostile_names_make_short_sentences_without_markup():
    found = answers(made_board(HOSTILE), "full")
    for text in found.to_dict().values():
        assert len(text) < 600 and "\u202e" not in text


def test_a_board_without_ranks_claims_nothing():
    made = made_board()
    bare = replace(made, ranks={})
    assert answers(bare, "full").winner == "No defense on made-up is ranked yet."
    assert answers(bare, "full").certainty == "Nothing can be claimed."


def test_attackers_who_ask_are_no_transfers_and_have_a_column_of_their_own():
    threat = {"kind": "modification", "edge_ratio": 0.05, "queries": 1000, "answers": "labels"}
    common = {"defense": "gcn", "difficulty": "full", "repeat": 0, "victim": 0, "changed": 0.0}
    rows = [
        Run("none", score=0.9, knowledge="none", **common),
        Run("random-search", score=0.8, knowledge="transfer", metadata={"threat": threat}, **common),
        Run("random-search", score=0.6, knowledge="query", metadata={"threat": threat}, **common),
    ]
    made = board_from_runs(rows, dataset="synth-tiny", scenario="modification", difficulties=["full"])
    scores = {cell.attack: (cell.knowledge, cell.score.mean) for cell in made.cells}
    assert scores["random-search"] == ("transfer", 0.8)
    assert scores["random-search (queries)"] == ("query", 0.6)
    said = answers(made, "full")
    assert "under attacks by transfer and queries" in said.winner
    assert said.attacker.endswith("; who may ask the model does so at most 1,000 times and hears labels.")


def test_what_the_attacker_may_do_is_told_where_no_limit_was_written_down():
    bare = answers(board({"gcn": (0.9, (0.8,), 0)}, threat=None), "full").attacker
    assert (
        bare
        == "The attacker may, after the training, add nodes with edges and features; how many is not recorded here."
    )
    swept = replace(board({"gcn": (0.9, (0.8,), 0)}, threat=None), scenario="modification", limit=("edge_ratio", 0.05))
    assert "change edges or features; the limit of this board is edge ratio 0.05" in answers(swept, "full").attacker
    assert "there is no attacker" in answers(replace(swept, scenario="corruption"), "full").attacker


def test_who_knows_the_model_is_told_where_attackers_differ():
    both = answers(board({"gcn": (0.9, (0.8,), 0.1)}, battery=True), "full").attacker
    assert both.endswith("In the worst case it knows the model; transferred attacks do not.")
    assert answers(made_board(), "full").attacker.endswith(
        "White-box attacks know the model; transferred attacks do not."
    )
    assert "know" not in answers(made_board(white_box=()), "full").attacker


def test_a_board_without_any_attack_makes_no_claim_about_attacks():
    rows = [Run("none", name, "full", 0, 0, score, 0.0, "none") for name, score in (("gcn", 0.8), ("mlp", 0.6))]
    clean = board_from_runs(rows, dataset="d", scenario="injection", difficulties=["full"])
    assert "keeps  " not in answers(clean, "full").winner


def test_the_baseline_of_the_headline_can_be_asked_for():
    scores = {"mlp": (0.6, (0.6,), 0.6), "gcn+ln": (0.9, (0.8,), 0.3), "gcn": (0.9, (0.5,), 0.1)}
    assert baseline(board(scores, battery=True), "full") == "gcn"
    assert baseline(board({"mine": (0.9, (0.8,), 0.3)}), "full") is None


def test_limits_that_nobody_foresaw_are_told_by_their_name():
    assert (
        limits_in_words({"kind": "injection", "much_more": {"a": [1, 2]}, "nodes": 3}) == "3 nodes, much more a 1 or 2"
    )
