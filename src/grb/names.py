"""The grammar of composed names, in one position: ``gat-jaccard-pool+ln``, ``gcn+at-full``, ``nonodeftrs+frag-k1``.

A model's name is a base model, then graph preprocessing and pooling behind hyphens, then training options behind pluses::

    BASE [-PREPROCESS ...] [-pool] [+ln] [+at | +at-random | +at-full] [+known | +bounded | +hash-vote | +smooth]

where the base is a name of the catalogue or an import path ``package.module:Class``. A perturbation's name is one name or
several joined by pluses. Nothing else in grb takes such a name apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from grb.entries import entries, find
from grb.errors import DataError, UnknownName

POOL = "-pool"
LAYER_NORM = "ln"
# variants of adversarial training; they differ in the features that injected nodes start from
ADVERSARIAL = ("at", "at-random", "at-full")
# models around a model, for which certificates exist
WRAPPERS = ("known", "bounded", "hash-vote", "smooth")
# of these, models that treat nodes of the training graph unlike strangers
MEMORY = ("known", "bounded")
# models that are tied to the graph that they were trained on
TRANSDUCTIVE = ("pro-gnn",)
# how targets are declared, as RULE=NUMBER; the last three go by the margins of a model
TARGET_RULES = ("random", "degrees", "margin-low", "margin-high", "nettack")
MARGIN_RULES = TARGET_RULES[2:]
# defenses that stand behind a plus; all others of the catalogue are graph preprocessing and stand behind a hyphen
SUFFIXES = (LAYER_NORM, *ADVERSARIAL, *WRAPPERS)


@dataclass(frozen=True)
class ModelName:
    """A model's name taken apart; ``str()`` gives the canonical spelling.

    Args:
        base: Name of the base model in the catalogue, or an import path ``package.module:Class``.
        preprocess: Graph preprocessing in front of the model, the innermost first.
        pooled: Whether the rows of nodes are pooled, so that the model classifies graphs.
        layer_norm: Whether the model has layer normalisation.
        adversarial_training: Variant of adversarial training, ``at``, ``at-random`` or ``at-full``; None for none.
        wrapper: Model around the model, ``known``, ``bounded``, ``hash-vote`` or ``smooth``; None for none.

    >>> name = ModelName.parse("SAGE-jaccard+at+ln")
    >>> str(name), name.base, name.preprocess, name.adversarial
    ('graphsage-jaccard+ln+at', 'graphsage', ('jaccard',), True)
    """

    base: str
    preprocess: tuple[str, ...] = ()
    pooled: bool = False
    layer_norm: bool = False
    adversarial_training: str | None = None
    wrapper: str | None = None

    @classmethod
    def parse(cls, text: str | ModelName) -> ModelName:
        """Read a name in any spelling; unknown names and suffixes are refused.

        >>> ModelName.parse("gat-transform-jaccard").preprocess, ModelName.parse("gcn-svd").base
        (('transform', 'jaccard'), 'gcn-svd')
        """
        if isinstance(text, ModelName):
            return text
        head, *given = str(text).split("+")
        base, preprocess, pooled = _architecture(head)
        suffixes = [suffix.lower() for suffix in given]
        unknown = [suffix for suffix in suffixes if suffix not in SUFFIXES]
        if unknown or len(set(suffixes)) != len(suffixes):
            allowed = ", ".join(f"'+{suffix}'" for suffix in SUFFIXES)
            raise DataError(
                f"model '{text}' has the suffix '+{(unknown or suffixes)[0]}', but only {allowed} are known, once each"
            )
        variants = [suffix for suffix in suffixes if suffix in ADVERSARIAL]
        if len(variants) > 1:
            raise DataError(f"model '{text}' asks for two kinds of adversarial training; keep one of them")
        wrappers = [suffix for suffix in suffixes if suffix in WRAPPERS]
        if len(wrappers) > 1 or (wrappers and (variants or pooled)):
            both = wrappers[-1] if len(wrappers) > 1 else (variants or ["pool"])[0]
            raise DataError(f"model '{text}' has '+{wrappers[0]}', which does not go with '{both}'; keep one of them")
        training, outer = (each[0] if each else None for each in (variants, wrappers))
        return cls(base, preprocess, pooled, LAYER_NORM in suffixes, training, outer)

    def __str__(self) -> str:
        norm = [LAYER_NORM] if self.layer_norm else []
        training = [self.adversarial_training] if self.adversarial_training else []
        return "+".join([self.inner.architecture, *norm, *training, *([self.wrapper] if self.wrapper else [])])

    @property
    def architecture(self) -> str:
        """The name without its training options, as a checkpoint has it: ``gat-jaccard`` of ``gat-jaccard+ln+at``."""
        head = "-".join([self.base, *self.preprocess]) + (POOL if self.pooled else "")
        return f"{head}+{self.wrapper}" if self.wrapper else head

    @property
    def inner(self) -> ModelName:
        """The name without the model around it.

        >>> str(ModelName.parse("gcn+ln+known").inner), ModelName.parse("gcn+ln+known").architecture
        ('gcn+ln', 'gcn+known')
        """
        return replace(self, wrapper=None)

    @property
    def node_classifier(self) -> ModelName:
        """The model of nodes inside: base and preprocessing without pooling and training options."""
        return ModelName(self.base, self.preprocess)

    @property
    def has_training_options(self) -> bool:
        """Whether there is anything behind a plus, which is no part of the architecture."""
        return self.layer_norm or self.adversarial

    @property
    def adversarial(self) -> bool:
        """Whether the model is trained adversarially."""
        return self.adversarial_training is not None

    @property
    def has_import_path(self) -> bool:
        """Whether the base model is given by its import path."""
        return is_import_path(self.base)

    @property
    def is_third_party(self) -> bool:
        """Whether the base model or its preprocessing is code that does not come with grb.

        >>> ModelName.parse("gat-jaccard+at").is_third_party, ModelName.parse("my_package.models:Net").is_third_party
        (False, True)
        """
        target = self.base if self.has_import_path else entries("model")[self.base].target
        targets = [target, *(entries("defense")[part].target for part in self.preprocess)]
        return not all(target.startswith("grb.") for target in targets)

    @property
    def is_defended(self) -> bool:
        """Whether the name asks for a defense: one of its own, preprocessing, layer norm or adversarial training."""
        base = entries("model").get(self.base)
        own = base is not None and base.group == "defense"
        return own or bool(self.preprocess) or self.has_training_options or self.wrapper is not None

    def for_task(self, task: str) -> ModelName:
        """The name for classifying nodes or graphs: on graphs, a node classifier of the catalogue is pooled.

        >>> str(ModelName.parse("gin+ln").for_task("graph")), str(ModelName.parse("gin").for_task("node"))
        ('gin-pool+ln', 'gin')
        """
        if task == "graph" and self.adversarial:
            raise DataError(
                f"'{self}' asks for adversarial training, which is for node classifiers; "
                f"leave '+{self.adversarial_training}' out"
            )
        if task == "graph" and self.wrapper:
            raise DataError(f"'{self}' classifies nodes, but this dataset has graphs; leave '+{self.wrapper}' out")
        if task != "graph" and self.pooled:
            raise DataError(
                f"model '{self}' classifies graphs, but this dataset has nodes to classify; leave '{POOL}' out"
            )
        return replace(self, pooled=task == "graph" and not self.has_import_path)

    def with_defense(self, defense: str) -> ModelName:
        """The name with one more defense on the model; one that is a model itself is refused.

        >>> gcn = ModelName.parse("gcn+ln")
        >>> str(gcn.with_defense("at")), str(gcn.with_defense("jaccard")), str(gcn.with_defense("guard"))
        ('gcn+ln+at', 'gcn-jaccard+ln', 'gcnguard+ln')
        """
        wanted = defense.lower().lstrip("+-")
        if wanted in SUFFIXES:
            return ModelName.parse(f"{self}+{wanted}")
        if wanted in entries("defense"):
            composed = replace(self, preprocess=(*self.preprocess, wanted))
            return ModelName.parse(str(composed))
        for own in (f"{self.base}-{wanted}", f"{self.base}{wanted}"):  # gcn-svd, gcnguard
            if own in entries("model"):
                return replace(self, base=own)
        base_model = ModelName.of_defense(wanted)
        raise DataError(f"defense '{base_model}' is itself a model and cannot be put on '{self}'; leave '{self}' out")

    @classmethod
    def of_defense(cls, defense: str) -> ModelName:
        """The name of a defense that is itself a model, such as ``gatguard``.

        >>> str(ModelName.of_defense("GATGuard"))
        'gatguard'
        """
        if defense.lower().lstrip("+-") in entries("defense"):
            raise DataError(f"defense '{defense}' goes on a model, but none is given; name one, for instance gcn")
        try:
            return cls.parse(defense)
        except UnknownName:
            known = [*entries("defense"), *entries("model")]
            advice = "`grb ls defenses` and `grb ls models` show all names."
            raise UnknownName("defense", defense, known, advice=advice) from None


def _architecture(head: str) -> tuple[str, tuple[str, ...], bool]:
    """Base, preprocessing and pooling of a model's name without suffixes."""
    if is_import_path(head):
        if "-" in head.rpartition(":")[2]:
            raise DataError(
                f"model '{head}' is an import path, which takes '+ln' and '+at' but nothing behind a hyphen; "
                "give the class a name through an entry point of the group 'grb.models'"
            )
        return head, (), False
    text, pooled = head.lower(), False
    if find("model", text) is None and text.endswith(POOL):
        text, pooled = text.removesuffix(POOL), True
    preprocess: list[str] = []
    while True:
        rest, _, part = text.rpartition("-")
        if not rest or part in SUFFIXES or part not in entries("defense"):
            break
        if part in preprocess:
            raise DataError(f"model '{head}' has '-{part}' twice; keep one of them")
        text = rest
        preprocess.insert(0, part)
    base = find("model", text)
    if base is None:
        raise unknown_name("model", head[: len(text)])
    return base, tuple(preprocess), pooled


# endings of files, which no published name has
FILE_ENDINGS = (".safetensors", ".npz", ".zip", ".pt", ".pth", ".json", ".yaml")


@dataclass(frozen=True)
class Label:
    """A name with settings in brackets, as tables show methods that differ from a study's common settings.

    Args:
        name: What stands before the brackets.
        settings: What stands in them, as text.

    >>> Label.parse("gat+at(epochs=130, hidden_features=[64, 64])")
    Label(name='gat+at', settings={'epochs': '130', 'hidden_features': '[64, 64]'})
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Label:
        """Read a label; brackets that do not close, and settings that are none, are refused."""
        head, opened, inside = text.partition("(")
        if not opened:
            return cls(text.strip())
        parts = _listed(inside[:-1]) if inside.endswith(")") else None
        if parts is None or not head.strip():
            raise DataError(
                f"'{text[:80]}' has brackets that do not close; a name such as gat+at(epochs=130) is needed"
            )
        settings: dict[str, str] = {}
        for part in parts:
            key, equals, value = (each.strip() for each in part.partition("="))
            if not (key.isidentifier() and equals and value) or key in settings:
                raise DataError(
                    f"'{text[:80]}' has '{part.strip()[:40]}' in its brackets, but KEY=VALUE is needed, every key once"
                )
            settings[key] = value
        return cls(head.strip(), settings)


def _listed(text: str) -> list[str] | None:
    """Parts between the commas that stand in no brackets of their own; None if these do not close."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return None
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return None if depth else parts


@dataclass(frozen=True)
class PublishedName:
    """The name of something in a published bundle, ``grb-cora/gat+at(epochs=130)``.

    Args:
        bundle: Name of the bundle.
        label: Name of a model or an attack in it; keys such as ``seed`` in its brackets choose one of several.
    """

    bundle: str
    label: Label

    @classmethod
    def parse(cls, text: str) -> PublishedName | None:
        """Read a name; None for what has another form, such as the path of a file.

        >>> PublishedName.parse("grb-cora/gat+at(seed=1)")
        PublishedName(bundle='grb-cora', label=Label(name='gat+at', settings={'seed': '1'}))
        >>> PublishedName.parse("models/gat.safetensors"), PublishedName.parse("gat+at")
        (None, None)
        """
        bundle, slash, rest = text.partition("/")
        head = rest.partition("(")[0].strip().lower()
        if not (slash and head and bundle) or bundle.startswith((".", "~")) or set("/\\\0") & set(rest):
            return None
        return None if rest.lower().endswith(FILE_ENDINGS) else cls(bundle, Label.parse(rest))


def is_import_path(name: str) -> bool:
    """Whether a name is a ``package.module:Attribute`` and not a name of the catalogue."""
    return ":" in name


def target_rule(text: str) -> tuple[str, int] | None:
    """Rule and number of targets declared as ``RULE=NUMBER``; None if the text declares none.

    >>> target_rule("random=20"), target_rule("class=fraud")
    (('random', 20), None)
    """
    rule, equals, number = text.partition("=")
    if rule not in TARGET_RULES or not equals:
        return None
    if not (number.isascii() and number.isdigit() and len(number) < 10 and int(number)):
        raise DataError(f"targets are '{text[:40]}', but a number of nodes of at least 1 is needed after {rule}=")
    return rule, int(number)


def unknown_name(kind: str, name: str) -> UnknownName:
    """The refusal of a name that the catalogue does not have, with the nearest ones that it has."""
    known = entries(kind)
    return UnknownName(kind, name, [*known, *(alias for entry in known.values() for alias in entry.aliases)])


def perturbation_parts(name: str) -> tuple[str, ...]:
    """The perturbations of a composed name under the catalogue's spelling, in the order in which they are applied.

    >>> perturbation_parts("NoFeatures+Frag-k1")
    ('nonodeftrs', 'frag-k1')
    """
    parts = []
    for part in str(name).split("+"):
        own = part if is_import_path(part) else find("perturbation", part)
        if own is None:
            raise unknown_name("perturbation", part)
        parts.append(own)
    return tuple(parts)
