"""Rules that every attack, model, defense and perturbation must keep, each with a check on small data."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from grb.attack.base import AttackContext, run_attack
from grb.attack.build import scenario_of
from grb.dataset import Dataset, load_dataset
from grb.dataset.view import View
from grb.errors import GRBError
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.model.base import GraphModel, evaluating, predict, prepare, run_stages
from grb.threat import Injection, Modification, Threat

Kind = Literal["attack", "model", "defense", "perturbation"]
Checks = tuple[Callable[[], None], ...]
# random graphs on which an attack must keep its limits
GRAPHS = 12
RULES: Mapping[Kind, tuple[str, ...]] = {
    "attack": (
        "runs and returns an edit",
        "keeps the limits and leaves graph and model as they were",
        "gives the same edit for the same seed",
        "keeps the limits on small graphs with isolated nodes",
    ),
    "model": (
        "runs and gives a row of logits for every node",
        "gives finite logits",
        "leaves its input alone",
        "is deterministic in evaluation",
        "has gradients at every parameter",
        "has gradients at the features",
        "does not know the order of nodes",
        "has stages that do what its forward pass does, or none",
        "comes back from a file",
    ),
    "defense": (
        "runs and returns a model",
        "gives the same model for the same seed",
        "is deterministic in evaluation",
        "leaves the graph and the global generator alone",
        "learns something",
    ),
    "perturbation": (
        "runs and returns a graph",
        "keeps every node",
        "leaves its input alone",
        "gives the same graph for the same seed",
        "gives finite features",
        "keeps the labels",
    ),
}


class Broken(Exception):
    """A rule that is not kept; carries the sentence."""


def _need(holds: bool, sentence: str) -> None:
    if not holds:
        raise Broken(sentence)


# attacks


def attack_checks(attack: Any) -> Checks:
    """Checks of an attack, in the order of its rules."""
    dataset = load_dataset("synth-tiny")
    model = _trained(dataset)
    usual = _threat(attack, dataset)

    def context(view: View | None = None, threat: Threat | None = None) -> AttackContext:
        return AttackContext(view or dataset.attacker_view("full"), threat or usual, model, "white-box")

    def runs() -> None:
        edit = attack(context(), generator=torch.Generator().manual_seed(0))
        _need(isinstance(edit, GraphEdit), f"it returns a {type(edit).__name__}, but a GraphEdit is needed")

    def checked() -> None:
        run_attack(attack, context(), seed=0)

    def repeated() -> None:
        first, again = (run_attack(attack, context(), seed=3).edit for _ in range(2))
        _need(_same_edits(first, again), "the same seed gives two different edits; draw from the generator alone")

    def limits() -> None:
        for number in range(GRAPHS):
            graph, targets = _random_graph(number)
            small: Threat = (
                Injection(1 + number % 3, 1 + number % 2, (-1.0, 1.0))
                if isinstance(usual, Injection)
                else Modification(edges=number % 4)
            )
            view = _view(graph, targets)
            fitting = _fitting(graph)
            try:
                run_attack(attack, AttackContext(view, small, fitting, "white-box"), seed=number)
            except GRBError as error:
                raise Broken(
                    f"on a graph of {graph.n} nodes and {graph.num_edges} edges under {small}: {error}"
                ) from None

    return runs, checked, repeated, limits


def _threat(attack: Any, dataset: Dataset) -> Threat:
    try:
        modification = scenario_of(attack) == "modification"
    except (GRBError, AttributeError, TypeError):
        modification = False
    return Modification(edge_ratio=0.05) if modification else Injection.preset(dataset.name, "full")


def _same_edits(first: GraphEdit, second: GraphEdit) -> bool:
    pairs = ((getattr(first, name), getattr(second, name)) for name in ("add", "drop", "new_x", "set_ids", "set_x"))
    return all((a is None) == (b is None) and (a is None or torch.equal(a, b)) for a, b in pairs)


def _random_graph(seed: int) -> tuple[Graph, Tensor]:
    """Up to 16 nodes, some of them without an edge."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 17))
    pairs = (
        np.array([(u, v) for u in range(n) for v in range(u) if random.random() < 0.2], dtype=np.int64).reshape(-1, 2).T
    )
    adj, _ = adjacency_from_edges(pairs, n)
    x = torch.from_numpy(random.uniform(-1, 1, (n, 3)).astype(np.float32))
    return Graph(adj, x, torch.from_numpy(random.integers(0, 2, n))), torch.arange(int(random.integers(1, n + 1)))


def _view(graph: Graph, targets: Tensor) -> View:
    none = torch.empty(0, dtype=torch.int64)
    known = torch.arange(len(targets), graph.n)
    return View(graph, known, none, targets, torch.arange(graph.n), 2, inductive=False)


def _fitting(graph: Graph) -> nn.Module:
    from grb.model.torch import GCN

    return GCN(graph.num_features, 2, hidden_features=[4], generator=torch.Generator().manual_seed(0)).eval()


def _trained(dataset: Dataset) -> nn.Module:
    from grb.defense import build_defense

    return build_defense("gcn", dataset.name, epochs=20).fit(dataset.defender_view(), seed=0)


# models


def model_checks(maker: Callable[..., nn.Module]) -> Checks:
    """Checks of a model's class, in the order of its rules."""
    dataset = load_dataset("synth-tiny")
    graph, classes = dataset.graph, dataset.num_classes
    assert isinstance(graph.x, Tensor)
    x = graph.x
    made: list[nn.Module] = []

    def runs() -> None:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            model = maker(graph.num_features, classes)
        _need(isinstance(model, nn.Module), f"it makes a {type(model).__name__}, but an nn.Module is needed")
        logits = predict(model, graph)
        _need(isinstance(logits, Tensor), f"it gives a {type(logits).__name__}, but a tensor is needed")
        shape = list(logits.shape)
        _need(shape == [graph.n, classes], f"it gives logits of shape {shape}, but {[graph.n, classes]} is needed")
        made.append(model)

    def finite() -> None:
        _need(bool(torch.isfinite(predict(made[0], graph)).all()), "a logit of the clean graph is NaN or infinite")

    def steady() -> None:
        first, again = predict(made[0], graph), predict(made[0], graph)
        _need(torch.equal(first, again), "two evaluations of one graph differ; evaluation must not draw or remember")

    def unchanged() -> None:
        before = x.clone()
        predict(made[0], graph)
        same = torch.equal(before, x)
        x.copy_(before)
        _need(same, "it changes its input in place; it must copy what it wants to change")

    def trained() -> None:
        model = made[0].train()
        model.zero_grad()
        model(x, prepare(model, graph.adj)).square().sum().backward()
        dead = [name for name, value in model.named_parameters() if value.requires_grad and value.grad is None]
        model.zero_grad()
        _need(not dead, f"no gradient reaches the parameter '{dead[0] if dead else ''}'")

    def attacked() -> None:
        leaf = x.clone().requires_grad_()
        with evaluating(made[0]), torch.enable_grad():
            out = made[0](leaf, prepare(made[0], graph.adj))
        _need(out.requires_grad, "its logits have no gradient with respect to the features in evaluation mode")
        gradient: Tensor | None = torch.autograd.grad(out.sum(), leaf, allow_unused=True)[0]
        sentence = "no gradient reaches the features in evaluation mode; is there a detach()?"
        _need(gradient is not None and bool((gradient != 0).any()), sentence)

    def equivariant() -> None:
        order = torch.randperm(graph.n, generator=torch.Generator().manual_seed(1))
        position = torch.empty_like(order)
        position[order] = torch.arange(graph.n)
        adj, _ = adjacency_from_edges(position[graph.adj.edges()].numpy(), graph.n)
        moved = predict(made[0], Graph(adj, x[order], None))
        same = torch.allclose(moved, predict(made[0], graph)[order], atol=1e-3, rtol=1e-3)
        _need(same, "nodes in another order get other logits; a model must not know the order")

    def staged() -> None:
        stages = getattr(made[0], "stages", lambda: None)()
        if stages is None:
            return
        wanted = predict(made[0], graph)
        with evaluating(made[0]), torch.no_grad():
            logits = run_stages(stages, x, prepare(made[0], graph.adj))
        same = logits.shape == wanted.shape and torch.allclose(logits, wanted, atol=1e-3, rtol=1e-3)
        sentence = (
            "stages() gives other logits than forward, and attacks see the stages; let it do the same, or return None"
        )
        _need(same, sentence)

    def saved() -> None:
        from grb.trainer.checkpoint import load_model, save_model

        model = made[0]
        if not isinstance(model, GraphModel):
            return
        code = f"{type(model).__module__}:{type(model).__qualname__}"
        if not getattr(model, "name", ""):
            model.name = code
        with tempfile.TemporaryDirectory() as folder:
            path = save_model(model, Path(folder) / "model.safetensors")
            again = load_model(path, trusted=model.name if ":" in model.name else None)
        if type(again) is not type(model):
            own, other = type(model).__name__, type(again).__name__
            advice = f'give the class {own} a name of its own: name = "{code}"'
            raise Broken(f"it is saved as '{model.name}' and comes back as a {other}; {advice}")
        _need(torch.equal(predict(again, graph), predict(model, graph)), "a saved and loaded model gives other logits")

    return runs, finite, unchanged, steady, trained, attacked, equivariant, staged, saved


# defenses


def defense_checks(defense: Any) -> Checks:
    """Checks of a defense, in the order of its rules."""
    dataset = load_dataset("synth-tiny")
    view = dataset.defender_view()
    made: list[nn.Module] = []

    def runs() -> None:
        model = defense.fit(view, seed=0)
        _need(isinstance(model, nn.Module), f"fit returns a {type(model).__name__}, but an nn.Module is needed")
        shape, wanted = list(predict(model, dataset.graph).shape), [dataset.graph.n, dataset.num_classes]
        _need(shape == wanted, f"its model gives logits of shape {shape}, but {wanted} is needed")
        made.append(model)

    def repeated() -> None:
        again = predict(defense.fit(view, seed=0), dataset.graph)
        _need(torch.equal(again, predict(made[0], dataset.graph)), "fit with the same seed gives two different models")

    def steady() -> None:
        first, again = predict(made[0], dataset.graph), predict(made[0], dataset.graph)
        _need(torch.equal(first, again), "two evaluations of one graph differ")

    def still() -> None:
        before = view.graph.fingerprint()
        state = torch.random.get_rng_state()
        defense.fit(view, seed=1)
        _need(view.graph.fingerprint() == before, "fit changes the graph that it was given")
        same = torch.equal(state, torch.random.get_rng_state())
        _need(same, "fit draws from torch's global generator; use torch.Generator().manual_seed(seed)")

    def learns() -> None:
        known = torch.cat([dataset.index_train, dataset.index_val])
        labels = dataset.labels[known]
        share = float((predict(made[0], dataset.graph)[known].argmax(1) == labels).double().mean())
        most = float(torch.bincount(labels).max()) / len(labels)
        _need(
            share > most,
            f"it gets {share:.2f} of the known labels right, no more than the commonest class ({most:.2f})",
        )

    return runs, repeated, steady, still, learns


# perturbations


def perturbation_checks(perturbation: Any) -> Checks:
    """Checks of a perturbation, in the order of its rules."""
    dataset = load_dataset("synth-tiny")
    graph = dataset.graph

    def fresh() -> Graph:
        """A copy, so that one defect does not hide another."""
        assert isinstance(graph.x, Tensor)
        return Graph(graph.adj, graph.x.clone(), None if graph.y is None else graph.y.clone())

    def drawn(seed: int) -> Graph:
        made: Graph = perturbation(fresh(), torch.Generator().manual_seed(seed))
        return made

    def runs() -> None:
        made = drawn(0)
        _need(isinstance(made, Graph), f"it returns a {type(made).__name__}, but a Graph is needed")

    def nodes() -> None:
        _need(drawn(0).n == graph.n, f"it leaves {drawn(0).n} of {graph.n} nodes, but must keep all")

    def pure() -> None:
        graph_given, kept = fresh(), fresh()
        perturbation(graph_given, torch.Generator().manual_seed(0))
        assert isinstance(graph_given.x, Tensor) and isinstance(kept.x, Tensor)
        same = torch.equal(graph_given.x, kept.x) and graph_given.fingerprint() == kept.fingerprint()
        _need(same, "it changes the graph that it was given")

    def repeated() -> None:
        first, again = drawn(5), drawn(5)
        same = first.fingerprint() == again.fingerprint()
        _need(same, "the same seed gives two different graphs; draw from the generator alone")

    def finite() -> None:
        x = drawn(0).x
        values = x if isinstance(x, Tensor) else x.values
        _need(values is None or bool(torch.isfinite(values).all()), "a feature is NaN or infinite")

    def labels() -> None:
        made = drawn(0)
        same = (made.y is None) == (graph.y is None) and (graph.y is None or torch.equal(made.y, graph.y))  # type: ignore[arg-type]
        _need(same, "it changes the labels")

    return runs, nodes, pure, repeated, finite, labels
