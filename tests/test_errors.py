"""What a refusal says."""

from __future__ import annotations

import pytest

from grb.catalogue import canonical
from grb.errors import UnknownName


@pytest.mark.parametrize(
    ("kind", "typo", "meant"),
    [
        ("model", "gnc", "gcn"),
        ("attack", "fgms", "fgsm"),
        ("dataset", "grb-corra", "grb-cora"),
        ("model", "GNI", "gin"),
    ],
)
def test_the_nearest_name_is_proposed(kind: str, typo: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"Did you mean '{meant}'"):
        canonical(kind, typo)
