"""Which datasets there are and where their files lie: imports nothing heavy, writes nothing, downloads nothing.

The environment is read at call time.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grb.catalogue import canonical, entries
from grb.errors import DataError, MissingDataset, UnknownName

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

Level = Literal["node", "graph"]
Splitting = Literal["predefined", "folds", "random"]
Difficulty = Literal["easy", "medium", "hard", "full"]
DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard", "full")
FILES = ("adj.npz", "features.npz", "labels.npz", "index.npz")
EMBEDDED = ("synth-cora", "synth-tiny", "synth-graphs", "synth-cora-fresh")
# datasets whose test nodes are a graph of their own, and what they are cut from
FRESH = {f"{name}-fresh": name for name in ("synth-cora", "grb-cora", "grb-citeseer", "grb-flickr")}
REBUILT = {"flickr-rebuilt": "flickr", "reddit-rebuilt": "reddit"}
TEXT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


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
        parts: Whether the class loads one part of its split at a time.
        weighted: Whether the paper weights its uneven classes.
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
        """The call of the class, for a sentence."""
        arguments = ["'<root>/" + self.loader + "'"] + ([f"'{self.name}'"] if self.name else [])
        return f"{self.loader}({', '.join(arguments)})"


def _tu(name: str, *, title: str | None = None, attributes: bool = False, bonds: bool = False) -> Source:
    files = [f"{name}_A.txt", f"{name}_graph_indicator.txt", f"{name}_graph_labels.txt"]
    files += [f"{name}_edge_labels.txt"] if bonds else []
    options = {**({"use_node_attr": True} if attributes else {}), **({"use_edge_attr": True} if bonds else {})}
    return Source("TUDataset", title or name, "graph", "folds", name, name, tuple(files), options=options)


def _benchmark(name: str, task: Level) -> Source:
    return Source("GNNBenchmarkDataset", name, task, "predefined", name, name, parts=True, weighted=task == "node")


def _node(loader: str, title: str, splitting: Splitting, name: str | None, folder: str, *files: str) -> Source:
    return Source(loader, title, "node", splitting, name, folder, files)


def _citations(name: str, title: str) -> Source:
    return _node("CitationFull", title, "random", name, name.lower(), f"{name.lower()}.npz")


def _geom(loader: str, name: str, title: str, folder: str) -> Source:
    short = name.lower()
    files = ("out1_node_feature_label.txt", "out1_graph_edges.txt", f"{short}_split_0.6_0.2_0.npz")
    return _node(loader, title, "predefined", name, folder, *files)


def _snake(name: str) -> str:
    return name.lower().replace("-", "_")


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
    "mutag-bonds": _tu("MUTAG", title="MUTAG (bonds)", bonds=True),
    "nci1": _tu("NCI1"),
    "nci109": _tu("NCI109"),
    "dd": _tu("DD", title="D&D"),
    "imdb-binary": _tu("IMDB-BINARY"),
    "imdb-multi": _tu("IMDB-MULTI"),
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
    **{
        f"heterophilous-{name.lower()}": _node(
            "HeterophilousGraphDataset", name, "predefined", name, _snake(name), f"{_snake(name)}.npz"
        )
        for name in ("Minesweeper", "Tolokers", "Roman-empire", "Amazon-ratings", "Questions")
    },
    "ogbn-arxiv": _ogb_nodes("ogbn-arxiv", "time"),
    "ogbn-products": _ogb_nodes("ogbn-products", "sales_ranking"),
    "ogbn-proteins": _ogb_nodes("ogbn-proteins", "species"),
}


def check_difficulty(mode: str) -> Difficulty:
    """The name of a difficulty; any other name is refused."""
    for known in DIFFICULTIES:
        if mode == known:
            return known
    raise UnknownName("difficulty", str(mode), DIFFICULTIES, advice=f"Allowed: {', '.join(DIFFICULTIES)}.")


def is_path(name: object) -> bool:
    """Whether this names a file or directory and not an entry of the catalogue."""
    return isinstance(name, str) and (name.endswith((".npz", *TEXT_SUFFIXES)) or os.sep in name)


def dataset_reference(name: str, dataset: Dataset | None = None) -> str:
    """What another process finds a dataset by; :func:`~grb.dataset.load_dataset` accepts all three forms.

    Args:
        name: A catalogue name or alias, ``package.module:function``, or the path of a folder or file.
        dataset: The loaded dataset, if there is one; only a clearer refusal is made from it.

    Returns:
        The catalogue name, ``package.module:function``, or the absolute path.

    >>> dataset_reference("synth-tiny"), dataset_reference("my_package.data:load")
    ('synth-tiny', 'my_package.data:load')
    """
    if is_path(name):
        return str(Path(name).absolute())
    if ":" in name:
        return name
    try:
        return canonical("dataset", name)
    except UnknownName:
        if dataset is None:
            raise
        raise DataError(
            f"dataset '{name}' exists in this process only, so that no other process finds it; write it with "
            "grb.dataset.storage.save and use its path, or name the function that makes it as package.module:function"
        ) from None


def has_files(name: str) -> bool:
    """Whether a dataset of the catalogue is read from the four files of GRB; others are embedded, raw files or code."""
    return name not in (*EMBEDDED, *SOURCES) and entries("dataset")[name].target == "grb.dataset.dataset:Dataset"


def home() -> Path:
    """``$GRB_HOME``, or ``grb`` in the user's cache directory."""
    if os.environ.get("GRB_HOME"):
        return Path(os.environ["GRB_HOME"]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "grb"


def roots(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Directories searched for datasets, in order: the argument or ``$GRB_DATA_DIR``, ``$GRB_DATA``, the cache."""
    data_dir = data_dir or os.environ.get("GRB_DATA_DIR")
    listed = [Path(part).expanduser() for part in os.environ.get("GRB_DATA", "").split(os.pathsep) if part]
    first = [Path(data_dir).expanduser()] if data_dir else []
    return [*first, *listed, home() / "data"]


def offline() -> bool:
    """Whether ``$GRB_OFFLINE`` forbids the network."""
    return os.environ.get("GRB_OFFLINE", "") not in ("", "0")


def find(name: str, data_dir: str | os.PathLike[str] | None = None, *, files: Collection[str] = FILES) -> Path:
    """Directory of a dataset (a file for datasets made of one npz file of arrays); a missing one is refused with a remedy.

    GRB datasets are looked for as ``<root>/GRB/<name>``, ``<root>/<name>`` and, for ``data_dir`` alone, the directory
    itself; others by the place of their raw files below a root.

    Args:
        name: A dataset of the catalogue.
        data_dir: Directory to search before ``$GRB_DATA`` and the cache; ``$GRB_DATA_DIR`` if not given.
        files: Files that the directory of a GRB dataset must have.
    """
    name = canonical("dataset", name)
    name = FRESH.get(name, name)
    searched = roots(data_dir)
    if name in SOURCES:
        places = [_raw_place(root, SOURCES[name]) for root in searched]
    else:
        places = [place for root in searched for place in (root / "GRB" / name, root / name)]
        if data_dir or os.environ.get("GRB_DATA_DIR"):
            places.insert(0, searched[0])
    incomplete = ""
    for place in places:
        missing = _missing(place, name, files)
        if not missing:
            return place
        if len(missing) < len(files) and name not in SOURCES and not incomplete:
            incomplete = f" {place} lacks {', '.join(missing)}."
            if missing == ["features.npz"]:
                incomplete += " grb.dataset.storage.read_directory(directory, features=False) reads its other files."
    what = f"dataset '{name}' is not on this machine (searched {', '.join(map(str, searched))}).{incomplete}"
    raise MissingDataset(what, advice(name))


def _raw_place(root: Path, source: Source) -> Path:
    if source.loader == "nx":
        return root / "nx" / f"{source.name}_edges.npz"
    return root / "ogb" if source.loader == "ogb" else root / source.loader / source.folder


def source_files(place: Path, source: Source) -> list[Path]:
    """The raw files of a public dataset, sorted."""
    folder = place / source.folder if source.loader == "ogb" else place / "raw"
    return sorted(path for path in (folder.rglob("*") if place.is_dir() else [place]) if path.is_file())


def _missing(place: Path, name: str, files: Collection[str]) -> list[str]:
    """What the place of a dataset lacks."""
    source = SOURCES.get(name)
    if source is None:
        return [file for file in files if not (place / file).is_file()]
    if source.loader == "nx":
        return [] if place.is_file() else [place.name]
    if source.loader == "ogb":
        return [] if (place / source.folder).is_dir() else [source.folder]
    raw = place / "raw"
    if not raw.is_dir() or not any(raw.iterdir()):
        return ["raw"]
    return [file for file in source.files if not (raw / file).exists()]


def advice(name: str) -> str:
    """How to get the files of a dataset, in one sentence."""
    source = SOURCES.get(name)
    if source is None:
        return (
            f"Run `grb data get {name}` (with `--from DIR` if you have its files), or put {', '.join(FILES)} into "
            f"<root>/GRB/{name} and set GRB_DATA=<root>, or try the embedded 'synth-cora'."
        )
    if source.loader == "nx":
        return f"Put {source.name}_edges.npz (edges, edge_ptr, num_nodes) into <root>/nx and set GRB_DATA=<root>."
    if source.loader == "ogb":
        return f"Let the ogb package download it into <root>/ogb/{source.folder} and set GRB_DATA=<root>."
    folder = "/".join(part for part in (source.loader, source.folder, "raw") if part)
    return f"Put its raw files into <root>/{folder}, or let torch_geometric do it ({source.call}), and set GRB_DATA=<root>."
