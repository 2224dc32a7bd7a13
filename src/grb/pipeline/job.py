"""Jobs: idempotent functions of a small spec. A job's key names its result before it is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from grb.catalogue import is_third_party
from grb.errors import DataError
from grb.names import MARGIN_RULES, target_rule
from grb.pipeline.spec import Spec, digest, jsonable

# name of the spec of a job that nobody computed: its artefact was submitted
SUBMISSION = "submission"
Kind = Literal["fit", "attack", "score", "certify", "profile", "study"]
KINDS: tuple[str, ...] = get_args(Kind)
FORMAT = 1
_SPEC, _DATA = frozenset({"name", "params"}), frozenset({"dataset", "fingerprint", "chain"})
# types of the fields that a file holds as they are
_TYPES: dict[str, type] = {
    **dict.fromkeys(("method", "inputs", "extra"), dict),
    **dict.fromkeys(("seed", "threads", "version"), int),
    "device": str,
}
_KINDS = list(_TYPES.values())
_FIELDS = frozenset({"format", "kind", "spec", "data", "mode", *_TYPES})
# what the catalogue calls the methods of jobs
_CATALOGUED = {"fit": "model", "attack": "attack", "certify": "certificate", "profile": "profiler"}


@dataclass(frozen=True)
class TargetRule:
    """How the attacked nodes are chosen among the test nodes of a difficulty.

    Args:
        rule: ``random=20``, ``class=1`` and the like.
        seed: Random seed of the choice.
    """

    rule: str
    seed: int = 0

    @property
    def by_margins(self) -> bool:
        """Whether they are chosen by what a model says: the input ``targets`` of a job."""
        declared = target_rule(self.rule)
        return declared is not None and declared[0] in MARGIN_RULES


@dataclass(frozen=True)
class DataRef:
    """A dataset and what happens to its graph before use.

    Args:
        dataset: Catalogue name or ``package.module:function``.
        fingerprint: Fingerprint of the dataset as it was planned; a worker that loads another one refuses.
        chain: Keys of attack jobs whose edits are applied, and perturbations, in this order.
        data_dir: Where the files were found if not on the usual path; not part of the key.
        split: Which of the dataset's splits or folds; None for a dataset with one split.
        targets: Which of the test nodes are attacked and scored; None for all of a difficulty, and for a training.
    """

    dataset: str
    fingerprint: str
    chain: tuple[str | Spec, ...] = ()
    data_dir: str | None = field(default=None, compare=False)
    split: int | None = None
    targets: TargetRule | None = None

    def with_edit(self, key: str) -> DataRef:
        """The data with one more edit at the end of its chain."""
        return replace(self, chain=(*self.chain, key))

    def perturbed(self, spec: Spec) -> DataRef:
        """The data with one more perturbation at the end of its chain."""
        return replace(self, chain=(*self.chain, spec))

    @cached_property
    def edits(self) -> tuple[str, ...]:
        """Keys of the attack jobs in the chain."""
        return tuple(link for link in self.chain if isinstance(link, str))

    @cached_property
    def perturbations(self) -> tuple[Spec, ...]:
        """Perturbations in the chain."""
        return tuple(link for link in self.chain if isinstance(link, Spec))


def _target_rule(value: Any) -> TargetRule:
    if value.keys() != {"rule", "seed"} or type(value["rule"]) is not str or type(value["seed"]) is not int:
        raise ValueError("a choice of targets that is none")
    return TargetRule(value["rule"], value["seed"])


def _link(value: Any) -> str | Spec:
    if isinstance(value, str):
        return value
    if value.keys() != _SPEC or type(value["name"]) is not str or type(value["params"]) is not dict:
        raise ValueError("a link that is neither a key nor a perturbation")
    return Spec(value["name"], value["params"])


@dataclass(frozen=True)
class Job:
    """One unit of work.

    Args:
        kind: ``fit`` ends in weights, ``attack`` in an edit, ``score`` in a measurement, ``certify`` in what no edit can
            change, ``profile`` in an AUROC; ``study`` is never run: its record says which scores make a board.
        spec: The method: a defense's or an attack's name and changes of its preset.
        data: What it works on.
        method: The built method with every preset filled in, as JSON values; only hashed, never interpreted.
        inputs: Keys of other jobs by role: ``model`` of a score or certificate, ``surrogate`` of an attack, ``targets`` where
            a model's margins choose these.
        mode: Difficulty of the targets.
        seed: Random seed.
        threads: Number of torch threads, because results depend on it in the last bits.
        device: Kind of device, ``cpu`` or ``cuda``.
        version: Version of the method; raised when its numbers change.
        extra: Threat model and knowledge of an attack.
        title: What it does, for progress; not part of the key.
        study: Name of the study that asks for it; not part of the key.
    """

    kind: Kind
    spec: Spec
    data: DataRef
    method: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    mode: str | None = None
    seed: int = 0
    threads: int = 1
    device: str = "cpu"
    version: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)
    title: str = field(default="", compare=False)
    study: str = field(default="", compare=False)

    @cached_property
    def key(self) -> str:
        """sha256 of everything that the result depends on."""
        return digest(self.to_dict())

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the jobs that must be done before."""
        return (*self.inputs.values(), *self.data.edits)

    @cached_property
    def third_party_code(self) -> frozenset[str]:
        """Names by which it leads to code that is not ours; that of its inputs is not among them."""
        named = [("dataset", self.data.dataset), *(("perturbation", spec.name) for spec in self.data.perturbations)]
        if self.kind in _CATALOGUED:
            named.append((_CATALOGUED[self.kind], self.sent_code or self.spec.name))
        return frozenset(name for kind, name in named if is_third_party(kind, name))

    def number_of(self, part: str) -> int:
        """The number of the split, the weights or the draw of a profile: the seed, or 0 where another part alone varies."""
        return self.seed if self.extra.get("vary", "all") in ("all", part) else 0

    @property
    def sent_code(self) -> str | None:
        """The ``package.module:function`` that makes a submitted model; None for models of grb's and what is no submission."""
        code = self.spec.params.get("module") if self.spec.name == SUBMISSION else None
        return None if code is None else str(code)

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        changed = "".join(f" {spec.label}" for spec in self.data.perturbations)
        fold = "" if self.data.split is None else f" split {self.data.split}"
        own = "" if self.data.targets is None else f" {self.data.targets.rule}"
        where = f"{self.data.dataset}{changed}{fold}" + (f" {self.mode}" if self.mode else "") + own
        if self.kind == "score":
            under = " under attack" if self.data.edits else ""
            return f"score {self.title or 'a model' + under} on {where}"
        return f"{self.kind} {self.title or self.spec.label} on {where}, seed {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """Everything that the key depends on, as JSON holds it."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "spec": self.spec.to_dict(),
            "data": {
                "dataset": self.data.dataset,
                "fingerprint": self.data.fingerprint,
                "chain": [link if isinstance(link, str) else link.to_dict() for link in self.data.chain],
                **({} if self.data.split is None else {"split": self.data.split}),
                **({} if self.data.targets is None else {"targets": dict(vars(self.data.targets))}),
            },
            "method": jsonable(self.method),
            "inputs": dict(self.inputs),
            "mode": self.mode,
            "seed": self.seed,
            "threads": self.threads,
            "device": self.device,
            "version": self.version,
            "extra": jsonable(self.extra),
        }

    def to_message(self) -> dict[str, Any]:
        """What a worker gets: everything that the key depends on, and who asks."""
        return {**self.to_dict(), "study": self.study}

    @classmethod
    def from_message(
        cls, values: Mapping[str, Any], *, data_dir: str | None = None, title: str = "", key: str | None = None
    ) -> Job:
        """Back from :meth:`to_message`; anything else is refused.

        Args:
            values: What a worker gets or a kept plan holds.
            data_dir: Where the dataset's files are.
            title: What it does, for progress.
            key: Its key if that is known already, which saves hashing it.
        """
        own = {name: value for name, value in values.items() if name != "study"}
        job = replace(cls.from_dict(own, data_dir=data_dir), title=title, study=str(values.get("study", "")))
        if key is not None:
            vars(job)["key"] = key
        return job

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, data_dir: str | None = None) -> Job:
        """Back from :meth:`to_dict`; anything else is refused, also what would be spelt otherwise there."""
        try:
            if values.keys() != _FIELDS or values["format"] != FORMAT or values["kind"] not in KINDS:
                raise ValueError(f"fields {', '.join(values)[:80]}, kind {values['kind']}")
            data, spec = values["data"], values["spec"]
            if (
                spec.keys() != _SPEC
                or data.keys() - {"split", "targets"} != _DATA
                or not isinstance(data["chain"], list)
            ):
                raise ValueError("other fields in its spec or data")
            held = [values[name] for name in _TYPES]
            texts = (spec["name"], data["dataset"], data["fingerprint"], *values["inputs"].values())
            if [*map(type, held)] != _KINDS or {*map(type, texts)} != {str} or type(spec["params"]) is not dict:
                raise TypeError("a field of another type")
            mode, split = values["mode"], data.get("split", 0)
            if not (mode is None or type(mode) is str) or type(split) is not int:
                raise TypeError("a difficulty or split of another type")
            chain = tuple(map(_link, data["chain"]))
            targets = None if "targets" not in data else _target_rule(data["targets"])
            ref = DataRef(data["dataset"], data["fingerprint"], chain, data_dir, data.get("split"), targets)
            own: dict[str, Any] = dict(zip(_TYPES, held))
            return cls(values["kind"], Spec(spec["name"], spec["params"]), ref, mode=mode, **own)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"this is no job of format {FORMAT} ({error!r}); it was not written by grb") from None
