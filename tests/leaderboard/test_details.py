"""Neighbourhoods and bands of degrees, from a store of true results and from files of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grb import serial
from grb.dataset import load_dataset
from grb.errors import DataError
from grb.evaluator.measurement import Measurement
from grb.graph import GraphEdit
from grb.leaderboard.data import page_data
from grb.leaderboard.details import NAME, AttackedNeighbourhood, DegreeBands, Details, details_of, with_details
from grb.pipeline import Store, boards
from made_boards import made_board, tiny_store

NEAR = AttackedNeighbourhood(
    3, ((0.0, 0.5, 1, False), (1.0, 0.5, -1, True)), (), ((0, 1),), (), 2, {"gcn": (True, False)}
)
BANDS = DegreeBands(("1", "2-5"), (4, 6), {"gcn": (0.5, 1.0)}, {"gcn": (0.25, 0.5)})


@pytest.fixture(scope="module")
def store():
    return Store(tiny_store())


@pytest.fixture(scope="module")
def detailed(store):
    (board,) = boards(store)
    return with_details(board, store)


def test_every_attacked_cell_has_a_neighbourhood_of_its_edit(store, detailed):
    found, graph = details_of(detailed), load_dataset("synth-tiny").graph
    keys = {cell.metadata[0]["attack"] for cell in detailed.cells if cell.attack != "none"}
    assert set(found.neighbourhoods) == keys and keys
    for key, near in found.neighbourhoods.items():
        edit = GraphEdit.load(store.find(store.read(key), "edit"))
        injected = [node for node in near.nodes if node[3]]
        assert near.nodes[0][2] == int(graph.y[near.target]) and not near.nodes[0][3]
        assert len(injected) <= edit.n_after - graph.n
        touched = {int(end) for end in edit.add.flatten()}
        assert near.target in touched, "an edit is shown where it did something"


def test_what_a_defense_made_of_the_target_is_what_its_record_says(store, detailed):
    found, dataset = details_of(detailed), load_dataset("synth-tiny")
    cell = detailed.cell("pgd", "gcn", "full", white_box=True)
    near = found.neighbourhoods[cell.metadata[0]["attack"]]
    row = dataset.test_ids("full").tolist().index(near.target)
    scores = [detailed.cell("none", "gcn", "full").metadata[0]["score"], cell.metadata[0]["score"]]
    bits = [Measurement.from_dict(store.read(key).measurement).outcomes["full"].bits()[row] for key in scores]
    assert near.right == {"gcn": tuple(map(bool, bits))}


def test_bands_weighed_by_their_targets_give_the_accuracy_of_the_board(detailed):
    for difficulty, bands in details_of(detailed).degrees.items():
        for defense in detailed.defenses:
            mean = np.average(bands.clean[defense], weights=bands.counts)
            assert mean == pytest.approx(detailed.cell("none", defense, difficulty).score.mean, abs=1e-4)


def test_the_page_has_them_by_number_and_cut_keys(detailed):
    data = page_data(detailed)
    edits = {each["attack"] for each in data["edits"] if "attack" in each}
    assert edits == set(data["neighbourhoods"]) and {len(edit) for edit in edits} == {16}
    assert all(near["right"] for near in data["neighbourhoods"].values())
    assert len(data["degrees"]) == len(detailed.difficulties) and data["degrees"][0]["rows"][0]["clean"]
    assert NAME not in data["meta"]


def test_a_board_that_travels_keeps_its_details(detailed):
    again = type(detailed).from_dict(detailed.to_dict())
    assert details_of(again) == details_of(detailed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda near, bands: (replace(near, added=((0, 2),)), bands), "does not have"),
        (lambda near, bands: (replace(near, nodes=()), bands), "not ours"),
        (lambda near, bands: (replace(near, nodes=near.nodes * 40), bands), "not ours"),
        (lambda near, bands: (replace(near, nodes=((float("nan"), 0.0, 0, False),)), bands), "finite"),
        (lambda near, bands: (replace(near, nodes=((7.0, 0.0, 0, False),)), bands), "from 0 to 1"),
        (lambda near, bands: (near, replace(bands, counts=(1,))), "do not fit"),
        (lambda near, bands: (near, replace(bands, clean={"gcn": (0.5,)})), "do not fit"),
    ],
)
def test_damaged_details_of_a_file_are_refused(change, words):
    near, bands = change(NEAR, BANDS)
    held = serial.to_dict(Details({"ab": near}, {"full": bands}))
    board = made_board(difficulties=("full",))
    with pytest.raises(DataError, match=words):
        page_data(replace(board, meta={**board.meta, NAME: held}))


def test_code_and_other_datasets_are_not_loaded(store, detailed):
    for meta, words in (
        ({"reference": "os:getcwd"}, "not in the catalogue"),
        ({"reference": "../../data.npz"}, "not in the catalogue"),
        ({"fingerprint": "0" * 64}, "not the dataset that was measured"),
        ({"task": "graph"}, "graphs to classify"),
    ):
        with pytest.raises(DataError, match=words):
            with_details(replace(detailed, meta={**detailed.meta, **meta}), store)
