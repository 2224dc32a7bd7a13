"""Names of everything that grb has, without importing any of it.

A name resolves to ``"package.module:Attribute"`` only when it is used. Third-party packages add names through entry
points of the groups ``grb.datasets``, ``grb.models``, ``grb.attacks``, ``grb.defenses`` and ``grb.perturbations``; a full
``"package.module:Attribute"`` is accepted wherever a name is.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from typing import Any

from grb.errors import DataError, UnknownName


@dataclass(frozen=True)
class Entry:
    """One catalogued thing: where it lives and what it is, in one line."""

    target: str
    summary: str
    aliases: tuple[str, ...] = ()


_GRB = "grb.dataset.dataset:Dataset"
# of the taxonomy paper and of OGB, from raw files on this machine
_TAXONOMY = {
    "enzymes": "graphs: protein tertiary structures, 6 classes of enzymes",
    "proteins": "graphs: proteins, enzyme or not",
    "mutag": "graphs: nitroaromatic compounds, mutagenic or not",
    "nci1": "graphs: compounds screened against lung cancer",
    "nci109": "graphs: compounds screened against ovarian cancer",
    "dd": "graphs: proteins, enzyme or not, graphs below 3,500 nodes",
    "imdb-binary": "graphs: actors who played together, no features",
    "reddit-binary": "graphs: threads of users who answer each other, no features",
    "reddit-multi-5k": "graphs: threads of 5 communities, no features",
    "collab": "graphs: collaborations of scientists, no features",
    "syntheticnew": "graphs: rewired random graphs with normal features",
    "synthie": "graphs: synthetic graphs of 4 classes",
    "mnist": "graphs: digits as superpixels",
    "cifar10": "graphs: photographs as superpixels",
    "pattern": "nodes: nodes of a pattern in stochastic block graphs",
    "cluster": "nodes: communities of stochastic block graphs",
    "ppi": "nodes: proteins of 24 tissues, 121 labels",
    "malnet-tiny": "graphs: function calls of malware, local degree profiles as features",
    "small-world": "graphs: small-world graphs by average path length, 10 bins",
    "small-world-5": "graphs: small-world graphs in 5 bins, as the published results have them",
    "scale-free": "graphs: scale-free graphs by average path length, 10 bins",
    "scale-free-5": "graphs: scale-free graphs in 5 bins, as the published results have them",
    "ogbg-molhiv": "graphs: molecules that inhibit HIV",
    "ogbg-moltox21": "graphs: toxicity of molecules, 12 labels",
    "ogbg-molpcba": "graphs: activity of molecules, 128 labels",
    "pcqm4mv2-subset": "graphs: molecules by HOMO-LUMO gap, 20 quantile bins",
    "planetoid-cora": "nodes: citations, public split with 20 training nodes per class",
    "planetoid-citeseer": "nodes: citations, public split with 20 training nodes per class",
    "planetoid-pubmed": "nodes: citations, public split with 20 training nodes per class",
    "citationfull-cora": "nodes: citations, full graph",
    "citationfull-cora-ml": "nodes: citations, full graph",
    "citationfull-citeseer": "nodes: citations, full graph",
    "citationfull-dblp": "nodes: citations, full graph",
    "citationfull-pubmed": "nodes: citations, full graph",
    "webkb-cornell": "nodes: links between pages of a university",
    "webkb-texas": "nodes: links between pages of a university",
    "webkb-wisconsin": "nodes: links between pages of a university",
    "actor": "nodes: actors on the same Wikipedia page",
    "wikipedia-chameleon": "nodes: links between Wikipedia pages",
    "wikipedia-squirrel": "nodes: links between Wikipedia pages",
    "wikics": "nodes: Wikipedia articles on computer science",
    "amazon-computers": "nodes: goods bought together",
    "amazon-photo": "nodes: goods bought together",
    "coauthor-cs": "nodes: authors who wrote together",
    "coauthor-physics": "nodes: authors who wrote together",
    "twitch-de": "nodes: gamers who follow each other",
    "twitch-en": "nodes: gamers who follow each other",
    "twitch-es": "nodes: gamers who follow each other",
    "twitch-fr": "nodes: gamers who follow each other",
    "twitch-pt": "nodes: gamers who follow each other",
    "twitch-ru": "nodes: gamers who follow each other",
    "github": "nodes: developers who follow each other",
    "facebook-pagepage": "nodes: pages that like each other",
    "lastfm-asia": "nodes: listeners who follow each other",
    "deezer-europe": "nodes: listeners who follow each other",
    "flickr": "nodes: images that share properties",
    "ogbn-arxiv": "nodes: citations of computer-science papers, split by year (OGB)",
    "ogbn-products": "nodes: products bought together, split by sales rank (OGB)",
    "ogbn-proteins": "nodes: proteins of 8 species, 112 labels, no features (OGB)",
}
DEFENDED = "grb.defense.defended:defended"
# behind a model's name: of whole graphs, by pooling the rows of their nodes
POOL, POOLED = "-pool", "grb.model.pooled:pooled"
# defenses that are written behind a model's name with a plus
SUFFIXES = ("ln", "at", "at-random", "at-full")
KINDS: Mapping[str, Mapping[str, Entry]] = {
    "dataset": {
        "synth-tiny": Entry(_GRB, "synthetic, embedded: a small sibling of synth-cora for smoke tests"),
        "synth-cora": Entry(_GRB, "synthetic, embedded: as large and as hard as grb-cora, needs no download"),
        "synth-graphs": Entry(_GRB, "synthetic, embedded: 200 small graphs to classify, needs no download"),
        "grb-cora": Entry(_GRB, "citations of machine-learning papers, refined (GRB)"),
        "grb-citeseer": Entry(_GRB, "citations of computer-science papers, refined (GRB)"),
        "grb-flickr": Entry(_GRB, "images that share properties (GRB)"),
        "grb-reddit": Entry(_GRB, "posts that share commenting users (GRB)"),
        "grb-aminer": Entry(_GRB, "citations of papers from AMiner (GRB)"),
        "flickr-rebuilt": Entry(_GRB, "public source of grb-flickr under a split of our own; not GRB's files"),
        "reddit-rebuilt": Entry(_GRB, "public source of grb-reddit under a split of our own; not GRB's files"),
        **{name: Entry(_GRB, summary) for name, summary in _TAXONOMY.items()},
    },
    "model": {
        "gcn": Entry("grb.model.torch.gcn:GCN", "graph convolutional network (Kipf and Welling 2017)"),
        "gat": Entry("grb.model.torch.gat:GAT", "graph attention network (Veličković et al. 2018)"),
        "gin": Entry("grb.model.torch.gin:GIN", "graph isomorphism network (Xu et al. 2019)"),
        "appnp": Entry(
            "grb.model.torch.appnp:APPNP", "personalised propagation of predictions (Gasteiger et al. 2019)"
        ),
        "tagcn": Entry("grb.model.torch.tagcn:TAGCN", "topology-adaptive convolutions (Du et al. 2017)"),
        "graphsage": Entry("grb.model.torch.graphsage:GraphSAGE", "GraphSAGE (Hamilton et al. 2017)", ("sage",)),
        "sgcn": Entry("grb.model.torch.sgcn:SGCN", "simplified convolutions, GRB's variant (Wu et al. 2019)"),
        "sgc": Entry("grb.model.torch.sgcn:SGC", "simplified convolutions as in their paper (Wu et al. 2019)"),
        "r-gcn": Entry(
            "grb.defense.robustgcn:RobustGCN",
            "defense: Gaussian hidden states (Zhu et al. 2019)",
            ("robustgcn", "rgcn"),
        ),
        "gcnguard": Entry(
            "grb.defense.gnnguard:GCNGuard", "defense: edges weighed by similarity (Zhang and Zitnik 2020)"
        ),
        "gatguard": Entry(
            "grb.defense.gnnguard:GATGuard", "defense: GAT with GNNGuard's weights (Zhang and Zitnik 2020)"
        ),
        "gcn-svd": Entry("grb.defense.gcnsvd:GCNSVD", "defense: low-rank graph (Entezari et al. 2020)", ("gcnsvd",)),
        "egnnguard": Entry("grb.defense.egnnguard:EGNNGuard", "defense: GNNGuard made lean (Chen et al. 2022)"),
        "softmedian": Entry("grb.defense.softmedian:SoftMedian", "defense: soft medians of rows (Geisler et al. 2021)"),
        "grand": Entry("grb.defense.grand:GRAND", "defense: random propagation, consistency (Feng et al. 2020)"),
        "gcn-jaccard": Entry(DEFENDED, "defense: no edges between unlike sets of features (Wu et al. 2019)"),
        "gcn-cosine": Entry(DEFENDED, "defense: no edges between unlike directions of features (Wu et al. 2019)"),
        "gcn-transform": Entry(DEFENDED, "defense: features squashed by arctan (SPEIT, KDD Cup 2020)"),
        "mlp": Entry("grb.model.torch.mlp:MLP", "multi-layer perceptron: the baseline that sees no edges"),
    },
    # models of the taxonomy: one blueprint, one convolution each
    "profiler": {
        "gcn": Entry("grb.model.profiling.gcn:GCNConv", "5 graph convolutions; the paper's main model"),
        "gin": Entry("grb.model.profiling.gin:GINConv", "5 sums with a perceptron"),
        "gin-2l": Entry("grb.model.profiling.gin:GINConv", "2 sums with a perceptron"),
        "chebnet": Entry("grb.model.profiling.chebnet:ChebConv", "5 Chebyshev filters of order 2", ("cheb",)),
        "gatedgcn": Entry("grb.model.profiling.gatedgcn:GatedConv", "5 gated sums", ("gated-gcn",)),
        "gcnii": Entry("grb.model.profiling.gcnii:GCNIIConv", "5 graph convolutions with the first layer mixed in"),
    },
    # what can be put on any model: `+ln`, `+at` behind its name, `-jaccard` as part of it
    "defense": {
        "ln": Entry("grb.model.stack:ConvStack", "gcn+ln: layer norm in front of every layer but the last (GRB)"),
        "at": Entry("grb.defense.adversarial:AdversarialTraining", "gcn+at: adversarial training (GRB)"),
        "at-random": Entry(
            "grb.defense.adversarial:AdversarialTraining", "gcn+at-random: the same from random features"
        ),
        "at-full": Entry(
            "grb.defense.adversarial:AdversarialTraining", "gcn+at-full: the same over the whole range of features"
        ),
        "jaccard": Entry("grb.defense.preprocess:Jaccard", "gcn-jaccard: cut edges between unlike sets of features"),
        "cosine": Entry("grb.defense.preprocess:Cosine", "gcn-cosine: cut edges between unlike directions of features"),
        "transform": Entry("grb.defense.preprocess:Transform", "gcn-transform: squash features"),
    },
    "attack": {
        "rnd": Entry(
            "grb.attack.injection.random:RND", "injection: random edges and Gaussian features", ("rand", "random")
        ),
        "fgsm": Entry(
            "grb.attack.injection.fgsm:FGSM", "injection: signed gradient steps from zero (Goodfellow et al. 2015)"
        ),
        "pgd": Entry(
            "grb.attack.injection.pgd:PGD", "injection: projected gradient from a random start (Madry et al. 2018)"
        ),
        "speit": Entry("grb.attack.injection.speit:SPEIT", "injection: winner of KDD Cup 2020 (Zheng et al.)"),
        "tdgia": Entry(
            "grb.attack.injection.tdgia:TDGIA", "injection: topological defects, sequential (Zou et al. 2021)"
        ),
        "rnd-edges": Entry("grb.attack.modification.random:RND", "modification: random edges go", ("rand-edges",)),
        "dice": Entry(
            "grb.attack.modification.dice:DICE",
            "modification: edges inside classes go, between them come (Waniek 2018)",
        ),
        "fga": Entry("grb.attack.modification.fga:FGA", "modification: greedy by exact gradients (Chen et al. 2018)"),
        "flip": Entry(
            "grb.attack.modification.flip:FLIP", "modification: edges by centrality (Bojchevski and Günnemann 2019)"
        ),
        "nea": Entry(
            "grb.attack.modification.nea:NEA", "modification: against walk embeddings (Bojchevski and Günnemann 2019)"
        ),
        "stack": Entry("grb.attack.modification.stack:STACK", "modification: against graph filters (Xu et al. 2022)"),
        "pgd-features": Entry("grb.attack.modification.pgd:PGD", "modification: features of some targets (Madry 2018)"),
        "pgd-topology": Entry(
            "grb.attack.modification.pgd:TopologyPGD", "modification: projected gradient on edges (Xu et al. 2019)"
        ),
        "pr-bcd": Entry(
            "grb.attack.modification.prbcd:PRBCD",
            "modification: projected gradient on blocks of edges (Geisler et al. 2021)",
            ("prbcd",),
        ),
        "gr-bcd": Entry(
            "grb.attack.modification.prbcd:GRBCD",
            "modification: greedy on blocks of edges (Geisler et al. 2021)",
            ("grbcd",),
        ),
        "metattack": Entry(
            "grb.attack.modification.metattack:Metattack",
            "modification: poisoning by meta-gradients (Zügner and Günnemann 2019)",
        ),
    },
    # other names are those of the paper's code
    "perturbation": {
        "original": Entry("grb.perturb.build:Original", "the graph as it is, '-' in tables", ("-", "none")),
        "randftrs": Entry(
            "grb.perturb.features:RandFtrs", "features: one random number per node", ("randomnodefeatures",)
        ),
        "nonodeftrs": Entry("grb.perturb.features:NoNodeFtrs", "features: the same for every node", ("nofeatures",)),
        "nodedeg": Entry("grb.perturb.features:NodeDeg", "features: the degree, one-hot", ("nodedegree",)),
        "lowpass": Entry(
            "grb.perturb.spectral:LowPass",
            "features: low frequencies over the graph",
            ("bandpassfiltering-lo", "waveletbankfiltering-lo"),
        ),
        "midpass": Entry(
            "grb.perturb.spectral:MidPass",
            "features: middle frequencies over the graph",
            ("bandpassfiltering-mid", "waveletbankfiltering-mid"),
        ),
        "highpass": Entry(
            "grb.perturb.spectral:HighPass",
            "features: high frequencies over the graph",
            ("bandpassfiltering-hi", "waveletbankfiltering-hi"),
        ),
        "randrewire": Entry(
            "grb.perturb.rewire:RandRewire", "edges: half of them swap ends, degrees stay", ("randomedgerewire",)
        ),
        "noedges": Entry("grb.perturb.edges:NoEdges", "edges: none"),
        "fullyconn": Entry("grb.perturb.edges:FullyConn", "edges: all of them", ("fullyconnected",)),
        "frag-k1": Entry("grb.perturb.fragments:FragK1", "edges: random balls of radius 1", ("fragmented-k1",)),
        "frag-k2": Entry("grb.perturb.fragments:FragK2", "edges: random balls of radius 2", ("fragmented-k2",)),
        "frag-k3": Entry("grb.perturb.fragments:FragK3", "edges: random balls of radius 3", ("fragmented-k3",)),
        "fiedlerfrag": Entry(
            "grb.perturb.fiedler:FiedlerFrag",
            "edges: cut where the graph hangs together least",
            ("fiedlerfragmentation",),
        ),
        "dropedges": Entry("grb.perturb.edges:DropEdges", "edges: a random share goes"),
        "addedges": Entry("grb.perturb.edges:AddEdges", "edges: random ones come"),
        "sparsify": Entry("grb.perturb.edges:Sparsify", "edges: fewer, rather those that hold the graph together"),
    },
}


def kinds() -> list[str]:
    return list(KINDS)


def entries(kind: str) -> dict[str, Entry]:
    """All entries of a kind, our own first, then those of installed plug-ins."""
    if kind not in KINDS:
        raise UnknownName("kind", kind, KINDS, advice=f"Allowed: {', '.join(KINDS)}.")
    return {**KINDS[kind], **_plugins(kind)}


@cache
def _plugins(kind: str) -> dict[str, Entry]:
    """Entries of installed packages under names that we do not have; read once, because that takes milliseconds."""
    points = [point for point in metadata.entry_points(group=f"grb.{kind}s") if point.name not in KINDS[kind]]
    return {
        point.name: Entry(point.value, f"from {point.dist.name if point.dist else 'a plug-in'}") for point in points
    }


def canonical(kind: str, name: str) -> str:
    """The catalogue's spelling of a name or alias; unknown names are refused with the nearest one."""
    known = entries(kind)
    wanted = str(name).lower()
    if wanted in known:
        return wanted
    for own, entry in known.items():
        if wanted in entry.aliases:
            return own
    if kind == "model" and wanted.endswith(POOL) and not wanted.endswith(POOL + POOL):
        return f"{canonical('model', wanted.removesuffix(POOL))}{POOL}"
    if kind == "model" and (parts := _defended(wanted)):
        return f"{canonical('model', parts[0])}-{parts[1]}"
    raise UnknownName(kind, str(name), [*known, *(alias for entry in known.values() for alias in entry.aliases)])


def _defended(name: str) -> tuple[str, str] | None:
    """The model and the preprocess part of a name such as ``gat-jaccard``; None if it is no such name."""
    model, _, part = name.rpartition("-")
    known = part in entries("defense") and part not in SUFFIXES
    return (model, part) if model and known and part not in model.split("-") else None


def base_model_name(name: str) -> str:
    """A model's name without its preprocess parts.

    >>> base_model_name("gat-transform-jaccard"), base_model_name("gcn-svd")
    ('gat', 'gcn-svd')
    """
    while parts := _defended(name):
        name = parts[0]
    return name


def entry(kind: str, name: str) -> Entry:
    """The entry behind a name; a model with a preprocess part that is not listed gets one made up."""
    own = canonical(kind, name)
    if kind == "model" and own.endswith(POOL):
        return Entry(POOLED, f"graphs: {own.removesuffix(POOL)}, pooled over the nodes of every graph")
    return entries(kind).get(own) or Entry(DEFENDED, "defense: a model behind a preprocess part")


def resolve(kind: str, name: str) -> Any:
    """The class or function behind a name or a ``"package.module:Attribute"``."""
    own = name if ":" in str(name) else canonical(kind, name)
    target = own if ":" in own else entry(kind, own).target
    found = _imported(kind, name, target)
    if target == POOLED:
        return found(own.removesuffix(POOL))
    if target == DEFENDED and (parts := _defended(own)):
        return found(*parts)
    return found


@cache
def is_third_party(kind: str, name: str) -> bool:
    """Whether a name leads to code that is not ours.

    >>> is_third_party("model", "gat-jaccard+at"), is_third_party("model", "my_package.models:Net+ln")
    (False, True)
    """
    base, targets = name, []
    if kind == "model":
        base = name.split("+")[0].removesuffix(POOL)
        while parts := _defended(base):
            base = parts[0]
            targets.append(entry("defense", parts[1]).target)
    with suppress(UnknownName):  # data of the user's, no code
        targets.append(base if ":" in base else entry(kind, base).target)
    return not all(target.startswith("grb.") for target in targets)


def _imported(kind: str, name: str, target: str) -> Any:
    module, _, attribute = target.partition(":")
    try:
        with redirect_stdout(sys.stderr):  # whatever a module says is not our output
            return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name and not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists but one of its own imports is missing: that is the sentence to show
        raise DataError(f"{kind} '{name}' points to module '{module}', which cannot be found") from None
    except AttributeError:
        raise DataError(f"{kind} '{name}' points to '{attribute}', which module '{module}' does not have") from None
    except Exception as error:
        if target.startswith("grb."):
            raise
        words = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DataError(f"{kind} '{name}' points to module '{module}', which cannot be imported ({words})") from error


@cache
def preset(name: str) -> Any:
    """A table of the papers from the package's own ``presets/<name>.yaml``; treat it as read-only."""
    import yaml

    text = resources.files("grb").joinpath("presets").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)
