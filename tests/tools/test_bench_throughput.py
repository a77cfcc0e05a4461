"""The comparison of throughput: its operations, what a process answers, and what is made of it."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

import engine
import engine.tensor as pt
from tests.tools.programs import TOOLS, load_program

THROUGHPUT = TOOLS / "bench" / "throughput"
NAMES = tuple(load_program("bench/throughput/operations.py").OPERATIONS)


@pytest.fixture(scope="module")
def programs():
    """Return the modules of the comparison by name."""
    names = {
        "symbolic": "symbolic",
        "numpy": "in_numpy",
        "values": "values",
        "subject": "subject",
        "driver": "__main__",
    }
    return {name: load_program(f"bench/throughput/{file}.py") for name, file in names.items()}


def row(engine=1.0, numpy=2.0, pytensor=4.0, failures=(), disagree=(), operation="exp"):
    seconds = {"engine": engine, "numpy": numpy, "pytensor": pytensor}
    return {
        "operation": operation,
        "dtype": "float64",
        "size": 1000,
        "seconds": {name: taken for name, taken in seconds.items() if name not in dict(failures)},
        "failures": dict(failures),
        "disagree": list(disagree),
    }


def in_numpy_mode(inputs, output):
    return engine.function(inputs, output, mode="NUMPY")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_an_operation_computes_in_the_engine_what_it_computes_in_numpy(programs, name, dtype):
    needed = programs["symbolic"].OPERATIONS[name].arguments
    arrays = [programs["values"].values(argument, 50, dtype) for argument in needed]
    symbolic = programs["symbolic"]
    f = symbolic.compiled(in_numpy_mode, pt, name, symbolic.types_of(arrays))
    compute, arguments = programs["numpy"].build(name, arrays)
    due, found = compute(*arguments), f(*arrays)
    assert found.dtype == due.dtype
    np.testing.assert_allclose(found, due, rtol=1e-12 if dtype == "float64" else 1e-4)


def test_a_process_answers_with_a_sample_and_then_with_seconds(cache_directory):
    command = [sys.executable, str(THROUGHPUT / "subject.py"), "engine"]
    environment = {"PYTHONPATH": str(TOOLS.parent), "CACHEGRAPH_DIR": str(cache_directory)}
    asked = "\n".join(map(json.dumps, [["clip", "float32", 100], 0.01]))
    done = subprocess.run(command, input=asked, env=environment, capture_output=True, text=True, check=True)
    report, seconds = map(json.loads, done.stdout.splitlines())
    assert len(report["sample"]) == 100
    assert max(map(abs, report["sample"])) == 0.5
    assert 0 < seconds < 0.1


def test_an_operation_that_a_framework_cannot_do_is_a_cell_that_says_why(programs):
    class Refusing:
        @staticmethod
        def build(name, arrays):
            raise NotImplementedError(f"no {name}\n here")

    _, report = programs["subject"].made_ready(Refusing, "clip", "float64", 10)
    assert report == {"failure": "NotImplementedError: no clip here"}


def test_a_framework_far_behind_has_one_turn_and_the_least_counts(programs, monkeypatch):
    driver, turns = programs["driver"], {name: [] for name in ("engine", "numpy", "jax")}
    seconds = {
        "engine": iter([9.0, 8.0, 8.5]),
        "numpy": iter([1.0, 2.0, 0.5]),
        "jax": iter([driver.HOPELESS * 1.1]),
    }

    def asked(name, question):
        turns[name].append(question)
        return next(seconds[name])

    monkeypatch.setattr(driver, "asked", asked)
    assert driver.least_seconds({name: name for name in turns}, 3) == {
        "engine": 8.0,
        "numpy": 0.5,
        "jax": driver.HOPELESS * 1.1,
    }
    assert [len(asked) for asked in turns.values()] == [3, 3, 1]


def test_a_budget_that_is_missed_is_said(programs):
    missed = programs["driver"].missed
    assert list(missed([row(), row(engine=2.0)])) == []
    assert [miss[:22] for miss in missed([row(engine=3.1), row(), row()])] == ["exp float64 1000: 1.55"]
    assert list(missed([row(engine=2.5), row()])) == []
    assert any(miss.startswith("geometric mean 1.25") for miss in missed([row(engine=2.5)]))
    assert any("the engine cannot: no" in miss for miss in missed([row(failures=[("engine", "no")])]))
    assert list(missed([row(disagree=["jax"])])) == [
        "exp float64 1000: jax computes other numbers than numpy"
    ]


def test_results_of_other_lengths_or_beyond_rounding_disagree(programs):
    agree = programs["driver"].agree
    assert agree([1.0, 100.0], [1.0 + 1e-8, 100.0], "float64")
    assert not agree([1.0, 100.0], [1.0 + 1e-6, 100.0], "float64")
    assert agree([1.0, 100.0], [1.0 + 1e-6, 100.0], "float32")
    assert not agree([1.0], [1.0, 1.0], "float64")


def test_the_table_shows_microseconds_and_shares(programs):
    console = Console(file=io.StringIO(), width=120)
    rows = [row(), row(failures=[("pytensor", "no")], operation="mask")]
    console.print(programs["driver"].table(rows))
    shown = console.file.getvalue()
    for words in ("exp", "mask", "4,000,000.0", "0.50", "-"):
        assert words in shown


def test_what_takes_too_long_is_measured_again_and_the_least_counts(programs, monkeypatch):
    driver = programs["driver"]
    runs = iter([[5.0, 1.0], [1.2]])
    asked = []

    def measured(python, cases, rounds):
        asked.append(cases)
        for seconds in next(runs):
            yield {"seconds": {"engine": seconds, "numpy": 1.0}, "failures": {}, "disagree": []}

    monkeypatch.setattr(driver, "measured", measured)
    cases = [("exp", "float64", 10), ("log", "float64", 10)]
    rows = driver.measured_twice("python", cases, 5)
    assert asked == [cases, cases[:1]]
    assert [found["seconds"]["engine"] for found in rows] == [1.2, 1.0]
