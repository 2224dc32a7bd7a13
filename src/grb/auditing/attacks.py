"""Which attacks an audit runs, and the strongest edit of them by the metric that counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from torch import Tensor, nn

from grb.attack.auto.ensemble import GraphAutoAttack, members
from grb.attack.auto.member import Member
from grb.attack.base import Attack, AttackContext, Knowledge, run_attack
from grb.attack.build import build_attack
from grb.attack.injection.random_search import InjectionRandomSearch
from grb.attack.modification.prbcd import PRBCD
from grb.attack.modification.random_search import RandomSearch
from grb.auditing.bridges import Bridges
from grb.auditing.curve import value_of
from grb.auditing.victim import answers
from grb.dataset import Dataset
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.metric import Metric
from grb.threat import Injection, Modification, Threat

Effort = Literal["quick", "standard", "thorough"]
UNITS = {"injection": "injected nodes", "modification": "changed edges"}
# questions that an attack may ask a black box, for every budget
QUERIES = {"quick": 150, "standard": 1000, "thorough": 4000}
# attacks that ask through an oracle, which counts
ASKING = ("random-search", "distil")
# beyond this many nodes quick audits leave the attacks out that look at many pairs of nodes
LARGE = 20_000
# of changed edges; it asks for nothing but outputs, and finds pairs of flips that are worth nothing alone
RANDOM_SEARCH = Member("random-search", lambda level: RandomSearch(steps=(200, 1000, 4000)[level]), gradient_free=True)
# members of the ensemble that quick audits run as probes: gradients, and where graphs are small also exact outcomes
PROBES = {
    "small": ("classes-real", "classes-noise-apgd", "fga-masked", "local-search-mixed", "random-search"),
    "large": ("classes-real",),
}
# on large graphs every look at millions of pairs, and every exact outcome, is a pass over the whole graph
LARGE_PR_BCD = PRBCD(steps=10, search_space_size=200_000, refinements=4, pool=2**19)
# a few dozen answers find what gradients on few classes miss: recall of a rare class falls much further
LARGE_INJECTION = InjectionRandomSearch(steps=40)
LARGE_BRIDGES = Bridges(candidates=8, rounds=2)


@dataclass(frozen=True, eq=False)
class Found:
    """The strongest edit of a budget.

    Args:
        edit: What it changes.
        value: The metric under it.
        attack: Name of the attack that found it.
        logits: What the model says under it of all original nodes, [n, classes].
        trials: Every attempt: name, value or reason, CPU seconds.
    """

    edit: GraphEdit
    value: float
    attack: str
    logits: Tensor
    trials: tuple[dict[str, Any], ...]


def check_effort(effort: str) -> None:
    """Refuse an effort that there is not."""
    known = get_args(Effort)
    if effort not in known:
        raise DataError(f"effort is {effort!r}, but {', '.join(known[:-1])} or {known[-1]} is needed")


def candidates(
    scenario: str, effort: str, context: AttackContext, *, black_box: bool, queries: int | None = None
) -> list[tuple[str, Attack]]:
    """Attacks by name: the standard ensemble, or a few of its members as cheap probes; of a black box those that ask.

    Args:
        scenario: ``injection`` or ``modification``.
        effort: ``quick``, ``standard`` or ``thorough``.
        context: What is attacked.
        black_box: Whether the model only answers.
        queries: How often each attack may ask a black box; by effort if None.
    """
    check_effort(effort)
    named = (*members(context), *([RANDOM_SEARCH] if scenario == "modification" else []))
    random = build_attack("rnd" if scenario == "injection" else "dice", "")
    bridges: list[tuple[str, Attack]] = [("bridges", Bridges())] if scenario == "modification" else []
    if black_box:
        asks = QUERIES[effort] if queries is None else queries
        if scenario == "injection":
            asking: list[tuple[str, Attack]] = [("random-search", InjectionRandomSearch(steps=asks))]
        else:
            asking = [("random-search", RandomSearch(steps=asks))]
        if effort != "quick":  # a model of the answers is trained, and attacked by its gradients
            asking.append(("distil", build_attack("distil" if scenario == "injection" else "distil-edges", "")))
        return [*asking, *bridges, ("random", random)]
    if effort == "quick":
        large = context.graph.n > LARGE
        wanted = PROBES["large" if large else "small"]
        chosen = [(each.name, each.build(0)) for each in named if each.name in wanted]
        if large and scenario == "injection":
            chosen.append(("random-search", LARGE_INJECTION))
        if large and scenario == "modification":
            chosen, bridges = [("pr-bcd", LARGE_PR_BCD)], [("bridges", LARGE_BRIDGES)]
        return [*chosen, *bridges, ("random", random)]
    found: list[tuple[str, Attack]] = [("auto", GraphAutoAttack()), *bridges, ("random", random)]
    if effort == "thorough":
        found += [(f"{each.name}, deep", each.build(2)) for each in named]
    return found


def with_budget(threat: Threat, budget: int) -> Threat:
    """The same threat model with another number of injected nodes or changed edges."""
    if isinstance(threat, Injection):
        return replace(threat, nodes=budget)
    return replace(threat, edges=budget, edge_ratio=None)


def strongest(
    attacks: Sequence[tuple[str, Attack]],
    dataset: Dataset,
    model: nn.Module,
    threat: Threat,
    metric: Metric,
    *,
    seed: int,
    victim: nn.Module | None = None,
    pool: Sequence[GraphEdit] = (),
    queries: int | None = None,
) -> Found:
    """Run attacks within a threat model and keep the edit under which the metric is lowest.

    Args:
        attacks: Attacks by name.
        dataset: Its test nodes are the targets; the evaluator's worst case aims at their true labels.
        model: Whose gradients or answers are used.
        threat: What is allowed.
        metric: What counts, higher is better.
        seed: Random seed.
        victim: Who is judged if that is another model: a transfer.
        pool: Edits of smaller budgets, which are allowed within this one.
        queries: How often an attack may ask a black box.
    """
    judged = model if victim is None else victim
    view, y = dataset.attacker_view(), dataset.labels[dataset.index_test]
    found: list[Found] = []
    trials: list[dict[str, Any]] = []

    def judge(edit: GraphEdit, name: str, seconds: float) -> None:
        changed = dataset.graph.apply(edit)
        logits = answers(judged, changed, dataset)
        if len(logits) != changed.n:
            raise DataError(f"the model gives {len(logits)} rows for the {changed.n} nodes of the attacked graph")
        logits = logits[: dataset.num_nodes].clone()
        value = value_of(metric, logits[dataset.index_test], y)
        trials.append({"attack": name, "value": value, "cpu_seconds": round(seconds, 3)})
        found.append(Found(edit, value, name, logits, ()))

    for edit in pool:
        threat.check(dataset.graph, edit, view.targets)
        judge(edit, "smaller budget", 0.0)
    # only the evaluator's own worst case may aim at true labels, and only with the victim's own gradients
    white_box = victim is None and not getattr(model, "is_black_box", False)
    for name, attack in attacks:
        knowledge: Knowledge = "white-box" if white_box else "transfer"
        aims = y if white_box and getattr(attack, "needs_model", True) else None
        limits = threat
        if queries is not None and name in ASKING and getattr(model, "is_black_box", False):
            knowledge, limits = "query", replace(threat, queries=queries)
        context = AttackContext(view, limits, model, knowledge, true_labels=aims)
        start = time.process_time()
        try:
            done = run_attack(attack, context, seed=seed)
            judge(done.edit, name, time.process_time() - start)
        except Exception as error:  # code of others may raise anything on a graph that it has never seen
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            trials.append({"attack": name, "error": reason, "cpu_seconds": round(time.process_time() - start, 3)})
            continue
        if done.queries is not None:
            trials[-1]["queries"] = done.queries
    if not found:
        reasons = "; ".join(f"{trial['attack']}: {trial['error']}" for trial in trials)
        advice = ""
        if isinstance(threat, Injection):
            advice = "; a model made for a fixed number of nodes takes no new ones: scenarios=['modification'] leaves them out"
        raise DataError(f"no attack of the audit can attack this model ({reasons[:200]}){advice}")
    sign = 1.0 if metric.higher_is_better else -1.0
    best = min(found, key=lambda each: sign * each.value)
    return replace(best, trials=tuple(trials))


def largest_threat(scenario: str, dataset: Dataset) -> Threat:
    """The default limits of an audit on the targets of a dataset.

    Injections have the paper's limits per target, features within the range of the data. A modification may change 5 % of the
    graph's edges, and no more edges than the targets have together.
    """
    targets = dataset.index_test
    if scenario == "injection":
        return Injection.inferred(len(targets), dataset.feature_range)
    own = int(dataset.graph.adj.degrees[targets].sum())
    return Modification(edges=max(1, min(int(0.05 * dataset.num_edges), own)))


def default_budgets(threat: Threat, dataset: Dataset, count: int = 5) -> list[int]:
    """Budgets up to the largest, each half of the next; fewer where that is less than one.

    >>> import grb
    >>> default_budgets(Injection(40, 20, (0.0, 1.0)), grb.load_dataset("synth-tiny"))
    [2, 5, 10, 20, 40]
    """
    most = threat.nodes if isinstance(threat, Injection) else threat.budget(dataset.graph)
    return sorted({most // 2**power for power in range(count) if most // 2**power >= 1})
