.DEFAULT_GOAL := help
.PHONY: help up down test test-all frameworks oldest fuzz bench chaos soak lint format catalogue golden check clean

PYTHON ?= python3
VENV := .venv
SYSTEM := $(VENV)/system
INSTALLED := $(VENV)/installed
LIBRARY := api/clients/python
DECLARED := pyproject.toml $(LIBRARY)/pyproject.toml constraints.txt
EXTRAS := embedded,oauth,openai,otel,tokens
INSTALL := PIP_CONSTRAINT=constraints.txt $(VENV)/bin/pip install --quiet --disable-pip-version-check --editable $(LIBRARY) --editable
# One thread for each product of matrices: they are small, and waiting for the other threads took a tenth of the
# processor time of tests. Two more processes than cores: for half of their time tests wait for other processes.
PYTEST = OPENBLAS_NUM_THREADS=1 $(VENV)/bin/pytest --dist loadfile --no-loadscope-reorder --numprocesses $(shell $(VENV)/bin/python -c 'import os; print(min(5, os.cpu_count() + 2))')

# tests start hundreds of processes: compiled modules are kept, whatever the environment says
export PYTHONDONTWRITEBYTECODE :=

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/bin/pip:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Ebb needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 15) or print("Ebb is tested on Python 3.11 to 3.14. If a package cannot be installed on this newer one: rm -r $(VENV); make PYTHON=python3.14 …")'
	$(PYTHON) -m venv $(VENV)

$(SYSTEM): $(DECLARED) | $(VENV)/bin/pip
	@echo 'Installing into $(VENV), once: a minute or two on a quiet machine.'
	@$(INSTALL) '.[$(EXTRAS)]'
	touch $@

$(INSTALLED): $(DECLARED) | $(VENV)/bin/pip
	$(INSTALL) '.[$(EXTRAS),dev]'
	touch $(SYSTEM) $@

up: $(SYSTEM) ## start everything and stay: PostgreSQL, Redis, workers, beat, Flower
	$(VENV)/bin/ebb up

down: $(SYSTEM) ## stop what a detached `ebb up` left running
	$(VENV)/bin/ebb down

test: $(INSTALLED) ## prove every behaviour that needs no outage once, on servers of their own, in about eight minutes on two cores
	$(PYTEST)

test-slow: $(INSTALLED) ## run what takes longer: outages, kills, several hosts, every page in a browser; seven minutes
	$(PYTEST) -m 'slow and not deep'

test-all: $(INSTALLED) frameworks ## run every test with all its examples, the deep ones and those of the extras too
	$(INSTALL) '.[onnx]'
	DEEP=1 $(PYTEST) -m '' --timeout 1800
	EBB_TEST_PGBOUNCER=1 $(PYTEST) -m acceptance

frameworks: $(INSTALLED) ## try the adapter of each framework with its newest release, each in a folder of its own
	$(VENV)/bin/python -m tests.run_frameworks

oldest: $(INSTALLED) ## run the tests with the oldest versions of all packages that Ebb allows; OLDEST=tests/unit for some
	$(VENV)/bin/python -m tests.run_oldest $(OLDEST)

fuzz: $(INSTALLED) ## try FUZZ (20) times as many examples as test-all does, other ones in each run
	FUZZ=$(or $(FUZZ),20) $(VENV)/bin/pytest -m 'not deep' --timeout 7200 $(shell grep -rl made_up tests --include='test_*.py')

bench: $(INSTALLED) ## measure everything against its target, at a million facts; BENCH=--quick at 20,000
	$(INSTALL) '.[bench]'
	$(VENV)/bin/python -m tests.benchmarks $(BENCH)

chaos: $(INSTALLED) ## try to break everything for some 20 minutes, and look at every row; CHAOS=--quick for a few minutes
	$(VENV)/bin/python -m tests.chaos $(CHAOS)

soak: $(INSTALLED) ## half an hour of mixed load in which nothing may grow; SOAK="--minutes 5" for less
	$(INSTALL) '.[bench]'
	$(VENV)/bin/python -m tests.soak $(SOAK)

lint: $(INSTALLED) ## ruff, mypy, the rules of imports, words that do not come back, the image and compose.yaml
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/python tests/words.py
	$(VENV)/bin/hadolint api/deploy/Dockerfile
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml

format: $(INSTALLED) ## put the code into the house's form
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

catalogue: $(INSTALLED) ## after a change of schema.sql: write the catalogue that databases are compared with
	$(VENV)/bin/python -m tests.write_catalogue

golden: $(INSTALLED) ## after an intended change of what callers see: write tests/golden again
	$(VENV)/bin/python -m tests.write_methods
	WRITE_GOLDEN=1 $(VENV)/bin/pytest tests/acceptance/test_golden.py

check: lint test test-slow ## what must pass before a change goes in

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .frameworks .oldest .pytest_cache .mypy_cache .ruff_cache .hypothesis
