"""Loops over one range become one loop where they share arrays, and give what they gave apart."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import NO_REWRITES, Mode
from engine.lowering.joining import MAX_ARRAYS, join_loops
from tests.engine.lowering.lowered import lower
from tests.engine.special_values import special

AS_WRITTEN = Mode(optimizer=NO_REWRITES)


@pytest.fixture
def a():
    return pt.vector("a")


@pytest.fixture
def b():
    return pt.vector("b")


def joined(inputs, outputs):
    """Lower a graph and join its loops; return the kernels' names without types, and the table."""
    table = lower(inputs, outputs).table
    join_loops(table)
    names = [step.op if step.kernel is None else step.kernel.summary for step in table.steps]
    return [name.split(":")[0] for name in names], table


def agree(inputs, outputs, *values, mode=AS_WRITTEN, rtol=1e-12):
    """Compile a graph and compare it with the reference."""
    with np.errstate(all="ignore"):
        expected = engine.function(inputs, outputs, mode="NUMPY", on_unused_input="ignore")(*values)
    found = engine.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*values)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol)


def test_several_reductions_of_shared_arrays_are_one_loop(a, b):
    outputs = [pt.sum(a), pt.sum(b), pt.sum(a * b)]
    assert joined([a, b], outputs)[0] == ["sum, sum, sum and 0 arrays of mul"]
    agree([a, b], outputs, np.linspace(-1, 2, 5000), np.linspace(3, 5, 5000))


def test_an_array_that_one_loop_passes_on_is_in_no_memory(a):
    r = pt.exp(a)
    found, table = joined([a], [pt.sum(r), pt.sum(pt.sqr(r))])
    assert found == ["sum, sum and 0 arrays of exp, sqr"]
    assert all(buffer.result is not None for step in table.steps for buffer in step.writes)


def test_an_array_that_something_else_needs_is_stored(a, b):
    r = pt.exp(a)
    found, _ = joined([a], [pt.sum(r), r, pt.sqr(r)])
    assert found == ["sum and 2 arrays of exp, sqr"]
    agree([a], [pt.sum(r), r, pt.sqr(r)], np.linspace(-2, 2, 1000))


def test_a_loop_that_needs_the_others_sum_stays_apart(a):
    total = pt.sum(a)
    outputs = [a / total, pt.sum(pt.sqr(a - total))]
    found, _ = joined([a], outputs)
    assert found[0] == "sum"
    assert len(found) > 1
    agree([a], outputs, np.linspace(0, 1, 1000))


def test_loops_without_a_shared_array_stay_apart():
    x, y = (pt.tensor(name, dtype="float64", shape=(100,)) for name in "xy")
    assert len(joined([x, y], [pt.exp(x), pt.sin(y)])[0]) == 2


def test_matrices_and_their_flat_views_are_one_range():
    m = pt.matrix("m")
    outputs = [pt.exp(m), pt.sum(m), pt.sqr(m.reshape((-1,)))]
    assert len(joined([m], outputs)[0]) <= 2
    agree([m], outputs, np.arange(12.0).reshape(3, 4))


def test_strided_and_repeated_inputs_are_read_as_before(a):
    s = pt.scalar("s")
    m = pt.matrix("m")
    column = m[:, 1]
    outputs = [column * s, pt.sum(column), pt.sum(column * s + m[:, 0]), a[::-1] + a, pt.sum(a[::-1] * a)]
    values = [np.arange(1.0, 2001.0), np.array(0.5), np.random.default_rng(1).normal(size=(700, 3))]
    agree([a, s, m], outputs, *values)


def test_an_overwritten_array_is_read_before(a, b):
    v = pt.exp(a)
    w = v[2:].set(b[2:])
    outputs = [pt.sum(v), w, pt.sum(w * a), pt.sqr(v) + w]
    values = [np.linspace(0, 1, 500), np.linspace(1, 2, 500)]
    for mode in (AS_WRITTEN, Mode()):
        agree([a, b], outputs, *values, mode=mode)


def test_errors_come_in_the_order_of_the_graph(a):
    i, n = pt.lvector("i"), pt.lvector("n")
    g = a[i]
    outputs = [pt.sum(g), n ** (n - 5), pt.sum(pt.exp(g)), g * 2.0]
    f = engine.function([a, i, n], outputs, mode=AS_WRITTEN)
    good, bad = np.zeros(3, dtype=np.int64), np.full(3, 9)
    with pytest.raises(IndexError):
        f(np.ones(3), bad, good)
    with pytest.raises(ValueError, match="negative"):
        f(np.ones(3), good, good)


def test_equal_groups_are_one_kernel():
    inputs = [pt.vector(f"x{k}") for k in range(5)]
    outputs = [y for x in inputs for y in (pt.sum(pt.sqr(x)), pt.exp(x))]
    _, table = joined(inputs, outputs)
    assert len(table.steps) == 5
    assert len({step.kernel for step in table.steps}) == 1
    agree(inputs, outputs, *[np.linspace(0, k, 100 + k) for k in range(5)])


def test_a_joined_loop_that_costs_more_to_compile_is_not_made(a):
    others = [pt.vector(f"x{k}") for k in range(30)]
    half = [pt.sum(pt.exp(x)) for x in others[::2]] + [pt.sum(x) for x in others[1::2]]
    names, _ = joined([a, *others], [*half, pt.sum(pt.exp(a)), pt.sum(a)])
    assert names.count("sum of exp") == names.count("sum") == 16


def test_joined_loops_have_a_limit(a):
    outputs = [a * float(k) for k in range(2, 60)]
    _, table = joined([a], outputs)
    assert max(len(step.writes) for step in table.steps) == MAX_ARRAYS - 1
    agree([a], outputs, np.arange(1000.0))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
@pytest.mark.parametrize("size", [0, 1, 7, 5000])
def test_all_kinds_of_reductions_agree_with_numpy(dtype, size):
    x = pt.vector("x", dtype=dtype)
    y = pt.switch(pt.eq(x, 0), x, x)
    outputs = [pt.sum(y), pt.prod(y), pt.all(pt.neq(x, 0)), pt.any(pt.neq(x, 0)), y]
    value = (np.arange(size) % 2).astype(dtype) + np.array(size < 100, dtype)
    agree([x], outputs, value.astype(dtype), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_special_values_pass_through_joined_loops(dtype):
    x = pt.vector("x", dtype=dtype)
    value = np.resize(special(dtype), 300).astype(dtype)
    agree([x], [pt.sqr(x), pt.sum(x * 0), pt.neg(pt.sqr(x)), pt.all(pt.isnan(x)), pt.sum(pt.isnan(x))], value)


def test_loops_in_a_scan_are_joined_in_its_body(a):
    def step(state, other):
        r = pt.sin(state) * other
        return r, pt.sum(r), pt.sum(pt.sqr(r) + state), pt.exp(r) - state

    (states, sums, squares, last), _ = engine.scan(
        step, outputs_info=[a, None, None, None], non_sequences=[a * 0.5], n_steps=5
    )
    agree([a], [states, sums, squares, last[-1], pt.sum(states[-1])], np.linspace(0, 1, 40))
