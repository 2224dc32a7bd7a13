from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb import catalogue
from grb.entries import KINDS
from grb.references import _LINKS, Reference, bibtex, references

# ours, or too plain to have a paper
WITHOUT = {"mlp", "rnd", "rnd-edges", "distil-edges"}


@pytest.mark.parametrize("kind", ["model", "attack"])
def test_every_method_with_a_paper_cites_it(kind: str) -> None:
    found = {name: references(kind, name) for name in KINDS[kind]}
    assert {name for name, papers in found.items() if not papers} <= WITHOUT
    for papers in found.values():
        for paper in papers:
            assert 1990 < paper.year < 2030 and re.fullmatch(r"[^\W\d_][\w', -]+( et al\.)?", paper.authors), paper


def test_a_composed_name_cites_all_of_its_parts() -> None:
    assert [paper.key for paper in references("model", "r-gcn+at")] == ["zhu2019robust", "zheng2021graph"]
    assert references("model", "gcn-jaccard+ln")[0].link == "https://arxiv.org/abs/1609.02907"


@pytest.mark.parametrize("name", ["my_package.models:Mine", "no-such-model", "gcn+nothing", "", "../../etc/passwd"])
def test_what_is_not_of_the_catalogue_cites_nothing(name: str) -> None:
    assert references("model", name) == () == references("attack", name)


def test_every_link_belongs_to_a_paper_that_is_cited() -> None:
    cited = {
        paper.key for kind in ("model", "attack", "defense") for name in KINDS[kind] for paper in references(kind, name)
    }
    assert set(_LINKS) <= cited


def test_every_paper_has_a_link_but_those_that_are_on_no_archive() -> None:
    cited = {each for kind in ("model", "attack", "defense") for name in KINDS[kind] for each in references(kind, name)}
    assert {each.key for each in cited if not each.link} == {"akhondzadeh2026eva", "xia2024gnncert", "zheng2020kdd"}
    assert len({each.key for each in cited}) == len(cited), "one paper, two titles"


def test_nothing_heavy_is_imported_for_it() -> None:
    code = "import sys; from grb.references import references; references('attack', 'tdgia'); print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


@given(st.text(max_size=60))
def test_no_text_ends_a_field_of_bibtex(text: str) -> None:
    made = bibtex("misc", "key", {"title": text, "year": "2021"})
    inside = made.removeprefix("@misc{key,").removesuffix("\n}")
    depth = 0
    for letter in inside:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0 and made.endswith("  year = {2021},\n}")


def test_bibtex_spells_several_authors_as_it_must() -> None:
    assert (
        "author = {Zügner and Akbarnejad and Günnemann},"
        in Reference("Zügner, Akbarnejad and Günnemann", "A title", "KDD", 2018).to_bibtex()
    )


# baselines and definitions that have no paper of their own
OWN = {
    "certificate": {"by-construction"},
    "detector": {"degree", "consistency", "joint"},
    "perturbation": {"original", "dropedges", "addedges", "noedgeftrs", "randedgeftrs"},
}


@pytest.mark.parametrize("kind", OWN)
def test_certificates_detectors_and_perturbations_say_where_they_come_from(kind: str) -> None:
    """With a reference, or with the name of the class or module that has it."""
    silent: set[str] = set()
    for name in catalogue.entries(kind):
        text = inspect.getdoc(catalogue.resolve(kind, name)) or ""
        if not re.search(r"Reference|[Rr]eference as|:class:|:mod:", text):
            silent.add(name)
    assert silent - OWN[kind] == set()
