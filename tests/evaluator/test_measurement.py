from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError, IntegrityError
from grb.evaluator.measurement import (
    AttackInfo,
    DatasetInfo,
    DefenseInfo,
    Measurement,
    MethodInfo,
    Outcome,
    pack_bits,
    unpack_bits,
)

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
counts = st.integers(0, 2**40)
fractions = st.floats(0, 1)
numbers = st.floats(allow_nan=False, allow_infinity=False)
params = st.dictionaries(
    names, st.one_of(counts, numbers, names, st.booleans(), st.lists(counts, max_size=3)), max_size=3
)
methods = st.builds(MethodInfo, names, params, counts, counts, names, numbers, names)
datasets = st.builds(
    DatasetInfo, names, names, names, st.booleans(), st.sampled_from(["node", "graph"]), st.none() | counts
)
attacks = st.builds(
    AttackInfo,
    methods,
    names,
    st.sampled_from(["none", "transfer", "white-box"]),
    st.none() | methods,
    params,
    st.dictionaries(names, numbers, max_size=2),
    st.sampled_from(["predicted", "true"]),
    counts,
    numbers,
    counts,
    st.lists(names, max_size=2).map(tuple),
)
defenses = st.builds(
    DefenseInfo, methods, params, counts, st.sampled_from(["inductive", "transductive"]), st.sampled_from(["", "clean"])
)


@st.composite
def outcomes(draw):
    bits = draw(st.lists(st.booleans(), max_size=20))
    shares = draw(st.dictionaries(names, fractions, max_size=3))
    return Outcome(shares, draw(fractions), len(bits), pack_bits(bits), draw(st.integers(0, len(bits))))


measurements = st.builds(
    Measurement,
    datasets,
    defenses,
    st.none() | attacks,
    st.dictionaries(names, outcomes(), max_size=3),
    names,
    st.sampled_from(["evasion", "poisoning"]),
    names,
    counts,
    names,
)


def example() -> Measurement:
    method = MethodInfo("gcn", {"epochs": 3}, 0, 1, "a" * 64, 0.5)
    threat = {"kind": "injection", "nodes": 3}
    attack = AttackInfo(MethodInfo("fgsm"), "injection", threat=threat, budget={"nodes": 3.0})
    bits = [True, False, True, True]
    return Measurement(
        DatasetInfo("synth-tiny", "synth-tiny", "f" * 64, True),
        DefenseInfo(method, {"lr": 0.01}, 100),
        attack,
        {"full": Outcome({"accuracy": 0.75}, 0.25, 4, pack_bits(bits))},
    )


@given(measurements)
def test_a_measurement_comes_back_from_json_as_it_was(measurement):
    text = json.dumps(measurement.to_dict(), allow_nan=False)
    assert Measurement.from_dict(json.loads(text)) == measurement


def test_bits_are_those_that_were_packed():
    assert example().outcomes["full"].bits().tolist() == [True, False, True, True]


@given(st.lists(st.booleans(), max_size=70))
def test_packed_bits_of_another_length_are_refused(bits):
    text = pack_bits(bits)
    assert unpack_bits(text, len(bits)).tolist() == bits
    with pytest.raises(IntegrityError, match="bytes hold no"):
        unpack_bits(text, len(bits) + 16)


@pytest.mark.parametrize("text", ["", "no base64!", "AAAA", None, 5])
def test_text_that_holds_no_bits_is_refused(text):
    with pytest.raises(IntegrityError, match="bits"):
        unpack_bits(text, 40)


def test_bits_never_expand_beyond_the_targets():
    bomb = pack_bits(np.zeros(80_000_000, dtype=bool))
    with pytest.raises(IntegrityError, match="hold no 8 bits"):
        unpack_bits(bomb, 8)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), 9),
        (("objective",), "defence"),
        (("attack", "knowledge"), "all"),
        (("attack", "labels"), "secret"),
        (("attack", "budget", "nodes"), float("nan")),
        (("attack", "budget", "nodes"), True),
        (("attack", "steps"), -1),
        (("attack", "notes"), None),
        (("defense", "method", "seed"), 1.5),
        (("defense", "train_mode"), "both"),
        (("dataset", "task"), "edge"),
        (("dataset", "synthetic"), "yes"),
        (("outcomes", "full", "changed"), 1.5),
        (("outcomes", "full", "values", "accuracy"), "0.9"),
        (("outcomes", "full", "values", "accuracy"), float("inf")),
        (("outcomes", "full", "targets"), 10**400 * -1),
        (("outcomes", "full", "invalid"), 5),
        (("outcomes",), []),
        (("threads",), "many"),
    ],
)
def test_what_no_measurement_holds_is_refused_in_one_sentence(path, value):
    values = example().to_dict()
    inner = values
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(DataError, match="measurement of format 1|cannot be"):
        Measurement.from_dict(values)


@pytest.mark.parametrize("whole", [None, [], "text", 3, {}])
def test_anything_else_is_refused(whole):
    with pytest.raises(DataError, match="this is not a measurement"):
        Measurement.from_dict(whole)


def test_a_label_leaves_out_what_the_study_shares():
    method = MethodInfo("fgsm", {"iterations": 50, "step": 0.1})
    assert method.label() == "fgsm(iterations=50, step=0.1)"
    assert method.label({"iterations": 50}) == "fgsm(step=0.1)"
    assert method.label({"iterations": 60}) == "fgsm(iterations=50, step=0.1)"
    assert replace(method, title="Mine (submitted)").label() == "Mine (submitted)"


def test_measurements_boards_and_pages_need_no_torch():
    code = (
        "import sys, grb.evaluator.measurement, grb.evaluator.board, grb.pipeline.results, grb.leaderboard.page, "
        "grb.leaderboard.export, grb.cli.leaderboard; "
        "assert not {'torch', 'scipy', 'sklearn', 'matplotlib', 'torch_geometric'} & set(sys.modules), "
        "sorted(set(sys.modules) & {'torch', 'scipy', 'sklearn', 'matplotlib', 'torch_geometric'})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
