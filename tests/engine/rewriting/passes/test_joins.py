import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.tensor.shape import MakeVector

X = np.arange(6.0).reshape(2, 3) - 2.5


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.max, pt.min])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_reduction_over_stacked_tensors_is_elementwise(rewritten, reduce, axis):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    graph = rewritten([x, y], reduce(pt.stack([x, y, x], axis=axis), axis=axis)).check_values(X, X[:, ::-1])
    assert not any(op.startswith(("Join", "Sum", "Prod", "Max", "Min")) for op in graph.ops)


def test_what_is_joined_is_computed_without_the_axis_that_joins_it(rewritten):
    x = pt.dvector("x")
    joined = pt.concatenate([pt.exp(x[None]), pt.abs(x[None])])
    graph = rewritten(x, pt.sum(joined, axis=0)).check_values(X[0])
    assert sorted(graph.ops) == ["abs", "add", "exp"]


def test_a_reduction_of_numbers_is_elementwise(rewritten):
    numbers = pt.dscalars("a", "b", "c")
    graph = rewritten(list(numbers), pt.sum(MakeVector("float64")(*numbers))).check_values(1.0, 2.5, -7.0)
    assert graph.ops == ["add", "add"]


def test_a_reduction_of_more_elements_or_over_another_axis_stays(rewritten):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    for result in (pt.sum(pt.concatenate([x, y]), axis=0), pt.sum(pt.stack([x, y]), axis=1)):
        assert any(op.startswith("Sum") for op in rewritten([x, y], result).check_values(X, X).ops)


def test_the_logarithm_of_a_product_is_a_sum_still(rewritten):
    x = pt.dvector("x")
    product = pt.prod(pt.stack([x, x]), axis=0)
    for logarithm in (pt.log(product), pt.log(abs(product))):
        graph = rewritten(x, logarithm)
        np.testing.assert_allclose(graph.evaluate(np.array([1e-300, 1e300])), 2 * np.log([1e-300, 1e300]))


def test_sums_in_a_wider_dtype_stay(rewritten):
    x = pt.fmatrix("x")
    graph = rewritten(x, pt.sum(pt.stack([x, x]), axis=0)).check_values(X.astype("float32"))
    assert any(op.startswith("Sum") for op in graph.ops)


def test_what_has_no_elements_is_not_joined(rewritten):
    x, y = pt.dvector("x"), pt.dvector("y")
    nothing = np.zeros(0)
    assert rewritten([x, y], pt.concatenate([x, nothing, y])).check_values(X[0], X[1]).ops == ["Join{axis=0}"]
    assert rewritten(x, pt.concatenate([nothing, x])).check_values(X[0]).ops == []


def test_vectors_of_numbers_side_by_side_are_one(rewritten):
    a, b, v = pt.dscalar("a"), pt.dscalar("b"), pt.dvector("v")
    make = MakeVector("float64")
    graph = rewritten([a, b, v], pt.concatenate([make(a), make(b, a), v, make(b)])).check_values(
        1.0, 2.0, X[0]
    )
    assert len(graph.fgraph.outputs[0].owner.inputs) == 3


def test_what_has_no_elements_is_not_joined_and_its_dtype_and_lengths_stay(rewritten):
    x, empty = pt.lmatrix("x"), pt.tensor("empty", shape=(2, 0))
    value = np.arange(6).reshape(2, 3)
    for several in ([empty, x], [x, empty, x]):
        joined = pt.join(1, *several)
        graph = rewritten([x, empty], joined).check_values(value, np.zeros((2, 0)), exact=True)
        assert graph.ops.count("Join{axis=1}") == len(several) - 2
        f = engine.function([x, empty], joined, on_unused_input="ignore")
        with pytest.raises((AssertionError, ValueError)):
            f(value[:1], np.zeros((2, 0)))


def test_an_empty_tensor_of_unknown_lengths_is_compared_still(rewritten):
    x, empty = pt.dmatrix("x"), pt.tensor("empty", shape=(None, 0))
    joined = pt.join(1, x, empty)
    assert "Join{axis=1}" in rewritten([x, empty], joined).check_values(X, np.zeros((2, 0)), exact=True).ops
    with pytest.raises(ValueError, match="length"):
        engine.function([x, empty], joined)(X, np.zeros((3, 0)))
