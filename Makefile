# make demo   see it in the browser          make test    everything that is tested
# make help   the rest
#
# Each target makes .venv and installs what it needs by itself; Python 3.11 or newer is all it asks
# for. PYTHON=/path/to/python3 picks one, ARGS="…" is handed on to what the target runs.

PYTHON = python3
VENV = .venv/bin
NPM = $(or $(shell command -v npm),$(error arp: needs Node.js 20.19 or newer with npm; Debian: apt-get install nodejs npm))
BOOTSTRAP = $(PYTHON) tools/bootstrap.py
PYTEST = $(VENV)/python -m pytest
BENCH = stream paced fanout patch idle start ledger terminal

.PHONY: help demo test install fix check lint types gen fixtures bench web web-test web-e2e web-fresh bench-web browser pictures kill-test soak lowest coverage walk

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -e 's/:.*##/	/' | expand -t 14

demo:  ## the data explorer, at the address it prints (PORT=8080, ARGS="--ledger …")
	@$(BOOTSTRAP) run
	@$(VENV)/arp serve examples/explorer/app.py $(if $(PORT),--port $(PORT)) $(ARGS)

test:  ## all tests; says at the end what it left out, and fails instead with CI=true
	@$(BOOTSTRAP) dev
	@echo "arp: testing, under 10 minutes on two cores"
	@$(PYTEST) -n 4 $(ARGS)  # most of them wait for somebody

install:  ## .venv with everything that developers need
	@$(BOOTSTRAP) dev

fix: install  ## formats the code and repairs what can be repaired by itself
	$(VENV)/python -m ruff check --fix
	$(VENV)/python -m ruff format

check: lint types  ## what must hold before a commit, tests aside
	$(PYTEST) -q tests/structure
	$(VENV)/python -m tools.gen_docs --check
	$(VENV)/python -m tools.gen_schemas --check
	$(VENV)/python -m tools.gen_runtime_schemas --check
	$(VENV)/python -m tools.check_page

lint: install  ## style, format, and which room may import which
	$(VENV)/python -m ruff check
	$(VENV)/python -m ruff format --check
	$(VENV)/lint-imports

types: install  ## mypy over everything, basedpyright over floors 1 to 3
	$(VENV)/python -m mypy
	$(VENV)/basedpyright

gen: install  ## writes what is generated: docs, schemas, types, pinned versions (UPGRADE=1: the newest)
	$(VENV)/python -m tools.gen_docs
	$(VENV)/python -m tools.gen_schemas
	$(VENV)/python -m tools.gen_runtime_schemas
	$(VENV)/uv pip compile --quiet --universal --python-version 3.11 --extra all --extra dev \
	  --no-emit-index-url --no-header --no-annotate $(if $(UPGRADE),--upgrade) \
	  pyproject.toml -o requirements-dev.txt

fixtures: install  ## writes the examples of facts and snapshots, from a run of the project
	$(VENV)/python -m tools.gen_fixtures

bench: install  ## ratios against a bare server, one after the other (BENCH=stream picks one)
	@for bench in $(BENCH); do \
	  echo "== $$bench" && $(VENV)/python -m tests.bench.$$bench $(ARGS) || exit 1; done

web: web/node_modules/.package-lock.json  ## builds the web packages, and the page into arp/server/static
	$(NPM) --prefix web run build

web-test: install web  ## types and tests of the web packages, against a real server too
	$(NPM) --prefix web run types
	$(NPM) --prefix web test

web-e2e: install web  ## the page in a real Chromium before a real server (ARGS="-t W17" picks)
	$(NPM) --prefix web/e2e run e2e -- $(ARGS)

walk: install  ## the calls of one delta and of one input, by package (ARGS=-v lists them)
	$(VENV)/python -m tools.trace_walk $(ARGS)

pictures: install  ## takes the pictures of the README anew; needs chromium and tmux
	$(VENV)/python -m tools.screenshots
	$(VENV)/python -m tools.record_demo

web-fresh: install web  ## the web packages as people get them: packed, in fresh React and Vue applications
	$(NPM) --prefix web/fresh run fresh

bench-web: install web  ## the web's figures beside what is aimed for, and a peer's in the same run
	$(NPM) --prefix web/bench run bench

# npm writes this one last: where an installation broke off it is not there.
web/node_modules/.package-lock.json: web/package-lock.json
	$(NPM) --prefix web ci
	@touch $@

browser: install  ## the tests that drive a real Chromium
	$(PYTEST) -m browser $(ARGS)

kill-test: install  ## kills the server 100 times while it works (ARGS="--kill-seed N" repeats a run)
	$(PYTEST) -m kill --kills 100 -rP $(ARGS)

soak: install  ## 20 minutes of mixed load, then the property tests with 100 times the examples (MINUTES=20)
	$(VENV)/python -m tests.bench.soak --minutes $(or $(MINUTES),20)
	$(PYTEST) -n 2 -m hypothesis --hypothesis-profile soak -o timeout=1800 $(ARGS)

lowest: install  ## all tests with the oldest releases that pyproject.toml allows
	$(VENV)/uv venv --quiet --clear .venv-lowest
	$(VENV)/uv pip install --quiet --python .venv-lowest --resolution lowest-direct -e '.[dev]'
	.venv-lowest/bin/python -m pytest -n 2 $(ARGS)

# Places, not names: to find a package inside a package coverage would import arp, and later once more.
coverage: install  ## branches of floors 1 to 3 that their own tests miss (there should be none)
	$(PYTEST) -q tests/protocol tests/surface tests/ledger tests/session tests/view --cov-branch \
	  --cov=arp/protocol --cov=arp/surface --cov=arp/ledger --cov=arp/session --cov=arp/view \
	  --cov-fail-under=100 $(ARGS)
