"""The bench of calls: what it measures, and what is over a budget."""

from __future__ import annotations

import pytest

import engine
import engine.tensor as pt
from tests.tools.programs import load_program

bench = load_program("bench/calls.py")


def test_the_least_of_several_blocks_is_taken(monkeypatch):
    taken = iter([0.5, 0.4, 0.2, 0.3])
    monkeypatch.setattr(bench, "BLOCKS", 3)
    monkeypatch.setattr(bench, "seconds", lambda f, count, args, kwargs: next(taken))
    assert bench.microseconds(abs, 1.0) == pytest.approx(2e5)


def test_every_case_is_measured(monkeypatch):
    x = pt.scalar("x")
    monkeypatch.setattr(bench, "regression", lambda: (engine.function([x], [x + 1.0]), 2.0))
    monkeypatch.setattr(bench, "BLOCKS", 1)
    monkeypatch.setattr(bench, "BLOCK_SECONDS", 1e-4)
    found = bench.measured(3)
    assert bench.BUDGETS.keys() < found.keys()
    assert all(found[name] > 0 for name in ("scalar", "by name", "output", "regression"))


def test_what_costs_more_than_its_budget_is_named():
    assert bench.missed(dict.fromkeys(bench.BUDGETS, 0.0)) == []
    assert bench.missed(dict(bench.BUDGETS) | {"number": 0.2}) == ["number"]
