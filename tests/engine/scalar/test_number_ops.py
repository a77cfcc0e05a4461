"""Users' scalar Ops by PyTensor's protocol: numbers, types of results and gradients of numbers."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine
import engine.scalar as ps
import engine.tensor as pt
from engine import function
from engine.errors import NullGradientError
from engine.gradient import grad_not_implemented, pushforward, verify_grad
from engine.graph import Apply
from engine.inner.composite import Composite
from engine.scalar.basic import (
    BinaryScalarOp,
    ScalarOp,
    UnaryScalarOp,
    same_out,
    specific_out,
    upcast_out,
    upgrade_to_float,
)
from engine.tensor.elemwise import Elemwise


class Bent(UnaryScalarOp):
    """`slope * x` up to 2, and its opposite above."""

    def __init__(self, slope, *arguments, **options):
        self.slope = slope
        super().__init__(*arguments, **options)

    def impl(self, x):
        return -x * self.slope if x > 2 else x * self.slope

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0] * ps.switch(inputs[0] > 2, -self.slope, self.slope)]


class Power(BinaryScalarOp):
    def impl(self, x, y):
        return x**y

    def L_op(self, inputs, outputs, cotangents):
        x, y = inputs
        return [cotangents[0] * y * x ** (y - 1.0), cotangents[0] * outputs[0] * ps.log(x)]


def bent(slope=3.0):
    return Elemwise(Bent(slope, upgrade_to_float))


def test_numbers_are_computed_one_by_one_in_each_mode():
    x = pt.dmatrix("x")
    values = np.array([[1.0, 2.0], [3.0, -4.0]])
    for mode in ("FAST_RUN", "NUMPY"):
        found = function([x], pt.exp(bent()(x)) + 1, mode=mode)(values)
        np.testing.assert_allclose(found, np.exp([[3.0, 6.0], [-9.0, -12.0]]) + 1)
    assert function([x], bent()(x))(np.ones((0, 3))).shape == (0, 3)


def test_instances_differ_by_their_attributes():
    x = pt.dvector("x")
    found = function([x], [bent(2.0)(x), bent(5.0)(x)])([1.0])
    assert [value.tolist() for value in found] == [[2.0], [5.0]]


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_the_types_of_results_are_those_that_the_user_prefers(dtype):
    x = pt.vector("x", dtype=dtype)
    kinds = {same_out: dtype, upgrade_to_float: np.result_type(np.dtype(dtype), "float32").name}
    kinds |= {specific_out(ps.float32): "float32", upcast_out: dtype}
    for preference, due in kinds.items():
        found = Elemwise(Bent(1, preference))(x)
        assert found.dtype == due
        assert function([x], found)(np.array([1, 2], dtype)).dtype == due


def test_numbers_are_numpys():
    class Quotient(BinaryScalarOp):
        def impl(self, x, y):
            return x / y

    class Next(UnaryScalarOp):
        impl = staticmethod(np.negative)

    x, i = pt.dvector("x"), pt.bvector("i")
    assert function([x], Elemwise(Quotient(upgrade_to_float))(1.0, x))([0.0, 2.0]).tolist() == [np.inf, 0.5]
    found = function([i], Elemwise(Next(same_out))(i))(np.array([-128, 3], "int8"))
    assert (found.dtype, found.tolist()) == ("int8", [-128, -3])


def test_gradients_are_made_of_those_of_numbers():
    rng = np.random.default_rng(0)
    verify_grad(bent(), [rng.uniform(0, 4, (2, 3))])
    verify_grad(Elemwise(Power(upgrade_to_float)), [rng.uniform(1, 2, (2, 3)), rng.uniform(1, 2, (1, 3))])
    x = pt.dvector("x")
    tangent = function([x], pushforward(bent()(x**2), x, pt.ones_like(x)))([1.0, 2.0])
    np.testing.assert_array_equal(tangent, [6.0, -12.0])


def test_a_gradient_that_is_a_number_counts_for_each_element():
    class Shifted(UnaryScalarOp):
        def impl(self, x):
            return x + 1

        def grad(self, inputs, cotangents):
            return [ps.constant(1.0)]

    x = pt.dvector("x")
    slopes = function([x], engine.grad(pt.sum(Elemwise(Shifted(same_out))(x)), x))([5.0, 6.0])
    np.testing.assert_array_equal(slopes, [1.0, 1.0])


def test_what_has_no_gradient_is_refused_and_only_where_it_is_asked_for():
    class Scaled(ScalarOp):
        output_types_preference = staticmethod(upgrade_to_float)

        def impl(self, n, x):
            return n * x

        def grad(self, inputs, cotangents):
            return [grad_not_implemented(self, 0, inputs[0]), cotangents[0] * inputs[0]]

    class Bare(UnaryScalarOp):
        def impl(self, x):
            return x

    scaled, x = Elemwise(Scaled()), pt.dscalar("x")
    assert function([x], engine.grad(scaled(2.0, x), x))(3.0) == 2.0
    with pytest.raises(NullGradientError, match="through scaled"):
        engine.grad(scaled(x, 2.0), x)
    for derivative in (lambda y: engine.grad(y, x), lambda y: pushforward(y, x, x)):
        with pytest.raises(NullGradientError, match="bare: it defines no pullback, L_op or grad"):
            derivative(Elemwise(Bare(same_out))(x))


def test_several_results_are_those_of_make_node():
    class Parts(ScalarOp):
        def make_node(self, x):
            return Apply(self, [ps.as_scalar(x)], [ps.float64(), ps.int32()])

        def impl(self, x):
            return x % 1, int(x)

        def L_op(self, inputs, outputs, cotangents):
            return [inputs[0].ones_like() * cotangents[0]]

    x = pt.dvector("x")
    rest, whole = Elemwise(Parts())(x)
    found = function([x], [rest, whole, engine.grad(pt.sum(rest**2), x)])([1.25, 2.5])
    assert [value.tolist() for value in found] == [[0.25, 0.5], [1, 2], [0.5, 1.0]]
    assert found[1].dtype == "int32"


def test_an_op_that_performs_computes_within_a_composite():
    class Twice(ScalarOp):
        def make_node(self, x):
            return Apply(self, [x], [x.type(), x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = outputs[1][0] = inputs[0]

    x = ps.float32("x")
    assert function([x], Composite([x], Twice()(x))(x))(1.5) == [1.5, 1.5]


def test_wrong_numbers_of_arguments_and_missing_types_are_refused():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match="Applying bent: it takes 1 arguments, 2 were given"):
        bent()(x, x)
    with pytest.raises(NotImplementedError, match="neither a rule nor an output_types_preference"):
        Elemwise(Bent(1.0))(x)


PROGRAM = """
import engine, engine.tensor as pt
from engine.scalar.basic import UnaryScalarOp, upgrade_to_float
from engine.tensor.elemwise import Elemwise

class Own(UnaryScalarOp):
    def impl(self, x):
        return x * FACTOR

x = pt.dvector("x")
f = engine.function([x], Elemwise(Own(upgrade_to_float))(x) + 1)
print(f.cache_info.outcome, f([2.0])[0])
"""


def run(program: str, tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_another_process_finds_the_function_unless_the_code_differs(tmp_path):
    assert run(PROGRAM.replace("FACTOR", "3"), tmp_path) == "miss 7.0"
    assert run(PROGRAM.replace("FACTOR", "3"), tmp_path) == "hit 7.0"
    assert run(PROGRAM.replace("FACTOR", "4"), tmp_path) == "miss 9.0"
