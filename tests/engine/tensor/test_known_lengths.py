"""Lengths known when a graph is built: types have them, and graphs do not lose what they were taken of."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.gradient import grad, jacobian
from engine.graph.replace import clone_replace, vectorize_graph
from engine.graph.variables import Constant
from engine.scalar import UnaryScalarOp, same_out
from engine.tensor.elemwise import Elemwise
from engine.tensor.known_lengths import known_length
from engine.tensor.shape import Shape_i

THREE, ANY = (pt.tensor(name, shape=(n,)) for name, n in (("three", 3), ("any", None)))


@pytest.mark.parametrize(
    ("length", "due"),
    [
        (pt.shape_i(THREE, 0), 3),
        (THREE.shape[0], 3),
        (THREE.shape[-1] * 2 + 1, 7),
        (THREE.size, 3),
        (pt.maximum(THREE.shape[0], 5), 5),
        (pt.cast(THREE.shape[0], "int8"), 3),
        (pt.broadcast_shape(THREE, pt.tensor(shape=(None, 3)))[1], 3),
        (pt.shape_i(ANY, 0), None),
        (ANY.shape[0] + 1, None),
        (THREE.shape[ANY.shape[0]], None),
        (pt.lscalar(), None),
        (pt.cast(pt.true_div(THREE.shape[0], 2), "int64"), None),
    ],
)
def test_a_length_is_known_as_far_as_it_is_computed_of_known_ones(length, due):
    assert known_length(length) == due


def test_a_length_is_searched_to_a_depth():
    length = THREE.shape[0]
    for _ in range(20):
        length = length + 1
    assert known_length(length) is None
    assert known_length(length, 50) == 23


def test_no_function_of_a_user_is_called_for_a_length():
    class Next(UnaryScalarOp):
        def impl(self, n):
            raise AssertionError("called")

    assert known_length(Elemwise(Next(same_out))(THREE.shape[0])) is None


LENGTHS_ALONE = {
    "shape": lambda x: x.shape,
    "size": lambda x: x.size,
    "zeros": lambda x: pt.zeros(x.shape),
    "full": lambda x: pt.full(x.shape[0], 2.5),
    "arange": lambda x: pt.arange(x.shape[0]),
    "eye": lambda x: pt.eye(x.shape[0]),
    "broadcast_to": lambda x: pt.broadcast_to(1.5, x.shape),
}
LENGTHS_AND_ELEMENTS = {
    "mean": pt.mean,
    "var": pt.var,
    "median": pt.median,
    "cov": lambda x: pt.cov(pt.stack([x, x * x])),
    "repeat": lambda x: pt.repeat(x, 2),
    "tile": lambda x: pt.tile(x, 3),
    "roll": lambda x: pt.roll(x, 1),
    "pad": lambda x: pt.pad(x, 1, mode="reflect"),
    "reshape": lambda x: x.reshape((x.shape[0], 1)),
    "last": lambda x: x[x.shape[0] - 1],
    "concatenate": lambda x: pt.concatenate([x, pt.zeros(x.shape[0])]),
    "gradient of a mean": lambda x: grad(x.mean(), x),
    "gradient of a variance": lambda x: grad(x.var(), x),
}
BUILDERS = pytest.mark.parametrize(
    "build",
    [*LENGTHS_ALONE.values(), *LENGTHS_AND_ELEMENTS.values()],
    ids=[*LENGTHS_ALONE, *LENGTHS_AND_ELEMENTS],
)


@BUILDERS
def test_a_batch_of_what_has_a_known_length_has_its_axes(build):
    rows = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 4.5]])
    batch = pt.tensor("batch", shape=(2, 3))
    one = engine.function([THREE], build(THREE))
    whole = engine.function([batch], vectorize_graph(build(THREE), {THREE: batch}))
    np.testing.assert_allclose(whole(rows), [one(row) for row in rows], rtol=1e-12)


@BUILDERS
@pytest.mark.parametrize("n", [5, None])
def test_a_tensor_of_another_length_in_the_place_of_one_gives_its_own(build, n):
    values = np.array([1.0, 2.0, 4.0, 3.0, 7.0])
    other = pt.tensor("other", shape=(n,))
    replaced = clone_replace(build(THREE), {THREE: other}, rebuild_strict=False)
    due = engine.function([ANY], build(ANY))(values)
    np.testing.assert_allclose(engine.function([other], replaced)(values), due, rtol=1e-12)


def test_a_jacobian_whose_rows_were_counted_refuses_a_vector_of_another_length():
    other = pt.tensor("other", shape=(None,))
    replaced = clone_replace(jacobian(THREE**2, THREE), {THREE: other}, rebuild_strict=False)
    f = engine.function([other], replaced)
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0]), np.diag([2.0, 4.0, 6.0]))
    with pytest.raises(ValueError, match="shape"):
        f(np.arange(5.0))


def test_a_known_length_is_a_constant_in_a_function():
    f = engine.function([THREE], [THREE.shape, THREE.shape[0] * 2, THREE.mean()])
    counted, double, _ = f.maker.fgraph.outputs
    assert isinstance(counted.owner.inputs[0], Constant)
    assert isinstance(double.owner.inputs[0], Constant)
    assert not [node for node in f.maker.fgraph.apply_nodes if isinstance(node.op, Shape_i)]


def test_packed_shapes_do_not_ask_tensors_that_what_is_unpacked_replaces():
    ten = pt.tensor("ten", shape=(2, 5))
    packed, shapes = pt.pack(THREE, ten)
    flat = packed.type()
    parts = pt.unpack(flat, packed_shapes=shapes)
    cost = clone_replace((THREE**2).sum() + ten.sum(), dict(zip([THREE, ten], parts, strict=True)))
    assert engine.function([flat], cost)(np.arange(13.0)) == 5.0 + np.arange(3.0, 13.0).sum()
