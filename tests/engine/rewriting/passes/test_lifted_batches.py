"""Parts of batches as batches of parts."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import equal_computations
from engine.graph.op import Op
from engine.rewriting import rewrite_graph
from engine.tensor.blockwise import Blockwise


class Counted(Op):
    """The sum of a vector. Counts the vectors."""

    itypes = (pt.dvector,)
    otypes = (pt.dscalar,)
    __props__ = ()
    count = 0

    def perform(self, node, inputs, output_storage):
        type(self).count += 1
        output_storage[0][0] = np.array(inputs[0].sum())


A, B, one = (
    pt.tensor("A", shape=(3, 6, 4)),
    pt.tensor("B", shape=(3, 4, 6)),
    pt.tensor("one", shape=(1, 4, 6)),
)
T, M, i = pt.dtensor3("T"), pt.dmatrix("M"), pt.lscalar("i")
sums = Blockwise(Counted(), signature="(n)->()")

MOVED = {
    "a product of a batch": ((A @ B)[i], pt.dot(A[i], B[i])),
    "products of a batch": ((A @ B)[1:], A[1:] @ B[1:]),
    "products with one matrix": ((T @ one)[i], pt.dot(T[i], one[0])),
    "a row of a product of a batch": ((A @ B)[1:, i], (A[1:] @ B[1:])[:, i]),
    "a user's function": (sums(T)[i, -1], sums(T[i, -1])),
}
KEPT = {
    "lengths that must be compared": (T @ pt.dtensor3("U"))[i],
    "a slice that may have no places": (T @ one)[i:],
    "rows of each product": (A @ B)[:, i],
    "an index of one product that may not be there": (pt.expand_dims(M, 0) @ one)[i],
    "inverses": pt.linalg.inv(T)[i],
    "determinants": pt.linalg.det(T)[i],
    "Cholesky factors": pt.linalg.cholesky(T)[i],
}


@pytest.mark.parametrize("name", MOVED)
def test_a_part_of_a_batch_is_computed_alone(name):
    written, due = MOVED[name]
    assert equal_computations([rewrite_graph(written)], [rewrite_graph(due)])


@pytest.mark.parametrize("name", KEPT)
def test_the_whole_batch_is_computed_for(name):
    found = rewrite_graph(KEPT[name])
    assert equal_computations([found], [KEPT[name]])


def test_what_is_read_elsewhere_is_computed_once():
    whole = A @ B
    found = rewrite_graph([whole[0], whole + 1.0])
    assert found[0].owner.inputs[0] is found[1].owner.inputs[0]


def test_a_users_function_is_called_where_its_result_is_read():
    f = engine.function([T], sums(T)[1])
    value = np.arange(24.0).reshape(2, 3, 4)
    Counted.count = 0
    np.testing.assert_array_equal(f(value), value.sum(2)[1])
    assert Counted.count == 3


def test_the_numbers_stay(kernels_once):
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(3, 6, 4)), rng.normal(size=(3, 4, 6)), rng.normal(size=(1, 4, 6))]
    values += [rng.normal(size=(2, 3, 4)), -1]
    outputs = [written for written, _ in MOVED.values()]
    found = engine.function([A, B, one, T, i], outputs)(*values)
    expected = engine.function([A, B, one, T, i], outputs, mode="NUMPY")(*values)
    for name, got, wanted in zip(MOVED, found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13, err_msg=name)


def test_a_place_that_is_not_there_is_refused():
    f = engine.function([A, B, i], (A @ B)[i])
    with pytest.raises(IndexError):
        f(np.ones((3, 6, 4)), np.ones((3, 4, 6)), 3)


def test_lengths_of_products_are_compared_where_a_slice_has_no_places():
    f = engine.function([T, one, i], (T @ one)[i:])
    with pytest.raises(ValueError, match="length"):
        f(np.ones((3, 6, 5)), np.ones((1, 4, 6)), 3)


def test_a_matrix_without_a_factor_is_refused_though_another_is_read():
    f = engine.function([T], pt.linalg.cholesky(T, on_error="raise")[0])
    with pytest.raises(np.linalg.LinAlgError):
        f(np.stack([np.eye(2), -np.eye(2)]))
