from __future__ import annotations

from cli.conftest import refusal


def test_check_shows_every_rule_and_its_exit_code_says_whether_all_are_kept(grb, grb_json) -> None:
    good = grb("check", "evaluator.planted:Honest", "--kind", "attack")
    assert good.exit_code == 0 and "4 rules kept, 0 broken" in good.stderr
    bad = grb("check", "evaluator.planted:Greedy", "--kind", "attack")
    assert bad.exit_code == 1 and "NO" in bad.stdout and "the threat model allows" in bad.stdout
    findings = grb_json("check", "noedges")
    assert all(each["kept"] for each in findings) and len(findings) == 6


def test_bad_input(grb) -> None:
    assert "is in no catalogue" in refusal(grb("check", "nothing"))
    assert "are those with rules" in refusal(grb("check", "evaluator.planted:Honest", "--kind", "recipe"))
