"""The grammar of composed names: every spelling is read once, and written in one way."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.catalogue import canonical, entries, is_third_party, preset, resolve
from grb.errors import DataError, GRBError, UnknownName
from grb.names import ADVERSARIAL, SUFFIXES, ModelName, perturbation_parts

PREPROCESS = [name for name in entries("defense") if name not in SUFFIXES]
CHAINS = [chain for length in range(3) for chain in permutations(PREPROCESS, length)]
SPELLINGS = [*entries("model"), *(alias for entry in entries("model").values() for alias in entry.aliases)]
THIRD_PARTY = "my_package.models:Net"


def spelled(base: str, chain: tuple[str, ...], pooled: bool, norm: bool, variant: str | None, seed: int) -> str:
    """A name with its suffixes in any order and any case."""
    draw = random.Random(seed)
    suffixes = [*(["ln"] if norm else []), *([variant] if variant else [])]
    draw.shuffle(suffixes)
    text = "-".join([base, *chain, *(["pool"] if pooled else [])])
    whole = "+".join([text, *suffixes])
    return "".join(draw.choice((letter.lower(), letter.upper())) for letter in whole)


names = st.builds(
    spelled,
    st.sampled_from(SPELLINGS),
    st.sampled_from(CHAINS),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, *ADVERSARIAL]),
    st.integers(0, 99),
)


@given(names)
def test_every_combination_survives_being_written_and_read(text: str) -> None:
    try:
        name = ModelName.parse(text)
    except DataError:  # the same part twice, as in gcn-jaccard-jaccard
        parts = text.lower().split("+")[0].split("-")
        assert len(set(parts)) < len(parts)
        return
    assert ModelName.parse(str(name)) == name and str(ModelName.parse(str(name))) == str(name)
    assert name.base in entries("model") and set(name.preprocess) <= set(PREPROCESS)
    assert canonical("model", name.architecture) == name.architecture
    assert not name.is_third_party


def test_all_plain_combinations_of_the_catalogue_are_read_as_they_are_written() -> None:
    for base in entries("model"):
        for variant in (None, *ADVERSARIAL):
            for norm in (False, True):
                text = "+".join([base, *(["ln"] if norm else []), *([variant] if variant else [])])
                name = ModelName.parse(text)
                assert str(name) == text and name.adversarial == (variant is not None) and name.layer_norm == norm


def test_every_name_of_the_papers_tables_is_read() -> None:
    for dataset, table in preset("models").items():
        for name in table if dataset != "training" else ():
            assert str(ModelName.parse(name)) == name


def test_the_fields_of_a_name() -> None:
    name = ModelName.parse("gat-transform-jaccard+LN+at-full")
    assert name == ModelName("gat", ("transform", "jaccard"), layer_norm=True, adversarial_training="at-full")
    assert name.architecture == "gat-transform-jaccard" and name.adversarial and name.is_defended
    assert ModelName.parse("gcn-svd").base == "gcn-svd" and ModelName.parse("gcn-svd").is_defended
    assert not ModelName.parse("gcn").is_defended
    assert str(ModelName.parse("rgcn-pool")) == "r-gcn-pool"
    assert ModelName.parse(name) is name


def test_an_import_path_keeps_its_spelling() -> None:
    name = ModelName.parse(f"{THIRD_PARTY}+AT")
    assert (name.base, name.architecture, str(name)) == (THIRD_PARTY, THIRD_PARTY, f"{THIRD_PARTY}+at")
    assert (
        name.has_import_path
        and name.is_third_party
        and str(ModelName.parse(THIRD_PARTY).for_task("graph")) == THIRD_PARTY
    )
    assert not ModelName.parse("grb.model.torch.gcn:GCN").is_third_party
    with pytest.raises(DataError, match="nothing behind a hyphen"):
        ModelName.parse(f"{THIRD_PARTY}-jaccard")


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("gcnn", "no model 'gcnn'. Did you mean 'gcn'"),
        ("gni-pool", "no model 'gni'"),
        ("gcn-jacard", "Did you mean 'gcn-jaccard'"),
        ("gcn-jaccard-jaccard", "has '-jaccard' twice; keep one of them"),
        ("gcn+bn", r"has the suffix '\+bn', but only '\+ln', '\+at', .*'\+smooth' are known, once each"),
        ("gcn+ln+ln", "once each"),
        ("gcn+at+at-full", "two kinds of adversarial training; keep one of them"),
        ("gcn+known+smooth", r"has '\+known', which does not go with 'smooth'; keep one of them"),
        ("gcn+at+known", r"has '\+known', which does not go with 'at'; keep one of them"),
        ("gin-pool+known", r"has '\+known', which does not go with 'pool'; keep one of them"),
        ("", "no model ''"),
        ("+ln", "no model ''"),
    ],
)
def test_refusals_are_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(GRBError, match=sentence) as caught:
        ModelName.parse(text)
    assert "\n" not in str(caught.value)


def test_names_for_a_task() -> None:
    on_graphs = [str(ModelName.parse(name).for_task("graph")) for name in ("gin", "gcn+ln", "gat-pool", "gcn-jaccard")]
    assert on_graphs == ["gin-pool", "gcn-pool+ln", "gat-pool", "gcn-jaccard-pool"]
    assert str(ModelName.parse("gin+at").for_task("node")) == "gin+at"
    with pytest.raises(DataError, match="leave '-pool' out"):
        ModelName.parse("gin-pool").for_task("node")
    with pytest.raises(DataError, match=r"leave '\+at-full' out"):
        ModelName.parse("gin+at-full").for_task("graph")


@pytest.mark.parametrize(
    "model, defense, name",
    [
        ("gcn", "at", "gcn+at"),
        ("gcn+ln", "at-full", "gcn+ln+at-full"),
        ("gat", "jaccard", "gat-jaccard"),
        ("gcn+ln+at", "cosine", "gcn-cosine+ln+at"),
        ("gcn-pool", "jaccard", "gcn-jaccard-pool"),
        ("gcn", "svd", "gcn-svd"),
        ("gat", "guard", "gatguard"),
        ("gcn", "+AT", "gcn+at"),
        (None, "gatguard", "gatguard"),
        (None, "gcn-jaccard+at", "gcn-jaccard+at"),
    ],
)
def test_a_defense_on_a_model(model: str | None, defense: str, name: str) -> None:
    made = ModelName.of_defense(defense) if model is None else ModelName.parse(model).with_defense(defense)
    assert str(made) == name


def test_defenses_that_do_not_fit_are_refused() -> None:
    gcn = ModelName.parse("gcn")
    with pytest.raises(DataError, match="'gatguard' is itself a model and cannot be put on 'gcn'; leave 'gcn' out"):
        gcn.with_defense("gatguard")
    with pytest.raises(DataError, match="'jaccard' goes on a model, but none is given"):
        ModelName.of_defense("jaccard")
    with pytest.raises(UnknownName, match="no defense 'jacard'. Did you mean 'jaccard'"):
        gcn.with_defense("jacard")
    with pytest.raises(DataError, match="once each"):
        ModelName.parse("gcn+at").with_defense("at")
    with pytest.raises(GRBError):
        ModelName.parse("gcn-jaccard").with_defense("jaccard")


def test_perturbations_are_joined_by_a_plus() -> None:
    assert perturbation_parts("-") == ("original",)
    assert perturbation_parts("NoFeatures+Frag-k1") == ("nonodeftrs", "frag-k1")
    with pytest.raises(UnknownName, match="Did you mean 'noedges'"):
        perturbation_parts("randftrs+noedge")


def test_third_party_code_is_found_in_every_part_of_a_name() -> None:
    assert not is_third_party("perturbation", "noedges+randftrs")
    assert is_third_party("perturbation", "grb.perturb.edges:NoEdges+my_package:change")
    assert is_third_party("model", f"{THIRD_PARTY}+unknown")
    assert not is_third_party("model", "no-such-model")


def test_a_module_is_not_imported_for_something_that_it_cannot_have(tmp_path, monkeypatch):
    (tmp_path / "grb_is_not_to_run_this.py").write_text("raise SystemExit('it was run')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("grb_is_not_to_run_this:1", "grb_is_not_to_run_this:", "grb_is_not_to_run_this:a.b"):
        with pytest.raises(DataError, match="a name behind the colon is needed"):
            resolve("attack", name)
