"""Papers behind the names of the catalogue, read from the docstrings of their classes; nothing is imported for it."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from grb.entries import entries, find
from grb.errors import DataError, UnknownName
from grb.names import ModelName, is_import_path

# authors, *title*, place and year, as docstrings of grb write them
_NAME = r"[^\W\d_a-z][\w'-]+"
_CITATION = re.compile(
    rf"({_NAME}(?:(?:, | and ){_NAME})*(?: et al\.)?), \*([^*]{{3,200}})\*(?: \([^)]*\))?,? ?([^;.]{{0,60}}?)(\d{{4}})\b"
)
# each was looked up, with its title beside it, in the docs of PyTorch Geometric and DGL and in lists of the literature
_ARXIV = {
    "kipf2017semisupervised": "1609.02907",
    "velickovic2018graph": "1710.10903",
    "xu2019how": "1810.00826",
    "gasteiger2019predict": "1810.05997",
    "du2017topology": "1710.10370",
    "hamilton2017inductive": "1706.02216",
    "wu2019simplifying": "1902.07153",
    "chien2021adaptive": "2006.07988",
    "he2022convolutional": "2202.03580",
    "zhang2020gnnguard": "2006.08149",
    "chen2022understanding": "2202.08057",
    "geisler2021robustness": "2110.14038",
    "gasteiger2019diffusion": "1911.05485",
    "hou2024robust": "2311.14934",
    "liu2021elastic": "2107.06996",
    "feng2020graph": "2005.11079",
    "jin2020graph": "2005.10203",
    "wu2019adversarial": "1903.01610",
    "goodfellow2015explaining": "1412.6572",
    "madry2018towards": "1706.06083",
    "zou2021tdgia": "2106.06663",
    "zheng2021graph": "2111.04314",
    "andriushchenko2020square": "1912.00049",
    "papernot2017practical": "1602.02697",
    "waniek2018hiding": "1608.00375",
    "bojchevski2019adversarial": "1809.01093",
    "xu2019topology": "1906.04214",
    "gosch2023adversarial": "2306.15427",
    "croce2020reliable": "2003.01690",
    "mujkanovic2022are": "2301.13694",
    "dai2018adversarial": "1806.02371",
    "zugner2018adversarial": "1805.07984",
    "zugner2019adversarial": "1902.08412",
    "bojchevski2020efficient": "2008.12952",
    "chen2018fast": "1809.02797",
    "lai2024nodeaware": "2312.03979",
    "rampasek2022recipe": "2205.12454",
    "scholten2022randomized": "2301.02039",
    "wan2021adversarial": "2111.02842",
    "wang2020scalable": "2004.13825",
    "wu2023sgformer": "2306.10759",
    "xu2022blindfolded": "2012.06757",
}
_LINKS = {
    **{key: f"https://arxiv.org/abs/{number}" for key, number in _ARXIV.items()},
    "zhu2019robust": "https://doi.org/10.1145/3292500.3330851",
    "entezari2020all": "https://doi.org/10.1145/3336191.3371789",
}


@dataclass(frozen=True)
class Reference:
    """A paper.

    Args:
        authors: As it is cited in a text: ``Zou et al.``
        title: Its title.
        venue: Conference or journal; empty if it has none.
        year: Year of publication.
    """

    authors: str
    title: str
    venue: str
    year: int

    @property
    def key(self) -> str:
        """Key for BibTeX: first author, year and first word of the title.

        >>> Reference("Zou et al.", "TDGIA: Effective Injection", "KDD", 2021).key
        'zou2021tdgia'
        """
        return _plain(self.authors.split()[0]) + str(self.year) + _plain(re.split(r"[\s:]", self.title)[0])

    def to_bibtex(self) -> str:
        """The paper as an entry of BibTeX.

        >>> print(Reference("Kipf and Welling", "Semi-Supervised Classification", "ICLR", 2017).to_bibtex())
        @inproceedings{kipf2017semisupervised,
          author = {Kipf and Welling},
          title = {{Semi-Supervised Classification}},
          booktitle = {ICLR},
          year = {2017},
          url = {https://arxiv.org/abs/1609.02907},
        }
        """
        authors = self.authors.replace(" et al.", " and others").replace(", ", " and ")
        values = {"author": authors, "title": f"{{{self.title}}}", "booktitle": self.venue, "year": str(self.year)}
        return bibtex("inproceedings" if self.venue else "misc", self.key, {**values, "url": self.link})

    @property
    def link(self) -> str:
        """Address of the paper; empty where it is not known."""
        return _LINKS.get(self.key, "")


def bibtex(kind: str, key: str, values: dict[str, str]) -> str:
    """An entry of BibTeX with those of its fields that are not empty; nothing in a value can end it."""
    lines = [f"  {name} = {{{_balanced(value)}}}," for name, value in values.items() if value]
    return "\n".join([f"@{kind}{{{re.sub('[^A-Za-z0-9:_-]', '', key) or 'entry'},", *lines, "}"])


def _balanced(text: str) -> str:
    """Text whose braces are balanced and that has no command: what stands alone is left out."""
    text = text.replace("\\", "/")
    depth = 0
    for letter in text:
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            break
    return text if depth == 0 else text.replace("{", "").replace("}", "")


def _plain(word: str) -> str:
    return re.sub("[^a-z0-9]", "", unicodedata.normalize("NFKD", word).lower())


def references(kind: str, name: str) -> tuple[Reference, ...]:
    """The papers of a catalogued name, each once; empty for one that cites none, and for names of others.

    A composed model has those of its parts: ``r-gcn+at`` of R-GCN and of adversarial training.

    >>> [each.key for each in references("attack", "tdgia")]
    ['zou2021tdgia', 'chen2022understanding']
    >>> [each.venue for each in references("model", "gcn-jaccard")]
    ['ICLR', 'NeurIPS', 'IJCAI']
    """
    if is_import_path(name):
        return ()
    try:
        targets = list(_targets(kind, name))
    except (UnknownName, DataError):
        return ()
    return tuple(dict.fromkeys(each for target in targets for each in _cited(target)))


def _targets(kind: str, name: str) -> Iterator[str]:
    if kind != "model":
        yield from _target(kind, name)
        return
    parsed = ModelName.parse(name)
    yield from _target("model", parsed.base)
    norm = ["ln"] if parsed.layer_norm else []
    for part in (*parsed.preprocess, *norm, parsed.adversarial_training, parsed.wrapper):
        if part is not None:
            yield from _target("defense", part)


def _target(kind: str, name: str) -> Iterator[str]:
    known = find(kind, name)
    if known is not None:
        yield entries(kind)[known].target


@cache
def _cited(target: str) -> tuple[Reference, ...]:
    """What the docstring of a class of ours cites below References."""
    module, _, wanted = target.partition(":")
    if not module.startswith("grb."):
        return ()
    file = resources.files("grb")
    for part in (*module.split(".")[1:-1], module.rpartition(".")[2] + ".py"):
        file = file.joinpath(part)
    body = ast.parse(file.read_text("utf-8")).body
    nodes = {each.name: each for each in body if isinstance(each, ast.ClassDef | ast.FunctionDef)}
    lines = " ".join(_section(nodes, wanted).split())
    return tuple(
        Reference(authors, title, venue.rstrip(", "), int(year))
        for authors, title, venue, year in _CITATION.findall(lines)
    )


def _section(nodes: Mapping[str, ast.ClassDef | ast.FunctionDef], wanted: str) -> str:
    """What stands below References in the docstring of a class, or of its parent in the same file."""
    node = nodes.get(wanted)
    if node is None:
        return ""
    text = ast.get_docstring(node) or ""
    cited = re.search(r"^References:\n(.*?)(?=^\S|^\s*>>>|\Z)", text, re.MULTILINE | re.DOTALL)
    if cited is not None:
        return cited[1]
    parents = [each.id for each in getattr(node, "bases", ()) if isinstance(each, ast.Name)]
    return next((found for parent in parents if (found := _section(nodes, parent))), "")
