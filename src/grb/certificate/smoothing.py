"""Certificates of smoothed models: changed edges, injected nodes, features of hijacked nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from grb.certificate.base import (
    EDGES,
    HIJACKED,
    INJECTED,
    edge_budget,
    hijacked_of,
    injection_of,
    result,
    scipy_of,
    targets_of,
)
from grb.certificate.bismoothing import injected_nodes
from grb.certificate.collective import collective_attacked, edge_field, surviving
from grb.certificate.confidence import Ints, VoteBounds, bounds_of
from grb.certificate.injection_lp import injection_attacked
from grb.certificate.interception import arrivals, hijacked_nodes
from grb.certificate.locality import (
    check_local,
    check_own_code,
    messages_of,
    not_wrapped,
    reach_of,
    title_of,
)
from grb.certificate.regions import certified_edits
from grb.certificate.result import CertifiedResult, NotCertifiable
from grb.dataset import Dataset
from grb.errors import DataError
from grb.model.smoothed import Noise, Smoothed
from grb.threat import Modification, Threat

# the largest budget that is looked at one by one; smoothing certifies a few changes, never hundreds
MOST = 200
# uniform numbers have 24 bits, so that every changed edge is drawn with a probability that is right to 6e-8; as many as are
DRAWN = 2e-5


@dataclass(frozen=True, kw_only=True)
class SmoothingCertificate:
    """What certificates of smoothed models share.

    Args:
        samples: Number of votes.
        alpha: Probability that any statement about any target is wrong (Bonferroni over targets and classes).
        p_add: Probability of an added edge for a model that is not smoothed yet; None for the certificate's own, see
            :class:`~grb.model.smoothed.Noise`.
        p_drop: As above.
        p_node: As above.
        p_ablate: As above.
        sigma: As above.
        p_keep: As above.
        collective: Whether to bound how many predictions fall together as well.
    """

    samples: int = 10_000
    alpha: float = 0.01
    p_add: float | None = None
    p_drop: float | None = None
    p_node: float | None = None
    p_ablate: float | None = None
    sigma: float | None = None
    p_keep: float | None = None
    collective: bool = True
    version = 3
    name: ClassVar[str] = ""
    noise: ClassVar[Noise] = Noise()

    def __post_init__(self) -> None:
        if isinstance(self.samples, bool) or self.samples < 1 or not 0 < self.alpha < 1:
            raise DataError(
                f"samples is {self.samples} and alpha is {self.alpha}, but at least one sample and 0 < alpha < 1 are needed"
            )

    def __call__(
        self, model: nn.Module, dataset: Dataset, threat: Threat, *, mode: str | None = None, seed: int = 0
    ) -> CertifiedResult:
        """Sample votes of the smoothed model and bound what they survive."""
        mode, targets, labels = targets_of(dataset, mode)
        budget, unit = self.covered(threat, dataset)
        smoothed = self.smoothed(model)
        check_own_code(smoothed)  # a model that remembers draws has no independent ones
        self.check(smoothed, dataset)
        votes = sampled_votes(smoothed, dataset, self.samples, seed)[targets].numpy()
        bounds = self.bounds(votes, self.alpha / len(targets))
        right = bounds.label == labels
        kept = replace(bounds, low=bounds.low[right], high=bounds.high[right])
        left = (
            self.together(smoothed, dataset, threat, targets[torch.from_numpy(right)].numpy(), kept)
            if self.collective
            else None
        )
        survived = self.survived(smoothed, dataset, threat, targets.numpy(), bounds)
        notes = (
            [] if isinstance(model, Smoothed) else ["the model was not trained on changed graphs; '+smooth' trains it"]
        )
        if len(survived) and survived.max() < 1 and not self._can(smoothed, dataset, threat, targets, votes.shape[1]):
            notes.append(
                f"with this noise and {self.samples} samples not even a unanimous vote survives one change; {self.advice}"
            )
        return result(
            self.name,
            f"smoothed {title_of(smoothed.model)} ({_noise_text(smoothed.noise)})",
            dataset,
            mode,
            threat,
            budgets=survived,
            correct=right,
            budget=budget,
            unit=unit,
            samples=self.samples,
            confidence=1 - self.alpha,
            collective=left,
            own_model=isinstance(model, Smoothed),
            notes=tuple(notes),
        )

    def _can(self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Tensor, classes: int) -> bool:
        """Whether any target would survive a change if all draws said the same of it."""
        votes = np.zeros((len(targets), classes), dtype=np.int64)
        votes[:, 0] = self.samples
        best = self.bounds(votes, self.alpha / len(targets))
        return bool((self.survived(smoothed, dataset, threat, targets.numpy(), best) > 0).any())

    @property
    def advice(self) -> str:
        """What to do where nothing can be certified."""
        return f"train with more noise ({_noise_text(self.noise)}), or draw more samples"

    @staticmethod
    def bounds(votes: Ints, alpha: float) -> VoteBounds:
        """Bounds of the votes of every target, [t, classes], widened by what the generator's own rounding explains.

        Args:
            votes: Number of draws with each class, [t, classes].
            alpha: Error probability of one target.
        """
        found = bounds_of(votes, alpha)
        return replace(found, low=found.low - DRAWN, high=found.high + DRAWN)

    def smoothed(self, model: nn.Module) -> Smoothed:
        """The model as a smoothed one; a smoothed model keeps its own noise."""
        given = {key: value for key in vars(self.noise) if (value := getattr(self, key)) is not None}
        if isinstance(model, Smoothed):
            if given and replace(model.noise, **given) != model.noise:
                raise DataError(f"'{title_of(model)}' has noise of its own; leave {sorted(given)[0]} out")
            return model
        chosen = replace(self.noise, **given)
        return Smoothed(not_wrapped(model, "smoothing"), **vars(chosen))

    def covered(self, threat: Threat, dataset: Dataset) -> tuple[int, str]:
        """Budget and unit of a threat model; one that is not covered is refused."""
        raise NotImplementedError

    def check(self, smoothed: Smoothed, dataset: Dataset) -> None:
        """Refuse noise or a model that this certificate does not speak about."""

    def survived(self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Ints, bounds: VoteBounds) -> Ints:
        """Largest number of units that every target survives, [t]."""
        raise NotImplementedError

    def together(
        self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Ints, bounds: VoteBounds
    ) -> int | None:
        """Right predictions that are left after any one edit; None where nothing is known."""
        return None

    def _only(self, smoothed: Smoothed, *allowed: str) -> None:
        others = [key for key, value in vars(smoothed.noise).items() if value and key not in allowed]
        if others:
            raise NotCertifiable(
                f"{self.name} is about noise by {' and '.join(allowed)}, but '{title_of(smoothed)}' has {others[0]} too"
            )


@dataclass(frozen=True, kw_only=True)
class SparseSmoothing(SmoothingCertificate):
    """Changed edges, by sparse randomised smoothing; see :mod:`grb.certificate.regions`."""

    name = "sparse-smoothing"
    noise = Noise(p_drop=0.8)

    def covered(self, threat: Threat, dataset: Dataset) -> tuple[int, str]:
        """Changed edges alone."""
        return edge_budget(threat, dataset, self.name), EDGES

    def check(self, smoothed: Smoothed, dataset: Dataset) -> None:
        """Edges are flipped independently, and nothing else happens; an edge that noise adds is like one that was there."""
        self._only(smoothed, "p_add", "p_drop")
        weights = dataset.graph.adj.values
        if smoothed.noise.p_add and weights is not None and not bool((weights == 1).all()):
            raise NotCertifiable(
                f"noise adds edges of weight one, but edges of '{dataset.name}' have other weights, by which a dropped edge "
                "that noise adds again is told from one that was never dropped; leave p_add out"
            )

    def survived(self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Ints, bounds: VoteBounds) -> Ints:
        """Largest number of changed edges, in any mixture of kinds, that every target survives, [t]."""
        assert isinstance(threat, Modification)
        noise, most = smoothed.noise, min(MOST, max(threat.budget(dataset.graph), 10))
        kinds = frozenset(str(kind) for kind in threat.allow)
        return certified_edits(bounds.low, bounds.high, p_add=noise.p_add, p_drop=noise.p_drop, most=most, allow=kinds)

    def together(
        self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Ints, bounds: VoteBounds
    ) -> int | None:
        """By a linear program over the edges that each prediction sees, where neither edits nor noise add edges."""
        assert isinstance(threat, Modification)
        if "add" in threat.allow or smoothed.noise.p_add:  # an added edge joins anybody, also one of the noise
            return None
        try:
            reach = reach_of(smoothed.model)
            check_local(smoothed.model, dataset.graph)
        except NotCertifiable:
            return None
        budgets = self.survived(smoothed, dataset, threat, targets, bounds)
        field, _ = edge_field(scipy_of(dataset.graph.adj), targets, reach)
        return surviving(len(targets), collective_attacked(budgets + 1, field, threat.budget(dataset.graph), local=1))


@dataclass(frozen=True, kw_only=True)
class BiSmoothing(SmoothingCertificate):
    """Injected nodes of any features and any wiring; see :mod:`grb.certificate.bismoothing`."""

    name = "bi-smoothing"
    noise = Noise(p_drop=0.9, p_node=0.8)

    def covered(self, threat: Threat, dataset: Dataset) -> tuple[int, str]:
        """Injected nodes alone."""
        return injection_of(threat, self.name).nodes, INJECTED

    def check(self, smoothed: Smoothed, dataset: Dataset) -> None:
        """An isolated node must not matter to others."""
        self._only(smoothed, "p_drop", "p_node")
        check_local(smoothed.model, dataset.graph)

    def survived(self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Ints, bounds: VoteBounds) -> Ints:
        """Largest number of injected nodes that every target survives, [t]."""
        given = injection_of(threat, self.name)
        own = {"p_edge": smoothed.noise.p_drop, "p_node": smoothed.noise.p_node}
        return injected_nodes(
            bounds.low, bounds.high, edges_per_node=given.edges_per_node, most=max(given.nodes, 100), **own
        )

    def together(
        self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Ints, bounds: VoteBounds
    ) -> int | None:
        """By the linear program of :mod:`grb.certificate.injection_lp`."""
        given, noise = injection_of(threat, self.name), smoothed.noise
        if not 0 < noise.p_drop < 1 or noise.p_node >= 1:
            return None
        attacked = injection_attacked(
            bounds.low,
            bounds.high,
            targets,
            scipy_of(dataset.graph.adj),
            nodes=given.nodes,
            edges_per_node=given.edges_per_node,
            p_edge=noise.p_drop,
            p_node=noise.p_node,
            reach=max(reach_of(smoothed.model), 1),
        )
        return surviving(len(targets), attacked)


@dataclass(frozen=True, kw_only=True)
class Interception(SmoothingCertificate):
    """Features of hijacked nodes, changed in any way; see :mod:`grb.certificate.interception`."""

    name = "interception"
    noise = Noise(p_drop=0.361449, p_ablate=0.794)

    def covered(self, threat: Threat, dataset: Dataset) -> tuple[int, str]:
        """Changed features alone."""
        return hijacked_of(threat, dataset, self.name), HIJACKED

    def check(self, smoothed: Smoothed, dataset: Dataset) -> None:
        """Paths are counted for networks of two layers."""
        self._only(smoothed, "p_drop", "p_ablate")
        check_local(smoothed.model, dataset.graph)
        if messages_of(smoothed.model) > 2:
            raise NotCertifiable(
                f"{self.name} counts the paths of networks of two layers, but '{title_of(smoothed.model)}' has "
                f"{messages_of(smoothed.model)}; train one with hidden_features=[64]"
            )

    def survived(self, smoothed: Smoothed, dataset: Dataset, threat: Threat, targets: Ints, bounds: VoteBounds) -> Ints:
        """Largest number of hijacked nodes that every target survives, [t]."""
        noise = smoothed.noise
        chance = arrivals(scipy_of(dataset.graph.adj), targets, p_delete=noise.p_drop, p_ablate=noise.p_ablate)
        most = max(hijacked_of(threat, dataset, self.name), 10)
        return hijacked_nodes(bounds.low, bounds.high, chance, most)


def sampled_votes(smoothed: Smoothed, dataset: Dataset, samples: int, seed: int) -> Tensor:
    """Number of draws with each class for every node, [n, classes]."""
    generator = torch.Generator().manual_seed(seed)
    return smoothed.votes(dataset.graph.x, dataset.graph.adj, samples, generator)


def _noise_text(noise: Noise) -> str:
    values: dict[str, Any] = {key: value for key, value in vars(noise).items() if value}
    return ", ".join(f"{key}={value:g}" for key, value in values.items()) or "no noise"
