"""Models by name with the papers' settings."""

from __future__ import annotations

import pytest
import torch

from grb.errors import DataError, UnknownName
from grb.model.build import build, settings
from grb.model.torch import GCN, MLP


def test_settings_of_table_6() -> None:
    chosen = settings("gcn", "grb-cora")
    assert chosen.params == {"hidden_features": [64, 64, 64], "dropout": 0.5}
    assert chosen.lr == 0.01 and chosen.epochs >= 1 and chosen.patience >= 1
    normed = settings("gcn+ln", "grb-cora")
    assert normed.params["layer_norm"] is True
    assert settings("gcn", "grb-flickr").params["hidden_features"] == [256, 128, 64]


def test_other_datasets_get_the_settings_of_grb_cora() -> None:
    assert settings("gcn", "my-own").params == settings("gcn", "grb-cora").params
    assert settings("mlp", "grb-cora").params == {**settings("gcn", "grb-cora").params, "hidden_features": [64]}


def test_built_models_have_the_papers_size_and_the_seeds_weights() -> None:
    for name, size in (("gcn", 28167), ("gcn+ln", 29027)):
        model = build(settings(name, "grb-cora"), 302, 7, torch.Generator().manual_seed(0))
        assert isinstance(model, GCN) and model.num_parameters == size
    twice = [build(settings("mlp", "grb-cora"), 9, 3, torch.Generator().manual_seed(4)) for _ in range(2)]
    assert isinstance(twice[0], MLP)
    for a, b in zip(twice[0].parameters(), twice[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_override_keeps_what_is_not_given_and_passes_the_rest_to_the_model() -> None:
    chosen = settings("gcn", "grb-cora").override(lr=0.5, epochs=None, hidden_features=[8], dropout=0.0)
    assert chosen.lr == 0.5 and chosen.epochs == settings("gcn", "grb-cora").epochs
    assert chosen.params == {"hidden_features": [8], "dropout": 0.0}
    assert settings("gcn", "grb-cora").params["hidden_features"] == [64, 64, 64]


def test_presets_are_not_changed_by_use() -> None:
    widths = settings("gcn", "grb-cora").params["hidden_features"]
    widths.append(1)
    try:
        assert settings("gcn", "grb-cora").params["hidden_features"] == [64, 64, 64]
    finally:
        widths.pop()


def test_unknown_names_suffixes_and_parameters() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'gcn'"):
        settings("gcnn", "grb-cora")
    with pytest.raises(DataError, match="does not take"):
        build(settings("gcn", "grb-cora").override(heads=4), 9, 3)
    with pytest.raises(DataError, match=r"'sgc\+ln' does not take 'layer_norm'; it takes k"):
        build(settings("sgc+ln", "grb-cora"), 9, 3)
