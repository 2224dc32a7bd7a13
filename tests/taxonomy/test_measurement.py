from __future__ import annotations

import json

import pytest

from grb.errors import DataError
from grb.taxonomy import PerturbationInfo, ProfileMeasurement

RUN = ProfileMeasurement(
    dataset="ENZYMES",
    reference="enzymes",
    fingerprint="0" * 64,
    task="graph",
    split=3,
    perturbations=(PerturbationInfo("randftrs", "RandFtrs (gtaxogym)", {"compat": "gtaxogym"}, 2),),
    perturbation="RandFtrs (gtaxogym)",
    model="gcn",
    model_version=1,
    seed=3,
    training={"epochs": 300, "patience": None, "lr": 0.001, "depth": 5},
    auroc=0.75,
    val_auroc=0.8,
    best_epoch=41,
    epochs=92,
    stopped="no better validation AUROC for 50 epochs",
    parameters=1234,
    curve=(0.5, 0.8),
)


def test_a_run_survives_json():
    assert ProfileMeasurement.from_dict(json.loads(json.dumps(RUN.to_dict(), allow_nan=False))) == RUN


def test_a_row_keeps_settings_apart_from_results():
    row = RUN.to_row()
    assert (row["epochs"], row["training.epochs"], row["training.patience"]) == (92, 300, None)
    assert (row["perturbation_method"], row["perturbation_version"]) == ("randftrs", "2")
    assert "curve" not in row and all(not isinstance(value, dict | list | tuple) for value in row.values())


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"format": 2}, "`grb taxonomy run` makes new ones"),
        ({"auroc": 1.5}, "1.5"),
        ({"auroc": True}, "bool"),
        ({"seed": -1}, "-1"),
        ({"dataset": None}, "NoneType"),
        ({"training": [1]}, "list"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"perturbations": [{"name": "noedges"}]}, "no field 'title'"),
    ],
)
def test_anything_else_is_refused_in_a_sentence(changes, word):
    with pytest.raises(DataError, match="this is not a profiling run of format 1") as refused:
        ProfileMeasurement.from_dict({**RUN.to_dict(), **changes})
    assert word in str(refused.value)


@pytest.mark.parametrize("name", sorted(RUN.to_dict().keys() - {"complementarity", "curve", "notes"}))
def test_every_field_is_needed(name):
    values = RUN.to_dict()
    del values[name]
    with pytest.raises(DataError, match="not a profiling run"):
        ProfileMeasurement.from_dict(values)
