"""Operations element by element: broadcasting, its refusals, and gradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine.tensor as pt
from engine import grad, scalar, verify_grad
from engine.graph.reference import evaluate
from engine.tensor import Elemwise
from tests.engine.special_values import DTYPES, arrays, same

UNARY = ["exp", "expm1", "sqr", "sin", "cos", "tanh", "sigmoid", "softplus", "neg", "identity", "abs"]
UNARY += ["exp2", "arctan", "sinh", "cosh", "arcsinh", "erf", "erfc"]
POSITIVE = ["log", "log1p", "sqrt", "reciprocal", "log2", "log10", "gamma", "gammaln", "psi"]
BINARY = [
    "arctan2",
    "logaddexp",
    "hypot",
    "copysign",
    "nextafter",
    "add",
    "sub",
    "mul",
    "true_div",
    "mod",
    "pow",
    "maximum",
    "minimum",
    "second",
]


def static(shape, broadcasting=True):
    return tuple([1 if n == 1 and broadcasting else None for n in shape])


@st.composite
def broadcastable(draw):
    """Two shapes that broadcast, of ranks that may differ."""
    full = draw(st.lists(st.integers(0, 3), max_size=3))
    shapes = []
    for _ in range(2):
        kept = full[draw(st.integers(0, len(full))) :]
        shapes.append(tuple([draw(st.sampled_from([n, 1])) for n in kept]))
    return shapes


@given(st.data(), broadcastable(), st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_broadcasting_and_promotion_are_numpys(data, shapes, first, second):
    values = [data.draw(arrays(dtype, shape)) for dtype, shape in zip((first, second), shapes, strict=True)]
    variables = [pt.tensor(None, v.dtype, static(v.shape)) for v in values]
    with np.errstate(all="ignore"):
        expected = np.asarray(np.multiply(*values))
    output = variables[0] * variables[1]
    assert same(evaluate(variables, [output], values)[0], expected)
    assert output.type.ndim == expected.ndim


@given(st.data(), broadcastable())
def test_where_broadcasts_all_three(data, shapes):
    c, a = [data.draw(arrays(d, s)) for d, s in zip(("bool", "float32"), shapes, strict=True)]
    variables = [pt.tensor(None, v.dtype, static(v.shape)) for v in (c, a)]
    output = pt.where(variables[0], variables[1], 2)
    assert same(evaluate(variables, [output], [c, a])[0], np.asarray(np.where(c, a, np.float32(2))))


def test_strided_inputs_are_right():
    x, value = pt.dmatrix("x"), np.arange(24.0).reshape(4, 6)
    for view in (value.T, value[::2, ::-1], np.broadcast_to(value[:1], (3, 6))):
        assert same(evaluate([x], [x + x], [view])[0], view + view)


def test_the_static_shape_is_what_is_known_of_the_result():
    x, y = pt.tensor("x", "float64", (None, 1, 5)), pt.tensor("y", "float64", (1, None))
    assert (x + y).type.shape == (None, 1, 5)
    assert (x + pt.tensor("z", "float64", (3, 1, 1))).type.shape == (3, 1, 5)
    assert pt.exp(pt.row("r")).type.shape == (1, None)


def test_inputs_of_lower_rank_get_axes_in_front():
    node = (pt.dmatrix("m") + pt.dvector("v")).owner
    assert [v.type.shape for v in node.inputs] == [(None, None), (1, None)]
    assert node.inputs[1].owner.op.new_order == ("x", 0)


def test_constants_are_given_axes_without_a_node():
    node = (pt.dmatrix("m") * np.arange(3.0)).owner
    assert node.inputs[1].owner is None
    assert node.inputs[1].type.shape == (1, 3)


def test_lengths_known_not_to_fit_are_refused_when_the_node_is_made():
    x, y = pt.tensor("x", "float64", (2, 3)), pt.tensor("y", "float64", (4,))
    with pytest.raises(ValueError, match=r"axis 1 do not fit: input 0 has 3, input 1 has 4"):
        x + y


def test_lengths_that_do_not_fit_are_refused_when_computed():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    with pytest.raises(
        ValueError, match=r"Computing add: along axis 1, input 0 has length 3, input 1 has length 2.*mismatch"
    ):
        evaluate([x, y], [x + y], [np.ones((2, 3)), np.ones((2, 2))])


def test_a_length_of_one_not_known_when_the_graph_was_built_does_not_broadcast():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    with pytest.raises(
        ValueError,
        match=r"axis 0, input 0 has length 1, input 1 has length 4.*not allowed.*shape=\(1, \.\.\.\)",
    ):
        evaluate([x, y], [x + y], [np.ones((1, 3)), np.ones((4, 3))])
    row = pt.row("r")
    assert evaluate([row, y], [row + y], [np.ones((1, 3)), np.ones((4, 3))])[0].shape == (4, 3)


def test_lengths_of_one_may_meet_each_other():
    x, y = pt.dvector("x"), pt.dvector("y")
    assert evaluate([x, y], [x + y], [np.ones(1), np.ones(1)])[0].tolist() == [2]


def test_dtypes_that_an_operation_does_not_take_are_refused():
    b = pt.vector("b", dtype="bool")
    for build in (lambda: b - b, lambda: -b, lambda: ~pt.dvector()):
        with pytest.raises(TypeError, match="is not defined"):
            build()


def test_operations_are_equal_by_their_scalar_operation():
    assert Elemwise(scalar.add) == pt.add
    assert pt.add != pt.mul
    assert (pt.expit, pt.power, pt.fill) == (pt.sigmoid, pt.pow, pt.second)


def test_casting_to_the_same_dtype_builds_nothing():
    x = pt.dvector("x")
    assert pt.cast(x, "float64") is x
    assert pt.cast(x, np.float32).dtype == "float32"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", UNARY + POSITIVE)
def test_gradients_of_functions(name, dtype):
    rng = np.random.default_rng(3)
    value = rng.uniform(0.5, 1.5, (2, 3)) if name in POSITIVE else rng.normal(size=(2, 3))
    verify_grad(getattr(pt, name), [value.astype(dtype)])


@pytest.mark.parametrize("name", ["tan", "arcsin", "arccos", "arctanh", "logit", "log1mexp", "arccosh"])
def test_gradients_of_functions_of_an_interval(name):
    start = {"logit": 0.2, "log1mexp": -1.5, "arccosh": 1.2}.get(name, -0.8)
    values = np.linspace(start, start + (0.6 if name != "log1mexp" else 1.4), 7)
    verify_grad(getattr(pt, name), [values])


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_no_gradient_flows_through_what_rounds(name):
    x = pt.dvector("x")
    (found,) = evaluate([x], [grad(pt.sum(getattr(pt, name)(x) * x), x)], [[0.3, 1.7]])
    np.testing.assert_array_equal(found, getattr(np, name)([0.3, 1.7]))


def test_clipping_keeps_between():
    x = pt.dvector("x")
    assert evaluate([x], [pt.clip(x, -1, 2)], [[-3.0, 0.5, 7.0]])[0].tolist() == [-1, 0.5, 2]
    verify_grad(lambda x: pt.clip(x, -1.0, 2.0), [np.array([-3.0, 0.5, 7.0])])


def test_what_would_overflow_or_cancel_does_not():
    x, y = pt.dvector("x"), pt.dvector("y")
    small, sums = evaluate([x, y], [pt.log1mexp(x), pt.logaddexp(x, y)], [[-1e-20, -1e3], [-1e-20, -2e3]])
    np.testing.assert_allclose(small, [np.log(1e-20), 0])
    np.testing.assert_allclose(sums, [np.log(2), -1e3])
    infinite = evaluate([x, y], [pt.logaddexp(x, y)], [[-np.inf, np.inf], [-np.inf, 1.0]])[0]
    assert infinite.tolist() == [-np.inf, np.inf]


SHAPES = [
    ((2, 3), (2, 3)),
    ((2, 1), (1, 3)),
    ((3,), (2, 3)),
    ((2, 3), ()),
    ((1, 1), (2, 3)),
    ((0, 3), (1, 3)),
]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", BINARY)
def test_gradients_of_operations_that_broadcast_both_ways(name, shapes):
    rng = np.random.default_rng(4)
    verify_grad(getattr(pt, name), [rng.uniform(0.6, 2.4, shape) for shape in shapes])


def test_gradients_of_where_with_each_choice_broadcast():
    rng = np.random.default_rng(5)
    condition = pt.constant(rng.random((2, 3)) < 0.5)
    verify_grad(lambda a, b: pt.where(condition, a, b), [rng.normal(size=(1, 3)), rng.normal(size=(2, 1))])


def test_gradients_have_their_variables_dtype():
    x, y, i = pt.fvector("x"), pt.dvector("y"), pt.ivector("i")
    node = pt.mul(x, y).owner
    found = node.op.pullback(node.inputs, node.outputs, [pt.dvector()])
    assert [g.dtype for g in found] == ["float32", "float64"]
    node = pt.mul(x, i).owner
    assert node.op.pullback(node.inputs, node.outputs, [pt.dvector()])[0].dtype == "float32"


def test_the_gradient_of_a_power_is_right_where_logarithms_are_not():
    x, y = pt.dvector("x"), pt.dvector("y")
    power = x**y
    values = [np.array([0.0, 0.0, 2.0, -2.0]), np.array([0.0, 2.0, 0.0, 2.0])]
    of_x, of_y = power.owner.op.pullback([x, y], [power], [pt.ones_like(x)])
    found = evaluate([x, y], [of_x, of_y], values)
    np.testing.assert_array_equal(found[0], [0, 0, 0, -4])
    np.testing.assert_array_equal(found[1], [0, 0, np.log(2), np.nan])
    squared = x**2
    (only_x,) = squared.owner.op.pullback(squared.owner.inputs, [squared], [pt.ones_like(x)])[:1]
    np.testing.assert_array_equal(evaluate([x], [only_x], values[:1])[0], 2 * values[0])


def test_an_outer_operation_has_the_axes_of_both():
    x, y = pt.dmatrix("x"), pt.dtensor3("y")
    values = [np.arange(6.0).reshape(2, 3), np.arange(4.0).reshape(2, 1, 2)]
    found = evaluate([x, y], [pt.add.outer(x, y), pt.mul.outer(y, x), pt.sub.outer(x, 2.0)], values)
    np.testing.assert_array_equal(found[0], np.add.outer(*values))
    np.testing.assert_array_equal(found[1], np.multiply.outer(*values[::-1]))
    np.testing.assert_array_equal(found[2], values[0] - 2.0)


def test_an_operation_tells_the_lengths_of_its_result():
    x, y, n = pt.tensor("x", shape=(None, 1)), pt.tensor("y", shape=(None, 0)), pt.lscalar("n")
    ((first, second),) = pt.mul(x, y).owner.op.infer_shape(pt.mul(x, y).owner, [(n, 1), (n, 0)])
    assert first is n
    assert second.data == 0
    ((only,),) = pt.exp(pt.tensor(shape=(1,))).owner.op.infer_shape(
        pt.exp(pt.tensor(shape=(1,))).owner, [(scalar.constant(1),)]
    )
    assert only.data == 1
