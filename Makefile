# The verbs of this repository; `make help` lists them.
#
# Everything they need is installed into .venv from constraints.txt. A file in .venv marks what is
# installed, so that a verb run again goes straight to its work.

PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$candidate && break; done)
CONFIG ?= specs/hello/config.yaml
# For pytest: how many processes, and whatever else is wanted (`make test PYTEST="-k buffer"`).
PYTEST ?= -n 2

BIN := .venv/bin
PIN := constraints.txt
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python -c $(PIN) --build-constraints $(PIN)
ROOMS := compiler operators connectors web

# The script engine is built where a Rust toolchain is; nothing here may fetch one.
export MATURIN_NO_INSTALL_RUST := 1

.DEFAULT_GOAL := help
.PHONY: run test check docs bench clean help

run: .venv/.runs ## start the server on an example (CONFIG=path for another)
	@exec $(BIN)/headrace serve --config $(CONFIG)

test: .venv/.tests ## run the tests (PYTEST="..." for other arguments)
	$(BIN)/python -m pytest $(PYTEST)

check: .venv/.tests build/rooms ## format, lint, types, direction of imports, docs up to date
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	MYPYPATH=build/rooms $(BIN)/mypy $(ROOMS:%=-p headrace.%)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m headrace.web.docs --check

docs: .venv/.runs ## write the generated pages of docs/ again
	$(BIN)/python -m headrace.web.docs

bench: .venv/.tests ## measure, and hold the figures against a hand-written limit
	$(BIN)/python -m bench

clean: ## remove everything the other verbs made
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find $(ROOMS) tests specs bench -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

help: ## list the verbs
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14

$(BIN)/uv:
	@test -n "$(PYTHON)" || { echo "headrace needs Python 3.11 or newer; name one with PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(PIN) uv

# Editable, so that what runs is what is in the rooms.
.venv/.runs: pyproject.toml setup.py $(PIN) | $(BIN)/uv
	$(INSTALL) --editable .
	@touch $@

# vega-datasets for its readings alone: what it depends on (data frames) is not wanted.
.venv/.tests: .venv/.runs
	$(INSTALL) --editable '.[dev]'
	$(INSTALL) --no-deps vega-datasets
	@touch $@

# A type checker cannot follow an editable install: it gets the rooms under their import name.
build/rooms:
	mkdir -p $@/headrace
	ln -sfn $(ROOMS:%=../../../%) $@/headrace/
