"""Scans as loops of a program, against their numpy reference: states, outputs, steps and failures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import NO_REWRITES, Mode
from engine.graph.reference import evaluate
from engine.inner import Composite, OpFromGraph, Scan, ScanInfo
from engine.runtime import execution
from engine.scalar import add, apply_scalar_op, mul, scalar_type
from engine.tensor import Elemwise
from engine.tensor.blockwise import vectorize_graph
from tests.engine.lowering.generated_scans import made_scan
from tests.engine.lowering.lowered import lower

NOT_REWRITTEN = Mode("numba", NO_REWRITES)

pytestmark = pytest.mark.usefixtures("kernels_once")


def filled(shape: Any, dtype: Any = float, **options: Any) -> np.ndarray:
    """Return what np.empty gives, but without a number that could be right by chance."""
    array = np.ndarray(shape, dtype, **options)
    array.fill({"f": np.nan, "b": True, "u": 255}.get(array.dtype.kind, -(2**30)))
    return array


@pytest.fixture(autouse=True)
def memory_without_numbers(monkeypatch):
    """Fill the memory that programs write to."""
    monkeypatch.setattr(execution, "np", SimpleNamespace(**vars(np) | {"empty": filled}))


def inputs_for(arguments: Sequence[Any]) -> list[Any]:
    """Return variables of any length for arrays."""
    arrays = map(np.asarray, arguments)
    return [pt.tensor(None, a.dtype, (None,) * a.ndim) for a in arrays]


def agree(make, *arguments: Any, mode: Any = None) -> list[Any]:
    """Check that the compiled outputs of `make` are those of the reference, twice, for `arguments`."""
    variables = inputs_for(arguments)
    made = make(*variables)
    outputs = list(made) if isinstance(made, list | tuple) else [made]
    f = engine.function(variables, outputs, mode=mode)
    due = evaluate(variables, outputs, arguments)
    for _ in range(2):
        found = f(*arguments)
        for one, other in zip(found, due, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-12)
    return found


def scan(inputs, outputs, info):
    """Return the outputs of a Scan, always as a list."""
    op = Scan(inputs, outputs, info)
    return lambda *arguments: op(*arguments, return_list=True)


def cumulative(keep=None):
    x, total, a = pt.dscalar("x"), pt.dscalar("total"), pt.dscalar("a")
    return scan([x, total, a], [total + a * x, pt.exp(total) * x], ScanInfo(1, ((-1,),), (keep,), 1, 1))


@pytest.mark.parametrize("keep", [None, 1])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_state_and_a_mapped_output(keep, steps):
    agree(cumulative(keep), steps, np.arange(5.0), [0.5], 0.1)


@pytest.mark.parametrize("keep", [None, 1, 2, 3])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 9])
def test_a_state_read_three_rows_back(keep, steps):
    first, last = pt.lscalar(), pt.lscalar()
    agree(scan([first, last], [first + last], ScanInfo(0, ((-3, -1),), (keep,), 0, 0)), steps, [0, 1, 2])


@pytest.mark.parametrize("keeps", [(None, None), (2, 1), (1, None)])
def test_states_that_read_each_other(keeps):
    before, x, y = pt.dvector(), pt.dvector(), pt.dvector()
    info = ScanInfo(0, ((-2, -1), (-1,)), keeps, 0, 0)
    make = scan([before, x, y], [y, x + before * y], info)
    agree(make, 6, [[1.0, 2.0], [0.5, 0.25]], [[0.1, 0.2]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_every_dtype_is_carried(dtype):
    x, state = pt.tensor(None, dtype, ()), pt.tensor(None, dtype, ())
    new = state | x if dtype == "bool" else state * 2 + x
    new = new if new.type.dtype == dtype else pt.cast(new, dtype)
    agree(
        scan([x, state], [new, state], ScanInfo(1, ((-1,),), (None,), 1, 0)),
        3,
        np.ones(3, dtype),
        np.zeros(1, dtype),
    )


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_rows_of_more_dimensions(shape):
    row, state = (pt.tensor(None, "float64", (None,) * len(shape)) for _ in range(2))
    make = scan(
        [row, state],
        [pt.tanh(state + row), pt.sum(state * row, axis=0)],
        ScanInfo(1, ((-1,),), (None,), 1, 0),
    )
    rows = np.linspace(-1, 1, 5 * int(np.prod(shape))).reshape(5, *shape)
    agree(make, 5, rows, rows[:1])


def test_a_product_of_matrices_is_carried():
    m, state = pt.dmatrix(), pt.dmatrix()
    values = np.linspace(-0.5, 0.5, 400).reshape(20, 20)
    for keep in (None, 1):
        agree(
            scan([state, m], [pt.dot(m, state) + state.T], ScanInfo(0, ((-1,),), (keep,), 0, 1)),
            4,
            values[None],
            values,
        )


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::-1],
        lambda x: x[1::2],
        lambda x: x.dimshuffle(1, 0),
        lambda x: x[:, ::-1],
        lambda x: x[::-1, 1:3],
    ],
)
def test_sequences_and_initial_rows_may_be_views(view):
    row, state = pt.dvector(), pt.dvector()
    op = Scan([row, state], [state * 0.5 + row, row * 2], ScanInfo(1, ((-1,),), (None,), 1, 0))
    agree(lambda x: op(2, view(x), view(x)[:1], return_list=True), np.arange(16.0).reshape(4, 4))


def test_outputs_that_are_inputs_constants_or_the_same_variable():
    x, y, state = pt.dvector(), pt.dvector(), pt.dvector()
    new = state * x
    outputs = [new, new, x, y, state, pt.constant(np.ones(3)), pt.constant(2.5), new]
    make = scan([x, state, y], outputs, ScanInfo(1, ((-1,),), (None,), 7, 1))
    rows = np.arange(6.0).reshape(2, 3)
    agree(make, 2, rows, rows[:1] + 1, np.ones(3) * 7)


def test_outputs_that_are_views():
    x, state = pt.dmatrix(), pt.dmatrix()
    outputs = [state.T + x, state.T, x[::-1], x.reshape((-1,)), (x + state).T, pt.sum(x), x[0, 0]]
    make = scan([x, state], outputs, ScanInfo(1, ((-1,),), (None,), 6, 0))
    rows = np.arange(18.0).reshape(2, 3, 3)
    agree(make, 2, rows, rows[:1] + 1)


def test_a_state_of_one_row_that_is_passed_on_unchanged():
    state, other = pt.dvector(), pt.dvector()
    make = scan([state, other], [state, other + state], ScanInfo(0, ((-1,), (-1,)), (1, 1), 0, 0))
    agree(make, 3, [[1.0, 2.0]], [[3.0, 4.0]])


@pytest.mark.parametrize("bound", [-1.0, 3.0, 1000.0])
@pytest.mark.parametrize("keep", [None, 1])
def test_a_loop_ends_behind_the_step_that_says_so(bound, keep):
    x, total, limit = pt.dscalar(), pt.dscalar(), pt.dscalar()
    new = total + x
    info = ScanInfo(1, ((-1,),), (keep,), 1, 1, is_while=True)
    agree(scan([x, total, limit], [new, new * 2, new > limit], info), 6, np.arange(6.0), [0.0], bound)
    agree(scan([x, total, limit], [new, new * 2, new > limit], info), 0, np.arange(6.0), [0.0], bound)


def test_a_condition_may_be_a_row_of_a_sequence_a_state_or_a_constant():
    stop, state = pt.tensor(None, "bool", ()), pt.tensor(None, "bool", ())
    info = ScanInfo(1, ((-1,),), (1,), 1, 0, is_while=True)
    flags = np.array([False, False, True, False])
    for condition in (stop, state, pt.constant(False), pt.constant(True)):
        agree(scan([stop, state], [stop, stop, condition], info), 4, flags, flags[:1])


def test_what_is_done_with_the_steps_made_may_depend_on_their_number():
    x, limit = pt.dscalar(), pt.dscalar()
    op = Scan([x, limit], [x * 2, x > limit], ScanInfo(1, (), (), 1, 1, is_while=True))

    def make(x, limit):
        mapped = op(x.shape[0], x, limit)
        return [pt.sum(mapped), mapped * pt.arange(mapped.shape[0]), mapped.shape[0]]

    agree(make, np.arange(5.0), 2.5)


def test_only_the_shape_is_asked_of_an_output():
    def make(n, x, start, a):
        total, mapped = cumulative()(n, x, start, a)
        return [total.shape[0] + mapped.shape[0]]

    agree(make, 3, np.arange(4.0), [0.5], 0.1)
    variables = inputs_for((3, np.arange(4.0), [0.5], 0.1))
    assert lower(variables, make(*variables)).table.steps[0].op == "store"


def test_states_that_nothing_reads_are_not_computed():
    x, y = pt.dscalar(), pt.dscalar()
    op = Scan([x, y], [pt.exp(x), pt.sin(y)], ScanInfo(0, ((-1,), (-1,)), (None, None), 0, 0))
    variables = [pt.lscalar(), pt.dvector(), pt.dvector()]
    summaries = [
        step.kernel.summary
        for step in lower(variables, [op(*variables)[1]]).table.steps
        if step.kernel is not None
    ]
    assert not any("exp" in summary for summary in summaries)
    agree(lambda *v: [op(*v)[1]], 3, [1.0], [2.0])


def test_rows_may_be_taken_by_a_state_or_a_sequence():
    i, position, table = pt.lscalar(), pt.lscalar(), pt.dmatrix()
    outputs = [(position + i) % 4, table[position], table[i, 1:], table[position, i]]
    make = scan([i, position, table], outputs, ScanInfo(1, ((-1,),), (None,), 3, 1))
    agree(make, 4, np.array([1, 2, 0, 1]), np.array([3]), np.arange(16.0).reshape(4, 4))


def test_lengths_may_change_from_step_to_step():
    i, x = pt.lscalar(), pt.dvector()
    part = pt.exp(x[:i])
    outputs = [pt.sum(part), pt.sum(pt.dot(part, x[:i])) + pt.max(x), pt.max(pt.concatenate([part, x]))]
    make = scan([i, x], outputs, ScanInfo(1, (), (), 3, 1))
    agree(make, 5, np.array([1, 4, 2, 0, 5]), np.arange(6.0))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_rows_whose_length_only_a_step_knows(steps):
    i, x = pt.lscalar(), pt.dmatrix()
    make = scan([i, x], [x[:i] * 2, x[i:, :2]], ScanInfo(1, (), (), 2, 1))
    if steps:
        agree(make, steps, np.array([2, 2, 2]), np.arange(12.0).reshape(4, 3))
    else:
        variables = [pt.lscalar(), pt.lvector(), pt.dmatrix()]
        f = engine.function(variables, make(*variables))
        for _ in range(2):
            assert [row.shape for row in f(0, np.array([2]), np.ones((4, 3)))] == [(0, 0, 3), (0, 0, 2)]
            f(1, np.array([2]), np.ones((4, 3)))


def test_what_follows_may_use_rows_whose_length_only_a_step_knew():
    i, x = pt.lscalar(), pt.dvector()
    op = Scan([i, x], [x[:i] * 2], ScanInfo(1, (), (), 1, 1))

    def make(i, x):
        rows = op(2, i, x)
        return [pt.sum(rows, axis=0) + 1, rows.shape[1], rows[::-1]]

    agree(make, np.array([3, 3]), np.arange(5.0))


def test_rows_of_changing_lengths_are_refused():
    i, x = pt.lscalar(), pt.dvector()
    op = Scan([i, x], [x[:i] * 2], ScanInfo(1, (), (), 1, 1), name="cut")
    variables = [pt.lvector(), pt.dvector()]
    f = engine.function(variables, op(2, *variables))
    f([3, 3], np.arange(5.0))
    words = "Scan.*: mapped output 0: a step gives a row of length 2 along dim 0, the rows before it have"
    words += " length 3"
    with pytest.raises(ValueError, match=words):
        f([3, 2], np.arange(5.0))
    np.testing.assert_array_equal(f([1, 1], np.arange(5.0)), [[0], [0]])


def test_a_state_of_changing_lengths_is_refused():
    state, x = pt.dvector(), pt.dvector()
    op = Scan([state, x], [x * 2], ScanInfo(0, ((-1,),), (None,), 0, 1))
    variables = [pt.lscalar(), pt.dmatrix(), pt.dvector()]
    f = engine.function(variables, op(*variables))
    words = "state 0: a step gives a row of length 3 along dim 0, the rows before it have length 2"
    with pytest.raises(ValueError, match=words):
        f(1, np.ones((1, 2)), np.ones(3))
    np.testing.assert_array_equal(f(0, np.ones((1, 2)), np.ones(3)), np.ones((1, 2)))


def test_what_a_scan_cannot_do_is_said_with_its_numbers():
    variables = [pt.lscalar(), pt.dvector(), pt.dvector(), pt.dscalar()]
    f = engine.function(variables, cumulative()(*variables), name="running")
    x = np.arange(3.0)
    for arguments, words in [
        ((-2, x, [1.0], 1.0), "Calling running: Scan: n_steps is -2; it must be 0 or more"),
        ((4, x, [1.0], 1.0), "Calling running: Scan: sequence 0 has 3 rows, 4 steps are to be done"),
        (
            (1, x, [1.0, 2.0], 1.0),
            "Calling running: Scan: state 0 is read from 1 rows before.*; 2 were given",
        ),
    ]:
        with pytest.raises(ValueError, match=words):
            f(*arguments)
    assert f(3, x, [1.0], 1.0)[0].tolist() == [1, 1, 2, 4]


def test_what_fails_within_a_step_is_said_as_outside():
    i, x = pt.lscalar(), pt.dvector()
    op = Scan([i, x], [x[i]], ScanInfo(1, (), (), 1, 1))
    variables = [pt.lscalar(), pt.lvector(), pt.dvector()]
    f = engine.function(variables, op(*variables))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
        f(2, [0, 7], np.ones(3))
    assert f(1, [0, 7], np.ones(3)).tolist() == [1]


def test_what_would_fail_in_a_step_fails_only_if_one_is_made():
    x, y, z = pt.dscalar(), pt.dvector(), pt.dvector()
    op = Scan([x, y, z], [x * pt.sum(y + z), x + y[7]], ScanInfo(1, (), (), 2, 2))
    variables = [pt.lscalar(), pt.dvector(), pt.dvector(), pt.dvector()]
    f = engine.function(variables, op(*variables), mode=NOT_REWRITTEN)
    assert [len(rows) for rows in f(0, np.ones(1), np.ones(3), np.ones(4))] == [0, 0]
    with pytest.raises((ValueError, IndexError)):
        f(1, np.ones(1), np.ones(3), np.ones(4))
    with pytest.raises(IndexError, match="index 7"):
        f(1, np.ones(1), np.ones(3), np.ones(3))


def test_what_no_step_changes_is_computed_once():
    x, a = pt.dscalar(), pt.dvector()
    op = Scan([x, a], [x * pt.sum(pt.exp(a))], ScanInfo(1, (), (), 1, 1))
    variables = [pt.lscalar(), pt.dvector(), pt.dvector()]
    table = lower(variables, [op(*variables)]).table
    stages = {step.kernel.summary: step.stage for step in table.steps if step.kernel is not None}
    ((loop,),) = ([step.loop for step in table.steps if step.loop is not None],)
    assert sorted(stage - loop.floor for stage in stages.values() if stage >= loop.floor) == [0, 1]
    agree(op, 3, np.arange(3.0), np.arange(4.0))


def test_what_several_outputs_are_computed_with_is_there_in_every_step():
    m, a, x = pt.dmatrix(), pt.dvector(), pt.dscalar()
    sign, logdet = pt.linalg.slogdet(m)
    solved = pt.linalg.solve(m, pt.stack([a, a * 2], axis=1))
    fused = Scan([x, m, a], [logdet, solved[1], pt.linalg.solve(m, a) * sign], ScanInfo(1, (), (), 3, 2))
    agree(lambda *v: fused(*v), 3, np.arange(3.0), np.eye(2) + 1, np.arange(2.0) + 1, mode=NOT_REWRITTEN)


def test_outputs_of_one_kernel_are_written_in_the_same_step():
    p, q = (scalar_type("float64").make_variable() for _ in range(2))
    both = Elemwise(Composite([p, q], [apply_scalar_op(add, p, q), apply_scalar_op(mul, p, q)]))
    a, b, x = pt.dvector(), pt.dvector(), pt.dscalar()
    total, product = both(a, b)
    op = Scan([x, a, b], [product, pt.sum(total) * x], ScanInfo(1, (), (), 2, 2))
    agree(lambda *v: op(*v), 3, np.arange(3.0), np.arange(4.0), np.ones(4) * 3, mode=NOT_REWRITTEN)


def test_systems_of_equations_are_solved_in_every_step():
    m, state = pt.dmatrix(), pt.dvector()
    factor = pt.linalg.cholesky(m)
    new = pt.linalg.solve_triangular(factor, state, lower=True)
    make = scan([m, state], [new, factor], ScanInfo(1, ((-1,),), (None,), 1, 0))
    matrices = np.array([np.eye(3) * i + 0.5 for i in (1, 2, 3)])
    agree(make, 3, matrices, np.ones((1, 3)))
    variables = [pt.lscalar(), pt.tensor(None, "float64", (None,) * 3), pt.dmatrix()]
    f = engine.function(variables, make(*variables))
    assert all(np.isnan(found[-1]).all() for found in f(3, -matrices, np.ones((1, 3))))


def inner_product():
    """Return one step of an outer Scan: the last row of a Scan over the row of a sequence."""
    y, state, a = pt.dscalar(), pt.dscalar(), pt.dscalar()
    return Scan([y, state, a], [state * a + y, state - y], ScanInfo(1, ((-1,),), (None,), 1, 1))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_scan_within_a_scan(steps):
    inner = inner_product()
    row, total, a = pt.dvector(), pt.dvector(), pt.dscalar()
    trace, mapped = inner(pt.shape_i(row, 0), row, total[-1:], a)
    op = scan([row, total, a], [trace[1:] + total, trace, mapped * 2], ScanInfo(1, ((-1,),), (None,), 2, 1))
    agree(op, steps, np.arange(12.0).reshape(3, 4), np.ones((1, 4)), 0.5)


def test_a_scan_within_a_scan_whose_number_of_steps_changes():
    inner = inner_product()
    n, row, total = pt.lscalar(), pt.dvector(), pt.dscalar()
    trace, mapped = inner(n, row, total.dimshuffle("x"), total)
    op = scan([n, total, row], [trace[-1], pt.sum(mapped), n * 2], ScanInfo(1, ((-1,),), (None,), 2, 1))
    agree(op, 4, np.array([2, 0, 4, 1]), [0.5], np.arange(4.0))


def test_a_condition_within_a_scan_ends_the_inner_loop():
    y, state = pt.dscalar(), pt.dscalar()
    inner = Scan([y, state], [state + y, y, y > state], ScanInfo(1, ((-1,),), (None,), 1, 0, is_while=True))
    row, total = pt.dvector(), pt.dscalar()
    trace, mapped = inner(row.shape[0], row, total.dimshuffle("x"))
    op = scan([row, total], [trace[-1], pt.sum(mapped), mapped.shape[0]], ScanInfo(1, ((-1,),), (1,), 2, 0))
    agree(op, 3, np.array([[0.0, 1.0, 2.0], [5.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]), [0.5])


def test_a_scan_in_a_graph_in_a_scan():
    row, start, a = pt.dvector(), pt.dscalar(), pt.dscalar()
    last = inner_product()(row.shape[0], row, start.dimshuffle("x"), a)[0][-1]
    layer = OpFromGraph([row, start, a], [last])
    again = OpFromGraph([row, start, a], [layer(row, layer(row, start, a), a)])
    row, total, a = pt.dvector(), pt.dscalar(), pt.dscalar()
    op = scan([row, total, a], [again(row, total, a)], ScanInfo(1, ((-1,),), (None,), 0, 1))
    agree(op, 3, np.arange(12.0).reshape(3, 4), [0.5], 0.5)


def test_three_scans_within_each_other():
    x, s = pt.dscalar(), pt.dscalar()
    first = Scan([x, s], [s * 0.5 + x], ScanInfo(1, ((-1,),), (1,), 0, 0))
    row, t = pt.dvector(), pt.dscalar()
    second = Scan(
        [row, t], [first(row.shape[0], row, t.dimshuffle("x"))[-1]], ScanInfo(1, ((-1,),), (1,), 0, 0)
    )
    m, u = pt.dmatrix(), pt.dscalar()
    third = Scan([m, u], [second(m.shape[0], m, u.dimshuffle("x"))[-1]], ScanInfo(1, ((-1,),), (None,), 0, 0))
    agree(lambda x: [third(2, x, pt.constant([0.5]))], np.arange(24.0).reshape(2, 3, 4))


def test_scans_that_follow_each_other():
    make = cumulative()

    def twice(n, x, start, a):
        total, mapped = make(n, x, start, a)
        more, rest = make(n, total[1:] * mapped, total[-1:], a)
        return [total, more, rest, pt.sum(more)]

    agree(twice, 4, np.linspace(0, 1, 4), [0.5], 0.1)


def test_the_number_of_steps_may_be_computed():
    make = cumulative()
    agree(lambda x, k, a: make(pt.sum(k), x, x[:1], a), np.arange(5.0), np.array([1, 2]), 0.1)


def test_data_within_a_scan_is_bound():
    first, second = np.arange(50.0), np.arange(50.0) + 1
    x, state = pt.dscalar(), pt.dvector()

    def make(data):
        return scan([x, state], [state + x * pt.constant(data)], ScanInfo(1, ((-1,),), (None,), 0, 0))

    for data in (first, second):
        agree(make(data), 2, np.arange(2.0), np.zeros((1, 50)))


def test_memory_grows_with_the_lengths_of_a_call():
    i, x = pt.lscalar(), pt.dvector()
    op = Scan(
        [i, x],
        [pt.sum(pt.dot(pt.exp(x[:i]).dimshuffle(0, "x"), x[:i].dimshuffle("x", 0)))],
        ScanInfo(1, (), (), 1, 1),
    )
    variables = [pt.lscalar(), pt.lvector(), pt.dvector()]
    f = engine.function(variables, op(*variables))
    for size in (3, 50, 2, 200):
        x = np.linspace(0, 1, size)
        steps = np.array([1, size, 2])
        due = [np.exp(x[:i]).sum() * x[:i].sum() for i in steps]
        np.testing.assert_allclose(f(3, steps, x), due)


def test_kernels_within_a_loop_are_entries_like_any_other(cache_directory, monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_DIR", str(cache_directory / "own"))
    variables = [pt.lscalar(), pt.dvector(), pt.dvector(), pt.dscalar()]
    first = engine.function(variables, cumulative()(*variables))
    assert first.cache_info.compilations > 0
    second = engine.function(variables, [2.0 * total for total in cumulative()(*variables)])
    hits, misses = second.cache_info.found["kernel"]
    assert (hits, misses) == (first.cache_info.compilations, 1)
    again = engine.function(variables, cumulative()(*variables))
    assert again.cache_info.outcome == "hit"
    assert again(2, [1.0, 2.0], [0.5], 1.0)[0].tolist() == [0.5, 1.5, 3.5]


def check_generated(seed: int, mode: Any) -> None:
    random = Random(seed)
    made = made_scan(random, depth=2)
    arguments = made.arguments(random)
    variables = inputs_for(arguments)
    outputs = made.op(*variables, return_list=True)
    f = engine.function(variables, outputs, mode=mode)
    for again in (arguments, made.arguments(random), arguments):
        for one, other in zip(f(*again), evaluate(variables, outputs, again), strict=True):
            assert len(one) == len(other)
            if len(one):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, strict=True)


@pytest.mark.parametrize("seed", range(20))
def test_generated_scans_compute_what_the_reference_does(seed):
    check_generated(seed, NOT_REWRITTEN)


@pytest.mark.stress
def test_many_generated_scans_rewritten_or_not():
    many = 1000 if os.environ.get("CACHEGRAPH_STRESS") == "full" else 20
    for seed in range(1000, 1000 + many):
        check_generated(seed, "FAST_RUN" if seed % 2 else NOT_REWRITTEN)


@pytest.mark.parametrize(
    "part",
    [
        lambda x, n: x[pt.dimshuffle(n, ()) :],
        lambda x, n: x[: pt.dimshuffle(n, ())] * 2.0,
        lambda x, n: x[pt.dimshuffle(n, ())],
        lambda x, n: pt.concatenate([x, pt.zeros(pt.dimshuffle(n, ()))]),
        lambda x, n: x[pt.dimshuffle(pt.maximum(n, 1), ()) :],
    ],
)
def test_a_number_may_be_the_one_element_of_a_vector_outside_the_loop(part):
    def rows(x, n):
        return engine.scan(
            part, sequences=[x], non_sequences=[pt.specify_shape(n, (1,))], return_updates=False
        )

    agree(rows, np.arange(1.0, 13.0).reshape(4, 3), np.array([1]))


def test_parts_of_a_batch_from_one_start_are_those_of_each_of_its_places():
    row, start = pt.dvector(), pt.lscalar()
    rows, starts = pt.dmatrix(), pt.tensor(dtype="int64", shape=(1,))
    found = vectorize_graph(row[start:], {row: rows, start: starts})
    values = np.arange(12.0).reshape(4, 3)
    for number in (0, 1, -1):
        np.testing.assert_array_equal(
            engine.function([rows, starts], found)(values, [number]), values[:, number:]
        )
