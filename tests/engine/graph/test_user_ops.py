"""User Ops, and the places in a graph where they are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import Apply, FrozenFunctionGraph, Op
from engine.graph.user_ops import find_user_ops, is_user_op, needs_python
from engine.inner import Composite
from engine.scalar import ScalarOp
from engine.scalar import exp as scalar_exp
from engine.scalar.promotion import floating
from engine.scalar.type import scalar_type
from engine.tensor.elemwise import Elemwise


class Own(Op):
    __props__ = ("number", "others")
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def __init__(self, number: int, others: Any = ()) -> None:
        self.number = number
        self.others = others


class OwnNumber(ScalarOp):
    rule = staticmethod(floating)


def found(*outputs: Any) -> list[Op]:
    return list(find_user_ops(FrozenFunctionGraph.from_io([x], outputs)))


x = pt.vector("x")


def test_ops_of_the_engine_are_not_users() -> None:
    assert not is_user_op(pt.exp(x).owner.op)
    assert not needs_python(pt.exp(x).owner.op)
    assert found(pt.exp(x)) == []


def test_classes_defined_anywhere_else_are() -> None:
    class Local(type(pt.exp(x).owner.op)):  # type: ignore[misc]
        pass

    for op in (Own(1), Local(scalar_exp), OwnNumber()):
        assert is_user_op(op)
        assert needs_python(op)


def test_an_op_of_a_function_is_a_users() -> None:
    op = engine.wrap_py(pt.dvector, pt.dvector)(lambda x: x)
    assert is_user_op(op)
    assert found(op(x)) == [op]


def test_users_ops_are_found_at_all_depths_each_once_in_the_order_of_the_graph() -> None:
    inner = pt.vector("inner")
    deep = engine.OpFromGraph([inner], [Own(3)(inner)])
    layer = engine.OpFromGraph([inner], [deep(Own(2)(inner))])
    loop = engine.scan(lambda s: Own(4)(s), outputs_info=[x], n_steps=2, return_updates=False)
    outputs = (Own(1)(x), layer(Own(1)(x)), loop, Elemwise(OwnNumber())(x))
    assert found(*outputs) == [Own(1), Own(2), Own(3), Own(4), OwnNumber()]
    assert needs_python(layer)
    assert not needs_python(engine.OpFromGraph([inner], [pt.exp(inner)]))


def test_users_ops_are_found_in_what_an_op_holds() -> None:
    number = scalar_type("float64").make_variable()
    op = Own(1, (Own(2), (Own(3),)))
    assert found(op(x)) == [op, Own(2), Own(3)]
    composite = Composite([number], [OwnNumber()(number)])
    assert found(Elemwise(composite)(x)) == [OwnNumber()]
    assert needs_python(composite)


def test_an_op_may_declare_its_types_instead_of_a_make_node() -> None:
    node: Apply = Own(1)(x).owner
    assert [v.type for v in (*node.inputs, *node.outputs)] == [x.type, x.type]


def test_a_property_that_cannot_be_hashed_is_named() -> None:
    with pytest.raises(TypeError, match=r"Own: its property 'number' cannot be hashed.*__props__ to None"):
        hash(Own(np.ones(3)))  # type: ignore[arg-type]
