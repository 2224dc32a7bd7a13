"""Nettack: edges and words around single targets, by exact margins of a linear surrogate, where nobody would notice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from grb.attack.base import AttackContext
from grb.attack.losses import margin
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.two_hop import TwoHop
from grb.attack.modification.unnoticeable import CoOccurrence, DegreeTest, is_binary
from grb.errors import DataError
from grb.graph import GraphEdit, dense, normalise
from grb.model.base import predict
from grb.target_limits import PerTarget, parsed_per_target, target_limits

# training of the surrogate: the usual values for a GCN
EPOCHS, RATE, DECAY = 200, 0.01, 5e-4


@dataclass(frozen=True, kw_only=True)
class Nettack(Limits):
    r"""Flip the pair or the word that lowers one target's margin most, again and again, for every target.

    A linear surrogate :math:`Z = \hat A^2 X W` is fitted to the labels of the training nodes. For every target :math:`u` with
    the label :math:`y`, in the order of their margins, the flip with the smallest margin
    :math:`z'_{u,y} - \max_{c \ne y} z'_{u,c}` is made until the target's budget is spent; the margins of all candidates are
    exact (:mod:`~grb.attack.modification.two_hop`). A flip must pass the test of degrees and may not take a node's last edge;
    a word must go with the words of its node (:mod:`~grb.attack.modification.unnoticeable`). Targets are attacked one after
    another on one graph, and a pair is flipped once at most.

    Args:
        flips: Budget of one target, ``k`` or ``(f, k)`` for f times its degree plus k; the threat model's ``per_target`` counts
            too where it has one.
        direct: Flip pairs and words of the target itself; otherwise of its influencers, leaving all targets as they are.
        influencers: Number of influencers: neighbours whose loss would lower the margin most, then nodes that would lower it
            most as new neighbours.
        structure: Whether edges are flipped.
        features: Whether words are flipped, as far as the threat model lets features change and the features are 0 or 1.
        imitate: Fit the surrogate to what the model says of all nodes instead, as is done where no training labels are visible.
        degree_test: ``target``: degrees are compared with the clean ones after the flips for one target, as if it were the only
            one; ``joint``: after all flips so far; ``off``.

    References:
        Zügner, Akbarnejad and Günnemann, *Adversarial Attacks on Neural Networks for Graph Data*, KDD 2018. Theirs attacks one
        target alone, knows its true label, and compares words by first-order changes with the strongest other class held fixed;
        here the label is what the surrogate or the model says, and both kinds of margins are exact. A flip that would raise the
        margin is not made here.
    """

    flips: PerTarget = (1.0, 2)
    direct: bool = True
    influencers: int = 5
    structure: bool = True
    features: bool = True
    imitate: bool = False
    degree_test: str = "target"
    version = 1
    needs_model = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "flips", parsed_per_target(self.flips))
        if self.influencers < 1:
            raise DataError(f"influencers is {self.influencers}, but at least 1 is needed")
        if self.degree_test not in ("target", "joint", "off"):
            raise DataError(f"degree_test is {self.degree_test!r}, but 'target', 'joint' or 'off' is needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Attack the targets one after another."""
        state = SearchState.of(context, everywhere=True)
        words = context.modification.feature_nodes > 0 and self.features
        if not len(context.targets) or (state.left <= 0 and not words):
            return state.edit
        if context.graph.adj.values is not None:
            raise DataError("nettack counts edges, but this graph has edge weights; give it the graph without them")
        return _Attack(self, context, state)()


def fit_linear(context: AttackContext, *, imitate: bool = False) -> Tensor:
    """Weights of the linear surrogate, [d, classes]: logistic regression on features propagated twice."""
    graph, train, model = context.graph, context.view.train, context.model
    rows, y = dense(graph.x), graph.y
    if y is not None and y.dim() == 1 and len(train) and not (imitate and model is not None):
        nodes, labels = train, y[train]
    elif model is not None:
        nodes, labels = torch.arange(graph.n), predict(model, graph).argmax(1)
    else:
        raise DataError("nettack fits a surrogate, but the view shows no training nodes with labels; give it a model")
    classes = max(context.view.num_classes, int(labels.max()) + 1, 2)
    if model is not None:  # which may have more classes than the view shows
        classes = max(classes, predict(model, graph).shape[1])
    op = normalise.gcn(graph.adj)
    rows = (op @ (op @ rows))[nodes]
    return _logistic(rows, functional.one_hot(labels, classes).to(rows.dtype))


def _logistic(rows: Tensor, wanted: Tensor) -> Tensor:
    """Weights of a logistic regression by Adam with weight decay, from zero, [d, classes]; its gradient is written out."""
    weight = torch.zeros(rows.shape[1], wanted.shape[1], dtype=rows.dtype)
    mean, square = torch.zeros_like(weight), torch.zeros_like(weight)
    for step in range(1, EPOCHS + 1):
        slope = rows.T @ (torch.softmax(rows @ weight, dim=1) - wanted) / len(rows) + DECAY * weight
        mean.lerp_(slope, 0.1)
        square.lerp_(slope.square(), 0.001)
        scale = (square / (1 - 0.999**step)).sqrt_().add_(1e-8)
        weight.addcdiv_(mean, scale, value=-RATE / (1 - 0.9**step))
    return weight


@dataclass(frozen=True)
class _Flip:
    """The best flip found: the margin after it, and a pair of nodes, or a node and a word."""

    margin: float
    node: int
    other: int
    is_word: bool = False


class _Attack:
    def __init__(self, attack: Nettack, context: AttackContext, state: SearchState) -> None:
        self.attack, self.context, self.state = attack, context, state
        graph, threat = context.graph, context.modification
        self.weight = fit_linear(context, imitate=attack.imitate).double()
        x = graph.x
        self.linear = TwoHop(
            graph.adj, x.double() @ self.weight if isinstance(x, Tensor) else dense(x).double() @ self.weight
        )
        self.degrees = DegreeTest(graph.adj.degrees)
        self.left = state.left
        self.room = (
            None
            if threat.per_node is None
            else replace(threat, per_target=None, edges=0, edge_ratio=None).node_limits(graph)
        )
        self.is_target = torch.zeros(graph.n, dtype=torch.bool)
        self.is_target[context.targets] = True
        self.pairs: list[tuple[int, int]] = []
        self.rows: dict[int, Tensor] = {}
        self.word_rows = threat.feature_nodes if attack.features and self._words_may_change() else 0
        self.links = CoOccurrence.of(x) if self.word_rows else None

    def _words_may_change(self) -> bool:
        limits = self.context.modification.feature_range
        fits = limits is not None and limits[0] <= 0 and limits[1] >= 1
        return fits and self.context.modification.feature_nodes > 0 and is_binary(self.context.graph.x)

    def __call__(self) -> GraphEdit:
        context, targets = self.context, self.context.targets
        logits = torch.stack([self.linear.logits(node) for node in targets.tolist()])
        model = context.model
        said = logits if model is None else predict(model, context.graph)[targets]
        labels = context.aimed_labels(said)
        margins = -margin(logits, labels)
        limits = target_limits(self.attack.flips, context.graph, targets)
        if context.modification.per_target is not None:
            limits = limits.minimum(target_limits(context.modification.per_target, context.graph, targets))
        for at in margins.argsort(stable=True).tolist():
            margins[at] = self._target(int(targets[at]), int(labels[at]), float(margins[at]), int(limits[at]))
            context.report(-float(margins.mean()), float((margins > 0).double().mean()))
        edit = finished(context, self.state.flip(torch.tensor(self.pairs, dtype=torch.int64).view(-1, 2).T))
        if not self.rows:
            return edit
        rows = torch.stack([self.rows[node] for node in sorted(self.rows)])
        return replace(edit, set_ids=torch.tensor(sorted(self.rows)), set_x=rows)

    def _target(self, node: int, label: int, now: float, limit: int) -> float:
        """Spend a target's budget; the margin afterwards."""
        if self.attack.degree_test == "target":
            self.degrees.reset()
        around = [node] if self.attack.direct else self._influencers(node, label)
        for _ in range(limit):
            found = [
                flip for flip in (self._best_pair(node, label, around), self._best_word(node, label, around)) if flip
            ]
            best = min(found, key=lambda flip: flip.margin, default=None)
            if best is None or not best.margin < now:
                break
            (self._flip_word if best.is_word else self._flip_pair)(best)
            now = best.margin
        return now

    def _flip_pair(self, flip: _Flip) -> None:
        d = self.linear.d
        first, second = float(d[flip.node]) - 1, float(d[flip.other]) - 1
        self.linear.flip(flip.node, flip.other)
        self.degrees.flip(first, second, float(d[flip.node]) - 1 - first)
        self.pairs.append((flip.node, flip.other))
        self.left -= 1
        if self.room is not None:
            self.room[[flip.node, flip.other]] -= 1

    def _flip_word(self, flip: _Flip) -> None:
        row = self._row(flip.node).clone()
        row[flip.other] = 1 - row[flip.other]
        self.rows[flip.node] = row
        self.linear.set_row(flip.node, row.double() @ self.weight)

    def _row(self, node: int) -> Tensor:
        x = self.context.graph.x
        clean = x[node] if isinstance(x, Tensor) else x.rows(torch.tensor([node])).dense()[0]
        return self.rows.get(node, clean)

    def _best_pair(self, node: int, label: int, around: list[int]) -> _Flip | None:
        if not self.attack.structure or self.left <= 0:
            return None
        best = None
        for one in around:
            logits = self.linear.after_direct(node) if one == node else self.linear.after_indirect(node, one)
            margins = _margins(logits, label).masked_fill(~self._open(node, one), torch.inf)
            other = int(margins.argmin())
            value = float(margins[other])
            if value < torch.inf and (best is None or value < best.margin):
                best = _Flip(value, one, other)
        return best

    def _open(self, node: int, one: int) -> Tensor:
        """Which nodes may be joined with or cut from one node, [n]."""
        linear, threat = self.linear, self.context.modification
        present = torch.zeros(linear.n, dtype=torch.bool)
        present[linear.neighbours(one)] = True
        degrees = linear.d - 1
        lonely = (degrees <= 1) | (degrees[one] <= 1)
        allowed = torch.where(present, ~lonely & ("drop" in threat.allow), "add" in threat.allow)
        if self.room is not None:
            allowed &= (self.room > 0) & (self.room[one] > 0)
        if one != node:  # influencers leave targets alone
            allowed &= ~self.is_target
            allowed[node] = False
        allowed[[one, *linear.flips.get(one, ())]] = False
        if self.attack.degree_test != "off":
            sign = torch.where(present, -1.0, 1.0)
            allowed &= self.degrees.passes(degrees[one].expand(linear.n), degrees, sign)
        return allowed

    def _best_word(self, node: int, label: int, around: list[int]) -> _Flip | None:
        if self.links is None:
            return None
        weights, logits = self.linear.weights(node), self.linear.logits(node)
        best = None
        for one in around:
            if one not in self.rows and len(self.rows) >= self.word_rows:
                continue
            now, clean = self._row(one) > 0, torch.zeros(self.weight.shape[0], dtype=torch.bool)
            clean[self.links.words[one].indices] = True
            sign = torch.where(now, -1.0, 1.0).double().unsqueeze(1)
            margins = _margins(logits + weights[one] * sign * self.weight, label)
            # a word of the clean node may go, one that goes with them may come, and none is flipped back
            allowed = (now == clean) & (clean | self.links.allowed(one))
            margins = margins.masked_fill(~allowed, torch.inf)
            word = int(margins.argmin())
            if float(margins[word]) < torch.inf and (best is None or float(margins[word]) < best.margin):
                best = _Flip(float(margins[word]), one, word, is_word=True)
        return best

    def _influencers(self, node: int, label: int) -> list[int]:
        margins = _margins(self.linear.after_direct(node), label)
        near = torch.zeros(self.linear.n, dtype=torch.bool)
        near[self.linear.neighbours(node)] = True
        barred = self.is_target.clone()
        barred[node] = True
        order = margins.argsort(stable=True)
        order = torch.cat([order[near[order]], order[~near[order]]])
        found: list[int] = order[~barred[order]][: self.attack.influencers].tolist()
        return found


def _margins(logits: Tensor, label: int) -> Tensor:
    return -margin(logits, torch.full((len(logits),), label))
