# Everything here needs Python 3.11+, Java 17+ and make. `make` alone lists the targets.

PYTHON ?= python3
DAYS ?= 14
WORKERS ?= auto
SEED ?=
WHOLE ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
UNFINISHED := $(VENV)/.setup-unfinished

# Where containers set it, every process would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup lock demo demo-kafka demo-lake up down status check test test-all mutants tier matrix kafka s3 delta readers hdfs yarn lint docs wheel bench bench-rivals clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv from requirements.txt

# A set-up that was cut short starts again from an empty .venv; otherwise uv only changes what differs.
$(STAMP): requirements.txt pyproject.toml
	@command -v $(PYTHON) > /dev/null \
	  || { echo "Python 3.11 or newer is needed, found none by the name $(PYTHON): set PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("Python 3.11 or newer is needed, found %d.%d at %s: set PYTHON=/path/to/python3" % (v[0], v[1], sys.executable))'
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null \
	  || { echo "Python's venv module is needed, $(PYTHON) lacks it: install python3-venv"; exit 1; }
	@$(PYTHON) -m stack.java > /dev/null
	@if [ -e $(UNFINISHED) ] || ! $(BIN)/python -c '' 2> /dev/null; then rm -rf $(VENV); fi
	@if ! $(BIN)/python -m pip --version > /dev/null 2>&1; then $(PYTHON) -m venv $(VENV); fi
	@touch $(UNFINISHED)
	@echo "installing requirements.txt into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(sed -n 's/^\(uv==[^ ;]*\).*/\1/p' requirements.txt)"
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --requirements requirements.txt
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@rm -f $(UNFINISHED) && touch $(STAMP)

lock: $(STAMP) ## renew requirements.txt from requirements.in
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-header \
	  requirements.in --output-file requirements.txt
	@{ echo '# The full lock of requirements.in, for every platform and Python >= 3.11; made by `make lock`. Do not edit.'; \
	  cat requirements.txt; } > requirements.new && mv requirements.new requirements.txt

demo: setup ## run a real backfill of the flights DAG from nothing, restate a day of it, and reconcile all (DAYS=14)
	@$(BIN)/python -m stack demo --days $(DAYS)

demo-kafka: kafka ## sum real flights by hour from Kafka to Kafka and a table while they come in, and compare (DAYS=14)
	@$(BIN)/python -m stack demo-kafka --days $(DAYS)

demo-lake: s3 ## move real flights into Delta and Iceberg tables on S3 and Postgres, kill two runs, and compare (DAYS=14)
	@$(BIN)/python -m stack demo-lake --days $(DAYS)

up: setup ## start PostgreSQL, Spark Connect and Airflow, and print where they are
	@$(BIN)/python -m stack up

down: ## stop what `make up` started
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m stack down; fi

status: setup ## show what runs
	@$(BIN)/python -m stack status

check: ## lint, types, import contracts, quick tests: after every edit
	@$(MAKE) --no-print-directory tier TIER=check

test: ## the same, and every kind of test: before a change lands (SEED=… samples sweeps otherwise)
	@$(MAKE) --no-print-directory tier TIER=test

test-all: ## every test; WHOLE=1 runs sweeps whole, for nights and releases
	@$(MAKE) --no-print-directory tier TIER=all

mutants: setup ## plant 120 small bugs in the library and count those that `make test` finds; half an hour
	@$(BIN)/python -m tests.mutants cover
	@$(BIN)/python -m tests.mutants run

tier: lint
	@$(BIN)/python -m tests.budget $(TIER) $(BIN)/pytest --tier $(TIER) $(if $(SEED),--seed $(SEED)) $(if $(WHOLE),--whole) --numprocesses $(WORKERS) --no-loadscope-reorder

kafka: setup ## fetch an Apache Kafka broker for the tests, and Spark's connector for it
	@$(BIN)/python -m stack.kafka

s3: setup ## fetch what lets Spark reach an S3 server, for the tests
	@$(BIN)/python -m stack.s3

readers: setup ## fetch polars and DuckDB, by which the tests read Delta and Iceberg tables
	@$(BIN)/python -m stack.outside_readers

delta: setup ## fetch Delta's connector for Spark, by which the tests read Delta tables
	@$(BIN)/python -m stack.delta

hdfs: setup ## fetch an HDFS of one node for the tests
	@$(BIN)/python -m stack.hdfs

yarn: setup ## fetch a YARN of one node for the tests
	@$(BIN)/python -m stack.yarn

matrix: setup ## run tests with other Airflows, Sparks, Pythons, PostgreSQLs, and write docs/versions.md (NAMES="airflow-3.1 …")
	@$(BIN)/python -m tests.matrix $(NAMES)

lint: setup ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

docs: setup ## build the documentation's site into build/site; a link that leads nowhere fails
	@$(BIN)/typer lockstep.cli utils docs --name lockstep --title "Command line" --output docs/reference/cli.md
	@$(BIN)/zensical build --clean --strict

wheel: setup ## build the package into dist/, as wheel and as source
	@$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist .

bench: setup ## every benchmark, and each aim beside what was reached; the last release's figures beside it
	@$(BIN)/python -m benchmarks

bench-rivals: setup ## Flink, Structured Streaming, Spark JDBC and dlt on the same work; then their rows under faults (JDK, Maven)
	@$(BIN)/python -m benchmarks.rivals speed
	@$(BIN)/python -m benchmarks.windows --flink
	@$(BIN)/python -m benchmarks.rivals faults

clean: down ## stop the stack, delete its data and .venv
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m stack clean; fi
	@rm -rf $(VENV) .lockstep dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
