from __future__ import annotations

import json

import numpy as np
import pytest

from grb import taxonomy
from grb.errors import DataError
from grb.taxonomy import Analysis, Profiles, analyse, analyse_published, from_auroc, from_runs, published


@pytest.fixture(scope="module", params=taxonomy.PUBLISHED)
def result(request):
    return analyse_published(published(request.param), draws=49)


def test_published_groups_get_the_papers_names(result):
    reference = published("inductive" if len(result.profiles.datasets) == 24 else "transductive")
    assert result.agreement == 1.0
    assert result.groups == reference.groups


def test_the_report_says_that_the_published_groups_are_fragile(result):
    assert result.stability.verdict.startswith("fragile: lowest agreement 0.1")
    assert result.stability.against == "known groups"
    assert "single" in result.stability.agreement[3]
    assert all(0 <= share <= 1 for share in result.stability.kept.values())
    assert result.stability.bootstrap is None and result.spread is None
    assert any("the runs behind them are not known" in note for note in result.notes)


def test_dict_is_json_and_holds_what_the_docstring_promises(result):
    found = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    promised = [
        line.split()[0]
        for line in Analysis.to_dict.__doc__.splitlines()
        if line.startswith(12 * " ") and line[12:13].isalpha()
    ]
    assert set(found) == {name.strip(",") for name in promised if name != "draws,"} | {"draws", "seed"}
    d, p = len(found["datasets"]), len(found["perturbations"])
    assert np.shape(found["log2_ratio"]) == (d, p)
    assert np.shape(found["tree"]["linkage"]) == (d - 1, 4)
    assert sorted(sum(found["groups"]["members"].values(), [])) == sorted(found["datasets"])
    assert len(found["pca"]["loadings"]) == p and len(found["pca"]["scores"]) == d
    assert found["known"]["agreement"] == 1.0
    assert set(found["stability"]["permutation"]) == {"distance", "within"}
    assert found["representatives"]["distance"] < found["recommended"]["distance"]
    assert found["interval"] is None


def test_equal_seeds_give_equal_results_and_others_other_shuffles():
    profiles = published("transductive").profiles
    first, second, third = (analyse(profiles, draws=9, seed=seed).to_dict() for seed in (1, 1, 2))
    assert first == second
    assert first["stability"]["permutation"] != third["stability"]["permutation"]


def runs(deviation=0.01):
    generator = np.random.default_rng(0)
    factors = {"NoEdges": (0.6, 1.0), "RandFtrs": (1.0, 0.7), "Frag-k1": (0.8, 0.97)}
    rows = []
    for place in range(8):
        for name in ("-", *factors):
            mean = 0.85 * (1 if name == "-" else factors[name][place % 2])
            rows += [
                (f"d{place}", name, seed, float(mean + deviation * generator.standard_normal())) for seed in range(4)
            ]
    return from_runs(rows, model="gcn")


def test_runs_give_intervals_a_seed_study_and_a_bootstrap():
    found = analyse(runs(), groups=2, draws=40)
    assert found.groups["d0"] == found.groups["d2"] != found.groups["d1"]
    plain = found.to_dict()
    low, high = np.array(plain["interval"]["low"]), np.array(plain["interval"]["high"])
    assert ((low <= found.profiles.values) & (found.profiles.values <= high)).mean() > 0.9
    assert {row["perturbation"] for row in plain["seeds"]} == {"Frag-k1"} and len(plain["seeds"]) == 8
    assert plain["stability"]["bootstrap"]["mean"] == 1.0
    assert found.stability.verdict.startswith("stable")
    assert plain["model"] == "gcn"


def test_without_known_groups_stability_is_about_the_cut():
    found = analyse(published("transductive").profiles, groups=3, draws=9)
    assert found.known is None and found.agreement is None
    assert found.stability.against == "these groups"
    assert found.stability.agreement[3]["ward"] == 1.0


def test_missing_cells_follow_the_rule_and_are_told():
    profiles = published("inductive").profiles
    holed = profiles.values.copy()
    holed[3, 8] = np.nan
    given = Profiles(profiles.datasets, profiles.perturbations, holed, original=profiles.original)
    found = analyse(given, draws=9)
    assert "FullyConn" not in found.profiles.perturbations
    assert found.given.missing == [("D&D", "FullyConn")]
    assert "left out, because a cell is missing: FullyConn" in found.notes
    plain = found.to_dict()
    assert plain["log2_ratio"][3][8] is None and plain["missing"] == [["D&D", "FullyConn"]]
    assert "D&D" not in analyse(given, missing="drop-datasets", draws=9).profiles.datasets
    assert analyse(given, missing="mean", draws=9).profiles.values.shape == (24, 13)


def test_one_dataset_has_a_profile_and_nothing_else():
    found = analyse(from_auroc(["a"], ["x", "y"], [0.8], [[0.4, 0.8]]), draws=9)
    plain = found.to_dict()
    assert plain["log2_ratio"] == [[-1.0, 0.0]]
    assert plain["tree"] is plain["pca"] is plain["stability"] is plain["representatives"] is None
    assert plain["groups"]["members"] == {}
    assert any("a tree needs at least two datasets, but there is only 'a'" in note for note in found.notes)


def test_one_perturbation_is_clustered_on_a_line():
    found = analyse(from_auroc(list("abcd"), ["x"], [0.9] * 4, [[0.9], [0.88], [0.5], [0.51]]), groups=2, draws=9)
    assert found.groups["a"] == found.groups["b"] != found.groups["c"] == found.groups["d"]
    assert found.components.explained.tolist() == [1.0]
    assert found.perturbations is None and any("two perturbations" in note for note in found.notes)
    assert not any(name.startswith("without") for name in found.stability.agreement[2])


def test_equal_profiles_are_one_group_and_the_notes_say_so():
    found = analyse(from_auroc(list("abcd"), ["x", "y"], [0.9] * 4, [[0.8, 0.7]] * 4), draws=9)
    assert set(found.groups.values()) == {"1"}
    assert any("cannot be cut into 3 groups" in note for note in found.notes)
    assert found.components is None and found.stability is None


def test_two_datasets():
    found = analyse(from_auroc(["a", "b"], ["x", "y"], [0.9, 0.8], [[0.8, 0.7], [0.5, 0.8]]), draws=9)
    assert found.tree is not None and len(found.components.explained) == 1
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"groups": 26}, "26 groups were asked for, but 1 to 25 are possible"),
        ({"groups": 0}, "0 groups were asked for"),
        ({"draws": 1}, "1 draws were asked for, but at least 2"),
        ({"known": {"Actor": "T-1"}}, "no group is given for dataset 'Am-Comp' and 23 more"),
        ({"groups": 4, "joins": [(1, 3)]}, "groups 1 and 3 are not siblings"),
        ({"count": 2}, "2 representatives of 3 groups"),
    ],
)
def test_impossible_wishes(options, sentence):
    with pytest.raises(DataError, match=sentence):
        analyse(published("transductive").profiles, **{"draws": 9, **options})
