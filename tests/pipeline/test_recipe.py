from __future__ import annotations

import csv
from importlib import resources
from pathlib import Path

import pytest
import yaml

from grb.catalogue import preset
from grb.defense import build_defense
from grb.errors import DataError, GRBError, UnknownName
from grb.pipeline import Recipe, Spec, read_recipe, recipe_names
from grb.pipeline.recipe import MAX_BYTES, parse_recipe, recipe_from_dict
from grb.threat import injection_table

GRB_DATASETS = ("grb-cora", "grb-citeseer", "grb-flickr", "grb-reddit", "grb-aminer")
SHORT = "dataset: synth-tiny\n"


def published(dataset: str) -> tuple[set[str], set[str]]:
    """Attacks and defenses of a table of the paper, read here once more."""
    text = resources.files("grb").joinpath("presets").joinpath("leaderboards.csv").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["dataset"] == dataset]
    return {row["attack"].lower() for row in rows}, {row["defense"].lower() for row in rows}


# what comes with grb


def test_there_is_a_recipe_for_every_dataset_of_the_paper_and_for_the_embedded_ones() -> None:
    assert set(GRB_DATASETS) | {"synth-tiny", "synth-cora"} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_that_comes_with_grb_is_read_and_knows_its_methods(name: str) -> None:
    recipe = read_recipe(name)
    assert recipe.name == name and recipe.title and recipe.quick
    for spec in (*recipe.defenses, *recipe.surrogates):
        build_defense(spec.name, recipe.dataset, **{**recipe.training, **spec.params})


@pytest.mark.parametrize("name", recipe_names())
def test_quick_is_less_work(name: str) -> None:
    whole, quick = read_recipe(name), read_recipe(name).quickly()
    assert quick.repeats * quick.victims < whole.repeats * whole.victims and quick.dataset == whole.dataset
    # what an attack says of itself is not changed by a recipe's number of iterations
    assert not any("iterations" in spec.params for spec in whole.attacks)


@pytest.mark.parametrize("dataset", GRB_DATASETS)
def test_the_papers_tables_are_reproduced_with_its_attacks_defenses_and_repeats(dataset: str) -> None:
    recipe = read_recipe(dataset)
    attacks, defenses = published(dataset)
    assert len(defenses) == 10 and len(attacks - {"w/o attack", "none", "clean"}) >= 5
    assert {spec.label for spec in recipe.defenses} == defenses
    assert {spec.label for spec in recipe.attacks} <= attacks and len(recipe.attacks) == 5
    assert recipe.paper == recipe.dataset == dataset
    assert (recipe.repeats, recipe.victims, recipe.scenario) == (10, 1, "injection")
    assert recipe.modes == ("easy", "medium", "hard", "full") and [spec.name for spec in recipe.surrogates] == ["gcn"]
    assert not recipe.training and recipe.iterations is None and not recipe.threat  # nothing but the tables


@pytest.mark.parametrize("dataset", GRB_DATASETS)
def test_every_table_has_its_settings(dataset: str) -> None:
    """No recipe of the paper falls back to another dataset's settings."""
    own = preset("models")[dataset]
    for spec in read_recipe(dataset).defenses:
        plain = spec.name.removesuffix("+at")
        assert plain in own, f"{spec.name} on {dataset}"
    row = injection_table(dataset)
    assert {"nodes", "edges_per_node", "feature_range", "iterations", "step", "training"} <= set(row)
    assert set(row["nodes"]) == {"easy", "medium", "hard", "full"}


def test_the_embedded_recipes_never_show_a_published_number() -> None:
    assert not read_recipe("synth-cora").paper and not read_recipe("synth-tiny").paper


# reading


def test_a_recipe_of_ones_own_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("dataset: synth-tiny\nattacks: [rnd, {name: pgd, iterations: 5}]\ntraining: {epochs: 2}\n")
    recipe = read_recipe(path)
    assert recipe == read_recipe(str(path)) and recipe.name == "mine"
    assert recipe.attacks == (Spec("rnd"), Spec("pgd", {"iterations": 5})) and recipe.training == {"epochs": 2}


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("defences: [gcn]", "defenses"),
        ("atacks: [pgd]", "attacks"),
        ("repeat: 3", "repeats"),
        ("whitebox: [pgd]", "white_box"),
        ("quick: {iteration: 5}", "iterations"),
        ("scenario: inject", "injection"),
        ("modes: [esay]", "easy"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest_name(text: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"Did you mean '{near}'"):
        parse_recipe(SHORT + text, name="mine")


@pytest.mark.parametrize(
    "text",
    [
        "repeats: 0",
        "repeats: 1.5",
        "repeats: yes",
        "repeats: '3'",
        "repeats: [1]",
        "repeats:",
        "victims: -1",
        "seed: -1",
        "iterations: 0",
        "white_box_repeats: 0",
        "modes: []",
        "modes: full",
        "modes: [full, full]",
        "surrogates: []",
        "defenses: gcn",
        "defenses: [5]",
        "defenses: [[gcn]]",
        "defenses: [{epochs: 5}]",
        "defenses: [gcn, gcn]",
        "attacks: {pgd: 5}",
        "attacks: [pgd, pgd]",
        "attacks: [{name: pgd, step: .nan}]",
        "attacks: [{name: pgd, step: 2020-01-01}]",
        "title: 5",
        "paper: [grb-cora]",
        "training: 5",
        "threat: [5]",
        "sweep: {nodes: 5}",
        "sweep: {nodes: []}",
        "sweep: {nodes: [a]}",
        "sweep: {nodes: [.nan]}",
        "sweep: {nodes: [true]}",
        "quick: {repeats: 0}",
        "quick: 5",
        "dataset:",
    ],
)
def test_values_of_the_wrong_kind_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(GRBError) as refused:
        parse_recipe((SHORT if "dataset" not in text else "") + text, name="mine")
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a mapping"),
        ("- a\n- b", "must be a mapping"),
        ("just words", "must be a mapping"),
        ("repeats: 5", "names no dataset"),
        ("dataset: [", "not readable YAML"),
        ("dataset: a\ndataset: b", "the key 'dataset' occurs twice"),
        ("dataset: a\ntraining: {lr: 1, lr: 2}", "the key 'lr' occurs twice"),
        ("dataset: &a synth-tiny", "anchors and aliases are not read"),
        ("dataset: a\nattacks: [&x pgd, *x]", "anchors and aliases are not read"),
        ("dataset: a\n<<: {repeats: 5}", "merge keys are not read"),
        ("dataset: !!python/object/apply:os.system ['true']", "not readable YAML"),
        ("dataset: !!python/name:os.system", "not readable YAML"),
        ("dataset: a\n? [b, c]\n: d", "not readable YAML"),
        ("[" * 5000, "not readable YAML"),
        ("dataset: a\nrepeats: " + "9" * 5000, "not readable YAML"),
        ("dataset: a\x00b", "not readable YAML"),
        ("a: 1\n---\nb: 2", "not readable YAML"),
    ],
)
def test_hostile_text_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as refused:
        parse_recipe(text, name="mine")
    assert "\n" not in str(refused.value)


def test_many_keys_take_no_time() -> None:
    text = SHORT + "training:\n" + "".join(f"  k{number}: 1\n" for number in range(5_000))
    assert len(parse_recipe(text, name="mine").training) == 5_000


def test_no_code_runs_while_a_recipe_is_read(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for tag in ("object/apply:os.mkdir", "object/new:os.mkdir", "object:os.mkdir"):
        with pytest.raises(DataError):
            parse_recipe(f"dataset: !!python/{tag} ['{canary}']", name="mine")
    assert not canary.exists()


def test_files_that_are_no_recipes(tmp_path: Path) -> None:
    for name, content, words in (
        ("missing.yaml", None, "cannot read"),
        ("folder.yaml", "", "cannot read"),
        ("binary.yaml", b"\xff\xfe\x00", "not UTF-8"),
        ("large.yaml", b"#" * (MAX_BYTES + 1), "recipes are short"),
    ):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            path.mkdir()
        with pytest.raises(DataError, match=words):
            read_recipe(path)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'grb-cora'"):
        read_recipe("grb-corra")
    with pytest.raises(UnknownName, match="A custom recipe is a file that ends in .yaml"):
        read_recipe("../../etc/passwd")


# changes


def test_changes_are_given_as_a_file_gives_them() -> None:
    recipe = read_recipe("synth-tiny")
    assert recipe.changed(repeats=7, modes=None).repeats == 7
    assert recipe.changed(repeats=7, modes=None).modes == recipe.modes
    assert recipe.changed(attacks=["pgd", {"name": "rnd"}]).attacks == (Spec("pgd"), Spec("rnd"))
    assert recipe.changed() == recipe
    for bad in ({"repeats": 0}, {"colour": "red"}, {"attacks": "pgd"}):
        with pytest.raises(GRBError):
            recipe.changed(**bad)


def test_quick_replaces_what_it_names() -> None:
    recipe = parse_recipe(
        "dataset: a\nrepeats: 5\ntraining: {epochs: 9}\nquick: {repeats: 1, training: {patience: 3}}", name="q"
    )
    quick = {"repeats": 1, "training": {"patience": 3}}
    changed = {"repeats": 1, "training": {"patience": 3}, "quick": quick}
    assert recipe.quickly() == Recipe("q", "a", title="q (quick)", is_quick=True, **changed)
    assert recipe_from_dict(recipe.quickly().to_dict()) == recipe.quickly()


def test_recipes_are_plain_yaml_that_any_reader_reads() -> None:
    folder = resources.files("grb").joinpath("pipeline").joinpath("recipes")
    for name in recipe_names():
        assert yaml.safe_load(folder.joinpath(f"{name}.yaml").read_text("utf-8"))["dataset"]


@pytest.mark.parametrize("name", ["repeats", "victims", "white_box_repeats"])
def test_a_study_that_nobody_could_plan_is_refused_at_once(name: str) -> None:
    with pytest.raises(DataError, match=f"{name} is 1000000000, but at most 10000 can be planned"):
        parse_recipe(f"dataset: synth-tiny\n{name}: 1000000000\n", name="endless")


def test_a_fresh_graph_is_a_key_beside_the_dataset() -> None:
    fresh = parse_recipe("{dataset: synth-cora, graph: fresh}", name="mine")
    assert fresh == parse_recipe("{dataset: synth-cora-fresh}", name="mine")
    assert fresh == parse_recipe("{dataset: synth-cora-fresh, graph: fresh}", name="mine")
    assert recipe_from_dict(fresh.to_dict()) == fresh
    assert parse_recipe("{dataset: synth-cora, graph: published}", name="mine").dataset == "synth-cora"
    assert read_recipe("grb-cora-fresh").dataset == "grb-cora-fresh"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{dataset: synth-cora, graph: old}", "'old', but published or fresh is needed"),
        ("{dataset: synth-tiny, graph: fresh}", "'synth-tiny' of recipe 'mine' has no fresh graph; synth-cora"),
        ("{dataset: synth-cora, graph: fresh, scenario: modification}", "a scenario of injection"),
        ("{dataset: synth-cora-fresh, graph: published}", "name 'synth-cora'"),
    ],
)
def test_a_fresh_graph_that_there_is_not_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        parse_recipe(text, name="mine")


@pytest.mark.parametrize("defense", ["gcn+known", "graphsage+ln+bounded"])
def test_memory_says_nothing_about_injection_where_all_nodes_are_known(defense: str) -> None:
    text = f"{{dataset: synth-tiny, defenses: [{defense}], train_mode: transductive}}"
    with pytest.raises(DataError, match="knows every original node in transductive training"):
        parse_recipe(text, name="mine")
    parse_recipe(text.replace("}", ", scenario: modification}"), name="mine")  # of edges it does say something
    parse_recipe(text.replace("transductive", "inductive"), name="mine")
