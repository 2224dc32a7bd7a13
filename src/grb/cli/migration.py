"""Which lines of a script of another package should change, found in its syntax tree: nothing of the script is run."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from grb.catalogue import preset
from grb.errors import DataError

Level = Literal["must", "should"]
# the largest script that is read
MOST_BYTES = 10_000_000


@dataclass(frozen=True, order=True)
class Finding:
    """A line that should change.

    Args:
        line: Line of the file, from 1; of a notebook, line of the cell.
        level: ``must``: it fails here, or its numbers change. ``should``: it works, but there is a better spelling.
        old: The name or argument.
        new: What to write instead.
        package: Whose spelling it is.
        cell: Number of a notebook's cell, from 1; 0 for a script.
    """

    cell: int
    line: int
    level: Level
    old: str
    new: str
    package: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; ``cell`` only where there are any."""
        values = asdict(self)
        return values if self.cell else {key: value for key, value in values.items() if key != "cell"}


def find_in_file(path: Path) -> list[Finding]:
    """Lines of a script or notebook that should change, in their order."""
    if not path.is_file():
        raise DataError(f"no script {path}; give a .py or .ipynb file")
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path} has {path.stat().st_size} bytes, but a script of at most {MOST_BYTES} is read")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path} is no text; give a .py or .ipynb file") from None
    if path.suffix == ".ipynb":
        return find_in_cells(_cells(path, text), str(path))
    return find_in_cells([(0, text)], str(path))


def find_in_cells(cells: list[tuple[int, str]], name: str = "script") -> list[Finding]:
    """Lines of consecutive pieces of a script, each with its number, that should change."""
    names = _Names()
    found: list[Finding] = []
    for number, text in cells:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f"{name}, cell {number}" if number else name
            line = getattr(error, "lineno", None)
            raise DataError(f"{where} is no Python 3{f' (line {line})' if line else ''}: {str(error)[:100]}") from None
        found += [finding for node in _in_order(tree) for finding in names.visit(node, number)]
    return sorted(set(found))


def _cells(path: Path, text: str) -> list[tuple[int, str]]:
    try:
        cells = json.loads(text)["cells"]
        sources = ["".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{path} is no notebook of format 4: it has no list of cells") from None
    return [(number, _without_magics(source)) for number, source in enumerate(sources, 1)]


def _without_magics(source: str) -> str:
    """Lines that are for IPython become empty ones, so that numbers of lines stay."""
    if source.lstrip().startswith("%%"):
        return ""
    return "\n".join("" if line.lstrip().startswith(("%", "!", "?")) else line for line in source.split("\n"))


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes as they stand in the text, a statement's target after its value."""
    kinds = ast.Import | ast.ImportFrom | ast.Call | ast.Assign | ast.With

    def place(node: Any) -> tuple[int, int, bool]:
        if isinstance(node, ast.Assign):
            return node.end_lineno or node.lineno, node.end_col_offset or 0, True
        return node.lineno, node.col_offset, False

    yield from sorted((node for node in ast.walk(tree) if isinstance(node, kinds)), key=place)


@cache
def rules() -> tuple[dict[str, tuple[str, dict[str, Any]]], dict[str, list[dict[str, Any]]]]:
    """Names with the package they are of, and what to say of arguments, by callable."""
    tables: Mapping[str, Any] = preset("migration")
    names = {old: (package, rule) for package, table in tables.items() for old, rule in table["names"].items()}
    calls = {name: each for table in tables.values() for name, each in table.get("calls", {}).items()}
    return names, calls


# other homes of names with rules about arguments
ALIASES = {
    "grb.trainer.trainer.": "grb.trainer.",
    "grb.utils.trainer.": "grb.trainer.",
    "grb.defense.adv_trainer.": "grb.defense.",
    "grb.utils.utils.": "grb.utils.",
}
LOADERS = ("torch.load",)
UNPICKLERS = ("pickle.load", "pickle.loads", "pickle.dump", "joblib.load")


class _Names:
    """What the names of a script stand for, as far as imports and plain assignments say it."""

    def __init__(self) -> None:
        self.homes: dict[str, str] = {}
        self.nothing: set[str] = set()  # names that stand for None
        self.uses_grb = False

    def visit(self, node: ast.AST, cell: int) -> Iterator[Finding]:
        if isinstance(node, ast.Import):
            for each in node.names:
                self.homes[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
                self.uses_grb |= each.name.partition(".")[0] == "grb"
                yield from self._named(each.name, node.lineno, cell)
        elif isinstance(node, ast.ImportFrom):
            yield from self._import_from(node, cell)
        elif isinstance(node, ast.Assign):
            self._assign(node.targets, node.value)
        elif isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    self._assign([item.optional_vars], item.context_expr)
        elif isinstance(node, ast.Call):
            yield from self._call(node, cell)

    def _import_from(self, node: ast.ImportFrom, cell: int) -> Iterator[Finding]:
        home = node.module or ""
        if node.level:
            return
        self.uses_grb |= home.partition(".")[0] == "grb"
        for each in node.names:
            full = f"{home}.{each.name}"
            self.homes[each.asname or each.name] = full
            yield from self._named(full, node.lineno, cell)

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        home = self.path(value.func) if isinstance(value, ast.Call) else self.path(value)
        for target in targets:
            if isinstance(target, ast.Name):
                (self.nothing.add if _is_none(value) else self.nothing.discard)(target.id)
                if home is None:
                    self.homes.pop(target.id, None)
                else:
                    self.homes[target.id] = home

    def _named(self, full: str, line: int, cell: int) -> Iterator[Finding]:
        names, _ = rules()
        if full in names:
            package, rule = names[full]
            foreign = package != "THUDM/grb"
            level: Level = "must" if rule.get("must") or foreign else "should"
            why = f" ({rule['why']})" if "why" in rule else ""
            yield Finding(cell, line, level, full, rule["new"] + why, package)

    def _stands_for_none(self, node: ast.expr) -> bool:
        return _is_none(node) or (isinstance(node, ast.Name) and node.id in self.nothing)

    def path(self, node: ast.expr) -> str | None:
        """The dotted name of an expression, with the first part as it was imported or assigned."""
        if isinstance(node, ast.Name):
            return self.homes.get(node.id)
        if isinstance(node, ast.Attribute):
            inner = self.path(node.value)
            return None if inner is None else f"{inner}.{node.attr}"
        return None

    def _call(self, node: ast.Call, cell: int) -> Iterator[Finding]:
        full = self.path(node.func)
        if full is None:
            return
        for alias, home in ALIASES.items():
            if full.startswith(alias):
                full = home + full.removeprefix(alias)
        if isinstance(node.func, ast.Attribute):  # a name that was imported has been told of at its import
            yield from self._named(full, node.lineno, cell)
        if full in LOADERS and self.uses_grb:
            new = "grb.load_model(path); weights of THUDM/grb: grb.utils.load_weights(model, path)"
            yield Finding(cell, node.lineno, "must", full, new, "THUDM/grb")
        if full in UNPICKLERS and self.uses_grb:
            new = "npz or safetensors: no file of ours is a pickle (scipy.sparse.load_npz, GraphEdit.load, grb.load_model)"
            yield Finding(cell, node.lineno, "must", full, new, "THUDM/grb")
        for key in _rule_keys(full):
            yield from self._arguments(node, full, key, cell)

    def _arguments(self, node: ast.Call, full: str, key: str, cell: int) -> Iterator[Finding]:
        given = {each.arg: each.value for each in node.keywords if each.arg is not None}
        starred = any(each.arg is None for each in node.keywords)
        short = full.removeprefix("grb.").rpartition(".")[2] if not key.endswith(("train", "attack")) else full
        for rule in rules()[1].get(key, ()):
            name = rule["argument"]
            if name in given:
                if "new" not in rule or (rule.get("must") == "unless-none" and self._stands_for_none(given[name])):
                    continue
                level: Level = "must" if rule.get("must") else "should"
                line = getattr(given[name], "lineno", node.lineno)
                yield Finding(cell, line, level, f"{short}({name}=)", rule["new"], "THUDM/grb")
            elif "absent" in rule and not starred and not _positional(node, key, name):
                yield Finding(cell, node.lineno, "must", f"{short}()", rule["absent"], "THUDM/grb")


def _rule_keys(full: str) -> Iterator[str]:
    """The callables whose rules are for a call."""
    yield full
    if full.startswith("grb.attack.") and full.rpartition(".")[2].isupper():
        yield "any attack"
    if full.startswith(("grb.model.", "grb.defense.")) and full.rpartition(".")[2] not in ("AdvTrainer", "train"):
        yield "any model"
    parts = full.split(".")
    if parts[:3] == ["grb", "attack", "modification"] and len(parts) == 6:  # of a module of its own
        yield ".".join([*parts[:3], *parts[4:]])


# where an argument with another default stands if it is given without its name
POSITIONS = {
    ("grb.dataset.Dataset", "mode"): 2,
    ("grb.trainer.Trainer.train", "train_mode"): 7,
    ("grb.defense.AdvTrainer.train", "train_mode"): 6,
    ("grb.dataset.CustomDataset", "seed"): 12,
}


def _positional(node: ast.Call, key: str, name: str) -> bool:
    return len(node.args) > POSITIONS.get((key, name), len(node.args))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
