"""The committed records of the modification attacks say what the documentation says."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

import pytest

from grb.metric import paired_difference

RESULTS = Path(__file__).parents[2] / "docs" / "results"
SEEDS = 10
EDGES = {"grb-cora": 257, "planetoid-cora": 263, "planetoid-pubmed": 2216}
CLAIMS = [
    *[("grb-cora", strong, "dice") for strong in ("pr-bcd", "gr-bcd", "fga")],
    *[(dataset, "pr-bcd", "dice") for dataset in ("planetoid-cora", "planetoid-pubmed")],
    *[(dataset, "dice", "rnd-edges") for dataset in EDGES],
]


@pytest.fixture(scope="module")
def left() -> dict[tuple[str, str], dict[int, float]]:
    """Accuracies after the attacks in per cent, by dataset and attack, then by seed."""
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for line in (RESULTS / "modification-strength.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert record["edges"] == EDGES[record["dataset"]]  # 5 % of all, and all of it used
        found[record["dataset"], record["attack"]][record["seed"]] = record["attacked"]
    return found


@pytest.mark.parametrize(("dataset", "strong", "weak"), CLAIMS)
def test_one_attack_is_stronger_than_the_other(left, dataset: str, strong: str, weak: str) -> None:
    """White-box, full test set, paired over the same ten trainings: the 95 % interval is above zero."""
    sides = [left[dataset, name] for name in (weak, strong)]
    assert set(sides[0]) == set(sides[1]) == set(range(SEEDS))
    assert paired_difference(*([side[seed] for seed in range(SEEDS)] for side in sides)).low > 0


@pytest.fixture(scope="module")
def board() -> dict[tuple[str, str, str], list[float]]:
    """Accuracies of the transfers in per cent by attack, defense and mode."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with (RESULTS / "leaderboard-grb-cora-modification.csv").open() as stream:
        for row in csv.DictReader(stream):
            found[row["attack"], row["defense"], row["difficulty"]].append(100 * float(row["accuracy"]))
    return found


def test_the_leaderboard_has_every_attack_on_every_defense(board) -> None:
    attacks, defenses, modes = ({key[place] for key in board} for place in range(3))
    assert len(attacks) == 10 and len(defenses) == 12 and len(modes) == 4
    assert len({len(board[key]) for key in board if key[0] != "none"}) == 1
    assert set(board) == {(a, d, m) for a in attacks for d in defenses for m in modes}


def test_no_change_of_edges_moves_a_model_without_edges(board) -> None:
    for attack, defense, mode in board:
        if defense == "mlp" and not attack.startswith("pgd-features"):
            assert set(board[attack, defense, mode]) == set(board["none", "mlp", mode])


def test_gradients_of_a_surrogate_transfer_to_a_gcn_better_than_chance(board) -> None:
    for attack in ("pr-bcd", "gr-bcd", "fga(refresh=8)"):
        assert mean(board[attack, "gcn", "full"]) < mean(board["rnd-edges", "gcn", "full"]) - 2


@pytest.mark.parametrize("attack", ["pr-bcd", "fga(refresh=16)", "dice"])
@pytest.mark.parametrize("defense", ["gcn", "gcn+ln", "gat+at"])
def test_more_edges_do_more_harm(attack: str, defense: str) -> None:
    """Figures 8 and 9, left: accuracy falls with the share of changed edges."""
    found: dict[float, list[float]] = defaultdict(list)
    with (RESULTS / "modification-budget-grb-cora.csv").open() as file:
        for record in csv.DictReader(file):
            if (record["attack"], record["defense"]) == (attack, defense):
                assert record["limit"] == "edge_ratio"
                found[float(record["limit_value"])].append(float(record["accuracy"]))
    left = [mean(found[share]) for share in sorted(found)]
    assert len(left) == 6 and all(len(values) == 3 for values in found.values())
    assert left == sorted(left, reverse=True)
