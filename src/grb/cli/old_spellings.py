"""Spellings of earlier versions: each is refused with one sentence that has the new one."""

from __future__ import annotations

from collections.abc import Sequence

ANY = ""
"""As a verb: any verb."""

VERBS: dict[str, str] = {
    "plan": "is `grb run RECIPE --plan` now",
    "leaderboard show": "is `grb leaderboard STORE` now",
    "leaderboard build": "is `grb leaderboard STORE --format html -o FILE` now",
    "leaderboard site": "is `grb leaderboard STORE --format site -o DIR` now",
    "data verify": "is part of `grb data check DATASET` now",
    "taxonomy compare": "is `grb taxonomy analyse STORE --against published` now",
    "taxonomy cross": "is `grb taxonomy analyse STORE --against attacks` now",
}
"""What became of verbs."""

_PARAM, _LIMIT = "is `--param {}=VALUE` now", "is `--limit {}=VALUE` now"
OPTIONS: dict[tuple[str, str], str] = {
    ("train", "--defense"): "is part of the model's name now: `gcn+at`, `gcn-jaccard`, `gatguard`",
    ("train", "--epochs"): _PARAM.format("epochs"),
    ("train", "--patience"): _PARAM.format("patience"),
    ("train", "--lr"): _PARAM.format("lr"),
    ("train", "--hidden"): _PARAM.format("hidden_features"),
    ("train", "--dropout"): _PARAM.format("dropout"),
    ("train", "--mode"): "is `--difficulty` now",
    ("train", "--save"): "is `--output` now",
    ("attack", "--mode"): "is `--difficulty` now",
    ("attack", "--save"): "is `--output` now",
    ("attack", "--repeats"): "is `--seeds N` now, or a range of seeds as in `--seeds 3-7`",
    (
        "attack",
        "--surrogate-seed",
    ): "is gone: train the surrogate with `grb train MODEL --seed K -o FILE`, give `--model FILE`",
    ("attack", "--iterations"): _PARAM.format("iterations"),
    ("attack", "--step"): _PARAM.format("step"),
    ("attack", "--nodes"): _LIMIT.format("nodes"),
    ("attack", "--edges-per-node"): _LIMIT.format("edges_per_node"),
    ("attack", "--edges"): _LIMIT.format("edges"),
    ("attack", "--edge-ratio"): _LIMIT.format("edge_ratio"),
    ("attack", "--feature-nodes"): _LIMIT.format("feature_nodes"),
    ("attack", "--feature-range"): _LIMIT.format("feature_range"),
    ("eval", "--edit"): "is an argument now: `grb eval MODEL.safetensors EDIT.npz ...`",
    ("run", "--mode"): "is `--difficulty` now",
    ("reproduce", "--mode"): "is `--difficulty` now",
    ("reproduce", "--scenario"): "is part of the recipe's name now: `grb reproduce grb-cora-modification`",
    ("data check", "--save"): "is `--output` now",
    ("figures", "--mode"): "is `--difficulty` now",
    ("leaderboard", "--mode"): "is `--difficulty` now",
    ("submit", "--quick"): "is gone: the variant that was run is found in the store",
    ("taxonomy run", "--datasets"): "is an argument now: `grb taxonomy run enzymes mutag`",
    ("taxonomy run", "--stop-after"): "is `--patience` now",
    ("taxonomy place", "--stop-after"): "is `--patience` now",
    ("taxonomy place", "--without"): "is `--exclude` now",
    ("taxonomy place", "--draws"): "is gone: the bootstrap always has 1000 draws; `grb.taxonomy.assign` takes others",
    ("taxonomy place", "--seed"): "is gone: the bootstrap always has seed 0; `grb.taxonomy.assign` takes others",
    ("taxonomy analyse", "--published"): "is an argument now: `grb taxonomy analyse inductive`, or transductive",
    ("taxonomy analyse", "--draws"): "is `--n-bootstrap` now",
    ("taxonomy analyse", "--join"): "is `--merge-groups` now",
    ("taxonomy analyse", "--kind"): "is gone: the kind of a table is found out; `grb.taxonomy.read_profiles` takes it",
    ("taxonomy analyse", "--saturated"): "is gone; `grb.taxonomy.analyse` takes it",
    ("taxonomy analyse", "--markdown"): "is `--format markdown` now",
    ("taxonomy analyse", "--mode"): "is `--difficulty` now",
    ("tune", "--repeats"): "is `--seeds N` now, which has the number of runs or their seeds",
    ("tune", "--seed"): "is `--seeds A-B` now, which has the number of runs or their seeds",
    ("tune", "--recipe"): "is `--output FILE.yaml` now",
    ("tune", "--figures"): "is `--output DIR` now, which writes the recipe and the figures",
    ("tune", "--sampler"): "is gone: searches use tpe; `grb.automl.tune` takes others",
}
"""What became of options, by verb and spelling."""


def translate(arguments: Sequence[str]) -> list[str]:
    """Return a command line with its longer verbs in short: ``submit check FILE`` is ``submit FILE --check``, and so on.

    Args:
        arguments: Command line without the program's name.

    >>> translate(["submit", "check", "edit.npz"]), translate(["store", "gc", "results", "--dry-run"])
    (['submit', 'edit.npz', '--check'], ['store', 'verify', 'results'])
    >>> translate(["store", "import", "b.zip", "--store", "results"]), translate(["store", "export", "results", "-o", "b.zip"])
    (['store', 'copy', 'b.zip', 'results'], ['store', 'copy', 'results', 'b.zip'])
    """
    given = list(arguments)
    verb, rest = tuple(given[:2]), given[2:]
    if verb == ("submit", "check"):
        return ["submit", *rest, "--check"]
    if verb == ("submit", "add"):
        return ["submit", *rest]
    if verb == ("data", "path"):
        return ["info", *rest, "--path"]
    if verb == ("store", "gc"):
        kept = [each for each in rest if each != "--dry-run"]
        return ["store", "verify", *kept, *([] if "--dry-run" in rest else ["--clean"])]
    if verb == ("store", "import") and "--store" in rest:
        return ["store", "copy", *(each for each in rest if each != "--store")]
    if verb == ("store", "export"):
        return ["store", "copy", *(each for each in rest if each not in ("-o", "--output"))]
    return given


def old_spelling(arguments: Sequence[str]) -> str | None:
    """Return the sentence about the first old spelling of a command line; None if it has none.

    Args:
        arguments: Command line without the program's name.

    >>> old_spelling(["taxonomy", "run", "--stop-after", "50"])
    '`--stop-after` of `grb taxonomy run` is `--patience` now.'
    """
    given = list(arguments[: arguments.index("--")]) if "--" in arguments else list(arguments)
    verbs = [each for each in given if not each.startswith("-")]
    for verb in (" ".join(verbs[:2]), " ".join(verbs[:1])):
        if verb in VERBS:
            return f"`grb {verb}` {VERBS[verb]}."
    options = [each.partition("=")[0] for each in given if each.startswith("-")]
    for verb in (" ".join(verbs[:2]), " ".join(verbs[:1]), ANY):
        for option in options:
            if (verb, option) in OPTIONS:
                of = f" of `grb {verb}`" if verb else ""
                return f"`{option}`{of} {OPTIONS[verb, option]}."
    return None
