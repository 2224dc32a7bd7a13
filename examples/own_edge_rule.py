"""An edge rule of your own, in an attack of your own, judged by the same threat model as the famous ones."""

from __future__ import annotations

import torch
from torch import Tensor

import grb
from grb.attack.injection import FGSM, TargetState
from grb.attack.injection.edges import defective_edges, random_edges


def most_confident(site: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """Join the targets that the model is surest about, in turn, so that no one is joined twice before all are."""
    assert site.probs is not None
    order = site.probs.max(dim=1).values.argsort(descending=True)
    places = torch.arange(count * site.width) % len(order)
    return site.join(order[places].view(count, site.width))


def main() -> None:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, seed=0, epochs=60)
    print(f"{'no attack':<16} {grb.evaluate(model, dataset)}")
    for rule in (random_edges, defective_edges, most_confident):
        attack = FGSM(step_size=0.05, steps=50, edges=rule)
        result = grb.run_attack(attack, model, dataset, mode="full")
        print(f"{rule.__name__:<16} {grb.evaluate(model, dataset, result)}")


if __name__ == "__main__":
    main()
