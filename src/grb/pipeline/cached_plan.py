"""Plans that were made before: planning builds every model and attack once to check it, which takes torch and seconds.

A cached plan holds for one recipe, dataset, set of submissions and state of this package; anything else, a damaged file
included, is planned anew. Plans that name third-party code are never kept, for nobody knows when that code changes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grb._version import __version__
from grb.atomic import write_atomic
from grb.dataset import registry
from grb.dataset.facts import dataset_facts
from grb.errors import DataError, GRBError
from grb.names import is_import_path
from grb.pipeline.job import Job
from grb.pipeline.recipe import Recipe
from grb.pipeline.record import Record
from grb.pipeline.spec import canonical_json, digest
from grb.pipeline.study import DatasetSize, Study, StudyInfo

PACKAGE = Path(__file__).parents[1]
FORMAT = 1


def cached_plan(recipe: Recipe, *, data_dir: str | None = None, submitted: Iterable[Record] = ()) -> Study:
    """As :func:`grb.pipeline.plan_study`, from the cache below ``GRB_HOME`` where the same was planned before.

    Args:
        recipe: What to run.
        data_dir: Where to look for the dataset first.
        submitted: Records of submissions that join.
    """
    sent = list(submitted)
    path, name = _path(recipe, data_dir, sent)
    known = None if path is None else _read(path, name, data_dir)
    if known is not None:
        return known
    from grb.pipeline.plan import plan_study

    study = plan_study(recipe, data_dir=data_dir, submitted=sent)
    if path is not None and not any(job.third_party_code for job in study.jobs.values()):
        with contextlib.suppress(GRBError, OSError):  # a cache that cannot be written is only slower
            write_atomic(path, canonical_json({"name": name, "study": _to_dict(study)}).encode())
    return study


def _path(recipe: Recipe, data_dir: str | None, submitted: list[Record]) -> tuple[Path | None, str]:
    """Where the plan of a recipe is kept, and the digest of all that it depends on."""
    if is_import_path(recipe.dataset):
        return None, ""
    try:
        facts = dataset_facts(recipe.dataset, data_dir)
        stamps = [
            [str(path.relative_to(PACKAGE)), (stat := path.stat()).st_size, stat.st_mtime_ns]
            for pattern in ("**/*.py", "**/*.yaml", "**/*.csv")
            for path in sorted(PACKAGE.glob(pattern))
        ]
    except OSError:
        return None, ""
    name = digest(
        {
            "format": FORMAT,
            "grb": __version__,
            "code": stamps,
            "recipe": recipe.to_dict(),
            "reference": facts.reference,
            "fingerprint": facts.fingerprint,
            "submitted": [record.key for record in submitted],
        }
    )
    return registry.home() / "plans" / f"{name[:32]}.json", name


def _to_dict(study: Study) -> dict[str, Any]:
    assert study.info is not None
    return {
        "title": study.title,
        "jobs": [[key, job.to_message(), job.title] for key, job in study.jobs.items()],
        "targets": list(study.targets),
        "sizes": {name: list(vars(size).values()) for name, size in study.sizes.items()},
        "info": study.info.to_dict(),
        "steps": dict(study.steps),
    }


def _read(path: Path, name: str, data_dir: str | None) -> Study | None:
    try:
        values = json.loads(path.read_bytes())
        if values["name"] != name:
            return None
        kept = values["study"]
        jobs = {key: Job.from_message(job, data_dir=data_dir, key=key, title=title) for key, job, title in kept["jobs"]}
        return Study(
            str(kept["title"]),
            jobs,
            tuple(kept["targets"]),
            {name: DatasetSize(*size) for name, size in kept["sizes"].items()},
            StudyInfo.from_dict(kept["info"]),
            dict(kept["steps"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError, DataError):
        return None
