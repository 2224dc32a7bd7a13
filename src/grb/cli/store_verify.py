"""``grb store verify`` and ``grb store sign``: whether a store is what it says, and who vouches for it."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb import artefacts
from grb.cli import output
from grb.cli.options import Json, TrustCode, expect_many_records, store_at, use_machine
from grb.errors import DataError, IntegrityError

if TYPE_CHECKING:
    from grb.pipeline import Store

Where = Annotated[Path | None, typer.Argument(metavar="[STORE]", help="The store; the one below GRB_HOME by default.")]
KeyFiles = Annotated[
    list[Path] | None, typer.Option("--key", help="Public key whose signatures you trust; repeatable.")
]


def verify(
    store: Where = None,
    rerun: Annotated[
        int, typer.Option(min=0, help="Number of random scores to compute again, with all that they were made of.")
    ] = 0,
    record: Annotated[
        str | None, typer.Option(help="Compute this record again instead; the first digits of its key suffice.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random seed of the sample; a fresh one, which is printed, by default.")
    ] = None,
    key: KeyFiles = None,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Remove unused files: artefacts of lost jobs, parts of killed writers, stale claims."
        ),
    ] = False,
    trust_code: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Check a store or a bundle: bytes, derived values, signatures (--key), some of it computed again, unused files.

    \b
    Examples:
      grb store verify
      grb store verify results --rerun 3
      grb store verify results --clean
      grb store verify bundle.zip --key their-key.pub
      grb store verify synth-tiny --rerun 2              a published bundle of `grb ls artefacts`
    """
    drawn = secrets.randbelow(2**31) if seed is None else seed
    with opened_store(store) as place:
        keys = [_whole(place, record)] if record is not None else []
        named: set[Path] = set()
        problems = place.verify(on_record=lambda each: named.update(place.artefacts(each)))
        signed = _signatures(place, key, problems)
        count = sum(1 for _ in place.keys())  # noqa: SIM118 - a store is no mapping
        compared = []
        if keys or (rerun and not problems):
            compared = _compute_again(place, keys, rerun, drawn, trust_code)
        if rerun and not problems:
            _sample_again(place, trust_code)
        unused = {"files": 0, "bytes": 0, "removed": False} if problems else _unused(place, named, remove=clean)
    found = Verified(count, problems, compared, signed, drawn if rerun and record is None else None, unused)
    if as_json:
        output.print_json(found.to_dict())
    else:
        found.show()
    if problems or found.verdicts["different"]:
        raise IntegrityError(
            f"{len(problems)} records are not what they say, {found.verdicts['different']} gave other results"
        )


def _unused(store: Store, named: set[Path], *, remove: bool) -> dict[str, Any]:
    """Files that no record names, removed if asked for."""
    from grb.pipeline.unused import remove_unused

    paths = store.garbage(named)
    size = sum(path.stat().st_size for path in paths)
    return {"files": len(paths), "bytes": size, "removed": bool(remove and paths and remove_unused(paths))}


def _compute_again(store: Store, keys: list[str], count: int, seed: int, trust_code: bool) -> list[Any]:
    """Compare records with the same jobs computed here: the given ones, or a random sample."""
    from grb.pipeline.rerun import choose, rerun

    use_machine(1)
    if not keys:
        keys = choose(store, count, seed=seed)
        output.echo(f"{len(keys)} scores are computed again, drawn with --seed {seed}")
    return rerun(
        store,
        keys,
        trust_code=trust_code,
        on_job=lambda each: output.echo(f"{each.label}: {each.difference or 'equal'}"),
    )


def _sample_again(store: Store, trust_code: bool) -> None:
    """Sample targets again that are certified with a probability and wrong in a score."""
    from grb.pipeline.sampled_bracket import check_sampled

    number = check_sampled(store, trust_code=trust_code)
    if number:
        output.echo(f"{number} targets of sampled certificates were sampled again, and none is broken")


def _signatures(store: Store, keys: list[Path] | None, problems: list[Any]) -> dict[str, Any] | None:
    """Check the attestations of a store against trusted keys, if any; what does not hold joins the problems."""
    from grb.pipeline.attestation import read_public_key, verify_attestations

    found = verify_attestations(store, [read_public_key(path) for path in keys or ()])
    problems += found.problems
    if not keys:
        return None
    return {
        "signed": len(found.signers),
        "unsigned": found.unsigned,
        "unverified": len(found.unknown),
        "signers": sorted(set(found.signers.values())),
    }


@dataclass(frozen=True)
class Verified:
    """What `grb store verify` found.

    Args:
        records: Number of records.
        problems: Records that are not what they say.
        compared: Records that were computed again.
        signed: What the signatures say; None without trusted keys.
        seed: Random seed of the sample; None without one.
        unused: Number and size of files that no record names, and whether they were removed.
    """

    records: int
    problems: list[Any]
    compared: list[Any]
    signed: dict[str, Any] | None
    seed: int | None
    unused: dict[str, Any]

    @property
    def verdicts(self) -> Counter[str]:
        """How many of the compared records have each verdict."""
        return Counter(each.verdict for each in self.compared)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "records": self.records,
            "problems": [vars(problem) for problem in self.problems],
            "recomputed": [
                {"key": each.key, "job": each.label, "equal": each.equal, "verdict": each.verdict}
                | {"claimed": {name: pair[0] for name, pair in each.scores.items()}}
                | {"reevaluated": {name: pair[1] for name, pair in each.scores.items()}}
                for each in self.compared
            ],
            "unused": self.unused,
            **({} if self.seed is None else {"seed": self.seed}),
            **({} if self.signed is None else {"attestations": self.signed}),
        }

    def show(self) -> None:
        """Print it for readers."""
        for problem in self.problems[:20]:
            output.echo(f"{problem.key[:12]}: {problem.message}")
        rows = [
            [each.key[:12], f"{each.label}, {name}", *(f"{100 * value:.2f}" for value in pair), each.verdict]
            for each in self.compared
            for name, pair in each.scores.items()
        ]
        if rows:
            headers = ["key", "score", "claimed (%)", "re-evaluated (%)", "verdict"]
            output.table("Claimed and re-evaluated", headers, rows, numbers=headers[2:4])
        if self.signed is not None:
            names = ", ".join(self.signed["signers"]) or "nobody"
            output.echo(
                f"{self.signed['signed']} records are signed by {names}, {self.signed['unsigned']} by no trusted key; "
                f"{self.signed['unverified']} attestations are of unknown keys"
            )
        verdicts = self.verdicts
        again = f", {verdicts['equal']}/{len(self.compared)} equal again" if self.compared else ""
        near = f", {verdicts['rounding']} within the tolerance of another machine" if verdicts["rounding"] else ""
        output.echo(f"{self.records} records, {len(self.problems)} problems{again}{near}")
        if self.unused["files"]:
            advice = "were removed" if self.unused["removed"] else "are unused; --clean removes them"
            output.echo(f"{self.unused['files']} files, {self.unused['bytes'] / 2**20:.1f} MB {advice}")


def sign(
    store: Where = None,
    key: Annotated[Path | None, typer.Option(help="File of the private key; made with --new-key.")] = None,
    new_key: Annotated[
        Path | None,
        typer.Option(help="Make a key pair instead: the private key in this file, the public one in FILE.pub."),
    ] = None,
    name: Annotated[str, typer.Option(help="Who signs, as boards show it; needed to sign.")] = "",
    as_json: Json = False,
) -> None:
    """Vouch for the records of a store: one signed in-toto statement (DSSE, ed25519) of all keys and hashes.

    \b
    Examples:
      grb store sign --new-key lab.key                           also writes lab.key.pub, for your readers
      grb store sign results --key lab.key --name "Our lab"
      grb store verify results --key lab.key.pub
    """
    from grb.pipeline.attestation import create_key, read_private_key, sign_store

    if (key is None) == (new_key is None):
        raise DataError("either --key FILE to sign with, or --new-key FILE to make a key pair, is needed")
    if new_key is not None:
        public = create_key(new_key)
        if as_json:
            output.print_json({"private": str(new_key), "public": str(public)})
        else:
            output.echo(f"private key: {new_key} (keep it to yourself), public key: {public}")
        return
    assert key is not None
    if not name:
        raise DataError('who signs is not said; add --name "Our lab", as boards should show it')
    if key.suffix == ".pub":
        raise DataError(f"{key} is a public key, but the private one signs; give {key.with_suffix('')}")
    place = existing_store(store)
    problems = place.verify()
    if problems:
        raise IntegrityError(
            f"{place.path} is not signed: {problems[0].message} ({len(problems)} problems); `grb store verify` lists them"
        )
    made = sign_store(place, read_private_key(key), name=name)
    if as_json:
        output.print_json({"file": str(made.path), "records": made.records, "signer": name})
    else:
        output.echo(f"{made.records} records signed by {name}: {made.path}")


@contextmanager
def opened_store(path: Path | None) -> Iterator[Store]:
    """Open a store, or a bundle in a temporary directory: a file, or a published one by its name."""
    if path is not None and not path.exists() and str(path) in artefacts.bundles():
        from grb.pipeline.published import find

        path = find(artefacts.bundles()[str(path)])
    if path is not None and path.suffix == ".zip":
        from grb.pipeline.bundle import opened

        with opened(path) as store:
            yield store
    else:
        yield existing_store(path)


def existing_store(path: Path | None) -> Store:
    """Return a store to look into; a path without one is refused."""
    if path is not None and not path.is_dir():
        raise DataError(f"no store {path}; `grb run RECIPE --store {path}` makes one")
    expect_many_records()
    return store_at(path)


def _whole(store: Store, start: str) -> str:
    found = [key for key in store.keys() if key.startswith(start.lower())]  # noqa: SIM118 - a store is no mapping
    if len(found) != 1:
        raise DataError(f"{len(found)} records of {store.path} begin with '{start[:64]}', but exactly one is needed")
    return found[0]
