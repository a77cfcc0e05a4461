"""DeepCopyOp copies, with a gradient; CpuContiguous copies what is not in C order."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compile.mode import Mode
from engine.compile.ops import DeepCopyOp, deep_copy_op
from engine.graph.replace import vectorize_graph
from engine.tensor.extra_ops import CpuContiguous, cpu_contiguous


def test_a_copy_has_memory_and_a_gradient_of_its_own():
    x, value = pt.dvector("x"), np.arange(3.0)
    copied = deep_copy_op(x)
    assert isinstance(copied.owner.op, DeepCopyOp)
    f = engine.function([x], [copied, engine.grad((copied**2).sum(), x)])
    found, gradient = f(value)
    assert not np.shares_memory(found, value)
    np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(gradient, 2 * value)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY", Mode(optimizer=None)])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "bool"])
def test_a_strided_tensor_is_copied_into_c_order(dtype, mode):
    x, step = pt.matrix("x", dtype=dtype), pt.iscalar("step")
    f = engine.function([x, step], [cpu_contiguous(x[::step]), cpu_contiguous(x.T).shape], mode=mode)
    value = np.arange(12).reshape(4, 3).astype(dtype)
    for number in (1, 2, -1):
        found, shape = f(value, number)
        assert found.flags.c_contiguous
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, value[::number])
        assert shape.tolist() == [3, 4]


def test_what_is_overwritten_behind_a_copy_in_c_order_is_no_argument():
    x = pt.dmatrix("x")
    f = engine.function([x], [cpu_contiguous(x)[0].set(5.0), cpu_contiguous(x)])
    value = np.ones((2, 2))
    changed, same = f(value)
    np.testing.assert_array_equal(changed, [[5, 5], [1, 1]])
    np.testing.assert_array_equal(same, value)
    np.testing.assert_array_equal(value, np.ones((2, 2)))
    assert not np.shares_memory(same, value)


def test_a_copy_in_c_order_has_gradients_and_batches():
    value = np.arange(6.0).reshape(2, 3)
    engine.verify_grad(lambda x: cpu_contiguous(x.T) ** 2, [value])
    x, batch = pt.dvector(), pt.dmatrix()
    found = vectorize_graph(cpu_contiguous(x), {x: batch})
    assert isinstance(found.owner.op, CpuContiguous)
    np.testing.assert_array_equal(found.eval({batch: value}), value)


def test_tensors_are_on_the_cpu():
    x = pt.dvector("x")
    assert pt.transfer(x, "cpu") is x.transfer("cpu") is x
    with pytest.raises(ValueError, match="Can't transfer to target gpu"):
        x.transfer("gpu")
