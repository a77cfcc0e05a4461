"""Scalar Ops become flat lists of statements: converted, opened, and without repetitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import scalar
from engine.inner import Composite
from engine.lowering.operations import check_operation
from engine.lowering.statements import Statement, dtype_of, scalar_statements
from engine.runtime.kernel_interface import COMPUTED
from engine.scalar import Cast, apply_scalar_op, scalar_type

I0, I1 = ("input", 0), ("input", 1)


def scalars(*dtypes):
    return [scalar_type(dtype).make_variable() for dtype in dtypes]


def dtypes_of(body, *inputs):
    return tuple(dtype_of(output, inputs, body.statements) for output in body.outputs)


def number(value):
    array = np.asarray(value)
    return ("constant", array.dtype.name, array.tobytes())


def test_a_single_operation_is_one_statement():
    body = scalar_statements(scalar.add, ("float64", "float64"))
    assert body.statements == (Statement("add", (I0, I1), "float64"),)
    assert body.outputs == (("value", 0),)
    assert dtypes_of(body, "float64", "float64") == ("float64",)


def test_conversions_are_statements_of_their_own():
    body = scalar_statements(scalar.add, ("float32", "int64"))
    assert [(s.op, s.dtype) for s in body.statements] == [
        ("cast", "float64"),
        ("cast", "float64"),
        ("add", "float64"),
    ]
    comparison = scalar_statements(scalar.lt, ("int32", "int64"))
    assert [(s.op, s.dtype) for s in comparison.statements] == [("cast", "int64"), ("lt", "bool")]


def test_a_conversion_is_made_once():
    x, y = scalars("float32", "float64")
    both = [apply_scalar_op(op, x, y) for op in (scalar.add, scalar.mul)]
    body = scalar_statements(Composite([x, y], both), ("float32", "float64"))
    assert [s.op for s in body.statements] == ["cast", "add", "mul"]


def test_constants_are_converted_when_the_statements_are_made():
    (x,) = scalars("float64")
    body = scalar_statements(
        Composite([x], [apply_scalar_op(scalar.add, x, scalar.as_scalar(np.int64(3)))]), ("float64",)
    )
    assert body.statements == (Statement("add", (I0, number(3.0)), "float64"),)


def test_constants_keep_their_bits():
    (x,) = scalars("float64")
    for value in (0.0, -0.0, np.nan, 5e-324):
        op = Composite([x], [apply_scalar_op(scalar.add, x, value)])
        assert scalar_statements(op, ("float64",)).statements[0].arguments[1] == number(np.float64(value))


def test_what_passes_a_value_on_is_no_statement():
    x, y = scalars("float64", "int32")
    outputs = [
        apply_scalar_op(scalar.identity, x),
        apply_scalar_op(scalar.second, x, y),
        apply_scalar_op(Cast("int32"), y),
        scalar.as_scalar(2.5),
    ]
    body = scalar_statements(Composite([x, y], outputs), ("float64", "int32"))
    assert body.statements == ()
    assert body.outputs == (I0, I1, I1, number(2.5))
    assert dtypes_of(body, "float64", "int32") == ("float64", "int32", "int32", "float64")


def test_composites_within_composites_are_opened_and_equal_statements_are_one():
    (x,) = scalars("float64")
    inner = Composite([x], [apply_scalar_op(scalar.exp, x), apply_scalar_op(scalar.sin, x)])
    (y,) = scalars("float64")
    first, second = inner.make_node(y).outputs
    again = inner.make_node(apply_scalar_op(scalar.identity, y)).outputs[0]
    outer = Composite([y], [apply_scalar_op(scalar.add, apply_scalar_op(scalar.mul, first, second), again)])
    body = scalar_statements(outer, ("float64",))
    assert [s.op for s in body.statements] == ["exp", "sin", "mul", "add"]
    assert body.statements[-1].arguments == (("value", 2), ("value", 0))


def test_arguments_of_other_dtypes_are_converted_to_those_of_a_composite():
    (x,) = scalars("float64")
    body = scalar_statements(Composite([x], [apply_scalar_op(scalar.exp, x)]), ("int32",))
    assert [(s.op, s.dtype) for s in body.statements] == [("cast", "float64"), ("exp", "float64")]


def test_dtypes_that_an_operation_does_not_take_are_refused():
    with pytest.raises(TypeError):
        scalar_statements(scalar.and_, ("float64", "float64"))


OPS = [op for op in vars(scalar).values() if isinstance(op, scalar.ScalarOp) and op.has_kernel]


@given(
    st.sampled_from(OPS),
    st.lists(st.sampled_from(["float64", "float32", "int64", "int32", "bool"]), min_size=3, max_size=3),
)
def test_every_statement_has_the_dtypes_that_a_kernel_takes(op, dtypes):
    dtypes = tuple(dtypes[: op.nin])
    try:
        result = op.signature(dtypes)[1]
    except TypeError:
        return
    if result not in COMPUTED:
        return
    body = scalar_statements(op, dtypes)
    assert dtypes_of(body, *dtypes) == (op.signature(dtypes)[1],)
    for statement in body.statements:
        found = tuple(
            dtypes[i] if kind == "input" else body.statements[i].dtype for kind, i in statement.arguments
        )
        check_operation(statement.op, found, statement.dtype)
