# `make help` says what there is. Everything is installed into .venv; engines and records go to the user's data folder.

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
ENGINES := torch tensorflow jax
# Not needed by `make quick`. The originals are skipped, visibly, where there is no CPython 3.6 or no C++ compiler.
MORE_ENGINES := sklearn originals
WORKERS := 2
REPORT := timetrial-report/quick.html
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input

# The first interpreter that is new enough and runs; PYTHON=… chooses another.
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3.11 python3.12 python3.13 python3.14 python3 python)
FOUND = $(shell for p in $(CANDIDATES); do "$$p" -c "$(NEW_ENOUGH)" >/dev/null 2>&1 && { echo "$$p"; break; }; done)

export PIP_ROOT_USER_ACTION := ignore
unexport PYTHONHOME PYTHONPATH

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help quick test lint unit engines today clean

help:  ## Say what there is
	@grep -hE '^[a-z]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z]+):.*## */  make \1\t/' | expand -t 16

quick: $(STAMPS)/run today  ## Install, add the engines, measure them once and write the report
	@echo "==> Measuring; the report goes to $(REPORT)"
	@mkdir -p $(dir $(REPORT))
	@$(BIN)/timetrial quick --report $(REPORT) </dev/null

test: lint engines  ## Install, add the engines, and run every check
	@echo "==> Tests, all of them"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile </dev/null

lint: $(STAMPS)/test  ## Style, types and the order of the packages
	@echo "==> ruff check"
	@$(BIN)/ruff check .
	@echo "==> ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "==> mypy"
	@$(BIN)/mypy
	@echo "==> lint-imports"
	@$(BIN)/lint-imports --no-logo

unit: $(STAMPS)/test  ## The fast tests only: no engines
	@echo "==> Tests, the fast ones"
	@$(BIN)/python -m pytest -m "not engines and not slow and not faults" </dev/null

# Asked each time, because engines live outside .venv: those that are there are skipped.
engines: today  ## Add the engines that are missing, as far as this machine can have them
	@echo "==> Engines: $(MORE_ENGINES)"
	@$(BIN)/timetrial engines add --if-possible $(MORE_ENGINES) </dev/null

today: $(STAMPS)/run
	@echo "==> Engines: $(ENGINES)"
	@$(BIN)/timetrial engines add $(ENGINES) </dev/null

clean:  ## Remove .venv and caches; engines, records and reports stay
	@echo "==> Removing $(VENV), caches and built files"
	@rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@test -n "$(FOUND)" || { \
	  echo "Timetrial needs Python 3.11 or newer with venv and pip; none of these is: $(CANDIDATES)." >&2; \
	  echo "Install one (Debian: python3 and python3-venv), or name it: make PYTHON=/path/to/python3" >&2; \
	  exit 1; }
	@echo "==> Making $(VENV) with $(FOUND) ($$($(FOUND) --version))"
	@rm -rf $(VENV)
	@$(FOUND) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/pins: requirements/run.txt $(STAMPS)/venv
	@echo "==> Installing what Timetrial needs (requirements/run.txt)"
	@$(PIP) install -r requirements/run.txt
	@touch $@

$(STAMPS)/run: pyproject.toml $(STAMPS)/pins
	@echo "==> Installing Timetrial, editable"
	@$(PIP) install --no-deps --editable .
	@touch $@

$(STAMPS)/test: requirements/test.txt $(STAMPS)/run
	@echo "==> Installing what the checks need (requirements/test.txt)"
	@$(PIP) install -r requirements/test.txt
	@touch $@
