"""Compiled functions give what the numpy backend gives: for every public operation, and for generated
graphs.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import engine.tensor as pt
from engine.compiling.mode import MODES, Mode
from engine.graph import Variable
from engine.graph.reference import evaluate
from engine.scalar.special import SPECIAL_FUNCTIONS
from tests.engine.generated_graphs import EPSILON, FLOATS, INTEGERS, Graph, graphs
from tests.engine.special_values import DTYPES, UNSIGNED, special

pytestmark = pytest.mark.slow

UNARY = (
    "neg abs sign sqr sqrt reciprocal exp expm1 log log1p sigmoid expit softplus sin cos tanh isnan invert identity "
    "exp2 log2 log10 tan arcsin arccos arctan sinh cosh arcsinh arccosh arctanh erf erfc gamma gammaln psi digamma "
    "tri_gamma signbit floor ceil trunc round isinf log1mexp logit"
).split()
BINARY = "add sub mul true_div floor_div mod pow power maximum minimum second fill lt le gt ge eq neq and_ or_ xor arctan2 logaddexp hypot copysign nextafter left_shift right_shift".split()
TERNARY = ["where", "switch", "clip"]
REDUCTIONS = ["sum", "prod", "mean", "max", "min"]
SHAPED = {
    "dimshuffle": lambda m: pt.dimshuffle(m, (1, "x", 0)),
    "transpose": pt.transpose,
    "reshape": lambda m: pt.reshape(m, (3, -1)),
    "flatten": pt.flatten,
    "squeeze": lambda m: pt.squeeze(pt.dimshuffle(m, ("x", 0, 1)), 0),
    "shape_i": lambda m: pt.shape_i(m, 1),
    "cast": lambda m: [pt.cast(m, dtype) for dtype in DTYPES],
    "ones_like": pt.ones_like,
    "zeros_like": lambda m: pt.zeros_like(m, "float32"),
    "dot": lambda m: [
        pt.dot(m, m.T),
        pt.dot(m.T, m),
        pt.dot(m, m[0]),
        pt.dot(m.T, m.T[0]),
        pt.dot(m[0], m[1]),
        pt.dot(m[0], m.T),
    ],
    "matmul": lambda m: pt.matmul(m.T, m),
    "alloc": lambda m: pt.alloc(m[0], 2, pt.shape_i(m, 1)),
    "arange": lambda m: pt.arange(pt.shape_i(m, 1)),
    "concatenate": lambda m: pt.concatenate([m, m[:1]]),
    "expand_dims": lambda m: pt.expand_dims(m, 1),
    "full": lambda m: pt.full((2, 3), m[0, 0]),
    "full_like": lambda m: pt.full_like(m, 1),
    "inc_subtensor": lambda m: pt.inc_subtensor(m[[0, 1, 0]], m[1]),
    "set_subtensor": lambda m: pt.set_subtensor(m[:, 1:], m[0, 0]),
    "join": lambda m: pt.join(1, m, m[:, ::-1]),
    "ones": lambda m: pt.ones(m.shape),
    "shape": pt.shape,
    "size": pt.size,
    "softmax": lambda m: pt.softmax(m, 1),
    "log_softmax": lambda m: pt.log_softmax(m, 0),
    "logsumexp": lambda m: pt.logsumexp(m, 1),
    "stack": lambda m: pt.stack([m, m], axis=2),
    "zeros": lambda m: pt.zeros(m.shape, "int32"),
    "eye": lambda m: pt.eye(pt.shape_i(m, 0), dtype=m.dtype),
    "tri": lambda m: pt.tri(pt.shape_i(m, 0), 4),
    "tril": pt.tril,
    "triu": lambda m: pt.triu(m, 1),
    "nonzero": lambda m: [*pt.nonzero(m), m[m > 0], m[pt.neq(m[:, 0], 0)]],
    "flatnonzero": pt.flatnonzero,
    "all": lambda m: pt.all(m, 0),
    "any": lambda m: pt.any(m, 1, keepdims=True),
    "var": lambda m: pt.var(m, 0),
    "std": lambda m: pt.std(m, 1, ddof=1),
    "cumsum": lambda m: [pt.cumsum(m), pt.cumsum(m.T, 1)],
    "cumprod": lambda m: pt.cumprod(m, 0),
    "argmax": lambda m: [pt.argmax(m), pt.argmax(m.T, 0)],
    "argmin": lambda m: pt.argmin(m, 1),
    "diag": lambda m: [pt.diag(m), pt.diag(m[0], 1)],
    "diagonal": lambda m: pt.diagonal(m, -1),
    "trace": pt.trace,
    "sort": lambda m: [pt.sort(m), pt.sort(m, 0), pt.sort(m, None)],
    "argsort": lambda m: [pt.argsort(m), pt.argsort(m, 0)],
    "outer": lambda m: pt.outer(m[0], m),
}
LINEAR = {
    "solve": lambda a, b: [
        pt.linalg.solve(a, b, assume_a=kind, lower=lower)
        for kind in ("gen", "pos")
        for lower in (False, True)
    ],
    "solve_triangular": lambda a, b: [
        pt.linalg.solve_triangular(a, b[:, 0], lower=lower, trans=trans, unit_diagonal=unit)
        for lower, trans, unit in itertools.product((False, True), (0, 1), (False, True))
    ],
    "cholesky": lambda a, b: [pt.linalg.cholesky(a, lower) for lower in (False, True)],
    "cho_solve": lambda a, b: pt.linalg.cho_solve((a, True), b),
    "inv": lambda a, b: pt.linalg.inv(a.T),
    "det": lambda a, b: pt.linalg.det(a),
    "slogdet": lambda a, b: list(pt.linalg.slogdet(a)),
}
MAKERS = ["as_tensor_variable", "constant", "tensor", "tensor_type", "is_data", "subtensor"]
FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"
PAIRED = DTYPES if FULL else ("float64", "float32", "int64", "int8", "uint64", "uint16", "bool")
EVERY_PAIR = list(itertools.product(PAIRED, PAIRED))
SOME_PAIRS = [
    *zip(DTYPES, DTYPES, strict=True),
    ("float32", "int64"),
    ("int32", "float64"),
    ("bool", "float32"),
]
UNREWRITTEN = Mode("numba", MODES["NUMPY"].optimizer)
FUSED = UNREWRITTEN.including("fusion")


def examples(count: int) -> settings:
    """As many examples, the same ones every time: compiling takes long, and a failure must come back."""
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
    )


@pytest.fixture(scope="module", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory, unreachable_user_cache: Any) -> Any:
    """A kernel that several examples need is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(tmp_path_factory.mktemp("oracle") / "cache"))
        yield


@pytest.fixture(autouse=True)
def cache_directory() -> None:
    """Not a directory a test, but that of the module."""


def check(found: np.ndarray, expected: np.ndarray, tolerance: float, what: object) -> None:
    """Equal dtype, shape and layout; equal values to `tolerance`, both absolute and of the value."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    assert found.flags.c_contiguous
    assert found.flags.writeable
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=str(what))
    else:
        np.testing.assert_array_equal(found, expected, err_msg=str(what))


def compare(inputs: Sequence[Variable], outputs: dict[str, Variable], values: Sequence[Any]) -> None:
    """One function of many outputs, compiled and by the reference."""
    compiled = engine.function(inputs, list(outputs.values()), on_unused_input="ignore")
    reference = engine.function(inputs, list(outputs.values()), mode="NUMPY", on_unused_input="ignore")
    for what, found, expected in zip(outputs, compiled(*values), reference(*values), strict=True):
        check(found, expected, 4 * EPSILON.get(expected.dtype.name, 0), what)


def applied(names: Sequence[str], *variables: Variable) -> dict[str, Variable]:
    """The operations that take these dtypes, applied."""
    found = {}
    for name in names:
        try:
            found[name] = getattr(pt, name)(*variables)
        except TypeError:
            dtypes = {v.type.dtype for v in variables}
            # An int64 and a uint64 have no common integer dtype.
            assert "bool" in dtypes or np.result_type(*dtypes).kind == "f", f"{name} takes no integers"
    return found


def test_every_public_operation_is_compared() -> None:
    # tests/engine/scalar/test_special.py has those of SciPy.
    compared = {*UNARY, *BINARY, *TERNARY, *REDUCTIONS, *SHAPED, *SPECIAL_FUNCTIONS}
    functions = {name for name in pt.__all__ if name[0].islower() and callable(getattr(pt, name))}
    made = {name for name in functions if MAKER_NAMES.fullmatch(name)}
    composed = functions - made - set(MAKERS) - compared
    assert [name for name in composed if not compared_as_composed(name)] == []


def test_every_operation_of_linear_algebra_is_compared() -> None:
    public = {name for name in pt.linalg.__all__ if name[0].islower()}
    assert [name for name in public - set(LINEAR) if not compared_as_composed(name)] == []


def compared_as_composed(name: str) -> bool:
    """True for what is put together of other operations, and is tested by itself."""
    return re.search(rf"[.\"]{name}\b|\b{name}\(", COMPOSED) is not None


COMPOSED = "".join(path.read_text() for path in (Path(__file__).parents[1] / "engine").rglob("test_*.py"))
MAKER_NAMES = re.compile(
    "[bwilfdcz]?(scalar|vector|matrix|tensor[3-7]|row|col)"
    "|[ilfdcz]?(scalars|vectors|matrices|tensor[3-7]s|rows|cols)"
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_of_one_argument(dtype: str) -> None:
    x = pt.tensor("x", dtype, (None,))
    compare([x], applied(UNARY, x), [special(dtype)])


def check_pair(first: str, second: str) -> None:
    x, y = pt.tensor("x", first, (None,)), pt.tensor("y", second, (None,))
    outputs = applied(BINARY, x, y)
    values = [np.ravel(grid) for grid in np.meshgrid(special(first), special(second))]
    for name in ("pow", "power"):
        if name in outputs and outputs[name].type.dtype in INTEGERS:
            outputs[name] = getattr(pt, name)(x, pt.abs(pt.mod(y, 7)))
    compare([x, y], outputs, values)


@pytest.mark.parametrize(("first", "second"), SOME_PAIRS)
def test_operations_of_two_arguments(first: str, second: str) -> None:
    check_pair(first, second)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [pair for pair in EVERY_PAIR if pair not in SOME_PAIRS])
def test_operations_of_two_arguments_of_any_two_dtypes(first: str, second: str) -> None:
    check_pair(first, second)


@pytest.mark.parametrize("dtype", DTYPES)
def test_choosing_by_a_condition(dtype: str) -> None:
    c, x, y = pt.tensor("c", "bool", (None,)), pt.tensor("x", dtype, (None,)), pt.tensor("y", "float32", ())
    value = special(dtype)
    compare([c, x, y], applied(TERNARY, c, x, y), [np.arange(len(value)) % 2 == 0, value, np.float32(-0.0)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_over_every_set_of_axes(dtype: str) -> None:
    x = pt.tensor("x", dtype, (None, None, None))
    outputs = {}
    for name in REDUCTIONS:
        for axes in [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]:
            outputs[f"{name} {axes}"] = getattr(pt, name)(x, axis=axes, keepdims=axes == (0, 2))
    random = np.random.default_rng(5)
    value = (random.integers(0 if dtype in UNSIGNED else -8, 9, (3, 4, 5)) / 2).astype(dtype)
    compare([x], outputs, [value])
    empty = {what: output for what, output in outputs.items() if what.startswith("sum")}
    for shape in ((0, 4, 5), (3, 0, 5), (3, 4, 0), (1, 1, 1), (2, 40, 3)):
        compare([x], empty, [np.resize(value, shape)])


@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions_of_infinities_and_not_a_number(dtype: str) -> None:
    x = pt.tensor("x", dtype, (None, None))
    value = np.array(
        [[1.0, np.inf, 2.0], [np.nan, 1.0, 2.0], [-np.inf, np.inf, 0.0], [-np.inf, -1.0, 3.0]], dtype
    )
    names = [(name, axis) for name in REDUCTIONS for axis in (0, 1, None)]
    compare([x], {f"{name} {axis}": getattr(pt, name)(x, axis) for name, axis in names}, [value])


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_on_shapes_and_products(dtype: str) -> None:
    m = pt.tensor("m", dtype, (None, None))
    outputs = {}
    for name, make in SHAPED.items():
        made = make(m)
        outputs.update({f"{name} {k}": v for k, v in enumerate(made if isinstance(made, list) else [made])})
    compare([m], outputs, [(np.arange(12).reshape(3, 4) % 5 - (dtype not in UNSIGNED)).astype(dtype)])


def test_products_of_any_two_dtypes() -> None:
    matrices = {dtype: pt.tensor("m", dtype, (None, None)) for dtype in DTYPES}
    vectors = {dtype: pt.tensor("v", dtype, (None,)) for dtype in DTYPES}
    outputs = {f"{a} by {b}": pt.dot(matrices[a], vectors[b]) for a, b in EVERY_PAIR}
    outputs |= {f"{a} transposed by {b}": pt.dot(matrices[a].T, matrices[b]) for a, b in SOME_PAIRS}
    value = np.arange(12).reshape(3, 4) % 3 - 1
    values = [value.astype(dtype) for dtype in DTYPES] + [value[1].astype(dtype) for dtype in DTYPES]
    compare([*matrices.values(), *vectors.values()], outputs, values)


@pytest.mark.parametrize("dtype", FLOATS)
def test_linear_algebra(dtype: str) -> None:
    a, b = pt.tensor("a", dtype, (None, None)), pt.tensor("b", dtype, (None, None))
    outputs = {}
    for name, make in LINEAR.items():
        made = make(a, b)
        outputs.update({f"{name} {k}": v for k, v in enumerate(made if isinstance(made, list) else [made])})
    random = np.random.default_rng(4)
    for size in (1, 4, 30):
        root = random.normal(size=(size, size)) / size
        values = [(root @ root.T + np.eye(size)).astype(dtype), random.normal(size=(size, 3)).astype(dtype)]
        compiled = engine.function([a, b], list(outputs.values()))(*values)
        reference = engine.function([a, b], list(outputs.values()), mode="NUMPY")(*values)
        for what, found, expected in zip(outputs, compiled, reference, strict=True):
            check(found, expected, 200 * EPSILON[dtype], what)


@pytest.mark.parametrize("dtype", DTYPES)
def test_indexing_and_adding_to_what_is_indexed(dtype: str) -> None:
    x, m = pt.tensor("x", dtype, (None,)), pt.tensor("m", dtype, (None, None))
    k, kk = pt.ivector("k"), pt.lmatrix("kk")
    add = pt.AdvancedIncSubtensor([0])
    outputs = {
        "a vector by a vector": x[k],
        "a matrix by a vector": m[k],
        "by a matrix": m[kk],
        "by a list": x[[0, -1, 1]],
        "added to a vector": add.make_node(x, x[k] if dtype == "bool" else x[k] * 2, k).outputs[0],
        "added to a matrix": add.make_node(m, m[k], k).outputs[0],
        "added to zeros": add.make_node(pt.zeros_like(m), m[k], k).outputs[0],
    }
    value = (np.arange(12).reshape(3, 4) % 5 - (dtype not in UNSIGNED)).astype(dtype)
    indices = [np.array([2, 0, 2, -3, 1], "i4"), np.array([[0, 1], [-1, 2]])]
    compare([x, m, k, kk], outputs, [value[:, 1], value, *indices])


def scale_of(graph: Graph) -> float:
    """What rounding may add up to, in a graph of well-conditioned operations on small numbers."""
    single = any(value.dtype == np.float32 for value in graph.known.values())
    return 200 * EPSILON["float32" if single else "float64"] * (graph.scale**2 + 1)


def check_results(graph: Graph, outputs: list[Variable]) -> None:
    """Rewritten and fused: as the reference on the graph as it was made."""
    inputs, values = graph.needed(outputs)
    found = engine.function(inputs, outputs)(*values)
    for output, result in zip(outputs, found, strict=True):
        expected = graph.known[output]
        check(result, expected, scale_of(graph), engine.dprint(output, file="str"))


def check_each(graph: Graph, mode: Mode) -> None:
    """Each variable as the reference computes it from what was found for those it is made of: no error
    adds up.
    """
    inputs, values = graph.needed(graph.made)
    found = dict(zip(graph.made, engine.function(inputs, graph.made, mode=mode)(*values), strict=True))
    known = graph.known | found
    for variable, result in found.items():
        others = [v for v in known if v is not variable]
        (expected,) = evaluate(others, [variable], [known[v] for v in others])
        tolerance = 100 * EPSILON.get(result.dtype.name, 0)
        check(result, expected, tolerance, engine.dprint(variable, file="str"))


@examples(30)
@given(graphs(12))
def test_a_generated_graph_gives_what_the_reference_gives(graph: Graph) -> None:
    check_results(graph, graph.sinks)


@examples(15)
@given(graphs(8))
def test_gradients_of_a_generated_graph_are_what_the_reference_gives(graph: Graph) -> None:
    graph.add_gradients()
    check_results(graph, graph.sinks)


@examples(20)
@given(graphs(10, specials=True))
def test_infinities_and_not_a_number_go_through_loops_as_through_numpy(graph: Graph) -> None:
    check_each(graph, UNREWRITTEN)


@examples(10)
@given(graphs(10, specials=True))
def test_fusion_changes_no_value(graph: Graph) -> None:
    check_each(graph, FUSED)


@pytest.mark.slow
@examples(300 if FULL else 50)
@given(graphs(20))
def test_large_generated_graphs(graph: Graph) -> None:
    check_results(graph, graph.sinks)


@pytest.mark.slow
@examples(200 if FULL else 30)
@given(graphs(10))
def test_gradients_of_large_generated_graphs(graph: Graph) -> None:
    graph.add_gradients()
    check_results(graph, graph.sinks)


@pytest.mark.slow
@examples(300 if FULL else 50)
@given(graphs(14, specials=True))
def test_special_values_in_large_generated_graphs(graph: Graph) -> None:
    check_each(graph, FUSED)
