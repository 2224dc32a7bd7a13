r"""Logits of one node in a linear model of two propagations, exactly, after every flip that could be made.

The model is :math:`Z = \hat A^2 P` with :math:`P = X W`. With :math:`\tilde A = A + I`, its degrees :math:`d`,
:math:`q_v = P_v / \sqrt{d_v}` and :math:`s = \tilde A q`, a node has :math:`z_u = d_u^{-1/2} \sum_k \tilde A_{uk} s_k / d_k`.
A flip changes :math:`q` at its two ends, :math:`s` around them, and up to two terms of that sum, so the logits after the flips
of one node with all others are a handful of operations on [n, classes].
"""

from __future__ import annotations

import torch
from torch import Tensor

from grb.graph import Adjacency


class TwoHop:
    """A linear model of two propagations on a graph that changes flip by flip.

    Args:
        adj: The edges at the beginning, without weights.
        p: Features times weights of the model, [n, c].
    """

    def __init__(self, adj: Adjacency, p: Tensor) -> None:
        self.clean, self.n = adj, adj.n
        self.p = p.double().clone()
        self.d = adj.degrees.double() + 1
        self.q = self.p / self.d.sqrt().unsqueeze(1)
        self.s = self.q.clone()
        self.s.index_add_(0, adj.pattern.row_ids.long(), self.q[adj.pattern.indices.long()])
        self.flips: dict[int, dict[int, float]] = {}

    def neighbours(self, node: int) -> Tensor:
        """Neighbours of a node in the graph as it is now."""
        found, flips = self.clean.neighbours(node), self.flips.get(node)
        if not flips:
            return found
        gone = torch.tensor([other for other, sign in flips.items() if sign < 0], dtype=torch.int64)
        come = torch.tensor([other for other, sign in flips.items() if sign > 0], dtype=torch.int64)
        return torch.cat([found[~torch.isin(found, gone)], come])

    def logits(self, node: int) -> Tensor:
        """Logits of a node, [c]."""
        near = self._near(node)
        return (self.s[near] / self.d[near].unsqueeze(1)).sum(0) / self.d[node].sqrt()

    def weights(self, node: int) -> Tensor:
        r"""Row of :math:`\hat A^2`, [n]."""
        near = self._near(node)
        reached = self._reached(near)
        reached[near] += 1 / self.d[near]
        return reached / (self.d[node] * self.d).sqrt()

    def after_direct(self, node: int) -> Tensor:
        """Logits of a node after its pair with every other node is flipped, [n, c]; its own row has no meaning."""
        p, q, s, d = self.p, self.q, self.s, self.d
        near = self.neighbours(node)
        present = torch.zeros(self.n, dtype=torch.bool)
        present[near] = True
        sign = torch.where(present, -1.0, 1.0).double()
        degrees = d + sign
        others = p / degrees.sqrt().unsqueeze(1)
        shift = others - q
        own_degree = d[node] + sign
        own = p[node] / own_degree.sqrt().unsqueeze(1)
        own_shift = own - q[node]
        shares = 1 / d[near]
        held = present.unsqueeze(1)
        middle = s[node] + own_shift + held * shift + sign.unsqueeze(1) * others
        total = (s[near] * shares.unsqueeze(1)).sum(0) + shares.sum() * own_shift
        total = total + self._reached(near).unsqueeze(1) * shift + middle / own_degree.unsqueeze(1)
        lost = -(s + own_shift) / d.unsqueeze(1)
        won = (s + shift + own) / degrees.unsqueeze(1)
        return (total + torch.where(held, lost, won)) / own_degree.sqrt().unsqueeze(1)

    def after_indirect(self, node: int, other: int) -> Tensor:
        """Logits of a node after the pair of another node with every third one is flipped, [n, c]."""
        p, q, s, d = self.p, self.q, self.s, self.d
        near = self._near(node)
        seen = torch.zeros(self.n, dtype=torch.bool)
        seen[near] = True
        present = torch.zeros(self.n, dtype=torch.float64)
        present[self.neighbours(other)] = 1
        sign = 1 - 2 * present
        degrees, other_degree = d + sign, d[other] + sign
        thirds, own = p / degrees.sqrt().unsqueeze(1), p[other] / other_degree.sqrt().unsqueeze(1)
        shift, own_shift = thirds - q, own - q[other]
        reached, share = self._reached(near), present / d
        total = (s[near] / d[near].unsqueeze(1)).sum(0) + (reached[other] - seen * share).unsqueeze(1) * own_shift
        held, changed = present.unsqueeze(1), sign.unsqueeze(1)
        if bool(seen[other]):
            total = total + (reached - present / d[other]).unsqueeze(1) * shift - s[other] / d[other]
            total = total + (s[other] + own_shift + held * shift + changed * thirds) / other_degree.unsqueeze(1)
        else:
            total = total + reached.unsqueeze(1) * shift
        moved = (s + shift + held * own_shift + changed * own) / degrees.unsqueeze(1) - s / d.unsqueeze(1)
        return (total + seen.unsqueeze(1) * moved) / d[node].sqrt()

    def flip(self, first: int, second: int) -> None:
        """Make a flip part of the graph; only what it changes is computed anew."""
        sign = -1.0 if bool((self.neighbours(first) == second).any()) else 1.0
        for node, other in ((first, second), (second, first)):
            own = self.flips.setdefault(node, {})
            if other in own:
                del own[other]
            else:
                own[other] = sign
        if sign < 0:  # what each end had from the other
            self.s[first] -= self.q[second]
            self.s[second] -= self.q[first]
        self.d[first] += sign
        self.d[second] += sign
        for node, other in ((first, second), (second, first)):
            near = self._near(node)
            self._moved(node, near[near != other])
        if sign > 0:
            self.s[first] += self.q[second]
            self.s[second] += self.q[first]

    def set_row(self, node: int, row: Tensor) -> None:
        """Other features of a node times the weights of the model, [c]."""
        self.p[node] = row
        self._moved(node, self._near(node))

    def _moved(self, node: int, near: Tensor) -> None:
        """Compute what a node sends anew, and hand the difference to some nodes."""
        new = self.p[node] / self.d[node].sqrt()
        self.s[near] += new - self.q[node]
        self.q[node] = new

    def _near(self, node: int) -> Tensor:
        return torch.cat([torch.tensor([node]), self.neighbours(node)])

    def _reached(self, nodes: Tensor) -> Tensor:
        """Sum of 1 / d over those of some nodes that are neighbours of every node, [n]."""
        block, _ = self.clean.pattern.rows(nodes)
        shares = 1 / self.d[nodes]
        found = torch.zeros(self.n, dtype=torch.float64)
        found.index_add_(0, block.indices.long(), shares.repeat_interleave(block.counts.long()))
        for node, share in zip(nodes.tolist(), shares.tolist(), strict=True):
            for other, sign in self.flips.get(node, {}).items():
                found[other] += sign * share
        return found
