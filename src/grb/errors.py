"""What grb says when it refuses: one sentence each, what, got, allowed, what to do."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType

DISTRIBUTION = "graph-robustness-benchmark"


class GRBError(Exception):
    """Base of every error that grb raises on purpose."""


class DataError(GRBError, ValueError):
    """A file, array or parameter that cannot be used as given."""


class MissingDataset(DataError):
    """A dataset that is not on this machine; says what is missing, why it was not got, and what to do.

    >>> str(MissingDataset("no adj.npz.", "Get it.").because("GRB_OFFLINE forbids to download it."))
    'no adj.npz. GRB_OFFLINE forbids to download it. Get it.'
    """

    def __init__(self, what: str, advice: str, why: str = "") -> None:
        self.what, self.advice = what, advice
        super().__init__(" ".join(part for part in (what, why, advice) if part))

    def because(self, why: str) -> MissingDataset:
        """The same refusal with the reason for which the dataset could not be had."""
        return MissingDataset(self.what, self.advice, why)


class BudgetError(GRBError, ValueError):
    """An edit that the threat model does not allow."""


class IntegrityError(GRBError):
    """Stored bytes that are not what their record says."""


class UnknownName(GRBError, KeyError):
    """A name that no catalogue has; carries the nearest ones.

    >>> str(UnknownName("dataset", "grb-corra", ["grb-cora", "synth-cora"]))
    "no dataset 'grb-corra'. Did you mean 'grb-cora'? `grb ls datasets` shows all names."
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, advice: str | None = None) -> None:
        near = nearest(name, known)
        hint = f" Did you mean '{near}'?" if near else ""
        shown = name if len(name) <= 80 else name[:77] + "..."
        self.message = f"no {kind} '{shown}'.{hint} {advice or f'`grb ls {kind}s` shows all names.'}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like another one; swapped letters ('gnc') weigh less than other ones ('sgc')."""
    near = difflib.get_close_matches(name.lower(), list(known))
    same_letters = [each for each in near if sorted(each) == sorted(name.lower())]
    return next(iter(same_letters or near), None)


class MissingExtra(GRBError, ImportError):
    """An optional package that is not installed; carries the pip command that installs it."""


def require(module: str, *, extra: str, what: str | None = None) -> ModuleType:
    """Import an optional package, or say in one sentence how to get it.

    Args:
        module: Name to import.
        extra: The extra of this distribution that brings it.
        what: What needs it, for the sentence; the module's name if not given.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f'{what or module} needs {module}. Install it with: pip install ".[{extra}]" in the clone that grb came from'
        ) from error
