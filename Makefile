# `make demo` shows everything; `make check`, `make test` and `make soak` test it (docs/testing.md). One environment serves all.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# real images for the tests that want them; those tests are skipped where there are none
OODSCOPE_DATA ?= $(wildcard ../shared/data)
export OODSCOPE_DATA

.PHONY: demo check check-tests test test-tests soak lint lock sbom lowest release-check catalog docs clean

demo: $(VENV)/.installed
	$(BIN)/oodscope demo

# a process per core with one thread each: many tests wait, and threads of two processes would wait for each other
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4

# before a commit: the types are checked while the tests run, which leaves no core idle
check: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory --jobs=2 lint check-tests

check-tests: $(VENV)/.installed-dev
	OODSCOPE_TEST_TIER=check $(PYTEST) -m 'not slow and not browser and not soak'

# what continuous integration runs
test: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory --jobs=2 lint test-tests

test-tests: $(VENV)/.installed-dev
	OODSCOPE_TEST_TIER=test $(PYTEST) -m 'not soak'

# before a release, without a limit of time; the log is docs/results/soak.md
soak: lint
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# versions and digests of everything that may be installed, for every platform and Python, without addresses
lock: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --constraint constraints.txt \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" \
		--quiet --output-file requirements.lock

# the parts list of a release (CycloneDX); part of the release check, as is `make lowest`
sbom: $(VENV)/.installed-dev
	$(BIN)/python tools/sbom.py

# the quick tests with the oldest versions that pyproject.toml allows, in an environment of their own
lowest: $(VENV)/.installed-dev
	$(BIN)/python tools/lowest.py

# builds equal to the byte, a description without dead links, extras that resolve; --python adds the demo from the wheel
release-check: $(VENV)/.installed-dev
	$(BIN)/python tools/release.py

catalog: $(VENV)/.installed
	$(BIN)/python -m oodscope.cli.catalog
	$(BIN)/python -m oodscope.cli.figures_page docs/figures.md

# the documentation site, with tutorials that run; OODSCOPE_DOCS_RUN=0 shows them without running them
docs: $(VENV)/.installed-docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .venv-lowest runs .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
