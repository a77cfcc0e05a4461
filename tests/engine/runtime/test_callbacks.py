"""Programs that stop for Python: what a callback is shown, what it may return, and that nothing else changes."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph import pickling
from engine.graph import Apply, Op, Variable
from engine.lowering.op_rule import OpRule
from engine.lowering.rules import RULES
from engine.runtime import callbacks
from engine.runtime.callbacks import OF_ONE_OP, Callback, build_callback, check_site
from engine.runtime.instructions import show
from engine.runtime.program import (
    CallbackUse,
    Invocation,
    Operand,
    ProgramFormatError,
    Returned,
    pack_program,
    unpack_program,
)
from engine.scanning import scan, until

pytestmark = pytest.mark.usefixtures("kernels_once")

Run = Callable[[Sequence[np.ndarray]], Any]


class InPython(Op):
    """Runs `run` where the program is; its outputs have `types`, and lengths that nobody knows beforehand."""

    def __init__(self, run: Run, *types: Any, lengths: Any = None) -> None:
        self.run = run
        self.types = types
        self.lengths = lengths

    def make_node(self, *inputs: Any) -> Apply:
        variables = [pt.as_tensor_variable(value) for value in inputs]
        return Apply(self, variables, [type.make_variable() for type in self.types])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        for cell, result in zip(output_storage, self.run(inputs), strict=True):
            cell[0] = result

    def __str__(self) -> str:
        return "InPython"


VECTOR = pt.vector().type
NUMBER = pt.scalar().type


@pytest.fixture(autouse=True)
def lowers_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower InPython as an invocation of a callback that the test made."""
    ops: list[InPython] = []

    def lower(lowering: Any, node: Apply) -> None:
        op: Any = node.op
        ops.append(op)
        callback = Callback("test", 1, json.dumps(len(ops) - 1), ())
        lowering.invoke(node, callback, (op.lengths or unknown)(lowering, node))

    def unknown(lowering: Any, node: Apply) -> list[list[None]]:
        return [[None] * output.type.ndim for output in node.outputs]

    monkeypatch.setitem(RULES, InPython, OpRule(lower))
    monkeypatch.setitem(callbacks._BUILDERS, ("test", 1), lambda number, *_: ops[number].run)


def as_first_input(lowering: Any, node: Apply) -> list[Any]:
    return [lowering.dims_of(node.inputs[0])]


@pytest.fixture
def x() -> Variable:
    return pt.vector("x")


def doubled(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [2.0 * inputs[0]]


def test_python_computes_in_the_middle_of_a_program(x):
    y = InPython(doubled, VECTOR)(pt.exp(x))
    f = engine.function([x], [pt.sum(y), y, y[1:] + 1.0])
    value = np.arange(4.0)
    total, whole, rest = f(value)
    np.testing.assert_allclose(total, np.sum(2 * np.exp(value)))
    np.testing.assert_allclose(whole, 2 * np.exp(value))
    np.testing.assert_allclose(rest, 2 * np.exp(value)[1:] + 1)


def test_lengths_that_only_the_callback_knows_are_known_behind_it(x):
    positive = InPython(lambda inputs: [inputs[0][inputs[0] > 0]], VECTOR)(x)
    outer = positive.dimshuffle(0, "x") * positive.dimshuffle("x", 0)
    f = engine.function([x], [outer, positive.shape[0], pt.sum(outer, axis=0)])
    for value in (np.array([1.0, -2.0, 3.0]), np.array([-1.0]), np.arange(9.0)):
        kept = value[value > 0]
        for found, due in zip(f(value), [np.outer(kept, kept), len(kept), kept * kept.sum()], strict=True):
            np.testing.assert_allclose(found, due)


def test_the_inputs_are_shown_where_they_lie(x):
    shown: list[Any] = []

    def look(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        shown[:] = [
            (a.__array_interface__["data"][0], a.strides, a.flags.writeable, a.copy()) for a in inputs
        ]
        return [np.array(1.0)]

    m = pt.matrix("m")
    f = engine.function([x, m], InPython(look, NUMBER)(x, x[::-2], m.T))
    value, matrix = np.arange(5.0), np.arange(6.0).reshape(2, 3)
    f(value, matrix)
    assert [row[0] - value.ctypes.data for row in shown[:2]] == [0, 32]
    assert shown[2][0] == matrix.ctypes.data
    assert [row[1] for row in shown] == [(8,), (-16,), (8, 24)]
    assert not any(row[2] for row in shown)
    for row, due in zip(shown, (value, value[::-2], matrix.T), strict=True):
        np.testing.assert_array_equal(row[3], due)


def test_every_dtype_and_rank_goes_in_and_comes_out():
    for dtype in ("float64", "float32", "int64", "int32", "bool"):
        for ndim in (0, 1, 3):
            v = pt.tensor("v", dtype, (None,) * ndim)
            f = engine.function([v], InPython(lambda inputs: [inputs[0].copy()], v.type)(v))
            value = np.ones((2,) * ndim, dtype)
            found = f(value)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, value)
            empty = np.ones((0,) * ndim, dtype)
            np.testing.assert_array_equal(f(empty), empty)


def test_what_a_callback_raises_reaches_the_caller_as_it_is(x):
    error = KeyError("mine")

    def fail(inputs: Sequence[np.ndarray]) -> Any:
        if inputs[0][0] < 0:
            raise error
        return doubled(inputs)

    f = engine.function([x], InPython(fail, VECTOR)(x))
    with pytest.raises(KeyError) as caught:
        f([-1.0])
    assert caught.value is error
    np.testing.assert_array_equal(f([1.0]), [2.0])


@pytest.mark.parametrize(
    ("returned", "kind", "words"),
    [
        (
            [np.ones(3, "float32")],
            TypeError,
            r"array of float64 with shape \(3,\).* float32 with shape \(3,\)",
        ),
        ([np.ones((3, 1))], TypeError, r"returned one of float64 with shape \(3, 1\)"),
        ([np.ones(2)], ValueError, r"must be .* shape \(3,\), its callback returned .* shape \(2,\)"),
        ([[1.0, 2.0, 3.0]], TypeError, "returned a list"),
        ([np.ones(3), np.ones(3)], TypeError, "1 arrays are due, its callback returned 2"),
        ([], TypeError, "1 arrays are due, its callback returned 0"),
        ([np.ones(3, ">f8")], TypeError, ">f8"),
    ],
)
def test_anything_but_what_is_due_is_an_error_that_names_op_and_function(x, returned, kind, words):
    op = InPython(lambda inputs: returned, VECTOR, lengths=as_first_input)
    f = engine.function([x], op(x), name="model")
    with pytest.raises(kind, match=rf"Calling model: InPython: .*{words}"):
        f(np.ones(3))


def test_a_result_may_lie_in_memory_as_it_likes_and_belongs_to_the_caller(x):
    kept = np.arange(6.0).reshape(2, 3)
    for result in (kept.T, np.asfortranarray(kept), kept[:, ::-1], kept):
        f = engine.function([x], InPython(lambda inputs, result=result: [result], pt.matrix().type)(x))
        found = f([1.0])
        np.testing.assert_array_equal(found, result)
        assert not np.shares_memory(found, kept)


def test_an_input_given_back_is_not_overwritten_by_what_uses_its_memory_next(x):
    same = InPython(lambda inputs: [inputs[0]], VECTOR)(pt.exp(x))
    f = engine.function([x], [same + pt.sum(pt.sqrt(same)), same])
    value = np.arange(5.0)
    np.testing.assert_allclose(f(value)[0], np.exp(value) + np.sum(np.sqrt(np.exp(value))))


def test_nothing_is_held_after_a_call_or_a_failed_one(x):
    references: list[Any] = []

    def make(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        if len(references) > 1:
            raise RuntimeError
        result = np.ones(3).view(type("Tracked", (np.ndarray,), {}))
        references.append(weakref.ref(result))
        return [result]

    y = InPython(make, VECTOR)(x)
    f = engine.function([x], pt.sum(InPython(make, VECTOR)(y + 1.0)))
    f([1.0])
    with pytest.raises(RuntimeError):
        f([1.0])
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_threads_are_within_one_callback_at_the_same_time(x):
    barrier = threading.Barrier(2, timeout=20)

    def meet(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        barrier.wait()
        return doubled(inputs)

    f = engine.function([x], InPython(meet, VECTOR)(x + 1.0) - 2.0)
    found: dict[int, np.ndarray] = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: f(np.full(3, k))})) for k in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found[1], [2.0] * 3)
    np.testing.assert_array_equal(found[2], [4.0] * 3)


def test_a_callback_may_call_the_function_that_it_is_in(x):
    def factorial(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        n = inputs[0]
        return [np.ones(1)] if n[0] <= 1 else [n * f(n - 1.0)]

    f = engine.function([x], InPython(factorial, VECTOR)(x))
    np.testing.assert_array_equal(f([5.0]), [120.0])


def test_one_behind_another_and_two_beside_each_other(x):
    first = InPython(doubled, VECTOR)(x)
    second = InPython(lambda inputs: [inputs[0] + 1.0], VECTOR)(first)
    third = InPython(lambda inputs: [inputs[0] - inputs[1]], VECTOR)(pt.exp(second), first)
    f = engine.function([x], [third, pt.sum(first * second)])
    value = np.array([0.5, -1.0])
    np.testing.assert_allclose(f(value)[0], np.exp(2 * value + 1) - 2 * value)
    np.testing.assert_allclose(f(value)[1], np.sum(2 * value * (2 * value + 1)))


def test_within_a_loop_a_callback_is_reached_in_every_pass(x):
    calls: list[float] = []

    def step(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        calls.append(float(inputs[0]))
        return [np.array(inputs[0] * 2.0 + inputs[1])]

    states, _ = scan(
        lambda row, state: InPython(step, NUMBER)(state, row),
        sequences=x,
        outputs_info=pt.as_tensor_variable(1.0),
    )
    f = engine.function([x], states)
    for _ in range(2):
        calls.clear()
        np.testing.assert_array_equal(f([1.0, 2.0, 3.0]), [3.0, 8.0, 19.0])
        assert calls == [1.0, 3.0, 8.0]
    assert f(np.zeros(0)).shape == (0,)


def test_within_a_loop_lengths_may_be_others_in_every_pass(x):
    ranges = InPython(lambda inputs: [np.arange(float(inputs[0]))], VECTOR)
    sums, _ = scan(lambda n: pt.sum(pt.exp(ranges(n)) + 1.0), sequences=x)
    f = engine.function([x], sums)
    value = np.array([3.0, 0.0, 7.0, 1.0])
    np.testing.assert_allclose(f(value), [np.sum(np.exp(np.arange(n)) + 1) for n in value])


def test_what_no_pass_changes_is_asked_for_once(x):
    calls: list[int] = []

    def count(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        calls.append(1)
        return doubled(inputs)

    y = pt.vector("y")
    op = InPython(count, VECTOR, lengths=as_first_input)
    sums, _ = scan(lambda row, y: pt.sum(row * op(y)), sequences=x, non_sequences=y)
    f = engine.function([x, y], sums)
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0], [1.0, 2.0]), [6.0, 12.0, 18.0])
    assert len(calls) == 1


def test_what_a_callback_says_ends_a_loop(x):
    enough = InPython(lambda inputs: [np.array(inputs[0] > 5.0)], pt.tensor(dtype="bool", shape=()).type)

    def step(row: Any, total: Any) -> Any:
        return total + row, until(enough(total + row))

    totals, _ = scan(step, sequences=x, outputs_info=pt.as_tensor_variable(0.0))
    np.testing.assert_array_equal(engine.function([x], totals)([1.0, 2.0, 3.0, 4.0]), [1.0, 3.0, 6.0])


def test_loops_within_loops_reach_a_callback_in_every_pass_of_both(x):
    double = InPython(lambda inputs: [np.array(2.0 * inputs[0])], NUMBER)

    def row_sum(outer: Any, x: Any) -> Any:
        rows, _ = scan(lambda inner, outer: double(inner * outer), sequences=x, non_sequences=double(outer))
        return pt.sum(rows)

    sums, _ = scan(row_sum, sequences=x, non_sequences=x)
    value = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(engine.function([x], sums)(value), 4 * value * value.sum())


def test_what_a_callback_in_a_loop_raises_leaves_the_function_usable(x):
    def step(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        if inputs[0] > 2:
            raise ZeroDivisionError("in pass 3")
        return [np.array(inputs[0] + 1.0)]

    states, _ = scan(
        lambda row, state: InPython(step, NUMBER)(state) + row,
        sequences=x,
        outputs_info=pt.as_tensor_variable(0.0),
    )
    f = engine.function([x], states)
    with pytest.raises(ZeroDivisionError, match="in pass 3"):
        f([1.0, 1.0, 1.0])
    np.testing.assert_array_equal(f([1.0]), [2.0])


def program_of(f: Any) -> Any:
    return f._compiled.runner.program


def test_a_program_with_callbacks_is_stored_whole(x):
    f = engine.function([x], InPython(doubled, VECTOR, lengths=as_first_input)(x[::-1]))
    program = program_of(f)
    assert unpack_program(pack_program(program)) == program
    assert [use.kind for use in program.callbacks] == ["test"]
    assert "INVOKE" in show(np.frombuffer(program.code, "<i8").tolist())
    for change in (
        {"callbacks": ()},
        {"invocations": (program.invocations[0]._replace(callback=1),)},
        {
            "invocations": (
                program.invocations[0]._replace(
                    inputs=(program.invocations[0].inputs[0]._replace(pointer=9999),)
                ),
            )
        },
    ):
        with pytest.raises(ProgramFormatError):
            unpack_program(pack_program(program._replace(**change)))


def _compiles_nothing(node: Apply) -> Any:
    raise AssertionError(f"compiling {node}")


def test_a_kind_of_callback_that_there_is_not_is_refused():
    for use in (CallbackUse("nothing", 1, "{}", ()), CallbackUse("optimize", 99, "{}", ())):
        with pytest.raises(ProgramFormatError, match=f"{use.kind}.*{use.version}"):
            build_callback(use, [], {}, _compiles_nothing)


@pytest.mark.parametrize("kind", OF_ONE_OP)
def test_a_record_of_an_op_that_fits_another_place_is_refused(kind: str) -> None:
    vector = ["float64", [None]]
    options = json.dumps({"op": "name", "inputs": [vector], "outputs": [vector]})
    use = CallbackUse(kind, 1, options, ())
    shown, given = Operand("float64", 8, (9,), None), Returned("float64", (None,))
    check_site(use, Invocation(0, "Op", (shown,), (given,)))
    for inputs, outputs in (
        ((shown, shown), (given,)),
        ((shown._replace(dtype="int64"),), (given,)),
        ((shown,), (Returned("float64", ()),)),
    ):
        with pytest.raises(ProgramFormatError, match="its record says"):
            check_site(use, Invocation(0, "Op", inputs, outputs))


def test_an_op_of_the_engine_without_a_kernel_is_computed_by_its_reference(x, monkeypatch):
    monkeypatch.delitem(RULES, pt.CumOp)
    f = engine.function([x], pt.sum(pt.cumsum(pt.exp(x))))
    value = np.arange(3.0)
    np.testing.assert_allclose(f(value), np.cumsum(np.exp(value)).sum())
    (use,) = program_of(f).callbacks
    assert use.kind == "reference"
    run = build_callback(use, [], {}, _compiles_nothing)
    np.testing.assert_array_equal(run([value])[0], np.cumsum(value))


def test_a_reference_that_overwrites_is_shown_a_copy(x, monkeypatch):
    monkeypatch.delitem(RULES, pt.IncSubtensor)
    f = engine.function([x], pt.exp(x)[1:].set(7.0))
    np.testing.assert_allclose(f(np.zeros(3)), [1.0, 7.0, 7.0])
    (use,) = program_of(f).callbacks
    assert pickling.loads(b64decode(json.loads(use.options)["op"]), ("engine",)).inplace


def test_a_record_holds_an_op_and_nothing_else():
    options = {"op": b64encode(pickling.dumps(VECTOR)).decode(), "inputs": [], "outputs": []}
    with pytest.raises(ProgramFormatError, match="in place of an Op"):
        build_callback(CallbackUse("reference", 1, json.dumps(options), ()), [], {}, _compiles_nothing)
