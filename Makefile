# `make help` lists the targets. Each one sets up its own virtual environment: all it needs is Python 3.11 or newer.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& command -v $$python && break; done)
PYTEST_ARGS ?=
BENCH_ARGS ?=
SECONDS ?= 60
CODE := src tests proto bench docs

.DEFAULT_GOAL := help
.PHONY: help demo test lint format proto docs bench measure fuzz native check lock clean

help:  ## Show this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1	/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(READY)  ## Watch requests being routed; ONCE=1 stops after the table
	@$(BIN)/kinference demo $(if $(ONCE),--once)

test: $(READY)  ## Run every test; PYTEST_ARGS are passed on
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(READY)  ## Check format, style, types, levels, protos, spelling and generated code
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/buf lint proto
	@$(BIN)/codespell
	@$(BIN)/python -m pytest -q tests/arch/test_proto_is_current.py

format: $(READY)  ## Format the code and apply the safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

proto: $(READY)  ## Generate the messages of the two contracts
	@$(BIN)/python proto/generate.py src/kinference/wire/proto

docs: $(READY)  ## Generate the reference pages
	@$(BIN)/python docs/generate.py

bench: $(READY)  ## Compare with the rivals, each in an environment of its own; BENCH_ARGS=--quick for six minutes
	@bench/comparison/install.sh .bench
	@$(BIN)/python bench/comparison/run.py --rivals .bench $(BENCH_ARGS)

measure: $(READY) native  ## Run every other measurement
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

fuzz: $(READY)  ## Fuzz each parser for SECONDS (60), guided by coverage
	@for target in $$(ls tests/fuzz/corpus); do \
		echo "== $$target"; $(BIN)/python tests/fuzz/run.py $$target --seconds $(SECONDS) || exit 1; done

native: $(READY)  ## Compile into a wheel in dist/, and install that into an environment of its own, .native
	@rm -rf .native dist/kinference-*-cp3*.whl
	@HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/python -m hatchling build -t wheel
	@$(BIN)/python -m venv --without-pip .native
	@$(BIN)/python -m pip --python .native install --quiet --disable-pip-version-check --no-deps dist/kinference-*-cp3*.whl
	@echo $(abspath $(VENV))/lib/python3*/site-packages >$$(echo .native/lib/python3*/site-packages)/dependencies.pth
	@.native/bin/kinference --version

check: lint test  ## What CI runs

lock: $(READY)  ## Resolve the dependencies anew into requirements.lock
	@$(BIN)/pip-compile --quiet --all-extras --allow-unsafe --generate-hashes --strip-extras \
		--no-emit-find-links --no-emit-index-url --no-emit-trusted-host \
		--output-file=requirements.lock pyproject.toml

clean:  ## Remove the virtual environment and everything that tools left behind
	@rm -rf $(VENV) .native dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests proto bench docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "kinference needs Python 3.11 or newer with its venv module" >&2; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON) (a minute or two, only when dependencies have changed)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --editable .
	@touch $@
