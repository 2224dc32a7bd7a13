"""Datasets made from a seed, so that everything runs without a download.

``synth-cora`` has the size, split and difficulty of grb-cora; ``synth-tiny`` is the same recipe for smoke tests. They
are synthetic: their scores say nothing about the scores on the original datasets and are never compared with them.

The arrays are the same on every machine. Only ``Generator.random`` is drawn from, because numpy may change the streams
of the other distributions between releases, and what passes through floating-point kernels is rounded before it is
kept. Their sha256 is pinned and checked at every call.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray

from grb.dataset.raw_arrays import RawArrays
from grb.dataset.splits import difficulty_split
from grb.dataset.storage import PARTS
from grb.errors import DataError, UnknownName
from grb.graph import adjacency_from_csr, adjacency_from_edges

Int = NDArray[np.int64]
Float = NDArray[np.float64]

CHUNK = 4096
"""Rows of features made at a time; a constant, because the order of random draws depends on it."""

COLLECTION = "synth-graphs"
GRAPHS, FEWEST, MOST, TYPES, SEED = 200, 10, 18, 3, 7
# edges per node, and the factor on the random number of a pair that does not suit its class
EDGES, UNSUITED = 1.2, 0.8


@dataclass(frozen=True)
class Arrays:
    """A generated node-classification dataset, the form whose sha256 is pinned.

    The graph is a CSR pattern: symmetric, neighbours sorted, no self-loops, no values. Features are raw, that is before
    standardisation and arctan. The five index arrays are sorted and hold every node once.
    """

    indptr: Int  # [n + 1]
    indices: Int  # [2 m]
    features: NDArray[np.float32]  # [n, d]
    labels: Int  # [n]
    index_train: Int
    index_val: Int
    index_test_easy: Int
    index_test_medium: Int
    index_test_hard: Int


@dataclass(frozen=True)
class Recipe:
    """What a synthetic dataset is made from; see the functions below for what each number does."""

    nodes: int
    edges: int
    features: int
    shares: tuple[float, ...]  # of the communities, one per class
    seed: int
    homophily: float  # probability that an edge stays inside a community
    isolated: int = 0  # nodes without any edge
    closure: float = 0.65  # share of inside picks that close a triangle
    tail: float = 2.1  # exponent of the power law of expected degrees
    heaviest: int = 170  # its upper end
    evenness: float = 1.8  # mean of the Poisson number added to it
    rounds: int = 16  # batches in which edges are added; triangles close over earlier batches
    kinship: float = 0.5  # how much a node has in common with one neighbour beyond the community
    separation: float = 0.185  # of the community centres, in standard deviations of the latent noise
    rank: int = 200  # latent dimensions of the features
    noise: float = 0.1  # isotropic noise, relative to the latent signal
    freedom: int = 6  # of the Student tails; even
    spread: float = 0.22  # standard deviation of the raw features
    clip: tuple[float, float] = (-2.30, 2.40)
    relabelled: float = 0.0  # probability that the label of an isolated node is drawn anew; falls with the degree


RECIPES = {
    "synth-cora": Recipe(
        nodes=2680,
        edges=5148,
        features=302,
        shares=(0.130, 0.081, 0.154, 0.302, 0.157, 0.110, 0.066),
        seed=24,
        isolated=4,
        homophily=0.975,
        relabelled=0.29,
    ),
    "synth-tiny": Recipe(
        nodes=300,
        edges=576,
        features=24,
        shares=(0.4, 0.25, 0.2, 0.15),
        seed=8,
        isolated=1,
        heaviest=40,
        homophily=0.95,
        rank=12,
        separation=0.5,
        relabelled=0.2,
    ),
}

PINNED = {
    "synth-cora": "7ded0bd48f30b2cc38e8be3291c07ff3b992f6b8c0ac605aa2a75f076e6bc9ed",
    "synth-tiny": "49f496ed153ed0131524e41ddee2cd53a5e667f02881337cda0bd17c8bab76a1",
}
"""sha256 of every named dataset, as :func:`fingerprint` computes it."""


def generate(name: str) -> Arrays:
    """Make a named synthetic dataset and check that it is, bit by bit, the one that was published under that name.

    Raises:
        UnknownName: If there is no recipe of that name.
        DataError: If the arrays differ from the pinned ones.
    """
    if name not in RECIPES:
        raise UnknownName("dataset", name, RECIPES)
    arrays = make(RECIPES[name])
    found = fingerprint(arrays)
    if found != PINNED[name]:
        raise DataError(
            f"{name} came out with sha256 {found}, but {PINNED[name]} is pinned, so scores would not be comparable; "
            f"please report this together with the numpy version ({np.__version__}) and the processor"
        )
    return arrays


def load(name: str) -> RawArrays:
    """A named synthetic dataset as the arrays that :class:`grb.dataset.Dataset` is made from."""
    if name == COLLECTION:
        return collection()
    arrays = generate(name)
    n = len(arrays.labels)
    adj, notes = adjacency_from_csr(arrays.indptr, arrays.indices, None, (n, n))
    split = {part: getattr(arrays, key) for part, key in PARTS.items() if part != "full"}
    return RawArrays(name, n, adj, arrays.labels, x=torch.from_numpy(arrays.features), splits=[split], notes=notes)


def make(recipe: Recipe) -> Arrays:
    """Follow a recipe; graph, features, labels and split draw from separate random streams of its seed."""
    streams = [np.random.Generator(np.random.PCG64(seq)) for seq in np.random.SeedSequence(recipe.seed).spawn(4)]
    graph, appearance, naming, splitting = streams
    community = _communities(recipe.shares, recipe.nodes, graph)
    indptr, indices = community_graph(
        community,
        _expected_degrees(recipe, graph),
        recipe.edges,
        graph,
        homophily=recipe.homophily,
        closure=recipe.closure,
        rounds=recipe.rounds,
    )
    kin = _neighbour(np.arange(recipe.nodes, dtype=np.int64), indptr, indices, graph)
    return Arrays(
        indptr=indptr,
        indices=indices,
        features=_features(recipe, community, kin, appearance),
        labels=_labels(recipe, community, kin, np.diff(indptr), naming),
        **difficulty_split(np.diff(indptr), splitting),
    )


def fingerprint(arrays: Arrays) -> str:
    """sha256 over names, types, shapes and little-endian bytes of all arrays."""
    digest = hashlib.sha256()
    for field in fields(arrays):
        array = getattr(arrays, field.name)
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{field.name} {little.dtype.str} {little.shape}\n".encode())
        digest.update(little.tobytes())
    return digest.hexdigest()


def community_graph(
    community: Int,
    weight: Float,
    edges: int,
    generator: np.random.Generator,
    *,
    homophily: float,
    closure: float,
    rounds: int,
) -> tuple[Int, Int]:
    """Draw a simple graph with communities, uneven degrees, triangles and an exact number of edges.

    Every node of positive weight first gets one edge. Then edges are added in batches: one end by weight, the other
    with probability ``homophily`` inside the same community, else outside. An inside pick is, with probability
    ``closure``, a neighbour of a neighbour, where that one is in the community, and otherwise a node by weight.

    Args:
        community: Community of every node, [n].
        weight: Expected degree of every node up to a factor, [n]; nodes of weight 0 stay isolated.
        edges: Number of undirected edges.
        generator: Source of all random draws.
        homophily: Probability that an edge stays inside a community.
        closure: Fraction of the picks inside a community that close a triangle.
        rounds: Number of batches in which edges are added.

    Returns:
        indptr [n + 1] and indices [2 * edges] of the symmetric CSR pattern.

    Raises:
        DataError: If the graph cannot hold that many edges.
    """
    n = len(community)
    pick = _Picker(community, weight, homophily, closure)
    active = np.flatnonzero(weight > 0)
    keys = _first_edges(active, pick, n, edges, generator)
    for step in range(20 * rounds):
        if len(keys) == edges:
            break
        missing = edges - len(keys)
        batch = -(-missing // max(rounds - step, 1))
        sources = pick.anywhere(batch + batch // 8 + 16, generator)
        partners = pick.partners(sources, _csr(keys, n), generator)
        keys = _added(keys, _keys(sources, partners, n), min(len(keys) + batch, edges))
    else:
        raise DataError(
            f"only {len(keys)} of {edges} edges fit a graph of {len(active)} connected nodes with these communities; "
            "ask for fewer edges, more nodes, fewer classes or a flatter degree distribution"
        )
    return _csr(keys, n)


def _first_edges(active: Int, pick: _Picker, n: int, edges: int, generator: np.random.Generator) -> Int:
    """Keys of one edge per active node; a node that drew itself draws again."""
    keys = np.empty(0, np.int64)
    lonely = active
    for _ in range(100):
        keys = _added(keys, _keys(lonely, pick.partners(lonely, None, generator), n), edges)
        lonely = np.setdiff1d(active, np.concatenate(np.divmod(keys, n)))
        if not len(lonely) or len(keys) == edges:
            break
    return keys


class _Picker:
    """Draws nodes by weight: from all, from inside a community or from outside it."""

    def __init__(self, community: Int, weight: Float, homophily: float, closure: float) -> None:
        self.community, self.homophily, self.closure = community, homophily, closure
        self.order = np.argsort(community, kind="stable")
        self.reach = np.concatenate([[0.0], np.cumsum(weight[self.order])])
        first = np.searchsorted(community[self.order], np.arange(community.max(initial=0) + 2))
        self.start, self.stop = self.reach[first[:-1]], self.reach[first[1:]]

    def anywhere(self, count: int, generator: np.random.Generator) -> Int:
        return self._at(generator.random(count) * self.reach[-1])

    def partners(self, sources: Int, csr: tuple[Int, Int] | None, generator: np.random.Generator) -> Int:
        lo, hi = self.start[self.community[sources]], self.stop[self.community[sources]]
        draw, side, triangle = generator.random((3, len(sources)))
        outside = draw * (self.reach[-1] - (hi - lo))
        outside += np.where(outside >= lo, hi - lo, 0.0)
        inside = (side < self.homophily) | (hi - lo >= self.reach[-1])  # one community has no outside
        partners = self._at(np.where(inside, lo + draw * (hi - lo), outside))
        if csr is None:
            return partners
        second = _neighbour(_neighbour(sources, *csr, generator), *csr, generator)
        closes = inside & (triangle < self.closure) & (self.community[second] == self.community[sources])
        return np.where(closes, second, partners)

    def _at(self, position: Float) -> Int:
        slot = np.searchsorted(self.reach, position, side="right") - 1
        return self.order[np.clip(slot, 0, len(self.order) - 1)]


def _neighbour(nodes: Int, indptr: Int, indices: Int, generator: np.random.Generator) -> Int:
    """One random neighbour of every node; a node without neighbours stays where it is."""
    degree = indptr[nodes + 1] - indptr[nodes]
    slot = indptr[nodes] + (generator.random(len(nodes)) * degree).astype(np.int64)
    found: Int = nodes.copy()
    found[degree > 0] = indices[slot[degree > 0]]
    return found


def _keys(left: Int, right: Int, n: int) -> Int:
    """One number per undirected edge, self-loops left out."""
    proper = left != right
    left, right = left[proper], right[proper]
    keys: Int = np.minimum(left, right) * n + np.maximum(left, right)
    return keys


def _added(keys: Int, drawn: Int, limit: int) -> Int:
    """Sorted keys with the new ones among those drawn, earliest first, until there are ``limit``."""
    fresh, first = np.unique(drawn, return_index=True)
    known = np.searchsorted(keys, fresh)
    new = np.ones(len(fresh), bool) if not len(keys) else keys[np.minimum(known, len(keys) - 1)] != fresh
    earliest = np.argsort(first[new], kind="stable")[: limit - len(keys)]
    return np.sort(np.concatenate([keys, fresh[new][earliest]]))


def _csr(keys: Int, n: int) -> tuple[Int, Int]:
    left, right = np.divmod(keys, n)
    both = np.sort(np.concatenate([keys, right * n + left]))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(both // n, minlength=n), out=indptr[1:])
    return indptr, both % n


def _communities(shares: tuple[float, ...], n: int, generator: np.random.Generator) -> Int:
    """Communities with sizes as close to the shares as whole nodes allow, in random order, [n]."""
    ends = np.rint(np.cumsum(shares) / np.sum(shares) * n).astype(np.int64)
    ranked = np.searchsorted(ends, np.arange(n), side="right")
    return ranked[np.argsort(generator.random(n), kind="stable")]


def _expected_degrees(recipe: Recipe, generator: np.random.Generator) -> Float:
    """A power law, which makes hubs, plus a Poisson number, which keeps the many small degrees apart, [n]."""
    values = np.arange(1, recipe.heaviest + 1)
    power = np.cumsum(values**-recipe.tail)
    weight: Float = 1.0 + np.searchsorted(power, generator.random(recipe.nodes) * power[-1])
    counts = np.arange(1, 40)
    poisson = np.cumsum(np.concatenate([[1.0], np.cumprod(recipe.evenness / counts)]))
    weight += np.searchsorted(poisson, generator.random(recipe.nodes) * poisson[-1])
    weight[np.argsort(generator.random(recipe.nodes), kind="stable")[: recipe.isolated]] = 0.0
    return weight


def _features(recipe: Recipe, community: Int, kin: Int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Latent features, alike among kin, mapped to more dimensions and given heavy tails, [n, d].

    The number of latent dimensions sets how much an attacker can do inside the box of allowed features: more of them
    need a smaller separation for the same accuracy without a graph, and the box then holds more class distances.
    """
    mixing = _normal((recipe.rank, recipe.features), generator) / np.sqrt(recipe.rank)
    latent = _normal((len(community), recipe.rank), generator)
    latent = np.sqrt(1 - recipe.kinship) * latent + np.sqrt(recipe.kinship) * latent[kin]
    latent[np.arange(len(community)), community] += recipe.separation * np.sqrt(recipe.rank)
    variance = (1 + recipe.separation**2 + recipe.noise**2) * recipe.freedom / (recipe.freedom - 2)
    out = np.empty((len(community), recipe.features), np.float32)
    for begin in range(0, len(community), CHUNK):
        x = latent[begin : begin + CHUNK] @ mixing
        x += recipe.noise * _normal(x.shape, generator)
        x *= np.sqrt(recipe.freedom / _chi_square(recipe.freedom, x.shape, generator))
        x *= recipe.spread / np.sqrt(variance)
        # Rounded, because BLAS and SIMD kernels differ in the last bits between machines and the sha256 must not.
        out[begin : begin + CHUNK] = np.round(np.clip(x, *recipe.clip), 4)
    return out


def _labels(recipe: Recipe, community: Int, kin: Int, degree: Int, generator: np.random.Generator) -> Int:
    r"""The community of every node, except that some labels are drawn anew by class size, [n].

    A label is drawn anew with probability :math:`q / \sqrt{1 + d_v}`, and a node follows the draw of its kin with
    probability ``kinship``. The former puts a ceiling on the accuracy, lower for nodes with few neighbours; the latter
    keeps neighbours alike, so that accuracy and homophily can both be near those of the original data.
    """
    n = len(community)
    ends = np.cumsum(recipe.shares)
    drawn = np.searchsorted(ends, generator.random(n) * ends[-1], side="right")
    chance, follow = generator.random((2, n))
    model = np.where(follow < recipe.kinship, kin, np.arange(n))
    anew = chance[model] < recipe.relabelled / np.sqrt(1 + degree)
    return np.where(anew, drawn[model], community)


def _normal(shape: tuple[int, ...], generator: np.random.Generator) -> Float:
    """Standard normal numbers by Box and Muller; 1 - u, because the logarithm of 0 is not a number."""
    radius: Float = np.sqrt(-2 * np.log(1 - generator.random(shape)))
    radius *= np.cos(2 * np.pi * generator.random(shape))
    return radius


def _chi_square(freedom: int, shape: tuple[int, ...], generator: np.random.Generator) -> Float:
    """Chi-square numbers of an even number of degrees of freedom, as a product of uniform numbers."""
    product = 1 - generator.random(shape)
    for _ in range(freedom // 2 - 1):
        product *= 1 - generator.random(shape)
    return -2 * np.log(product)


def collection() -> RawArrays:
    """``synth-graphs``: 200 graphs of 10 to 18 nodes with one of three types, two classes, ten folds.

    In graphs of class 0 edges rather join equal types, in those of class 1 different ones: the classes are distinguishable
    by their edges alone. Only ``Generator.random`` is drawn from, and only products and comparisons follow.
    """
    rng = np.random.default_rng(SEED)
    sizes = FEWEST + np.floor(rng.random(GRAPHS) * (MOST + 1 - FEWEST)).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    types = np.floor(rng.random(int(sizes.sum())) * TYPES).astype(np.int64)
    labels = np.arange(GRAPHS) % 2
    edges = []
    for start, size, label in zip(starts, sizes, labels, strict=True):
        pairs = np.stack(np.triu_indices(int(size), 1)) + start
        alike = types[pairs[0]] == types[pairs[1]]
        keys = rng.random(pairs.shape[1]) * np.where(alike == (label == 0), 1.0, UNSUITED)
        edges.append(pairs[:, np.argsort(-keys, kind="stable")[: round(EDGES * int(size))]])
    adj, _ = adjacency_from_edges(np.concatenate(edges, axis=1), len(types))
    x = np.eye(TYPES, dtype=np.float32)[types]
    return RawArrays(COLLECTION, len(types), adj, labels, x=x, sizes=sizes).with_own_scheme()
