import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import ancestors
from engine.rewriting import rewrite_graph
from engine.tensor.blockwise import Blockwise
from engine.tensor.products import Dot

PRODUCTS = {
    "matvec": (lambda x, y: pt.matvec(x, y), "...mk,...k->...m"),
    "vecmat": (lambda x, y: pt.vecmat(y, x), "...mk,...m->...k"),
    "vecdot": (lambda x, y: pt.vecdot(x[..., 0, :], y), "...mk,...k->...m"),
}
BATCHES = [
    ((1,), (5,)),
    ((5,), (1,)),
    ((1, 1), (7, 5)),
    ((1, 5, 1), (7, 5, 4)),
    ((7, 5, 4), (1, 5, 1)),
    ((5, 1, 3, 1), (1, 7, 3, 4)),
    ((1, 7, 3, 4), (5, 1, 3, 1)),
    ((3,), (3,)),
]


def products_with_vectors(variable):
    """Return the number of products of batches of which one operand is a row or a column."""
    nodes = {v.owner for v in ancestors([variable]) if v.owner is not None}
    return sum(
        isinstance(node.op, Blockwise)
        and isinstance(node.op.core_op, Dot)
        and (node.inputs[0].type.shape[-2] == 1 or node.inputs[1].type.shape[-1] == 1)
        for node in nodes
    )


@pytest.mark.parametrize("are_known", [True, False])
@pytest.mark.parametrize(("left", "right"), BATCHES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_batch_of_vectors_for_one_matrix_is_a_matrix(name, left, right, are_known):
    build, subscripts = PRODUCTS[name]
    shapes = (*left, 3, 3), (*right, 3)
    rng = np.random.default_rng(1)
    types = [s if are_known else [1 if n == 1 else None for n in s] for s in shapes]
    x, y = (pt.tensor(n, dtype="float64", shape=s) for n, s in zip("xy", types, strict=True))
    written = build(x, y)
    found = rewrite_graph(written, include=("canonicalize", "specialize"))
    assert products_with_vectors(written) == 1
    if name != "vecdot" and any(one == 1 != several for one, several in zip(left, right, strict=True)):
        assert not products_with_vectors(found)
    values = [rng.normal(size=shape) for shape in shapes]
    due = np.einsum(subscripts, *values)
    due = due[..., 0] if name == "vecdot" else due
    for mode in (None, engine.Mode("py", optimizer=None)):
        np.testing.assert_allclose(
            engine.function([x, y], found, mode=mode)(*values), due, rtol=1e-12, atol=1e-15
        )


@pytest.mark.parametrize("name", ["local_useless_blockwise", "local_eager_useless_unbatched_blockwise"])
def test_a_product_without_a_batch_is_a_dot_unless_it_is_excluded_by_either_name(name):
    x, y = pt.tensor("x", dtype="float64", shape=(1, 2, 2)), pt.tensor("y", dtype="float64", shape=(5, 2))
    sets = ("canonicalize", "specialize")
    for exclude, due in (((), Dot), ((name,), Blockwise)):
        found = rewrite_graph(pt.matvec(x, y), include=sets, exclude=exclude)
        ops = [v.owner.op for v in ancestors([found]) if v.owner is not None]
        assert [type(op) for op in ops if isinstance(op, Dot | Blockwise)] == [due]


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool", "complex128"])
def test_in_a_function_products_with_vectors_are_products_of_elements_and_a_sum(name, dtype):
    build, _ = PRODUCTS[name]
    x, y = pt.tensor("x", dtype=dtype, shape=(None,) * 3), pt.tensor("y", dtype=dtype, shape=(None, None))
    rng = np.random.default_rng(2)
    values = [rng.normal(size=shape).astype(dtype) for shape in ((4, 3, 3), (4, 3))]
    function = engine.function([x, y], build(x, y))
    assert not any(isinstance(n.op, Blockwise | Dot) for n in function.maker.fgraph.apply_nodes)
    due = engine.function([x, y], build(x, y), mode=engine.Mode("py", optimizer=None))(*values)
    found = function(*values)
    assert found.dtype == due.dtype
    np.testing.assert_allclose(found, due, rtol=1e-5)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(("left", "right"), [((4, 3, 3), (4, 2)), ((4, 1, 1), (4, 3)), ((4, 3, 3), (4, 1))])
def test_lengths_of_a_sum_that_differ_are_refused(name, left, right):
    x, y = pt.dtensor3("x"), pt.dmatrix("y")
    function = engine.function([x, y], PRODUCTS[name][0](x, y))
    with pytest.raises(ValueError, match="length"):
        function(np.ones(left), np.ones(right))
