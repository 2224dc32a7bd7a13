"""The papers' names of an attack's arguments."""

from __future__ import annotations

from typing import Any

import pytest

from grb.attack.build import build_attack
from grb.attack.injection import FGSM, PGD, TDGIA
from grb.attack.modification import PRBCD, TopologyPGD
from grb.errors import DataError


@pytest.mark.parametrize("maker", [FGSM, PGD, TDGIA, TopologyPGD, PRBCD])
def test_the_papers_names_of_steps_are_accepted(maker: Any) -> None:
    assert maker(n_epoch=7) == maker(steps=7) and maker(n_epoch=7).steps == 7
    with pytest.raises(DataError, match="steps was given twice, also under the paper's name"):
        maker(n_epoch=7, steps=7)


def test_a_step_has_the_papers_name_too() -> None:
    assert FGSM(epsilon=0.5) == FGSM(step_size=0.5) == build_attack("fgsm", "none", epsilon=0.5)
    with pytest.raises(TypeError, match="epsilon"):
        PRBCD(epsilon=0.5)
