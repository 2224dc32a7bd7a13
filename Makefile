# make run    the main job, in an environment of its own
# make test   every check that CI runs
# make docs   the documentation as a site, in site/
# make lint | format | browser | stress | bench | clean
# PIP_FLAGS adds options to every pip install, for example: make test PIP_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu"

VENV := .venv
BIN := $(VENV)/bin
PIP_FLAGS ?=
SHELL := /bin/sh

# the first interpreter that is new enough and can make environments; looked for only when one has to be made
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10 python3.14 python; do \
	$$p -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 && { command -v $$p; break; }; done)

# two xdist workers on two cores: one thread each, and no spinning while they wait
TEST_ENV := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
WORKERS ?= 2
# what make run does: RUN="reproduce grb-cora --quick" changes it
RUN ?= reproduce synth-cora

.PHONY: help run test docs lint format browser stress bench clean
help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

run: $(VENV)/.stamp-run
	OMP_WAIT_POLICY=PASSIVE $(BIN)/grb $(RUN)

test: lint docs
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# a warning is an error: mkdocs.yml says so
docs: $(VENV)/.stamp-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

format: $(VENV)/.stamp-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Debian's Chromium for the tests of the page, which skip where there is none; installed only where that needs no password
browser:
	@if { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null 2>&1; then :; \
	elif command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
		echo "installing chromium"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; } >/dev/null \
		|| echo "chromium could not be installed: the tests of the page will skip"; \
	else echo "no chromium: the tests of the page will skip"; fi

# faults, kills, clusters, damaged files, and limits kept by thousands of random attacks: about an hour of CPU time
STRESS := tests/pipeline tests/cli/test_environment.py tests/contract tests/test_fuzz.py tests/graph/test_edit.py tests/graph/test_files.py \
	tests/graph/test_validate.py tests/dataset/test_storage.py tests/attack/test_incremental.py
stress: $(VENV)/.stamp-dev
	$(TEST_ENV) HYPOTHESIS_PROFILE=stress $(BIN)/python -m pytest -n $(WORKERS) -m "stress or not stress" --durations=25 $(STRESS)

# each has a limit of seconds, which add up to an hour
bench: $(VENV)/.stamp-dev
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python benchmarks/bench.py

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is older than its inputs when the environment is stale; pip then installs only what differs. An environment that
# was moved, or made with an interpreter that is gone or too old, is made anew.
define make_venv
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && $(BIN)/pip --version >/dev/null 2>&1 || { \
		python="$(PYTHON)"; \
		[ -n "$$python" ] || { echo "no Python >= 3.10 with the venv module was found; name one with make PYTHON=/path/to/python" >&2; exit 2; }; \
		rm -rf $(VENV); echo "making $(VENV) with $$python"; "$$python" -m venv $(VENV); }
endef

$(VENV)/.stamp-dev: pyproject.toml constraints.txt src/grb/_version.py
	$(make_venv)
	$(BIN)/python -m pip install -qq --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e ".[dev]"
	@touch $(VENV)/.stamp-dev $(VENV)/.stamp-run

$(VENV)/.stamp-run: pyproject.toml constraints.txt src/grb/_version.py
	$(make_venv)
	$(BIN)/python -m pip install -qq --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e .
	@touch $@
