"""DeepCopyOp copies, with a gradient."""

import numpy as np

import engine
import engine.tensor as pt
from engine.compile.ops import DeepCopyOp, deep_copy_op


def test_a_copy_has_memory_and_a_gradient_of_its_own():
    x, value = pt.dvector("x"), np.arange(3.0)
    copied = deep_copy_op(x)
    assert isinstance(copied.owner.op, DeepCopyOp)
    f = engine.function([x], [copied, engine.grad((copied**2).sum(), x)])
    found, gradient = f(value)
    assert not np.shares_memory(found, value)
    np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(gradient, 2 * value)
