"""Small kernel calls become few, nothing fails earlier or reads other numbers than before."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import NO_REWRITES, Mode
from engine.lowering.merging import MAX_REPEATED, merge_kernels
from tests.engine.lowering.lowered import lower

AS_WRITTEN = Mode(optimizer=NO_REWRITES)


@pytest.fixture
def s():
    return pt.scalar("s")


@pytest.fixture
def x():
    return pt.vector("x")


def merged(inputs, outputs):
    """Lower a graph and merge its kernels; return the summaries and the table."""
    table = lower(inputs, outputs).table
    merge_kernels(table)
    return [step.op if step.kernel is None else step.kernel.summary for step in table.steps], table


def agree(inputs, outputs, *values):
    """Compile a graph as it is written and compare it with the reference."""
    found = engine.function(inputs, outputs, mode=AS_WRITTEN)(*values)
    expected = engine.function(inputs, outputs, mode="NUMPY")(*values)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_independent_scalars_are_one_kernel(s):
    found, _ = merged([s], [pt.exp(s), pt.sin(s), s + 1.0])
    assert found == ["straight line: exp, sin, add, 3 elements"]


def test_scalars_between_loops_are_one_kernel_as_late_as_they_are_wanted(s, x):
    total = pt.sum(x)
    outputs = [x * pt.exp(s), pt.sin(total), pt.cos(s), pt.sqr(total) + s]
    found, _ = merged([s, x], outputs)
    assert [name.split(":")[0] for name in found] == [
        "straight line",
        "elementwise mul",
        "sum",
        "straight line",
    ]
    agree([s, x], outputs, 0.3, np.arange(5.0))


def test_a_value_that_one_kernel_alone_needs_is_in_no_memory(s):
    found, table = merged([s], [pt.exp(pt.sin(s))])
    assert found == ["straight line: sin, exp, 1 elements"]
    assert [buffer.result for step in table.steps for buffer in (*step.reads, *step.writes)] == [0]


def test_elements_of_a_short_vector_stay_out_of_memory(s):
    v = pt.stack([s, pt.exp(s), s + 1.0])
    found, table = merged([s], [pt.sum(pt.sqr(v))])
    assert len(found) == 1
    assert found[0].endswith("1 elements")
    assert not any(table.addresses.values())
    agree([s], [pt.sum(pt.sqr(v)), v[1], v[::-1]], 0.7)


def test_loops_over_known_short_lengths_are_opened():
    x = pt.tensor("x", dtype="float64", shape=(3,))
    outputs = [pt.sum(pt.exp(x)), pt.max(x), x / pt.sum(x)]
    assert len(merged([x], outputs)[0]) == 1
    for value in ([1.0, 2.0, -3.0], [np.nan, 1.0, np.inf], [-0.0, 0.0, -0.0]):
        agree([x], outputs, np.array(value))


def test_long_loops_stay(x):
    y = pt.tensor("y", dtype="float64", shape=(100,))
    assert [name.split(":")[0] for name in merged([x, y], [pt.exp(x), pt.exp(y)])[0]] == [
        "elementwise exp"
    ] * 2


def test_a_step_that_may_fail_keeps_its_place(x):
    i, n = pt.lscalar("i"), pt.lscalar("n")
    index = pt.lvector("index")
    outputs = [x[index], n**i, pt.exp(x[0]), pt.sin(x[1])]
    f = engine.function([x, index, n, i], outputs, mode=AS_WRITTEN)
    with pytest.raises(IndexError):
        f(np.ones(3), [5], 2, -1)
    with pytest.raises(ValueError, match="negative"):
        f(np.ones(3), [1], 2, -1)
    agree([x, index, n, i], outputs, np.arange(3.0), np.array([2]), 2, 3)


def test_no_old_element_is_read_after_it_is_overwritten(s, x):
    v = pt.stack([s, 2.0 * s, 3.0 * s])
    w = v[1].inc(pt.exp(v[0]))
    u = w[0].set(w[1] * w[2])
    for mode in (AS_WRITTEN, Mode()):
        f = engine.function([s], [u, pt.sum(v), w[1] + pt.sum(u)], mode=mode)
        expected = engine.function([s], [u, pt.sum(v), w[1] + pt.sum(u)], mode="NUMPY")
        for a, b in zip(f(0.3), expected(0.3), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)


def test_an_element_whose_place_is_found_in_a_call_is_read_from_memory(s):
    i = pt.lscalar("i")
    v = pt.stack([s, pt.exp(s), pt.sin(s)])
    outputs = [v[i] + 1.0, pt.sqr(v[i]), v[i].set(s + 5.0)]
    for position in (0, 1, -1):
        agree([s, i], outputs, 0.4, position)


def test_registers_are_stored_in_merged_kernels(x):
    outputs = [pt.shape_i(x, 0), pt.shape_i(x, 0) * 2, pt.exp(pt.cast(pt.shape_i(x, 0), "float64"))]
    assert len(merged([x], outputs)[0]) == 1
    agree([x], outputs, np.zeros(4))


def test_a_kernel_that_is_called_often_stays_apart(s):
    value, often = s, []
    for _ in range(MAX_REPEATED):
        value = pt.exp(value)
        often.append(value)
    found, table = merged([s], often)
    assert found == ["elementwise exp: (float64) -> (float64), 0 loops"] * MAX_REPEATED
    assert len({step.kernel for step in table.steps}) == 1


def test_merged_kernels_have_a_limit(s):
    outputs = [s + float(j) for j in range(1, 251)]
    found, _ = merged([s], outputs)
    assert [int(name.split()[-2]) for name in found] == [50] * 5
    agree([s], outputs[::50], 0.5)


def test_scalars_in_a_loop_are_merged_in_its_body(s):
    def step(state, other):
        return pt.sin(state) + other, pt.exp(other) * state, pt.sqr(state)

    (states, others, squares), _ = engine.scan(step, outputs_info=[s, s * 2.0, None], n_steps=6)
    agree([s], [states, others, squares, states[-1] + others[-2]], 0.3)


def test_scalars_of_all_dtypes_are_merged():
    inputs = [pt.scalar(dtype=dtype) for dtype in ("float64", "float32", "int64", "int32", "bool")]
    values = [np.array(3, dtype=v.type.dtype) for v in inputs]
    outputs = [a * b for a in inputs for b in inputs] + [pt.eq(a, 3) for a in inputs]
    assert len(merged(inputs, outputs)[0]) < 3
    agree(inputs, outputs, *values)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nothing_is_called_for_arrays_that_are_known_to_be_empty(count):
    x, y = pt.vector("x", shape=(0,)), pt.vector("y")
    outputs = [pt.sin(x), x + 1.0, x[:0].inc(2.0)][:count]
    f = engine.function([x, y], [*outputs, y * 2.0, pt.sum(x)])
    *empty, twice, total = f(np.zeros(0), np.ones(2))
    assert [array.shape for array in empty] == [(0,)] * count
    assert (twice.tolist(), total) == ([2.0, 2.0], 0.0)
    alone = engine.function([x], outputs)
    assert [array.shape for array in alone(np.zeros(0))] == [(0,)] * count


def test_equal_graphs_are_merged_alike():
    def graph():
        i, j = pt.scalar("i", dtype="int64"), pt.scalar("j", dtype="int64")
        v, w = (pt.vector(name, shape=(4,)) for name in "vw")
        chosen = pt.exp(v)[i] * w
        return [i, j, v, w], [pt.exp(chosen[j]), pt.sqr(chosen), pt.sin(chosen[i] + 1.0)]

    # The addresses of buffers, and so the order of sets of them, differ from one lowering to the next.
    kept = [merged(*graph()) for _ in range(20)]
    assert len({tuple(found) for found, _ in kept}) == 1
