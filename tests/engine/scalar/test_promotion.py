"""The dtypes that operations compute in are numpy's, but for functions of reals of narrow integers."""

from itertools import product

import numpy as np
import pytest

from engine import scalar
from engine.scalar.promotion import common, weak_dtype
from tests.engine.special_values import DTYPES

PAIRS = list(product(DTYPES, DTYPES))
UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "true_div": np.true_divide,
    "floor_div": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "neq": np.not_equal,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "neg": np.negative,
    "abs": np.absolute,
    "sign": np.sign,
    "sqr": np.square,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "invert": np.invert,
    "isnan": np.isnan,
    "exp2": np.exp2,
    "log2": np.log2,
    "log10": np.log10,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "signbit": np.signbit,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "isinf": np.isinf,
    "round": lambda x, dtype=None: np.rint(x) if x.dtype.kind in "fc" else x,
}
NARROW = ("bool", "int8", "int16", "uint8", "uint16")


def numpy_result(ufunc, dtypes):
    """The result's dtype, or None if numpy has no such operation."""
    try:
        with np.errstate(all="ignore"):
            return ufunc(*[np.ones(1, dtype) for dtype in dtypes]).dtype.name
    except TypeError:
        return None


@pytest.mark.parametrize("dtypes", PAIRS)
def test_the_common_dtype_is_numpys(dtypes):
    assert common(dtypes) == np.result_type(*dtypes).name


@pytest.mark.parametrize("name", UFUNCS)
def test_the_result_has_numpys_dtype_or_is_refused_as_by_numpy(name):
    op, ufunc = getattr(scalar, name), UFUNCS[name]
    for dtypes in product(DTYPES, repeat=op.nin):
        expected = numpy_result(ufunc, dtypes)
        if expected is None:
            with pytest.raises(TypeError, match=rf"Applying {name} to \({', '.join(dtypes)}\)"):
                op.signature(dtypes)
        else:
            narrow = all(dtype in NARROW for dtype in dtypes) and expected in ("float16", "float32")
            assert op.signature(dtypes)[1] == ("float64" if narrow else expected), dtypes


@pytest.mark.parametrize(
    "name",
    "sigmoid softplus log1mexp reciprocal erf erfc gamma gammaln psi tri_gamma".split(),
)
def test_functions_of_reals_give_float64_for_integers(name):
    op = getattr(scalar, name)
    assert {dtype: op.signature((dtype,))[1] for dtype in DTYPES} == {
        dtype: "float32" if dtype == "float32" else "float64" for dtype in DTYPES
    }


@pytest.mark.parametrize("dtypes", PAIRS)
def test_where_gives_the_common_dtype_of_its_choices(dtypes):
    assert scalar.where.signature(("bool", *dtypes)) == (
        ("bool", common(dtypes), common(dtypes)),
        np.result_type(*dtypes).name,
    )


def test_second_gives_the_dtype_of_the_second_and_casts_nothing():
    assert scalar.second.signature(("int32", "float32")) == (("int32", "float32"), "float32")


@pytest.mark.parametrize("dtypes", PAIRS)
def test_cast_gives_its_dtype(dtypes):
    assert scalar.Cast(dtypes[1]).signature(dtypes[:1]) == (dtypes[:1], dtypes[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 2, 2.5])
def test_a_python_number_is_weak_as_numpys(number, dtype):
    strong = np.ones(1, dtype)
    expected = (strong * number).dtype.name
    assert common((dtype, weak_dtype(number, (dtype,)))) == expected


def test_a_python_number_alone_is_int64_float64_or_bool():
    assert [weak_dtype(number, ()) for number in (1, 1.0, True)] == ["int64", "float64", "bool"]


def test_an_integer_that_does_not_fit_is_refused_as_by_numpy():
    with pytest.raises(OverflowError, match="2147483648 as int32"):
        weak_dtype(2**31, ("int32",))
    with pytest.raises(OverflowError, match="as int64"):
        weak_dtype(2**63, ())
    with pytest.raises(OverflowError, match="-1 as uint8"):
        weak_dtype(-1, ("uint8",))
    assert weak_dtype(-(2**31), ("int32",)) == "int32"
    assert weak_dtype(2**64 - 1, ("uint64",)) == "uint64"
    assert weak_dtype(2**70, ("float32",)) == "float32"


def test_another_number_of_arguments_is_refused():
    with pytest.raises(TypeError, match="add: it takes 2 arguments, 3 were given"):
        scalar.add.signature(("bool", "bool", "bool"))


def test_an_unknown_dtype_to_cast_to_is_refused():
    with pytest.raises(TypeError, match=r"'float128'.*float64"):
        scalar.Cast("float128")
