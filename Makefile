# The verbs of this repository; `make help` lists them.
#
# Everything they need is installed into .venv from constraints.txt. A file in .venv marks what is
# installed, so that a verb run again goes straight to its work.

PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$candidate && break; done)
CONFIG ?= specs/hello/config.yaml
# For pytest: how many processes (one more than two cores: some of the time each waits for a server), and
# whatever else is wanted (`make test PYTEST="-k buffer"`).
PYTEST ?= -n 3
# How often each test of kills kills its server, or its process with a store; where several run beside each
# other it is how often it kills one of them, at least.
KILLS ?= 10

BIN := .venv/bin
PIN := constraints.txt
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python -c $(PIN) --build-constraints $(PIN)
ROOMS := compiler operators connectors authoring web

# The script engine is on no index. Its wheel, which is compiled if the user's cache has none for
# these sources, is named in each install, so that no index is asked for one. Where it cannot be
# compiled for want of Rust the install goes on without it, leaves no older one there, and a mark;
# with the mark there, each verb looks whether it can be had by now.
ENGINE := $(wildcard rhai-python/*.*) $(shell find rhai-python/python rhai-python/src ! -name '*.pyc')
WITHOUT_ENGINE := .venv/.without-engine
INSTALL_HEADRACE := $(INSTALL) --no-sources-package rhai-python --editable
ifneq ($(wildcard $(WITHOUT_ENGINE)),)
ifeq ($(shell $(BIN)/python scripts/engine.py lacking),)
.PHONY: .venv/.runs
endif
endif
# A Rust toolchain is the user's to install: nothing here may fetch one.
export MATURIN_NO_INSTALL_RUST := 1

.DEFAULT_GOAL := help
.PHONY: run console format year test test-all kills services services-install check docs bench clean help

run: .venv/.runs ## start the server on an example (CONFIG=path for another)
	@$(BIN)/python scripts/console.py available
	@exec $(BIN)/headrace serve --config $(CONFIG) --data-dir data

console: .venv/.runs ## build the page that the server shows to browsers
	@$(BIN)/python scripts/console.py build

year: .venv/.readings ## post a year of readings to specs/weather (SERVER=http://... for another address)
	@exec $(BIN)/python -m specs.weather.post $(SERVER)

# Whoever keeps Python from writing bytecode would compile all of it for each of the hundreds of
# processes that the tests start, and measure that.
RUN := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/build/bytecode $(BIN)/python -m
RUN_TESTS := $(RUN) pytest --durations=20
FEW_FAILED := $(BIN)/python scripts/fewfailed.py

# What is marked `timed` runs after the rest, in one process, whatever came of the rest: beside others, which
# use the same caches, the same work takes two and three times as long. Up to three tests of a half that fail
# are named and run again alone, where they have to pass. One half may have nothing that is wanted (5), not
# both. The arguments: options of both halves, of the first, and which tests.
define in_two_halves
trap 'exit 130' INT; \
half() { code=0; $(RUN_TESTS) --cache-clear $(1) "$$@" || code=$$?; \
if [ $$code = 1 ] && $(FEW_FAILED); then \
code=0; $(RUN_TESTS) --last-failed $(1) $(PYTEST) -n 0 || code=1; fi; }; \
half $(2) -m "$(3) and not timed" $(PYTEST); beside=$$code; \
half -m "timed and $(3)" $(PYTEST) -n 0; alone=$$code; \
case $$beside$$alone in 00|05|50) ;; *) exit 1;; esac
endef

test: .venv/.tests console ## run the tests but the long ones (15 to 30 minutes; PYTEST="..." for other arguments)
	$(call in_two_halves,-p no:schemathesis -p no:anyio,--dist loadgroup --no-loadscope-reorder,not long)

test-all: export KILLS := $(KILLS)
test-all: .venv/.tests console ## run the long tests, and the generated ones with all their examples (35 minutes)
	$(call in_two_halves,--hypothesis-profile=full,--dist worksteal,(long or hypothesis))

kills: KILLS = 50
kills: .venv/.tests ## run the tests that kill under load, and print counts (KILLS=100 for how often; 40 minutes)
	KILLS=$(KILLS) $(RUN_TESTS) $$(grep -rl --include='test_*.py' '"KILLS"' tests) --timeout 0 -rP $(PYTEST)

services: .venv/.tests ## start the servers of the tests on free ports, until Ctrl-C
	@exec $(BIN)/python -m tests.services

services-install: ## install the servers of the tests that no Python package brings along (Debian, as root)
	@bash scripts/services.sh

check: export MYPYPATH := build/rooms:rhai-python/python:scripts
check: .venv/.tests ## format, lint, types, direction of imports, docs up to date
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy $(ROOMS:%=-p headrace.%) -p rhai -m engine -m console
	$(BIN)/stubtest rhai
	PYTHONPATH=build/rooms $(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/engine.py lint
	$(BIN)/python scripts/console.py check
	$(BIN)/python -m headrace.web.docs --check

format: .venv/.tests ## format the code
	$(BIN)/ruff format
	$(BIN)/python scripts/console.py format

docs: .venv/.runs ## write the generated pages of docs/ again
	$(BIN)/python -m headrace.web.docs

bench: .venv/.tests ## measure against hand-written limits (AGAINST=commit for another commit, SCENARIOS="...")
	$(RUN) bench$(if $(AGAINST),.against $(AGAINST)) $(SCENARIOS)

clean: ## remove what the other verbs made here (compiled engines stay in the user's cache)
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf web/console/built web/console/page/node_modules
	rm -rf rhai-python/target rhai-python/Cargo.lock rhai-python/python/rhai/*.so uv.lock
	find $(ROOMS) rhai-python scripts tests specs bench -name __pycache__ -prune -exec rm -rf {} + \
		2>/dev/null || true

help: ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 23

$(BIN)/uv:
	@test -n "$(PYTHON)" || { echo "headrace needs Python 3.11 or newer; name one with PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(PIN) uv

# Editable, so that what runs is what is in the rooms. What changes while the engine is compiled is
# newer than the mark.
.venv/.runs: pyproject.toml setup.py $(PIN) scripts/engine.py $(ENGINE) | $(BIN)/uv build/rooms
	@touch $@.begun
	@wheel=$$($(BIN)/python scripts/engine.py available) && if [ -n "$$wheel" ]; then \
		rm -f $(WITHOUT_ENGINE) && $(INSTALL_HEADRACE) '.[script]' "$$wheel"; \
	else \
		touch $(WITHOUT_ENGINE) && $(BIN)/uv pip uninstall --quiet --python $(BIN)/python rhai-python \
		&& $(INSTALL_HEADRACE) .; \
	fi
	@mv $@.begun $@

# For who runs no tests; where they were run it is there.
.venv/.readings: $(PIN) | .venv/.runs
	$(INSTALL) --no-deps vega-datasets
	@touch $@

# vega-datasets for its readings alone, chdb-core-lite for ClickHouse's engine: what they depend on
# (data frames) is not wanted.
.venv/.tests: .venv/.runs
	$(INSTALL_HEADRACE) '.[dev]'
	$(INSTALL) --no-deps vega-datasets chdb-core-lite
	@touch $@

# Neither a type checker nor an editor can follow an editable install: they get the rooms under their
# import name (`tool.pyright` of pyproject.toml), and `check` the sources of the engine before what is
# installed of it.
build/rooms: $(ROOMS:%=build/rooms/headrace/%) build/rooms/headrace/__init__.py

build/rooms/headrace/__init__.py:
	@mkdir -p $(@D)
	ln -sfn ../../../package/__init__.py $@

build/rooms/headrace/%:
	@mkdir -p $(@D)
	ln -sfn ../../../$* $@
