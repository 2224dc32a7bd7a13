from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from grb.dataset.splits import Folds, Split
from grb.errors import DataError
from grb.graph import Graph, adjacency_from_edges
from grb.model.profiling import MIN_DECREASE, ProfilingConfig, profiler
from grb.taxonomy import check_placeable
from grb.trainer.profile import Point, Profiled, Progress, _Schedule, fit_profile
from made_collections import random_collection

FAST = {"width": 16, "epochs": 6, "batch": 16}


def told_apart() -> tuple[Graph, Split]:
    """Graphs whose class is the mean of their first feature."""
    graph = random_collection(graphs=40, seed=5, classes=2)
    shift = torch.repeat_interleave(graph.y * 2.0 - 1, graph.ptr.diff())
    x = graph.x.clone()
    x[:, 0] += 2 * shift
    return graph.with_features(x), Folds(graph.y)(0)


def single(n: int = 40) -> tuple[Graph, Split]:
    rng = np.random.default_rng(0)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((n, n)) < 0.1, 1)).T, n)
    y = torch.arange(n) % 2
    x = torch.from_numpy(rng.standard_normal((n, 4))).float() + 4.0 * y.unsqueeze(1)
    return Graph(adj, x, y), Split.build(range(20), range(20, 30), {"full": range(30, n)}, n)


def run(
    data: tuple[Graph, Split], chosen: ProfilingConfig | None = None, *, seed: int = 0, task: str = "graph"
) -> Profiled:
    graph, split = data
    chosen = chosen or profiler("gcn", collection=graph.ptr is not None, **FAST)
    return fit_profile(graph, split, chosen, task=task, classes=2, seed=seed)


def without_clock(done: Profiled) -> Profiled:
    return replace(done, seconds=0.0)


@pytest.mark.parametrize("data", [told_apart(), single()], ids=["collection", "single"])
def test_what_can_be_told_apart_is_and_the_same_seed_gives_the_same_bits(data) -> None:
    task = "graph" if data[0].ptr is not None else "node"
    chosen = profiler("gcn", collection=task == "graph", width=16, epochs=16, batch=16, lr=1e-2)
    done = run(data, chosen, task=task)
    assert done.val_auroc > 0.9 and done.auroc > 0.8
    assert without_clock(run(data, chosen, task=task)) == without_clock(done)
    assert run(data, chosen, task=task, seed=1).history != done.history


def test_the_test_auroc_is_that_of_the_first_best_epoch() -> None:
    done = run(told_apart(), profiler("gcn", collection=True, **FAST))
    scores = [point.val_auroc for point in done.history]
    assert done.val_auroc == max(scores)
    assert done.best_epoch == done.history[scores.index(max(scores))].epoch


@pytest.mark.parametrize("data", [told_apart(), single()], ids=["collection", "single"])
def test_labels_of_test_items_have_no_say_in_training(data) -> None:
    graph, split = data
    y = graph.y.clone()
    y[split.test["full"]] = 1 - y[split.test["full"]]
    task = "graph" if graph.ptr is not None else "node"
    plain, flipped = run(data, task=task), run((replace(graph, y=y), split), task=task)
    # test AUROCs are recorded, and have no say either
    assert [replace(each, auroc=None) for each in plain.history] == [
        replace(each, auroc=None) for each in flipped.history
    ]
    assert plain.auroc == pytest.approx(1 - flipped.auroc)


def test_test_graphs_have_no_say_in_training() -> None:
    graph, split = told_apart()
    owner = torch.isin(graph.owner, split.test["full"])
    x = torch.where(owner.unsqueeze(1), -graph.x, graph.x)
    turned, plain = run((graph.with_features(x), split)).history, run((graph, split)).history
    assert [replace(each, auroc=None) for each in turned] == [replace(each, auroc=None) for each in plain]


def test_stopping_early_is_said() -> None:
    done = run(told_apart(), profiler("gcn", collection=True, width=8, epochs=50, patience=2, lr=1e-6))
    assert done.epochs == done.best_epoch + 3 < 50
    assert done.stopped == "no better validation AUROC and no lower training loss for 2 epochs"
    assert run(told_apart()).stopped == "all epochs done"


def test_the_kept_test_aurocs_are_those_of_the_best_epochs_so_far() -> None:
    done = run(told_apart(), profiler("gcn", collection=True, **FAST))
    best = -1.0
    for point in done.history:
        assert (point.auroc is not None) == (point.val_auroc > best)
        best = max(best, point.val_auroc)
    assert [point.auroc for point in done.history if point.auroc is not None][-1] == done.auroc


def course(losses: list[float], better: set[int], patience: int, min_decrease: float | None) -> int | None:
    """The epoch at which a course ends, None if it does not."""
    progress = Progress(min_decrease)
    for epoch, loss in enumerate(losses):
        progress.update(Point(epoch, loss, 1.0, 0.5, 0.01), epoch in better)
        if epoch - progress.epoch >= patience:
            return epoch
    return None


def test_a_run_is_not_over_while_its_loss_falls() -> None:
    """Without features the validation AUROC stays where it is for hundreds of epochs, and then rises."""
    slow = [2.0 - 0.005 * epoch for epoch in range(200)]
    assert course(slow, {0}, 40, None) == 40
    assert course(slow, {0}, 40, 0.02) is None
    flat = [*slow, *([1.0] * 100)]
    assert 200 <= course(flat, {0}, 40, 0.02) <= 250


def test_a_loss_that_falls_for_ever_but_ever_less_ends() -> None:
    by_heart = [2.0 * 0.98**epoch for epoch in range(1000)]
    end = course(by_heart, {0, 30}, 40, 0.02)
    assert end is not None and by_heart[end - 40] < 0.1 * by_heart[0]


def test_noise_of_the_loss_is_no_progress() -> None:
    rng = np.random.default_rng(0)
    assert course((1.7 + 0.005 * rng.standard_normal(300)).tolist(), {0}, 40, 0.02) == 40


def test_a_patience_comes_with_the_rule_unless_told_otherwise() -> None:
    assert profiler("gcn", collection=True).min_decrease is None
    assert profiler("gcn", collection=True, patience=9).min_decrease == MIN_DECREASE
    assert profiler("gcn", collection=True, patience=9, min_decrease=0.5).min_decrease == 0.5
    for wrong in (0.0, -1.0, 2.0, float("nan")):
        with pytest.raises(DataError, match="min_decrease of a profiling model"):
            profiler("gcn", collection=True, patience=9, min_decrease=wrong)


def test_a_plateau_of_the_validation_loss_halves_the_rate() -> None:
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule = _Schedule(optimizer, profiler("gcn", collection=True, plateau=1))
    rates = []
    for loss in (1.0, 0.5, None, 0.6, None, 0.7, 0.8, 0.4):  # None: an epoch that was not evaluated
        schedule.epoch(loss)
        rates.append(schedule.lr)
    assert rates == [0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]


def test_a_cosine_falls_to_zero() -> None:
    rates = [point.lr for point in run(told_apart(), profiler("gatedgcn", collection=True, **FAST)).history]
    assert rates == sorted(rates, reverse=True) and rates[-1] < 0.1 * rates[0]


def test_evaluation_every_so_many_epochs_and_at_the_end() -> None:
    done = run(single(), profiler("gcn", collection=False, width=8, epochs=12), task="node")
    assert [point.epoch for point in done.history] == [0, 5, 10, 11]


def test_nodes_of_a_collection_are_classified_by_graphs() -> None:
    graph = random_collection(graphs=20, seed=3)
    y = (graph.x[:, 0] > 0).long()
    data = replace(graph, y=y), Folds(torch.arange(20) % 2)(0)
    assert run(data, profiler("gcn", collection=True, width=16, epochs=20, lr=1e-2), task="node").val_auroc > 0.8


def test_a_graph_without_labels_is_refused() -> None:
    graph, split = single()
    with pytest.raises(DataError, match="needs labels"):
        run((replace(graph, y=None), split), task="node")


def test_values_are_predicted_and_scored_by_their_concordance() -> None:
    """A regression: the value of a graph is the mean of its first feature."""
    graph, split = told_apart()
    sums = torch.zeros(graph.num_graphs).index_add_(0, graph.owner, graph.x[:, 0])
    valued = replace(graph, y=sums / graph.ptr.diff())
    chosen = profiler("gcn", collection=True, width=16, epochs=30, batch=16, lr=1e-2)
    done = fit_profile(valued, split, chosen, task="graph", classes=1, seed=0)
    assert done.auroc > 0.75
    shifted = fit_profile(replace(valued, y=1000 * valued.y + 5), split, chosen, task="graph", classes=1, seed=0)
    assert shifted.auroc == pytest.approx(done.auroc, abs=0.1)  # neither unit nor origin matters
    same = replace(valued, y=torch.ones(graph.num_graphs))
    with pytest.raises(DataError, match="all the same"):
        fit_profile(same, split, chosen, task="graph", classes=1, seed=0)
    with pytest.raises(DataError, match="tasks are not mixed"):
        check_placeable(valued)
