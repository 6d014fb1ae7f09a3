# The project's commands. `make` alone lists them.

PYTHON ?= python3
PORT ?= 3000
WHAT ?= claims
MINUTES ?= 10
SEED ?= 12
BIN := .venv/bin
INSTALLED := .venv/.installed

# Processes that may not write bytecode compile everything again at each start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast check chaos docs pictures bench dev clean constraints prerequisites

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## show the whole path of a chunk on this machine
	@$(BIN)/python -m examples.demo

test: check ## check, then run every test (about 30 minutes)
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-fast: check ## check, then run the unit and ledger tests (2 to 3 minutes)
	ODF_TEST_FAST=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" tests/unit tests/ledger

check: $(INSTALLED) ## lint, format, types and layers, without running anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

chaos: $(INSTALLED) ## work while processes, connections and Postgres are killed, then audit; MINUTES=120 SEED=7
	ODF_CHAOS_MINUTES=$(MINUTES) ODF_CHAOS_SEED=$(SEED) $(BIN)/python -m pytest tests/chaos -q -s

docs: $(INSTALLED) ## build the documentation into build/docs; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(INSTALLED) ## take the pictures of Dagster's UI and of the terminal in the documentation again
	ODF_SCREENSHOTS=1 $(BIN)/python -m pytest tests/system/test_browser.py -q

bench: $(INSTALLED) ## measure; WHAT="claims chunks tick stale scripts" (all: half an hour), ARGS=--quick
	@set -e; for what in $(WHAT); do echo "== bench/$$what.py"; $(BIN)/python bench/$$what.py $(ARGS); done

dev: $(INSTALLED) ## run Dagster over the embedded Postgres; PORT=3000
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec $(BIN)/odf dev --port "$(PORT)"

# Only the server of this folder: ODF_HOME and ODF_DATABASE_URL may name one that others use.
clean: ## stop the embedded Postgres and remove all that make and the tools made
	@if [ ! -d .odf ]; then :; \
	elif [ -x $(BIN)/odf ]; then ODF_DATABASE_URL= ODF_HOME="$(CURDIR)/.odf" $(BIN)/odf db stop; \
	elif [ -e .odf/postgres/postmaster.pid ]; then \
		echo "The embedded Postgres may still run, and .venv/bin/odf, which stops it, is not there: run \`make check\` first." >&2; \
		exit 1; \
	fi
	@rm -rf .venv .odf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist *.egg-info
	@find dagster_home -mindepth 1 ! -name dagster.yaml -delete
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

constraints: prerequisites ## pin anew every package that a fresh install brings
	@echo "Installing into a fresh environment to pin what comes (some minutes)"
	@set -e; fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$$(bin/prerequisites $(PYTHON)) -m venv "$$fresh/venv"; \
	"$$fresh/venv/bin/pip" install -qq -e '.[dev]'; \
	"$$fresh/venv/bin/pip" freeze --exclude-editable >"$$fresh/pins"; \
	{ head -n 1 constraints.txt; cat "$$fresh/pins"; } >"$$fresh/constraints.txt"; \
	cat "$$fresh/constraints.txt" >constraints.txt

prerequisites:
	@bin/prerequisites $(PYTHON) >/dev/null

$(INSTALLED): pyproject.toml constraints.txt | prerequisites
	@echo "Installing the pinned packages into .venv (the first time takes some minutes)"
	@test -x $(BIN)/python || $$(bin/prerequisites $(PYTHON)) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
