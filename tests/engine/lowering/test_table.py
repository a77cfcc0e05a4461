"""The table of a program puts what is lowered into the right region and stage."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.lowering.kernels.elementwise import copy
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.steps import Check, region_of
from engine.lowering.table import Table

CHECK = Check("rows", "an Op", ("about",))
COPY = copy(NestOperand("float64", (False,)))


@pytest.fixture
def table():
    return Table()


def calls(table, reads, writes):
    table.call(COPY, reads, writes, "copy", (table.constant(1),))
    return table.steps[-1].stage


def test_arithmetic_that_no_pass_changes_goes_around_the_loop(table):
    length = table.new(0)
    loop = table.begin_loop(0, length)
    with table.region(loop.floor):
        twice = table.compute("ADD", length, length)
        moved = table.compute("ADD", loop.counter, length)
    assert table.stage((twice,)) == 0
    assert table.stage((moved,)) == loop.first
    assert [i.name for i in table.arithmetic[0]] == ["ADD"]
    assert table.compute("ADD", length, length) == twice


def test_what_may_fail_stays_in_the_loop_before_its_first_pass(table):
    first, second = table.new(0), table.new(0)
    loop = table.begin_loop(0, first)
    with table.region(loop.floor):
        table.same(first, second, CHECK)
    assert 0 not in table.arithmetic
    assert [i.name for i in table.arithmetic[loop.floor]] == ["SAME"]


def test_what_is_found_equal_in_a_loop_is_not_so_around_it(table):
    first, second, third = (table.new(0) for _ in range(3))
    table.same(first, second, CHECK)
    loop = table.begin_loop(0, first)
    with table.region(loop.floor):
        table.same(second, third, CHECK)
        assert table.canonical(third) == first
        inner = table.begin_loop(loop.first, first)
        with table.region(inner.floor):
            assert table.canonical(third) == first
        with table.region(0):
            assert table.canonical(second) == first
    assert table.canonical(third) == third
    assert table.canonical(second) == first


def test_memory_of_a_known_size_is_there_before_the_first_pass(table):
    length = table.new(0)
    loop = table.begin_loop(0, length)
    with table.region(loop.floor):
        known = table.buffer("float64", (length,), loop.first)
        unknown = table.buffer("float64", (loop.counter,), loop.first)
    assert (known.stage, known.buffer.stage) == (loop.first, loop.floor)
    assert (unknown.stage, unknown.buffer.stage) == (loop.first, loop.first)


def test_what_a_kernel_writes_is_there_in_the_region_that_it_is_lowered_in(table):
    length = table.new(0)
    given = table.buffer("float64", (length,), 0)
    loop = table.begin_loop(0, length)
    with table.region(loop.floor):
        once = table.buffer("float64", (length,), 0)
        assert once.stage == loop.floor
        assert calls(table, [given], [once]) == loop.floor


def test_a_loop_reads_and_writes_what_is_around_it_and_its_body_does(table):
    length = table.new(0)
    given, result = (table.buffer("float64", (length,), 0) for _ in range(2))
    loop = table.begin_loop(0, length)
    with table.region(loop.floor):
        inside = table.buffer("float64", (length,), loop.first)
        inner = table.begin_loop(loop.first, length)
        with table.region(inner.floor):
            calls(table, [given, inside], [replace(result, stage=inner.first)])
        table.end_loop(inner, "inner")
    table.end_loop(loop, "outer")
    by_op = {step.op: step for step in table.steps}
    assert by_op["inner"].reads == (given.buffer, inside.buffer)
    assert by_op["outer"].reads == (given.buffer,)
    assert by_op["outer"].writes == (result.buffer,)
    assert region_of(by_op["inner"].stage) == region_of(loop.floor)
    assert by_op["outer"].stage == 0


def test_a_loop_that_nothing_needs_is_forgotten_with_all_in_it(table):
    length = table.new(0)
    around = table.buffer("float64", (length,), 0)
    calls(table, [], [around])
    loop = table.begin_loop(0, length)
    with table.region(loop.floor):
        calls(table, [], [table.buffer("float64", (length,), loop.first)])
    table.drop_loop(loop)
    assert [step.stage for step in table.steps] == [0]
