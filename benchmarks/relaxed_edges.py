"""Are PR-BCD and PGD on weights of edges as strong as greedy gradients for the same CPU time?

    GRB_DATA=... python benchmarks/relaxed_edges.py [--splits 1]

Cora's largest component (benchmarks/citation.py), GCN of 64 with dropout .9, 5 % of the edges, true labels. Printed are what is
left of the accuracy and CPU seconds: FGA with fresh gradients after 32, 8 and every flip, PR-BCD and PGD as tuned and with the
papers' constants.
"""

from __future__ import annotations

from citation import SPLITS, accuracy, largest_component, trained, victims
from common import options, row, started

import grb
from grb.attack.base import Attack
from grb.attack.losses import masked_cross_entropy
from grb.attack.modification import FGA, PRBCD, TopologyPGD
from grb.threat import Modification

ATTACKS: dict[str, Attack] = {
    "FGA, refresh 32": FGA(loss=masked_cross_entropy, refresh=32),
    "FGA, refresh 8": FGA(loss=masked_cross_entropy, refresh=8),
    "FGA": FGA(loss=masked_cross_entropy),
    "PR-BCD, 20 steps": PRBCD(steps=20, search_space_size=200_000),
    "PR-BCD": PRBCD(),
    "PR-BCD, paper": PRBCD.paper(),
    "PGD": TopologyPGD(),
    "PGD, paper": TopologyPGD.paper(),
}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--splits", type=int, default=1)
    arguments = started(parser)
    for split in range(arguments.splits):
        dataset = largest_component("cora", SPLITS[split])
        model = trained(victims("cora")["gcn"], dataset, split)
        for name, attack in ATTACKS.items():
            threat = Modification(edge_ratio=0.05)
            result = grb.run_attack(attack, model, dataset, threat=threat, labels="true", seed=split)
            row(
                split=split,
                attack=name,
                clean=accuracy(model, dataset),
                left=accuracy(model, dataset, result),
                cpu_s=result.cpu_seconds,
                forward=result.passes.forward,
                backward=result.passes.backward,
            )


if __name__ == "__main__":
    main()
