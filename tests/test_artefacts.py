"""Names of what is published, and which of several they mean."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grb import artefacts
from grb.artefacts import Bundle, PublishedEdit, PublishedModel, find_edit, find_model, published
from grb.errors import DataError, GRBError, UnknownName
from grb.names import Label, PublishedName

HASH = "ab" * 32


def model(name: str, seed: int = 0) -> PublishedModel:
    return PublishedModel(name, seed, HASH, HASH, 1, 1, {"full": 0.8}, {"full": 0.5})


def edit(name: str, knowledge: Any = "white-box", source: str = "gcn", **changes: Any) -> PublishedEdit:
    training = None if knowledge == "none" else changes.pop("training", 0)
    made = PublishedEdit(name, 0, HASH, HASH, 1, "full", knowledge, "predicted", source if training is not None else "")
    return replace(made, training=training, **changes)


MODELS = (
    model("r-gcn+at"),
    model("r-gcn+at", 1),
    model("gat+at(epochs=130)"),
    model("gcn"),
    model("gcn(epochs=5, hidden_features=[64, 64])"),
    model("gin(k=1)"),
    model("gin(k=2)"),
    model("tagcn", 1000),
)
EDITS = (
    edit("pgd", "transfer", training=1000),
    edit("pgd", "transfer", training=1001, seed=1),
    edit("pgd"),
    edit("pgd", training=1),
    edit("pgd", source="gat+at(epochs=130)"),
    edit("pgd", difficulty="easy"),
    edit("rnd", "none"),
    edit("speit(wiring=layers)", "transfer", training=1000),
    edit("auto"),
    edit("auto", source="gat+at(epochs=130)"),
    edit("auto", labels="true"),
    edit("auto", labels="true", training=1),
)
BUNDLE = Bundle("grb-cora", "A board", "mine", "grb-cora", HASH, 1, HASH, 1, ("easy", "full"), MODELS, EDITS)


@pytest.fixture(autouse=True)
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "grb-cora.json").write_text(json.dumps(BUNDLE.to_dict()))
    monkeypatch.setattr(artefacts, "folder", lambda: tmp_path)
    return tmp_path


def chosen_model(text: str, **choices: Any) -> tuple[str, int]:
    name = published(text)
    assert name is not None
    found = find_model(name, **choices)[1]
    return found.name, found.seed


def chosen_edit(text: str, **choices: Any) -> PublishedEdit:
    name = published(text)
    assert name is not None
    return find_edit(name, **choices)[1]


@pytest.mark.parametrize(
    ("text", "name", "seed"),
    [
        ("grb-cora/r-gcn+at", "r-gcn+at", 0),
        ("grb-cora/R-GCN+AT", "r-gcn+at", 0),
        ("grb-cora/r-gcn+at(seed=1)", "r-gcn+at", 1),
        ("grb-cora/gat+at", "gat+at(epochs=130)", 0),
        ("grb-cora/gat+at(epochs=130)", "gat+at(epochs=130)", 0),
        ("grb-cora/gat+at( epochs = 130 , seed=0 )", "gat+at(epochs=130)", 0),
        ("grb-cora/gcn", "gcn", 0),
        ("grb-cora/gcn(epochs=5)", "gcn(epochs=5, hidden_features=[64, 64])", 0),
        ("grb-cora/gcn(hidden_features=[64,64])", "gcn(epochs=5, hidden_features=[64, 64])", 0),
        ("grb-cora/tagcn(seed=1000)", "tagcn", 1000),
    ],
)
def test_a_model_is_named_as_its_board_shows_it(text: str, name: str, seed: int) -> None:
    assert chosen_model(text) == (name, seed)


def test_the_seed_may_stand_beside_the_name() -> None:
    assert chosen_model("grb-cora/r-gcn+at", seed=1) == chosen_model("grb-cora/r-gcn+at(seed=1)", seed=1)
    with pytest.raises(DataError, match="seed is 1 in the name and 0 beside it; say it once"):
        chosen_model("grb-cora/r-gcn+at(seed=1)", seed=0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grb-cora/r-gcn+ta", "no published model 'grb-cora/r-gcn.ta'. Did you mean 'grb-cora/r-gcn.at'. It has gat"),
        ("grb-corra/gcn", "no published bundle 'grb-corra'. Did you mean 'grb-cora'"),
        ("grb-cora/gin", r"'grb-cora/gin' may be gin\(k=1\) or gin\(k=2\); give one of them"),
        ("grb-cora/r-gcn+at(seed=7)", "has no training of seed 7; it has seeds 0, 1"),
        ("grb-cora/tagcn", "has no training of seed 0; it has seeds 1000"),
        ("grb-cora/r-gcn+at(seed=-1)", "seed is '-1', but a whole number of at least 0"),
        ("grb-cora/r-gcn+at(seed=" + "9" * 30 + ")", "a whole number of at least 0"),
        ("grb-cora/gat+at(epochs=7)", r"no published model 'grb-cora/gat.at\(epochs=7\)'"),
        ("grb-cora/gat+at(epochs", "brackets that do not close"),
        ("grb-cora/gat+at(epochs)", "but KEY=VALUE is needed, every key once"),
        ("grb-cora/gat+at(k=1, k=2)", "but KEY=VALUE is needed, every key once"),
        ("grb-cora/gat+at(k=(1)", "brackets that do not close"),
    ],
)
def test_every_other_name_of_a_model_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(GRBError, match=words) as refused:
        chosen_model(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "gcn.safetensors",
        "grb-cora",
        "grb-cora/",
        "/grb-cora/gcn",
        "grb-cora/gcn.safetensors",
        "grb-cora/GCN.SAFETENSORS",
        "grb-cora/a/b",
        "./grb-cora/gcn",
        "../grb-cora/gcn",
        "models/run(1",
        "grb-cora/(seed=1)",
        "grb-cora/a\\b",
        "grb-cora/a\0",
        "",
        "/",
    ],
)
def test_paths_are_no_names(text: str) -> None:
    assert published(text) is None


@pytest.mark.parametrize(
    ("text", "choices", "wanted"),
    [
        ("grb-cora/pgd", {}, EDITS[0]),  # without a victim: the transfer
        ("grb-cora/pgd", {"seed": 1}, EDITS[1]),
        ("grb-cora/pgd", {"surrogate": "gcn"}, EDITS[0]),
        ("grb-cora/pgd", {"victim": "gcn"}, EDITS[2]),
        ("grb-cora/pgd", {"victim": "GCN", "training": 1}, EDITS[3]),
        ("grb-cora/pgd(victim=gcn, training=1)", {}, EDITS[3]),
        ("grb-cora/pgd", {"victim": "gat+at"}, EDITS[4]),
        ("grb-cora/pgd(victim=gat+at(epochs=130))", {}, EDITS[4]),
        ("grb-cora/pgd", {"victim": "gcn", "difficulty": "easy"}, EDITS[5]),
        ("grb-cora/rnd", {}, EDITS[6]),
        ("grb-cora/speit", {}, EDITS[7]),
        ("grb-cora/speit(wiring=layers)", {}, EDITS[7]),
        ("grb-cora/auto", {"victim": "gcn"}, EDITS[8]),
        ("grb-cora/auto", {"victim": "gcn", "labels": "true"}, EDITS[10]),
        ("grb-cora/auto(labels=true, victim=gcn)", {"training": 1}, EDITS[11]),
    ],
)
def test_an_edit_is_chosen_by_attack_victim_labels_and_seeds(
    text: str, choices: dict[str, Any], wanted: PublishedEdit
) -> None:
    assert chosen_edit(text, **choices) == wanted


@pytest.mark.parametrize(
    ("text", "choices", "words"),
    [
        ("grb-cora/auto", {}, r"'grb-cora/auto' has 2 edits; choose one by victim, which is one of gat.at\(epochs=130\), gcn"),
        ("grb-cora/auto", {"victim": "gnc"}, "no victim of grb-cora/auto 'gnc'. Did you mean 'gcn'"),
        ("grb-cora/auto", {"surrogate": "gcn"}, "no edit of 'grb-cora/auto' has a surrogate; leave surrogate out"),
        ("grb-cora/rnd", {"victim": "gcn"}, "no edit of 'grb-cora/rnd' has a victim; leave victim out"),
        ("grb-cora/pgd", {"labels": "true"}, "no edit of 'grb-cora/pgd' has labels true; there is predicted"),
        ("grb-cora/pgd", {"difficulty": "hard"}, "has difficulty hard; there is full"),
        ("grb-cora/pgd", {"seed": 9}, "has seed 9; there is 0, 1"),
        ("grb-cora/auto", {"victim": "gcn", "training": 5}, "has training 5; there is 0"),
        ("grb-cora/pdg", {}, "no published attack 'grb-cora/pdg'. Did you mean 'grb-cora/pgd'"),
    ],
)  # fmt: skip
def test_every_other_choice_of_an_edit_is_refused_in_one_sentence(
    text: str, choices: dict[str, Any], words: str
) -> None:
    with pytest.raises(GRBError, match=words) as refused:
        chosen_edit(text, **choices)
    assert "\n" not in str(refused.value)


def test_a_label_reads_brackets_inside_brackets() -> None:
    assert Label.parse("auto(victim=gat+at(epochs=130), labels=true)") == Label(
        "auto", {"victim": "gat+at(epochs=130)", "labels": "true"}
    )
    assert PublishedName.parse("a/b") == PublishedName("a", Label("b"))


def test_lists_are_read_strictly(listed: Path) -> None:
    values = BUNDLE.to_dict()
    assert Bundle.from_dict(values) == BUNDLE and BUNDLE.file == "grb-cora.zip"
    for name, wrong in {
        "name": "../elsewhere",
        "sha256": "12",
        "format": 2,
        "more": 1,
        "bytes": -1,
        "models": [{**values["models"][0], "key": "../x"}],
        "edits": [{**values["edits"][0], "knowledge": "odd"}],
    }.items():
        with pytest.raises(DataError):
            Bundle.from_dict({**values, name: wrong})


def test_without_lists_there_is_nothing_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "folder", lambda: tmp_path / "nowhere")
    assert artefacts.bundles() == {} and published("grb-cora/gcn") is None
    with pytest.raises(UnknownName, match="no published bundle 'grb-cora'. `grb ls artefacts` shows all names"):
        artefacts.bundle_named("grb-cora")


def test_titles_of_a_bundle_tell_its_artefacts_apart() -> None:
    titles = [each.title for each in (*BUNDLE.models, *BUNDLE.edits)]
    assert len(set(titles)) == len(titles)
    assert EDITS[11].title == "auto-gcn-training1-true-full-seed0" and MODELS[1].title == "r-gcn+at-seed1"
