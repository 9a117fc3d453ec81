# make demo   start the demo                make test    run the everyday tests
# make help   list all targets
#
# Each target creates .venv and installs what it needs. It requires only Python 3.11 or newer.
# PYTHON=/path/to/python3 selects an interpreter; ARGS="…" is passed to the command of the target.

PYTHON = python3
VENV = .venv/bin
NPM = $(or $(shell command -v npm),$(error arp: needs Node.js 20.19 or newer with npm; Debian: apt-get install nodejs npm))
BOOTSTRAP = $(PYTHON) tools/bootstrap.py
PYTEST = $(VENV)/python -m pytest
CORE = $(addprefix tests/,access audit/models ledger protocol record redact session surface turn values view)
OPENCODE = tests/runtime/npm
BENCH = stream paced fanout transports patch idle start ledger terminal frameworks

# Tests and benchmarks start hundreds of Python processes: each would compile again what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-core test-extended test-all install opencode fix check lint types gen fixtures bench docs release web web-test web-e2e draft-interop web-fresh bench-web browser pictures kill-test soak lowest coverage walk figures matrix

help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed -e 's/:.*##/	/' | expand -t 14

demo:  ## start the data explorer and print its address (PORT=8080, ARGS="--ledger …")
	@$(BOOTSTRAP) $(if $(strip $(OPENAI_API_KEY)$(OPENAI_BASE_URL)$(ANTHROPIC_API_KEY)),model,run)
	@$(VENV)/arp serve examples/explorer/app.py $(if $(PORT),--port $(PORT)) $(ARGS)

# The parts of the tests are in tests/support/extended.py. Paths, -k and -m in ARGS select from both.
test:  ## run the everyday tests; list at the end what was skipped or left to test-all
	@$(BOOTSTRAP) dev
	@$(PYTEST) -n 6 --dist worksteal --part everyday $(ARGS)

test-core: install  ## run the tests of the layers that need no processes or sockets
	@$(PYTEST) -n 2 --dist worksteal -m "not slow" $(CORE) $(ARGS)

# Six workers, because most of these tests wait for other processes.
test-extended:  ## run what make test leaves out: agent CLIs, containers, browsers, the tutorial …
	@$(BOOTSTRAP) dev
	@! command -v npm >/dev/null || $(MAKE) -s opencode || echo "arp: testing without OpenCode"
	@$(PYTEST) -n 6 --dist worksteal --part extended $(ARGS)

# The second part also runs after a failure of the first one.
test-all:  ## run all tests: make test, then make test-extended; with CI=true, missing programs fail
	@$(MAKE) test ARGS=--write-durations; first=$$?; \
	  $(MAKE) test-extended ARGS=--write-durations && exit $$first

install:  ## create .venv with all development tools
	@$(BOOTSTRAP) dev

opencode: $(OPENCODE)/node_modules/.installed  ## install OpenCode for the tests of agent CLIs; needs npm

fix: install  ## format the code and apply automatic fixes
	$(VENV)/python -m ruff check --fix
	$(VENV)/python -m ruff format

check: lint types  ## run all checks that a commit must pass, except the tests
	$(PYTEST) -q tests/structure
	$(VENV)/python -m tools.gen_docs --check
	$(VENV)/python -m tools.gen_schemas --check
	$(VENV)/python -m tools.gen_runtime_schemas --check
	$(VENV)/python -m tools.gen_proto --check
	$(VENV)/python -m tools.check_page

matrix: install opencode  ## run the contract suite against each runtime, and write what it saw
	for name in $(or $(RUNTIMES),fake function grpc http claude_code codex acp langgraph openai_agents pydantic_ai ag_ui); do \
	  $(VENV)/arp conformance runtime tests.runtime.runtimes_under_test:$$name --matrix tests/runtime/matrix.json || exit 1; \
	done
	$(VENV)/python -m tools.gen_docs

lint: install  ## check style, format and imports between packages
	$(VENV)/python -m ruff check
	$(VENV)/python -m ruff format --check
	$(VENV)/lint-imports

types: install  ## mypy for everything, basedpyright for layers 1 to 3
	$(VENV)/python -m mypy
	$(VENV)/basedpyright

gen: install  ## write generated files: docs, schemas, types, pinned versions (UPGRADE=1: newest)
	$(VENV)/python -m tools.gen_docs
	$(VENV)/python -m tools.gen_schemas
	$(VENV)/python -m tools.gen_runtime_schemas
	$(VENV)/python -m tools.gen_proto
	$(VENV)/uv pip compile --quiet --universal --python-version 3.11 --extra all --extra dev \
	  --no-emit-index-url --no-header --no-annotate $(if $(UPGRADE),--upgrade) \
	  pyproject.toml -o requirements-dev.txt

fixtures: install  ## write the examples of facts and snapshots, from a run of the project
	$(VENV)/python -m tools.gen_fixtures

bench: install  ## run the benchmarks against a bare server (BENCH=stream selects one; peers: other libraries)
	@for bench in $(BENCH); do \
	  echo "== $$bench" && $(VENV)/python -m tests.bench.$$bench $(ARGS) || exit 1; done

release: install  ## build wheel, sdist and npm tarballs from a clean clone, and try them (ARGS=--tag)
	$(VENV)/python -m tools.release $(ARGS)

docs: install  ## build the documentation as a site, into site/
	@test -x .venv-docs/bin/mkdocs || $(VENV)/uv venv --quiet --clear .venv-docs
	@$(VENV)/uv pip install --quiet --python .venv-docs -r pyproject.toml --extra docs
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet $(ARGS)
	@$(VENV)/python -m tools.check_site site

web: web/node_modules/.package-lock.json  ## build the web packages, and the page into arp/server/static
	$(NPM) --prefix web run build

web-test: install web  ## check style, format and types, and run the tests of the web packages
	$(NPM) --prefix web run lint
	$(NPM) --prefix web run types
	$(NPM) --prefix web test

web-e2e: install web  ## test the page in Chromium with a real server (ARGS="-t W17" selects tests)
	$(NPM) --prefix web/e2e run e2e -- $(ARGS)

walk: install  ## count calls, files and packages of one delta and of one input (ARGS=-v lists the calls)
	$(VENV)/python -m tools.trace_walk $(ARGS)

figures: install  ## measure how readable the tree is (ARGS="--root ../before" measures another one)
	$(VENV)/python -m tools.measure_tree --walks $(ARGS)

pictures: install  ## make the pictures of the README again; needs chromium and tmux
	$(VENV)/python -m tools.screenshots
	$(VENV)/python -m tools.record_demo

draft-interop: install  ## run programs of the v0.1 draft against ours; needs node and Chromium
	$(PYTEST) tests/interop $(ARGS)

web-fresh: install web  ## test the packed web packages in new React and Vue applications
	$(NPM) --prefix web/fresh run fresh

bench-web: install web  ## measure the web packages, and another library in the same run
	$(NPM) --prefix web/bench run bench

# npm writes this file last: after an interrupted installation it does not exist.
web/node_modules/.package-lock.json: web/package-lock.json
	$(NPM) --prefix web ci
	@touch $@

# Not `npm ci`: it refuses a lock file without the packages of other platforms, of which npm writes
# none where it cannot fetch them.
$(OPENCODE)/node_modules/.installed: $(OPENCODE)/package-lock.json
	@echo "arp: installing OpenCode for the tests: 180 MB, a few seconds"
	@$(NPM) --prefix $(OPENCODE) install --no-save --loglevel=error
	@ls $(OPENCODE)/node_modules/*/bin/opencode >/dev/null  # npm is content without an optional package
	@touch $@

browser: install  ## run the tests that use Chromium
	$(PYTEST) -m browser $(ARGS)

kill-test: install  ## kill the server 100 times while it works (ARGS="--kill-seed N" repeats a run)
	$(PYTEST) -m kill --kills 100 -rP $(ARGS)

soak: install  ## mixed load for 20 minutes (MINUTES=20), 1,000 permissions and 200 kills with real CLIs, all cases of the contract with each, 2,000 calls of tools, 1,000,000 fuzzed inputs, property tests with 100 times the examples
	$(VENV)/python -m tests.bench.soak --minutes $(or $(MINUTES),20)
	@! command -v npm >/dev/null || $(MAKE) -s opencode || echo "arp: going on without OpenCode"
	$(PYTEST) -m trials --trials 1000 -rP $(ARGS)
	$(PYTEST) -n 3 tests/runtime/test_orphans.py --kills 200 -rP
	$(PYTEST) -n 2 -m soak --soak $(ARGS)
	$(PYTEST) tests/tools/test_many_tools.py --tool-calls 2000 -rP
	@! command -v podman >/dev/null || $(PYTEST) tests/tools/test_docker.py --container-engine podman
	$(PYTEST) -n 2 -k fuzz --fuzz 1000000 -o timeout=1800 $(ARGS)
	$(PYTEST) -n 2 -m hypothesis --hypothesis-profile soak -o timeout=1800 $(ARGS)

# What is generated is compared with what the newest dependencies generate.
lowest: install  ## run all tests with the oldest dependencies that pyproject.toml allows
	$(VENV)/uv venv --quiet --clear .venv-lowest
	$(VENV)/uv pip install --quiet --python .venv-lowest --resolution lowest-direct -e '.[dev]'
	.venv-lowest/bin/python -m pytest -n 2 $(ARGS) \
	  --deselect tests/dev_tools/test_gen_schemas.py::test_every_generated_file_is_up_to_date

# Paths, not names: for the name of a subpackage, coverage would import arp twice.
coverage: install  ## list branches of the pure packages that their own tests miss (there should be none)
	$(PYTEST) -q tests/protocol tests/surface tests/ledger tests/audit/models tests/session tests/view --cov-branch \
	  --cov=arp/protocol --cov=arp/surface --cov=arp/ledger --cov=arp/audit/models --cov=arp/session --cov=arp/view \
	  --cov-fail-under=100 $(ARGS)
