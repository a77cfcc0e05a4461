"""Loops over batches: what a compiled Blockwise is."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.inner import Scan
from engine.inner.batch_loop import BatchLoop, looped
from engine.tensor.joining import Join

pytestmark = pytest.mark.usefixtures("kernels_once")


def loops_of(function):
    return [node.op for node in function.maker.fgraph.toposort() if isinstance(node.op, BatchLoop)]


def test_a_compiled_blockwise_says_which_op_it_applies():
    x, y = pt.dtensor3("x"), pt.dmatrix("y")
    joined = pt.vectorize(lambda x, y: pt.join(0, x, y), signature="(a,c),(b,c)->(d,c)")(x, y)
    f = engine.function([x, y], joined)
    (loop,) = loops_of(f)
    assert isinstance(loop, Scan)
    assert loop.core_op == Join(0)
    assert str(loop) == "BatchLoop{Join{axis=0}}"
    x_value, y_value = np.arange(12.0).reshape(2, 3, 2), -np.ones((1, 2))
    expected = [np.concatenate([each, y_value]) for each in x_value]
    np.testing.assert_array_equal(f(x_value, y_value), expected)


def test_a_loop_whose_step_is_several_nodes_has_no_core_op():
    x = pt.dmatrix("x")
    (rows,) = looped([x], [pt.shape_i(x, 0)], lambda parts: [pt.exp(pt.cumsum(parts[0]))])
    f = engine.function([x], rows)
    (loop,) = loops_of(f)
    assert loop.core_op is None
    assert str(loop) == "BatchLoop"
    np.testing.assert_allclose(f(np.ones((3, 2))), np.exp(np.tile([1.0, 2.0], (3, 1))))


def test_a_loop_over_a_batch_that_is_given_a_state_is_a_scan():
    x = pt.tensor("x", shape=(3, 2))
    (rows,) = looped([x], [pt.shape_i(x, 0)], lambda parts: [pt.cumsum(parts[0])])
    f = engine.function([x], rows[-1])
    (scan,) = [node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)]
    assert type(scan) is Scan
    assert scan.info.taps == ((-1,),)
    np.testing.assert_array_equal(f(np.arange(6.0).reshape(3, 2)), [4.0, 9.0])
