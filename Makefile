# Every target brings its own environment (.venv, from requirements.lock) through tools/bootstrap.py; the demo needs only
# a part of it (requirements-demo.lock).
PYTHON ?= python3
BIN := .venv/bin

# The tests start a thousand Pythons; without bytecode files each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-real test-debian check walks bench bench-scale soak lock clean bootstrap bootstrap-demo

help: ## show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: bootstrap-demo ## watch an agent ask, decide in the browser, undo and verify (DEMO="--auto", DEMO="--terminal")
	@$(BIN)/toolgate demo $(DEMO)

test: check ## everything that must hold before a commit: check, tests, coverage
	@$(PYTHON) tools/components.py
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 4 --dist worksteal
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage json --quiet
	$(BIN)/python tools/check_coverage.py coverage.json $$($(PYTHON) tools/components.py --missing)

test-real: bootstrap ## what needs environments of its own: installs of the wheel, pages as printed (a missing program fails)
	@$(PYTHON) tools/components.py
	CI=true $(BIN)/pytest -n 2 -m real --timeout 1800

test-debian: ## the demo on a bare Debian 12 and 13, as root and not, with and without bubblewrap (root; DEBIAN="--job demo test")
	@$(PYTHON) tools/bare_debian.py $(DEBIAN)

check: bootstrap ## lint, format, types, import law, file sizes and names
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_files.py
	$(BIN)/python tools/check_console.py

walks: bootstrap ## count what four calls go through: files, judgements, commits, store reads
	@$(BIN)/python -m tests.walks

bench: bootstrap ## measure speed
	$(BIN)/python benchmarks/run.py

bench-scale: bootstrap ## measure how cost grows with stores, servers, workers, approvals and events (SCALE="--quick")
	@$(PYTHON) tools/components.py
	$(BIN)/python -m benchmarks.scale.suite $(SCALE)

soak: bootstrap ## the long campaigns, with many more generated examples (SOAK=10: ten times as long)
	@$(PYTHON) tools/components.py
	SOAK=$(or $(SOAK),1) HYPOTHESIS_PROFILE=soak $(BIN)/pytest -v -n 2 -m soak --timeout 36000

COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-config --system-certs --custom-compile-command "make lock" --quiet

lock: bootstrap ## write requirements.lock and requirements-demo.lock anew (UPGRADE=1 takes newer versions)
	$(COMPILE) --all-extras --group dev $(if $(UPGRADE),--upgrade) --output-file requirements.lock
	$(COMPILE) --extra server --group build --constraints requirements.lock --output-file requirements-demo.lock

clean: ## remove the environment, caches and measurements
	rm -rf .venv build dist htmlcov coverage.json .coverage .coverage.* \
	  .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests tools benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

bootstrap:
	@$(PYTHON) tools/bootstrap.py

bootstrap-demo:
	@$(PYTHON) tools/bootstrap.py demo
