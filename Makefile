# Two commands do everything: `make run` (the demo) and `make test` (all checks and tests).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt
# one thread in each of two processes: more threads than cores make small tensors many times slower
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile
# torch by its exact pin and before what needs it: the pin is the CPU build, a range may pull in gigabytes of CUDA
TORCH := $(shell grep -i '^torch==' constraints.txt)

.PHONY: run test check format lint types imports fast-tests tests system-programs golden figures docs clean

run: $(VENV)/.core
	$(BIN)/ptad demo

test: check docs tests

check: lint types imports fast-tests

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/deno fmt --check
	$(BIN)/deno lint

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/deno fmt

types: $(VENV)/.test
	$(BIN)/mypy

imports: $(VENV)/.test
	$(BIN)/lint-imports --no-cache

fast-tests: $(VENV)/.test system-programs
	$(PYTEST) -m "not slow"

tests: $(VENV)/.test system-programs
	$(PYTEST) -m slow

# Looks every time, which costs nothing: a stamp would outlive a program that was removed.
system-programs:
	sh tests/system_programs.sh

# Write the golden scores anew after a change that is meant to alter numbers.
golden: $(VENV)/.test
	$(BIN)/python tests/paper/golden_network.py
	$(BIN)/python tests/golden/regenerate.py

# The site, into build/docs; the examples are run. No network is needed.
docs: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/docs

# Write every figure of README and docs anew from benchmarks/results: tables and pictures.
figures: $(VENV)/.test
	$(BIN)/ptad benchmark pages
	$(BIN)/python docs/picture.py

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) setuptools wheel
	$(PIP) --no-build-isolation --editable .
	touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) "$(TORCH)"
	$(PIP) --no-build-isolation --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) build dist docs/generated src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
