"""What grb has, as JSON values: every name with its import path and a summary; nothing is imported.

Third-party packages add entries through entry points of the groups ``grb.datasets``, ``grb.models``, ``grb.attacks``,
``grb.defenses`` and ``grb.perturbations``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from grb.errors import UnknownName


@dataclass(frozen=True)
class Entry:
    """One catalogued object: where it lives and what it is.

    Args:
        target: Import path, ``"package.module:Attribute"``.
        summary: One line for tables and help texts.
        aliases: Other names of the same object.
        group: Subdivision of its kind: ``nodes`` or ``graphs`` to classify for datasets, ``injection`` or
            ``modification`` (the scenario) for attacks, ``defense`` for models that are defenses, ``features`` or
            ``edges`` (what changes) for perturbations; empty where a kind has no subdivision.
    """

    target: str
    summary: str
    aliases: tuple[str, ...] = ()
    group: str = ""

    @property
    def description(self) -> str:
        """The summary behind its group, for display only."""
        return f"{self.group}: {self.summary}" if self.group else self.summary


_GRB = "grb.dataset.dataset:Dataset"
# datasets of the taxonomy paper and of OGB, read from raw files; graphs to classify, then nodes to classify
_GRAPHS = {
    "enzymes": "protein tertiary structures, 6 classes of enzymes",
    "proteins": "proteins, enzyme or not",
    "mutag": "nitroaromatic compounds, mutagenic or not",
    "mutag-bonds": "the same with the types of bonds as edge features",
    "nci1": "compounds screened against lung cancer",
    "nci109": "compounds screened against ovarian cancer",
    "dd": "proteins, enzyme or not, graphs below 3,500 nodes",
    "imdb-binary": "actors who played together, no features",
    "imdb-multi": "actors who played together, 3 genres, no features",
    "reddit-binary": "threads of users who answer each other, no features",
    "reddit-multi-5k": "threads of 5 communities, no features",
    "collab": "collaborations of scientists, no features",
    "syntheticnew": "rewired random graphs with normal features",
    "synthie": "synthetic graphs of 4 classes",
    "mnist": "digits as superpixels",
    "cifar10": "photographs as superpixels",
    "malnet-tiny": "function calls of malware, local degree profiles as features",
    "small-world": "small-world graphs by average path length, 10 bins",
    "small-world-5": "small-world graphs in 5 bins, as the published results have them",
    "scale-free": "scale-free graphs by average path length, 10 bins",
    "scale-free-5": "scale-free graphs in 5 bins, as the published results have them",
    "ogbg-molhiv": "molecules that inhibit HIV",
    "ogbg-moltox21": "toxicity of molecules, 12 labels",
    "ogbg-molpcba": "activity of molecules, 128 labels",
    "pcqm4mv2-subset": "molecules by HOMO-LUMO gap, 20 quantile bins",
}
_NODES = {
    "pattern": "nodes of a pattern in stochastic block graphs",
    "cluster": "communities of stochastic block graphs",
    "ppi": "proteins of 24 tissues, 121 labels",
    "planetoid-cora": "citations, public split with 20 training nodes per class",
    "planetoid-citeseer": "citations, public split with 20 training nodes per class",
    "planetoid-pubmed": "citations, public split with 20 training nodes per class",
    "citationfull-cora": "citations, full graph",
    "citationfull-cora-ml": "citations, full graph",
    "citationfull-citeseer": "citations, full graph",
    "citationfull-dblp": "citations, full graph",
    "citationfull-pubmed": "citations, full graph",
    "webkb-cornell": "links between pages of a university",
    "webkb-texas": "links between pages of a university",
    "webkb-wisconsin": "links between pages of a university",
    "actor": "actors on the same Wikipedia page",
    "wikipedia-chameleon": "links between Wikipedia pages",
    "wikipedia-squirrel": "links between Wikipedia pages",
    "wikics": "Wikipedia articles on computer science",
    "amazon-computers": "goods bought together",
    "amazon-photo": "goods bought together",
    "coauthor-cs": "authors who wrote together",
    "coauthor-physics": "authors who wrote together",
    "twitch-de": "gamers who follow each other",
    "twitch-en": "gamers who follow each other",
    "twitch-es": "gamers who follow each other",
    "twitch-fr": "gamers who follow each other",
    "twitch-pt": "gamers who follow each other",
    "twitch-ru": "gamers who follow each other",
    "github": "developers who follow each other",
    "facebook-pagepage": "pages that like each other",
    "lastfm-asia": "listeners who follow each other",
    "deezer-europe": "listeners who follow each other",
    "flickr": "images that share properties",
    "heterophilous-minesweeper": "squares of a game, mines among them (Platonov et al. 2023)",
    "heterophilous-tolokers": "workers of a crowdsourcing platform, banned or not (Platonov et al. 2023)",
    "heterophilous-roman-empire": "words of an article by their role in the sentence (Platonov et al. 2023)",
    "heterophilous-amazon-ratings": "products bought together by their mean rating (Platonov et al. 2023)",
    "heterophilous-questions": "users of a forum, active or not (Platonov et al. 2023)",
    "ogbn-arxiv": "citations of computer-science papers, split by year (OGB)",
    "ogbn-products": "products bought together, split by sales rank (OGB)",
    "ogbn-proteins": "proteins of 8 species, 112 labels, no features (OGB)",
}
DEFENDED = "grb.defense.defended:defended"
KINDS: Mapping[str, Mapping[str, Entry]] = {
    "dataset": {
        "synth-tiny": Entry(_GRB, "synthetic, embedded, a small sibling of synth-cora for smoke tests", group="nodes"),
        "synth-cora": Entry(
            _GRB, "synthetic, embedded, as large and as hard as grb-cora, needs no download", group="nodes"
        ),
        "synth-graphs": Entry(
            _GRB, "synthetic, embedded, 200 small graphs to classify, needs no download", group="graphs"
        ),
        "grb-cora": Entry(_GRB, "citations of machine-learning papers, refined (GRB)", group="nodes"),
        "grb-citeseer": Entry(_GRB, "citations of computer-science papers, refined (GRB)", group="nodes"),
        "grb-flickr": Entry(_GRB, "images that share properties (GRB)", group="nodes"),
        "grb-reddit": Entry(_GRB, "posts that share commenting users (GRB)", group="nodes"),
        "grb-aminer": Entry(_GRB, "citations of papers from AMiner (GRB)", group="nodes"),
        "flickr-rebuilt": Entry(
            _GRB, "public source of grb-flickr under our own split; not GRB's files", group="nodes"
        ),
        "reddit-rebuilt": Entry(
            _GRB, "public source of grb-reddit under our own split; not GRB's files", group="nodes"
        ),
        **{
            f"{name}-fresh": Entry(_GRB, f"{name} with whole communities cut off as the test graph", group="nodes")
            for name in ("synth-cora", "grb-cora", "grb-citeseer", "grb-flickr")
        },
        **{name: Entry(_GRB, summary, group="graphs") for name, summary in _GRAPHS.items()},
        **{name: Entry(_GRB, summary, group="nodes") for name, summary in _NODES.items()},
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
        "gprgnn": Entry("grb.model.torch.gprgnn:GPRGNN", "learnt weights of hops (Chien et al. 2021)", ("gpr-gnn",)),
        "chebnetii": Entry("grb.model.torch.chebnetii:ChebNetII", "a learnt Chebyshev filter (He et al. 2022)"),
        "sgformer": Entry(
            "grb.model.torch.sgformer:SGFormer", "linear attention over all nodes beside a GCN (Wu et al. 2023)"
        ),
        "gps": Entry(
            "grb.model.torch.gps:GPS", "convolution and linear attention in every layer (Rampášek et al. 2022)"
        ),
        "r-gcn": Entry(
            "grb.defense.robustgcn:RobustGCN",
            "Gaussian hidden states (Zhu et al. 2019)",
            ("robustgcn", "rgcn"),
            group="defense",
        ),
        "gcnguard": Entry(
            "grb.defense.gnnguard:GCNGuard", "edges weighed by similarity (Zhang and Zitnik 2020)", group="defense"
        ),
        "gatguard": Entry(
            "grb.defense.gnnguard:GATGuard", "GAT with GNNGuard's weights (Zhang and Zitnik 2020)", group="defense"
        ),
        "gcn-svd": Entry(
            "grb.defense.gcnsvd:GCNSVD", "low-rank graph (Entezari et al. 2020)", ("gcnsvd",), group="defense"
        ),
        "egnnguard": Entry("grb.defense.egnnguard:EGNNGuard", "a faster GNNGuard (Chen et al. 2022)", group="defense"),
        "softmedian": Entry(
            "grb.defense.softmedian:SoftMedian", "soft medians of rows (Geisler et al. 2021)", group="defense"
        ),
        "softmedian-gdc": Entry(
            "grb.defense.softmedian:SoftMedianGDC",
            "soft medians over personalised PageRank (Geisler et al. 2021)",
            group="defense",
        ),
        "rung": Entry("grb.defense.rung:RUNG", "edges across long distances vanish (Hou et al. 2024)", group="defense"),
        "elasticgnn": Entry(
            "grb.defense.elastic:ElasticGNN",
            "elastic message passing (Liu et al. 2021)",
            ("elastic",),
            group="defense",
        ),
        "grand": Entry(
            "grb.defense.grand:GRAND", "random propagation, consistency (Feng et al. 2020)", group="defense"
        ),
        "pro-gnn": Entry(
            "grb.defense.prognn:ProGNN",
            "weights of the training graph's edges are learnt, transductive (Jin et al. 2020)",
            ("prognn",),
            group="defense",
        ),
        "gcn-jaccard": Entry(
            DEFENDED, "no edges between nodes with dissimilar sets of features (Wu et al. 2019)", group="defense"
        ),
        "gcn-cosine": Entry(
            DEFENDED, "no edges between nodes with dissimilar features by cosine (Wu et al. 2019)", group="defense"
        ),
        "gcn-transform": Entry(DEFENDED, "features squashed by arctan (SPEIT, KDD Cup 2020)", group="defense"),
        "gcn-detect": Entry(DEFENDED, "no edges that a detector suspects (ours)", group="defense"),
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
        "transformer": Entry(
            "grb.model.profiling.transformer:TransformerConv", "5 layers of attention along edges; not of the paper"
        ),
        "gine": Entry("grb.model.profiling.gine:GINEConv", "GIN with edge features in its messages; not of the paper"),
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
        "jaccard": Entry(
            "grb.defense.preprocess:Jaccard", "gcn-jaccard: drop edges between nodes of low Jaccard similarity"
        ),
        "cosine": Entry(
            "grb.defense.preprocess:Cosine", "gcn-cosine: drop edges between nodes of low cosine similarity"
        ),
        "transform": Entry("grb.defense.preprocess:Transform", "gcn-transform: squash features"),
        "detect": Entry("grb.defense.detect:Detect", "gcn-detect: drop edges that a detector suspects (ours)"),
        "known": Entry("grb.model.known:Known", "gcn+known: hears only nodes of the training graph (ours)"),
        "bounded": Entry(
            "grb.model.bounded:Bounded", "gcn+bounded: the same, and a bounded vote of every unknown node (ours)"
        ),
        "hash-vote": Entry(
            "grb.model.hash_vote:HashVote", "gcn+hash-vote: a vote of groups of edges (Xia et al. 2024)"
        ),
        "smooth": Entry(
            "grb.model.smoothed:Smoothed", "gcn+smooth: a vote over random graphs (Bojchevski et al. 2020)"
        ),
    },
    "attack": {
        "rnd": Entry(
            "grb.attack.injection.random:RND",
            "random edges and Gaussian features",
            ("rand", "random"),
            group="injection",
        ),
        "fgsm": Entry(
            "grb.attack.injection.fgsm:FGSM",
            "signed gradient steps from zero (Goodfellow et al. 2015)",
            group="injection",
        ),
        "pgd": Entry(
            "grb.attack.injection.pgd:PGD",
            "projected gradient from a random start (Madry et al. 2018)",
            group="injection",
        ),
        "speit": Entry("grb.attack.injection.speit:SPEIT", "winner of KDD Cup 2020 (Zheng et al.)", group="injection"),
        "tdgia": Entry(
            "grb.attack.injection.tdgia:TDGIA", "topological defects, sequential (Zou et al. 2021)", group="injection"
        ),
        "composed-injection": Entry(
            "grb.attack.injection.composed:ComposedInjection",
            "edges, start, loss and optimiser by name, with rewiring by gradients",
            group="injection",
        ),
        "injection-random-search": Entry(
            "grb.attack.injection.random_search:InjectionRandomSearch",
            "random exchanges of nodes, by outputs or queries alone (after Andriushchenko et al. 2020)",
            ("query-search",),
            group="injection",
        ),
        "afgsm": Entry(
            "grb.attack.injection.afgsm:AFGSM",
            "closed-form gradients of a linear surrogate (Wang et al. 2020)",
            group="injection",
        ),
        "agia": Entry(
            "grb.attack.injection.sequential:AGIA", "edges by optimised weights (Chen et al. 2022)", group="injection"
        ),
        "seqgia": Entry(
            "grb.attack.injection.sequential:SeqGIA",
            "the same, batch after batch (Chen et al. 2022)",
            group="injection",
        ),
        "metagia": Entry(
            "grb.attack.injection.sequential:MetaGIA",
            "edges exchanged by gradients, batch after batch (Chen et al. 2022)",
            group="injection",
        ),
        "distil": Entry(
            "grb.attack.distil:Distil",
            "a surrogate learnt from answers, then a transfer (after Papernot et al. 2017)",
            group="injection",
        ),
        "distil-edges": Entry("grb.attack.distil:EdgeDistil", "the same with changed edges", group="modification"),
        "rnd-edges": Entry(
            "grb.attack.modification.random:RND", "drop random edges", ("rand-edges",), group="modification"
        ),
        "dice": Entry(
            "grb.attack.modification.dice:DICE",
            "drop edges inside classes, add edges between them (Waniek 2018)",
            group="modification",
        ),
        "fga": Entry(
            "grb.attack.modification.fga:FGA", "greedy by exact gradients (Chen et al. 2018)", group="modification"
        ),
        "flip": Entry(
            "grb.attack.modification.flip:FLIP",
            "edges by centrality (Bojchevski and Günnemann 2019)",
            group="modification",
        ),
        "nea": Entry(
            "grb.attack.modification.nea:NEA",
            "against walk embeddings (Bojchevski and Günnemann 2019)",
            group="modification",
        ),
        "stack": Entry(
            "grb.attack.modification.stack:STACK", "against graph filters (Xu et al. 2022)", group="modification"
        ),
        "pgd-features": Entry(
            "grb.attack.modification.pgd:PGD", "features of some targets (Madry 2018)", group="modification"
        ),
        "pgd-topology": Entry(
            "grb.attack.modification.pgd:TopologyPGD",
            "projected gradient on edges (Xu et al. 2019)",
            group="modification",
        ),
        "pr-bcd": Entry(
            "grb.attack.modification.prbcd:PRBCD",
            "projected gradient on blocks of edges (Geisler et al. 2021)",
            ("prbcd",),
            group="modification",
        ),
        "gr-bcd": Entry(
            "grb.attack.modification.prbcd:GRBCD",
            "greedy on blocks of edges (Geisler et al. 2021)",
            ("grbcd",),
            group="modification",
        ),
        "auto": Entry(
            "grb.attack.auto.ensemble:GraphAutoAttack",
            "the standard ensemble: races attacks, returns the strongest edit",
            group="injection",
        ),
        "auto-edges": Entry(
            "grb.attack.auto.ensemble:EdgeAutoAttack",
            "the standard ensemble for changed edges",
            group="modification",
        ),
        "lr-bcd": Entry(
            "grb.attack.modification.lrbcd:LRBCD",
            "the same within a budget of every node (Gosch et al. 2023)",
            ("lrbcd",),
            group="modification",
        ),
        "local-search": Entry(
            "grb.attack.modification.local_search:LocalSearch",
            "flips by exact outcomes, the weakest exchanged (ours)",
            group="modification",
        ),
        "eva": Entry(
            "grb.attack.modification.eva:EvA",
            "evolutionary, without gradients (Akhondzadeh et al. 2026)",
            group="modification",
        ),
        "eva-plus": Entry(
            "grb.attack.modification.eva_plus:EvAPlus",
            "mutations by exact local outcomes, without gradients (ours)",
            ("eva+",),
            group="modification",
        ),
        "random-search": Entry(
            "grb.attack.modification.random_search:RandomSearch",
            "random exchanges, without gradients (after Andriushchenko et al. 2020)",
            group="modification",
        ),
        "grabnel": Entry(
            "grb.attack.modification.grabnel:GRABNEL",
            "Bayesian optimisation, for graphs to classify, by queries (Wan et al. 2021)",
            group="modification",
        ),
        "rl-s2v": Entry(
            "grb.attack.modification.rl_s2v:RLS2V",
            "Q-learning over flips, by queries (Dai et al. 2018)",
            ("rls2v",),
            group="modification",
        ),
        "low-rank-collapse": Entry(
            "grb.attack.modification.low_rank_collapse:LowRankCollapse",
            "lets a degree of a low-rank graph vanish: for gcn-svd (ours)",
            group="modification",
        ),
        "nettack": Entry(
            "grb.attack.modification.nettack:Nettack",
            "edges and words around single targets (Zügner et al. 2018)",
            group="modification",
        ),
        "metattack": Entry(
            "grb.attack.modification.metattack:Metattack",
            "poisoning by meta-gradients (Zügner and Günnemann 2019)",
            group="modification",
        ),
        "meta-pgd": Entry(
            "grb.attack.modification.metapgd:MetaPGD",
            "poisoning by projected meta-gradients (Mujkanovic et al. 2022)",
            ("metapgd",),
            group="modification",
        ),
        "fgsm-features": Entry(
            "grb.attack.modification.pgd:FGSM",
            "features of some targets, one signed step (Goodfellow 2015)",
            group="modification",
        ),
    },
    "certificate": {
        "by-construction": Entry(
            "grb.certificate.by_construction:ByConstruction",
            "verifies that unknown nodes are heard by nobody (ours); +known, mlp",
            group="injected nodes",
        ),
        "bounded-influence": Entry(
            "grb.certificate.bounded:BoundedInfluence",
            "counts the votes of unknown nodes that a lead survives (ours); +bounded",
            group="injected nodes",
        ),
        "hash-vote": Entry(
            "grb.certificate.hash_vote:HashVoteCertificate",
            "lead of a vote of groups, deterministic (Xia et al. 2024)",
            group="changed edges, injected nodes",
        ),
        "sparse-smoothing": Entry(
            "grb.certificate.smoothing:SparseSmoothing",
            "randomly flipped edges (Bojchevski et al. 2020)",
            group="changed edges",
        ),
        "bi-smoothing": Entry(
            "grb.certificate.smoothing:BiSmoothing",
            "randomly deleted edges and nodes (Lai et al. 2024)",
            group="injected nodes",
        ),
        "interception": Entry(
            "grb.certificate.smoothing:Interception",
            "randomly deleted edges and features (Scholten et al. 2022)",
            group="hijacked nodes",
        ),
        "gaussian-smoothing": Entry(
            "grb.certificate.gaussian:GaussianSmoothing",
            "Gaussian noise on features of all or selected nodes (Cohen et al. 2019, Scholten et al. 2023)",
            group="hijacked nodes",
        ),
    },
    # what a defender notices who has seen the training graph alone
    "detector": {
        "feature-likelihood": Entry(
            "grb.detector.likelihood:FeatureLikelihood", "rows of features that are unlikely by principal components"
        ),
        "homophily": Entry("grb.detector.homophily:Homophily", "nodes unlike their neighbours (Chen et al. 2022)"),
        "degree": Entry("grb.detector.degree:Degree", "unusual numbers of edges"),
        "consistency": Entry(
            "grb.detector.consistency:Consistency", "neighbours of other classes by their features alone"
        ),
        "joint": Entry("grb.detector.joint:Joint", "all of these together, unusual in any direction"),
    },
    # other names are those of the paper's code
    "perturbation": {
        "original": Entry("grb.perturb.build:Original", "the graph as it is, '-' in tables", ("-", "none")),
        "randftrs": Entry(
            "grb.perturb.features:RandFtrs", "one random number per node", ("randomnodefeatures",), group="features"
        ),
        "nonodeftrs": Entry(
            "grb.perturb.features:NoNodeFtrs", "the same for every node", ("nofeatures",), group="features"
        ),
        "nodedeg": Entry("grb.perturb.features:NodeDeg", "the degree, one-hot", ("nodedegree",), group="features"),
        "lowpass": Entry(
            "grb.perturb.spectral:LowPass",
            "low frequencies over the graph",
            ("bandpassfiltering-lo", "waveletbankfiltering-lo"),
            group="features",
        ),
        "midpass": Entry(
            "grb.perturb.spectral:MidPass",
            "middle frequencies over the graph",
            ("bandpassfiltering-mid", "waveletbankfiltering-mid"),
            group="features",
        ),
        "highpass": Entry(
            "grb.perturb.spectral:HighPass",
            "high frequencies over the graph",
            ("bandpassfiltering-hi", "waveletbankfiltering-hi"),
            group="features",
        ),
        "randrewire": Entry(
            "grb.perturb.rewire:RandRewire",
            "half of them swap ends, degrees stay",
            ("randomedgerewire",),
            group="edges",
        ),
        "noedges": Entry("grb.perturb.edges:NoEdges", "none", group="edges"),
        "fullyconn": Entry("grb.perturb.edges:FullyConn", "all of them", ("fullyconnected",), group="edges"),
        "frag-k1": Entry("grb.perturb.fragments:FragK1", "random balls of radius 1", ("fragmented-k1",), group="edges"),
        "frag-k2": Entry("grb.perturb.fragments:FragK2", "random balls of radius 2", ("fragmented-k2",), group="edges"),
        "frag-k3": Entry("grb.perturb.fragments:FragK3", "random balls of radius 3", ("fragmented-k3",), group="edges"),
        "fiedlerfrag": Entry(
            "grb.perturb.fiedler:FiedlerFrag",
            "cut where the graph is least connected",
            ("fiedlerfragmentation",),
            group="edges",
        ),
        "dropedges": Entry("grb.perturb.edges:DropEdges", "a random fraction is dropped", group="edges"),
        "addedges": Entry("grb.perturb.edges:AddEdges", "random ones are added", group="edges"),
        "sparsify": Entry("grb.perturb.edges:Sparsify", "fewer, keeping those that connect the graph", group="edges"),
        "coarsen": Entry("grb.perturb.coarsen:Coarsen", "those of a coarser graph, lifted back", group="edges"),
        "curvrewire": Entry(
            "grb.perturb.curvature:CurvRewire", "moved from dense places to bottlenecks", group="edges"
        ),
        "noedgeftrs": Entry("grb.perturb.weights:NoEdgeFtrs", "all of weight one", group="edges"),
        "randedgeftrs": Entry("grb.perturb.weights:RandEdgeFtrs", "weights change places", group="edges"),
    },
}


def kinds() -> list[str]:
    """Kinds of catalogued objects: datasets, models, attacks and so on."""
    return list(KINDS)


def entries(kind: str) -> dict[str, Entry]:
    """All entries of a kind, those of grb first, then those of installed plug-ins."""
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


def find(kind: str, name: str) -> str | None:
    """The catalogue's spelling of a listed name or alias in any case; None if there is no such entry."""
    known, wanted = entries(kind), name.lower()
    if wanted in known:
        return wanted
    return next((own for own, entry in known.items() if wanted in entry.aliases), None)
