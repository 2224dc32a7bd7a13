"""The one training loop: repeatable, without leaks, ending with the best weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse as sp
from torch import Tensor, nn
from torch.nn import functional

from grb.dataset import Dataset, View
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, normalise
from grb.model.base import predict
from grb.model.torch import GCN, MLP
from grb.trainer import Epoch, Fit, fit
from grb.trainer.loop import TrainingError

N, CLASSES = 90, 3
TRAIN, VAL, TEST = np.arange(0, 50), np.arange(50, 65), np.arange(65, 90)
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def arrays() -> Arrays:
    """Three communities with informative features: adjacency, features, labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, N)
    chance = np.where(y[:, None] == y[None, :], 0.12, 0.02)
    upper = np.triu(rng.random((N, N)) < chance, 1)
    x = np.eye(CLASSES)[y] + rng.standard_normal((N, CLASSES))
    return upper | upper.T, np.hstack([x, rng.standard_normal((N, 3))]), y


def dataset(made: Arrays | None = None, **split: Any) -> Dataset:
    adj, x, y = made or arrays()
    parts = {"train": TRAIN, "val": VAL, "test": TEST} | split
    return Dataset.from_arrays(sp.csr_matrix(adj.astype(float)), x, y, split=parts)


def network(kind: type = GCN, seed: int = 0, **options: Any) -> nn.Module:
    chosen = {"hidden_features": [8], "dropout": 0.5} | options
    made: nn.Module = kind(6, CLASSES, generator=torch.Generator().manual_seed(seed), **chosen)
    return made


def run(model: nn.Module, view: View, *, seed: int = 0, lr: float = 0.05, **options: Any) -> Fit:
    chosen = {"epochs": 8} | options
    adam = torch.optim.Adam(model.parameters(), lr=lr)
    return fit(model, view, optimizer=adam, generator=torch.Generator().manual_seed(seed), **chosen)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([tensor.detach().double().flatten() for tensor in model.state_dict().values()])


def trained(
    view: View, *, kind: type = GCN, seed: int = 0, options: dict[str, Any] | None = None, **how: Any
) -> Tensor:
    model = network(kind, seed, **options or {})
    run(model, view, seed=seed, **how)
    return weights(model)


@pytest.mark.parametrize("kind", [GCN, MLP])
def test_same_seed_same_bits_other_seed_other_weights(kind: type) -> None:
    view = dataset().defender_view()
    once, again = trained(view, kind=kind, seed=1), trained(view, kind=kind, seed=1)
    assert torch.equal(once, again)
    assert not torch.equal(once, trained(view, kind=kind, seed=2))


def test_the_generator_alone_decides_the_masks() -> None:
    view = dataset().defender_view()
    torch.manual_seed(1)
    once = trained(view)
    torch.manual_seed(2)
    assert torch.equal(once, trained(view))


def test_training_learns() -> None:
    made = dataset()
    model = network()
    run(model, made.defender_view(), epochs=60)
    right = predict(model, made.graph).argmax(1) == made.labels
    assert right[torch.from_numpy(TEST)].float().mean() > 0.7


def changed(what: str) -> Arrays:
    """The same graph except for something that concerns one part of the split alone."""
    adj, x, y = (array.copy() for array in arrays())
    part, _, thing = what.partition(" ")
    nodes = {"test": TEST, "val": VAL, "train": TRAIN}[part]
    rng = np.random.default_rng(1)
    if thing == "features":
        x[nodes] += 10 * rng.standard_normal((len(nodes), 6))
    elif thing == "labels":
        y[nodes] = (y[nodes] + 1) % CLASSES
    else:
        block = np.triu(rng.random((N, N)) < 0.4, 1)
        adj[nodes, :] = (block | block.T)[nodes, :]
        adj[:, nodes] = adj[nodes, :].T
    return adj, x, y


LAYOUTS: list[tuple[type, dict[str, Any]]] = [(GCN, {}), (GCN, {"layer_norm": True}), (MLP, {})]


@pytest.mark.parametrize("what", ["test features", "test labels", "test edges"])
@pytest.mark.parametrize(("kind", "options"), LAYOUTS)
def test_inductive_training_knows_nothing_of_test_nodes(what: str, kind: type, options: dict[str, Any]) -> None:
    before = trained(dataset().defender_view(), kind=kind, options=options)
    after = trained(dataset(changed(what)).defender_view(), kind=kind, options=options)
    assert torch.equal(before, after)


def test_transductive_training_knows_no_test_label_but_meets_test_nodes() -> None:
    before = trained(dataset().transductive_view())
    assert torch.equal(before, trained(dataset(changed("test labels")).transductive_view()))
    assert not torch.equal(before, trained(dataset(changed("test features")).transductive_view()))


@pytest.mark.parametrize("what", ["val features", "val labels", "val edges"])
def test_validation_nodes_are_not_in_the_training_graph(what: str) -> None:
    """They may change which epoch is kept, never a training loss: the training graph has degrees of its own."""
    losses, scores = [], []
    for made in (dataset(), dataset(changed(what))):
        result = run(network(), made.defender_view())
        losses.append([epoch.loss for epoch in result.history])
        scores.append([epoch.val_loss for epoch in result.history])
    assert losses[0] == losses[1] and scores[0] != scores[1]


def test_training_graph_is_normalised_by_its_own_degrees() -> None:
    """First loss without dropout, by dense matrices over the training nodes alone."""
    adj, x, y = arrays()
    model = network(dropout=0.0)
    parameters = {name: tensor.detach().double() for name, tensor in model.named_parameters()}
    full = adj[np.ix_(TRAIN, TRAIN)].astype(float) + np.eye(len(TRAIN))
    scale = full.sum(1) ** -0.5
    op = torch.from_numpy(scale[:, None] * full * scale[None, :])
    h = torch.from_numpy(x[TRAIN]).double()
    h = torch.relu(op @ h @ parameters["convs.0.linear.weight"] + parameters["convs.0.linear.bias"])
    logits = op @ h @ parameters["convs.1.linear.weight"] + parameters["convs.1.linear.bias"]
    expected = functional.cross_entropy(logits, torch.from_numpy(y[TRAIN]))
    result = run(model, dataset().defender_view(), epochs=1)
    assert result.history[0].loss == pytest.approx(float(expected), rel=1e-5)


def test_training_data_matters() -> None:
    """The leak tests can fail: the same changes among training nodes change the weights."""
    before = trained(dataset().defender_view())
    for what in ("train features", "train labels", "train edges"):
        assert not torch.equal(before, trained(dataset(changed(what)).defender_view()))


class Diary:
    """Weights after every epoch."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.pages: list[tuple[Epoch, Tensor]] = []

    def __call__(self, epoch: Epoch) -> None:
        self.pages.append((epoch, weights(self.model)))


def test_best_validation_weights_are_restored() -> None:
    model = network()
    diary = Diary(model)
    result = run(model, dataset().defender_view(), epochs=30, lr=0.3, on_epoch=diary)
    scored = [(epoch.val_score, -(epoch.val_loss or 0), -epoch.number) for epoch, _ in diary.pages]
    best = max(range(30), key=lambda place: scored[place])
    assert result.best_epoch == best < 29
    assert torch.equal(weights(model), diary.pages[best][1])
    assert not torch.equal(weights(model), diary.pages[-1][1])
    assert result.best_score == diary.pages[best][0].val_score
    assert result.history == tuple(epoch for epoch, _ in diary.pages) and result.epochs == 30


def test_validation_score_and_loss_are_those_of_the_view() -> None:
    model = network()
    view = dataset().defender_view()
    result = run(model, view, epochs=1)
    logits = predict(model, view.graph)[view.val]
    y = view.labels[view.val]
    assert result.best_score == pytest.approx(float((logits.argmax(1) == y).float().mean()))
    assert result.history[0].val_loss == pytest.approx(float(functional.cross_entropy(logits, y)), rel=1e-5)


def falling() -> Callable[[Tensor, Tensor], float]:
    """A score that is lower at every call."""
    calls = iter(range(1000))
    return lambda logits, y: -float(next(calls))


@pytest.mark.parametrize("patience", [1, 3])
def test_early_stop(patience: int) -> None:
    model = network()
    diary = Diary(model)
    result = run(model, dataset().defender_view(), epochs=50, patience=patience, metric=falling(), on_epoch=diary)
    assert result.epochs == patience + 1 and result.best_epoch == 0
    assert result.stopped == f"no better validation score for {patience} epochs"
    assert torch.equal(weights(model), diary.pages[0][1])


def test_without_patience_all_epochs_run() -> None:
    result = run(network(), dataset().defender_view(), epochs=12, metric=falling())
    assert result.epochs == 12 and result.stopped == "all epochs done"


def test_equal_scores_are_told_apart_by_the_loss() -> None:
    result = run(network(dropout=0.0), dataset().defender_view(), epochs=10, metric=lambda logits, y: 0.5)
    losses = [epoch.val_loss or 0 for epoch in result.history]
    assert result.best_epoch == int(np.argmin(losses)) > 0


def test_scores_that_are_nan_never_win() -> None:
    values = iter([0.1, float("nan"), 0.2, float("nan")])
    result = run(network(), dataset().defender_view(), epochs=4, metric=lambda logits, y: next(values))
    assert result.best_epoch == 2 and result.best_score == 0.2


def test_without_validation_the_last_weights_stay() -> None:
    model = network()
    diary = Diary(model)
    result = run(model, dataset(val=[]).defender_view(), epochs=5, patience=1, on_epoch=diary)
    assert result.epochs == 5 and result.best_epoch == 4 and result.best_score is None
    assert torch.equal(weights(model), diary.pages[-1][1])


def test_validation_every_so_many_epochs() -> None:
    result = run(network(), dataset().defender_view(), epochs=9, eval_every=3)
    assert [epoch.number for epoch in result.history if epoch.val_score is not None] == [0, 3, 6, 8]


@pytest.mark.parametrize("options", [{"epochs": 0}, {"eval_every": 0}, {"patience": 0}, {"epochs": -3}])
def test_impossible_numbers_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(DataError, match="at least 1"):
        run(network(), dataset().defender_view(), **options)


def test_loss_that_is_not_finite_is_one_sentence_with_advice() -> None:
    model = network()

    def explode(logits: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(logits, y) * float("nan")

    with pytest.raises(TrainingError, match=r"became nan in epoch 0; try a smaller learning rate"):
        run(model, dataset().defender_view(), loss=explode)
    assert model.drop.generator is None
    with pytest.raises(TrainingError, match="learning rate"):
        run(network(), dataset().defender_view(), lr=1e30, epochs=20)


def test_scheduler_is_stepped_every_epoch() -> None:
    model = network()
    sgd = torch.optim.SGD(model.parameters(), lr=0.8)
    halved = torch.optim.lr_scheduler.StepLR(sgd, step_size=2, gamma=0.5)
    generator = torch.Generator().manual_seed(0)
    result = fit(model, dataset().defender_view(), optimizer=sgd, epochs=5, generator=generator, scheduler=halved)
    assert [epoch.lr for epoch in result.history] == pytest.approx([0.8, 0.4, 0.4, 0.2, 0.2])


def test_plateau_scheduler_gets_the_validation_score() -> None:
    model = network()
    sgd = torch.optim.SGD(model.parameters(), lr=0.8)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd, mode="max", patience=1, factor=0.5)
    generator = torch.Generator().manual_seed(0)
    options: dict[str, Any] = {"epochs": 8, "eval_every": 2, "metric": lambda logits, y: 0.5}
    result = fit(model, dataset().defender_view(), optimizer=sgd, generator=generator, scheduler=plateau, **options)
    # scored in epochs 0, 2, 4, 6, 7: every second score without improvement halves the rate
    assert [epoch.lr for epoch in result.history] == pytest.approx([0.8] * 4 + [0.4] * 3 + [0.2])


def test_nll_loss_gets_log_probabilities() -> None:
    view = dataset().defender_view()
    plain = trained(view)
    for loss in (functional.nll_loss, nn.NLLLoss(), functional.cross_entropy, nn.CrossEntropyLoss()):
        torch.testing.assert_close(trained(view, loss=loss), plain, rtol=1e-5, atol=1e-6)


def test_several_labels_per_node() -> None:
    adj, x, y = arrays()
    several = np.stack([y == 0, y >= 1, x[:, 0] > 0], axis=1).astype(float)
    view = dataset((adj, x, several)).defender_view()
    plain = trained(view, epochs=5)
    for loss in (functional.binary_cross_entropy, nn.BCELoss(), functional.binary_cross_entropy_with_logits):
        torch.testing.assert_close(trained(view, epochs=5, loss=loss), plain, rtol=1e-4, atol=1e-5)
    result = run(network(), view, epochs=20)
    assert 0 < (result.best_score or 0) <= 1


def test_augment_sees_the_model_and_the_training_graph() -> None:
    model = network()
    seen: list[tuple[Any, ...]] = []

    def look(asked: nn.Module, graph: Graph, ids: Tensor, epoch: int, generator: torch.Generator) -> Graph:
        seen.append((asked is model, graph.n, ids.tolist(), epoch, isinstance(generator, torch.Generator)))
        return graph

    view = dataset().defender_view()
    run(model, view, epochs=3, augment=look)
    everyone = list(range(len(TRAIN)))
    assert seen == [(True, len(TRAIN), everyone, epoch, True) for epoch in range(3)]
    plain = network()
    run(plain, view, epochs=3)
    torch.testing.assert_close(weights(model), weights(plain), rtol=1e-5, atol=1e-6)


def inject(graph: Graph) -> Graph:
    edit = GraphEdit(
        n=graph.n,
        add=torch.tensor([[0, 1, graph.n], [graph.n, graph.n + 1, graph.n + 1]]),
        new_x=torch.full((2, graph.num_features), 3.0),
    )
    return graph.apply(edit)


@pytest.mark.parametrize("transductive", [False, True])
def test_injected_rows_are_seen_but_get_no_loss(transductive: bool) -> None:
    made = dataset()
    view = made.transductive_view() if transductive else made.defender_view()
    model = network(dropout=0.0)
    before = network(dropout=0.0)
    result = run(model, view, epochs=1, augment=lambda model, graph, *_: inject(graph))
    graph, ids = view.training_graph()
    attacked = inject(graph)
    logits = before(attacked.x, normalise.gcn(attacked.adj))[ids]
    assert graph.y is not None
    expected = functional.cross_entropy(logits, graph.y[ids])
    assert result.history[0].loss == pytest.approx(float(expected.detach()), rel=1e-5)
    clean = run(network(dropout=0.0), view, epochs=1)
    assert result.history[0].loss != pytest.approx(clean.history[0].loss, rel=1e-5)


def test_augment_that_loses_nodes_is_refused() -> None:
    with pytest.raises(DataError, match="augment returned 5 nodes, but must keep the 50"):
        run(network(), dataset().defender_view(), augment=lambda model, graph, *_: graph.subgraph(torch.arange(5)))


def test_global_random_state_is_untouched() -> None:
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    model = network()
    torch.set_rng_state(before)
    run(model, dataset().defender_view())
    assert torch.equal(torch.get_rng_state(), before)
    assert np.random.get_state()[1].tolist() == numpy_before  # noqa: NPY002


class Spy(MLP):
    """Records how it is asked in each mode."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked: set[tuple[bool, bool]] = set()

    def forward(self, x: Any, op: object = None) -> Tensor:
        self.asked.add((self.training, torch.is_grad_enabled()))
        return super().forward(x, op)


def test_model_is_evaluated_without_gradients_and_left_in_evaluation_mode() -> None:
    model = network(Spy)
    run(model, dataset().defender_view())
    assert isinstance(model, Spy) and model.asked == {(True, True), (False, False)}
    assert not model.training


def test_view_and_graph_are_not_changed() -> None:
    made = dataset()
    view = made.defender_view()
    mark, whole = view.graph.fingerprint(), made.fingerprint()
    run(network(), view)
    assert view.graph.fingerprint() == mark and made.fingerprint() == whole


def test_any_module_with_prepare_can_be_trained() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(6, CLASSES)

        def prepare(self, adj: Any) -> list[Any]:
            return [normalise.raw(adj), normalise.row(adj)]

        def forward(self, x: Tensor, op: list[Any]) -> Tensor:
            return self.linear(op[1] @ x)

    result = run(Own(), dataset().defender_view())
    assert result.epochs == 8
