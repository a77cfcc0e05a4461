"""Ops described by a graph, which is built for the types that they are applied to."""

import pickle

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import io_toposort
from engine.graph.reference import evaluate
from engine.inner import SymbolicOp


class Scaled(SymbolicOp):
    """The input times a number, less its mean."""

    __props__ = (*SymbolicOp.__props__, "factor")

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def build_inner_graph(self, *inputs):
        (x,) = inputs
        return [x * self.factor - pt.mean(x)]


def test_the_graph_is_that_for_the_types_it_is_applied_to():
    x, m = pt.fvector("x"), pt.dmatrix("m")
    first, second = Scaled(2.0)(x), Scaled(2.0)(m)
    assert (first.type, second.type) == (x.type, m.type)
    assert evaluate([x], [first], [np.array([1.0, 3.0], "f4")])[0].tolist() == [0, 4]
    assert evaluate([m], [second], [np.eye(2)])[0].tolist() == [[1.5, -0.5], [-0.5, 1.5]]


def test_equal_applications_share_their_op_and_its_properties_are_a_part_of_it():
    x, y = pt.dvector("x"), pt.dvector("y")
    assert Scaled(2.0)(x).owner.op == Scaled(2.0)(y).owner.op
    assert Scaled(2.0)(x).owner.op is Scaled(2.0)(y).owner.op
    assert Scaled(2.0) == Scaled(2.0)
    assert Scaled(2.0) != Scaled(3.0)
    assert Scaled(2.0)(x).owner.op != Scaled(2.0)
    assert Scaled(2.0)(x).owner.op.factor == 2.0


def test_the_op_of_a_node_is_applied_to_other_types_as_a_new_one():
    x, m = pt.dvector("x"), pt.dmatrix("m")
    op = Scaled(2.0)(x).owner.op
    assert op(m).owner.op == Scaled(2.0)(m).owner.op
    assert op.without_graph() == Scaled(2.0)


def test_it_has_the_gradient_of_its_graph():
    engine.verify_grad(Scaled(3.0), [np.array([1.0, -2.0, 4.0])])


def test_it_compiles_and_is_pickled(kernels_once):
    x = pt.dvector("x")
    output = Scaled(2.0)(Scaled(2.0)(x))
    assert engine.function([x], output)(np.array([1.0, 3.0])).tolist() == [-2, 6]
    (node, _) = io_toposort([], [output])
    copy = pickle.loads(pickle.dumps(Scaled(2.0)))
    assert copy == Scaled(2.0)
    assert copy(x).owner.op == node.op


def test_a_graph_must_be_described():
    with pytest.raises(NotImplementedError, match="build_inner_graph"):
        SymbolicOp()(pt.dvector())
