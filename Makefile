# Allosaur: build, try, test. Each target installs what it needs and does no work twice; `make help` lists them.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

STEP := scripts/step.sh
BIN := .venv/bin

# DPDK ports are built where the system has DPDK; DPDK=no leaves them out all the same.
ifndef DPDK
DPDK := $(shell pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null && echo yes || echo no)
endif
FEATURES := $(if $(filter yes,$(DPDK)),--features dpdk)

# PGO=yes: the compiler optimises by a profile of what the server does under load (bench/training.py). Three times the build.
PGO ?= no
PROFDATA := $(CURDIR)/.build/server-$(DPDK).profdata
BUILD_ENV := env MATURIN_PEP517_ARGS="$(FEATURES)"
# What is built once for many is optimised over all crates; what is built here, within each, in two thirds of the time.
LTO := CARGO_PROFILE_RELEASE_LTO=thin
ifeq ($(PGO),yes)
BUILD_ENV += $(LTO) RUSTFLAGS="-Cprofile-use=$(PROFDATA)" CARGO_TARGET_DIR="$(CURDIR)/target/pgo"
endif

# Tests mostly wait: more at once than there are CPUs, but not so many that they keep each other waiting.
TESTS_AT_ONCE ?= $(shell expr $$(nproc) + 2)
# Rust's, a program at a time: those against the kernel's TCP wait most of their time, the others do not mind.
RUST_TESTS := env RUST_TEST_THREADS=$(shell expr 2 \* $$(nproc)) cargo test --locked --quiet

# The test from end to end of `make check`.
ONE_TEST := test_the_demo_passes_and_writes_its_report

# What ends up in the wheel. A change in any of these means: install again.
RUST_SOURCES := Cargo.toml Cargo.lock .cargo/config.toml $(shell find crates -type f \( -name '*.rs' -o -name '*.c' -o -name '*.toml' \) 2>/dev/null)
PYTHON_SOURCES := $(shell find python scripts/wheel-data -type f ! -name '*.py[co]' 2>/dev/null)

.PHONY: help demo test rust-tests check bench docs fuzz lint advisories install wheel wheels deb test-packages clean

help: ## list the targets
	@printf 'Allosaur. Type "make TARGET":\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 16
	@printf '\nEach installs what it needs (system packages with apt, when root or sudo is there).\n'

demo: .build/install.stamp ## start a server on two in-memory ports, run traffic, write report.html
	@$(BIN)/allosaur demo $(ARGS)

install: .build/install.stamp ## build the wheel and install it into .venv (PGO=yes: optimised by profile, faster flows)
	@printf 'Installed. Try: %s/allosaur --help\n' $(BIN)

# A compiler leaves CPUs idle where one crate is left: the server and the tests, of other profiles, are built side by side.
test: .build/tests.stamp lint ## lint, then all tests: Rust, Python, the real binary, TRex's official client
	@$(MAKE) --jobs=2 .build/install.stamp rust-tests
	@$(STEP) --show cargo-test 'Rust tests' $(RUST_TESTS) --workspace
ifeq ($(DPDK),yes)
	@$(STEP) --show cargo-test-dpdk 'Rust tests of DPDK ports' $(RUST_TESTS) -p allosaur-port --features dpdk dpdk
endif
ifdef ARGS
	@$(STEP) --show pytest 'Python and end-to-end tests' $(BIN)/python -m pytest tests $(ARGS)
else
	@scripts/pytest.sh $(TESTS_AT_ONCE)
	@$(STEP) --show pytest-alone 'tests that need the machine for themselves' $(BIN)/python -m pytest tests -m alone
endif

rust-tests: .build/setup.stamp
	@$(STEP) rust-tests 'Rust tests: the build' cargo test --locked --quiet --workspace --no-run

check: .build/dev.stamp ## lint, unit tests and one end-to-end test, in two minutes: before each commit
	@scripts/lint.sh
	@$(STEP) check-rust 'Rust unit tests and rules' \
		$(RUST_TESTS) --workspace --lib --test tidy
	@$(STEP) check-server 'server, not optimised' cargo build --locked --quiet -p allosaur-server
	@$(STEP) --show check-python 'Python unit tests, and one from end to end' env PYTHONPATH=$(CURDIR)/python \
		ALLOSAUR_SERVER=$(CURDIR)/target/debug/allosaur-server $(BIN)/python -m pytest -q -n $(TESTS_AT_ONCE) \
		--ignore-glob='*live*' tests/tidy tests/python tests/docs/test_words.py tests/cli/test_demo.py::$(ONE_TEST)

lint: .build/dev.stamp ## rustfmt, clippy, ruff, mypy, shellcheck, licences
	@scripts/lint.sh

advisories: .build/dev.stamp ## look up known faults of crates and Python packages (needs the network)
	@scripts/advisories.sh

bench: .build/install.stamp ## measure packets per second on in-memory ports (ARGS=--quick for a short run)
	@$(STEP) --show bench 'Benchmarks' $(BIN)/python bench/run.py $(ARGS)

docs: .build/docs.stamp ## build the documentation as a site into .build/site; links and anchors must be right
	@$(STEP) docs 'Documentation' .build/docs/bin/python -m mkdocs --quiet build --strict
	@printf 'To read it: python3 -m http.server -d .build/site\n'

fuzz: .build/setup.stamp ## look for inputs that break something, a while for each target (ARGS="--time 300 stateful tcp")
	@scripts/fuzz.sh $(ARGS)

wheel: dist/wheel.stamp ## build the wheel into dist/ (DPDK=no: without DPDK's ports, for any machine; PGO=yes)

wheels: ## manylinux wheels for x86-64 and aarch64, and the sdist, into dist/manylinux (ARCHES=x86_64 for one; root, mmdebstrap)
	@scripts/wheels.sh $(ARCHES)

deb: dist/wheel.stamp .build/dev.stamp ## make Debian packages of the wheel: dist/allosaur-server_*.deb, dist/allosaur_*.deb
	@scripts/deb.sh

test-packages: dist/wheel.stamp .build/dev.stamp ## install packages and wheels in bare systems, use and remove them (minutes; root, mmdebstrap)
	@$(STEP) --show packages 'packages and wheels in bare systems' env PYTHONPATH=$(CURDIR)/python \
		$(BIN)/python -m pytest tests/packaging/debian.py tests/packaging/booted.py tests/packaging/pythons.py \
		tests/packaging/manylinux.py -v

clean: ## remove everything that was built
	rm -rf .build .venv target fuzz/target fuzz/corpus fuzz/artifacts dist report.html .mypy_cache .ruff_cache .pytest_cache
	find python tests bench scripts profiles -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# --- what the targets stand on; each stamp says that the step is done -----------------------------------------

.build/setup.stamp: scripts/setup.sh scripts/common.sh
	@scripts/setup.sh
	@touch $@

# The routers, servers and daemons of tests: who only wants to use Allosaur needs none of them.
.build/tests.stamp: .build/setup.stamp
	@scripts/setup.sh --tests
	@touch $@

.build/venv.stamp: .build/setup.stamp scripts/venv.sh
	@$(STEP) venv 'Python environment in .venv' scripts/venv.sh
	@touch $@

.build/dev.stamp: .build/venv.stamp pyproject.toml scripts/requirements.py
	@$(BIN)/python scripts/requirements.py pyproject.toml > .build/requirements.txt
	@$(STEP) dev 'Python packages for development' $(BIN)/python -m pip install -r .build/requirements.txt
	@touch $@

.build/docs.stamp: .build/setup.stamp pyproject.toml scripts/requirements.py scripts/venv.sh
	@$(STEP) docs-venv 'Python environment of the documentation' scripts/venv.sh .build/docs
	@.build/docs/bin/python scripts/requirements.py pyproject.toml docs > .build/docs-requirements.txt
	@$(STEP) docs-packages 'Python packages of the documentation' .build/docs/bin/python -m pip install -r .build/docs-requirements.txt
	@touch $@

dist/wheel.stamp: .build/venv.stamp .build/build-$(DPDK)-$(PGO).stamp pyproject.toml README.md $(RUST_SOURCES) $(PYTHON_SOURCES)
	@$(STEP) wheel 'the wheel (the first build takes minutes)' \
		$(BUILD_ENV) $(LTO) $(BIN)/python -m pip wheel --no-deps --wheel-dir dist .
	@touch $@

# Another choice than the last time: build again.
.build/build-$(DPDK)-$(PGO).stamp: .build/setup.stamp $(if $(filter yes,$(PGO)),$(PROFDATA))
	@rm -f .build/build-*.stamp
	@touch $@

$(PROFDATA): .build/dev.stamp scripts/profile.sh bench/training.py $(RUST_SOURCES)
	@$(STEP) profile 'a profile of the server under load (minutes)' scripts/profile.sh $@ $(FEATURES)

.build/install.stamp: .build/venv.stamp .build/build-$(DPDK)-$(PGO).stamp pyproject.toml README.md $(RUST_SOURCES) $(PYTHON_SOURCES)
	@$(STEP) install 'server and Python package (the first build takes minutes)' \
		$(BUILD_ENV) scripts/install.sh
	@touch $@
