"""PyTensor's `Function` keeps its contract when the engine computes it: arguments, storage, updates, copies."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import threading
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function
from pytensor.compile.io import In, Out
from pytensor.compile.maker import UnusedInputError
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import engine.pytensor
from engine.pytensor.program import StagedProgram


@pytest.fixture(autouse=True)
def registered() -> None:
    engine.pytensor.register()


def made(*arguments: Any, **options: Any) -> Any:
    """The function of PyTensor's that the engine computes."""
    return pytensor.function(*arguments, mode="ENGINE", **options)


def test_arguments_come_by_place_by_name_and_by_variable() -> None:
    x, y = pt.dvector("x"), pt.dscalar("y")
    f = made([x, y], x / y)
    calls = [f([2.0], 4.0), f(x=[2.0], y=4.0), f([2.0], y=4.0)]
    assert [found.tolist() for found in calls] == [[0.5]] * 3
    with pytest.raises(TypeError, match="Unknown input: z"):
        f([1.0], z=1.0)
    with pytest.raises(TypeError, match="Missing input: y"):
        f([1.0])
    with pytest.raises(TypeError, match="Too many parameter"):
        f([1.0], 1.0, 1.0)


def test_arguments_are_downcast_only_where_that_was_asked_for() -> None:
    x = pt.fvector("x")
    with pytest.raises(TypeError, match="allow_input_downcast"):
        made([x], x + 1)(np.ones(2))
    assert made([x], x + 1, allow_input_downcast=True)(np.ones(2)).dtype == "float32"
    with pytest.raises(TypeError, match="expected an ndarray"):
        made([In(x, strict=True)], x + 1)([1.0])


def test_arguments_that_nothing_reads_are_refused_or_ignored_as_asked() -> None:
    x, y = pt.dvector("x"), pt.dvector("y")
    with pytest.raises(UnusedInputError, match="y"):
        made([x, y], x + 1)
    with pytest.warns(UserWarning, match="y"):
        assert made([x, y], x + 1, on_unused_input="warn")([1.0], [2.0]).tolist() == [2.0]
    assert made([x, y], x + 1, on_unused_input="ignore")([1.0], [2.0]).tolist() == [2.0]


def test_arguments_in_any_memory_are_read_rightly() -> None:
    x, m = pt.dvector("x"), pt.dmatrix("m")
    f, g = made([x], x + 1), made([m], m.sum(axis=0) - m[0])
    f.trust_input = g.trust_input = True
    unaligned = np.zeros(25, "uint8")[1:].view("float64")
    unaligned[:] = [1.0, 2.0, 3.0]
    assert f(np.arange(6.0)[::-2]).tolist() == [6.0, 4.0, 2.0]
    assert f(np.broadcast_to(np.array(2.0), (3,))).tolist() == [3.0] * 3
    assert f(unaligned).tolist() == [2.0, 3.0, 4.0]
    assert f(np.arange(2.0).astype(">f8")).tolist() == [1.0, 2.0]
    assert g(np.arange(6.0).reshape(3, 2).T[::-1]).tolist() == [0.0, 2.0, 4.0]
    given = np.ones(2)
    given.flags.writeable = False
    assert all(result.flags.writeable for result in made([x], [x, x + 1])(given))


def test_arguments_that_may_be_overwritten_give_the_same_results() -> None:
    x = pt.dvector("x")
    f = made([In(x, mutable=True)], [Out(pt.exp(x), borrow=True), x.sum()])
    first, total = f(np.zeros(2))
    f(np.ones(2))
    assert (first.tolist(), float(total)) == ([1.0, 1.0], 0.0)


def test_results_are_never_overwritten_by_a_later_call() -> None:
    x, s = pt.dvector("x"), pytensor.shared(np.ones(2), "s")
    constant = pt.constant(np.full(2, 7.0))
    outputs = [x, s, s + x, s[1:], constant, pt.erfcx(x), pt.erfcx(x)[::-1]]
    f = made([In(x, borrow=True)], [Out(v, borrow=True) for v in outputs], updates={s: s + 1})
    held = f(np.zeros(2))
    kept = [value.copy() for value in held]
    f(np.full(2, 3.0))
    for value, before in zip(held, kept, strict=True):
        np.testing.assert_array_equal(value, before)
    results = made([], [constant, Out(constant, borrow=True)])()
    results[0][:] = 0.0
    assert made([], constant)().tolist() == [7.0, 7.0]


def test_a_result_has_the_form_that_was_asked_for() -> None:
    x = pt.dvector("x")
    assert float(made([x], x.sum())([1.0])) == 1.0
    assert isinstance(made([x], [x.sum()])([1.0]), list)
    assert made([], [])() == []
    assert type(made([x], x.sum())([1.0])) is np.ndarray


def test_updates_read_the_values_from_before_the_call() -> None:
    a, b = (pytensor.shared(np.full(2, value), name) for value, name in ((1.0, "a"), (2.0, "b")))
    swap = made([], [a, b], updates=[(a, b), (b, a)])
    first = [value.tolist() for value in swap()]
    assert first == [[1.0, 1.0], [2.0, 2.0]]
    assert [a.get_value().tolist(), b.get_value().tolist()] == first[::-1]
    assert not np.shares_memory(a.get_value(borrow=True), b.get_value(borrow=True))
    following = a + 1
    both = made([], following, updates=[(a, following), (b, following)])
    result = both()
    held = [result, a.get_value(borrow=True), b.get_value(borrow=True)]
    assert [value.tolist() for value in held] == [[3.0, 3.0]] * 3
    assert not any(np.shares_memory(held[i], held[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


def test_a_shared_value_may_be_set_borrowed_and_given_another_shape() -> None:
    value = np.ones(2)
    s = pytensor.shared(value, "s", borrow=True)
    f = made([], s * 2)
    value[:] = 4.0
    assert f().tolist() == [8.0, 8.0]
    s.set_value(np.zeros(3))
    assert f().tolist() == [0.0] * 3
    s.set_value(np.arange(6.0)[::2], borrow=True)
    assert f().tolist() == [0.0, 4.0, 8.0]
    assert f.input_storage[0].storage is s.container.storage
    assert f.get_shared() == [s]


def test_givens_replace_variables() -> None:
    x, y = pt.dvector("x"), pt.dvector("y")
    assert made([x], y * 2, givens={y: x + 1})([1.0]).tolist() == [4.0]


def test_copies_share_or_swap_storage() -> None:
    x, s = pt.dvector("x"), pytensor.shared(np.ones(2), "s")
    other = pytensor.shared(np.zeros(2), "other")
    f = made([x], x + s, updates={s: s + 1})
    sharing, swapped = f.copy(share_memory=True), f.copy(swap={s: other}, name="swapped")
    without = f.copy(delete_updates=True)
    assert [g([1.0, 1.0]).tolist()[0] for g in (f, sharing, swapped, without)] == [2.0, 3.0, 1.0, 4.0]
    assert [s.get_value().tolist()[0], other.get_value().tolist()[0]] == [3.0, 1.0]
    assert swapped.name == "swapped"
    assert f.copy().vm.jit_fn is not f.vm.jit_fn


def test_a_deep_copy_has_values_of_its_own() -> None:
    s = pytensor.shared(np.ones(2), "s")
    f = made([], s * 2, updates={s: s + 1})
    again = copy.deepcopy(f)
    f()
    assert [f().tolist(), again().tolist()] == [[4.0, 4.0], [2.0, 2.0]]


def test_pickles_of_both_kinds_come_back_in_a_process_that_registered_nothing() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    x, s = pt.dvector("x"), pytensor.shared(np.ones(2), "s")
    f = made([x], pt.exp(x) + s, updates={s: s + 1})
    f(np.zeros(2))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for text in (pickle.dumps(f), cloudpickle.dumps(f)):
            found, explained = pool.apply(called, (text, np.zeros(2)))
            assert found.tolist() == [3.0, 3.0]
            assert "the engine computes" in explained


def called(text: bytes, value: Any) -> Any:
    """The result of a pickled function, and who computed it."""
    f = pickle.loads(text)
    return f(value), engine.pytensor.explain(f)


def test_a_function_shows_its_graph_its_storage_and_its_profile() -> None:
    x = pt.dvector("x")
    f = made([x], [pt.exp(x).sum(), x + 1], profile=True)
    f(np.ones(3))
    f(np.ones(3))
    assert [str(node.op) for node in f.maker.fgraph.toposort()].count("Exp") == 1
    assert [container.name for container in f.input_storage] == ["x"]
    assert len(f.output_storage) == 2
    assert (f.profile.fct_callcount, f.profile.vm_call_time > 0) == (2, True)
    text = io.StringIO()
    f.profile.summary(file=text)
    assert "2 calls to Function.__call__" in text.getvalue()
    f.free()
    assert f(np.ones(3))[1].tolist() == [2.0] * 3
    assert isinstance(f, Function)


def test_a_deeper_message_names_the_variables_of_the_node() -> None:
    left, right = pt.dvector("left"), pt.dvector("right")
    f = made([left, right], left + right)
    with (
        pytensor.config.change_flags(exception_verbosity="high"),
        pytest.raises(ValueError, match=r"(?s)Add\(left, right\).*Inputs shapes: \[\(2,\), \(3,\)\]"),
    ):
        f(np.ones(2), np.ones(3))


class Raising(Op):
    """Raises an error that says where it is."""

    __props__ = ()

    def make_node(self, x: Any) -> Any:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        raise ZeroDivisionError("in perform")


def test_what_only_pytensor_takes_is_computed_by_it_and_told() -> None:
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    f = made([x, y], [x[1:].inc(y), x.sum()])
    values = np.ones((3, 2))
    for _ in range(2):
        found, total = f(values, [[1.0, 2.0]])
        assert (found.tolist(), float(total)) == ([[1.0, 1.0], [2.0, 3.0], [2.0, 3.0]], 6.0)
    assert "PyTensor computed them in 2 calls: " in engine.pytensor.explain(f)
    f(values, np.ones((2, 2)))
    assert "in 2 calls" in engine.pytensor.explain(f)
    with pytest.raises(ValueError, match="could not be broadcast"):
        f(values, np.ones((3, 2)))


def test_what_pytensor_computes_has_the_dtype_that_the_engine_gives() -> None:
    """PyTensor's cumulative sum of bytes is uint64, whatever the variable says; the engine's is not."""
    x, small = pt.dvector("x"), pt.bvector("small")
    f = made([x, small], [x[:2].inc(x[2:]), pt.cumsum(small)])
    for values in ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0]):  # PyTensor alone adds one number to two
        added, sums = f(values, np.array([100, 100], "int8"))
        assert added.tolist() == [4.0, 2.0 + values[-1], *values[2:]]
        assert (sums.dtype, sums.tolist()) == (np.int8, [100, -56])


def test_errors_in_a_loop_are_pytensors() -> None:
    x, n = pt.dvector("x"), pt.iscalar("n")
    rows = pytensor.scan(
        lambda i, row, x: row + x[i], [pt.arange(n)], pt.zeros(()), [x], return_updates=False
    )
    f = made([x, n], rows)
    assert f(np.ones(3), 3).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(IndexError):
        f(np.ones(3), 4)


def test_a_deeper_message_names_the_node_of_pytensors_that_failed_and_no_other() -> None:
    x = pt.dvector("x")
    f = made([x], pt.exp(Raising()(x * 2)) + 1)
    with (
        pytensor.config.change_flags(exception_verbosity="medium"),
        pytest.raises(ZeroDivisionError) as caught,
    ):
        f(np.ones(2))
    text = str(caught.value)
    assert "Apply node that caused the error: Raising(Mul.0)" in text
    assert text.count("Apply node that caused the error") == 1


def test_a_function_keeps_its_updates_if_a_call_raises() -> None:
    x, s = pt.dvector("x"), pytensor.shared(np.ones(2), "s")
    f = made([x], x + s, updates={s: s * 2})
    with pytest.raises(ValueError, match=r"shapes \(3,\) \(2,\)"):
        f(np.ones(3))
    assert s.get_value().tolist() == [1.0, 1.0]
    assert f(np.ones(2)).tolist() == [2.0, 2.0]


class Calling(Op):
    """Calls a function of PyTensor's, as long as the sum of its input is small."""

    __props__ = ()

    def __init__(self, functions: list[Any]) -> None:
        self.functions = functions

    def make_node(self, x: Any) -> Any:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        [x] = inputs
        outputs[0][0] = x + 1 if x.sum() > 20 else self.functions[0](x * 2) + x


def test_a_function_may_be_called_by_a_node_of_its_own() -> None:
    x, functions = pt.dvector("x"), []
    functions.append(made([x], Calling(functions)(x + 1) * 1.0 + x))

    def expected(value: Any) -> Any:
        step = value + 1
        return (step + 1 if step.sum() > 20 else expected(step * 2) + step) + value

    value = np.array([1.0, 2.0])
    assert functions[0](value).tolist() == expected(value).tolist()


def test_copies_of_a_function_may_be_called_in_threads_at_once() -> None:
    x = pt.dvector("x")
    f = made([x], pt.exp(x).sum() + pt.erfcx(x)[0])
    expected = {value: float(f(np.full(50, value))) for value in (0.0, 1.0, 2.0, 3.0)}
    wrong: list[float] = []

    def call(g: Any, value: float) -> None:
        wrong.extend(value for _ in range(200) if float(g(np.full(50, value))) != expected[value])

    threads = [threading.Thread(target=call, args=(f.copy(), value)) for value in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_generators_are_advanced_by_updates_only_and_may_be_set() -> None:
    rng = pytensor.shared(np.random.default_rng(3), "rng")
    following, draw = pt.random.normal(size=3, rng=rng).owner.outputs
    advancing, still = made([], draw, updates={rng: following}), made([], draw)
    reference = np.random.default_rng(3)
    first = reference.normal(size=3).tolist()
    assert [still().tolist(), still().tolist(), advancing().tolist()] == [first] * 3
    assert still().tolist() == reference.normal(size=3).tolist()
    rng.set_value(np.random.default_rng(3))
    assert still().tolist() == first


def test_the_mode_is_a_mode_like_others() -> None:
    x = pt.dvector("x")
    mode = (
        pytensor.compile.mode.get_mode("ENGINE").excluding("stabilize").including("local_remove_all_assert")
    )
    f = pytensor.function([x], pt.log(pt.exp(x)), mode=mode)
    assert isinstance(f.vm.jit_fn, StagedProgram)
    assert isinstance(pickle.loads(pickle.dumps(f)).vm.jit_fn, StagedProgram)
    with pytensor.config.change_flags(linker="engine"):
        for name in ("Mode", "FAST_RUN"):
            assert isinstance(pytensor.function([x], x + 1, mode=name).vm.jit_fn, StagedProgram)


def test_what_is_known_to_have_no_elements_is_computed_by_a_kernel_without_arguments() -> None:
    x, zero = pt.tensor("x", dtype="uint32", shape=(None,) * 3), pt.constant(np.array(0, "int8"))
    nothing = x[np.array([], "int8")]
    f = made([x], pt.any(pt.neq(nothing, zero[None, None, None]), axis=2))
    assert f(np.zeros((2, 3, 4), "uint32")).shape == (0, 3)
