"""The command as the shell sees it: light imports, exit codes, quiet pipes, one sentence per refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from grb import __version__
from grb.defense.base import Training
from grb.errors import IntegrityError

HEAVY = ("torch", "torch_geometric", "matplotlib", "networkx", "sklearn", "scipy")
PROBE = """
import sys
sys.argv = ["grb", *{arguments!r}]
from grb.cli import main
try:
    main()
finally:
    print(sorted(set(sys.modules) & set({heavy!r})), file=sys.stderr)
"""


def python(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["ls"], ["ls", "--json"], ["info", "synth-tiny", "--path"]]
)
def test_light_verbs_import_nothing_heavy(arguments):
    done = python("-c", PROBE.format(arguments=arguments, heavy=HEAVY))
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"


def test_importing_grb_imports_nothing_heavy():
    done = python("-c", f"import sys, grb; print(sorted(set(sys.modules) & set({HEAVY!r})))")
    assert done.stdout.strip() == "[]"


def test_the_command_makes_waiting_threads_passive_unless_told_otherwise():
    code = PROBE.format(arguments=["--version"], heavy=()) + "    import os; print(os.environ['OMP_WAIT_POLICY'])"
    bare = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    assert python("-c", code, env=bare).stdout.split()[-1] == "PASSIVE"
    assert python("-c", code, env={**bare, "OMP_WAIT_POLICY": "ACTIVE"}).stdout.split()[-1] == "ACTIVE"


def test_module_grb_runs_the_command():
    assert python("-m", "grb", "--version").stdout == f"grb {__version__}\n"


def test_version_as_json(grb):
    assert json.loads(grb("--version", "--json").stdout) == {"grb": __version__}


def test_json_may_stand_before_the_verb(grb):
    assert grb("--json", "ls", "models").stdout == grb("ls", "models", "--json").stdout
    assert json.loads(grb("--json", "info", "synth-tiny", "--path").stdout)["embedded"] is True


@pytest.mark.parametrize("arguments", [(), ("data",), ("--help",)])
def test_no_verb_shows_help(grb, arguments):
    done = grb(*arguments)
    assert done.exit_code == 0
    assert "Usage: " in done.stdout


@pytest.mark.parametrize("verb", ["ls", "info", "data check", "train", "eval", "doctor"])
def test_help_of_every_verb_has_an_example(grb, verb):
    shown = grb(*verb.split(), "--help").stdout
    assert "Example" in shown
    assert f"grb {verb}" in shown


def test_unknown_verb_and_option_are_refused_with_the_nearest_name(grb):
    done = grb("trian")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ") and "train" in done.stderr and "?." not in done.stderr
    done = grb("train", "gcn", "--dataset", "synth-tiny", "--seeed", "3")
    assert done.exit_code == 2
    assert "--seed" in done.stderr


def test_piped_output_has_no_colour_codes_and_no_trailing_spaces():
    done = python("-m", "grb", "ls", env={key: value for key, value in os.environ.items() if key != "FORCE_COLOR"})
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in done.stdout.splitlines())


def test_names_that_stdout_cannot_write_are_no_reason_to_fail():
    done = python("-m", "grb", "ls", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "synth-tiny" in done.stdout


def test_a_reader_that_leaves_early_is_met_with_silence():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "grb", "ls"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode != 2


def test_interrupt_shows_what_was_finished_and_exits_with_130(grb, monkeypatch):
    real = Training.fit_with_history

    def interrupted_at_seed_1(self, view, *, seed):
        if seed == 1:
            raise KeyboardInterrupt
        return real(self, view, seed=seed)

    monkeypatch.setattr(Training, "fit_with_history", interrupted_at_seed_1)
    done = grb("train", "gcn", "--dataset", "synth-tiny", "--param", "epochs=3", "--seeds", 3)
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "interrupted after 1 of 3 runs" in done.stdout


def test_broken_integrity_exits_with_3(grb, monkeypatch):
    def refuse(*args, **options):
        raise IntegrityError("object abc is not what its record says")

    monkeypatch.setattr("grb.trainer.trainer.check_device", refuse)
    done = grb("train", "gcn", "--dataset", "synth-tiny")
    assert done.exit_code == 3
    assert done.stderr.splitlines()[-1] == "error: object abc is not what its record says"


@pytest.mark.parametrize("how", ["option", "environment"])
def test_debug_shows_the_traceback(grb, monkeypatch, how):
    if how == "environment":
        monkeypatch.setenv("GRB_DEBUG", "1")
    done = grb("train", "gcn", "--dataset", "nowhere", *(["--debug"] if how == "option" else []))
    assert done.exit_code == 2
    assert done.stderr.startswith("Traceback")
    assert done.stderr.splitlines()[-1].startswith("error: no dataset 'nowhere'.")


def test_a_sentence_has_no_control_characters(grb):
    done = grb("info", "\x1b[31mred\nname")
    assert done.exit_code == 2
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["data", "store", "taxonomy"])
def test_a_command_without_its_verb_shows_its_help(command):
    done = python("-m", "grb", command)
    assert done.returncode == 0 and f"grb {command} [OPTIONS] COMMAND" in done.stdout and done.stderr == ""


def test_reproduce_is_run_under_the_paper_s_word(grb):
    run, reproduce = (grb(verb, "synth-tiny", "--quick", "--plan", "--json") for verb in ("run", "reproduce"))
    assert run.exit_code == 0 and run.stdout == reproduce.stdout
    assert json.loads(grb("--json", "reproduce", "synth-tiny", "--quick", "--plan").stdout) == json.loads(run.stdout)


def test_the_data_directory_may_stand_anywhere_and_is_searched_first(grb, tmp_path, monkeypatch):
    monkeypatch.setenv("GRB_DATA", "elsewhere")
    before = [grb(*line) for line in (["--data-dir", tmp_path, "info", "grb-cora", "--path"],)]
    after = [grb("info", "grb-cora", "--path", f"--data-dir={tmp_path}")]
    for done in (*before, *after):
        assert done.exit_code == 2 and f"searched {tmp_path}, elsewhere" in done.stderr
    assert "GRB_DATA_DIR" not in os.environ
    assert "--data-dir is 'nowhere', but a directory is needed" in grb("ls", "--data-dir", "nowhere").stderr
