"""The comparison with PyTensor's own cache: its models, and what is made of what processes report."""

import io

import numpy as np
import pytest
from rich.console import Console

from tests.tools.programs import load_program

driver = load_program("bench/pytensor_cache/__main__.py")


def report(seconds, results=(1.0, 2.0), imports=0.0):
    steps = {"dispatch": [imports, imports], "function": [seconds, seconds], "call": [seconds, seconds]}
    bits = [np.array(results).tobytes().hex()]
    return {"nodes": 600, "steps": steps, "results": bits, "found": {}, "call_us": seconds}


def summary(own=1.0, other=10.0, engine=0.5, **results):
    cold = {"pytensor": [report(50.0)], "cachegraph": [report(60.0)], "engine": [report(4.0)]}
    warm = {
        "pytensor": [report(other, imports=1.0)] * 3,
        "cachegraph": [report(own, **results)] * 3,
        "engine": [report(engine)] * 3,
    }
    return driver.summary(cold, warm)


def test_every_model_is_asked_for_and_has_a_gradient_at_a_point():
    pytest.importorskip("pymc", reason="PyMC is not installed")
    models = load_program("bench/pytensor_cache/models.py")
    assert list(models.MODELS) == driver.MODELS
    subject = models.MODELS["50-layers"]()
    assert subject.nodes > 100
    assert [np.shape(value) for value in subject.point] == [(16,), (16, 16)]


def test_ratios_are_of_all_steps_with_what_is_imported_and_without():
    found = summary()
    assert found["ratios"] == {"clock": 0.095, "processor": 0.095, "clock, no imports": 0.1}
    assert found["ways"]["cachegraph"]["warm_ms"] == 2000.0
    assert list(driver.missed("kalman", found)) == []


def test_a_budget_that_is_missed_is_said():
    assert len(list(driver.missed("kalman", summary(own=3.0)))) == 2
    small = summary(own=9.0) | {"nodes": 100}
    assert list(driver.missed("kalman", small)) == []
    by_clock, _ = driver.missed("kalman", summary(own=42.0) | {"nodes": 100})
    assert by_clock == "4.00 of PyTensor's time (clock), at most 1.00 is due"


def test_other_bits_of_a_hit_and_other_numbers_than_pytensors_are_said():
    assert list(driver.missed("kalman", summary(results=(1.0, 2.0 + 1e-15)))) == [
        "cachegraph: a hit gives other bits than the miss"
    ]
    cold = {"pytensor": [report(1.0)], "cachegraph": [report(1.0)], "engine": [report(1.0, (1.0, 3.0))]}
    assert driver.same(cold, {"cachegraph": [], "engine": []}) == "engine: other results than PyTensor's"


def test_the_engine_has_budgets_for_each_model_and_for_means():
    found = summary()
    assert found["engine"] == {"cold": 0.08, "warm": 0.0476, "call": 0.05}
    slow = summary(engine=11.0)
    assert [miss.split(":")[0] for miss in driver.missed("kalman", slow)] == [
        "the engine, warm",
        "the engine, call",
    ]
    assert list(driver.missed_means({"a": found, "b": found | {"engine": {"cold": 0.15}}})) == [
        "the engine, cold: 0.110 of PyTensor's on average, at most 0.100 is due"
    ]
    small = found | {"nodes": 100, "engine": {"cold": 0.9}}
    assert list(driver.missed_means({"a": small})) == []


def test_the_table_shows_ratios():
    console = Console(file=io.StringIO(), width=140)
    console.print(driver.table({"kalman": summary()}))
    console.print(driver.engine_table({"kalman": summary()}))
    for words in ("kalman", "600", "0.10", "geometric mean", "0.080"):
        assert words in console.file.getvalue()


def test_the_adapter_is_measured_on_demand():
    cold = {"pytensor": [report(50.0)], "engine": [report(4.0)]}
    found = driver.summary(cold, {"pytensor": [report(10.0)] * 3, "engine": [report(0.5)] * 3})
    assert found["ratios"] == {}
    assert list(driver.missed("kalman", found)) == []


def test_cold_starts_are_repeated_on_empty_caches_until_they_have_taken_a_minute(monkeypatch):
    begun = []

    def measured(model, way, caches):
        begun.append((way, caches))
        return report(10.0 if way == "pytensor" else float(len(begun)))

    monkeypatch.setattr(driver, "measured", measured)
    cold = driver.cold_starts("kalman", driver.WAYS, list("abcde"), lambda text: None)
    assert begun == [(way, caches) for caches in "abc" for way in driver.WAYS]
    assert driver.median_ratio(cold, "engine", 1) == 0.4
    assert driver.median_ms(cold["engine"], 1) == 8000.0


def test_a_samplers_cold_start_has_no_budget_and_is_in_no_mean():
    slow = summary() | {"engine": {"cold": 0.9, "warm": 0.2}}
    assert list(driver.missed("pm.sample", slow)) == []
    assert list(driver.missed_means({"kalman": summary(), "pm.sample": slow})) == []
    assert len(list(driver.missed("kalman", slow))) == 2


def test_bytecode_is_made_before_anything_is_measured(monkeypatch):
    compiled, run = [], []
    monkeypatch.setattr(driver, "compile_dir", lambda place, quiet: compiled.append(place.name))
    monkeypatch.setattr(driver.subprocess, "run", lambda command, env, check: run.append((command, env)))
    driver.make_bytecode()
    assert compiled == ["cachegraph", "engine"]
    [(command, env)] = run
    assert "import pymc" in command[-1] or driver.find_spec("pymc") is None
    assert "PYTHONDONTWRITEBYTECODE" not in env


def test_until_a_samplers_first_draw_a_quarter_is_due():
    found = summary(engine=2.0)
    assert found["engine"]["warm"] == 0.1905
    assert list(driver.missed("pm.sample-nutpie", found)) == []
    assert [miss.split(":")[0] for miss in driver.missed("kalman", found)] == ["the engine, warm"]
