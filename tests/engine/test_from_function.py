"""`wrap_py`: Ops made of functions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compile.ops import as_op
from engine.from_function import FromFunctionOp
from engine.tensor.type import TensorType

pytestmark = pytest.mark.usefixtures("kernels_once")


@engine.wrap_py(itypes=[pt.dmatrix, pt.dmatrix], otypes=[pt.dmatrix])
def product(a: Any, b: Any) -> Any:
    return a @ b


@engine.wrap_py(itypes=pt.dvector, otypes=[TensorType("float64", ()), pt.lscalar])
def largest(x: Any) -> Any:
    return np.max(x), int(np.argmax(x))


VALUE = np.array([1.0, 5.0, 3.0])


@pytest.mark.parametrize("mode", ["NUMBA", "NUMPY"])
def test_a_function_becomes_an_op(mode: str) -> None:
    a, b = pt.matrix("a"), pt.matrix("b")
    f = engine.function([a, b], product(a, b) + 1, mode=mode)
    one, other = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(f(one, other), one @ other + 1)
    assert isinstance(product, FromFunctionOp)
    assert str(product) == "FromFunctionOp{product}"


@pytest.mark.parametrize("mode", ["NUMBA", "NUMPY"])
def test_a_function_may_give_several_results(mode: str) -> None:
    x = pt.vector("x")
    value, place = largest(x)
    f = engine.function([x], [value * 2, place + 1], mode=mode)
    assert [result.tolist() for result in f(VALUE)] == [10.0, 2]


def test_another_number_of_results_is_refused() -> None:
    x = pt.vector("x")
    op = engine.wrap_py([pt.dvector], [pt.dvector, pt.dvector])(lambda x: (x,))
    f = engine.function([x], op(x))
    with pytest.raises(ValueError, match="must give 2 results, it gave 1"):
        f(VALUE)


def test_inputs_of_other_types_are_refused_and_values_converted() -> None:
    with pytest.raises(TypeError):
        largest(pt.matrix("m"))
    with pytest.raises(TypeError):
        largest(pt.lvector("k"))
    with pytest.raises(TypeError, match="takes 1 inputs, 2 were given"):
        largest(VALUE, VALUE)
    assert engine.function([], largest(VALUE)[0])() == 5.0


def test_the_shape_may_be_known_without_a_call() -> None:
    def same(node: Any, input_shapes: Any) -> Any:
        return [input_shapes[0]]

    calls: list[Any] = []
    op = engine.wrap_py(pt.dvector, pt.dvector, infer_shape=same)(lambda x: calls.append(x) or x * 2)
    x = pt.vector("x")
    assert engine.function([x], op(x).shape[0])(VALUE) == 3
    assert calls == []
    np.testing.assert_array_equal(engine.function([x], op(x))(VALUE), VALUE * 2)


@pytest.mark.parametrize("given", [5, "float64", [pt.dvector, None]])
def test_what_is_no_type_is_refused(given: Any) -> None:
    for types in ((given, pt.dvector), (pt.dvector, given)):
        with pytest.raises(TypeError, match=r"itypes|otypes"):
            engine.wrap_py(*types)
    with pytest.raises(TypeError, match="infer_shape"):
        engine.wrap_py(pt.dvector, pt.dvector, infer_shape=5)  # type: ignore[arg-type]


def test_an_op_of_a_function_has_no_gradient() -> None:
    x = pt.vector("x")
    with pytest.raises(engine.errors.NullGradientError, match="largest"):
        engine.grad(largest(x)[0], x)


def test_two_are_equal_if_their_function_and_types_are() -> None:
    def twice(x: Any) -> Any:
        return x * 2

    one, same = (engine.wrap_py(pt.dvector, pt.dvector)(twice) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != engine.wrap_py(pt.dvector, pt.dscalar)(twice)
    assert one != engine.wrap_py(pt.dvector, pt.dvector)(lambda x: x * 2)


def test_one_that_a_module_holds_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(product)) is product
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pickle.dumps(engine.wrap_py(pt.dvector, pt.dvector)(lambda x: x))


@pytest.mark.parametrize("mode", ["NUMBA", "NUMPY"])
def test_it_can_be_used_where_it_is_defined(mode: str) -> None:
    """Decorated in a function, with what is around it."""
    offset = np.array([1.0, 2.0, 3.0])

    @engine.wrap_py(pt.dvector, pt.dvector)
    def shifted(x: Any) -> Any:
        return x + offset

    x = pt.vector("x")
    f = engine.function([x], shifted(x), mode=mode)
    np.testing.assert_array_equal(f(VALUE), VALUE + offset)
    assert f.cache_info.outcome == ("miss" if mode == "NUMBA" else "bypass")


def test_an_older_name_of_pytensors_warns() -> None:
    with pytest.warns(FutureWarning, match="wrap_py"):

        @as_op([pt.dvector], [pt.dvector])
        def doubled(x: Any) -> Any:
            return 2.0 * x

    np.testing.assert_array_equal(doubled(pt.constant(VALUE)).eval(), 2.0 * VALUE)
