"""The comparison with other frameworks: its models, what a process measures, and what is made of it."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

import engine
import engine.tensor as pt
from engine.tensor.optimize import minimize
from tests.tools.programs import TOOLS, load_program

PEERS = TOOLS / "bench" / "peers"


@pytest.fixture(scope="module")
def peers():
    """Return the modules of the comparison by name."""
    names = {"subject": "subject", "symbolic": "symbolic", "driver": "__main__"}
    modules = {name: load_program(f"bench/peers/{file}.py") for name, file in names.items()}
    return modules | {"values": modules["symbolic"].values}


def row(cold=100.0, warm=10.0, call=5.0, results=((1.0,),)):
    cpu = {"cold_cpu_ms": 2 * cold, "warm_cpu_ms": warm}
    return {"cold_ms": cold, "warm_ms": warm, "call_us": call, **cpu, "results": [list(r) for r in results]}


def missed(peers, **rows):
    rows = {"engine": row(), "pytensor": row(cold=1000), "jax": row(warm=30)} | rows
    return list(peers["driver"].missed({"regression": rows}))


def test_every_model_has_arguments_and_is_asked_for(peers):
    assert set(peers["symbolic"].MODELS) == set(peers["values"].ARGUMENTS) == set(peers["driver"].MODELS)


@pytest.mark.parametrize(
    "model",
    ["regression", "kalman", "recurrent", "layers-50", "layers-100", "layers-in-scan", "minimize"],
)
def test_a_model_computes_a_value_and_its_gradients(peers, model):
    framework = peers["symbolic"].Framework(pt, engine.grad, engine.OpFromGraph, engine.scan, minimize)
    inputs, outputs = peers["symbolic"].MODELS[model](framework)
    f = engine.function(inputs, outputs, mode="NUMPY")
    point = peers["values"].ARGUMENTS[model]()
    value, *gradients = f(*point)
    assert value.shape == ()
    random = np.random.default_rng(3)
    by = point[len(point) - len(gradients) :]
    direction = [random.normal(size=array.shape) for array in by]
    slope = sum(np.sum(d * g) for d, g in zip(direction, gradients, strict=True))

    def moved(step):
        return f(*point[: -len(by)], *[a + step * d for a, d in zip(by, direction, strict=True)])[0]

    # A search ends somewhere near the minimum.
    step, tolerance = (1e-3, 1e-2) if model == "minimize" else (1e-6, 1e-5)
    np.testing.assert_allclose((moved(step) - moved(-step)) / (2 * step), slope, rtol=tolerance)


@pytest.mark.slow
def test_a_process_reports_how_it_became_ready_and_times_calls_when_asked(cache_directory):
    command = [sys.executable, str(PEERS / "subject.py"), "engine", "layers-50"]
    environment = {"PYTHONPATH": str(TOOLS.parent), "CACHEGRAPH_DIR": str(cache_directory)}
    outcomes = []
    for _ in range(2):
        done = subprocess.run(
            command, input="0.01\n0.01\n", env=environment, capture_output=True, text=True, check=True
        )
        report, *calls = map(json.loads, done.stdout.splitlines())
        outcomes.append(report["outcome"])
        assert [len(result) for result in report["results"]] == [1, 16, 256]
        assert min(report["function"], report["call"], report["build"], report["import"], *calls) > 0
    assert outcomes == ["miss", "hit"]


def test_a_model_that_a_framework_cannot_do_is_a_row_that_says_why(peers, capsys, monkeypatch):
    class Refusing:
        @staticmethod
        def build(name):
            raise NotImplementedError(f"no {name}\n here")

    monkeypatch.setitem(sys.modules, "in_none", Refusing)
    monkeypatch.setattr(sys, "argv", ["subject.py", "none", "kalman"])
    peers["subject"].main()
    assert json.loads(capsys.readouterr().out) == {"failure": "NotImplementedError: no kalman here"}


def test_the_least_of_all_rounds_counts(peers):
    def run(seconds):
        return {
            "function": seconds,
            "call": 0.5,
            "processor": seconds,
            "import": 1.0,
            "build": 1.0,
            "results": [[2.0]],
        }

    found = peers["driver"].summary([(run(s), run(s / 10)) for s in (1.0, 9.0, 2.0)], [3.0, 1.0, 2.0])
    assert (found["cold_ms"], found["warm_ms"], found["call_us"]) == (1500.0, 600.0, 1.0)
    assert (found["cold_cpu_ms"], found["warm_cpu_ms"]) == (1000.0, 100.0)
    assert peers["driver"].summary([({"failure": "no"}, {"failure": "no"})], None) == {"failure": "no"}


def test_a_model_that_misses_a_budget_gets_as_many_rounds_again(peers, monkeypatch):
    driver, asked = peers["driver"], []

    def rows(warm):
        times = {name: [0.0] for name in ("cold_ms", "cold_cpu_ms", "warm_ms", "warm_cpu_ms", "call_us")}
        own = row(warm=warm) | {"import_ms": 1.0, "build_ms": 1.0, "all": times}
        return {"engine": own, "pytensor": {"failure": "no"}, "jax": own | {"warm_cpu_ms": 30.0}}

    def compared(python, model, rounds, tell):
        asked.append(rounds)
        return next(runs)

    monkeypatch.setattr(driver, "compared", compared)
    runs = iter([rows(28.0), rows(9.0), rows(8.0)])
    found = driver.compared_twice("python", "kalman", 3, print)
    assert (found["engine"]["warm_cpu_ms"], len(found["engine"]["all"]["call_us"]), asked) == (9.0, 2, [3, 3])
    assert found["pytensor"] == {"failure": "no"}
    assert driver.compared_twice("python", "kalman", 3, print)["engine"]["warm_cpu_ms"] == 8.0
    assert asked == [3, 3, 3]


def test_a_budget_that_is_missed_is_said(peers):
    assert missed(peers) == []
    assert missed(peers, engine=row(cold=101)) == [
        "regression: cold_cpu_ms 202, 0.10 of pytensor's; at most 0.10 is due",
        "cold_cpu_ms: 1.01 of JAX's in the mean; at most 1.0 is due",
    ]
    assert missed(peers, jax=row(cold=60, warm=30))[0].startswith(
        "regression: cold_cpu_ms 200.0, 1.67 of jax's"
    )
    assert missed(peers, jax=row(warm=20))[0].startswith("regression: warm_cpu_ms 10.0, 0.50 of jax's")
    assert missed(peers, jax=row(warm=30, call=4))[0].startswith("regression: call_us 5.0, 1.25 of jax's")


def test_a_framework_that_fails_is_not_compared_and_other_numbers_are_said(peers):
    other = row(cold=1000, results=((1.1,),))
    assert missed(peers, engine={"failure": "no"}) == ["regression: the engine cannot: no"]
    assert missed(peers, pytensor=other) == ["regression: pytensor computes other numbers"]
    assert missed(peers, pytensor={"failure": "no"}, jax={"failure": "no"}) == []


def test_the_table_shows_shares_and_reasons(peers):
    rows = {"engine": row(), "pytensor": row(cold=400), "jax": {"failure": "TypeError: no"}}
    console = Console(file=io.StringIO(), width=100)
    console.print(peers["driver"].table({"regression": rows}))
    shown = console.file.getvalue()
    for words in ("regression", "400.0 (0.25)", "TypeError: no"):
        assert words in shown
