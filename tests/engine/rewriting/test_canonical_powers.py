import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compile.mode import get_default_mode
from engine.tensor.rewriting.math import local_mul_exp_to_exp_add, local_mul_pow_to_pow_add

NAMES = (local_mul_exp_to_exp_add.name, local_mul_pow_to_pow_add.name)
VALUES = [np.array([0.5, 3.0]), np.array([-1.5, 2.0]), np.array([2.5, -0.25]), np.array([1.5, 4.0])]


@pytest.fixture
def named():
    return [pt.dvector(name) for name in "xyza"]


def merged(inputs, output, names=NAMES):
    mode = get_default_mode().excluding("fusion").including(*names)
    return engine.function(inputs, output, mode=mode, on_unused_input="ignore")


def names_of(function):
    ops = [node.op for node in function.maker.fgraph.toposort()]
    return sorted(op.scalar_op.name for op in ops if isinstance(op, pt.elemwise.Elemwise))


@pytest.mark.parametrize(
    ("build", "due"),
    [
        (lambda x, y, z, a: pt.exp(x) * y * pt.exp(z) / a, ["add", "exp", "mul", "true_div"]),
        (lambda x, y, z, a: a / pt.exp(x) / pt.exp(y) / a * a, ["add", "exp", "mul", "neg"]),
        (lambda x, y, z, a: a**x * y * a**z, ["add", "mul", "pow"]),
        (lambda x, y, z, a: a**x * 3.0 / a**z, ["mul", "pow", "sub"]),
        (lambda x, y, z, a: a**x * y / a**x, []),
        (lambda x, y, z, a: pt.exp(x) * y * pt.exp(-x), []),
        (lambda x, y, z, a: a**x * pt.exp(y) * a**z * pt.exp(z), ["add", "add", "exp", "mul", "pow"]),
    ],
)
def test_powers_of_one_base_are_one_power(named, build, due):
    function, plain = (
        merged(named, build(*named)),
        engine.function(named, build(*named), on_unused_input="ignore"),
    )
    assert names_of(function) == due
    np.testing.assert_allclose(function(*VALUES), plain(*VALUES), rtol=1e-13)


def test_functions_have_them_by_name_alone(named):
    x, y, z, _ = named
    product = pt.exp(x) * y * pt.exp(z)
    assert names_of(merged(named, product, ())).count("exp") == 2
    assert names_of(merged(named, product, NAMES[1:])).count("exp") == 2


def test_exponents_of_a_column_and_a_row_are_not_added():
    row, column, x = pt.drow("row"), pt.dcol("column"), pt.dmatrix("x")
    product = pt.exp(row) * x * pt.exp(column)
    assert names_of(merged([row, column, x], product)).count("exp") == 2


def test_what_cancels_has_a_part_in_the_shape_still():
    row, column = pt.drow("row"), pt.dcol("column")
    function = merged([row, column], pt.exp(row) * column * pt.exp(-row))
    np.testing.assert_array_equal(function(np.ones((1, 3)), np.full((2, 1), 5.0)), np.full((2, 3), 5.0))


def test_whole_numbers_and_products_of_no_plain_number_stay(named):
    x = named[0]
    m, n = pt.lvector("m"), pt.lvector("n")
    assert names_of(merged([m, n], 2**m * 2**n)).count("pow") == 2
    product = pt.exp(x) * 0.0 * pt.exp(x + 1)
    np.testing.assert_array_equal(merged([x], product)(np.array([1e9, 1.0])), [np.nan, 0.0])
