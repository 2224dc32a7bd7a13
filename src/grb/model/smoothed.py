r"""Randomised smoothing: what a model says most often of randomly changed graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, Pattern, dense
from grb.model.base import GraphModel, Mix, Pool, Rows, State, evaluating
from grb.model.layers import Dropout
from grb.model.wrapped import Wrapper

# rows of all graphs of a batch; more do not fit into caches
ROWS = 2**17
# of the largest logit: what different orders of summation explain
ROUNDING = 1e-5
# draws behind a gradient
GRADIENT_DRAWS = 16
# draws behind a validation in training: thousands in every epoch would take hours
VALIDATION_DRAWS = 8


@dataclass(frozen=True)
class Noise:
    """How a graph is changed at random, everything independently.

    Args:
        p_add: Probability that a pair that is no edge becomes one.
        p_drop: Probability that an edge is deleted.
        p_node: Probability that a node loses all its edges.
        p_ablate: Probability that the features of a node are replaced by zeros.
        sigma: Standard deviation of Gaussian noise on features.
        p_keep: Probability that the features of a node get no such noise.
    """

    p_add: float = 0.0
    p_drop: float = 0.0
    p_node: float = 0.0
    p_ablate: float = 0.0
    sigma: float = 0.0
    p_keep: float = 0.0

    def __post_init__(self) -> None:
        width: Any = self.sigma  # a recipe may hold anything
        if isinstance(width, bool) or not isinstance(width, int | float) or not 0 <= width < math.inf:
            raise DataError(f"sigma is {width!r}, but a finite number of at least 0 is needed")
        for name, value in vars(self).items():
            if name == "sigma":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise DataError(f"{name} is {value!r}, but a probability is between 0 and 1")

    def edges(self, adj: Adjacency, copies: int, generator: torch.Generator) -> Adjacency:
        """Changed copies of a graph side by side, as one graph of ``copies * n`` nodes.

        Additions are a Bernoulli process over all pairs, drawn by the gaps between its successes: exact, and distinct by
        construction. Edges keep their weights, added ones have weight one, as in an edit.
        """
        n = adj.n
        ends = adj.edges().cpu()
        kept = torch.rand(copies, ends.shape[1], generator=generator) >= self.p_drop
        copy, edge = kept.nonzero(as_tuple=True)
        first, second = ends[0][edge], ends[1][edge]
        weights = None if adj.values is None else _upper(adj)[edge]
        if self.p_add > 0:
            new_copy, new_first, new_second = self._added(adj, copies, generator)
            copy = torch.cat([copy, new_copy])
            first, second = torch.cat([first, new_first]), torch.cat([second, new_second])
            weights = None if weights is None else torch.cat([weights, torch.ones(len(new_copy))])
        if self.p_node > 0:
            alive = (torch.rand(copies * n, generator=generator) >= self.p_node).view(copies, n)
            both = alive[copy, first] & alive[copy, second]
            copy, first, second = copy[both], first[both], second[both]
            weights = None if weights is None else weights[both]
        return _blocks(copy, first, second, copies, n, weights)

    def _added(self, adj: Adjacency, copies: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        n = adj.n
        cells = copies * n * n
        if self.p_add >= 1:
            found = torch.arange(cells)
        else:
            expected = cells * self.p_add
            rate = torch.log1p(torch.tensor(-self.p_add, dtype=torch.float64))
            parts, last = [], torch.tensor(-1, dtype=torch.float64)
            while float(last) < cells:
                draws = int(expected + 6 * expected**0.5) + 16
                uniform = torch.rand(draws, generator=generator, dtype=torch.float64)
                gaps = torch.floor(torch.log1p(-uniform) / rate) + 1
                parts.append(last + gaps.cumsum(0))
                last = parts[-1][-1]
                expected = max(cells - float(last), 0.0) * self.p_add
            found = torch.cat(parts)
            found = found[found < cells].long()
        copy, rest = found // (n * n), found % (n * n)
        first, second = rest // n, rest % n
        new = first < second  # every pair has one cell above the diagonal
        copy, first, second = copy[new], first[new], second[new]
        absent = ~adj.has(torch.stack([first, second]).to(adj.device)).cpu()
        return copy[absent], first[absent], second[absent]

    def features(self, x: Tensor, copies: int, generator: torch.Generator) -> Tensor | None:
        """Which rows of all copies lose their features, [copies * n]; None if none can."""
        if self.p_ablate == 0:
            return None
        return torch.rand(copies * len(x), generator=generator) < self.p_ablate

    def blurred(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Features with Gaussian noise on the rows that do not keep theirs, [rows, d]."""
        if self.sigma == 0:
            return x
        noise = self.sigma * torch.randn(x.shape, generator=generator)
        if self.p_keep:
            noise = noise * (torch.rand(len(x), 1, generator=generator) >= self.p_keep)
        return x + noise.to(x.device)


def _upper(adj: Adjacency) -> Tensor:
    """Weight of every undirected edge in the order of ``adj.edges()``, [edges]."""
    assert adj.values is not None
    return adj.values.detach().cpu()[(adj.pattern.row_ids < adj.pattern.indices).cpu()]


def _blocks(
    copy: Tensor, first: Tensor, second: Tensor, copies: int, n: int, weights: Tensor | None = None
) -> Adjacency:
    total = copies * n
    u, v = copy * n + first, copy * n + second
    keys, order = torch.cat([u * total + v, v * total + u]).sort()
    rows, columns = keys // max(total, 1), keys % max(total, 1)
    indptr = functional.pad(torch.bincount(rows, minlength=total).cumsum(0), (1, 0))
    kind = torch.int32 if len(keys) < 2**31 else torch.int64
    pattern = Pattern(indptr.to(kind), columns.to(kind), total, symmetric=True)
    return Adjacency(pattern, None if weights is None else torch.cat([weights, weights])[order])


class Smoothed(Wrapper):
    r"""The class that a model says most often of randomly changed graphs.

    .. math:: g(G)_v = \arg\max_c P(f(\phi(G))_v = c)

    with :math:`\phi` the changes of :class:`Noise`. Logits are fractions of ``samples`` votes; where gradients are asked for,
    they are mean probabilities of a few draws. Training sees one changed graph in every step and is
    validated on a few. Randomness comes from the
    evaluator's keys, so that the same keys give the same votes. :mod:`grb.certificate` says which changes a vote survives:
    ``p_add`` and ``p_drop`` certify changed edges, ``p_drop`` and ``p_node`` injected nodes, ``p_drop`` and ``p_ablate``
    any features of hijacked nodes, ``sigma`` and ``p_keep`` features of hijacked nodes within a range.

    Args:
        model: Any model of nodes.
        p_add: Probability that a pair that is no edge becomes one.
        p_drop: Probability that an edge is deleted.
        p_node: Probability that a node loses all its edges.
        p_ablate: Probability that the features of a node are replaced by zeros.
        samples: Number of votes.
        sigma: Standard deviation of Gaussian noise on features.
        p_keep: Probability that the features of a node get no such noise.

    References:
        Bojchevski et al., *Efficient Robustness Certificates for Discrete Data*, ICML 2020.
        Lai et al., *Node-aware Bi-smoothing*, IEEE S&P 2024.
        Scholten et al., *Randomized Message-Interception Smoothing*, NeurIPS 2022.
    """

    suffix = "smooth"
    version = 3

    def __init__(
        self,
        model: GraphModel,
        p_add: float = 0.0,
        p_drop: float = 0.4,
        p_node: float = 0.0,
        p_ablate: float = 0.0,
        samples: int = 1000,
        sigma: float = 0.0,
        p_keep: float = 0.0,
    ) -> None:
        noise = Noise(p_add, p_drop, p_node, p_ablate, sigma, p_keep)
        super().__init__(model, **vars(noise), samples=samples)
        self.noise = noise
        count: Any = samples  # a recipe may hold anything
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise DataError(f"samples is {samples!r}, but a whole number of at least 1 is needed")
        self.samples = samples
        self.random = Dropout(0.0)  # holds the generator of a training

    def prepare(self, adj: Adjacency) -> Adjacency:
        """The edges as they are; they are changed in every pass."""
        return adj

    def forward(self, x: Tensor | CSR, op: Adjacency) -> Tensor:
        """Fractions of votes for every class, [n, classes]; in training the logits on one changed graph."""
        if self.training:
            generator = self.random.generator or torch.default_generator
            return self._logits(x, op, 1, generator)[0]
        generator = torch.Generator().manual_seed(self._seed(op.n))
        if self.random.generator is not None:  # a validation between two epochs
            return self._logits(x, op, VALIDATION_DRAWS, generator).softmax(2).mean(0).log()
        if torch.is_grad_enabled() and (getattr(x, "requires_grad", False) or _learns(op)):
            return self._logits(x, op, GRADIENT_DRAWS, generator).softmax(2).mean(0)
        return self.votes(x, op, self.samples, generator).to(torch.get_default_dtype()) / self.samples

    def votes(self, x: Tensor | CSR, adj: Adjacency, samples: int, generator: torch.Generator) -> Tensor:
        """Number of draws with each class, [n, classes] whole numbers.

        Args:
            x: Features.
            adj: Edges.
            samples: Number of draws.
            generator: Draws the changes.
        """
        copies = max(1, min(samples, ROWS // max(adj.n, 1)))
        counts: Tensor | None = None
        nodes = torch.arange(adj.n)
        with evaluating(self.model):
            if copies > 1 and not self._is_blind_to_others(x, adj):
                copies = 1
            lead = self._lead(x)
            for start in range(0, samples, copies):
                number = min(copies, samples - start)
                logits = self._logits(x, adj, number, generator, lead).cpu()
                if counts is None:
                    counts = torch.zeros(adj.n * logits.shape[2], dtype=torch.int64)
                cells = nodes * logits.shape[2] + logits.argmax(2)
                counts += torch.bincount(cells.flatten(), minlength=len(counts))
        assert counts is not None
        return counts.view(adj.n, -1)

    def _is_blind_to_others(self, x: Tensor | CSR, adj: Adjacency) -> bool:
        """Whether graphs side by side get the logits that each gets by itself; else draws of one batch are not independent.

        Tried out on two changed graphs of different features; attention over all nodes is known to join them.
        """
        if any(getattr(part, "joins_all_nodes", False) for part in self.model.modules()):
            return False
        rows, n = dense(x), adj.n
        both = torch.cat([rows, rows / 2])
        generator = torch.Generator().manual_seed(0)
        changed = self.noise.edges(adj, 2, generator).to(adj.device)
        together = self.model(both, self.model.prepare(changed)).view(2, n, -1)
        for place, logits in enumerate(together):
            part = Graph(changed, both).subgraph(torch.arange(place * n, (place + 1) * n))
            alone = self.model(part.x, self.model.prepare(part.adj))
            if not bool(((alone - logits).abs() <= ROUNDING * alone.abs().max()).all()):
                return False
        return True

    def _lead(self, x: Tensor | CSR) -> tuple[State, State] | None:
        """What the first row-wise stages make of the features, and of a row of zeros: the same in every draw."""
        stages = None if isinstance(x, CSR) or self.noise.sigma else self.model.stages()
        if not stages or any(isinstance(stage, Pool) for stage in stages):
            return None
        state: State = (dense(x),)
        empty: State = (torch.zeros_like(state[0][:1]),)
        for stage in stages:
            if not isinstance(stage, Rows):
                break
            state, empty = stage.apply(state), stage.apply(empty)
        return state, empty

    def _logits(
        self,
        x: Tensor | CSR,
        adj: Adjacency,
        copies: int,
        generator: torch.Generator,
        lead: tuple[State, State] | None = None,
    ) -> Tensor:
        """Logits on some changed graphs, [copies, n, classes]."""
        if _learns(adj):
            return self._relaxed_logits(x, adj, copies, generator)
        changed = self.noise.edges(adj, copies, generator).to(adj.device)
        rows = x if isinstance(x, Tensor) else dense(x)
        ablated = self.noise.features(rows, copies, generator)
        op = self.model.prepare(changed)
        if lead is None or self.training:
            many = rows.repeat(copies, 1)
            if ablated is not None:
                many = torch.where(ablated.to(many.device).unsqueeze(1), 0.0, many)
            return self.model(self.noise.blurred(many, generator), op).view(copies, adj.n, -1)
        return self._from_lead(lead, op, ablated, copies).view(copies, adj.n, -1)

    def _from_lead(self, lead: tuple[State, State], op: Any, ablated: Tensor | None, copies: int) -> Tensor:
        stages = self.model.stages()
        assert stages is not None
        ops = op if isinstance(op, list | tuple) else [op]
        state: State = tuple(values.repeat(copies, *[1] * (values.dim() - 1)) for values in lead[0])
        if ablated is not None:
            rows = ablated.to(state[0].device)
            state = tuple(
                torch.where(rows.view(-1, *[1] * (values.dim() - 1)), empty, values)
                for values, empty in zip(state, lead[1], strict=True)
            )
        begun = False
        for stage in stages:
            if isinstance(stage, Rows):
                state = stage.apply(state) if begun else state
            elif isinstance(stage, Mix):
                state, begun = stage.apply(ops[stage.op], state, state), True
            else:
                moved = ops[stage.op] @ state[stage.slot]
                state, begun = (*state[: stage.slot], moved, *state[stage.slot + 1 :]), True
        return state[0]

    def _relaxed_logits(self, x: Tensor | CSR, adj: Adjacency, copies: int, generator: torch.Generator) -> Tensor:
        """The same where gradients of weights are asked for, as by attackers: zeros delete, and no edge is added."""
        made, rows = [], dense(x)
        assert adj.values is not None
        flipped = adj.pattern.transposed[1]
        upper = adj.pattern.row_ids < adj.pattern.indices
        for _ in range(copies):
            numbers = torch.rand(adj.pattern.entries, generator=generator)
            numbers = torch.where(upper, numbers, numbers[flipped])
            alive = torch.rand(adj.n, generator=generator) >= self.noise.p_node
            kept = (numbers >= self.noise.p_drop) & alive[adj.pattern.row_ids] & alive[adj.pattern.indices]
            ablated = self.noise.features(rows, 1, generator)
            seen = rows if ablated is None else torch.where(ablated.to(rows.device).unsqueeze(1), 0.0, rows)
            op = self.model.prepare(Adjacency(adj.pattern, adj.values * kept))
            made.append(self.model(self.noise.blurred(seen, generator), op))
        return torch.stack(made)

    def _seed(self, n: int) -> int:
        keys = self._keys
        return 0 if keys is None else int(torch.sum(keys[:n] % 2**31)) % 2**62


def _learns(adj: Adjacency) -> bool:
    return adj.values is not None and adj.values.requires_grad
