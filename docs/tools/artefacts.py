"""Publishes a store: writes artefacts/NAME.zip, its list in the package, and the table of the page about published artefacts.

python docs/tools/artefacts.py STORE NAME [--recipe RECIPE]

The same store gives the same bytes, if zlib is the same. A bundle that should be signed is made of a store that was signed
before (`grb store sign STORE --key KEY --name WHO`); the public key then belongs into artefacts/, the private one nowhere here.
Without STORE and NAME only the table is renewed.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from grb.artefacts import FOLDER
from grb.cli.ls import artefact_table

ROOT = Path(__file__).resolve().parents[2]
LISTS = ROOT / "src" / "grb" / "presets" / "artefacts"
PAGE = ROOT / "docs" / "howto" / "artefacts.md"
BETWEEN = re.compile(r"(?<=<!-- grb ls artefacts --markdown -->\n).*?(?=<!-- end -->)", re.DOTALL)


def renewed(text: str) -> str:
    """The page with the table of what is published today."""
    if len(BETWEEN.findall(text)) != 1:
        raise ValueError(
            "the page needs the marks <!-- grb ls artefacts --markdown --> and <!-- end --> once, in this order"
        )
    table = artefact_table()
    return BETWEEN.sub(lambda _: f"{table}\n", text)


def main() -> None:
    """Publish what the command line names."""
    from grb.pipeline import Store
    from grb.pipeline.publish import publish

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", nargs="?", help="Directory that grb run filled.")
    parser.add_argument("name", nargs="?", help="Name of the bundle.")
    parser.add_argument("--recipe", help="Name of the study, where the store has several.")
    given = parser.parse_args()
    if given.store is not None:
        if given.name is None:
            parser.error("the bundle's name is missing")
        made = publish(Store(given.store), given.name, ROOT / FOLDER, LISTS, recipe=given.recipe)
        counts = f"{made.records} records, {len(made.models)} models, {len(made.edits)} edits"
        print(f"{FOLDER}/{made.file}: {counts}, {made.bytes} bytes, sha256 {made.sha256}")
        print(f"signed by {', '.join(made.signed_by) or 'nobody'}")
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
