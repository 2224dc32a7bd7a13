"""Public datasets, most of them the taxonomy paper's: what reads each, where its raw files lie, how it is split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["node", "graph"]
Splitting = Literal["predefined", "folds", "random"]


@dataclass(frozen=True)
class Source:
    """Where one dataset comes from.

    Args:
        loader: Class of ``torch_geometric.datasets``, or ``nx`` or ``ogb``.
        title: The paper's name, under which its published results stand.
        task: What is classified.
        splitting: Where splits come from.
        name: The class's argument of that name, if it has one.
        folder: Directory below ``<root>/<loader>`` that has ``raw/``.
        files: Some of the raw files, to see whether they are there; in ``raw/``.
        parts: The class loads one part of its own split at a time.
        weighted: Its classes are so uneven that the paper weighs them.
        options: More arguments of the class.
    """

    loader: str
    title: str
    task: Level
    splitting: Splitting
    name: str | None = None
    folder: str = ""
    files: tuple[str, ...] = ()
    parts: bool = False
    weighted: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def call(self) -> str:
        """How the class is called, for a sentence."""
        arguments = ["'<root>/" + self.loader + "'"] + ([f"'{self.name}'"] if self.name else [])
        return f"{self.loader}({', '.join(arguments)})"


def _tu(name: str, *, title: str | None = None, attributes: bool = False) -> Source:
    files = (f"{name}_A.txt", f"{name}_graph_indicator.txt", f"{name}_graph_labels.txt")
    options = {"use_node_attr": True} if attributes else {}
    return Source("TUDataset", title or name, "graph", "folds", name, name, files, options=options)


def _benchmark(name: str, task: Level) -> Source:
    return Source("GNNBenchmarkDataset", name, task, "predefined", name, name, parts=True, weighted=task == "node")


def _node(loader: str, title: str, splitting: Splitting, name: str | None, folder: str, *files: str) -> Source:
    return Source(loader, title, "node", splitting, name, folder, files)


def _citations(name: str, title: str) -> Source:
    return _node("CitationFull", title, "random", name, name.lower(), f"{name.lower()}.npz")


def _geom(loader: str, name: str, title: str, folder: str) -> Source:
    own = name.lower()
    files = ("out1_node_feature_label.txt", "out1_graph_edges.txt", f"{own}_split_0.6_0.2_0.npz")
    return _node(loader, title, "predefined", name, folder, *files)


def _planetoid(name: str) -> Source:
    return _node("Planetoid", f"Planetoid-{name}", "predefined", name, name, f"ind.{name.lower()}.allx")


def _twitch(name: str) -> Source:
    return _node("Twitch", f"Twitch-{name}", "random", name, name, f"{name}.npz")


def _ogb(name: str, title: str) -> Source:
    return Source("ogb", title, "graph", "predefined", name, name.replace("-", "_") if title == name else name)


def _ogb_nodes(name: str, split: str) -> Source:
    return Source("ogb", name, "node", "predefined", name, name.replace("-", "_"), options={"split": split})


def _nx(name: str, title: str, bins: int) -> Source:
    return Source("nx", title, "graph", "folds", name, options={"bins": bins})


SOURCES: Mapping[str, Source] = {
    "enzymes": _tu("ENZYMES", attributes=True),
    "proteins": _tu("PROTEINS", attributes=True),
    "mutag": _tu("MUTAG"),
    "nci1": _tu("NCI1"),
    "nci109": _tu("NCI109"),
    "dd": _tu("DD", title="D&D"),
    "imdb-binary": _tu("IMDB-BINARY"),
    "reddit-binary": _tu("REDDIT-BINARY"),
    "reddit-multi-5k": _tu("REDDIT-MULTI-5K"),
    "collab": _tu("COLLAB"),
    "syntheticnew": _tu("SYNTHETICnew", attributes=True),
    "synthie": _tu("Synthie", attributes=True),
    "mnist": _benchmark("MNIST", "graph"),
    "cifar10": _benchmark("CIFAR10", "graph"),
    "pattern": _benchmark("PATTERN", "node"),
    "cluster": _benchmark("CLUSTER", "node"),
    "ppi": Source("PPI", "PPI", "node", "predefined", files=("train_graph.json",), parts=True),
    "malnet-tiny": Source("MalNetTiny", "MalNetTiny", "graph", "folds", files=("malnet-graphs-tiny",)),
    "small-world": _nx("smallworld", "Small-World-10", 10),
    "small-world-5": _nx("smallworld", "Small-World", 5),
    "scale-free": _nx("scalefree", "Scale-Free-10", 10),
    "scale-free-5": _nx("scalefree", "Scale-Free", 5),
    "ogbg-molhiv": _ogb("ogbg-molhiv", "ogbg-molhiv"),
    "ogbg-moltox21": _ogb("ogbg-moltox21", "ogbg-moltox21"),
    "ogbg-molpcba": _ogb("ogbg-molpcba", "ogbg-molpcba"),
    "pcqm4mv2-subset": _ogb("pcqm4m-v2", "PCQM4Mv2-subset"),
    "planetoid-cora": _planetoid("Cora"),
    "planetoid-citeseer": _planetoid("CiteSeer"),
    "planetoid-pubmed": _planetoid("PubMed"),
    "citationfull-cora": _citations("Cora", "CF-Cora"),
    "citationfull-cora-ml": _citations("Cora_ML", "CF-CoraML"),
    "citationfull-citeseer": _citations("CiteSeer", "CF-CiteSr"),
    "citationfull-dblp": _citations("DBLP", "CF-DBLP"),
    "citationfull-pubmed": _citations("PubMed", "CF-PubMed"),
    "webkb-cornell": _geom("WebKB", "Cornell", "WebKB-Cor", "cornell"),
    "webkb-texas": _geom("WebKB", "Texas", "WebKB-Tex", "texas"),
    "webkb-wisconsin": _geom("WebKB", "Wisconsin", "WebKB-Wis", "wisconsin"),
    "actor": _node("Actor", "Actor", "predefined", None, "", "out1_node_feature_label.txt", "film_split_0.6_0.2_0.npz"),
    "wikipedia-chameleon": _geom("WikipediaNetwork", "chameleon", "WikiNet-cham", "chameleon/geom_gcn"),
    "wikipedia-squirrel": _geom("WikipediaNetwork", "squirrel", "WikiNet-squir", "squirrel/geom_gcn"),
    "wikics": _node("WikiCS", "WikiCS", "predefined", None, "", "data.json"),
    "amazon-computers": _node(
        "Amazon", "Am-Comp", "random", "Computers", "Computers", "amazon_electronics_computers.npz"
    ),
    "amazon-photo": _node("Amazon", "Am-Phot", "random", "Photo", "Photo", "amazon_electronics_photo.npz"),
    "coauthor-cs": _node("Coauthor", "Coau-CS", "random", "CS", "CS", "ms_academic_cs.npz"),
    "coauthor-physics": _node("Coauthor", "Coau-Phy", "random", "Physics", "Physics", "ms_academic_phy.npz"),
    **{f"twitch-{name.lower()}": _twitch(name) for name in ("DE", "EN", "ES", "FR", "PT", "RU")},
    "github": _node("GitHub", "Github", "random", None, "", "github.npz"),
    "facebook-pagepage": _node("FacebookPagePage", "FBPP", "random", None, "", "facebook.npz"),
    "lastfm-asia": _node("LastFMAsia", "LFMA", "random", None, "", "lastfm_asia.npz"),
    "deezer-europe": _node("DeezerEurope", "DzEu", "random", None, "", "deezer_europe.npz"),
    "flickr": _node("Flickr", "Flickr", "predefined", None, "", "adj_full.npz", "feats.npy"),
    # not of that paper
    "ogbn-arxiv": _ogb_nodes("ogbn-arxiv", "time"),
    "ogbn-products": _ogb_nodes("ogbn-products", "sales_ranking"),
    "ogbn-proteins": _ogb_nodes("ogbn-proteins", "species"),
}
