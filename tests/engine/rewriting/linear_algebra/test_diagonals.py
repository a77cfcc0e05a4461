"""Diagonals of made, filled, turned and multiplied matrices, beside the graph that is not rewritten."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import Mode
from engine.graph import FunctionGraph, equal_computations
from engine.printing import dprint
from engine.rewriting import rewrite_graph
from engine.rewriting.linear_algebra.diagonals import extract_diag_lift_pass

pytestmark = pytest.mark.usefixtures("kernels_once")

RANDOM = np.random.default_rng(7)
GIVEN = {
    "A": (pt.dmatrix("A"), RANDOM.normal(size=(4, 3))),
    "B": (pt.dmatrix("B"), RANDOM.normal(size=(3, 6))),
    "S": (pt.tensor("S", shape=(4, 6)), RANDOM.normal(size=(4, 6))),
    "R": (pt.tensor("R", shape=(6, 6)), RANDOM.normal(size=(6, 6))),
    "row": (pt.tensor("row", shape=(1, 6)), RANDOM.normal(size=(1, 6))),
    "T": (pt.dtensor3("T"), RANDOM.normal(size=(2, 4, 3))),
    "U": (pt.dtensor3("U"), RANDOM.normal(size=(2, 3, 6))),
    "v": (pt.dvector("v"), RANDOM.normal(size=5)),
    "s": (pt.dscalar("s"), 2.5),
    "n": (pt.lscalar("n"), 5),
    "m": (pt.lscalar("m"), 7),
}
NAMES = {name: variable for name, (variable, _) in GIVEN.items()}
EXPRESSIONS = [
    "pt.diagonal(A @ B, k)",
    "pt.diagonal(T @ U, k, -2, -1)",
    "pt.diagonal(T @ U, k, -1, -2)",
    "pt.diagonal(T @ U, k, 0, 2)",
    "pt.diagonal(pt.dot(A[:, :1], B[:1]), k)",
    "pt.diagonal(pt.cast(A * 9, 'int8') @ pt.cast(B * 90, 'int8'), k)",
    "pt.trace(A @ B)",
    "pt.trace(A @ B, k)",
    "pt.trace(T @ U, k, -2, -1)",
    "pt.diagonal(pt.eye(n, m, 1), k)",
    "pt.diagonal(pt.eye(n, m, -1, dtype='int32'), k, 1, 0)",
    "pt.diagonal(pt.diag(v, 1), k)",
    "pt.diagonal(pt.diag(v, -1), k)",
    "pt.diagonal(pt.alloc(s, n, m), k)",
    "pt.diagonal(pt.alloc(A, 2, 4, 3), k, -2, -1)",
    "pt.diagonal(pt.alloc(v, n, 5), k)",
    "pt.diagonal(pt.alloc(v, 4, v.shape[0]), k)",
    "pt.diagonal(pt.alloc(v, A.shape[1], 5), k)",
    "pt.diagonal(pt.alloc(v, 2, 7, n), k, -2, -1)",
    "pt.diagonal(pt.alloc(v[:, None], v.shape[0], 7), k)",
    "pt.diagonal(pt.alloc(v[:, None], 2, n, 4), k, -1, -2)",
    "pt.diagonal(pt.alloc(T, 2, 4, T.shape[2]), k, -2, -1)",
    "pt.diagonal(pt.alloc(A.T, 2, 3, A.shape[0]), k, -2, -1)",
    "pt.diagonal(pt.exp(S), k)",
    "pt.diagonal(S + S * s, k)",
    "pt.diagonal(S.T, k)",
    "pt.diagonal(pt.eye(6) * s, k)",
    "pt.diagonal(pt.eye(6) * pt.eye(6), k)",
    "pt.diagonal(pt.eye(6) * R, k)",
    "pt.diagonal(R + row, k)",
]


@pytest.mark.parametrize("k", [0, 1, -1, 2, -3, 9, -9])
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_diagonals_are_those_of_the_graph_as_it_was_written(text, k):
    found = eval(text, {"pt": pt, "k": k} | NAMES)
    values = dict(GIVEN.values())
    given = {v: values[v] for v in engine.graph.graph_inputs([found]) if v in values}
    written = found.eval(given, mode=Mode("numpy", None))
    rewritten = found.eval(given)
    assert rewritten.dtype == written.dtype
    assert rewritten.shape == written.shape
    np.testing.assert_allclose(rewritten, written, rtol=1e-12, atol=1e-14)


def text_of(variable):
    return dprint(rewrite_graph(variable, include=("canonicalize", "specialize")), file="str")


def test_the_diagonal_of_a_product_needs_no_product():
    for product in (NAMES["A"] @ NAMES["B"], NAMES["T"] @ NAMES["U"]):
        shown = text_of(pt.diagonal(product, 1, -2, -1))
        assert "Dot" not in shown
        assert "Sum" in shown


def test_the_trace_of_a_product_needs_no_product():
    known = pt.tensor("A", shape=(6, 4)) @ pt.tensor("B", shape=(4, 6))
    for product in (NAMES["A"] @ NAMES["B"], known):
        for found in (pt.trace(product), pt.linalg.trace(product), product.trace()):
            assert "Dot" not in text_of(found)


def test_the_slope_of_the_trace_of_a_product_is_the_other_matrix():
    A, B = NAMES["A"], NAMES["B"]
    slope = engine.grad(pt.trace(A @ B), A)
    values = {A: GIVEN["A"][1], B: GIVEN["B"][1]}
    np.testing.assert_allclose(slope.eval(values), GIVEN["B"][1].T[:4])


def test_a_vector_has_no_trace():
    with pytest.raises(ValueError, match="2 dimensions"):
        pt.trace(NAMES["v"])


def test_a_product_that_is_used_elsewhere_is_computed():
    product = NAMES["A"] @ NAMES["B"]
    shown = text_of(pt.diagonal(product) + pt.sum(product))
    assert "Dot" in shown
    assert "Sum{axis=[1]}" not in shown


def test_infinite_numbers_beside_the_diagonal_stay_beside_it():
    a = np.array([[1.0, 2.0], [np.inf, 3.0]])
    A, B = NAMES["A"], NAMES["B"]
    found = pt.diagonal(A @ B).eval({A: a, B: np.eye(2)})
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.diagonal(a @ np.eye(2)))


def test_gradients_of_diagonals_of_products_are_those_of_the_matrices():
    A, B = NAMES["A"], NAMES["B"]
    slope = engine.grad(pt.sum(pt.diagonal(A @ B) * np.arange(4.0)), A)
    values = {A: GIVEN["A"][1], B: GIVEN["B"][1]}
    np.testing.assert_allclose(slope.eval(values), np.arange(4.0)[:, None] * GIVEN["B"][1].T[:4])


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (2, 1), (1, 3)])
@pytest.mark.parametrize("k", [-6, -2, -1, 0, 1, 3, 6])
def test_rows_and_columns_have_a_part_for_each_diagonal(shape, k):
    rng = np.random.default_rng(3)
    shapes = (shape, (1, shape[1]), (shape[0], 1), (1, 1))
    x, row, column, number = variables = [pt.tensor(shape=each) for each in shapes]
    values = [rng.normal(size=each) for each in shapes]
    for whole in (x + row, column * x - row, row - column, number / column * row, pt.eye(*shape) * row):
        f = engine.function(variables, pt.diagonal(whole, k), on_unused_input="ignore")
        found = engine.function(variables, whole, on_unused_input="ignore")(*values)
        np.testing.assert_array_equal(f(*values), np.diagonal(found, k))


def test_a_row_is_not_added_where_only_a_diagonal_is_needed():
    x, row = pt.tensor(shape=(5, 5)), pt.tensor(shape=(1, 5))
    rewritten = rewrite_graph(pt.diagonal(x + row, 1), include=("fast_run",), exclude=("fusion",))
    assert rewritten.type.shape == (4,)
    assert rewritten.owner.op == pt.add


def test_rows_of_unknown_lengths_are_compared_with_the_matrix():
    x, row = pt.dmatrix("x"), pt.drow("row")
    f = engine.function([x, row], pt.diagonal(x + row))
    with pytest.raises(ValueError, match="length"):
        f(np.ones((3, 9)), np.ones((1, 5)))


def test_a_row_is_not_repeated_in_the_diagonal_of_a_product():
    x, row, column = pt.dmatrix("x"), pt.drow("row"), pt.dcol("column")
    for first, second, shapes in ((x, row, [(3, 2), (1, 4)]), (column, x, [(3, 1), (2, 4)])):
        f = engine.function([first, second], pt.diagonal(first @ second))
        with pytest.raises(ValueError, match="1"):
            f(*[np.ones(shape) for shape in shapes])


@pytest.mark.parametrize(
    ("whole", "refused"),
    [
        ("pt.alloc(x, 2, 3, n)", [4, 6, -1]),
        ("pt.alloc(x, 2, n, 5)", [2, 4, -1]),
        ("pt.alloc(x[0], 2, 3, n)", [4, 6, -1]),
        ("pt.alloc(x[:, :1], 2, n, 5)", [2, 4, -1]),
        ("pt.alloc(x[0], 2, n, 5)", [-1]),
    ],
)
def test_lengths_of_what_is_repeated_are_compared_though_only_a_diagonal_is_needed(whole, refused):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    f = engine.function([x, n], pt.diagonal(eval(whole, {"x": x, "n": n, "pt": pt}), 0, -2, -1))
    for length in refused:
        with pytest.raises(ValueError, match=r"length|shape"):
            f(np.ones((3, 5)), length)


def test_a_repeated_row_or_matrix_has_its_own_elements_on_the_diagonal():
    x, v = pt.dmatrix("x"), NAMES["v"]
    row = rewrite_graph(pt.diagonal(pt.alloc(v, 4, v.shape[0])))
    assert equal_computations([row], [v[:4]])
    lengths = x.shape[0], x.shape[1]
    copies = rewrite_graph(pt.diagonal(pt.alloc(x, 3, *lengths), 0, -2, -1))
    assert equal_computations([copies], [rewrite_graph(pt.alloc(pt.diagonal(x), 3, pt.minimum(*lengths)))])


@pytest.mark.parametrize("whole", ["x + y", "x * y", "pt.exp(x) - 2 * y"])
def test_matrices_of_unknown_lengths_are_compared_though_only_their_diagonals_are_needed(whole):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    f = engine.function([x, y], pt.diagonal(eval(whole, {"x": x, "y": y, "pt": pt})))
    with pytest.raises(ValueError, match="length"):
        f(np.ones((3, 4)), np.ones((3, 7)))


def test_only_a_diagonal_is_computed_of_matrices_that_are_as_long_as_one_another():
    x = pt.dmatrix("x")
    rewritten = rewrite_graph(pt.diagonal(pt.exp(x) + pt.sin(x)), include=("fast_run",), exclude=("fusion",))
    assert rewritten.owner.op == pt.add
    assert rewritten.owner.inputs[0].type.ndim == 1


def test_the_rewrites_of_diagonals_are_applied_or_left_out_by_one_name():
    S = NAMES["S"]
    graph = FunctionGraph([S], [pt.diagonal(pt.exp(S))], clone=False)
    extract_diag_lift_pass.rewrite(graph)
    assert equal_computations(graph.outputs, [pt.exp(pt.diagonal(S))])
    mode = Mode("cvm", "fast_run").excluding("extract_diag_lift_pass")
    for f, has_product in (
        (engine.function([S], pt.trace(S @ S.T), mode=mode), True),
        (engine.function([S], pt.trace(S @ S.T)), False),
    ):
        assert any("Dot" in str(node.op) for node in f.maker.fgraph.apply_nodes) == has_product
