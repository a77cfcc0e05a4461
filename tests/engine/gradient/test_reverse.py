"""Gradients of whole graphs: what flows where, what is refused, and that nothing useless is built."""

import time

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import grad, verify_grad
from engine.errors import DisconnectedInputError, GradientError, NullGradientError
from engine.gradient import DisconnectedType, Lop, disconnected_type, grad_not_implemented, pullback
from engine.graph import Apply, Op, io_toposort
from engine.graph.null_type import NullType
from engine.graph.reference import evaluate
from engine.scalar import float64


def value(variables, output, *values):
    return evaluate(variables, [output], values)[0]


def test_a_variable_gives_its_gradient_and_a_list_a_list():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    assert value([x], grad(x**2, x), 3.0) == 6
    found = grad(x * y, [x, y])
    assert isinstance(found, list)
    assert evaluate([x, y], found, [2.0, 5.0]) == [5, 2]


def test_several_uses_of_a_variable_add_up():
    x = pt.dvector("x")
    cost = (x * pt.exp(x) + x[[0, 0, 2]].sum() * x).sum()
    assert cost.type.ndim == 0
    verify_grad(lambda x: x * pt.exp(x) + x[[0, 0, 2]].sum() * x, [np.array([0.3, -1.0, 2.0])])


def test_a_model_has_the_gradient_that_differences_give():
    rng = np.random.default_rng(0)
    index = pt.constant(rng.integers(0, 3, 20))
    design, outcome = pt.constant(rng.normal(size=(20, 2))), pt.constant(rng.normal(size=20))

    def log_density(offsets, slopes, log_scale):
        error = (outcome - offsets[index] - pt.dot(design, slopes)) * pt.exp(-log_scale)
        prior = -0.5 * pt.sum(offsets**2) - pt.sum(pt.log1p(pt.sqr(slopes)))
        return pt.sum(-0.5 * error**2) - 20 * log_scale + prior

    verify_grad(log_density, [rng.normal(size=3), rng.normal(size=2), np.array(0.3)])


def test_the_gradient_of_a_variable_between_is_that_of_the_rest():
    x = pt.dscalar("x")
    middle = pt.exp(x)
    of_middle, of_x = grad(middle**2, [middle, x])
    assert value([x], of_middle, 0.0) == 2
    assert value([x], of_x, 0.0) == 2


def test_the_gradient_of_the_cost_itself_is_one():
    x = pt.fscalar("x")
    found = grad(x, x)
    assert found.dtype == "float32"
    assert value([x], found, 5.0) == 1


def test_gradients_have_the_dtype_of_their_variable():
    x, y = pt.fvector("x"), pt.dvector("y")
    found = grad((x * y).sum() + (x / 3).mean(), [x, y])
    assert [g.dtype for g in found] == ["float32", "float64"]


def test_gradients_have_the_shape_of_their_variable_when_it_is_broadcast():
    shapes = [(1, 3), (2, 1), (), (3,), (2, 3)]
    variables = [pt.tensor(None, "float64", [1 if n == 1 else None for n in shape]) for shape in shapes]
    total = variables[0]
    for variable in variables[1:]:
        total = total * pt.exp(variable)
    found = evaluate(variables, grad(total.sum(), variables), [np.ones(shape) for shape in shapes])
    assert [g.shape for g in found] == shapes


def test_integers_get_the_slope_of_the_floats_computed_from_them():
    i, x = pt.iscalar("i"), pt.fscalar("x")
    found = grad(i * x, i)
    assert found.dtype == "float64"
    assert value([i, x], found, 2, 0.5) == 0.5


def test_nothing_flows_through_what_gives_integers_or_bools():
    x, i = pt.dvector("x"), pt.lscalar("i")
    assert value([x], grad((x > 0).sum() * 1.5, x), np.ones(2)).tolist() == [0, 0]
    assert value([x], grad((pt.cast(x, "int64") * 2.5).sum(), x), np.ones(2)).tolist() == [0, 0]
    assert value([i], grad((i + 1) * 2.5, i), 3) == 0


def test_no_gradient_flows_through_what_is_considered_constant():
    x = pt.dscalar("x")
    kept = pt.exp(x)
    assert value([x], grad(x * kept, x, consider_constant=[kept]), 1.0) == np.exp(1.0)


def test_a_variable_that_the_cost_does_not_depend_on_is_refused():
    x, y = pt.dscalar("x"), pt.dvector("y")
    with pytest.raises(DisconnectedInputError, match="does not depend on its values") as caught:
        grad(x**2, [x, y])
    assert caught.value.variable is y


def test_or_warned_of_or_given_zeros():
    x, y = pt.dscalar("x"), pt.fvector("y")
    with pytest.warns(UserWarning, match="does not depend"):
        grad(x**2, y, disconnected_inputs="warn")
    found = grad(x**2, y, disconnected_inputs="ignore")
    assert found.dtype == "float32"
    assert value([y], found, np.ones(3, "float32")).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match='"raise", "warn" or "ignore"'):
        grad(x, x, disconnected_inputs="zero")


@pytest.mark.parametrize(
    "cost",
    [
        lambda x: pt.cast(pt.shape_i(x, 0), "float64"),
        lambda x: pt.zeros_like(x).sum(),
        lambda x: pt.dvector("y")[pt.cast(x, "int64")].sum(),
        lambda x: pt.reshape(pt.dvector("y"), (pt.shape_i(x, 0), 1)).sum(),
    ],
)
def test_lengths_and_indices_do_not_connect(cost):
    x = pt.dvector("x")
    with pytest.raises(DisconnectedInputError):
        grad(cost(x), x)


def test_comparisons_connect_without_a_slope():
    x = pt.dscalar("x")
    assert value([x], grad(pt.where(x > 0, 1.0, 2.0), x), 1.0) == 0


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (pt.dvector("x"), "must be a scalar; sum it first"),
        (pt.zscalar("z"), "must be real"),
        (3.0, "must be a tensor variable"),
    ],
)
def test_the_cost_is_a_real_number_of_no_dimensions(cost, text):
    with pytest.raises(TypeError, match=text):
        grad(cost, pt.dscalar("x"))


def test_the_gradient_of_an_integer_is_zero():
    x = pt.dvector("x")
    assert grad(pt.sum(x > 0), x).eval({x: np.ones(2)}).tolist() == [0, 0]
    with pytest.raises(DisconnectedInputError):
        grad(pt.lscalar("i") + 1, x)
    i = pt.lscalar("i")
    assert grad(i, i).eval() == 1


def test_only_for_variables():
    with pytest.raises(TypeError, match="must be a tensor variable"):
        grad(pt.dscalar("x"), [3.0])


def test_known_gradients_stand_for_what_follows():
    x = pt.dvector("x")
    middle = pt.exp(x)
    found = grad(None, x, known_grads={middle: pt.constant([2.0, 3.0])})
    np.testing.assert_allclose(value([x], found, np.zeros(2)), [2, 3])
    with pytest.raises(ValueError, match="neither a cost nor known_grads"):
        grad(None, x)
    with pytest.raises(DisconnectedInputError):
        grad(None, x, known_grads={middle: disconnected_type()})
    with pytest.raises(NullGradientError, match=r"that known for .* is not defined; for a reason"):
        grad(None, x, known_grads={middle: NullType("for a reason")()})


class Undifferentiable(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.asarray(3 * inputs[0])


def test_an_op_without_a_gradient_says_so_only_when_it_is_asked():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    cost = Undifferentiable()(x) * y
    assert value([x, y], grad(Undifferentiable()(y) + x, x), 1.0, 2.0) == 1
    with pytest.raises(NullGradientError, match="it declares none") as caught:
        grad(cost, x)
    assert isinstance(caught.value.op, Undifferentiable)
    null, of_y = grad(cost, [x, y], null_gradients="return", consider_constant=iter([]))
    assert isinstance(null.type, NullType)
    assert "it declares none" in null.type.why_null
    assert value([x, y], of_y, 1.0, 2.0) == 3
    assert grad(x * y, x, null_gradients="return").type == x.type
    with pytest.raises(ValueError, match='null_gradients=None: it must be "raise" or "return"'):
        grad(cost, x, null_gradients=None)


class Twice(Op):
    """Gives its input doubled and tripled."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type(), x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0], output_storage[1][0] = inputs[0] * 2, inputs[0] * 3

    def pullback(self, inputs, outputs, cotangents):
        pairs = zip(cotangents, (2.0, 3.0), strict=True)
        terms = [g * f for g, f in pairs if not isinstance(g.type, DisconnectedType)]
        return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]


def test_an_op_of_several_outputs_is_told_which_are_not_used():
    x = pt.dvector("x")
    double, triple = Twice()(x)
    assert value([x], grad(triple.sum(), x), np.ones(1)) == [3]
    assert value([x], grad((double * triple).sum(), x), np.ones(1)) == [12]


def test_gradients_for_unneeded_inputs_are_not_built():
    data, weights = pt.dmatrix("data"), pt.dvector("weights")
    cost = pt.sum(pt.dot(data * 2.0, weights))
    found = grad(cost, weights)
    products = [node for node in io_toposort([], [found]) if isinstance(node.op, pt.Dot)]
    assert {cost.owner.inputs[0].owner, found.owner} == set(products)
    assert value([data, weights], found, np.ones((2, 3)), np.ones(3)).tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    "expression",
    [
        lambda branch, f: branch * 2.0 * f,
        lambda branch, f: (2.0 * (branch * 3.0)) * f,
        lambda branch, f: branch * f + (3.0 * branch) * (f + 1.0),
        lambda branch, f: (branch * 2.0) / (2.0 + f),
        lambda branch, f: -((3.0 * branch) / f) * f,
    ],
)
def test_a_branch_that_is_not_taken_ends_a_gradient_in_products_quotients_and_sums(expression):
    x = pt.dvector("x")
    infinite = pt.log1p(-pt.exp(-pt.sqr(x)))  # its derivative at 0 is infinite
    branches = [pt.switch(x > 0, pt.sqrt(x), 0.0) for _ in range(2)]  # one condition, written twice
    total = expression(branches[0], infinite) - branches[1] * infinite
    assert value([x], grad(total.sum(), x), [0.0]) == [0.0]


def test_a_sum_over_broadcast_axes_is_built_only_where_one_was_broadcast():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    found = io_toposort([], grad((x * y).sum(), [x, y]))
    assert not [node for node in found if isinstance(node.op, pt.Sum)]


def test_a_deep_graph_has_a_gradient():
    x = pt.dscalar("x")
    cost = x
    for _ in range(5000):
        cost = cost * 1.0001
    assert value([x], grad(cost, x), 1.0) == pytest.approx(1.0001**5000)


def test_a_gradient_costs_what_its_graph_is_long():
    def seconds(count):
        x = chain = pt.dvector("x")
        for _ in range(count):
            chain = pt.exp(chain * 0.5)
        cost = chain.sum()
        start = time.process_time()
        grad(cost, x)
        return (time.process_time() - start) / count

    assert min(seconds(2000) for _ in range(2)) < 8 * min(seconds(100) for _ in range(3))


def test_second_derivatives():
    x = pt.dscalar("x")
    first = grad(pt.exp(x) * x**3, x)
    assert value([x], grad(first, x), 1.5) == pytest.approx(np.exp(1.5) * (1.5**3 + 6 * 1.5**2 + 6 * 1.5))


class WrongGradient(Undifferentiable):
    """The identity, whose gradient is wrong for the second element."""

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0].copy()

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0] * np.array([1.0, 1.5])]


def test_a_wrong_gradient_is_found_and_where():
    with pytest.raises(GradientError, match=r"argument 0: at element \(1,\)") as caught:
        verify_grad(WrongGradient(), [np.ones(2)])
    assert caught.value.index == (1,)
    assert caught.value.found == pytest.approx(1.5 * caught.value.expected)


def test_a_kink_is_found():
    with pytest.raises(GradientError):
        verify_grad(lambda x: pt.maximum(x, 0.0), [np.array([0.0])])


class SummedGradient(WrongGradient):
    """The identity, whose gradient has lost an axis's length."""

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0].sum(keepdims=True)]


def test_a_gradient_of_another_shape_is_found():
    with pytest.raises(ValueError, match=r"shape \(3,\): it has shape \(1,\)"):
        verify_grad(SummedGradient(), [np.ones(3)])


def test_tolerances_can_be_given():
    verify_grad(pt.exp, [np.ones(2)], eps=1e-2, abs_tol=1e-3, rel_tol=0)
    with pytest.raises(GradientError):
        verify_grad(pt.exp, [np.ones(2)], eps=1e-2, abs_tol=0, rel_tol=0)


def test_cotangents_are_pulled_back():
    x, y, u = pt.dvector("x"), pt.dvector("y"), pt.dvector("u")
    found = pullback(x * y, [x, y], u)
    assert isinstance(found, list)
    values = evaluate([x, y, u], found, [[1.0, 2.0], [3.0, 4.0], [1.0, -1.0]])
    assert [v.tolist() for v in values] == [[3, -4], [1, -2]]
    twice = pullback((x * 2, x * 2, x), x, [u, u, u])
    assert evaluate([x, u], [twice], [[1.0], [1.0]])[0].tolist() == [5]
    assert evaluate([x, u], [Lop(x * 2, x, eval_points=u)], [[1.0], [1.0]])[0].tolist() == [2]


def test_pulling_back_refuses_what_does_not_fit_and_gives_none_where_asked():
    x, y = pt.dvector("x"), pt.dvector("y")
    with pytest.raises(ValueError, match="one for each"):
        pullback([x, y], x, [x])
    with pytest.raises(DisconnectedInputError):
        pullback(x * 2, y, x)
    found = pullback(x * 2, (x, y), x, disconnected_inputs="ignore", return_disconnected="none")
    assert isinstance(found, tuple)
    assert found[1] is None
    with pytest.raises(ValueError, match="return_disconnected"):
        grad(pt.sum(x), x, return_disconnected="nothing")


def test_cotangents_of_numbers_are_pulled_back_as_numbers():
    x, u = float64("x"), float64("u")
    found = pullback(x**2, x, u)
    assert found.type == x.type
    assert found.eval({x: 3.0, u: 1.5}) == 9


def test_an_undefined_gradient_is_no_output_of_a_function():
    x = pt.dvector("x")
    undefined = grad_not_implemented(pt.exp, 0, x, "nobody has")
    for outputs in (undefined, [undefined]):
        with pytest.raises(TypeError, match="is not implemented: nobody has"):
            engine.function([x], outputs)


def test_a_gradient_has_the_static_lengths_of_its_variable():
    x, y = pt.tensor("x", shape=(1,)), pt.vector("y")
    found = engine.grad(pt.dot(x, y), x)
    assert found.type.shape == (1,)
    assert found.eval({y: [3.0], x: [2.0]}) == [3.0]


@pytest.mark.parametrize(("length", "compiles"), [(10, False), (300, True)])
def test_a_gradient_of_many_elements_is_verified_by_compiled_functions(monkeypatch, length, compiles):
    made = []
    real = engine.functions.function
    monkeypatch.setattr(engine.functions, "function", lambda *a, **k: made.append(k) or real(*a, **k))
    verify_grad(lambda x: pt.sin(x), [np.linspace(0.1, 1.0, length)])
    assert bool(made) == compiles
