"""Each scalar Op on special values of each dtype gives what PyTensor's own `perform` gives."""

from __future__ import annotations

import inspect

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.scalar.basic as psb
import pytensor.scalar.loop as psl
import pytensor.scalar.math as psm
import pytensor.tensor as pt
import pytest
from pytensor.scalar.basic import Composite, float64
from pytensor.tensor.elemwise import Elemwise

from engine.pytensor.rules.scalar_ops import LOOPS, RULES
from tests.engine.pytensor.comparing import agree, by_engine, left_to_pytensor
from tests.engine.special_values import special

SMALL = ("int8", "int16", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("float64", "float32", "int64", "int32", "bool", *SMALL)
PAIRS = [
    ("float64", "float64"),
    ("float32", "float32"),
    ("float32", "int8"),
    ("float32", "int64"),
    ("int8", "int8"),
    ("uint8", "int8"),
    ("int64", "int32"),
    ("uint16", "uint32"),
    ("uint64", "int64"),
    ("uint64", "uint8"),
    ("int8", "float64"),
    ("bool", "int8"),
    ("bool", "float64"),
]
# Undefined, and not the same in numpy: floats outside the integers' range.
INTO = {"float64": ("float32", "bool"), "float32": ("float64", "bool")}


def values(dtype: str) -> np.ndarray:
    if dtype.startswith("u"):
        most = np.iinfo(dtype).max
        return np.array([0, 1, 2, 7, 100, most, most - 1], dtype)
    return special(dtype)


LEFT = {
    ps.Imag: "of complex numbers",
    ps.Complex: "of complex numbers",
}
"""The scalar Ops without a rule, and why."""
BASES = (
    *(psb.ScalarOp, psb.UnaryScalarOp, psb.BinaryScalarOp, psb.LogicalComparison, psb.FixedLogicalComparison),
    *(psb.UnaryBitOp, psb.BinaryBitOp, psb.ScalarInnerGraphOp),
)


def classes() -> set[type]:
    """The classes of scalar Ops that PyTensor defines."""
    return {
        item
        for module in (psb, psm, psl)
        for item in vars(module).values()
        if inspect.isclass(item)
        and issubclass(item, psb.ScalarOp)
        and item.__module__.startswith("pytensor.")
    }


def test_each_class_of_scalar_ops_has_a_rule_or_a_reason() -> None:
    translated = {*RULES, *LOOPS, ps.Composite}
    assert not translated & set(LEFT)
    assert classes() - set(BASES) == translated | set(LEFT)


def instances() -> dict[type, object]:
    """An instance of each class that is in the table and among PyTensor's names."""
    found = {}
    for module in (ps, psm):
        for item in vars(module).values():
            if isinstance(item, ps.ScalarOp) and type(item) in RULES and not inspect.isclass(item):
                found.setdefault(type(item), item)
    return found


OPS = {op: item for op, item in instances().items() if op not in (ps.Cast, ps.Composite)}
UNARY = [item for item in OPS.values() if item.nin == 1]
BINARY = [item for item in OPS.values() if item.nin in (2, -1)]


def applied(op: object, *inputs: object) -> list[object]:
    """The Op's output on `inputs`, or nothing if PyTensor refuses them."""
    try:
        return [Elemwise(op)(*inputs)]
    except (TypeError, NotImplementedError, AssertionError):
        return []


def test_every_rule_is_for_an_op_that_pytensor_names() -> None:
    assert set(RULES) - set(OPS) == {ps.Cast}


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_on_one_number(dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    outputs = [o for op in UNARY for o in applied(op, x) if o.type.dtype not in ("float16", "complex64")]
    # numpy computes functions of bytes in float16, of which PyTensor makes a float32.
    agree([x], outputs, [values(dtype)], whole=False, rtol=2e-3 if np.dtype(dtype).itemsize == 1 else 1e-11)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_operations_on_two_numbers(first: str, second: str) -> None:
    x, y = pt.vector("x", dtype=first), pt.vector("y", dtype=second)
    a, b = (grid.ravel() for grid in np.meshgrid(values(first), values(second)))
    outputs = [o for op in BINARY if not isinstance(op, ps.Pow) for o in applied(op, x, y)]
    agree([x, y], outputs, [a, b], whole=False, rtol=1e-11)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_powers_of_numbers_that_have_one(first: str, second: str) -> None:
    x, y = pt.vector("x", dtype=first), pt.vector("y", dtype=second)
    a, b = (grid.ravel() for grid in np.meshgrid(values(first), values(second)))
    keep = b >= 0 if second != "bool" else np.ones(len(b), bool)
    agree([x, y], applied(ps.pow, x, y), [a[keep], b[keep]], rtol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_to_every_dtype_that_holds_some_of_the_values(dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    into = INTO.get(dtype, DTYPES)
    agree([x], [pt.cast(x, other) for other in into if other != dtype], [values(dtype)])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_casts_of_floats_to_integers_that_hold_them(dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    given = np.array([0.0, -0.0, 0.9, 1.5, 100.7, 127.0], dtype)
    agree([x], [pt.cast(x, other) for other in DTYPES if other != dtype], [given])


def test_a_choice_and_a_limit_take_nan_and_bounds_in_the_wrong_order_as_pytensor_does() -> None:
    x, low, high = pt.dvectors("x", "low", "high")
    grids = [
        g.ravel() for g in np.meshgrid([np.nan, -1.0, 0.0, 3.0, np.inf], [-1.0, 2.0], [0.0, 1.0, np.nan])
    ]
    agree([x, low, high], [pt.clip(x, low, high), pt.switch(x, low, high)], grids)


def test_a_composite_is_its_operations() -> None:
    x, y = float64("x"), float64("y")
    op = Elemwise(Composite([x, y], [ps.exp(x) * y + 1, ps.identity(x)]))
    a, b = pt.dvector("a"), pt.drow("b")
    agree([a, b], op(a.dimshuffle("x", 0), b.T), [np.arange(3.0), np.ones((1, 2))])


def test_an_operation_without_a_rule_is_left_to_pytensor() -> None:
    x = pt.dvector("x")
    outputs = [pt.exp(pt.polygamma(2, x)) + 1, pt.cast(x, "complex128")]
    assert len(left_to_pytensor(by_engine([x], outputs))) == 2
    agree([x], outputs, [np.array([0.5, -1.0])], whole=False)


def test_special_functions_and_their_slopes_are_whole() -> None:
    """The derivatives by the parameters are series, loops of scalar Ops."""
    a, b, c, z = pt.dvectors("a", "b", "c", "z")
    values = [[0.5, 1.5, 3.0, 20.0], [1.5, 2.0, 0.3, 4.0], [2.5, 3.0, 1.3, 30.0], [0.1, 0.5, 0.9, 0.7]]
    given = [np.array(row) for row in values]
    of_one = pt.erfcx(a) + pt.erfinv(z) + pt.i0(b) + pt.i1(b) + pt.j0(a) + pt.j1(b)
    for made, by in (
        (pt.gammainc(a, b * z), [a, b]),
        (pt.gammaincc(a, b * z), [a, b]),
        (pt.betainc(a, b, z), [a, b, z]),
        (pt.hyp2f1(a, b, c, z), [a, b, c, z]),
        (pt.owens_t(a, b), [a, b]),
        (of_one, [a, b, z]),
        (pt.jv(a, c) + pt.ive(a, b) + pt.kve(a, z), [b, c, z]),
    ):
        slopes = pytensor.grad(made.sum(), by)
        agree([a, b, c, z], [made, *slopes], given, rtol=1e-9)


def test_halves_are_rounded_away_from_0() -> None:
    x = pt.dvector("x")
    value = np.array([0.5, -0.5, 1.5, 2.5, -2.4, 0.0, -0.0, 2.0**53 - 1, np.inf, -np.inf, np.nan])
    agree([x], [pt.round(x, mode="half_away_from_zero")], [value])


def test_polygamma_of_a_known_order_is_psi_or_its_slope() -> None:
    x = pt.dvector("x")
    orders = [pt.polygamma(np.int64(0), x), pt.polygamma(np.int64(1), x)]
    agree([x], orders, [np.array([0.3, 2.0, 50.0])], whole=False, rtol=1e-11)
