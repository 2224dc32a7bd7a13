"""Names of the metrics, what they mean, and how a name such as ``recall:1`` is read.

======================================  ==========================================================================
``accuracy``                            share of correct predictions; several labels per item: all of them correct
``balanced-accuracy``                   mean recall over the classes
``micro-f1``, ``macro-f1``, ``f1:K``    F1 over all decisions, mean over the classes, of class K alone
``micro-precision``, ... ``recall:K``   the same for precision and recall
``auroc``, ``auroc:K``                  area under the ROC curve, mean of one class against the rest, or of class K
``average-precision``, ...``:K``        area under the precision-recall curve, likewise
``package.module:function``             a custom function of (logits, decisions, labels)
======================================  ==========================================================================

Nothing heavy is imported before a metric is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grb.catalogue import resolve
from grb.errors import DataError, UnknownName

CustomMetric = Callable[[Any, Any, Any], float]
_UNBOUNDED = (float("-inf"), float("inf"))
_DECISIONS, _RANKING = "grb.metric.prediction", "grb.metric.ranking"


@dataclass(frozen=True)
class Metric:
    """A metric that can be computed from what a model says of some items and their true labels.

    Args:
        name: Canonical name, for instance ``recall:1``.
        description: What it measures, in one line.
        target: The function behind it as ``package.module:function``, imported at first use.
        label: The class that it is restricted to, or None.
        options: Further arguments of the function.
        range: Smallest and largest possible value.
        higher_is_better: Whether a better model has a larger value.
        needs_scores: Whether it ranks items by their scores; others look at decisions alone.
        custom: A function given instead of a name.
    """

    name: str
    description: str
    target: str
    label: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    range: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    needs_scores: bool = False
    custom: CustomMetric | None = None

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Read ``name``, ``name:class`` or ``package.module:function``; case and underscores do not matter in names.

        No code is imported, so names from untrusted files can be read.

        >>> Metric.parse("recall:1").label, Metric.parse("Macro_F1").name
        (1, 'macro-f1')
        """
        head, colon, tail = text.strip().partition(":")
        name = head.lower().replace("_", "-")
        known = METRICS.get(ALIASES.get(name, name))
        if known is None:
            if colon and tail and not tail.isdigit():
                return cls(text.strip(), "custom metric", text.strip(), range=_UNBOUNDED, needs_scores=True)
            raise UnknownName("metric", text, [*METRICS, *ALIASES], advice=f"Allowed: {', '.join(METRICS)}.")
        return known._of_class(tail if colon else None)

    @property
    def is_custom(self) -> bool:
        """Whether the function is the user's, called with logits, decisions and labels."""
        return self.name == self.target

    def _of_class(self, text: str | None) -> Metric:
        takes, needs = self.name in _OF_A_CLASS, self.name in _ONLY_OF_A_CLASS
        if text is None:
            if needs:
                raise DataError(
                    f"metric '{self.name}' needs a class, as in {self.name}:1, or is micro-{self.name} or "
                    f"macro-{self.name} over all classes"
                )
            return self
        if not takes:
            raise DataError(f"metric '{self.name}' takes no class, got '{self.name}:{text}'; write '{self.name}'")
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise DataError(
                f"metric '{self.name}:{text}' names the class '{text}', but a whole number from 0 is needed, as in "
                f"{self.name}:1"
            )
        label = int(text)
        description = f"{self.description.partition(',')[0]} of class {label}"
        return Metric(
            f"{self.name}:{label}", description, self.target, label, {"label": label}, needs_scores=self.needs_scores
        )

    def __call__(self, logits: Any, decisions: Any, labels: Any) -> float:
        """The value for some items.

        An item with a NaN among its logits is wrong in every respect: it belongs to no predicted class, each of its
        labels is decided wrongly, and it loses every comparison of scores.

        Args:
            logits: [n, c].
            decisions: Predicted classes, [n], or 0/1 decisions, [n, c].
            labels: True classes, [n], or [n, c] of 0, 1 or NaN = missing.
        """
        if self.is_custom:
            return (self.custom or get(self.name))(logits, decisions, labels)
        from grb.metric import inputs

        function = resolve("metric", self.target)
        made = inputs.scores if self.needs_scores else inputs.decisions
        value: float = function(made(logits, decisions, labels), labels, **self.options)
        return value


def _table() -> dict[str, Metric]:
    listed = [
        Metric("accuracy", "share of correct predictions", f"{_DECISIONS}:accuracy"),
        Metric("balanced-accuracy", "mean recall over the classes", f"{_DECISIONS}:balanced_accuracy"),
    ]
    for name, title in {"f1": "F1", "precision": "precision", "recall": "recall"}.items():
        target = f"{_DECISIONS}:{name}"
        listed += [
            Metric(f"micro-{name}", f"{title} over all decisions", target, options={"average": "micro"}),
            Metric(f"macro-{name}", f"mean {title} over the classes", target, options={"average": "macro"}),
            Metric(name, title, target),
        ]
    for name, title in {"auroc": "area under the ROC curve", "average-precision": "average precision"}.items():
        target = f"{_RANKING}:{name.replace('-', '_')}"
        listed.append(Metric(name, f"{title}, mean of one class against the rest", target, needs_scores=True))
    return {metric.name: metric for metric in listed}


METRICS: Mapping[str, Metric] = _table()
ALIASES: Mapping[str, str] = {"ap": "average-precision", "auc": "auroc", "roc-auc": "auroc", "acc": "accuracy"}
_ONLY_OF_A_CLASS = ("f1", "precision", "recall")
_OF_A_CLASS = (*_ONLY_OF_A_CLASS, "auroc", "average-precision")


def get(name: str | CustomMetric | Metric) -> Metric:
    """The metric of a name (see :mod:`grb.metric.names`), or around a function of (logits, decisions, labels).

    The module of a custom metric is imported, for the function may have attributes ``range``, ``higher_is_better`` and
    ``needs_scores``.

    >>> get("macro-f1").needs_scores, get("auroc").needs_scores
    (False, True)
    """
    if isinstance(name, Metric):
        return name
    if isinstance(name, str):
        parsed = Metric.parse(name)
        return _custom(parsed.name, resolve("metric", parsed.target)) if parsed.is_custom else parsed
    return _custom(f"{getattr(name, '__module__', '?')}:{getattr(name, '__qualname__', type(name).__name__)}", name)


def get_all(given: str | Iterable[str | CustomMetric | Metric]) -> dict[str, Metric]:
    """Metrics by their canonical names, from names joined by commas or a sequence; the same one twice counts once."""
    names = [part for part in given.split(",") if part.strip()] if isinstance(given, str) else given
    found: dict[str, Metric] = {}
    for metric in map(get, names):
        if found.setdefault(metric.name, metric).custom is not metric.custom:
            raise DataError(f"two different functions are called '{metric.name}'; give one of them another name")
    return found


def _custom(name: str, function: Any) -> Metric:
    if not callable(function):
        raise DataError(
            f"metric '{name}' is a {type(function).__name__}, but a name or a function of (logits, decisions, labels) "
            "is needed"
        )
    return Metric(
        name,
        "custom metric",
        name,
        range=getattr(function, "range", _UNBOUNDED),
        higher_is_better=getattr(function, "higher_is_better", True),
        needs_scores=getattr(function, "needs_scores", True),
        custom=function,
    )
