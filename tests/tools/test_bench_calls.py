"""The bench of calls: what it measures, and what is over a budget."""

from __future__ import annotations

import pytest

import engine
import engine.tensor as pt
from tests.tools.programs import load_program

bench = load_program("bench/calls.py")


def test_the_least_of_several_blocks_is_taken_and_cases_take_turns(monkeypatch):
    turns = []

    def seconds(call, count):
        turns.append(call)
        return 0.5 if len(turns) != 5 else 0.2

    monkeypatch.setattr(bench, "BLOCKS", 2)
    monkeypatch.setattr(bench, "seconds", seconds)
    assert bench.least({"one": abs, "other": min}) == {"one": pytest.approx(2e5), "other": 5e5}
    assert turns == [abs, min, abs, min, abs, min]


def test_every_case_is_measured(monkeypatch):
    x = pt.scalar("x")
    monkeypatch.setattr(bench, "regression", lambda: (engine.function([x], [x + 1.0]), 2.0))
    monkeypatch.setattr(bench, "BLOCKS", 1)
    monkeypatch.setattr(bench, "BLOCK_SECONDS", 1e-4)
    found = bench.measured(3)
    assert bench.BUDGETS.keys() < found.keys()
    assert all(found[name] > 0 for name in ("scalar", "by name", "output", "regression"))


def test_what_costs_more_than_its_budget_is_named():
    assert bench.missed(dict.fromkeys(bench.BUDGETS, 0.0), bench.BUDGETS) == []
    assert bench.missed(dict(bench.BUDGETS) | {"number": 0.2}, bench.BUDGETS) == ["number"]


def test_a_budget_is_larger_on_a_slower_machine(monkeypatch):
    found = dict(bench.BUDGETS) | {"number": 0.15, "np.empty(())": 0.2}
    monkeypatch.setattr(bench, "measured", lambda outputs: found)
    monkeypatch.setattr("sys.argv", ["calls.py", "--check"])
    assert bench.main() == 0
    found["number"] = 0.3
    assert bench.main() == 1
