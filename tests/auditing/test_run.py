"""Audits of planted weaknesses, of models of others and of black boxes; reports that hold what they say."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array
from torch import Tensor, nn

import grb
from grb.auditing import AuditReport, Program, check, schema
from grb.auditing.findings import failed_attacks
from grb.dataset import Dataset
from grb.dataset.original_names import OriginalNames
from grb.errors import DataError, UnknownName
from grb.metric import get

QUICK = {"effort": "quick", "surrogates": (), "corrupt": False}


class TwoHops(nn.Module):
    """Signals of nodes two edges away."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        weight = torch.ones(edge_index.shape[1]) if edge_weight is None else edge_weight

        def once(rows: Tensor) -> Tensor:
            return torch.zeros_like(rows).index_add(0, edge_index[1], rows[edge_index[0]] * weight[:, None])

        return once(once(x)) + x


def hubs(n: int = 60) -> Dataset:
    """Class 1 hears of itself only through hub 1, which hears it from node 0; class 0 knows itself."""
    y = np.zeros(n, dtype=int)
    y[20:40] = 1
    y[0] = y[1] = 1
    x = np.zeros((n, 2))
    x[0] = [0, 3]
    x[20:40] = [0.01, 0]
    x[2:20] = x[40:] = [1, 0]
    edges = [(0, 1)] + [(1, i) for i in range(20, 40)]
    edges += [(i, i + 1) for i in range(2, 19)] + [(i, i + 1) for i in range(40, n - 1)]
    e = np.array(edges).T
    adj = coo_array((np.ones(len(edges)), (e[0], e[1])), shape=(n, n))
    split = {"train": range(20), "test": range(20, n)}
    made = Dataset.from_arrays(adj + adj.T, x, y, split=split, name="hubs")
    made.__dict__["names"] = OriginalNames([f"acc-{i}" for i in range(n)], ["honest", "fraud"], ["a", "b"])
    return made


def test_a_class_that_hangs_on_one_hub_is_found_and_named() -> None:
    dataset = hubs()
    report = grb.audit(TwoHops(), dataset, metrics="accuracy", scenarios=["modification"], **QUICK)
    (found,) = report.values["scenarios"]
    assert found["breaking_point"]["budget"] == 1  # the edge between source and hub
    rows = {row["class"]: row["all"] for row in report.values["classes"]["rows"]}
    assert rows["fraud"]["clean"] == 1 and rows["fraud"]["attacked"] == 0
    assert rows["honest"]["attacked"] == rows["honest"]["clean"]
    assert "acc-1" in [row["node"] for row in found["used"]]
    falling = [row for row in found["vulnerable"] if row["budget"] == 1]
    assert {row["node"] for row in falling} == {f"acc-{i}" for i in range(20, 40)}
    assert "fraud" in report.render("html") and "acc-1" in report.render("markdown")


def test_recall_of_a_class_aims_at_its_nodes_and_reports_collateral() -> None:
    dataset = hubs()
    report = grb.audit(TwoHops(), dataset, metrics="recall:1", below=0.5, **QUICK)
    assert report.values["dataset"]["targets"] == 20 and report.values["dataset"]["test_nodes"] == 40
    injected = report.values["scenarios"][0]
    assert injected["collateral"]["clean_accuracy"] == 1.0
    assert report.values["clean"]["baselines"]["majority"]["recall:1"] == 0.0
    assert "class 'fraud'" in report.values["threat_model"]["goal"]


def test_classes_of_metrics_may_be_named() -> None:
    dataset = hubs()
    report = grb.audit(TwoHops(), dataset, metrics="recall:fraud", scenarios=["injection"], **QUICK)
    assert report.values["metric"]["name"] == "recall:1"
    assert report.values["metric"]["description"] == "recall of class 1, 'fraud'"
    assert report.headline.startswith("recall:1 (class 'fraud') of TwoHops ")
    assert list(grb.evaluate(grb.wrap(TwoHops()), dataset, metrics="f1:fraud")) == ["accuracy", "f1:1"]
    with pytest.raises(UnknownName, match="no class 'frauds'. Did you mean 'fraud'"):
        grb.audit(TwoHops(), dataset, metrics="recall:frauds", **QUICK)


def test_a_curve_of_random_changes_alone_is_flagged() -> None:
    """A model that fails under gradients, so that nothing but random changes is counted, only looks robust."""

    class NoGradients(TwoHops):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
            if torch.is_grad_enabled() or len(x) > 61:
                raise ValueError("only for inference, of one new node")
            return super().forward(x, edge_index, edge_weight)

    options = {**QUICK, "budgets": {"injection": [1]}, "below": 0.01, "metrics": "accuracy"}
    report = grb.audit(NoGradients(), hubs(), scenarios=["injection"], **options)
    trials = [trial for point in report.values["scenarios"][0]["points"] for trial in point["trials"]]
    ran = {trial["attack"] for trial in trials if "error" not in trial}
    flagged = "attacks-failed" in [flag["name"] for flag in report.values["flags"]]
    assert flagged == (ran <= {"random", "smaller budget"})
    listed = {trial["attack"] for trial in trials if "error" in trial} - ran
    assert flagged or all(any(name in note for note in report.values["notes"]) for name in listed)
    assert listed
    points = [{"trials": [{"attack": "pgd", "error": "no"}, {"attack": "random", "value": 1.0}]}]
    assert failed_attacks(points) == ({"pgd": "no"}, True)
    points.append({"trials": [{"attack": "pgd", "value": 0.5}]})
    assert failed_attacks(points) == ({}, False)


def test_numbers_are_those_of_the_evaluator() -> None:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, epochs=20)
    report = grb.audit(model, dataset, metrics="macro-f1", scenarios=["injection"], **QUICK)
    scores = grb.evaluate(model, dataset, metrics="macro-f1")
    assert report.values["clean"]["values"] == {name: pytest.approx(each["full"]) for name, each in scores.items()} | {
        "macro-f1": pytest.approx(scores["macro-f1"]["full"])
    }
    points = [point["value"] for point in report.values["scenarios"][0]["points"]]
    assert points == sorted(points, reverse=True)
    assert report.values["worst_case"]["values"]["macro-f1"] == pytest.approx(points[-1])
    numbers = dict(report.numbers())
    assert numbers["clean.macro-f1"] == report.values["clean"]["values"]["macro-f1"]


def test_an_interrupted_audit_goes_on_where_it_stopped(tmp_path) -> None:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, epochs=10)
    options = {**QUICK, "scenarios": ["injection"], "store": tmp_path / "steps"}
    done: list[str] = []

    def stop(line: str) -> None:
        done.append(line)
        if len(done) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grb.audit(model, dataset, on_progress=stop, **options)
    kept = {path.name for path in (tmp_path / "steps").iterdir()}
    assert kept
    first = grb.audit(model, dataset, **options)
    assert kept < {path.name for path in (tmp_path / "steps").iterdir()}
    again = grb.audit(model, dataset, **options)
    assert again.to_dict() == first.to_dict()
    for path in (tmp_path / "steps").glob("*.json"):  # a broken file is made again, not believed
        path.write_text("{", encoding="utf-8")
    assert grb.audit(model, dataset, **options).values["worst_case"] == first.values["worst_case"]


def test_another_model_has_other_steps(tmp_path) -> None:
    dataset = grb.load_dataset("synth-tiny")
    options = {**QUICK, "scenarios": ["injection"], "store": tmp_path}
    one = grb.audit(grb.train("gcn", dataset, epochs=10, seed=0), dataset, **options)
    other = grb.audit(grb.train("gcn", dataset, epochs=10, seed=1), dataset, **options)
    assert one.values["model"]["fingerprint"] != other.values["model"]["fingerprint"]
    assert one.values["clean"] != other.values["clean"]


class OfData(nn.Module):
    def __init__(self, d: int, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(d, classes)

    def forward(self, data) -> Tensor:
        return torch.softmax(self.layer(data.x), dim=1)


def test_modules_of_one_data_and_probabilities_are_taken_as_they_are() -> None:
    dataset = grb.load_dataset("synth-tiny")
    torch.manual_seed(0)
    report = grb.audit(OfData(dataset.num_features, dataset.num_classes), dataset, scenarios=["injection"], **QUICK)
    assert any("probabilities" in note for note in report.values["notes"])
    points = report.values["scenarios"][0]["points"]
    assert len({point["value"] for point in points}) == 1  # it looks at no edge


def test_a_function_is_attacked_by_queries_alone() -> None:
    dataset = hubs()
    asked = []

    def box(x: np.ndarray, edge_index: np.ndarray) -> np.ndarray:
        asked.append(x.shape)
        return TwoHops()(torch.from_numpy(x), torch.from_numpy(edge_index)).numpy()

    options = {**QUICK, "budgets": {"modification": [2, 4], "injection": [1]}}
    report = grb.audit(box, dataset, metrics="accuracy", **options)
    assert report.values["model"]["black_box"] and "black-box" in report.values["threat_model"]["knowledge"]
    trials = [trial for each in report.values["scenarios"] for point in each["points"] for trial in point["trials"]]
    assert not any("error" in trial for trial in trials) and len(asked) > 10
    counts = [trial["queries"] for trial in trials if trial["attack"] == "random-search"]
    assert counts and all(0 < count <= 150 for count in counts)  # through an oracle, which counts
    assert "up to 150 times" in report.values["threat_model"]["knowledge"]
    # the hub's edge is one of 1770 pairs, and searching by answers finds it
    assert report.values["scenarios"][1]["points"][-1]["value"] < 1


def test_a_program_answers_for_a_model(tmp_path) -> None:
    file = tmp_path / "predict.py"
    file.write_text(
        "import sys\nimport numpy as np\n"
        "graph = np.load(sys.argv[1])\n"
        "rows = graph['x'].copy()\n"
        "np.add.at(rows, graph['edge_index'][1], graph['x'][graph['edge_index'][0]])\n"
        "np.save(sys.argv[2], rows)\n",
        encoding="utf-8",
    )
    program = Program([sys.executable, str(file)])
    x, edges = np.eye(3, dtype=np.float32), np.array([[0, 1], [1, 0]])
    assert program(x, edges).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    file.write_text("import sys; sys.exit('no such model')", encoding="utf-8")
    with pytest.raises(DataError, match="ended with code 1 and wrote no scores .*no such model"):
        program(x, edges)
    with pytest.raises(DataError, match="cannot be started"):
        Program("no-such-program-here")(x, edges)


@pytest.fixture(scope="module")
def report() -> AuditReport:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("gcn", dataset, epochs=20)
    return grb.audit(model, dataset, effort="quick", scenarios=["injection", "modification"])


def conforms(value, rules, where: str = "report") -> None:
    """The part of JSON schema that ours uses."""
    if "const" in rules:
        assert value == rules["const"], where
    if "enum" in rules:
        assert value in rules["enum"], where
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    wanted = rules.get("type")
    if wanted is not None:
        listed = [wanted] if isinstance(wanted, str) else wanted
        fits = [
            (isinstance(value, int | float) and not isinstance(value, bool))
            if kind == "number"
            else (isinstance(value, int) and not isinstance(value, bool))
            if kind == "integer"
            else isinstance(value, kinds[kind])
            for kind in listed
        ]
        assert any(fits), f"{where} is {value!r:.60}, but {listed} is needed"
    if isinstance(value, dict):
        assert set(rules.get("required", ())) <= set(value), where
        own, more = rules.get("properties", {}), rules.get("additionalProperties", True)
        for key, each in value.items():
            assert key in own or more is not False, f"{where} has {key}"
            if key in own:
                conforms(each, own[key], f"{where}.{key}")
            elif isinstance(more, dict):
                conforms(each, more, f"{where}.{key}")
    if isinstance(value, list) and "items" in rules:
        for place, each in enumerate(value):
            conforms(each, rules["items"], f"{where}[{place}]")


def test_the_report_keeps_to_its_published_schema(report, tmp_path) -> None:
    conforms(report.to_dict(), schema())
    file = report.save(tmp_path / "report.json")
    assert AuditReport.load(file).to_dict() == report.to_dict()
    broken = {**report.to_dict(), "format": "grb-audit/9"}
    with pytest.raises(DataError, match="grb-audit/1"):
        AuditReport.from_dict(broken)
    del broken["clean"]
    with pytest.raises(DataError, match="lacks 'clean'"):
        AuditReport.from_dict({**broken, "format": "grb-audit/1"})


def test_all_thirteen_corruptions_are_tried_or_explained(report) -> None:
    rows = report.values["corruptions"]
    assert len(rows) == 13
    assert all((row["value"] is None) == bool(row["reason"]) for row in rows)
    assert sum(row["value"] is not None for row in rows) == 10
    said = " ".join(report.values["not_tested"])
    assert "privacy" in said and "backdoors" in said and "RandFtrs" in said


def test_conditions(report) -> None:
    value = report.values["worst_case"]["values"]["accuracy"]
    outcomes = check(report, f"worst_case.accuracy>={value - 0.01},clean.accuracy<0.1")
    assert [each.holds for each in outcomes] == [True, False]
    assert "clean.accuracy<0.1 fails" in str(outcomes[1])
    with pytest.raises(UnknownName, match="worst_case.accuracy"):
        check(report, "worst_case.acuracy>=1")
    with pytest.raises(DataError, match="cannot be read"):
        check(report, "worst_case.accuracy => 1")
    short = AuditReport({**report.to_dict(), "worst_case": {"values": {"recall:1": 0.7}}})
    assert check(short, "worst_case.recall>=0.8")[0].name == "worst_case.recall:1"


def test_exports_are_what_their_readers_expect(report, tmp_path) -> None:
    import yaml

    index = yaml.safe_load(report.render("model-index"))["model-index"][0]
    assert index["results"][0]["task"]["type"] == "node-classification"
    values = {each["name"]: each["value"] for each in index["results"][0]["metrics"]}
    assert values["worst-case accuracy"] == pytest.approx(report.values["worst_case"]["values"]["accuracy"], abs=1e-6)
    sarif = json.loads(report.render("sarif"))
    assert sarif["version"] == "2.1.0" and len(sarif["runs"][0]["results"]) == 2 + len(report.values["flags"])
    rules = {rule["id"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]}
    assert {each["ruleId"] for each in sarif["runs"][0]["results"]} <= rules
    bill = json.loads(report.render("cyclonedx"))
    (component,) = bill["components"]
    assert bill["bomFormat"] == "CycloneDX" and component["type"] == "machine-learning-model"
    assert component["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    assert report.render("cyclonedx") == report.render("cyclonedx")
    with pytest.raises(DataError, match="does not say its format"):
        report.save(tmp_path / "report.txt")


def test_the_page_is_closed_and_shows_names_as_text(report) -> None:
    evil = "<script>alert(1)</script>"
    values = json.loads(json.dumps(report.to_dict()).replace("synth-tiny", evil))
    values["scenarios"][0]["vulnerable"][0]["node"] = f"{evil}|`x`](javascript:1)"
    page = AuditReport(values).render("html")
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "default-src 'none'" in page and "http://" not in page.replace("http-equiv", "")
    assert page.count("<svg") == 2 and "@media print" in page
    assert "style=" not in page.replace("<style", "")  # the policy forbids inline styles
    text = AuditReport(values).render("markdown")
    assert evil not in text and r"\|" in text
    assert report.headline in report.render("html").replace("&#39;", "'")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scenarios": "injection"}, "a list of injection and modification"),
        ({"scenarios": ["inject"]}, "no scenario 'inject'. Did you mean 'injection'"),
        ({"budgets": {"injection": [0]}}, "whole numbers from 1 on"),
        ({"below": 80}, "above 0 and up to 1"),
        ({"effort": "fast"}, "quick, standard or thorough"),
        ({"metrics": "recall:9"}, "classes 0 to 3"),
        ({"metrics": ""}, "metrics is empty"),
        ({"targets": "class=9"}, "no class '9'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_computed(change, words: str) -> None:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train("mlp", dataset, epochs=1)
    with pytest.raises((DataError, UnknownName), match=words):
        grb.audit(model, dataset, **change)


def test_exactly_four_fifths_of_the_clean_value_do_not_break_a_model() -> None:
    from grb.auditing.run import _threshold

    for count in range(1, 200):
        clean = count / 200
        assert _threshold(None, clean, get("recall:1")) <= 0.8 * clean + 1e-12
    assert _threshold(None, 10 / 11, get("recall:1")) <= 8 / 11 and _threshold(None, 1.0, get("accuracy")) == 0.8
    assert _threshold(0.5, 0.9, get("accuracy")) == 0.5


def test_metrics_without_a_range_need_a_limit() -> None:
    dataset = grb.load_dataset("synth-tiny")

    def right(logits, decisions, labels) -> float:
        return float((decisions == labels).sum())

    model = grb.train("mlp", dataset, epochs=1)
    with pytest.raises(DataError, match="'below' must say"):
        grb.audit(model, dataset, metrics=[right], **QUICK)
    assert get(right).range != (0.0, 1.0)


def test_certified_curves_lie_below_the_worst_case_where_the_model_has_one() -> None:
    """Without edges nothing that happens to edges can matter: certified, attacked and clean values are the same."""
    dataset = grb.load_dataset("synth-tiny")
    options = {**QUICK, "scenarios": ["modification"], "budgets": {"modification": [2, 8]}, "below": 0.1}
    (found,) = grb.audit(grb.train("mlp", dataset, epochs=20), dataset, **options).values["scenarios"]
    assert found["certified"] is not None
    for point, bound in zip(found["points"], found["certified"], strict=True):
        assert bound["budget"] == point["budget"] and bound["value"] == pytest.approx(point["value"])
    (plain,) = grb.audit(grb.train("gcn", dataset, epochs=5), dataset, **options).values["scenarios"]
    assert plain["certified"] is None


@pytest.mark.parametrize(("name", "params"), [("gcn+known", {}), ("gcn+hash-vote", {"divide": "senders", "groups": 5})])
def test_models_that_tell_known_nodes_from_others_are_audited_as_they_are_certified(name, params) -> None:
    """Known nodes are known and keys are those of the certificate: what is certified survives."""
    dataset = grb.load_dataset("synth-tiny")
    options = {**QUICK, "scenarios": ["injection"], "budgets": {"injection": [2]}, "below": 0.1}
    model = grb.train(name, dataset, epochs=30, hidden_features=[16], **params)
    (found,) = grb.audit(model, dataset, **options).values["scenarios"]
    assert found["certified"] is not None
    for point, bound in zip(found["points"], found["certified"], strict=True):
        assert bound["budget"] == point["budget"] and bound["value"] <= point["value"]
        if name == "gcn+known":
            assert point["value"] == pytest.approx(bound["value"], abs=0.02)


def test_the_published_schema_is_one_and_holds_for_reports(report) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="validating against the schema needs jsonschema")
    kind = jsonschema.Draft202012Validator
    kind.check_schema(schema())
    validator = kind(schema())
    assert [error.message for error in validator.iter_errors(report.to_dict())] == []
    assert list(validator.iter_errors({**report.to_dict(), "clean": []}))
    assert list(validator.iter_errors({**report.to_dict(), "more": 1}))


def test_cyclonedx_accepts_its_bill_of_materials(report) -> None:
    """The library has no class for model cards yet, but knows the schema of the specification, which it checks strictly."""
    pytest.importorskip("cyclonedx.validation.json", reason="checking a bill of materials needs cyclonedx-python-lib")
    from cyclonedx.exception import MissingOptionalDependencyException
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    validator = JsonStrictValidator(SchemaVersion.V1_6)
    try:
        assert validator.validate_str(report.render("cyclonedx")) is None
    except MissingOptionalDependencyException:
        pytest.skip("checking a bill of materials needs cyclonedx-python-lib[json-validation]")
    broken = json.loads(report.render("cyclonedx"))
    broken["components"][0]["modelCard"]["quantitativeAnalysis"]["performanceMetrics"][0]["value"] = 1
    assert validator.validate_str(json.dumps(broken)) is not None


def test_cyclonedx_keeps_to_the_fields_of_version_1_6(report) -> None:
    """Where its library is not installed: the fields that its schema knows in the parts that are used."""
    bill = json.loads(report.render("cyclonedx"))
    assert set(bill) == {"$schema", "bomFormat", "specVersion", "serialNumber", "version", "metadata", "components"}
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    (component,) = bill["components"]
    assert set(component) == {"type", "bom-ref", "name", "hashes", "modelCard", "properties"}
    assert re.fullmatch("[0-9a-f]{64}", component["hashes"][0]["content"])
    card = component["modelCard"]
    assert set(card) == {"modelParameters", "quantitativeAnalysis", "considerations"}
    assert set(card["modelParameters"]) == {"task", "datasets"} and set(card["considerations"]) == {
        "technicalLimitations"
    }
    for metric in card["quantitativeAnalysis"]["performanceMetrics"]:
        assert set(metric) <= {"type", "value", "slice", "confidenceInterval"}
        assert all(isinstance(metric[key], str) for key in ("type", "value"))


def test_sarif_keeps_the_rules_of_version_2_1_0(report) -> None:
    """What the schema of OASIS asks for in the parts that are used; an unknown key would be refused there."""
    sarif = json.loads(report.render("sarif"))
    assert set(sarif) == {"$schema", "version", "runs"} and sarif["$schema"].startswith("https://")
    (run,) = sarif["runs"]
    assert set(run) == {"tool", "results"} and set(run["tool"]) == {"driver"}
    driver = run["tool"]["driver"]
    assert set(driver) == {"name", "version", "informationUri", "rules"}
    assert driver["informationUri"].startswith("https://")
    named = [rule["id"] for rule in driver["rules"]]
    assert len(set(named)) == len(named)
    assert all(set(rule) == {"id", "shortDescription"} and rule["shortDescription"]["text"] for rule in driver["rules"])
    for result in run["results"]:
        assert set(result) == {"ruleId", "level", "message", "locations"}
        assert result["level"] in ("none", "note", "warning", "error") and result["message"]["text"]
        (location,) = result["locations"]
        (logical,) = location["logicalLocations"]
        assert set(logical) == {"name", "kind"} and isinstance(logical["name"], str)


def test_black_boxes_are_asked_no_more_than_allowed() -> None:
    dataset = hubs()

    def box(x: np.ndarray, edge_index: np.ndarray) -> np.ndarray:
        return TwoHops()(torch.from_numpy(x), torch.from_numpy(edge_index)).numpy()

    options = {**QUICK, "scenarios": ["injection"], "budgets": {"injection": [1]}, "below": 0.01, "metrics": "accuracy"}
    report = grb.audit(box, dataset, queries=7, **options)
    trials = report.values["scenarios"][0]["points"][1]["trials"]
    assert [trial["queries"] for trial in trials if "queries" in trial] == [7]
    assert report.values["settings"]["queries"] == 7
    conforms(report.to_dict(), schema())
    with pytest.raises(DataError, match="queries is for black boxes"):
        grb.audit(TwoHops(), dataset, queries=7, **options)
    with pytest.raises(DataError, match="at least 1"):
        grb.audit(box, dataset, queries=0, **options)
