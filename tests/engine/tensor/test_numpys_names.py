"""Names of numpy's that PyTensor does not have: values, dtypes and gradients beside numpy's, and refusals."""

import numpy as np
import pytest
from numpy import linalg

import engine
import engine.tensor as pt
from engine import verify_grad
from tests.engine.tensor.test_names import EMPTY, EXTREME, K, M, T, V, variables

Z = T + 1j * T[::-1]
NANS = np.array([2.0, np.nan, -0.0, np.nan, 0.0, 2.0])
ONE = np.float32([[3.0]])
RANK_ONE = np.outer(V, V[:3])
BITS = np.array([1, -7, 127], "int8")

ROWS = {
    "hypot": (lambda p, x: p.hypot(x, 1e308), [1e308 * V[:2]], lambda x: np.hypot(x, 1e308)),
    "hypot of nothing": (lambda p, x: p.hypot(0 * x, 0), [V], lambda x: 0 * np.abs(x)),
    "copysign": (lambda p, x: p.copysign(x, -x), [EXTREME], lambda x: np.copysign(x, -x)),
    "signbit": (lambda p, x: p.signbit(x), [EXTREME], np.signbit),
    "nextafter": (lambda p, x: p.nextafter(x, 0), [EXTREME], lambda x: np.nextafter(x, 0)),
    "left_shift": (lambda p, n: (n << 1) + p.left_shift(n, 9), [BITS], lambda n: n << 1),
    "right_shift": (lambda p, n: (n >> 1) + p.right_shift(n, -1), [BITS], lambda n: (n >> 1) - (n < 0)),
    "shift of bools": (lambda p, n: (n > 0) << True, [BITS], lambda n: (n > 0) << True),
    "logaddexp of unequal ones": (
        lambda p, x: p.logaddexp(0.0, x),
        [np.array([-40.0, np.inf, -np.inf, np.nan, 0.0])],
        lambda x: np.logaddexp(0, x),
    ),
    "logaddexp of infinities": (lambda p, x: p.logaddexp(x, x), [EXTREME], lambda x: np.logaddexp(x, x)),
    "logaddexp of three": (
        lambda p, x: p.logaddexp(x, 2.0, 3 * x),
        [V],
        lambda x: np.logaddexp(np.logaddexp(x, 2), 3 * x),
    ),
    "logical_and": (lambda p, x: p.logical_and(x, x > 1), [EXTREME], lambda x: np.logical_and(x, x > 1)),
    "logical_or": (lambda p, x: p.logical_or(x, 0), [EXTREME], lambda x: np.logical_or(x, 0)),
    "logical_xor": (lambda p, x: p.logical_xor(x, 2), [EXTREME], lambda x: np.logical_xor(x, 2)),
    "logical_not": (lambda p, z: p.logical_not(z), [Z * 0], np.logical_not),
    "count_nonzero": (lambda p, x: p.count_nonzero(x, 1), [K], lambda x: np.count_nonzero(x, 1)),
    "cumulative_sum": (
        lambda p, x: p.cumulative_sum(x, 1, include_initial=True),
        [M],
        lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    ),
    "cumulative_sum of bytes": (lambda p, n: p.cumulative_sum(n), [BITS], np.cumulative_sum),
    "cumulative_prod": (
        lambda p, x: p.cumulative_prod(x, dtype="float32"),
        [V],
        lambda x: np.cumulative_prod(x, dtype="float32"),
    ),
    "diff with edges": (
        lambda p, x: p.diff(x, 2, 0, prepend=x[:1], append=0.0),
        [M],
        lambda x: np.diff(x, 2, 0, prepend=x[:1], append=0.0),
    ),
    "isin": (lambda p, n: p.isin(n, [1, 3]), [K], lambda n: np.isin(n, [1, 3])),
    "isin without NaN": (
        lambda p, x: p.isin(x, x[:3], invert=True),
        [NANS],
        lambda x: np.isin(x, x[:3], invert=True),
    ),
    "unique with every NaN": (
        lambda p, x: p.unique(x, return_counts=True, equal_nan=False)[1],
        [NANS],
        lambda x: np.unique(x, return_counts=True, equal_nan=False)[1],
    ),
    "stable sort": (
        lambda p, x: p.signbit(p.sort(x, stable=True)),
        [np.array([[0.0, -0.0, -1.0], [-0.0, 0.0, -0.0]])],
        lambda x: np.signbit(np.sort(x, stable=True)),
    ),
    "meshgrid": (lambda p, x, y: p.meshgrid(x, y)[0], [V, V[:2]], lambda x, y: np.meshgrid(x, y)[0]),
    "meshgrid by rows": (
        lambda p, x, y: p.meshgrid(x, y, 3.0, indexing="ij")[1],
        [V, V[:2]],
        lambda x, y: np.meshgrid(x, y, 3.0, indexing="ij")[1],
    ),
    "meshgrid that is open": (
        lambda p, x: p.meshgrid(x, x, sparse=True)[1],
        [V],
        lambda x: np.meshgrid(x, x, sparse=True)[1],
    ),
    "cross": (lambda p, x, y: p.cross(x, y[:, :3]), [V[:3], M], lambda x, y: np.cross(x, y[:, :3])),
    "cross of columns": (
        lambda p, x: p.cross(x, x[::-1], axis=0),
        [M],
        lambda x: np.cross(x, x[::-1], axis=0),
    ),
    "roll of several": (lambda p, x: p.roll(x, (1, -2), (0, 2)), [T], lambda x: np.roll(x, (1, -2), (0, 2))),
    "unstack": (
        lambda p, x: p.unstack(p.specify_shape(x, (2, None, None)))[1],
        [T],
        lambda x: x[1],
    ),
    "linspace of complex": (
        lambda p, z: p.linspace(z[0, 0], 1.0, 3),
        [Z],
        lambda z: np.linspace(z[0, 0], 1, 3),
    ),
    "var of fewer than ddof": (lambda p, x: p.var(x, ddof=2), [ONE], lambda x: np.float32(np.nan)),
    "vecdot of bytes": (lambda p, n: p.vecdot(n, n), [BITS], lambda n: np.vecdot(n, n)),
    "svdvals": (lambda p, x: p.linalg.svdvals(x), [T], linalg.svdvals),
    "eigvals": (
        lambda p, x: p.linalg.eigvals(x[:, :3]),
        [M],
        lambda x: linalg.eigvals(x[:, :3]).astype(complex),
    ),
    "matrix_rank": (lambda p, x: p.linalg.matrix_rank(x), [RANK_ONE], linalg.matrix_rank),
    "matrix_rank by tol": (
        lambda p, x: p.linalg.matrix_rank(x, 9.0),
        [T],
        lambda x: linalg.matrix_rank(x, 9.0),
    ),
    "pinv by rtol": (
        lambda p, x: p.linalg.pinv(x, rtol=[0.1, 0.9]),
        [T],
        lambda x: linalg.pinv(x, rtol=np.array([0.1, 0.9])),
    ),
    "matrix_norm": (lambda p, x: p.linalg.matrix_norm(x, ord=1), [T], lambda x: linalg.matrix_norm(x, ord=1)),
    "vector_norm": (lambda p, x: p.linalg.vector_norm(x), [T], linalg.vector_norm),
    "vector_norm of axes": (
        lambda p, x: p.linalg.vector_norm(x, axis=(0, 2), ord=3, keepdims=True),
        [T],
        lambda x: linalg.vector_norm(x, axis=(0, 2), ord=3, keepdims=True),
    ),
    "no power of many matrices": (
        lambda p, x: p.linalg.matrix_power(x[:, :, :3], 0),
        [T],
        lambda x: np.broadcast_to(np.eye(3), (2, 3, 3)),
    ),
    "fft": (lambda p, z: p.fft.fft(z, 5, 1, "ortho"), [Z], lambda z: np.fft.fft(z, 5, 1, "ortho")),
    "fft of single": (lambda p, x: p.fft.fft(x), [ONE], lambda x: np.fft.fft(x)),
    "ifft": (lambda p, z: p.fft.ifft(z), [Z], np.fft.ifft),
    "fftn": (lambda p, x: p.fft.fftn(x, (2, 6)), [T], lambda x: np.fft.fftn(x, (2, 6), axes=(1, 2))),
    "ifftn": (lambda p, z: p.fft.ifftn(z, norm="forward"), [Z], lambda z: np.fft.ifftn(z, norm="forward")),
    "rfftn": (
        lambda p, x: p.fft.rfftn(x, axes=(2, 0), norm="forward"),
        [T],
        lambda x: np.fft.rfftn(x, axes=(2, 0), norm="forward"),
    ),
    "irfftn": (lambda p, z: p.fft.irfftn(z), [Z], lambda z: np.fft.irfftn(z, axes=(0, 1, 2))),
    "irfftn of odd length": (
        lambda p, z: p.fft.irfftn(z, (3, 7), (0, 2)),
        [Z],
        lambda z: np.fft.irfftn(z, (3, 7), (0, 2)),
    ),
    "hfft": (lambda p, z: p.fft.hfft(z, 5), [Z], lambda z: np.fft.hfft(z, 5)),
    "ihfft": (lambda p, x: p.fft.ihfft(x, axis=0), [T], lambda x: np.fft.ihfft(x, axis=0)),
    "fftfreq": (lambda p, n: p.fft.fftfreq(n[0], 0.5), [np.array([6])], lambda n: np.fft.fftfreq(6, 0.5)),
    "rfftfreq": (lambda p, n: p.fft.rfftfreq(n[0], 0.5), [np.array([7])], lambda n: np.fft.rfftfreq(7, 0.5)),
    "fftshift": (lambda p, x: p.fft.fftshift(x), [T], np.fft.fftshift),
    "ifftshift": (lambda p, x: p.fft.ifftshift(x, 1), [T], lambda x: np.fft.ifftshift(x, 1)),
    "empty isin": (lambda p, x: p.isin(x, x), [EMPTY], lambda x: np.isin(x, x)),
}


@pytest.fixture(scope="module")
def results():
    """What the reference implementations compute."""
    inputs = {name: variables(pt, values) for name, (_, values, _) in ROWS.items()}
    outputs = {name: row[0](pt, *inputs[name]) for name, row in ROWS.items()}
    arguments = [value for _, values, _ in ROWS.values() for value in values]
    flat = [v for each in inputs.values() for v in each]
    return engine.function(flat, outputs, mode="NUMPY")(*arguments)


@pytest.mark.parametrize("name", ROWS)
def test_values_and_dtypes_are_numpys(name, results):
    _, values, oracle = ROWS[name]
    with np.errstate(all="ignore"):
        expected = np.asarray(oracle(*values))
    assert results[name].shape == expected.shape
    assert results[name].dtype == expected.dtype
    np.testing.assert_allclose(results[name], expected, rtol=1e-13, atol=1e-15)


def parts(z):
    return pt.real(z) * pt.arange(z.shape[-1]) + pt.imag(z)


W = T[:, :, ::-1] + 0.3
GRADIENTS = {
    "fftn": lambda x: parts(pt.fft.fftn(pt.complex(x, W), (4, 3))),
    "ifft": lambda x: parts(pt.fft.ifft(pt.complex(W, x), axis=0, norm="ortho")),
    "rfftn of even length": lambda x: parts(pt.fft.rfftn(x)),
    "rfftn of odd length": lambda x: parts(pt.fft.rfftn(x, (3, 5))),
    "irfftn of even length": lambda x: pt.fft.irfftn(pt.complex(x, W)),
    "irfftn of odd length": lambda x: pt.fft.irfftn(pt.complex(W, x), (3, 5)),
    "hfft": lambda x: pt.fft.hfft(pt.complex(W, x), norm="forward"),
    "ihfft": lambda x: parts(pt.fft.ihfft(x)),
    "sign of complex": lambda x: parts(pt.sign(pt.complex(x, W)) * pt.complex(W, x)),
    "cross": lambda x: pt.cross(x, x[:, ::-1] ** 2, axis=1),
    "cumulative_prod": lambda x: pt.cumulative_prod(x, 2, include_initial=True),
    "pinv": lambda x: pt.linalg.pinv(x, rtol=1e-3),
    "vector_norm": lambda x: pt.linalg.vector_norm(x, axis=(0, 2)),
    "stable sort": lambda x: pt.sort(x, stable=True),
    "logaddexp of equal ones": lambda x: pt.logaddexp(x, 2 * x - x),
    "shifted": lambda x: pt.fft.fftshift(pt.roll(x, (1, 2), (0, 1))),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_the_values(name):
    verify_grad(GRADIENTS[name], [T])


def test_the_gradient_of_a_length_of_zero_is_zero():
    x = pt.dvector()
    found = engine.grad(pt.sum(pt.hypot(x, 0.0)), x)
    np.testing.assert_array_equal(found.eval({x: np.array([0.0, -2.0])}), [0, -1])


@pytest.mark.parametrize(
    "refused",
    [
        lambda: pt.left_shift(pt.dvector(), 1),
        lambda: pt.left_shift(pt.lvector(), pt.constant(np.uint64(1))),
        lambda: pt.signbit(pt.zvector()),
        lambda: pt.cross(pt.dvector(shape=(2,)), pt.dvector()),
        lambda: pt.cumulative_sum(pt.matrix()),
        lambda: pt.meshgrid(pt.vector(), indexing="yx"),
        lambda: pt.unstack(pt.matrix()),
        lambda: pt.fft.rfftn(pt.zvector()),
        lambda: pt.fft.fft(pt.zvector(), norm="other"),
        lambda: pt.fft.fftn(pt.zmatrix(), (2,), (0, 1)),
        lambda: pt.fft.fftn(pt.zmatrix(), axes=(1, 1)),
        lambda: pt.fft.fftn(pt.zscalar()),
    ],
)
def test_what_numpy_does_not_take_is_refused(refused):
    with pytest.raises((TypeError, ValueError)):
        refused()


def test_vectors_of_other_lengths_than_3_have_no_cross_product():
    x = pt.dvector()
    with pytest.raises(AssertionError):
        engine.function([x], pt.cross(x, x))(np.ones(4))


@pytest.mark.usefixtures("kernels_once")
def test_products_of_no_complex_matrices_have_their_lengths():
    z = pt.ztensor3()
    product, inverse = engine.function([z], [z @ z, pt.linalg.inv(z)])(np.zeros((0, 2, 2), complex))
    assert product.shape == inverse.shape == (0, 2, 2)
