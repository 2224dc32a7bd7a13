"""How much memory does the injection ensemble take on a graph of flickr's size?

    python benchmarks/worst_case_memory.py [flickr] [--mode full] [--steps 2]

The generated graph of flickr's size (89,250 nodes), the GCN of Table 8 with random weights, limits of Table 12: 600 nodes with
100 edges each. Every member of the ensemble runs at every level of effort with steps, rounds and queries cut to ``--steps``:
memory does not depend on how often a step is made, and every kind of step is made with the whole graph, all targets and all
injected nodes. One CSV row with the peak of the process, the graph's own share included, which is measured before the race.
"""

from __future__ import annotations

from dataclasses import fields, replace

from common import options, peak_gigabytes, row, sized_dataset, started, untrained

from grb.attack.auto import ensemble, injection
from grb.attack.auto.member import Member
from grb.attack.base import Attack, AttackContext, run_attack
from grb.threat import Injection

COUNTS = ("steps", "rewirings", "refine")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("size", nargs="?", default="flickr")
    parser.add_argument("--mode", default="full")
    parser.add_argument("--steps", type=int, default=2)
    arguments = started(parser)
    dataset = sized_dataset(arguments.size)
    model, limits = untrained("gcn", dataset), Injection.preset(dataset.name, arguments.mode)
    before = peak_gigabytes()

    def short(member: Member) -> Member:
        def build(level: int) -> Attack:
            attack = member.build(level)
            counts = {each.name: arguments.steps for each in fields(attack) if each.name in COUNTS}  # type: ignore[arg-type]
            return replace(attack, **counts)  # type: ignore[type-var]

        return replace(member, build=build)

    shortened = tuple(map(short, injection.MEMBERS))
    ensemble.members = lambda context: shortened
    context = AttackContext(dataset.attacker_view(arguments.mode), limits, model, "white-box")
    result = run_attack(ensemble.GraphAutoAttack(), context, seed=0)
    failed = [trial.name for trial in result.trials if trial.error]
    row(
        size=arguments.size,
        mode=arguments.mode,
        nodes=limits.nodes,
        targets=len(context.targets),
        trials=len(result.trials),
        failed=" ".join(failed) or "none",
        passes=result.passes.forward,
        cpu_s=result.cpu_seconds,
        data_gb=before,
        peak_gb=peak_gigabytes(),
    )


if __name__ == "__main__":
    main()
