"""Intern tables: one object per key, for every thread, and nothing kept alive."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.graph import (
    FrozenApply,
    FrozenConstant,
    FrozenFunctionGraph,
    NominalVariable,
    interning,
)
from engine.graph.interning import SMALLEST_COPY, InternedValues, InternTable
from tests.engine.graph.small_ops import PLAIN, Combine, chain, combine, constant

ROOT = Path(__file__).parents[3]
MANY = 1_000_000 if os.environ.get("CACHEGRAPH_STRESS") == "full" else 200_000


class Thing:
    """An object that can be referred to weakly."""


class Word:
    """Equal to every word of the same text."""

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return self.text == other.text

    def __hash__(self):
        return hash(self.text)


def test_the_first_object_under_a_key_is_the_one_that_all_get():
    table, first = InternTable(), Thing()
    assert table.get(1) is None
    assert table.add(1, first) is first
    assert table.add(1, Thing()) is first
    assert table.get(1) is first
    assert len(table) == 1


def test_an_object_that_nobody_holds_is_gone_at_once():
    table = InternTable()
    table.add(1, Thing())
    assert table.get(1) is None
    assert len(table) == 0


def test_an_entry_whose_object_is_being_freed_is_replaced_and_its_callback_leaves_the_new_one():
    table = InternTable()
    old = table.add(1, Thing())
    entry = table._entries[1]
    del old
    table._entries[1] = entry  # the state between the end of the object and the callback
    replacement = Thing()
    assert table.get(1) is None
    assert table.add(1, replacement) is replacement
    table._forget(entry)
    assert table.get(1) is replacement


def test_a_table_that_was_large_shrinks_when_it_is_emptied():
    table = InternTable()
    things = [table.add(number, Thing()) for number in range(8 * SMALLEST_COPY)]
    large = sys.getsizeof(table._entries)
    kept = things[:10]
    del things
    assert len(table) == 10
    assert sys.getsizeof(table._entries) < large / 8
    assert [table.get(number) for number in range(10)] == kept


def test_of_equal_values_the_first_that_lives_stands_for_all():
    canonical = InternedValues()
    first = Word("a")
    assert canonical(first) is first
    assert canonical(Word("a")) is first
    other = Word("b")
    assert canonical(other) is other
    del first
    again = Word("a")
    assert canonical(again) is again


def in_threads(count, work):
    """Return the results of `work(n)` in `count` threads that start together."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(number):
        barrier.wait()
        results[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return results


def test_threads_that_freeze_the_same_graph_get_the_same_objects():
    def work(number):
        x = PLAIN("x")
        out = x
        for step in range(300):
            out = Combine("threaded", float(step))(out, constant(float(step)), x)
        return FrozenFunctionGraph.from_io([x], [out])

    graphs = in_threads(6, work)
    assert all(graph is graphs[0] for graph in graphs)
    assert len({id(node) for graph in graphs for node in graph.nodes}) == 300


def test_threads_that_make_and_drop_the_same_nodes_never_see_two_at_once():
    x = NominalVariable(0, PLAIN)

    def work(number):
        for step in range(2000):
            first = FrozenApply(combine, (x, FrozenConstant(PLAIN, float(step % 5))), (PLAIN,))
            second = FrozenApply(combine, (x, FrozenConstant(PLAIN, float(step % 5))), (PLAIN,))
            if first is not second:
                return step
        return None

    assert in_threads(4, work) == [None] * 4


MEASURE = """
import gc, sys, tracemalloc
from engine.graph import FrozenApply, NominalVariable, frozen_nodes
from tests.engine.graph.small_ops import PLAIN, follow

def build(length):
    x = NominalVariable(0, PLAIN)
    out = x
    for _ in range(length):
        (out,) = FrozenApply(follow, (out,), (PLAIN,)).outputs
    return out

count = int(sys.argv[1])
build(100)
gc.collect()
gc.disable()  # scanning a million nodes repeatedly takes most of the time
tracemalloc.start()
before = tracemalloc.get_traced_memory()[0]
kept = build(count)
full = tracemalloc.get_traced_memory()[0] - before
assert len(frozen_nodes._nodes) >= count
del kept
gc.collect()
print(full, tracemalloc.get_traced_memory()[0] - before)
"""


@pytest.mark.parametrize("count", [20_000, pytest.param(MANY, marks=pytest.mark.stress)])
def test_building_and_dropping_many_nodes_returns_the_memory(count):
    """In a process of its own: other tests' nodes have entries in the table."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(count)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    full, left = map(int, done.stdout.split())
    assert full > 300 * count
    assert left < full / 100


def test_a_chain_frozen_in_pieces_is_the_chain_frozen_at_once():
    x = PLAIN("x")
    whole = FrozenFunctionGraph.from_io([x], [chain(x, 10)])
    half = FrozenFunctionGraph.from_io([x], [chain(x, 5)])
    again = half.bind(half.bind([x]))
    assert FrozenFunctionGraph.from_io([x], again) is whole


def test_a_thing_that_outlives_the_module_is_forgotten_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """When a process ends, modules lose their globals first."""
    table: InternTable[Thing] = InternTable()
    thing = table.add("thing", Thing())
    for name in ("_WeakEntry", "SMALLEST_COPY", "weakref"):
        monkeypatch.setattr(interning, name, None)
    del thing
    assert len(table) == 0
    assert capsys.readouterr().err == ""
