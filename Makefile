# make demo, make test: each sets up everything it needs. The rest is for working on the code.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all library adapter-on-oldest-pytensor lint format types imports site dist bench \
    environment clean

# Tests start hundreds of processes; each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

python = .venv/bin/python
# Words for tools/set-up: make test setup="--version 3.12", setup="--pins constraints-oldest.txt --oldest".
setup =
# A file's tests stay in one process, whose fixtures they share.
workers = --numprocesses auto --maxprocesses 4 --dist loadfile
short = -m "not slow and not stress"
library_tests = key.py memoizing.py named_tuples.py settings.py units.py

help:
	@echo "make demo     set everything up and run the demo: compile a model once, start warm in the next process"
	@echo "make test     set everything up and run the tests, without those that take long"
	@echo "make test-all set everything up and run all tests"
	@echo "make adapter-on-oldest-pytensor   the adapter's part of make test, on the oldest PyTensor that it supports"
	@echo "make library  the tests of the cache as a library, without compilers: python=python3.14t, say"
	@echo "make lint     ruff's checks and formatting      make format   apply the formatting"
	@echo "make types    mypy                              make imports  the import rules"
	@echo "make site     the documentation, as pages in build/site"
	@echo "make dist     the sdist and the wheel in dist/"
	@echo "make bench    tools/bench/warm_start.py         make clean    remove what make made"

environment:
	@tools/set-up .venv $(setup)

demo: environment
	@$(python) examples/grunfeld/demo.py
	@echo
	@$(python) examples/nile/demo.py

# `python` may be another environment's interpreter.
test: environment
	@$(python) -m pytest $(workers) $(short)

test-all: environment
	@$(python) -m pytest $(workers)

# The cache as a library, with what is installed beside `python`: pytest, hypothesis, markdown-it-py and a small
# installation (docs/library.md) are enough.
library:
	@$(python) -m pytest $(short) tests/flow/test_library_page.py $(addprefix tests/cachegraph/test_,$(library_tests))

# Needs Python 3.12 or newer, as PyTensor does.
adapter-on-oldest-pytensor:
	@tools/set-up .venv-oldest-pytensor --pins constraints-oldest-pytensor.txt
	@.venv-oldest-pytensor/bin/python -m pytest $(workers) $(short) tests/cachegraph/pytensor \
	    tests/flow/test_pytensor_functions.py

lint: environment
	@$(python) -m ruff check
	@$(python) -m ruff format --check

format: environment
	@$(python) -m ruff check --fix
	@$(python) -m ruff format

types: environment
	@$(python) -m mypy

imports: environment
	@.venv/bin/lint-imports --no-logo

# The variable silences what mkdocs-material has to say about a successor of mkdocs.
site: environment
	@NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --quiet --strict

# The sdist, and the wheel that is built from it.
dist: environment
	@$(python) -m build --no-isolation --outdir dist

bench: environment
	@$(python) tools/bench/warm_start.py

clean:
	rm -rf .venv .venv-oldest .venv-oldest-pytensor build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
