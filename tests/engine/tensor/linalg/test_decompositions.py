"""Decompositions, matrix functions and matrix equations: SciPy's results, gradients, failures and batches."""

from importlib import import_module

import numpy as np
import pytest
from scipy import linalg

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.errors import NullGradientError
from engine.graph import FunctionGraph
from engine.rewriting.pipeline import rewrite_graph
from engine.tensor.elemwise import Elemwise
from engine.tensor.linalg import SVD, Eigh
from engine.tensor.shape import Shape_i

RANDOM = np.random.default_rng(5)
SQUARE, OTHER = RANDOM.normal(size=(2, 4, 4))
TALL, WIDE = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(3, 4))
POSITIVE = OTHER @ OTHER.T + np.eye(4)
SYMMETRIC = SQUARE + SQUARE.T
SMALL = RANDOM.normal(size=(3, 3))
PIVOTS = linalg.lu_factor(SQUARE)[1]
L = pt.linalg


def _qz_by_radius(a, b):
    aa, bb, _, _, q, z = linalg.ordqz(a, b, sort="iuc", output="real")
    return aa, bb, q, z


CASES = {
    "svd": (L.svd, np.linalg.svd, [TALL]),
    "svd economic": (
        lambda x: L.svd(x, full_matrices=False),
        lambda x: np.linalg.svd(x, full_matrices=False),
        [WIDE],
    ),
    "singular values": (lambda x: L.svd(x, compute_uv=False), linalg.svdvals, [TALL]),
    "qr": (L.qr, linalg.qr, [TALL]),
    "qr economic": (lambda x: L.qr(x, mode="reduced"), lambda x: linalg.qr(x, mode="economic"), [TALL]),
    "qr r": (lambda x: L.qr(x, mode="r"), lambda x: linalg.qr(x, mode="r"), [WIDE]),
    "qr raw": (
        lambda x: L.qr(x, mode="raw"),
        lambda x: (*linalg.qr(x, mode="raw")[0], linalg.qr(x, mode="raw")[1]),
        [TALL],
    ),
    "qr pivoting": (lambda x: L.qr(x, pivoting=True), lambda x: linalg.qr(x, pivoting=True), [WIDE]),
    "lu": (L.lu, linalg.lu, [SQUARE]),
    "lu tall": (L.lu, linalg.lu, [TALL]),
    "lu indices": (lambda x: L.lu(x, p_indices=True), lambda x: linalg.lu(x, p_indices=True), [SQUARE]),
    "lu permuted": (lambda x: L.lu(x, permute_l=True), lambda x: linalg.lu(x, permute_l=True), [SQUARE]),
    "lu_factor": (L.lu_factor, linalg.lu_factor, [SQUARE]),
    "lu_solve": (lambda a, b: L.lu_solve(L.lu_factor(a), b), np.linalg.solve, [SQUARE, TALL]),
    "lu_solve transposed": (
        lambda a, b: L.lu_solve(L.lu_factor(a), b, trans=True),
        lambda a, b: np.linalg.solve(a.T, b),
        [SQUARE, TALL],
    ),
    "eigh": (L.eigh, lambda x: linalg.eigh(x), [SYMMETRIC]),
    "eigh upper": (lambda x: L.eigh(x, lower=False)[0], lambda x: linalg.eigh(x, lower=False)[0], [SQUARE]),
    "eigh generalized": (L.eigh, linalg.eigh, [SYMMETRIC, POSITIVE]),
    "eigvalsh": (L.eigvalsh, linalg.eigvalsh, [SYMMETRIC]),
    "eigvalsh generalized": (L.eigvalsh, linalg.eigvalsh, [SYMMETRIC, POSITIVE]),
    "schur": (L.schur, linalg.schur, [SQUARE]),
    "schur sorted": (
        lambda x: L.schur(x, sort="lhp"),
        lambda x: linalg.schur(x, sort="lhp")[:2],
        [SQUARE],
    ),
    "qz": (L.qz, linalg.qz, [SQUARE, OTHER]),
    "qz sorted": (lambda a, b: L.qz(a, b, sort="iuc"), _qz_by_radius, [SQUARE, OTHER]),
    "pinv": (L.pinv, np.linalg.pinv, [TALL]),
    "expm": (L.expm, linalg.expm, [SQUARE]),
    "solve_sylvester": (L.solve_sylvester, linalg.solve_sylvester, [SQUARE, SMALL, TALL]),
    "solve_continuous_lyapunov": (
        L.solve_continuous_lyapunov,
        linalg.solve_continuous_lyapunov,
        [POSITIVE, SQUARE],
    ),
    "solve_discrete_lyapunov": (
        L.solve_discrete_lyapunov,
        linalg.solve_discrete_lyapunov,
        [SQUARE / 4, OTHER],
    ),
    "solve_discrete_are": (
        L.solve_discrete_are,
        linalg.solve_discrete_are,
        [SQUARE / 3, TALL, POSITIVE, np.eye(3)],
    ),
    "block_diag": (L.block_diag, linalg.block_diag, [TALL, SMALL, WIDE]),
    "symmetric": (
        lambda a, b: L.solve(a, b, assume_a="sym", lower=True),
        lambda a, b: linalg.solve(a, b, assume_a="sym", lower=True),
        [SQUARE, TALL],
    ),
    "diagonal": (
        lambda a, b: L.solve(a, b, assume_a="diagonal"),
        lambda a, b: b / np.diag(a)[:, None],
        [SQUARE, TALL],
    ),
}
"""Functions of matrices, SciPy's, and their arguments."""


def _listed(found):
    return list(found) if isinstance(found, list | tuple) else [found]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_results_are_scipys_and_of_the_types_that_the_graph_says(mode, kernels_once):
    outputs, counts, inputs, values = [], [], [], []
    for function, _, arguments in CASES.values():
        own = [pt.tensor(None, "float64", (None, None)) for _ in arguments]
        found = _listed(function(*own))
        outputs, inputs, values = outputs + found, inputs + own, values + arguments
        counts.append(len(found))
    results = iter(engine.function(inputs, outputs, mode=mode)(*values))
    for (what, (_, expected, arguments)), count in zip(CASES.items(), counts, strict=True):
        own = [next(results) for _ in range(count)]
        for one, other in zip(own, _listed(expected(*arguments)), strict=True):
            assert one.shape == other.shape, what
            np.testing.assert_allclose(one, other, 1e-8, 1e-10, err_msg=what)


def _complex(value):
    """Return complex numbers for a real matrix: a hermitian one for a symmetric one."""
    if value.shape[0] != value.shape[1] or not np.array_equal(value, value.T):
        return value + 0.5j * value[::-1]
    turned = np.triu(value, 1) / 2
    return value + 1j * (turned - turned.T)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_results_of_complex_matrices_are_scipys(mode, kernels_once):
    cases = {
        what: case for what, case in CASES.items() if not what.startswith(("lu_solve t", "solve_discrete_a"))
    }
    cases["eig"] = (L.eig, np.linalg.eig, [SQUARE])
    cases["schur of reals"] = (
        lambda x: L.schur(pt.real(x), output="complex"),
        lambda x: linalg.schur(x.real, output="complex"),
        [SQUARE],
    )
    cases["ordqz"] = (
        lambda a, b: L.ordqz(a, b, "rhp"),
        lambda a, b: linalg.ordqz(a, b, sort="rhp"),
        [SQUARE, OTHER],
    )
    cases["cholesky"] = (L.cholesky, np.linalg.cholesky, [POSITIVE])
    cases["cho_solve"] = (
        lambda a, b: L.cho_solve((L.cholesky(a), True), b),
        np.linalg.solve,
        [POSITIVE, TALL],
    )
    cases["solve"] = (L.solve, np.linalg.solve, [SQUARE, TALL])
    cases["hermitian"] = (
        lambda a, b: L.solve(pt.triu(a), b, assume_a="her"),
        np.linalg.solve,
        [SYMMETRIC, TALL],
    )
    cases["slogdet"] = (lambda x: list(L.slogdet(x)), lambda x: list(np.linalg.slogdet(x)), [SQUARE])
    cases["norms"] = (
        lambda x: [L.norm(x), L.norm(x, 1), L.norm(x, 2)],
        lambda x: [np.linalg.norm(x), np.linalg.norm(x, 1), np.linalg.norm(x, 2)],
        [TALL],
    )
    outputs, counts, inputs, values = [], [], [], []
    for function, _, arguments in cases.values():
        own = [pt.tensor(None, "complex128", (None, None)) for _ in arguments]
        found = _listed(function(*own))
        outputs, inputs, values = outputs + found, inputs + own, values + [_complex(a) for a in arguments]
        counts.append(len(found))
    results = iter(engine.function(inputs, outputs, mode=mode)(*values))
    for (what, (_, expected, arguments)), count in zip(cases.items(), counts, strict=True):
        own = [next(results) for _ in range(count)]
        for one, other in zip(own, _listed(expected(*map(_complex, arguments))), strict=True):
            assert one.dtype.kind == np.asarray(other).dtype.kind, what
            np.testing.assert_allclose(one, other, 1e-8, 1e-10, err_msg=what)


@pytest.mark.parametrize("driver", ["evr", "evd"])
def test_eigenvectors_of_the_reference_are_scipys_bit_for_bit(driver):
    for dtype in ("float32", "float64", "complex128"):
        x = pt.tensor("x", dtype, (None, None))
        matrix = RANDOM.normal(size=(33, 33)).astype(dtype)
        function = engine.function([x], L.eigh(x, driver=driver, lower=False), mode="NUMPY")
        for found, expected in zip(
            function(matrix), linalg.eigh(matrix, driver=driver, lower=False), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


def test_eigenvalues_of_a_pair_come_in_their_own_order():
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    aa, bb, alpha, beta, q, z = engine.function([a, b], L.qz(a, b, return_eigenvalues=True), mode="NUMPY")(
        SQUARE, OTHER
    )
    for one, other in zip((aa, bb, q, z), linalg.qz(SQUARE, OTHER), strict=True):
        np.testing.assert_allclose(one, other, 1e-8, 1e-10)
    expected = np.sort_complex(linalg.eigvals(SQUARE, OTHER))
    np.testing.assert_allclose(np.sort_complex(alpha / beta), expected, 1e-8)


def test_complex_matrices_have_no_gradients():
    x = pt.zmatrix("x")
    for found in (L.expm(x), L.solve(x, x), L.cholesky(x), L.slogdet(x)[1], L.eigvalsh(x)):
        with pytest.raises(NullGradientError, match="none of complex numbers"):
            engine.grad(pt.abs(found).sum(), x)


@pytest.mark.parametrize("what", CASES)
def test_every_place_of_a_batch_has_the_result_of_its_matrices(what):
    function, _, arguments = CASES[what]
    batches = [np.stack([argument, 1.25 * argument]) for argument in arguments]
    batches[-1] = batches[-1][:1]
    inputs = [pt.tensor(None, "float64", batch.shape) for batch in batches]
    found = _listed(function(*inputs))
    results = engine.function(inputs, found, mode="NUMPY")(*batches)
    matrices = [pt.tensor(None, "float64", (None, None)) for _ in arguments]
    one = engine.function(matrices, _listed(function(*matrices)), mode="NUMPY")
    expected = [one(*[b[k % len(b)] for b in batches]) for k in range(max(map(len, batches)))]
    for result, variable, others in zip(results, found, zip(*expected, strict=True), strict=True):
        assert variable.type.dtype == result.dtype
        assert all(s in (None, n) for s, n in zip(variable.type.shape, result.shape, strict=True))
        np.testing.assert_allclose(result, np.stack(others), 1e-9, 1e-12)


def test_float32_stays_and_integers_become_float64():
    x, k = pt.fmatrix("x"), pt.lmatrix("k")
    u, s, _ = L.svd(x)
    assert [u.type.dtype, s.type.dtype, L.lu_factor(x)[1].type.dtype] == ["float32", "float32", "int32"]
    assert L.expm(k).type.dtype == L.eigvalsh(pt.ltensor3()).type.dtype == "float64"


def _weighed(x):
    """Return a number that depends on each element of `x` in its own way."""
    return pt.sum(x * pt.cos(pt.arange(12.0)[: x.shape[-1]]) + pt.sqr(x))


GRADIENTS = {
    "singular values": (lambda x: L.svd(x, compute_uv=False), [TALL]),
    "singular values of full svd": (lambda x: L.svd(x)[1], [WIDE]),
    **{
        f"svd {name}": (lambda x: sum(_weighed(v) for v in L.svd(x, full_matrices=False)), [matrix])
        for name, matrix in {"tall": TALL, "wide": WIDE, "square": SQUARE}.items()
    },
    **{
        f"qr {name}": (lambda x: sum(_weighed(v) for v in L.qr(x, mode="economic")), [matrix])
        for name, matrix in {"tall": TALL, "wide": WIDE, "square": SQUARE}.items()
    },
    "qr r": (lambda x: L.qr(x, mode="r"), [TALL]),
    "qr full": (lambda x: L.qr(x)[0], [WIDE]),
    "lu": (lambda x: sum(_weighed(v) for v in L.lu(x)[1:]), [SQUARE]),
    "lu indices": (lambda x: L.lu(x, p_indices=True)[1], [SQUARE]),
    "lu permuted": (lambda x: sum(_weighed(v) for v in L.lu(x, permute_l=True)), [SQUARE]),
    "lu_solve": (lambda a, b: L.lu_solve(L.lu_factor(a), b), [SQUARE, TALL]),
    "eigh": (lambda x: _weighed(L.eigh(x)[0]) + _weighed(L.eigh(x)[1] ** 2), [SYMMETRIC]),
    "eigh upper, generalized": (
        lambda a, b: sum(_weighed(v**2) for v in L.eigh(a, b, lower=False)),
        [SYMMETRIC, POSITIVE],
    ),
    "eigvalsh": (lambda x: L.eigvalsh(x, lower=False), [SYMMETRIC]),
    "eigvalsh generalized": (L.eigvalsh, [SYMMETRIC, POSITIVE]),
    "pinv tall": (L.pinv, [TALL]),
    "pinv wide": (L.pinv, [WIDE]),
    "expm": (L.expm, [SQUARE / 4]),
    "solve_sylvester": (L.solve_sylvester, [SQUARE, SMALL, TALL]),
    "solve_continuous_lyapunov": (L.solve_continuous_lyapunov, [POSITIVE, SQUARE]),
    "solve_discrete_lyapunov": (L.solve_discrete_lyapunov, [SQUARE / 4, OTHER]),
    "solve_discrete_are": (L.solve_discrete_are, [SQUARE / 3, TALL, POSITIVE, np.eye(3)]),
    "block_diag": (L.block_diag, [TALL, SMALL]),
    "symmetric": (lambda a, b: L.solve(a, b, assume_a="sym"), [SYMMETRIC, TALL]),
    "tensorinv": (lambda x: L.tensorinv(x, 1), [RANDOM.normal(size=(4, 2, 2))]),
    "tensorsolve": (L.tensorsolve, [RANDOM.normal(size=(2, 3, 6)), RANDOM.normal(size=(2, 3))]),
    "spectral norm": (lambda x: L.norm(x, 2), [TALL]),
    "batch": (lambda x: L.svd(x, full_matrices=False)[2] ** 2, [np.stack([TALL, TALL[::-1]])]),
}


@pytest.mark.parametrize("what", GRADIENTS)
def test_gradients_are_those_of_finite_differences(what):
    function, arguments = GRADIENTS[what]
    verify_grad(function, arguments, n_tests=1)


def test_what_does_not_converge_or_is_not_finite_is_made_of_nans(kernels_once):
    x = pt.dmatrix("x")
    outputs = [*L.svd(x), L.expm(x), *L.lu_factor(x), L.eigvalsh(x, x), L.solve_discrete_are(x, x, x, x)]
    function = engine.function([x], outputs)
    for matrix in (np.full((2, 2), np.nan), np.array([[1.0, np.inf], [0.0, 1.0]])):
        found = function(matrix)
        pivots = found.pop(5)
        assert all(np.isnan(one).all() for one in found)
        assert sorted(pivots) == [0, 1]
    singular = engine.function([x], L.lu_factor(x)[0], mode="NUMPY")(np.ones((2, 2)))
    assert np.isnan(singular).all()
    indefinite = engine.function([x], L.eigvalsh(x, x), mode="NUMPY")(-np.eye(2))
    assert np.isnan(indefinite).all()


def test_matrices_without_elements_have_results_without_elements():
    x = pt.dmatrix("x")
    outputs = [*L.svd(x), *L.qr(x), *L.lu(x), *L.eigh(x), *L.lu_factor(x), *L.schur(x), L.pinv(x), L.expm(x)]
    for found in engine.function([x], outputs, mode="NUMPY")(np.zeros((0, 0))):
        assert found.size == 0


def test_least_squares_are_numpys(kernels_once):
    x, y = pt.dmatrix("x"), pt.dvector("y")
    found = engine.function([x, y], list(L.lstsq(x, y, -1.0)))(TALL, SQUARE[0])
    for one, other in zip(found, np.linalg.lstsq(TALL, SQUARE[0], -1.0), strict=True):
        np.testing.assert_allclose(one, other, 1e-10)


def test_permutations_of_pivots_are_inverse_to_each_other():
    p = pt.ivector("p")
    outputs = [L.pivot_to_permutation(p), L.pivot_to_permutation(p, inverse=True)]
    found, inverse = engine.function([p], outputs, mode="NUMPY")(PIVOTS)
    factors = linalg.lu_factor(SQUARE)[0]
    product = (np.tril(factors, -1) + np.eye(4)) @ np.triu(factors)
    np.testing.assert_allclose(SQUARE[inverse], product, 1e-10, 1e-12)
    np.testing.assert_array_equal(found[inverse], range(4))


def test_norms_of_matrices_are_numpys_also_in_a_batch():
    x, batch = pt.dmatrix("x"), pt.dtensor3("batch")
    orders = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
    outputs = [L.norm(v, o, keepdims=k) for v in (x, batch) for o in orders for k in (False, True)]
    values = np.stack([TALL, 2 * TALL])
    results = iter(engine.function([x, batch], outputs, mode="NUMPY")(TALL, values))
    for value in (TALL, values):
        for order in orders:
            for keepdims in (False, True):
                expected = np.linalg.norm(value, order, axis=(-2, -1), keepdims=keepdims)
                np.testing.assert_allclose(next(results), expected, 1e-10)


def test_lengths_of_results_need_no_decomposition(kernels_once):
    x, batch = pt.dmatrix("x"), pt.dtensor3("batch")
    lengths = [L.svd(x, compute_uv=False).shape[0], L.qr(batch, mode="economic")[1].shape[1]]
    graph = FunctionGraph([x, batch], lengths, clone=False)
    rewrite_graph(graph)
    assert {type(node.op) for node in graph.apply_nodes} == {Shape_i, Elemwise}
    assert [int(n) for n in engine.function([x, batch], lengths)(TALL, WIDE[None])] == [3, 3]


def test_ops_with_other_properties_are_others(kernels_once):
    assert SVD(full_matrices=False) != SVD() == SVD()
    assert Eigh(lower=False) != Eigh()
    x = pt.dmatrix("x")
    keys = {engine.function([x], L.svd(x, full_matrices=f)[1]).cache_info.key for f in (0, 1)}
    assert len(keys) == 2


def test_what_is_not_defined_is_refused():
    x, y = pt.dmatrix("x"), pt.tensor("y", "float64", (2, 3))
    with pytest.raises(TypeError, match=r"it takes \(m,n\)"):
        L.svd(pt.dvector())
    for function in (L.eigh, L.lu_factor, L.expm, L.schur):
        with pytest.raises(ValueError, match="must be square"):
            function(y)
    with pytest.raises(ValueError, match="must be square"):
        engine.function([x], L.expm(x), mode="NUMPY")(TALL)
    for made in (
        lambda: L.qr(x, mode="half"),
        lambda: L.lu(x, permute_l=True, p_indices=True),
        lambda: L.eigh(x, driver="ev"),
        lambda: L.schur(x, sort="big"),
        lambda: L.schur(x, output="both"),
        lambda: L.solve_discrete_lyapunov(x, x, method="none"),
        lambda: L.tensorinv(x, 2),
        lambda: L.tensorsolve(x, x),
        lambda: L.norm(x, "max"),
        lambda: L.solve(x, x, b_ndim=3),
    ):
        with pytest.raises(ValueError, match=r"\w+"):
            made()
    for output in (L.svd(x)[0], L.qr(x, mode="raw")[0], L.qr(pt.tensor(None, "float64", (3, 2)))[0]):
        with pytest.raises(NullGradientError, match="Taking a gradient through"):
            engine.grad(output.sum(), output.owner.inputs[0])


@pytest.mark.parametrize("rows", [3, 5])
def test_factors_solve_for_as_many_rows_as_the_matrix_has(rows):
    a, b = pt.dmatrix("a"), pt.dvector("b")
    f = engine.function([a, b], L.lu_solve(L.lu_factor(a), b))
    with pytest.raises(AssertionError, match="Got shape"):
        f(SQUARE, np.ones(rows))


def test_a_square_q_of_a_tall_matrix_has_no_gradient():
    x = pt.dmatrix("x")
    f = engine.function([x], engine.grad(pt.sum(L.qr(x)[0]), x))
    assert f(np.eye(3)).shape == (3, 3)
    with pytest.raises(AssertionError, match="more rows than columns"):
        f(np.ones((4, 2)))
    with pytest.raises(NotImplementedError, match="none for this form"):
        engine.grad(pt.sum(L.qr(x, mode="raw")[0]), x)


@pytest.mark.parametrize("module", ["nlinalg", "slinalg"])
def test_older_paths_give_the_same_names_and_warn(module):
    older = import_module(f"engine.tensor.{module}")
    with pytest.warns(DeprecationWarning, match=f"tensor.{module}"):
        assert older.solve is L.solve
    with pytest.raises(AttributeError):
        older.no_such_name  # noqa: B018
