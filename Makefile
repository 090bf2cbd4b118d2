# make demo    see it work: sample kernels instrumented and run on the emulator
# make check   what needs no kernel run and no child process: at most 90 s, for pre-commit
# make test    all short tests, and of the others those that a change can reach and some at random: ten minutes; JOBS=3
#              processes, SEED=1 for order and choice, SECONDS=100 of chosen tests (what compares with LLVM's own tools is
#              skipped where these are missing)
# make nightly every test, and what make test chooses by: PART=3/8, SECONDS=3600 of tests at random, SEED=1 (docs/testing.md)
# make coverage lines and branches that a tier executes: TIER=check
# make test-isa  every row, every opcode and the samples on every target against LLVM (half an hour)
# make test-reference  every row that has a meaning, emulator against reference reader (an hour or two)
# make test-stacks  programs and tools on the ROCm of Debian's suites, fetched and unpacked into build/stacks (2 GB): benchmarks/stacks.md
# make compare  conformance cases on our HIP runtime and on ROCm's own (LUTHIER_ROCM_STACK): ARGS="async copies" chooses files
# make test-cupy  CuPy on the emulator's HIP runtime: fetched into build/cupy with the headers it needs (400 MB)
# make lint    ruff, and mypy over the package with its tools, intrinsics and samples
# make fuzz    damaged objects, bundles, tools, command lines and random kernels and edits, SECONDS=600 JOBS=2 SEED=1 or MUTANTS=100000
# make damage  50,000 single damages of instrumented copies, refused by the proof or not: ARGS="--count 5000 --seed 2"
# make pressure  every tool on samples, kernels of libraries and kernels without a free register: ARGS="--kernels 60 --seed 2"
# make mutations  lines of our own source made wrong, one at a time: the fast tests must notice (half an hour)
# make seeded  changes that only long tests know of: does make test choose a test that sees them? (20 minutes)
# make mutants  meanings of instructions made wrong, generated from the meanings: do the reference campaign's cases notice? (hours; ARGS="--rows 20")
# make bench   speed of the emulator and of instrumentation
# make libraries fetch kernels that others compiled (100 MB of wheels) into build/libraries, for benchmarks/instrument.py
# make table   samples and programs for every target, wave size and -O level, bare and under every tool (days; ARGS="--targets gfx803 --tools 2")
# make foreign  kernels of bitsandbytes, Triton and IREE, fetched (500 MB), on the targets that they are compiled for, against NumPy (hours; PART=iree)
# make programs compile the HIP programs of tests/programs into build/programs (needs clang-22 and HIP's headers)
# make soak    a million launches and 2,000 module loads under a tool: does memory grow? (ten minutes on an idle machine)
# make docs    the pages of docs that are made from the code (PAGES in docs/generate.py)
# make studies the results that pages show: tables, figures and what commands print (docs/studies)
# make samples compile the sample kernels again (needs clang-22)
# make native  compile the C of the emulator's run time again (needs clang-22 and opt-22); a test compares
#
# Only Python (3.10 or newer, with venv) and make are needed; everything else goes into .venv.
# The installation is editable, so what is changed in luthier_py/, tools/ and intrinsics/ holds at once.

PYTHON ?= python3
BIN := .venv/bin
# An empty one is none.
override SEED := $(or $(SEED),$(shell date +%s))
# Tests wait for the processes that they start, so two cores serve three of them.
JOBS ?= 3

# Where it is set, each process that a test starts compiles all of the package again: a second for each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test nightly coverage test-isa test-reference test-stacks compare test-cupy lint fuzz damage pressure mutations seeded mutants bench programs soak docs studies samples native clean libraries foreign table

demo: .venv/installed
	$(BIN)/luthier demo

# What lift and each pass of injection hand on is verified.
check test nightly coverage fuzz: export LUTHIER_VERIFY := 1

PYTEST = $(BIN)/python -m pytest -n $(JOBS) --randomly-seed=$(SEED)
# Nothing waits here, and each process more collects all of it once more.
check: JOBS := 2
check: .venv/installed-test
	$(PYTEST) --tier check -q $(ARGS)

test: .venv/installed-test
	$(PYTEST) --tier test $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

nightly: .venv/installed-test
	$(BIN)/python tests/suite/nightly.py --jobs $(JOBS) --seed $(SEED) $(if $(PART),--part $(PART)) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

coverage: .venv/installed-test
	$(BIN)/python tests/suite/covered.py $(or $(TIER),check) $(ARGS)

test-isa: .venv/installed-test
	LUTHIER_TEST_ISA=1 $(BIN)/python -m pytest tests/differential/test_isa_llvm.py tests/differential/test_isa_kernels.py \
		tests/differential/test_isa_effects_llvm.py tests/differential/test_isa_hazards_llvm.py tests/unit/isa $(ARGS)

test-reference: .venv/installed-test
	$(BIN)/python -m pytest tests/reference -m slow -s $(ARGS)

test-stacks: .venv/installed-test
	$(BIN)/python tests/stacks/run.py build/stacks --results build/stacks/results.json --table benchmarks/stacks.md $(ARGS)
	LUTHIER_ROCM_STACK=build/stacks/rocm-5.2/unpacked $(BIN)/python -m pytest tests/unit/host/native/test_hsa_tables.py

compare: .venv/installed-test
	$(BIN)/python tests/conformance/compare.py $(ARGS)

test-cupy: .venv/installed-test build/cupy/ready
	LUTHIER_CUPY=$(CURDIR)/build/cupy/bin/python LUTHIER_HIP_INCLUDE=$(CURDIR)/build/cupy/include \
		$(BIN)/python -m pytest tests/unit/host/worker/test_cupy.py $(ARGS)

# HIP's headers with hip_fp16.h are in triton's wheel of that time.
build/cupy/ready:
	$(PYTHON) -m venv --clear build/cupy
	build/cupy/bin/python -m pip install --quiet --disable-pip-version-check cupy-rocm-7-0==14.2.0
	build/cupy/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --dest build/cupy triton==3.2.0
	cd build/cupy && ../../$(BIN)/python -m zipfile -e triton-3.2.0*.whl wheel && rm -rf include triton-3.2.0*.whl && \
		mv wheel/triton/backends/amd/include include && rm -rf wheel
	touch $@

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/mypy luthier_py

fuzz: .venv/installed-test
	$(BIN)/python tests/fuzz --seed $(SEED) --jobs $(JOBS) --output build/fuzz/table.md \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(MUTANTS),--mutants $(MUTANTS)) $(if $(ONLY),--only $(ONLY))

damage: .venv/installed-test
	$(BIN)/python benchmarks/proof.py --jobs $(JOBS) --output build/damage/table.md $(ARGS)

pressure: .venv/installed-test
	$(BIN)/python benchmarks/pressure/run.py --jobs $(JOBS) $(ARGS)

mutations: .venv/installed-test
	$(BIN)/python tests/mutations/run.py --jobs $(JOBS) $(ARGS)

seeded: .venv/installed-test
	$(BIN)/python tests/mutations/seeded.py --seed $(SEED) --jobs $(JOBS) $(ARGS)

mutants: .venv/installed-test
	$(BIN)/python tests/mutations/meanings.py --jobs $(JOBS) $(ARGS)

# The rest of benchmarks/*.py is `make damage` and `make foreign`, and parts of isa.py and instrument.py.
BENCHMARKS := emulator twins translation isa checks disassembly installed large overhead launch_invariant trampoline channel instrument programs every_tool launches start stacks house
bench: .venv/installed-test
	set -e; for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py; done

libraries: .venv/installed
	mkdir -p build/libraries/wheels
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.11 \
		--platform manylinux_2_31_x86_64 --dest build/libraries/wheels cyllama-rocm==0.2.18 amd-aiter==0.1.7.post2.dev18
	$(BIN)/python -m zipfile -e build/libraries/wheels/cyllama_rocm-*.whl build/libraries/cyllama
	$(BIN)/python -m zipfile -e build/libraries/wheels/amd_aiter-*.whl build/libraries/aiter

foreign: .venv/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps bitsandbytes==0.50.2 triton==3.9.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[hip]'
	set -e; for part in $(or $(PART),bitsandbytes triton iree); do $(BIN)/python benchmarks/foreign.py $$part $(ARGS); done

table: .venv/installed-test
	$(BIN)/python benchmarks/table/run.py --jobs $(JOBS) --page $(ARGS)

programs: .venv/installed
	$(BIN)/python tests/programs/build.py build/programs

soak: .venv/installed-test
	$(BIN)/python benchmarks/soak/run.py build/soak $(ARGS)

docs: .venv/installed
	$(BIN)/python docs/generate.py

studies: .venv/installed-test
	$(BIN)/python docs/studies/run.py

samples:
	$(PYTHON) tests/data/build.py

native: .venv/installed
	$(BIN)/python -m luthier_py.emulator.native.generate

clean:
	rm -rf .venv build dist luthier_py.egg-info

.venv/created:
	$(PYTHON) -m venv --clear .venv
	touch $@

.venv/installed: pyproject.toml | .venv/created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@
