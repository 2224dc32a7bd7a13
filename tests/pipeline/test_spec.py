from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grb.attack.build import build_attack
from grb.defense import build_defense
from grb.errors import DataError
from grb.pipeline.spec import Spec, canonical_json, digest, jsonable
from pipeline.parts import FEW

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_a_method_is_a_name_or_a_name_with_parameters_beside_it() -> None:
    assert Spec.of("pgd") == Spec("pgd") == Spec.of(Spec("pgd"))
    assert Spec.of({"name": "pgd", "iterations": 5}) == Spec("pgd", {"iterations": 5})


@pytest.mark.parametrize("given", [5, None, ["pgd"], {}, {"iterations": 5}, {"name": 5}])
def test_anything_else_is_no_method(given: object) -> None:
    with pytest.raises(DataError, match="a method is a name"):
        Spec.of(given)


def test_a_label_tells_two_specs_of_one_study_apart() -> None:
    assert Spec("pgd").label == "pgd"
    assert Spec("pgd", {"step": 0.1, "iterations": 5}).label == "pgd(iterations=5, step=0.1)"


@FEW
@given(PLAIN)
def test_plain_values_stay_as_they_are(value: Any) -> None:
    assert jsonable(value) == value
    assert json.loads(canonical_json(value)) == value


@FEW
@given(st.dictionaries(st.text(), PLAIN, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_count(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert digest(dict(items)) == digest(value)
    by_hand = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert digest(value) == hashlib.sha256(by_hand.encode()).hexdigest()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [0.0, {"a": float("nan")}]])
def test_numbers_without_a_value_are_refused(value: object) -> None:
    with pytest.raises(DataError, match="only finite numbers"):
        jsonable(value)


@pytest.mark.parametrize("value", [object(), torch.zeros(2), 3j, np.float32(1.0)])
def test_what_has_no_plain_form_is_refused(value: object) -> None:
    with pytest.raises(DataError, match="cannot be part of a job; use JSON values"):
        jsonable(value)


class Colour(enum.Enum):
    RED = "red"


def start(x: float) -> float:
    return x


@dataclass(frozen=True)
class Method:
    steps: int
    rule: Callable[[float], float] = start
    sizes: tuple[int, ...] = (1, 2)
    options: dict[str, int] = field(default_factory=dict)
    on_step: Callable[[int], None] | None = None
    device: str = "cpu"


def test_a_method_is_its_class_and_the_fields_that_differ_from_their_defaults() -> None:
    here = f"{__name__}:Method"
    assert jsonable(Method(5)) == {"type": here, "steps": 5}
    assert jsonable(Method(5, options={"a": 1}, sizes=(3,))) == {
        "type": here,
        "steps": 5,
        "options": {"a": 1},
        "sizes": [3],
    }
    assert jsonable(Method(5, rule=abs)) == {"type": here, "steps": 5, "rule": "builtins:abs"}


def test_what_is_for_the_user_alone_is_not_part_of_a_method() -> None:
    assert jsonable(Method(5, on_step=print, device="cuda")) == jsonable(Method(5))  # type: ignore[arg-type]


def test_tuples_sets_and_enums_become_lists_and_values() -> None:
    assert jsonable((1, 2)) == [1, 2]
    assert jsonable({"drop", "add"}) == jsonable(frozenset({"add", "drop"})) == ["add", "drop"]
    assert jsonable(Colour.RED) == "red"
    assert jsonable({1: start}) == {"1": f"{__name__}:start"}


@pytest.mark.parametrize("name", ["rnd", "fgsm", "pgd", "speit", "tdgia"])
def test_equal_attacks_are_equal_values_and_other_parameters_another(name: str) -> None:
    assert jsonable(build_attack(name, "grb-cora")) == jsonable(build_attack(name, "grb-cora"))
    if name != "rnd":
        assert jsonable(build_attack(name, "grb-cora", iterations=7)) != jsonable(build_attack(name, "grb-cora"))
    canonical_json(jsonable(build_attack(name, "grb-cora")))


@pytest.mark.parametrize("name", ["gcn", "gcn+ln", "gat+at", "r-gcn", "gatguard"])
def test_defenses_too(name: str) -> None:
    values = {changes: jsonable(build_defense(name, "grb-cora", **dict(changes))) for changes in ((), (("lr", 0.5),))}
    assert values[()] != values[(("lr", 0.5),)]
    canonical_json(values[()])
