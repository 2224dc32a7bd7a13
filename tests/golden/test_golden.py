"""Numbers do not move unless somebody says so: a method whose results change gets another ``version``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from golden.methods import methods, read, values_of, version_of

GOLDEN = read()
# other CPUs sum in another order, and Adam's first steps turn the sign of a tiny gradient into a whole step
TOLERANCE = 0.02
# share of targets that a race leaves: one of long searches ends elsewhere on another CPU
SAME_SHARE = 0.05
# an edge may lose a tie against another one
SAME_EDGES = 0.9
RENEW = "run `python tests/golden/methods.py {name}`"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("method", sorted({*methods(), *GOLDEN}))
def test_numbers_move_only_with_the_version(method: str) -> None:
    name = method.partition(" ")[2]
    if method not in GOLDEN:
        pytest.skip(f"{method} has no golden value yet: {RENEW.format(name=name)}")
    assert method in methods(), f"{method} is gone: {RENEW.format(name='')}"
    golden = GOLDEN[method]
    assert version_of(method) == golden["version"], f"{method} has another version: {RENEW.format(name=name)}"
    difference = compare(golden, values_of(method))
    assert not difference, (
        f"{method}: {difference}; if that is on purpose, raise its version and {RENEW.format(name=name)}"
    )


def compare(golden: dict[str, Any], found: dict[str, Any]) -> str:
    """What differs by more than another CPU explains; empty if nothing does."""
    for name in ("logits", "features"):
        if (name in golden) != (name in found):
            return f"{name} are new or gone"
        pairs = zip(golden.get(name, []), found.get(name, []), strict=True)
        largest = max((abs(old - new) for old, new in pairs), default=0.0)
        if largest > TOLERANCE * golden.get("largest", 1.0):
            return f"{name} differ by up to {largest:.3g} where the largest is {golden['largest']:.3g}"
    if abs(golden.get("kept", 0.0) - found.get("kept", 0.0)) > SAME_SHARE:
        return f"kept is {found.get('kept', 0.0):.3f} and was {golden.get('kept', 0.0):.3f}"
    for name in ("add", "drop"):
        old, new = ({tuple(pair) for pair in values.get(name, [])} for values in (golden, found))
        if len(old & new) < SAME_EDGES * max(len(old), len(new)):
            return f"{name}: only {len(old & new)} of {len(old)} edges are the same"
    return ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"logits": [1.0, 2.1]}, "logits differ by up to 0.1"),
        ({"logits": [1.0, 2.01]}, ""),
        ({"add": [[0, 1]]}, "add: only 1 of 2"),
        ({"features": [1.0]}, "features are new or gone"),
        ({"kept": 0.1}, "kept is 0.100 and was 0.000"),
        ({"kept": 0.04}, ""),
    ],
)
def test_a_difference_is_seen(change: dict[str, Any], words: str) -> None:
    golden = {"logits": [1.0, 2.0], "largest": 2.0, "add": [[0, 1], [0, 2]], "drop": []}
    found = compare(golden, {**golden, **change})
    assert found.startswith(words) and bool(found) == bool(words)
