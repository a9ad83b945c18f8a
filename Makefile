# Everything runs in .venv, which the first target makes. Another interpreter: make PYTHON=python3.12 venv

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made
TYPES := build/types
JOBS ?= 2

.PHONY: venv demo test lint types bench clean

venv: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "irad needs Python 3.10 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[plot,progress,test,dev]'
	touch $(STAMP)

demo: venv
	$(BIN)/python examples/diffusion3d.py

test: venv
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy does not follow the mapping of passes/ to irad.passes: it is shown a tree of links that has it.
types: venv
	rm -rf $(TYPES) && mkdir -p $(TYPES)/irad
	ln -s $(CURDIR)/irad/* $(TYPES)/irad/ && ln -s $(CURDIR)/passes $(TYPES)/irad/passes
	cd $(TYPES) && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p irad

bench: venv
	$(BIN)/python benchmarks/bench_kernels.py
	$(BIN)/python benchmarks/bench_fused.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
