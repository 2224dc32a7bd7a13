from __future__ import annotations

from cli.conftest import refusal


def test_check_shows_every_rule_and_its_exit_code_says_whether_all_are_kept(grb, grb_json) -> None:
    good = grb("check", "evaluator.planted:Honest", "--kind", "attack")
    assert good.exit_code == 0 and "4 rules kept, 0 broken" in good.stderr
    bad = grb("check", "evaluator.planted:Greedy", "--kind", "attack")
    assert bad.exit_code == 1 and "NO" in bad.stdout and "the threat model allows" in bad.stdout
    findings = grb_json("check", "noedges")
    assert all(each["kept"] for each in findings) and len(findings) == 6


def test_a_plug_in_that_cannot_be_made_or_imported_breaks_a_rule_or_is_refused(grb, tmp_path, monkeypatch) -> None:
    (tmp_path / "badly.py").write_text("raise RuntimeError('no')")
    (tmp_path / "needy.py").write_text("class Needy:\n    def __init__(self, thing): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "cannot be imported (RuntimeError: no)" in refusal(grb("check", "badly:X", "--kind", "attack"))
    done = grb("check", "needy:Needy", "--kind", "attack")
    assert done.exit_code == 1 and "can be made without arguments" in done.stdout


def test_bad_input(grb) -> None:
    assert "no method 'pgdd'. Did you mean 'pgd'?" in refusal(grb("check", "pgdd"))
    assert "are those with rules" in refusal(grb("check", "evaluator.planted:Honest", "--kind", "recipe"))
