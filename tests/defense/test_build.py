from __future__ import annotations

import pytest

from grb.defense import with_defense
from grb.errors import DataError, UnknownName


@pytest.mark.parametrize(
    "model, defense, name",
    [
        ("gcn", "at", "gcn+at"),
        ("gcn+ln", "at-full", "gcn+ln+at-full"),
        ("gat", "jaccard", "gat-jaccard"),
        ("gcn+ln+at", "cosine", "gcn-cosine+ln+at"),
        ("gcn", "svd", "gcn-svd"),
        ("gat", "guard", "gatguard"),
        ("gcn", "+AT", "gcn+at"),
        (None, "gatguard", "gatguard"),
        (None, "gcn-jaccard+at", "gcn-jaccard+at"),
    ],
)
def test_names(model: str | None, defense: str, name: str) -> None:
    assert with_defense(model, defense) == name


def test_refusals() -> None:
    with pytest.raises(DataError, match="'gatguard' is a model of its own and cannot be put on 'gcn'; leave 'gcn' out"):
        with_defense("gcn", "gatguard")
    with pytest.raises(DataError, match="'jaccard' goes on a model, but none is given"):
        with_defense(None, "jaccard")
    with pytest.raises(UnknownName, match="no defense 'jacard'. Did you mean 'jaccard'"):
        with_defense("gcn", "jacard")
