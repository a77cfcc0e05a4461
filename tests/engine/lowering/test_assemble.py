"""Programs share memory between buffers, and their code is laid out stage by stage."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import NO_REWRITES, Mode
from engine.inner import Scan, ScanInfo
from engine.lowering.scratch import plan_scratch
from engine.runtime.instructions import check_code, read_code, show
from tests.engine.lowering.lowered import lower, program


def groups(inputs, outputs):
    """Return the number of buffers that share each piece of scratch, by stage."""
    plan = plan_scratch(lower(inputs, outputs).table)
    return {stage: [len(group) for group in found] for stage, found in plan.items() if found}


def chain(m, length):
    for _ in range(length):
        m = pt.dot(m, m)
    return m


def test_a_chain_of_products_needs_two_pieces_of_scratch():
    m = pt.tensor("m", "float64", (5, 5))
    assert groups([m], [chain(m, 9)]) == {0: [4, 4]}


def test_what_is_read_later_keeps_its_memory():
    m = pt.tensor("m", "float64", (5, 5))
    first = pt.dot(m, m)
    assert groups([m], [pt.dot(chain(first, 4), first)]) == {0: [1, 2, 2]}


def test_what_the_next_stage_reads_keeps_its_memory(kernels_once):
    x, k = pt.vector("x"), pt.lvector("k")
    rows, largest = pt.sum(k), pt.max(x)
    outputs = [x.reshape((rows, -1)), pt.sum(pt.exp(x - largest)) * pt.max(pt.exp(x - largest))]
    for found in groups([x, k], outputs)[0]:
        assert found >= 1
    f = engine.function([x, k], outputs, mode="FAST_COMPILE")
    reshaped, _ = f(np.arange(6.0), [1, 1])
    np.testing.assert_array_equal(reshaped, np.arange(6.0).reshape(2, 3))


def test_results_are_never_scratch():
    m = pt.tensor("m", "float64", (5, 5))
    first = chain(m, 1)
    second = chain(first, 1)
    assert groups([m], [first, second, chain(second, 1)]) == {}


def test_code_is_what_the_machine_runs_safely():
    x, m, k = pt.vector("x"), pt.matrix("m"), pt.lvector("k")
    made = program([x, m, k], [pt.dot(m, x[k]), m.T.reshape((pt.sum(k), -1)), pt.max(m, axis=0)])
    check_code(read_code(np.frombuffer(made.code, "<i8").tolist()), len(made.registers) // 8)
    assert show(np.frombuffer(made.code, "<i8").tolist()).rstrip().endswith("HALT")
    assert [len(site.arrays) for site in made.yields] == [0, 2, 1]


def test_outputs_and_updates_are_numbered_apart():
    x = pt.vector("x")
    made = program([x], [pt.exp(x), x, pt.sin(x)], updated=[0])
    assert len(made.outputs) == 2
    ((position, result),) = made.updates
    assert position == 0
    assert sorted((*made.outputs, result)) == [0, 1, 2]


def test_constants_lie_at_multiples_of_64():
    x = pt.vector("x")
    made = program([x], [x + pt.constant([1.0, 2.0]), x * pt.constant([3.0, 4.0, 5.0])])
    assert [row.offset for row in made.bound] == [0, 64]
    assert [np.frombuffer(made.constants, "f8", row.shape[0], row.offset).tolist() for row in made.bound] == [
        [1.0, 2.0],
        [3.0, 4.0, 5.0],
    ]


@pytest.mark.parametrize("make", [lambda x: [], lambda x: [x], lambda x: [pt.shape_i(x, 0)]])
def test_a_program_may_have_little_to_do(make):
    x = pt.vector("x")
    made = program([x], make(x))
    assert len(made.outputs) == len(make(x))


def scanned(n_rows, step, *others):
    """Return the program of a Scan over `n_rows` sequences and `others`, and its code."""
    rows, constants = [pt.dvector() for _ in range(n_rows)], [v.type.make_variable() for v in others]
    op = Scan([*rows, *constants], step(*rows, *constants), ScanInfo(n_rows, (), (), 1, len(others)))
    inputs = [pt.lscalar(), *(pt.dmatrix() for _ in rows), *others]
    made = program(inputs, op(*inputs, return_list=True))
    words = np.frombuffer(made.code, "<i8").tolist()
    check_code(read_code(words), len(made.registers) // 8)
    return made, [line.split()[1] for line in show(words).splitlines()]


def test_a_pass_has_a_call_for_each_kernel_and_an_addition_for_each_address_that_moves():
    _, names = scanned(1, lambda x, m: [pt.dot(m, pt.exp(x))], pt.dmatrix())
    begin = names.index("CALL")
    assert names[begin : names.index("NEXT") + 1] == ["CALL", "CALL", "ADD", "ADD", "NEXT"]


def test_memory_within_a_loop_is_asked_for_before_its_first_pass():
    made, names = scanned(1, lambda x, m: [pt.dot(m, pt.exp(x))], pt.dmatrix())
    assert names.index("SKIP") < names.index("GROW") < names.index("CALL")
    assert names.count("GROW") == 1
    assert [len(site.arrays) for site in made.yields] == [1, 0]


def test_what_is_computed_once_shares_no_memory_with_what_every_pass_writes():
    x, a = pt.dvector(), pt.dvector()
    op = Scan([x, a], [pt.dot(pt.exp(x), pt.exp(a)) + pt.exp(x)], ScanInfo(1, (), (), 1, 1))
    inputs = [pt.lscalar(), pt.dmatrix(), pt.dvector()]
    table = lower(inputs, op(*inputs, return_list=True)).table
    ((loop,),) = ([step.loop for step in table.steps if step.loop is not None],)
    (once,) = (step.writes[0] for step in table.steps if step.stage == loop.floor)
    (group,) = (group for group in plan_scratch(table)[loop.floor] if once in group)
    assert group == [once]


def test_what_leaves_out_few_first_rows_is_computed_into_the_result():
    x = pt.dmatrix()
    made = program([x], [pt.exp(x)[2:]])
    assert [site.arrays[0].skipped for site in made.yields if site.arrays] == [2]
    assert program([x], [pt.exp(x)[100:]]).yields[-1].arrays[0].skipped == 0
    y = pt.exp(x)
    both = program([x], [y[1:], y])
    assert sorted(a.skipped for site in both.yields for a in site.arrays) == [0, 0]


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_results_without_first_rows_are_arrays_of_their_own(length, kernels_once):
    x = pt.dvector()
    y = pt.exp(x)
    f = engine.function([x], [y[2:], y[1:], y[2:], y[1:] * 2, x[2:]], mode=Mode("numba", NO_REWRITES))
    values = np.linspace(0, 1, length)
    due = np.exp(values)
    found = f(values)
    for one, other in zip(found, [due[2:], due[1:], due[2:], due[1:] * 2, values[2:]], strict=True):
        np.testing.assert_allclose(one, other)
    assert not any(np.shares_memory(a, b) for n, a in enumerate(found) for b in [*found[:n], values])
    again = f(values)
    assert not any(np.shares_memory(a, b) for a in found for b in again)
