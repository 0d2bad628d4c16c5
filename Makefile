# Everything a developer runs. `make serve` and `make test` need only Python 3.11+ and make.

VENV := .venv
BIN := $(VENV)/bin
# As root, prefer an interpreter other accounts can read: servers and API run as an unprivileged one.
PYTHON ?= $(shell sh scripts/find-python)
# Processes are started by the hundred here: compile their modules once, whatever the shell says about it.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

BASE ?= debian:bookworm-slim
IMAGES ?= platform terminal jupyterlab

.DEFAULT_GOAL := help
.PHONY: help serve test check format bench soak docker-test cluster cluster-down cluster-test images manifests screenshots model lock states policy schema architecture clean

help: ## List what can be run
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: $(VENV)/installed ## Run the platform on this machine; prints a login link
	@$(BIN)/codehub serve

test: $(VENV)/installed-dev ## Run the tests, in parallel, on real servers
	$(BIN)/python -m pytest -n auto --dist loadscope -m "not soak and not docker and not cluster" $(ARGS)

check: $(VENV)/installed-dev ## Linters, formatting, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/installed-dev ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-dev ## Run the benchmarks
	$(BIN)/python -m bench $(ARGS)

soak: $(VENV)/installed-dev ## Run the long campaigns (crashes, fifty times)
	$(BIN)/python -m pytest -m soak --durations=10 $(ARGS)

docker-test: $(VENV)/installed-dev ## Run what needs a Docker engine, on one of its own (root; docker.io and debootstrap)
	$(BIN)/python -m pytest -m docker --durations=10 $(ARGS)

cluster: $(VENV)/installed-dev ## Start a real Kubernetes cluster of three nodes on this machine (root, Debian, Go; docs/cluster.md)
	@$(BIN)/python -m cluster up

cluster-down: $(VENV)/installed-dev ## End it and remove all that is left of it
	@$(BIN)/python -m cluster down

cluster-test: $(VENV)/installed-dev ## Run what needs that cluster; starts it, and leaves it running
	$(BIN)/python -m pytest -m cluster --durations=10 $(ARGS)

manifests: ## Render the Helm chart into deploy/manifests/codehub.yaml, for clusters without Helm (needs Go, once)
	@scripts/render-manifests > deploy/manifests/codehub.yaml

images: ## Build the images for Docker and Kubernetes: platform, terminal, jupyterlab (BASE=…, IMAGES=…)
	@for image in $(IMAGES); do \
		docker build --build-arg BASE=$(BASE) --target $$image -t codehub/$$image . || exit 1; \
	done

screenshots: $(VENV)/installed-dev ## Take every page of a platform that runs, and write docs/tour.md from it (needs Chromium)
	$(BIN)/python -m gallery $(ARGS)

model: $(VENV)/installed-dev ## Explore every state of a workspace's life and of a waiting room, with faults (docs/model.md)
	$(BIN)/python -m model $(ARGS)

lock: $(VENV)/installed-dev ## Resolve the dependencies anew into the two lock files
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--no-emit-find-links --upgrade --extra build pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--no-emit-find-links -c requirements.lock --extra build --extra dev pyproject.toml -o requirements-dev.lock

states: $(VENV)/installed ## Draw docs/states.md from the rules
	$(BIN)/python scripts/draw-states

policy: $(VENV)/installed ## Draw docs/policy.md, who may do what, from its table
	$(BIN)/python scripts/draw-policy

schema: $(VENV)/installed ## Write docs/blueprint.schema.json, what a learning session is made of
	$(BIN)/python scripts/draw-schema

architecture: $(VENV)/installed ## Draw the layers and the four ways into docs/architecture.md
	$(BIN)/python scripts/draw-architecture

clean: ## Remove the environment and caches; data directories stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

# Set-up is done once, and again only when the locked requirements changed.
$(VENV)/installed: requirements.lock pyproject.toml
	@echo "Setting up (once; takes a minute) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --no-deps --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-dev: requirements-dev.lock $(VENV)/installed
	@$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	@touch $@
