"""Submissions: what keeps the rules is scored, what breaks them is refused before a byte of it is believed."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import grb
from grb.attack.build import submission_threats
from grb.catalogue import entries, resolve
from grb.dataset import Dataset
from grb.errors import BudgetError, DataError, GRBError
from grb.graph import GraphEdit
from grb.pipeline import Limits, Store, Study, boards, plan_study, run
from grb.pipeline.card import Card, parse_card, read_card
from grb.pipeline.gate import WIDTHS
from grb.pipeline.plan import join_submission
from grb.pipeline.rerun import rerun
from grb.pipeline.submission import Checked, add, as_version, check, record_of, repaired, submissions
from grb.threat import Injection
from grb.trainer.checkpoint import save_model
from helpers import needs_grb_cora
from pipeline.hostile import CARDS, arrays_of, hostile_edits, hostile_weights, npz_bytes
from pipeline.parts import board_of, copied, planned, recipe

STRESS = os.environ.get("HYPOTHESIS_PROFILE") == "stress"
EDITS = 10_000 if STRESS else 200
CARD = Card("mine", "attack", "synth-tiny", authors=("A", "B"), link="https://example.org/x", about="A try.")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def threat(dataset: Dataset) -> Injection:
    return Injection.preset("synth-tiny", "full")


@pytest.fixture(scope="module")
def weights(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = grb.train("gcn", dataset, epochs=3, seed=5)
    return save_model(model, tmp_path_factory.mktemp("weights") / "gcn.safetensors")


@pytest.fixture
def edit(dataset: Dataset, tmp_path: Path) -> Path:
    result = grb.run_attack("fgsm", grb.train("gcn", dataset, epochs=3), dataset, iterations=3)
    return result.edit.save(tmp_path / "edit.npz")


def corpus(dataset: Dataset, threat: Injection, weights: Path, canary: Path) -> list[tuple[str, str, bytes, str]]:
    return [
        *(("attack", *each) for each in hostile_edits(dataset, threat, canary)),
        *(("defense", *each) for each in hostile_weights(weights, canary)),
    ]


def test_hostile_files_are_refused_in_one_sentence_and_run_nothing(
    dataset: Dataset,
    threat: Injection,
    weights: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    canary = tmp_path / "canary"
    listed = corpus(dataset, threat, weights, canary)
    assert len(listed) >= 80
    before = _peak(new=True)
    wrong = []
    for kind, name, data, word in listed:
        path = tmp_path / f"file.{'npz' if kind == 'attack' else 'safetensors'}"
        path.write_bytes(data)
        sentence = refusal(path, replace(CARD, kind=kind), dataset, threat)
        if word not in sentence or not sentence.isprintable() or not 0 < len(sentence) < 600:
            wrong.append((kind, name, sentence))
    assert wrong == [] and not canary.exists()
    more = _peak() - before
    record_property("counted", f"{len(listed)} files refused, {more:.0f} MB more at the peak")
    assert more < 600  # megabytes, although bombs of 512 and headers of 8,000 were among them


def refusal(path: Path, card: Card, dataset: Dataset, threat: Injection) -> str:
    """The sentence that refuses a file; empty if it is accepted."""
    try:
        check(path, card, dataset, threat)
    except GRBError as error:
        return str(error)
    return ""


def _peak(*, new: bool = False) -> float:
    """Largest memory of this process so far, or from now on; 0 where the system does not tell."""
    try:
        if new:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0.0
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@pytest.mark.parametrize("name", ["appnp", "tagcn", "gat", "grand", "gcn"])
def test_what_a_model_repeats_is_limited_whatever_the_size_of_its_file(
    name: str, dataset: Dataset, threat: Injection, tmp_path: Path
) -> None:
    key = {"gat": "heads", "grand": "draws", "gcn": "hidden_features"}.get(name, "k")
    sizes: dict[str, Any] = {"in_features": dataset.graph.num_features, "out_features": dataset.num_classes}
    for count in (100, 101):
        params = {"hidden_features": [1], **({key: [1] * count} if name == "gcn" else {key: count})}
        path = save_model(resolve("model", name)(**sizes, **params), tmp_path / "weights.safetensors")
        sentence = refusal(path, replace(CARD, kind="defense"), dataset, threat)
        assert ("asks for" in sentence and key in sentence and "at most 100" in sentence) == (count > 100)


def test_every_number_of_a_model_is_a_size_or_a_count() -> None:
    """A new parameter that is neither would be limited as a count: then say here what it is."""
    counts = {"n_layers", "heads", "k", "draws", "inner_steps", "candidates"}
    for name in entries("model"):
        for param in inspect.signature(resolve("model", name)).parameters.values():
            number = isinstance(param.default, int | tuple) and not isinstance(param.default, bool)
            assert not number or param.name in counts | set(WIDTHS), (name, param.name)


def test_a_model_is_run_in_a_worker_with_limits(
    dataset: Dataset, threat: Injection, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = replace(CARD, kind="defense")
    here = check(weights, card, dataset, threat)

    def forbidden(*_: object) -> None:
        raise AssertionError("run in this process")

    monkeypatch.setattr("grb.pipeline.submission._tried", forbidden)
    there = check(weights, card, dataset, threat, limits=Limits(timeout=60, memory=4000))
    assert there.result == here.result and there.job.key == here.job.key
    with pytest.raises(DataError, match=r"gcn\.safetensors took more than 0\.001 seconds"):
        check(weights, card, dataset, threat, limits=Limits(timeout=0.001))


@pytest.mark.parametrize("name", CARDS)
def test_hostile_cards_are_refused_in_one_sentence(
    name: str, dataset: Dataset, threat: Injection, edit: Path, tmp_path: Path
) -> None:
    text, word = CARDS[name]
    lines = [line for line in ("name: mine", "kind: attack", "dataset: synth-tiny") if line.split(":")[0] not in text]
    path = tmp_path / "card.yaml"
    path.write_text("\n".join([*lines, text]), encoding="utf-8")
    with pytest.raises(GRBError) as refused:
        check(edit, read_card(path), dataset, threat)
    assert word in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 600


def test_cards_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        read_card(tmp_path / "none.yaml")
    (tmp_path / "long.yaml").write_text("#" * 100_000)
    with pytest.raises(DataError, match="cards are short"):
        read_card(tmp_path / "long.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xff")
    with pytest.raises(DataError, match="not UTF-8"):
        read_card(tmp_path / "latin.yaml")
    for text, word in (("kind: attack", "has no name"), ("name: a\nkind: attack", "has no dataset")):
        with pytest.raises(DataError, match=word):
            parse_card(text)


@settings(max_examples=EDITS)
@given(st.data())
def test_no_edit_beyond_the_limits_is_accepted(
    dataset: Dataset, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Random injections around the limits; the verdict is that of plain counting."""
    limits = Injection(nodes=3, edges_per_node=2, feature_range=(-1.0, 1.0))
    n, d = dataset.graph.n, dataset.graph.num_features
    new = data.draw(st.integers(0, 5))
    ends = st.tuples(st.integers(0, n + new - 1), st.integers(n, n + new - 1)) if new else st.nothing()
    pairs = data.draw(st.sets(ends.filter(lambda pair: pair[0] < pair[1]), max_size=9)) if new else set()
    value = data.draw(st.sampled_from([0.0, 1.0, 1.0000001, 1.00001, -1.1]))
    degrees = np.bincount([end - n for pair in pairs for end in pair if end >= n], minlength=new)
    allowed = new <= 3 and (not new or degrees.max() <= 2) and (not new or abs(value) <= 1)
    array = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    path = tmp_path_factory.getbasetemp() / "edit.npz"
    path.write_bytes(npz_bytes(arrays_of(dataset, add=array, new_x=np.full((new, d), value, dtype=np.float32))))
    try:
        check(path, CARD, dataset, limits)
    except BudgetError:
        assert not allowed
    else:
        assert allowed


def test_a_valid_edit_is_counted_and_what_is_odd_is_noted(
    dataset: Dataset, threat: Injection, edit: Path, tmp_path: Path
) -> None:
    checked = check(edit, CARD, dataset, threat)
    assert checked.result["budget"]["nodes"] == threat.nodes and checked.notes == ()
    n, d = dataset.graph.n, dataset.graph.num_features
    train = int(dataset.index_train[0])
    odd = {
        "it changes nothing": GraphEdit(n),
        "1 of 1 injected nodes have no edge": GraphEdit(n, new_x=torch.zeros(1, d)),
        "no injected node is joined with a target": GraphEdit(
            n, add=torch.tensor([[train], [n]]), new_x=torch.zeros(1, d)
        ),
    }
    for note, made in odd.items():
        assert check(made.save(tmp_path / "odd.npz"), CARD, dataset, threat).notes == (note,)
    path = tmp_path / "double.npz"
    path.write_bytes(npz_bytes(arrays_of(dataset, new_x=np.zeros((1, d)))))
    assert check(path, CARD, dataset, threat).notes == ("new_x is float64 and is read as float32",)


def test_mending_says_what_it_did(dataset: Dataset, threat: Injection, tmp_path: Path) -> None:
    n, d = dataset.graph.n, dataset.graph.num_features
    target = int(dataset.test_ids("full")[0])
    rows = np.zeros((1, d))
    rows[0, 0] = 1e-40
    path, fixed = tmp_path / "edit.npz", tmp_path / "fixed.npz"
    path.write_bytes(npz_bytes(arrays_of(dataset, add=np.array([[target, n, n], [n, target, n]]), new_x=rows)))
    with pytest.raises(DataError):
        check(path, CARD, dataset, threat)
    assert repaired(path, fixed) == [
        "1 loops left out of add",
        "1 edges that add names twice left out",
        "1 denormals of new_x set to zero",
        "new_x stored as float32",
    ]
    assert check(fixed, CARD, dataset, threat).result["budget"]["edges"] == 1


def entered(store: Store, study: Study, checked: Checked) -> tuple[Study, int]:
    whole, part = join_submission(store, record_of(checked), recipe())
    add(store, checked)
    outcome = run(part.jobs.values(), store, limits=Limits(workers=0))
    assert outcome.complete
    return whole, outcome.done


def test_an_attack_joins_the_board_and_can_only_lower_scores(
    dataset: Dataset, threat: Injection, study: Study, store: Store, edit: Path, tmp_path: Path
) -> None:
    own = copied(store, tmp_path / "store")
    before = board_of(study, own)
    card = replace(CARD, reported={"gcn": 0.99}, unreliable="made with old code")
    whole, done = entered(own, study, check(edit, card, dataset, threat))
    assert done == 2  # one score for each of gcn and mlp
    board = board_of(whole, own)
    assert "mine (submitted)" in board.attacks and board.cell("mine (submitted)", "gcn", "full") is not None
    for mode in board.difficulties:
        assert board.ranks[mode] == before.ranks[mode]
        for defense, values in board.by_defense[mode].items():
            for name, value in values.items():
                old = before.by_defense[mode][defense][name]
                assert value.mean <= old.mean if name.startswith("worst") else value == old
    told = " ".join(board.flags)
    assert "is unreliable: made with old code" in told and "claims 99.0 % for gcn (full), but" in told
    assert board.meta["cards"]["mine (submitted)"]["authors"] == "A, B"
    own.write(whole.record({}))
    (found,) = boards(own, ["tiny"])  # whoever looks at the store later sees it too
    assert "mine (submitted)" in found.attacks
    assert own.verify() == [] and [record.key for record in submissions(own)] == [
        check(edit, card, dataset, threat).job.key
    ]


def test_an_attack_with_the_range_of_the_data_is_legal_and_stays_off_boards_of_a_narrower_range(
    dataset: Dataset, store: Store, edit: Path, tmp_path: Path
) -> None:
    allowed = submission_threats("injection", dataset, "full")
    assert [each.feature_range for each in allowed] == [(-0.9, 0.9), dataset.feature_range]  # type: ignore[union-attr]
    within = check(edit, CARD, dataset, allowed)
    assert within.job.extra["threat"]["feature_range"] == [-0.9, 0.9]
    rows = np.full((1, dataset.graph.num_features), dataset.feature_range[0], dtype=np.float32)
    wide = tmp_path / "wide.npz"
    wide.write_bytes(npz_bytes(arrays_of(dataset, add=np.array([[0], [dataset.graph.n]]), new_x=rows)))
    checked = check(wide, CARD, dataset, allowed)
    assert checked.job.extra["threat"]["feature_range"] == list(dataset.feature_range)
    with pytest.raises(DataError, match="difficulty or range of features is another"):
        join_submission(store, record_of(checked), recipe())
    study = plan_study(recipe(threat={"feature_range": "data"}), submitted=[record_of(checked), record_of(within)])
    assert checked.job.key in study.jobs
    assert within.job.key not in study.jobs  # the table's upper end, 0.9, is above that of this data
    wide.write_bytes(npz_bytes(arrays_of(dataset, add=np.array([[0], [dataset.graph.n]]), new_x=rows * 1.001)))
    with pytest.raises(BudgetError, match="but the threat model allows -0.911936"):
        check(wide, CARD, dataset, allowed)


def test_a_defense_meets_every_attack_and_is_attacked_itself(
    dataset: Dataset, threat: Injection, study: Study, store: Store, weights: Path, tmp_path: Path
) -> None:
    own = copied(store, tmp_path / "store")
    card = replace(CARD, kind="defense")
    checked = check(weights, card, dataset, threat)
    whole, _ = entered(own, study, checked)
    board = board_of(whole, own)
    label = card.label
    assert label in board.defenses and "weighted" in board.by_defense["full"][label]
    for mode in board.difficulties:
        for attack in board.attacks:
            assert board.cell(attack, label, mode) is not None
        assert board.cell("fgsm", label, mode, white_box=True) is not None
    model = grb.load_model(weights)
    clean = board.cell("none", label, "full")
    assert clean is not None and clean.score.mean == pytest.approx(grb.evaluate(model, dataset)["full"])
    key = next(
        place.score
        for place in planned(whole)
        if whole.jobs[place.score].inputs["model"] == checked.job.key and place.attack == "fgsm"
    )
    assert all(comparison.equal for comparison in rerun(own, [key]))


def test_a_name_is_used_once_and_a_board_must_fit(
    dataset: Dataset, threat: Injection, study: Study, store: Store, edit: Path, tmp_path: Path
) -> None:
    own = copied(store, tmp_path / "store")
    entered(own, study, check(edit, CARD, dataset, threat))
    other = GraphEdit(dataset.graph.n).save(tmp_path / "other.npz")
    for name in ("Mine", "MINE", "m ine"):
        with pytest.raises(DataError, match="another attack called 'mine', which differs only by case or spaces"):
            add(own, check(other, replace(CARD, name=name), dataset, threat))
    with pytest.raises(DataError, match="another attack called 'mine' by other authors"):
        add(own, check(other, replace(CARD, authors=("C",)), dataset, threat))
    again, part = join_submission(own, record_of(check(edit, CARD, dataset, threat)), recipe())
    assert len(again.targets) == len(set(again.targets)) and len(part.targets) == 2
    add(own, check(edit, CARD, dataset, threat))  # the same again is no harm
    with pytest.raises(DataError, match=r"U\+202E"):
        add(own, check(edit, replace(CARD, name="new", about="\u202e"), dataset, threat))
    hard = check(other, replace(CARD, mode="hard"), dataset, Injection.preset("synth-tiny", "hard"))
    with pytest.raises(DataError, match="does not fit recipe 'tiny'"):
        join_submission(own, record_of(hard), recipe())
    with pytest.raises(DataError, match="run it first"):
        join_submission(Store(tmp_path / "none"), record_of(check(edit, CARD, dataset, threat)), recipe())


def test_a_new_file_under_a_known_name_is_its_next_version(
    dataset: Dataset, threat: Injection, study: Study, store: Store, edit: Path, tmp_path: Path
) -> None:
    """Both stay in the store; the board shows the newest, and says so."""
    own = copied(store, tmp_path / "store")
    whole, _ = entered(own, study, check(edit, CARD, dataset, threat))
    own.write(whole.record({}))
    other = GraphEdit(dataset.graph.n).save(tmp_path / "other.npz")
    second = as_version(own, check(other, CARD, dataset, threat))
    assert second.job.version == 2 and as_version(own, second).job == second.job
    whole, _ = entered(own, study, second)
    own.write(whole.record({}))
    assert as_version(own, check(other, CARD, dataset, threat)).job == second.job  # the same again is no version
    assert as_version(own, check(edit, CARD, dataset, threat)).job.version == 1
    assert [record.job.version for record in submissions(own)] == [1, 2] and own.verify() == []
    (board,) = boards(own, ["tiny"])
    assert "mine (submitted, version 2)" in board.attacks and "mine (submitted)" not in board.attacks
    assert any("mine (submitted, version 2) is shown as the newest of its versions" in flag for flag in board.flags)
    assert "mine (submitted, version 2)" in board.meta["cards"]
    third = as_version(own, check(other, replace(CARD, about="Something else."), dataset, threat))
    assert third.job.version == 3  # another card is another version


@needs_grb_cora
def test_checking_on_grb_cora_is_fast(tmp_path: Path) -> None:
    """Ten seconds are generous: `python benchmarks/submission.py` measures it."""
    dataset = grb.load_dataset("grb-cora")
    edit = grb.run_attack("rnd", None, dataset).edit.save(tmp_path / "edit.npz")
    card: Any = replace(CARD, dataset="grb-cora")
    start = time.process_time()
    assert check(edit, card, dataset, Injection.preset("grb-cora", "full")).result["budget"]["nodes"] == 60
    assert time.process_time() - start < 10
