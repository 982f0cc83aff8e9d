# One task runner, one meaning: CI calls exactly these.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CLIENTS ?= $(VENV)-clients
MODELS := models
WORKERS ?= 2

.PHONY: help serve serve-real test test-gateway test-clients test-long check fix bench docs schema kit clean

help:
	@echo "make serve         install and serve the mock engine on http://127.0.0.1:8080"
	@echo "make serve-real    the same, with SmolLM2-135M-Instruct answering for real (installs torch)"
	@echo "make test          everything that CI runs: lint, types, layers, tests, one real model"
	@echo "make test-gateway  the part that needs no torch"
	@echo "make test-clients  clients of PyPI and npm, and two agents, against a live server"
	@echo "make test-long     the same laws with many more examples, long fuzzing and soaks"
	@echo "make check | fix   lint, types and layers alone | repair what a tool can repair"
	@echo "make bench         the benchmarks"
	@echo "make kit           the conformance kits against their broken plugins"
	@echo "make docs          write the tables of the documents that are drawn from code anew"
	@echo "make schema        write docs/token_interface.schema.json anew"
	@echo "make clean         remove the environment and everything built"
	@echo "Another port: TOKENWIRE_SERVER_PORT=8081 make serve"

# --- environments: each stamp is made anew when pyproject.toml changes ---------------------------

$(VENV)/base: pyproject.toml setup.py
	@echo "installing into $(VENV): a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/dev: $(VENV)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# Why torch first and apart: an index that has a build for CPUs alone can be named with TORCH.
$(VENV)/torch: $(VENV)/base
	@echo "installing torch: minutes, and gigabytes where the build is for GPUs"
	$(BIN)/python -m pip install --disable-pip-version-check $(TORCH)
	touch $@

$(VENV)/engine: $(VENV)/torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(ENGINE)]'
	touch $@

# What tests of engines need: transformers to compare with, triton to compile kernels.
$(VENV)/reference: $(VENV)/torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[reference,cuda]'
	touch $@

TORCH ?= torch==2.13.0
# cuda, where there is a GPU: it adds triton.
ENGINE ?= cpu

$(MODELS)/smollm2/tokenizer.json: | $(VENV)/base
	$(BIN)/tokenwire fetch smollm2 --into $(MODELS)

$(MODELS)/minilm/model.safetensors: | $(VENV)/base
	$(BIN)/tokenwire fetch minilm --into $(MODELS)

# The clients have an environment of their own: what they ask of each other is not ours to settle.
$(CLIENTS)/python: tests/clients/requirements.txt
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r $<
	touch $@

# Why no scripts: nothing that is installed here needs one, and none then runs.
NPM_CI := npm ci --ignore-scripts --no-audit --no-fund --silent
NODE_MODULES := tests/clients/node/node_modules
$(NODE_MODULES)/installed: tests/clients/node/package-lock.json | $(CLIENTS)/python
	cd $(<D) && PATH="$(abspath $(CLIENTS))/bin:$$PATH" $(NPM_CI)
	touch $@

# --- serving -------------------------------------------------------------------------------------

serve: $(VENV)/base $(MODELS)/smollm2/tokenizer.json
	$(BIN)/tokenwire serve

serve-real: $(VENV)/engine $(MODELS)/smollm2/tokenizer.json
	$(BIN)/tokenwire serve --config deploy/smollm2-real.yaml

# --- proving -------------------------------------------------------------------------------------

check: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-cache

fix: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Why whole files: what is made for all tests of a file, such as a server, is then made once.
SPREAD := -n $(WORKERS) --dist loadfile

test-gateway: check $(MODELS)/smollm2/tokenizer.json
	$(BIN)/python -m pytest $(SPREAD) -m "not torch and not long and not clients"

test-clients: $(VENV)/dev $(CLIENTS)/python $(NODE_MODULES)/installed
	TOKENWIRE_CLIENTS=$(abspath $(CLIENTS)) $(BIN)/python -m pytest -m clients tests/clients

test: test-gateway test-clients $(VENV)/reference $(MODELS)/minilm/model.safetensors
	$(BIN)/python -m pytest $(SPREAD) -m "torch and not long"
	$(BIN)/python -m pip install --quiet --dry-run -e '.[all]'

test-long: $(VENV)/dev $(VENV)/reference $(MODELS)/smollm2/tokenizer.json
	$(BIN)/python -m pytest $(SPREAD) --hypothesis-profile=long -m "long or not (torch or clients)"

kit: $(VENV)/dev
	$(BIN)/python -m pytest tests/kits

bench: $(VENV)/dev $(VENV)/reference $(MODELS)/smollm2/tokenizer.json
	$(BIN)/python benchmarks/per_token.py
	$(BIN)/python benchmarks/codec.py
	$(BIN)/python benchmarks/next_turn.py
	$(BIN)/python benchmarks/gateway.py
	$(BIN)/python benchmarks/loop_lag.py
	$(BIN)/python benchmarks/engine.py

docs: $(VENV)/base
	$(BIN)/python docs/tables.py

schema: $(VENV)/base
	$(BIN)/python -m tokenwire.core.token_schema > docs/token_interface.schema.json

clean:
	rm -rf $(VENV) $(CLIENTS) $(NODE_MODULES) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
