"""The bench of the store: what its processes measure, and what is made of it."""

import io

import pytest

from tests.tools.programs import load_program

bench = load_program("bench/store.py")


def test_payloads_are_those_of_no_other_key_and_mostly_of_20_kb():
    payloads = [bench.payload(number) for number in range(100)]
    assert len(set(payloads)) == 100
    assert bench.payload(7) == payloads[7]
    assert 40 < sum(len(payload) == 20_000 for payload in payloads) < 80


def test_processes_of_the_store_measure_gets_and_puts():
    found = bench.run("store", 2, 0.3)
    assert found["failures"] == 0
    assert found["calls_a_second"] > 10
    assert 0 < found["get of 20 kB"]["p50"] <= found["get of 20 kB"]["p99"]


def test_wrong_bytes_and_errors_are_failures(monkeypatch):
    class Wrong:
        def get(self, number):
            return b"wrong" if number % 2 else bench.payload(number)

        def put(self, number, payload):
            if number:
                raise OSError("full")

    monkeypatch.setattr(bench.sys, "stdin", io.StringIO())
    report = bench.work(Wrong(), 0.3)
    puts = sum(kind == "put" for kind, _, _ in report["calls"])
    assert puts * 0.9 < report["failures"] < len(report["calls"])


def test_the_commands_are_measured_on_a_store_that_is_filled_at_once(tmp_path):
    key, held = bench.large_store.fill(tmp_path, 30)
    found = bench.large_store.run(tmp_path, ["show", key])
    assert held > 30 * 500
    assert 0 < found["seconds"] < 60
    assert found["megabytes"] > 10


def test_percentiles():
    assert bench.percentiles([k / 1e6 for k in range(101)]) == {"p50": 50.0, "p99": 99.0}
    assert bench.percentiles([]) == {"p50": 0.0, "p99": 0.0}


@pytest.mark.parametrize(
    ("p50", "failures", "within"), [(99.0, 0, True), (101.0, 0, False), (99.0, 1, False)]
)
def test_the_budget_is_the_median_of_a_process_alone(p50, failures, within, monkeypatch):
    rows = {"get of 20 kB": {"p50": p50, "p99": 1.0}, "failures": failures}
    monkeypatch.setattr(bench, "run", lambda name, count, seconds: rows)
    assert bench.measure(16, 1.0)["within_budget"] == within
