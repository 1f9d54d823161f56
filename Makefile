# Two commands set everything up on a fresh machine: `make up` and `make test`.
PYTHON ?= python3
VENV := .venv
TEST_PROCESSES ?= auto
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
BENCHES := $(subst _,-,$(patsubst tests/bench/bench_%.py,%,$(wildcard tests/bench/bench_*.py)))

.DEFAULT_GOAL := help
.PHONY: help setup assets up test lint types layers pytest test-device demo-shots clean $(addprefix bench-,$(BENCHES))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-zA-Z_-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '  %-14s %s\n' $(foreach name,$(BENCHES),bench-$(name) 'measure $(name) and compare with its goal')

up: setup ## set up what is missing, start everything, queue the demo on the first start
	@exec $(BIN)/python -m workers.up

setup: $(VENV)/.installed assets ## install what is missing (quick when nothing changed)

assets: static/vendor/speedscope/VERSION ## fetch the flame graph viewer by the lock file

test: $(VENV)/.installed-dev assets lint types layers pytest ## lint, types, layers and the whole test suite

lint: $(VENV)/.installed-dev ## style of code and templates
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/djlint --quiet --lint templates

types: $(VENV)/.installed-dev ## static types
	@$(BIN)/mypy

layers: $(VENV)/.installed-dev ## import layers
	@$(BIN)/lint-imports

pytest: $(VENV)/.installed-dev assets ## the test suite alone
	@$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist worksteal
	@$(BIN)/python -m pytest -m e2e tests/e2e

test-device: $(VENV)/.installed-dev ## tests that need an accelerator
	@$(BIN)/python -m pytest -m device -p no:django tests/profiler

$(addprefix bench-,$(BENCHES)): bench-%: $(VENV)/.installed-dev
	@$(BIN)/python tests/bench/bench_$(subst -,_,$*).py

demo-shots: $(VENV)/.installed-dev assets ## the README's picture from the demo data
	@$(BIN)/python -m tests.e2e.shots

clean: ## remove what `make` made, but not var/
	rm -rf $(VENV) static/vendor build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Daybreak needs Python 3.11 or newer, this is %s. Name another: make PYTHON=python3.11" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing the dependencies (a few minutes the first time) ..."
	@$(PIP) --editable '.[worker]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt $(VENV)/.installed
	@echo "Installing the tools of the test suite ..."
	@$(PIP) --editable '.[worker,postgres,s3,dev]'
	@touch $@

static/vendor/speedscope/VERSION: package.json package-lock.json | $(VENV)/.installed
	@command -v npm >/dev/null || $(PIP) --editable '.[assets]'
	@$(BIN)/python manage.py fetch_assets
