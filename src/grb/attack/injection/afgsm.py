"""AFGSM: injected nodes by closed-form gradients of a linear surrogate, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.injection.base import Limits
from grb.attack.losses import margin, typical_margin
from grb.attack.modification.nettack import fit_linear
from grb.attack.modification.unnoticeable import CoOccurrence, is_binary
from grb.graph import GraphEdit, dense, normalise
from grb.model.base import predict

# a word whose weight is not larger adds nothing
LEAST = 1e-3


@dataclass(frozen=True, kw_only=True)
class AFGSM(Limits):
    r"""Approximate fast gradient signs: features and edges of every injected node from the weights of a linear model.

    A linear surrogate :math:`Z = \hat A^2 X W` is fitted as in Nettack. Targets with the label :math:`y` and the strongest
    other class :math:`c` have the direction :math:`w = W_c - W_y`. For every injected node :math:`k`, one after another:

    - *features*: continuous ones go to the end of the range that the sign of :math:`w` says; words are taken by :math:`w`,
      the largest first, if every word taken before goes with them in the clean graph, up to the mean number of words.
    - *edges*: the node :math:`i` scores the first-order change of the targets' margins,
      :math:`(x_k \cdot w) \left( \frac{(\tilde A u)_i}{d_i \sqrt{d_k}} + \frac{u_i}{d_k \sqrt{d_k}} \right)` with
      :math:`u_t = g_t / \sqrt{d_t}` for the targets of this direction (paths :math:`t - i - k` and :math:`t - k - k`) and,
      for a single target, plus :math:`\frac{x_i \cdot w}{d_k \sqrt{d_t d_i}}` (path :math:`t - k - i`). The best are taken,
      none of them with a negative score.

    One target is always joined if ``direct`` and never if not. With many targets, :math:`g_t` is the slope of the
    tanh-margin, so that targets near the boundary count most, and the direction that promises most is taken for every node.
    Margins are computed anew after each node.

    Args:
        direct: Whether a target may be joined itself; otherwise only other nodes are.
        imitate: Fit the surrogate to what the model says of all nodes, see :class:`~grb.attack.modification.nettack.Nettack`.

    References:
        Wang et al., *Scalable Attack on Graph Data by Injecting Vicious Nodes*, Data Mining and Knowledge Discovery 2020.
        Theirs attacks one target; degrees of injected nodes are drawn at random, here each has as many edges as it may; the
        update of one factor in their code contradicts its definition, here both are computed anew.
    """

    direct: bool = True
    imitate: bool = False
    version = 1
    needs_model: ClassVar[bool] = False

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Inject node after node."""
        threat = context.injection
        if not (threat.nodes and threat.edges_per_node and len(context.targets)):
            return GraphEdit(n=context.graph.n)
        return _Attack(self, context)()


class _Attack:
    def __init__(self, attack: AFGSM, context: AttackContext) -> None:
        self.attack, self.context = attack, context
        self.weight = fit_linear(context, imitate=attack.imitate)
        self.x = dense(context.graph.x)
        low, high = context.injection.feature_range
        self.words: CoOccurrence | None = None
        if is_binary(context.graph.x) and low <= 0 and high >= 1:
            self.words = CoOccurrence.of(context.graph.x)
        self.edit = GraphEdit(n=context.graph.n)

    def __call__(self) -> GraphEdit:
        context, targets = self.context, self.context.targets
        logits = self._logits()
        said = logits if context.model is None else predict(context.model, context.graph)[targets]
        labels = context.aimed_labels(said)
        scale = typical_margin(logits, labels)
        pairs, rows = self.edit.add, torch.empty(0, self.x.shape[1])
        for number in range(context.injection.nodes):
            margins = -margin(logits, labels)
            context.report(-float(margins.mean()), float((margins > 0).float().mean()))
            others = logits.scatter(1, labels.unsqueeze(1), -torch.inf).argmax(1)
            row, ends = self._node(labels, others, margins / scale)
            own = torch.full((len(ends),), context.graph.n + number)
            pairs, rows = torch.cat([pairs, torch.stack([ends, own])], dim=1), torch.cat([rows, row.unsqueeze(0)])
            self.edit = GraphEdit(n=context.graph.n, add=pairs, new_x=rows)
            logits = self._logits()
        return self.edit

    def _logits(self) -> Tensor:
        """The surrogate's logits of the targets in the graph attacked so far, [t, c]."""
        attacked = self.context.graph.apply(self.edit)
        op = normalise.gcn(attacked.adj)
        return (op @ (op @ (dense(attacked.x) @ self.weight)))[self.context.targets]

    def _node(self, labels: Tensor, others: Tensor, margins: Tensor) -> tuple[Tensor, Tensor]:
        """Features of the next node, [d], and the nodes that it is joined with, [b]."""
        classes = self.weight.shape[1]
        slope = 1 - torch.tanh(margins).square() if len(labels) > 1 else torch.ones_like(margins)
        best: tuple[float, Tensor, Tensor] | None = None
        for key in (labels * classes + others).unique().tolist():
            direction = self.weight[:, key % classes] - self.weight[:, key // classes]
            here = (labels == key // classes) & (others == key % classes)
            row = self._features(direction)
            value, ends = self._edges(row, direction, torch.where(here, slope, 0.0))
            if best is None or value > best[0]:
                best = (value, row, ends)
        assert best is not None, "there is a target"
        return best[1], best[2]

    def _features(self, direction: Tensor) -> Tensor:
        low, high = self.context.injection.feature_range
        if self.words is None:
            return torch.where(direction > 0, float(high), float(low))
        row = torch.zeros(len(direction))
        most = int(self.x.sum() / len(self.x))
        allowed = direction > LEAST
        for _ in range(most):
            if not allowed.any():
                break
            word = int(torch.where(allowed, direction, -torch.inf).argmax())
            row[word] = 1.0
            together = torch.zeros_like(allowed)
            together[torch.from_numpy(self.words.links[word].indices).long()] = True
            allowed &= together
        return row

    def _edges(self, row: Tensor, direction: Tensor, slope: Tensor) -> tuple[float, Tensor]:
        """What the best edges of a node with these features promise, and the nodes that they lead to."""
        context, width = self.context, self.context.injection.edges_per_node
        n, targets = context.graph.n, context.targets
        adj = context.graph.apply(self.edit).adj
        degrees = adj.degrees.float() + 1
        u = torch.zeros(adj.n)
        u[targets] = slope / degrees[targets].sqrt()
        own = float(width + 1)
        spread = u + torch.zeros(adj.n).index_add_(0, adj.pattern.row_ids.long(), u[adj.pattern.indices.long()])
        score = float(row @ direction) * (spread / (degrees * own**0.5) + u / own**1.5)[:n]
        single = len(targets) == 1
        if single and self.attack.direct:
            score = score + (self.x @ direction) / (own * (degrees[targets] * degrees[:n]).sqrt())
            score[targets] = torch.inf
        if not self.attack.direct:
            score[targets] = -torch.inf
        found, ends = score.topk(min(width, n))
        good = found > 0
        return float(found[good].clamp(max=1e6).sum()), ends[good]
