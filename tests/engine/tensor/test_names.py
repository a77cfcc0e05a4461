"""Names of numpy's that are other operations put together: values, dtypes, static lengths, gradients.

A row is an expression of a module `p` and tensors, its arguments, and what numpy computes. All rows are
one compiled function. Dtypes are PyTensor's, where it is installed; so are static lengths that it knows.
"""

import inspect
import math

import numpy as np
import pytest
import scipy.signal
import scipy.special

import engine
import engine.scalar
import engine.tensor as pt
from engine import verify_grad

_RNG = np.random.default_rng(17)
V = _RNG.normal(size=5)
M = _RNG.normal(size=(3, 4))
N = _RNG.normal(size=(4, 2))
T = _RNG.normal(size=(2, 3, 4))
P = np.array([3, 0, 2, 1])
K = np.array([[1, 2], [0, 1], [3, 3]])
TIMES = np.array([1, 0, 2])
TWOS = np.array([2, 3, -2, 4])
EXTREME = np.array([1.0, np.nan, np.inf, -np.inf, -2.5, 0.5, 1.5, 0.49999999999999994, -0.0])
MANY = np.array([0.0, 1.0, 1.0, 1.0, 3.0, np.inf, np.nan])
SOUGHT = np.array([[1.0, -np.inf, 3.0], [np.nan, np.inf, 0.5]])
EMPTY = np.zeros((0, 3))


def away_from_zero(x):
    return np.sign(x) * np.floor(np.where(np.abs(x) == 0.49999999999999994, 0.0, np.abs(x) + 0.5))


def in_parts(z):
    return np.stack([z.real, z.imag], -1)


ROWS = {
    "moveaxis": (
        lambda p, x: p.moveaxis(x, [0, -1], [-1, 0]),
        [T],
        lambda x: np.moveaxis(x, [0, -1], [-1, 0]),
    ),
    "swapaxes": (lambda p, x: x.swapaxes(0, -1), [T], lambda x: x.swapaxes(0, -1)),
    "matrix_transpose": (lambda p, x: x.mT, [T], lambda x: np.swapaxes(x, 1, 2)),
    "shape_padleft": (lambda p, x: p.shape_padleft(x, 2), [M], lambda x: x[None, None]),
    "shape_padright": (lambda p, x: p.shape_padright(x, 2), [M], lambda x: x[..., None, None]),
    "shape_padaxis": (lambda p, x: p.shape_padaxis(x, -2), [M], lambda x: x[:, None, :]),
    "atleast_2d": (lambda p, x: p.atleast_2d(x), [V], lambda x: x[None]),
    "int_div": (lambda p, x: p.int_div(x, 2), [K], lambda x: x // 2),
    "matrix_dot": (lambda p, x, y: p.linalg.matrix_dot(x, y, x), [M, N @ M[:2, :3]], lambda x, y: x @ y @ x),
    "bitwise_not": (lambda p, x: p.bitwise_not(x), [K], lambda x: ~x),
    "chi2sf": (lambda p, x: p.chi2sf(x, 3.0), [np.abs(V)], lambda x: scipy.special.chdtrc(3.0, x)),
    "conj": (lambda p, x: p.conj(x), [V], np.conj),
    "conjugate": (lambda p, x: p.conjugate(x), [V], np.conj),
    "real": (lambda p, x: p.real(x), [V], np.real),
    "dense_dot": (lambda p, x, y: p.dense_dot(x, y), [M, N], lambda x, y: x @ y),
    "dot of many axes": (lambda p, x, y: p.dot(x, y), [M, T.swapaxes(1, 2)], np.dot),
    "dot of many axes by a vector": (lambda p, x, y: x.dot(y), [T, V[:4]], np.dot),
    "dot of a vector by many axes": (lambda p, x, y: p.dot(x, y), [V[:3], T], np.dot),
    "product without zeros": (lambda p, x: p.prod(x, 0, no_zeros_in_input=True), [M], lambda x: x.prod(0)),
    "rounding": (lambda p, x: p.round(9 * x), [V], lambda x: np.round(9 * x)),
    "rounding away from zero": (
        lambda p, x: p.round(9 * x, mode="half_away_from_zero"),
        [V],
        lambda x: away_from_zero(9 * x),
    ),
    "kn": (lambda p, x: p.kn(2, x), [np.abs(V)], lambda x: scipy.special.kv(2.0, x)),
    "log1pexp": (lambda p, x: p.log1pexp(x), [V], lambda x: np.logaddexp(0, x)),
    "round_half_to_even": (lambda p, x: p.round_half_to_even(x), [TWOS / 2], np.round),
    "sgn": (lambda p, x: p.sgn(x), [V], np.sign),
    "tensor_copy": (lambda p, x: p.tensor_copy(x), [V], np.copy),
    "atleast_3d": (lambda p, x: p.atleast_3d(x), [V], lambda x: x[None, None]),
    "atleast_Nd": (lambda p, x: p.atleast_Nd(x, n=3, left=False), [V], lambda x: x[:, None, None]),
    "broadcast_to": (lambda p, x: p.broadcast_to(x, (2, 5)), [V], lambda x: np.broadcast_to(x, (2, 5))),
    "broadcast_arrays": (
        lambda p, x, y: p.broadcast_arrays(x, y)[1],
        [M, V[:4]],
        lambda x, y: np.broadcast_to(y, (3, 4)),
    ),
    "broadcast_shape": (
        lambda p, x, y: p.as_tensor(p.broadcast_shape(x, y)),
        [T, M],
        lambda x, y: np.array([2, 3, 4]),
    ),
    "flip": (lambda p, x: p.flip(x), [M], np.flip),
    "flip one axis": (lambda p, x: p.flip(x, -1), [M], lambda x: np.flip(x, -1)),
    "roll": (lambda p, x: p.roll(x, 15), [M], lambda x: np.roll(x, 15)),
    "roll back": (lambda p, x: p.roll(x, -7, 1), [M], lambda x: np.roll(x, -7, 1)),
    "roll nowhere": (lambda p, x: p.roll(x, 0, 0), [M], lambda x: x),
    "repeat": (lambda p, x: x.repeat(2), [M], lambda x: x.repeat(2)),
    "repeat along": (lambda p, x: p.repeat(x, 2, axis=1), [M], lambda x: x.repeat(2, 1)),
    "repeat each": (lambda p, x, n: p.repeat(x, n, axis=0), [M, TIMES], lambda x, n: x.repeat(n, 0)),
    "tile": (lambda p, x: p.tile(x, (2, 3)), [M], lambda x: np.tile(x, (2, 3))),
    "tile adds an axis": (lambda p, x: p.tile(x, (2, 3, 1)), [M], lambda x: np.tile(x, (2, 3, 1))),
    "tile has fewer": (lambda p, x: p.tile(x, 2), [M], lambda x: np.tile(x, 2)),
    "horizontal_stack": (lambda p, x: p.horizontal_stack(x, x), [M], lambda x: np.hstack([x, x])),
    "vertical_stack": (lambda p, x: p.vertical_stack(x, x), [M], lambda x: np.vstack([x, x])),
    "stacklists": (
        lambda p, x: p.stacklists([[x, 2 * x], [x, x]]),
        [V],
        lambda x: np.array([[x, 2 * x], [x, x]]),
    ),
    "join_dims": (lambda p, x: p.join_dims(x, 1, 2), [T], lambda x: x.reshape(2, 12)),
    "join no dims": (lambda p, x: p.join_dims(x, 1, 0), [M], lambda x: x[:, None]),
    "split_dims": (lambda p, x: p.split_dims(x, (2, 2), 1), [M], lambda x: x.reshape(3, 2, 2)),
    "slice_at_axis": (lambda p, x: x[p.slice_at_axis(slice(1, None), -1)], [T], lambda x: x[..., 1:]),
    "linspace": (lambda p, x: p.linspace(x, 2 * x, 7), [V], lambda x: np.linspace(x, 2 * x, 7)),
    "linspace without its end": (
        lambda p, x: p.linspace(x, x + 1, 7, axis=-1, endpoint=False),
        [V],
        lambda x: np.linspace(x, x + 1, 7, axis=-1, endpoint=False),
    ),
    "linspace of one": (lambda p, x: p.linspace(x[0], x[1], 1), [V], lambda x: x[:1]),
    "logspace": (lambda p, x: p.logspace(x, 2 * x, 4), [V], lambda x: np.logspace(x, 2 * x, 4)),
    "geomspace": (lambda p, x: p.geomspace(x, 2 * x, 4), [V], lambda x: np.geomspace(x, 2 * x, 4)),
    "mgrid": (
        lambda p, x: p.stack(list(p.mgrid[0:3, 1:7:2])) + p.cast(0 * x, "int64")[0],
        [V],
        lambda x: np.mgrid[0:3, 1:7:2],
    ),
    "ogrid": (
        lambda p, x: p.ogrid[0:3, 1:7:2][0] + p.cast(0 * x, "int64")[0],
        [V],
        lambda x: np.ogrid[0:3, 1:7:2][0],
    ),
    "tril_indices": (
        lambda p, x: p.stack(list(p.tril_indices_from(x, 1))),
        [M],
        lambda x: np.stack(np.tril_indices_from(x, 1)),
    ),
    "triu_indices": (
        lambda p, x: p.stack(list(p.triu_indices_from(x, -1))),
        [M],
        lambda x: np.stack(np.triu_indices_from(x, -1)),
    ),
    "bartlett": (lambda p, x: p.bartlett(7) + 0 * x[0], [V], lambda x: np.bartlett(7)),
    "identity_like": (lambda p, x: p.identity_like(x), [M], lambda x: np.eye(3, 4)),
    "fill_diagonal": (
        lambda p, x: p.fill_diagonal(x, 9.0),
        [M],
        lambda x: np.where(np.eye(3, 4, dtype=bool), 9.0, x),
    ),
    "fill_diagonal_offset": (
        lambda p, x: p.fill_diagonal_offset(x, 9.0, -1),
        [M],
        lambda x: np.where(np.eye(3, 4, -1, dtype=bool), 9.0, x),
    ),
    "take": (lambda p, x, i: x.take(i), [M, K], lambda x, i: x.take(i)),
    "take along": (lambda p, x, i: p.take(x, i, axis=1), [M, P], lambda x, i: x.take(i, 1)),
    "take clipped": (
        lambda p, x, i: p.take(x, i, axis=1, mode="clip"),
        [M, P + 2],
        lambda x, i: x.take(i, 1, mode="clip"),
    ),
    "take wrapped": (
        lambda p, x, i: p.take(x, i, axis=-1, mode="wrap"),
        [M, P - 6],
        lambda x, i: x.take(i, -1, mode="wrap"),
    ),
    "take_along_axis": (
        lambda p, x, i: p.take_along_axis(x, i, 1),
        [M, K],
        lambda x, i: np.take_along_axis(x, i, 1),
    ),
    "searchsorted": (lambda p, x, v: p.searchsorted(x, v), [MANY, SOUGHT], np.searchsorted),
    "searchsorted right": (
        lambda p, x, v: x.searchsorted(v, side="right"),
        [MANY, SOUGHT],
        lambda x, v: x.searchsorted(v, side="right"),
    ),
    "searchsorted of nothing": (
        lambda p, x, v: p.searchsorted(x, v),
        [MANY[:0], SOUGHT],
        np.searchsorted,
    ),
    "searchsorted by a sorter": (
        lambda p, x, i: p.searchsorted(x, x, sorter=i),
        [M[0], np.argsort(M[0])],
        lambda x, i: np.searchsorted(x, x, sorter=i),
    ),
    "nonzero_values": (lambda p, x: p.nonzero_values(x), [TIMES], lambda x: x[x != 0]),
    "compress": (lambda p, x, c: p.compress(c, x, axis=1), [M, P], lambda x, c: x.compress(c != 0, 1)),
    "inverse_permutation": (lambda p, i: p.inverse_permutation(i), [P], np.argsort),
    "ptp": (lambda p, x: x.ptp(axis=1), [M], lambda x: np.ptp(x, 1)),
    "diff": (lambda p, x: p.diff(x), [M], np.diff),
    "diff twice": (lambda p, x: p.diff(x, 2, 0), [M], lambda x: np.diff(x, 2, 0)),
    "max_and_argmax": (
        lambda p, x: p.max_and_argmax(x, axis=0)[1],
        [M],
        lambda x: np.argmax(x, 0),
    ),
    "median": (lambda p, x: p.median(x), [M], np.median),
    "median of an odd number": (lambda p, x: p.median(x, axis=0), [M], lambda x: np.median(x, 0)),
    "median over two axes": (lambda p, x: p.median(x, axis=(0, 2)), [T], lambda x: np.median(x, (0, 2))),
    "cov": (lambda p, x: p.cov(x), [M], np.cov),
    "cov of columns": (
        lambda p, x, y: p.cov(x, y, rowvar=False, bias=True),
        [M, 2 * M],
        lambda x, y: np.cov(x, y, rowvar=False, bias=True),
    ),
    "bincount": (lambda p, i: p.bincount(i), [K.ravel()], np.bincount),
    "bincount of weights": (
        lambda p, i, w: p.bincount(i, w, minlength=9),
        [K.ravel(), M.ravel()[:6]],
        lambda i, w: np.bincount(i, w, 9),
    ),
    "tensordot": (lambda p, x, y: p.tensordot(x, y, 1), [T, N], lambda x, y: np.tensordot(x, y, 1)),
    "tensordot over two": (
        lambda p, x, y: p.tensordot(x, y, [[2, 1], [1, 0]]),
        [T, M],
        lambda x, y: np.tensordot(x, y, [[2, 1], [1, 0]]),
    ),
    "tensordot over none": (lambda p, x, y: p.tensordot(x, y, 0), [M, V], lambda x, y: np.tensordot(x, y, 0)),
    "vecdot": (lambda p, x, y: p.vecdot(x, y), [T, M], lambda x, y: (x * y).sum(-1)),
    "matvec": (lambda p, x, y: p.matvec(x, y), [T, M[0]], lambda x, y: x @ y),
    "vecmat": (lambda p, x, y: p.vecmat(x, y), [M[0], N], lambda x, y: x @ y),
    "kron": (lambda p, x, y: p.linalg.kron(x, y), [M, N], np.kron),
    "matrix_power": (
        lambda p, x: p.linalg.matrix_power(x[:, :3], 5),
        [M],
        lambda x: np.linalg.matrix_power(x[:, :3], 5),
    ),
    "norm": (lambda p, x: p.linalg.norm(x), [M], np.linalg.norm),
    "norm by columns": (lambda p, x: p.linalg.norm(x, 1, axis=(0, 1)), [M], lambda x: np.linalg.norm(x, 1)),
    "isclose": (lambda p, x: p.isclose(x, x + 1e-9), [EXTREME], lambda x: np.isclose(x, x + 1e-9)),
    "isclose with NaNs": (
        lambda p, x: p.isclose(x, x, equal_nan=True),
        [EXTREME],
        lambda x: np.ones(x.shape, bool),
    ),
    "allclose": (lambda p, x: p.allclose(x, x), [EXTREME], lambda x: np.array(False)),
    "isfinite": (lambda p, x: p.isfinite(x), [EXTREME], np.isfinite),
    "isposinf": (lambda p, x: p.isposinf(x), [EXTREME], np.isposinf),
    "isneginf": (lambda p, x: p.isneginf(x), [EXTREME], np.isneginf),
    "nan_to_num": (lambda p, x: p.nan_to_num(x), [EXTREME], np.nan_to_num),
    "nan_to_num chosen": (
        lambda p, x: p.nan_to_num(x, 1.0, 2.0, 3.0),
        [EXTREME],
        lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
    ),
    "round_half_away_from_zero": (lambda p, x: p.round_half_away_from_zero(x), [EXTREME], away_from_zero),
    "iround": (lambda p, x: p.iround(9 * x), [V], lambda x: np.round(9 * x).astype("int64")),
    "deg2rad": (lambda p, x: p.deg2rad(x), [V], np.deg2rad),
    "rad2deg": (lambda p, x: p.rad2deg(x), [V], np.rad2deg),
    "divmod": (
        lambda p, x, y: p.stack(list(divmod(x, y))),
        [P, TWOS],
        lambda x, y: np.stack(np.divmod(x, y)),
    ),
    "ceil_intdiv": (lambda p, x, y: p.ceil_intdiv(x, y), [P, TWOS], lambda x, y: -(-x // y)),
    "angle": (lambda p, x: p.angle(x), [V], np.angle),
    "smallest": (lambda p, x: p.smallest(x, -x, 0 * x), [V], lambda x: -np.abs(x)),
    "largest": (lambda p, x: p.largest(x, -x, 0 * x), [V], np.abs),
    "gammal": (
        lambda p, x: p.gammal(2.5, x**2),
        [V],
        lambda x: math.gamma(2.5) * scipy.special.gammainc(2.5, x**2),
    ),
    "gammau": (
        lambda p, x: p.gammau(2.5, x**2),
        [V],
        lambda x: math.gamma(2.5) * scipy.special.gammaincc(2.5, x**2),
    ),
    "kv": (lambda p, x: p.kv(1.5, x**2), [V], lambda x: scipy.special.kv(1.5, x**2)),
    "iv": (lambda p, x: p.iv(1.5, x**2), [V], lambda x: scipy.special.iv(1.5, x**2)),
    "square": (lambda p, x: p.square(x), [P], np.square),
    "pad": (lambda p, x: p.pad(x, ((1, 2), (0, 3))), [M], lambda x: np.pad(x, ((1, 2), (0, 3)))),
    "pad values": (
        lambda p, x: p.pad(x, 2, constant_values=((1, 2), (3, 4))),
        [M],
        lambda x: np.pad(x, 2, constant_values=((1, 2), (3, 4))),
    ),
    **{
        f"pad {mode}": (
            lambda p, x, mode=mode: p.pad(x, ((9, 2), (5, 11)), mode=mode),
            [M],
            lambda x, mode=mode: np.pad(x, ((9, 2), (5, 11)), mode=mode),
        )
        for mode in ("edge", "wrap", "symmetric", "reflect", "maximum", "minimum", "mean")
    },
    "pad with a ramp": (
        lambda p, x: p.pad(x, ((1, 2), (0, 3)), mode="linear_ramp", end_values=((0, 1), (2, 3))),
        [M],
        lambda x: np.pad(x, ((1, 2), (0, 3)), mode="linear_ramp", end_values=((0, 1), (2, 3))),
    ),
    **{
        f"pad {mode} of some": (
            lambda p, x, mode=mode: p.pad(x, 2, mode=mode, stat_length=((1, 2), (2, 9))),
            [M],
            lambda x, mode=mode: np.pad(x, 2, mode=mode, stat_length=((1, 2), (2, 9))),
        )
        for mode in ("maximum", "minimum", "mean")
    },
    **{
        f"convolve1d {mode}": (
            lambda p, x, k, mode=mode: p.signal.convolve1d(x, k[:, 0], mode=mode),
            [M, N[:3]],
            lambda x, k, mode=mode: np.stack([np.convolve(row, k[:, 0], mode) for row in x]),
        )
        for mode in ("full", "valid", "same")
    },
    **{
        f"convolve2d {mode} {' '.join(options)}": (
            lambda p, x, k, mode=mode, options=options: p.signal.convolve2d(x, k, mode, **options),
            [T[1], N[:3]],
            lambda x, k, mode=mode, options=options: scipy.signal.convolve2d(x, k, mode, **options),
        )
        for mode, options in (
            ("full", {}),
            ("valid", {}),
            ("same", {"boundary": "wrap"}),
            ("full", {"boundary": "symm"}),
            ("full", {"fillvalue": 2.0}),
        )
    },
    "convolve1d of rows by rows": (
        lambda p, x, k: p.signal.convolve1d(x[:, None], k[None]),
        [M, N.T],
        lambda x, k: np.stack([[np.convolve(row, other) for other in k] for row in x]),
    ),
    **{
        f"einsum {subscripts}": (
            lambda p, *xs, subscripts=subscripts: p.einsum(subscripts, *xs),
            values,
            lambda *xs, subscripts=subscripts: np.einsum(subscripts, *xs),
        )
        for subscripts, values in {
            "ij": [M],
            "ji": [M],
            "ii->i": [M[:, :3]],
            "ii": [M[:, :3]],
            "ij->": [M],
            "ij,jk": [M, N],
            "ij, jk, kl -> li": [M, N, N.T],
            "i,j->ji": [V, M[0]],
            "bij,kji->bk": [T, T[:, :, :3].swapaxes(1, 2)[:, [0, 1, 2, 0]]],
            "bij,bjk->bik": [T, T.swapaxes(1, 2)],
            "...ij,jk->...ki": [T, N],
            "i...,...i": [M, M.T],
        }.items()
    },
    "tril of matrices": (lambda p, x: p.tril(x, 1), [T], lambda x: np.tril(x, 1)),
    "triu of matrices": (lambda p, x: p.triu(x, -1), [T], lambda x: np.triu(x, -1)),
    "nonzero as a matrix": (
        lambda p, x: x.nonzero(return_matrix=True),
        [TIMES],
        lambda x: np.stack(np.nonzero(x)),
    ),
    "zeros of no shape": (lambda p, x: p.zeros(np.array([])) + x[0], [V], lambda x: x[0]),
    "diagonal": (lambda p, x: p.diagonal(x, 1, 2, 0), [T], lambda x: np.diagonal(x, 1, 2, 0)),
    "trace": (lambda p, x: p.trace(x, -1, 1, 2), [T], lambda x: np.trace(x, -1, 1, 2)),
    "fill_diagonal of more": (
        lambda p, x: p.fill_diagonal(x[:, :2, :2], 9.0),
        [T],
        lambda x: np.where(
            np.eye(2, dtype=bool)[:, :, None] & np.eye(2, dtype=bool)[:, None], 9.0, x[:, :2, :2]
        ),
    ),
    "norm of powers": (lambda p, x: x.norm(3, axis=1), [M], lambda x: np.linalg.norm(x, 3, axis=1)),
    "logaddexp": (
        lambda p, x, y: p.logaddexp(x, y, 1.0),
        [M, M[0]],
        lambda x, y: np.logaddexp(np.logaddexp(x, y), 1.0),
    ),
    "unique": (lambda p, x: p.unique(x), [np.round(M)], np.unique),
    "unique columns": (
        lambda p, x: p.unique(x, axis=1),
        [M[:, [2, 1, 2]]],
        lambda x: np.unique(x, axis=1),
    ),
    **{
        f"unique with {name}": (
            lambda p, x, name=name: p.unique(x, **{name: True})[1],
            [MANY],
            lambda x, name=name: np.unique(x, **{name: True})[1],
        )
        for name in ("return_index", "return_inverse", "return_counts")
    },
    **{
        f"unravel_index {order}": (
            lambda p, i, order=order: p.stack(p.unravel_index(i, (2, 3, 4), order)),
            [np.arange(24)],
            lambda i, order=order: np.stack(np.unravel_index(i, (2, 3, 4), order)),
        )
        for order in "CF"
    },
    **{
        f"ravel_multi_index {order} {mode}": (
            lambda p, i, n, order=order, mode=mode: p.ravel_multi_index([i[0], i[1]], n, mode, order),
            [np.array([[-1, 4, 2], [1, -9, 0]]), np.array([4, 5])],
            lambda i, n, order=order, mode=mode: np.ravel_multi_index(tuple(i), n, mode, order),
        )
        for order in "CF"
        for mode in ("wrap", "clip")
    },
    "choose": (lambda p, i, x: i.choose(x), [P, M[[0, 1, 2, 0]]], np.choose),
    "choose from a list": (
        lambda p, i, x: p.choose(i, [x, -x], mode="wrap"),
        [np.array([P, P, 4 - P]), M],
        lambda i, x: np.choose(i, [x, -x], mode="wrap"),
    ),
    "permute_row_elements": (lambda p, x, i: p.permute_row_elements(x, i), [M, P], lambda x, i: x[:, i]),
    "permute_row_elements back": (
        lambda p, x, i: p.permute_row_elements(x, p.stack([i, i, i]), inverse=True),
        [M, P],
        lambda x, i: x[:, np.argsort(i)],
    ),
    "split": (
        lambda p, x, n: p.join(1, *p.split(x, n, n_splits=3, axis=1)[::-1]),
        [M, TIMES + [0, 0, 1]],
        lambda x, n: np.concatenate(np.split(x, np.cumsum(n)[:-1], 1)[::-1], 1),
    ),
    "split of known lengths": (
        lambda p, x: p.split(x, [1, 2], axis=0)[1],
        [M],
        lambda x: x[1:],
    ),
    "concat_with_broadcast": (
        lambda p, x, y: p.concat_with_broadcast([x[None, 0], y], axis=1),
        [M, N],
        lambda x, y: np.hstack([np.tile(x[0], (4, 1)), y]),
    ),
    "pack": (
        lambda p, x, y: p.pack(x, y, keep_axes=-1)[0],
        [M, T],
        lambda x, y: np.vstack([x, y.reshape(6, 4)]),
    ),
    "unpack": (
        lambda p, x, y: p.unpack(*p.pack(x, y, keep_axes=-1), keep_axes=-1)[1],
        [M, T],
        lambda x, y: y,
    ),
    "interp": (
        lambda p, x: p.interp(x, [-0.5, 0.25, 0.9], [1.0, 3.0, 2.0], left=0.0),
        [M],
        lambda x: np.interp(x, [-0.5, 0.25, 0.9], [1.0, 3.0, 2.0], left=0.0),
    ),
    "interp with a period": (
        lambda p, x: p.interp(x, [0.5, 2.25, 0.9], [1.0, 3.0, 2.0], period=2.0),
        [M],
        lambda x: np.interp(x, [0.5, 2.25, 0.9], [1.0, 3.0, 2.0], period=2.0),
    ),
    **{
        f"interpolate1d {method}": (
            lambda p, x, method=method: p.interpolate1d([1.0, 0.0, 0.5], [4.0, 1.0, 2.0], method)(x),
            [np.array([-1.0, 0.2, 0.3, 0.6, 2.0])],
            lambda x, values=values: np.array(values),
        )
        for method, values in {
            "linear": [-1.0, 1.4, 1.6, 2.4, 8.0],
            "nearest": [1.0, 1.0, 2.0, 2.0, 4.0],
            "first": [1.0, 1.0, 1.0, 2.0, 4.0],
            "last": [1.0, 2.0, 2.0, 4.0, 4.0],
            "mean": [1.5, 1.5, 1.5, 3.0, 3.0],
        }.items()
    },
    **{
        f"special.{name}": (
            lambda p, x, y, name=name: getattr(p.special, name)(x, y),
            [V**2, V[::-1] ** 2],
            getattr(scipy.special, name),
        )
        for name in ("beta", "betaln", "poch", "xlogy", "xlog1py")
    },
    "special.factorial": (lambda p, x: p.special.factorial(x), [V**2], scipy.special.factorial),
    "special.xlogy of zeros": (
        lambda p, x, y: p.special.xlogy(x, y),
        [np.zeros(3), np.array([0.0, np.inf, 1.0])],
        lambda x, y: np.zeros(3),
    ),
    "unique of distinct": (lambda p, x: p.unique(x), [V], np.unique),
    "rfft": (lambda p, x: p.fft.rfft(x), [T], lambda x: in_parts(np.fft.rfftn(x, axes=(1, 2)))),
    "rfft of an odd length": (
        lambda p, x: p.fft.rfft(x, norm="ortho"),
        [T[..., 1:]],
        lambda x: in_parts(np.fft.rfftn(x, axes=(1, 2), norm="ortho")),
    ),
    "irfft": (
        lambda p, x: p.fft.irfft(x[..., :2]),
        [T],
        lambda x: np.fft.irfftn(x[..., 0] + 1j * x[..., 1], axes=(1,)),
    ),
    "irfft to an odd length": (
        lambda p, x: p.fft.irfft(x[..., :2], norm="no_norm", is_odd=True),
        [T],
        lambda x: 5 * np.fft.irfft(x[..., 0] + 1j * x[..., 1], 5, axis=1),
    ),
    "empty flip": (lambda p, x: p.flip(x), [EMPTY], np.flip),
    "empty roll": (lambda p, x: p.roll(x, 1, 1), [EMPTY], lambda x: x),
    "empty repeat": (lambda p, x: p.repeat(x, 2, axis=1), [EMPTY], lambda x: x.repeat(2, 1)),
    "empty repeat each": (lambda p, x, n: p.repeat(x, n, axis=0), [EMPTY, P[:0]], lambda x, n: x),
    "empty bincount": (
        lambda p, i: p.bincount(i, minlength=2),
        [P[:0]],
        lambda i: np.bincount(i, minlength=2),
    ),
    "unpacked shape": (lambda p, x: (lambda m, n: m * 10 + n)(*x.shape), [M], lambda x: np.array(34)),
    "sum of three": (lambda p, x: p.add(x, 2 * x, 3), [V], lambda x: x + 2 * x + 3),
    "product of four": (lambda p, x: p.mul(x, x, 2, x), [V], lambda x: x * x * 2 * x),
    "list of numbers": (
        lambda p, x: p.as_tensor([x[0], 2.0, x[1]]),
        [V],
        lambda x: np.array([x[0], 2, x[1]]),
    ),
    "list of vectors": (lambda p, x: p.sum([x, 2 * x]), [V], lambda x: np.array(3 * x.sum())),
}


def variables(library, values):
    return [
        library.tensor(f"x{position}", dtype=str(value.dtype), shape=(None,) * value.ndim)
        for position, value in enumerate(values)
    ]


@pytest.fixture(scope="module")
def rows():
    """The inputs and outputs of a function of all rows, and its arguments."""
    inputs = {name: variables(pt, values) for name, (_, values, _) in ROWS.items()}
    outputs = {name: row[0](pt, *inputs[name]) for name, row in ROWS.items()}
    arguments = [value for _, values, _ in ROWS.values() for value in values]
    return [v for each in inputs.values() for v in each], outputs, arguments


@pytest.fixture(scope="module")
def results(rows):
    """What the reference implementations compute."""
    inputs, outputs, arguments = rows
    return engine.function(inputs, outputs, mode="NUMPY")(*arguments)


@pytest.mark.parametrize("name", ROWS)
def test_values_and_dtypes_are_numpys(name, results):
    _, values, oracle = ROWS[name]
    with np.errstate(all="ignore"):
        expected = np.asarray(oracle(*values))
    assert results[name].shape == expected.shape
    assert results[name].dtype == expected.dtype
    np.testing.assert_allclose(results[name], expected, rtol=1e-13, atol=1e-15)


@pytest.mark.slow
def test_compiled_values_are_the_references(rows, results):
    inputs, outputs, arguments = rows
    compiled = engine.function(inputs, outputs)(*arguments)
    for name, value in compiled.items():
        assert value.dtype == results[name].dtype
        np.testing.assert_allclose(value, results[name], rtol=1e-13, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("name", ROWS)
def test_types_are_pytensors(name):
    theirs = pytest.importorskip("pytensor.tensor", reason="PyTensor is not installed")
    pytest.importorskip("pytensor.tensor.fft")
    expression, values, _ = ROWS[name]
    shapes = [tuple(value.shape) for value in values]
    ours, expected = (
        expression(
            p, *(p.tensor("x", dtype=str(v.dtype), shape=s) for v, s in zip(values, shapes, strict=True))
        ).type
        for p in (pt, theirs)
    )
    assert ours.dtype == expected.dtype
    assert ours.ndim == expected.ndim
    # What PyTensor knows is known here.
    assert [mine for mine, length in zip(ours.shape, expected.shape, strict=True) if length is not None] == [
        length for length in expected.shape if length is not None
    ]


WITHOUT_GRADIENT = {
    "bitwise_not",
    "int_div",
    "round_half_to_even",
    *("broadcast_shape", "mgrid", "ogrid", "tril_indices", "triu_indices", "identity_like", "searchsorted"),
    *("searchsorted right", "searchsorted of nothing", "searchsorted by a sorter", "nonzero_values"),
    *("inverse_permutation", "max_and_argmax", "bincount", "isclose", "isclose with NaNs", "allclose"),
    *("isfinite", "isposinf", "isneginf", "nan_to_num", "nan_to_num chosen", "round_half_away_from_zero"),
    *("iround", "divmod", "ceil_intdiv", "angle", "square", "empty bincount", "unpacked shape"),
    *("empty flip", "empty roll", "empty repeat", "empty repeat each"),
    *("unique", "unique columns", "special.xlogy of zeros", "nonzero as a matrix"),
    *(name for name in ROWS if name.startswith(("unique with", "unravel_index", "ravel_multi_index"))),
    *(f"interpolate1d {method}" for method in ("nearest", "first", "last", "mean")),
}


@pytest.mark.parametrize("name", sorted(ROWS.keys() - WITHOUT_GRADIENT))
def test_gradients_are_those_of_the_values(name):
    expression, values, _ = ROWS[name]
    floats = [value for value in values if value.dtype.kind == "f"]
    rest = [value for value in values if value.dtype.kind != "f"]
    if values[0].dtype.kind != "f":
        rest, floats = values[:1], values[1:]
        verify_grad(lambda *x: expression(pt, pt.constant(rest[0]), *x), floats)
    else:
        verify_grad(lambda *x: expression(pt, *x, *map(pt.constant, rest)), floats)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: pt.moveaxis(pt.matrix(), [0, 1], [0]),
        lambda: pt.moveaxis(pt.matrix(), [0, 0], [0, 1]),
        lambda: pt.swapaxes(pt.matrix(), 0, 2),
        lambda: pt.matrix_transpose(pt.vector()),
        lambda: pt.repeat(pt.vector(), pt.matrix(dtype="int64")),
        lambda: pt.repeat(pt.vector(), 1.5),
        lambda: pt.join_dims(pt.matrix(), 1, 2),
        lambda: pt.horizontal_stack(pt.matrix()),
        lambda: pt.take_along_axis(pt.matrix(), pt.lvector()),
        lambda: pt.take(pt.vector(), [0], mode="other"),
        lambda: pt.searchsorted(pt.matrix(), 1.0),
        lambda: pt.searchsorted(pt.vector(), 1.0, side="both"),
        lambda: pt.diff(pt.vector(), -1),
        lambda: pt.bincount(pt.vector()),
        lambda: pt.cov(pt.tensor3()),
        lambda: pt.tensordot(pt.matrix(), pt.vector(), 2),
        lambda: pt.tensordot(pt.dmatrix(shape=(2, 3)), pt.dmatrix(shape=(2, 3)), 1),
        lambda: pt.linalg.norm(pt.scalar()),
        lambda: pt.linalg.norm(pt.matrix(), "nonsense", axis=(0, 1)),
        lambda: pt.pad(pt.matrix(), -1),
        lambda: pt.pad(pt.matrix(), 1, mode="other"),
        lambda: pt.pad(pt.matrix(), 1, mode="median"),
        lambda: pt.pad(pt.matrix(), 1, mode="edge", constant_values=1),
        lambda: pt.pad(pt.matrix(), 1, mode="reflect", reflect_type="odd"),
        lambda: pt.pad(pt.matrix(), 1.5),
        lambda: pt.einsum("ij,jk", pt.matrix()),
        lambda: pt.einsum("ij", pt.vector()),
        lambda: pt.einsum("i", pt.matrix()),
        lambda: pt.einsum("ij->ii", pt.matrix()),
        lambda: pt.einsum("ij->k", pt.matrix()),
        lambda: pt.einsum("i1->i", pt.matrix()),
        lambda: pt.einsum("ij", pt.matrix(), optimize=True),
        lambda: pt.diagonal(pt.vector()),
        lambda: pt.diagonal(pt.tensor3(), 0, 1, -2),
        lambda: pt.diag(pt.tensor3()),
        lambda: pt.vector().norm(0),
        lambda: pt.unique(pt.vector(), axis=1),
        lambda: pt.unravel_index(pt.lvector(), pt.lvector()),
        lambda: pt.unravel_index(pt.vector(), (2, 3)),
        lambda: pt.unravel_index(pt.lvector(), (2, 3), order="A"),
        lambda: pt.ravel_multi_index(pt.lvector(), (2, 3)),
        lambda: pt.ravel_multi_index([pt.lvector()], (2, 3)),
        lambda: pt.choose(pt.vector(), pt.matrix()),
        lambda: pt.choose(pt.lvector(), pt.matrix(), mode="other"),
        lambda: pt.split(pt.dvector(shape=(5,)), [2, 2]),
        lambda: pt.split(pt.vector(), [2, 2], n_splits=3),
        lambda: pt.concat_with_broadcast([]),
        lambda: pt.pack(pt.scalar(), keep_axes=0),
        lambda: pt.pack(pt.tensor3(), keep_axes=(0, 2)),
        lambda: pt.pack(pt.tensor3(), keep_axes=1),
        lambda: pt.unpack(pt.matrix(), [(2,)]),
        lambda: pt.interpolate1d([0.0, 1.0], [0.0, 1.0], "cubic"),
        lambda: pt.interpolate1d([[0.0, 1.0]], [0.0, 1.0]),
        lambda: pt.fft.rfft(pt.vector()),
        lambda: pt.fft.rfft(pt.matrix(), norm="other"),
        lambda: pt.fft.irfft(pt.matrix()),
        lambda: pt.sort(pt.vector(), kind="bogo"),
        lambda: pt.signal.convolve1d(pt.scalar(), pt.vector()),
        lambda: pt.signal.convolve1d(pt.vector(), pt.vector(), mode="other"),
        lambda: pt.signal.convolve2d(pt.matrix(), pt.matrix(), boundary="other"),
        lambda: pt.signal.convolve2d(pt.matrix(), pt.matrix(), method="other"),
        lambda: pt.pad(pt.matrix(), [(1, 1)] * 3),
        lambda: pt.mgrid[1],
        lambda: pt.tril_indices_from(pt.vector()),
        lambda: pt.bartlett(2.5),
        lambda: pt.get_vector_length(pt.vector()),
        lambda: pt.iround(pt.vector(), mode="up"),
        lambda: list(pt.vector()),
        lambda: list(pt.scalar()),
        lambda: pt.dvector(shape=(1, 2)),
    ],
)
def test_what_numpy_does_not_take_is_refused(refused):
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        refused()


@pytest.mark.parametrize(
    ("expression", "values", "error"),
    [
        (lambda x, n: pt.repeat(x, n), [V, np.array([1, 2])], ValueError),
        (lambda x, n: pt.repeat(x, n), [V, np.array([], "int64")], ValueError),
        (lambda x, n: pt.repeat(x, n), [V[:2], np.array([-1, 2])], ValueError),
        (lambda x, n: pt.repeat(x, n), [V[:2], np.array([2, -1])], ValueError),
        (lambda x, n: pt.unravel_index(n, (2, 3))[0] + 0 * x[0], [V, np.array([6])], IndexError),
        (lambda x, n: pt.unravel_index(n, (2, 3))[0] + 0 * x[0], [V, np.array([-1])], IndexError),
        (lambda x, n: pt.ravel_multi_index([n[0], n[1]], (2, 3)) + 0 * x, [V, np.array([1, 3])], IndexError),
        (lambda x, n: pt.ravel_multi_index([n[0], n[1]], n) + 0 * x, [V, np.array([1, 3, 4])], ValueError),
        (lambda x, n: pt.einsum("ii", pt.zeros((2, n[0]))) + x, [V, np.array([3])], ValueError),
        (lambda x, n: pt.einsum("ii", pt.zeros((n[0], n[1]))) + x, [V, np.array([1, 3])], ValueError),
        (lambda x, n: pt.einsum("ii->i", pt.zeros((n[0], n[1]))) + x[0], [V, np.array([3, 1])], ValueError),
        (lambda x, n: pt.choose(n, [x, x]), [V[:1], np.array([2])], IndexError),
        (lambda x, n: pt.split(x, n, n_splits=2)[1], [V, np.array([1, 3])], ValueError),
        (lambda x, n: pt.split(x, n, n_splits=2)[0], [V, np.array([-1, 6])], ValueError),
        (lambda x, n: pt.split(x, n, n_splits=2)[0], [V, np.array([2, 2, 1])], ValueError),
        (lambda x, n: pt.fill_diagonal(pt.zeros((2, 2, n[0])), x[0]), [V, np.array([3])], ValueError),
        (lambda x, n: pt.pad(x, n), [V, np.array([1, -2])], ValueError),
        (lambda x, n: pt.signal.convolve1d(x, n), [V, np.array([], "int64")], ValueError),
        (lambda x, n: pt.bincount(n) + 0 * pt.sum(x), [V, np.array([-1, 2])], IndexError),
        (lambda x, n: pt.bincount(n, assert_nonneg=True) + 0 * x, [V[:1], np.array([-1])], AssertionError),
        (lambda x, n: pt.take(x, n), [V, np.array([5])], IndexError),
        (lambda x, n: pt.split_dims(x, (2, n[0])), [V, np.array([2])], ValueError),
    ],
)
def test_values_that_do_not_fit_are_refused_when_the_function_runs(expression, values, error):
    inputs = variables(pt, values)
    for mode in ("NUMPY", "FAST_RUN"):
        with pytest.raises(error):
            engine.function(inputs, expression(*inputs), mode=mode)(*values)


def test_repeated_places_are_added_up_and_unsigned_and_small_dtypes_stay():
    x, n = pt.tensor("x", "uint8", (None,)), pt.tensor("n", "int8", (None,))
    outputs = [pt.diff(x), pt.repeat(x, n), pt.flip(n), pt.roll(n, 1), pt.tile(x, 2), pt.pad(n, 1)]
    values = np.array([3, 5, 4], "uint8"), np.array([2, 0, 1], "int8")
    expected = [
        np.diff(values[0]),
        np.repeat(*values),
        np.flip(values[1]),
        np.roll(values[1], 1),
        np.tile(values[0], 2),
        np.pad(values[1], 1),
    ]
    for found, due in zip(engine.function([x, n], outputs, mode="NUMPY")(*values), expected, strict=True):
        assert found.dtype == due.dtype
        assert found.tolist() == due.tolist()


def test_several_variables_are_made_at_once():
    x, y = pt.vectors("x", "y")
    assert [x.name, y.name, x.type] == ["x", "y", pt.dvector]
    assert [v.type for v in pt.imatrices(2)] == [pt.imatrix] * 2
    assert pt.scalars("z").name == "z"
    assert [v.name for v in pt.matrices("AB")] == ["A", "B"]
    assert [v.name for v in pt.scalars(1)] == [None]
    assert [v.name for v in pt.vectors(["u", "v"])] == ["u", "v"]
    assert pt.ftensor5s("a", "b")[1].type == pt.TensorType("float32", (None,) * 5)


def test_makers_with_a_prefix_are_types():
    assert pt.drow == pt.TensorType("float64", (1, None))
    assert pt.dvector("x").type is pt.dvector
    assert pt.dvector("x", shape=(3,)).type.shape == (3,)
    assert pt.dvector(dtype="float32").type == pt.fvector
    assert pt.matrix(dtype="floatX").type == pt.dmatrix
    assert pt.cast(pt.ivector(), "floatX").type == pt.dvector


def test_types_of_single_numbers_have_the_names_of_dtypes():
    assert engine.scalar.float64("x").type == engine.scalar.ScalarType("float64")
    assert engine.scalar.uint8.dtype == "uint8"
    with pytest.raises(AttributeError, match="complex256"):
        engine.scalar.complex256  # noqa: B018


RENAMED = {
    "as_tensor_variable": "dtype is a parameter, not one of kwargs",
    "as_tensor": "dtype is a parameter, not one of kwargs",
    "clip": "an Elemwise of PyTensor's",
    "broadcast_shape": "options are parameters, not kwargs",
    "diff": "numpy's prepend and append are there",
    "dot": "its parameters are those of dense_dot",
    "empty_like": "it is zeros_like",
    "extract_diag": "it is diagonal",
    "horizontal_stack": "starred",
    "join": "starred",
    "kn": "it is kv",
    "max": "no initial",
    "min": "no initial",
    "ones_like": "no opt",
    "tensor": "broadcastable is a parameter, not one of kwargs",
    "unique": "numpy's equal_nan is there",
    "vertical_stack": "starred",
    "where": "no kwargs",
    "zeros_like": "no opt",
}
"""Functions whose parameters are not PyTensor's, and what differs."""


def test_parameters_have_the_names_of_pytensors_in_their_order():
    theirs = pytest.importorskip("pytensor.tensor")

    def names(module, name):
        return list(inspect.signature(getattr(module, name)).parameters)

    functions = [
        name
        for name in pt.__all__
        if inspect.isfunction(getattr(pt, name)) and inspect.isfunction(getattr(theirs, name, None))
    ]
    assert len(functions) > 150
    differ = {name for name in functions if names(pt, name) != names(theirs, name)}
    assert differ <= set(RENAMED), differ - set(RENAMED)


def test_all_public_names_exist():
    assert sorted(set(pt.__all__)) == sorted(pt.__all__)
    assert all(hasattr(pt, name) for name in pt.__all__)
    assert set(pt.__all__) <= set(dir(pt))


def test_a_tensor_is_flat_if_it_has_so_many_axes() -> None:
    assert pt.is_flat(pt.vector())
    assert not pt.is_flat(pt.matrix())
    assert pt.is_flat(pt.matrix(), ndim=2)
