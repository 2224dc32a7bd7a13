"""How many graphs fall to an attacker who may ask about each of them so many times?

    OMP_NUM_THREADS=1 python benchmarks/graph_queries.py [--datasets mutag] [--methods grabnel,rl-s2v] [--queries 10,20,40]

A ``gin-pool`` is trained on every dataset (seed: the repeat), and every test graph may lose or gain 5 % of its edges, at
least one. ``used`` is the mean number of queries per graph: GRABNEL and RL-S2V stop where a label is lost. ``accuracy`` is
with true labels, in per cent.
"""

from __future__ import annotations

import time

from common import options, row, started

import grb
from grb.threat import Modification


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--datasets", default="mutag")
    parser.add_argument("--methods", default="grabnel,rl-s2v,random-search,eva")
    parser.add_argument("--queries", default="10,20,40")
    parser.add_argument("--answers", default="scores,labels")
    parser.add_argument("--ratio", type=float, default=0.05)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = started(parser)
    for name in arguments.datasets.split(","):
        dataset = grb.load_dataset(name)
        count = len(dataset.test_ids("full"))
        for repeat in range(arguments.repeats):
            model = grb.train("gin-pool", dataset, seed=repeat)
            clean = round(100 * grb.evaluate(model, dataset)["full"], 2)
            for method in arguments.methods.split(","):
                for queries in map(int, arguments.queries.split(",")):
                    for answers in arguments.answers.split(","):
                        threat = Modification(edge_ratio=arguments.ratio, queries=queries * count, answers=answers)
                        begun = time.process_time()
                        result = grb.run_attack(method, model, dataset, threat=threat, knowledge="query", seed=repeat)
                        row(
                            dataset=name,
                            graphs=count,
                            ratio=arguments.ratio,
                            method=method,
                            queries=queries,
                            answers=answers,
                            repeat=repeat,
                            used=round((result.queries or 0) / count, 1),
                            clean=clean,
                            accuracy=round(100 * grb.evaluate(model, dataset, result)["full"], 2),
                            cpu=round(time.process_time() - begun, 1),
                        )


if __name__ == "__main__":
    main()
