"""The layer itself: what changes nothing is told once, what would change results is honoured or refused."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

import grb
import grb.utils as utils
from grb.attack.injection import FGSM, PGD, RAND, TDGIA
from grb.attack.modification import DICE, FGA, PRBCD
from grb.attack.modification import RAND as EDGES
from grb.compat.adjacency import PreparedAdjacency
from grb.compat.arguments import PaperEraWarning, say_once
from grb.dataset import CogDLDataset, Dataset, OGBDataset
from grb.defense import AdvTrainer, GATGuard
from grb.errors import DataError, MissingDataset
from grb.model.base import predict
from grb.model.torch import APPNP, GAT, GCN, GIN, SGCN, TAGCN, GraphSAGE
from grb.trainer import AutoTrainer, Trainer
from grb.utils.normalize import GCNAdjNorm, RobustGCNAdjNorm, SAGEAdjNorm

LIMITS = {"n_inject_max": 5, "n_edge_max": 4, "feat_lim_min": -0.9, "feat_lim_max": 0.9}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def model(dataset: Dataset) -> nn.Module:
    return grb.train("gcn", dataset, epochs=30, hidden_features=[16])


def told(action: Any) -> list[str]:
    say_once.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
        action()
    return [str(each.message) for each in caught if each.category is PaperEraWarning]


def test_what_has_no_effect_is_told_once_and_defaults_are_not() -> None:
    assert len(told(lambda: FGSM(0.01, 5, **LIMITS, device="cuda:0", verbose=True))) == 2
    assert told(lambda: FGSM(0.01, 5, **LIMITS, device="cpu", verbose=False, early_stop_epsilon=1e-5)) == []
    assert told(lambda: (FGSM(0.01, 5, verbose=True), PGD(0.01, 5, verbose=True), DICE(5, verbose=True))) != []
    assert len(told(lambda: (FGSM(0.01, 5, verbose=True), DICE(5, verbose=True)))) == 1


def test_a_warning_points_at_the_line_of_the_script() -> None:
    say_once.cache_clear()
    with pytest.warns(PaperEraWarning) as caught:
        DICE(5, verbose=True)
    assert Path(caught[0].filename).name == "test_layer.py"


def test_our_own_spelling_never_meets_the_layer(monkeypatch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a call in our spelling was translated")

    monkeypatch.setattr("grb.compat.calls.construct", refuse)
    monkeypatch.setattr("grb.compat.calls.call", refuse)
    made = GCN(dataset.num_features, dataset.num_classes, [8], layer_norm=True, dropout=0.1)
    FGSM(step_size=0.1, steps=3), FGSM(epsilon=0.1, n_epoch=3), PRBCD(n_epoch=3), GAT(3, 2, heads=2)
    Trainer(dataset, torch.optim.Adam(made.parameters())).train(made, 1)
    attack = PGD(step_size=0.1, steps=1, **LIMITS)
    attack.attack(made, dataset.adj, dataset.features, dataset.test_mask)


def test_signatures_are_those_of_the_constructors() -> None:
    assert list(inspect.signature(GCN).parameters)[:4] == ["in_features", "out_features", "hidden_features", "n_layers"]
    assert "step_size" in inspect.signature(FGSM).parameters and "name" in inspect.signature(Dataset).parameters


def test_an_argument_that_nobody_knows_is_refused_as_python_does() -> None:
    for call in (
        lambda: GCN(3, 2, 8, n_layers=2, colour="red"),
        lambda: FGSM(0.01, 5, colour="red"),
        lambda: DICE(5, 0.5, True, "cpu", False, "more"),
        lambda: Dataset("synth-tiny", colour="red"),
    ):
        with pytest.raises(TypeError, match="colour|positional"):
            call()


def test_a_subclass_with_its_own_arguments_is_left_alone() -> None:
    class Mine(GCN):
        def __init__(self, width: int) -> None:
            super().__init__(3, 2, [width])

    assert Mine(4).hidden == [4]
    with pytest.raises(TypeError, match="adj_norm_func"):
        Mine(4, adj_norm_func=GCNAdjNorm)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (lambda d, c: GCN(d, c, 8, 2, activation=functional.elu), {"activation": "elu"}),
        (lambda d, c: GCN(d, c, 8, 2, adj_norm_func=SAGEAdjNorm), {"adj_norm_func": "SAGEAdjNorm"}),
        (lambda d, c: GCN(d, c, 8, 2, adj_norm_func=None), {"adj_norm_func": "None"}),
        (lambda d, c: TAGCN(d, c, 8, 2, k=2, activation=nn.Tanh()), {"activation": "tanh"}),
        (lambda d, c: APPNP(d, c, 8, 2, edge_drop=0.5), {"edge_drop": 0.5}),
        (lambda d, c: GIN(d, c, 8, 2, batch_norm=False), {"batch_norm": False}),
        (lambda d, c: SGCN(d, c, 8, 3, batch_norm=False), {"batch_norm": False}),
        (lambda d, c: GAT(d, c, 8, 2, n_heads=2, feat_dropout=0.5), {"feat_dropout": 0.5}),
    ],
)
def test_a_variant_is_honoured_saved_loaded_and_attacked(
    make: Any, changes: dict[str, Any], tmp_path: Path, dataset: Dataset
) -> None:
    torch.manual_seed(0)
    made = make(dataset.num_features, dataset.num_classes)
    assert {key: made.params[key] for key in changes} == changes
    Trainer(dataset, torch.optim.Adam(made.parameters(), lr=0.02)).train(made, 5)
    again = grb.load_model(grb.save_model(made, tmp_path / "variant.safetensors"))
    assert type(again) is type(made)
    assert torch.equal(predict(again, dataset.graph), predict(made, dataset.graph))
    assert torch.equal(predict(made.twin(), dataset.graph), predict(made, dataset.graph))
    adj, x = FGSM(0.1, 3, **LIMITS).attack(made, dataset.adj, dataset.features, dataset.test_mask)
    adj_fga = FGA(3).attack(made, dataset.adj, dataset.features, dataset.index_test)
    assert adj.shape[0] == dataset.num_nodes + 5 and abs(adj_fga - dataset.adj).sum() <= 6


def test_variants_compute_what_they_say(dataset: Dataset) -> None:
    d, c, x = dataset.num_features, dataset.num_classes, dataset.features
    plain = GCN(d, c, 8, 2)
    weights = plain.state_dict()
    changed = GCN(d, c, 8, 2, activation=functional.elu, adj_norm_func=SAGEAdjNorm)
    changed.load_state_dict(weights)
    a = torch.tensor(SAGEAdjNorm(dataset.adj).toarray(), dtype=torch.float32)
    h = functional.elu(a @ x @ weights["convs.0.linear.weight"] + weights["convs.0.linear.bias"])
    wanted = a @ h @ weights["convs.1.linear.weight"] + weights["convs.1.linear.bias"]
    assert torch.allclose(predict(changed, dataset.graph), wanted, atol=1e-5)
    dropping = APPNP(d, c, 8, 2, edge_drop=0.5).train()
    op = dropping.prepare(dataset.graph.adj)
    assert not torch.equal(dropping(x, op), dropping(x, op))
    assert torch.equal(dropping.eval()(x, op), dropping(x, op))


def test_attributes_of_the_papers_era_and_no_others() -> None:
    model = GraphSAGE(3, 2, [4])
    assert (model.adj_norm_func, model.feat_norm, model.model_type, model.model_name) == (
        SAGEAdjNorm,
        None,
        "torch",
        "graphsage",
    )
    assert not hasattr(model, "penalty") and not hasattr(model, "adj_norm")


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: GCN(3, 2, 8, 2, feat_norm="arctan"), "Dataset\\(name, feat_norm"),
        (lambda: GCN(3, 2, 8, 2, adj_norm_func=RobustGCNAdjNorm), "overrides prepare"),
        (lambda: GCN(3, 2, 8, 2, adj_norm_func=lambda adj: adj), "overrides prepare"),
        (lambda: GIN(3, 2, 8, 2, activation=torch.tanh), "overrides forward"),
        (lambda: GraphSAGE(3, 2, 8, 2, mu=1.0), "aggregate='mean'"),
        (lambda: GAT(3, 2, 8, 2, n_heads=2, feat_dropout=1.5), "below 1"),
        (lambda: Dataset("synth-tiny", custom=True), "from_npz"),
        (lambda: PRBCD(0.01, 5, 0, 5, -1, 1, make_undirected=False), "undirected"),
        (lambda: FGSM(0.01, 5, **LIMITS, loss=functional.mse_loss), "ComposedInjection"),
    ],
)
def test_what_would_change_results_is_refused_with_the_new_spelling(call: Any, advice: str) -> None:
    with pytest.raises(DataError, match=advice):
        call()


def test_targets_may_be_ids_masks_and_arrays(dataset: Dataset, model: nn.Module) -> None:
    ids, mask = dataset.index_test, dataset.test_mask
    results = [
        EDGES(6).attack(dataset.adj, targets) for targets in (ids, ids.numpy(), ids.tolist(), mask, mask.numpy())
    ]
    assert all((result != results[0]).nnz == 0 for result in results)
    adj, x = RAND(**LIMITS, verbose=False).attack(model, dataset.adj, dataset.features, mask.numpy())
    assert adj.shape[0] == dataset.num_nodes + 5 and x.shape[0] == 5
    for wrong in ([-1], [dataset.num_nodes], [0.5], [[0]]):
        with pytest.raises(DataError, match="ids from 0"):
            EDGES(6).attack(dataset.adj, wrong)
    with pytest.raises(TypeError, match="index_target"):
        EDGES(6).attack(dataset.adj)
    with pytest.raises(TypeError, match="colour"):
        FGA(6).attack(model, dataset.adj, dataset.features, ids, colour="red")


def test_dice_does_not_use_labels_of_targets(dataset: Dataset) -> None:
    other = dataset.labels.clone()
    other[dataset.index_test] = (other[dataset.index_test] + 1) % dataset.num_classes
    results = [DICE(20).attack(dataset.adj, dataset.index_test, labels) for labels in (dataset.labels, other)]
    assert (results[0] != results[1]).nnz == 0


def test_prepared_adjacencies_are_operators_and_sparse_tensors(dataset: Dataset, model: nn.Module) -> None:
    prepared = utils.adj_preprocess(dataset.adj, GCNAdjNorm)
    assert isinstance(prepared, PreparedAdjacency)
    wanted = torch.tensor(GCNAdjNorm(dataset.adj).toarray()) @ dataset.features
    products = [torch.spmm, torch.sparse.mm, torch.mm, lambda a, x: a @ x, torch.matmul]
    assert all(torch.allclose(product(prepared, dataset.features), wanted, atol=1e-5) for product in products)
    assert prepared.to_dense().shape == prepared.shape and prepared._indices().shape[0] == 2
    assert torch.allclose(model(dataset.features, prepared), predict(model, dataset.graph), atol=1e-5)
    x = dataset.features.clone().requires_grad_()
    torch.spmm(prepared, x).sum().backward()
    assert isinstance(x.grad, Tensor)


def test_normalisations_agree_for_every_kind_of_matrix(dataset: Dataset) -> None:
    dense = torch.tensor(dataset.adj.toarray())
    for norm in (GCNAdjNorm, SAGEAdjNorm):
        wanted = norm(dataset.adj).toarray()
        assert np.allclose(norm(dense).numpy(), wanted, atol=1e-6)
        assert np.allclose(norm(dense.to_sparse()).to_dense().numpy(), wanted, atol=1e-6)
        looped = sp.csr_matrix(dataset.adj + sp.eye(dataset.num_nodes))
        assert np.allclose(norm(looped).toarray(), wanted, atol=1e-6)


def test_a_subgraph_is_normalised_by_its_own_degrees(dataset: Dataset) -> None:
    mask = dataset.train_mask
    inner = dataset.adj[mask][:, mask]
    assert np.allclose(utils.adj_preprocess(dataset.adj, GCNAdjNorm, mask=mask).to_dense(), GCNAdjNorm(inner).toarray())


def test_own_modules_are_attacked_through_their_own_normalisation(dataset: Dataset) -> None:
    class Mine(nn.Module):
        adj_norm_func = staticmethod(GCNAdjNorm)

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(dataset.num_features, dataset.num_classes)

        def forward(self, x: Tensor, adj: Any) -> Tensor:
            return torch.spmm(adj, self.linear(x))

    torch.manual_seed(0)
    mine = Mine()
    Trainer(dataset, torch.optim.Adam(mine.parameters(), lr=0.05)).train(mine, 30)
    clean = utils.evaluate(mine, dataset.features, dataset.adj, dataset.labels, mask=dataset.test_mask)
    adj, x = PGD(0.1, 20, 30, 10, -0.9, 0.9).attack(mine, dataset.adj, dataset.features, dataset.test_mask)
    whole = torch.cat([dataset.features, x])
    assert utils.evaluate(mine, whole, adj, dataset.labels, mask=dataset.test_mask) < clean - 0.1

    class Other(Mine):
        adj_norm_func = staticmethod(lambda adj: GCNAdjNorm(adj))

    with pytest.raises(DataError, match="no gradients of edges"):
        FGA(3).attack(Other(), dataset.adj, dataset.features, dataset.index_test)


def test_early_stops_and_schedules_may_be_objects(dataset: Dataset) -> None:
    from grb.trainer.trainer import EarlyStop

    model = GCN(dataset.num_features, dataset.num_classes, [4])
    adam = torch.optim.Adam(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(adam, step_size=1, gamma=0.5)
    trainer = Trainer(dataset, adam, early_stop=EarlyStop(patience=7), lr_scheduler=schedule)
    assert trainer.patience == 7 and trainer.scheduler is schedule
    assert FGSM(0.01, 5, **LIMITS, early_stop=EarlyStop(patience=3)).patience == 3
    assert TDGIA(0.01, 5, **LIMITS, early_stop=True, early_stop_patience=9).patience == 9


def test_adversarial_training_hardens(dataset: Dataset) -> None:
    attack = PGD(0.3, 5, 40, 10, -0.9, 0.9)
    accuracies = []
    for given in (None, attack):
        torch.manual_seed(0)
        model = GCN(dataset.num_features, dataset.num_classes, [16])
        trainer = AdvTrainer(
            dataset, torch.optim.Adam(model.parameters(), lr=0.05), functional.cross_entropy, attack=given
        )
        trainer.train(model, 60)
        adj, x = attack.attack(model, dataset.adj, dataset.features, dataset.test_mask)
        whole = torch.cat([dataset.features, x])
        accuracies.append(utils.evaluate(model, whole, adj, dataset.labels, mask=dataset.test_mask))
    assert accuracies[1] > accuracies[0]


def test_adversarial_training_refuses_the_optimizer_of_another_model(dataset: Dataset, model: nn.Module) -> None:
    trainer = AdvTrainer(dataset, torch.optim.Adam([nn.Parameter(torch.zeros(1))]))
    with pytest.raises(DataError, match="none of this model's parameters"):
        trainer.train(model, 1)


def test_a_ready_optimizer_is_refused_by_a_search(dataset: Dataset) -> None:
    pytest.importorskip("optuna", reason="needs optuna: pip install optuna")
    ready = torch.optim.Adam([nn.Parameter(torch.zeros(1))])
    auto = AutoTrainer(dataset, GCN, params_search=lambda trial: ({}, {"n_epoch": 1, "optimizer": ready}), n_trials=1)
    with pytest.raises(DataError, match="a function of the parameters"):
        auto.run()


def test_files_are_never_pickles(tmp_path: Path, dataset: Dataset, model: nn.Module) -> None:
    utils.save_adj(dataset.adj, tmp_path, "adj.pkl")
    utils.save_features(dataset.features, tmp_path)
    utils.save_model(model, tmp_path, "model.pt")
    utils.save_model(nn.Linear(2, 2), tmp_path, "own.pt")
    assert (sp.load_npz(tmp_path / "adj.npz") != dataset.adj).nnz == 0 and not (tmp_path / "adj.pkl").exists()
    assert set(torch.load(tmp_path / "own.pt", weights_only=True)) == {"weight", "bias"}
    assert torch.equal(predict(grb.load_model(tmp_path / "model.pt"), dataset.graph), predict(model, dataset.graph))
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    path = utils.save_df_to_csv(pandas.DataFrame({"a": [1]}), tmp_path)
    assert path.read_text().splitlines()[0] == ",a"


def test_a_trainer_is_given_the_attacked_graph_as_test_scripts_do(dataset: Dataset, model: nn.Module) -> None:
    trainer = Trainer(dataset=dataset, optimizer=torch.optim.Adam(model.parameters()), feat_norm=None)
    clean = trainer.evaluate(model, dataset.test_mask)
    attack = PRBCD(epsilon=0.01, n_epoch=20, n_node_mod=0, n_edge_mod=100, feat_lim_min=-1, feat_lim_max=1)
    trainer.adj, trainer.features = attack.attack(
        model, dataset.adj, dataset.features, dataset.test_mask, adj_norm_func=GCNAdjNorm
    )
    attacked = trainer.evaluate(model, dataset.test_mask)
    assert attacked < clean
    assert attacked == pytest.approx(
        utils.evaluate(model, trainer.features, trainer.adj, dataset.labels, mask=dataset.test_mask)
    )


@pytest.mark.parametrize("kind", [Trainer, AdvTrainer])
def test_the_normalisation_of_a_trainer_is_that_of_its_model_or_refused(kind: Any, dataset: Dataset) -> None:
    made = GCN(dataset.num_features, dataset.num_classes, 8, 2)
    options = {"dataset": dataset, "optimizer": torch.optim.Adam(made.parameters()), "loss": functional.nll_loss}
    kind(**options, adj_norm_func=GCNAdjNorm).train(model=made, n_epoch=1)
    with pytest.raises(DataError, match="the model normalises by GCNAdjNorm"):
        kind(**options, adj_norm_func=SAGEAdjNorm).train(model=made, n_epoch=1)


def test_gat_guard_takes_another_activation(dataset: Dataset, tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = (dataset.num_features, dataset.num_classes, [8])
    plain = GATGuard(*sizes)
    changed = GATGuard(*sizes, num_heads=4, activation=functional.relu, drop=True)
    assert changed.params["activation"] == "relu"
    changed.load_state_dict(plain.state_dict())
    assert not torch.allclose(predict(changed, dataset.graph), predict(plain, dataset.graph))
    again = grb.load_model(grb.save_model(changed, tmp_path / "guard.safetensors"))
    assert torch.equal(predict(again, dataset.graph), predict(changed, dataset.graph))


def test_names_of_datasets_that_the_examples_load_are_known() -> None:
    for name in ("imdb-m", "imdb-b", "collab", "reddit-b"):
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("GRB_DATA", raising=False)
            patch.setenv("GRB_OFFLINE", "1")
            with pytest.raises(MissingDataset, match="TUDataset"):
                CogDLDataset(name=name, data_dir="nowhere")
    with pytest.raises(DataError, match="sequences of words"):
        OGBDataset(name="ogbg-code2")


def test_an_auto_trainer_with_the_old_signature_sees_no_test_node(dataset: Dataset) -> None:
    pytest.importorskip("optuna", reason="needs optuna: pip install optuna")
    x = dataset.features.clone()
    x[dataset.test_mask] = torch.randn(int(dataset.test_mask.sum()), x.shape[1], generator=torch.Generator())
    masks = {name: getattr(dataset, name) for name in ("train_mask", "val_mask", "test_mask")}
    data = [
        grb.dataset.CustomDataset(dataset.adj, features, dataset.labels, **masks, feat_norm=None)
        for features in (dataset.features, x)
    ]
    found = [
        AutoTrainer(
            dataset=each,
            model_class=GCN,
            params_search=lambda trial: ({"hidden_features": 8, "n_layers": 2}, {"lr": 0.02, "n_epoch": 15}),
            n_trials=1,
        ).run()
        for each in data
    ]
    assert found[0] == found[1]
