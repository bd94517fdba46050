# The two commands a newcomer needs: `make demo` and `make test`. Everything else is for those who change the product.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /: /'

$(BIN)/rollout: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@

setup: $(BIN)/rollout ## a virtual environment with everything pinned

demo: setup ## private MySQL, live traffic, all six phases and back, in one go
	$(BIN)/rollout demo

test: setup ## the suite against a real MySQL (under ten minutes on two cores)
	$(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder -m 'not docker and not story'

test-stories: setup ## what takes minutes: faults, other servers, real applications, Prefect's own processes, a browser (needs Node and Chromium)
	$(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder -m 'story and not docker'

traffic: setup ## real Prisma applications through every phase and back, as one table (about five minutes; needs Node)
	$(BIN)/python -m tests.applications.traffic_table

test-docker: setup ## MySQL by testcontainers, and our own image with a rollout in it; needs Debian's docker.io, or any Docker engine
	sh deploy/mysql_server/dockerd.sh $(BIN)/python -m pytest -m docker tests/mysql_server tests/team

test-kill: setup ## kill -9 at every boundary, forward and back (about a quarter of an hour)
	ROLLOUT_FULL_MATRIX=1 $(BIN)/python -m pytest tests/faults/test_kill.py -n 2 --dist load

fuzz: setup ## a whole rollout with a hundred sets of hostile names and values (about a quarter of an hour)
	ROLLOUT_FUZZ_EXAMPLES=$${ROLLOUT_FUZZ_EXAMPLES:-100} $(BIN)/python -m pytest tests/fuzz -n 2 --dist load --timeout 3600

faults: setup ## every kind of fault at named and drawn points, forward and back, as one table (about an hour; goes on where it was ended)
	$(BIN)/python -m tests.faults.matrix --workers 2

bench-copies: setup ## widening a million rows under traffic: MySQL's own copy against the hand-over (about six minutes; QUICK=1: one)
	$(BIN)/python -m tests.bench.copies

# mysql-batch, the yardstick, asks for an older PyMySQL than ours; it works with ours, so its wishes are not followed.
bench: setup ## the backfill beside what people run by hand, as ratios from one run (QUICK=1: minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps mysql-batch
	$(BIN)/python -m tests.bench.backfill

coverage: setup ## how much of steps/ the suite runs
	$(BIN)/python -m pytest -n 2 --dist loadscope -m 'not docker' --cov=steps --cov-report=term

bench-locks: setup ## what our locks cost clients, beside other tools, and whole rollouts under load (a quarter of an hour; QUICK=1: minutes)
	timeout 2400 $(BIN)/python -m tests.bench.locks

bench-overhead: setup ## seconds of a nine-row rollout without Prefect and in each way with it (about ten minutes; QUICK=1: two)
	$(BIN)/python -m tests.bench.overhead

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy

.PHONY: help setup demo test test-stories traffic test-docker test-kill faults fuzz bench bench-copies bench-locks bench-overhead coverage lint
