"""``grb check``: check that a custom method keeps the API contract."""

from __future__ import annotations

from typing import Annotated

import typer

from grb.cli import output
from grb.cli.options import Json, use_machine
from grb.errors import DataError

KINDS = ("attack", "model", "defense", "perturbation")
BROKEN = 1


def check(
    method: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Import path package.module:Class of the method, or a name of the catalogue."
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(help="Kind of the method: attack, model, defense or perturbation; found by a catalogue name."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that a method keeps the API contract, as our own do: limits, seeds, gradients, inputs that stay unchanged.

    \b
    Examples:
      grb check my_package.attacks:MyAttack --kind attack
      grb check pgd
    """
    from grb.evaluator.testing import conformance

    use_machine(1)
    chosen = kind or _guess(method)
    findings = conformance(chosen, _method(chosen, method))  # type: ignore[arg-type]
    broken = [each for each in findings if not each.kept]
    if as_json:
        output.print_json([{"rule": each.rule, "kept": each.kept, "message": each.message} for each in findings])
    else:
        rows = [[each.rule, "yes" if each.kept else "NO", each.message] for each in findings]
        output.table(f"{method} ({chosen})", ["rule", "kept", "what was found"], rows)
    output.echo(f"{len(findings) - len(broken)} rules kept, {len(broken)} broken")
    if broken:
        raise typer.Exit(BROKEN)


def _guess(method: str) -> str:
    from grb import catalogue
    from grb.errors import UnknownName

    if "+" in method:
        return "defense"
    for kind in KINDS:
        try:
            catalogue.canonical(kind, method)
        except UnknownName:
            continue
        return kind
    known = [name for kind in KINDS for name in catalogue.entries(kind)]
    raise UnknownName("method", method, known, advice=f"A custom one needs --kind {', '.join(KINDS)}.")


def _method(kind: str, name: str) -> object:
    from grb.catalogue import resolve

    if kind not in KINDS:
        raise DataError(f"--kind is '{kind}', but {', '.join(KINDS)} are those with rules")
    if ":" not in name:
        return _ours(kind, name)
    import os
    import sys

    sys.path.insert(0, os.getcwd())  # a module beside you, as with python -m
    return resolve(kind, name)


def _ours(kind: str, name: str) -> object:
    """A method of the catalogue as it is used on the small dataset that rules are tried on."""
    if kind == "attack":
        from grb.attack.build import build_attack

        return build_attack(name, "synth-tiny")
    if kind == "perturbation":
        from grb.perturb import build_perturbation

        return build_perturbation(name)
    if kind == "model":
        from grb.catalogue import resolve

        return resolve("model", name)
    from grb.catalogue import entries
    from grb.defense import build_defense

    if name in ("ln", "at"):
        name = f"gcn+{name}"
    elif name not in entries("model") and "+" not in name and f"gcn-{name}" in entries("model"):
        name = f"gcn-{name}"
    return build_defense(name, "synth-tiny", epochs=30)
