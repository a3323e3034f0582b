# Two commands are all that a newcomer needs: `make study` and `make test`.
# Every target makes .venv and installs what it needs by itself.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: study browser test test-slow explore lint types layers unit nojit bench evidence release-check docs clean

study: .venv/run.stamp
	$(BIN)/labelsure study run embedded --out runs/embedded

test: lint types layers unit

lint: .venv/develop.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/develop.stamp
	$(BIN)/mypy

layers: .venv/develop.stamp
	$(BIN)/lint-imports

# The tests, on both cores. Examples in docstrings and on pages are tests/documentation.
unit: .venv/develop.stamp
	$(BIN)/pytest -n 2 -m "not slow" tests

# What `make test` leaves out: kills of runs and clusters, long statistical repeats, and the kernels
# as plain Python: that finds an index out of bounds, which few changes bring, and takes as long as
# all other tests of these rooms.
test-slow: nojit
	$(BIN)/pytest -n 2 -m slow tests

# Laws in random order over fresh random examples, for ten minutes. The seed is printed; SEED=... repeats a run.
explore: SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
explore: .venv/develop.stamp
	@echo "SEED=$(SEED)"
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest -n 2 -q -m "hypothesis and not slow" --hypothesis-seed=$(SEED) tests

# The kernels again as plain Python, where every index is checked.
nojit: .venv/develop.stamp
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 -q -m "not jit_only and not slow" tests/distributions tests/decisions tests/labelsets tests/metrics

# What tests of pages need beside Python's packages: a browser, and rules that its pages must keep.
# Without them these tests are skipped. As root on Debian; elsewhere install Chromium by other means.
browser: .venv/bin/python
	command -v chromium || (apt-get update -qq && apt-get install -qq --yes chromium)
	npm install --silent --no-fund --no-audit --prefix .venv/node axe-core@4

bench: .venv/develop.stamp
	$(BIN)/python -m benchmarks

# Every CSV file and chart of docs/evidence and README's pictures, from the scripts in benchmarks that
# are older than the code. Takes hours, goes on where it stopped. LABELSURE_DATA names the folder of the ARFF files.
evidence: .venv/develop.stamp
	$(BIN)/python -m benchmarks.evidence make

# Files of docs/evidence that are older than the code behind them.
release-check: .venv/develop.stamp
	$(BIN)/python -m benchmarks.evidence check

docs: .venv/docs.stamp
	test -d .venv/node/node_modules/katex || npm install --silent --no-fund --no-audit --prefix .venv/node katex@0.16 || echo "No npm: formulas show as their source."
	$(BIN)/mkdocs build --strict

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable ".[study]"
	touch $@

.venv/develop.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable ".[test,bench,browser,distributed,models,study]"
	touch $@

.venv/docs.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable ".[docs,study]"
	touch $@

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
