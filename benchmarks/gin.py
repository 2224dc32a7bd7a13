"""Why is GIN so much better on grb-cora here than printed? What each suspect costs, measured along the same trainings.

    python benchmarks/gin.py [--dataset grb-cora] [--models gin,gin+ln] [--seeds 5] [--epochs 1000] [--at-epochs 1000]

Every training goes on to the last epoch and keeps the test accuracy of all its epochs, so that rules of stopping and choosing
are compared on the same weights: our rule, the lowest validation loss (which the original stops by), the last epoch. Other
rows train anew with one thing changed. Adversarial training is done twice, the second time as the original does: its attack
leaves the model in evaluation mode, so dropout and batch statistics stand still from the first attack on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from common import options, started
from torch import Tensor, nn

import grb
from grb.dataset import Dataset
from grb.defense.adversarial import AdversarialTraining
from grb.defense.base import Training
from grb.defense.build import build_defense
from grb.metric import mean_std
from grb.model.base import evaluating, prepare
from grb.model.build import build
from grb.trainer import fit


@dataclass(frozen=True)
class Course:
    """A training: validation score and loss, and test accuracy, of every epoch."""

    score: Tensor
    loss: Tensor
    test: Tensor

    def chosen(self, epoch: Tensor | int) -> float:
        return 100 * float(self.test[epoch])

    def until(self, patience: int) -> Course:
        """What is seen by whoever stops after so many epochs without a lower validation loss."""
        best = self.loss.cummin(0).indices
        over = (torch.arange(len(best)) - best >= patience).nonzero()
        end = int(over[0]) + 1 if len(over) else len(best)
        return Course(self.score[:end], self.loss[:end], self.test[:end])


def as_it_is(model: nn.Module) -> None:
    pass


def course(defense: Training, dataset: Dataset, seed: int, change: Callable[[nn.Module], None] = as_it_is) -> Course:
    """Train to the last epoch; ``change`` is done to the model in front."""
    view = dataset.defender_view()
    generator = torch.Generator().manual_seed(seed)
    model = build(defense.settings, view.graph.num_features, view.num_classes, generator)
    change(model)
    graph, ids = dataset.graph, dataset.split.test["full"]
    assert graph.y is not None
    op, y = prepare(model, graph.adj), graph.y[ids]
    rows: list[tuple[float, float, float]] = []

    def on_epoch(epoch: grb.trainer.Epoch) -> None:
        with evaluating(model):
            right = (model(graph.x, op)[ids].argmax(1) == y).float().mean()
        assert epoch.val_score is not None and epoch.val_loss is not None
        rows.append((epoch.val_score, epoch.val_loss, float(right)))

    optimizer = torch.optim.Adam(model.parameters(), lr=defense.settings.lr)
    epochs = defense.settings.epochs
    fit(model, view, optimizer=optimizer, epochs=epochs, generator=generator, on_epoch=on_epoch, **defense.options())
    return Course(*torch.tensor(rows, dtype=torch.float64).T)


def frozen_after(steps: int) -> Callable[[nn.Module], None]:
    """The model enters training mode so many times and never again, as in the original's adversarial training."""

    def change(model: nn.Module) -> None:
        plain, count = model.train, [0]

        def train(mode: bool = True) -> nn.Module:
            count[0] += mode
            return plain(mode and count[0] <= steps)

        model.train = train  # type: ignore[method-assign]

    return change


def without_batch_norm(model: nn.Module) -> None:
    for conv in model.convs:  # type: ignore[union-attr]
        conv.batch_norm = nn.Identity()  # type: ignore[union-attr]


def report(name: str, values: list[float]) -> None:
    mean, std = mean_std(values)
    print(f"{name:58} {mean:6.2f} ± {std:.2f}", flush=True)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--dataset", default="grb-cora")
    parser.add_argument("--models", default="gin,gin+ln")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--at-epochs", type=int, default=1000)
    arguments = started(parser)
    dataset = grb.load_dataset(arguments.dataset)
    seeds = range(arguments.seeds)
    for name in filter(None, arguments.models.split(",")):
        plain = build_defense(name, dataset.name, epochs=arguments.epochs)
        courses = [course(plain, dataset, seed) for seed in seeds]
        report(f"{name}, best validation score (ours)", [run.chosen(run.score.argmax()) for run in courses])
        report(f"{name}, lowest validation loss", [run.chosen(run.loss.argmin()) for run in courses])
        for patience in (20, 100):
            cut = [run.until(patience) for run in courses]
            report(
                f"{name}, loss not lower for {patience} epochs, best score",
                [run.chosen(run.score.argmax()) for run in cut],
            )
            report(f"{name}, loss not lower for {patience} epochs, last", [run.chosen(-1) for run in cut])
        for epoch in sorted({min(epoch, arguments.epochs) for epoch in (50, 200, arguments.epochs)}):
            report(f"{name}, epoch {epoch}", [run.chosen(epoch - 1) for run in courses])
        for title, settings, change in (
            ("without dropout", {"dropout": 0.0}, as_it_is),
            ("without batch norm", {}, without_batch_norm),
            ("learning rate 0.001", {"lr": 0.001}, as_it_is),
        ):
            other = build_defense(name, dataset.name, epochs=arguments.epochs, **settings)
            runs = [course(other, dataset, seed, change) for seed in seeds]
            report(f"{name}, {title}, best validation score", [run.chosen(run.score.argmax()) for run in runs])
            report(f"{name}, {title}, last epoch", [run.chosen(-1) for run in runs])
    for title, name, settings, left in (
        ("ours", "gin+at", {}, False),
        ("without dropout", "gin+at", {"dropout": 0.0}, False),
        ("training mode left at the first attack", "gin+at", {}, True),
        ("the same over the whole range", "gin+at-full", {"epochs": min(400, arguments.at_epochs)}, True),
    ):
        defense = build_defense(name, dataset.name, **{"epochs": arguments.at_epochs, **settings})
        assert isinstance(defense, AdversarialTraining)
        if left:
            defense = replace(defense, warm_up=0)
        runs = [course(defense, dataset, seed, frozen_after(1) if left else as_it_is) for seed in seeds]
        start = defense.clean_epochs
        report(f"gin+at, {title}, best score", [run.chosen(start + int(run.score[start:].argmax())) for run in runs])
        report(f"gin+at, {title}, last epoch", [run.chosen(-1) for run in runs])


if __name__ == "__main__":
    main()
