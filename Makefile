# Two commands do everything: `make demo` and `make test`. One environment serves both.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# real images for the tests that want them; those tests are skipped where there are none
OODSCOPE_DATA ?= $(wildcard ../shared/data)
export OODSCOPE_DATA

.PHONY: demo test lint catalog clean

demo: $(VENV)/.installed
	$(BIN)/oodscope demo

# a process per core with one thread each: many tests wait, and threads of two processes would wait for each other
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

catalog: $(VENV)/.installed
	$(BIN)/python -m oodscope.cli.catalog
	$(BIN)/python -m oodscope.cli.figures_page docs/figures.md

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
