"""How much memory do the ensembles take on a graph of flickr's size, and what do they cost?

    python benchmarks/worst_case_memory.py [flickr] [--scenario injection] [--mode full] [--steps 2] [--edges 1000]

The generated graph of flickr's size (89,250 nodes), the GCN of Table 8 with random weights. Injection: limits of Table 12, 600
nodes with 100 edges each; modification: ``--edges`` changed edges. Every member of the ensemble runs at every level of effort
with steps, rounds and queries cut to ``--steps``: memory does not depend on how often a step is made, and every kind of step is
made with the whole graph, all targets and, for injections, all injected nodes. One CSV row with the peak of the process, the
graph's own share included, which is measured before the race.
"""

from __future__ import annotations

from dataclasses import fields, replace

from common import options, peak_gigabytes, row, sized_dataset, started, untrained

from grb.attack.auto import ensemble, injection, modification
from grb.attack.auto.member import Member
from grb.attack.base import Attack, AttackContext, run_attack
from grb.threat import Injection, Modification

COUNTS = ("steps", "rewirings", "refine", "rounds", "refinements")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("size", nargs="?", default="flickr")
    parser.add_argument("--scenario", choices=("injection", "modification"), default="injection")
    parser.add_argument("--mode", default="full")
    parser.add_argument("--edges", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=2)
    arguments = started(parser)
    dataset = sized_dataset(arguments.size)
    model, injecting = untrained("gcn", dataset), arguments.scenario == "injection"
    limits = Injection.preset(dataset.name, arguments.mode) if injecting else Modification(edges=arguments.edges)
    before = peak_gigabytes()

    def short(member: Member) -> Member:
        def build(level: int) -> Attack:
            attack = member.build(level)
            counts = {each.name: arguments.steps for each in fields(attack) if each.name in COUNTS}  # type: ignore[arg-type]
            return replace(attack, **counts)  # type: ignore[type-var]

        return replace(member, build=build)

    shortened = tuple(map(short, injection.MEMBERS if injecting else modification.MEMBERS))
    ensemble.members = lambda context: shortened
    context = AttackContext(dataset.attacker_view(arguments.mode), limits, model, "white-box")
    auto = ensemble.GraphAutoAttack() if injecting else ensemble.EdgeAutoAttack()
    result = run_attack(auto, context, seed=0)
    failed = [trial.name for trial in result.trials if trial.error]
    row(
        size=arguments.size,
        mode=arguments.mode,
        scenario=arguments.scenario,
        budget=limits.nodes if isinstance(limits, Injection) else arguments.edges,
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
