"""Each rule gives what PyTensor's own `perform` gives: values, dtypes, shapes, and the class of an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.raise_op import Assert, CheckAndRaise
from pytensor.tensor import blas
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.math import Max, Min, Prod, Sum
from pytensor.tensor.sort import ArgSortOp
from pytensor.tensor.subtensor import AdvancedIncSubtensor

from tests.engine.pytensor.comparing import agree, by_engine, left_to_pytensor

Case = tuple[list[Any], list[Any], list[Any]]
X, M, T = (
    np.array([3.0, -1.0, np.nan, -0.0, 2.0]),
    np.arange(12.0).reshape(3, 4) - 5,
    np.arange(24.0).reshape(2, 3, 4),
)
x, m, t = pt.dvector("x"), pt.dmatrix("m"), pt.dtensor3("t")
n, index = pt.lscalar("n"), pt.lvector("index")
bytes_ = pt.vector("bytes_", dtype="int8")


def places_in_a_sorted_vector() -> Case:
    given = np.array([-1.0, 0.5, 0.5, 2.0, np.nan])
    outputs = [pt.searchsorted(x, m), pt.searchsorted(x, m, side="right"), pt.searchsorted(x, 0.5)]
    outputs += [pt.searchsorted(x[::-1], m, sorter=index), pt.searchsorted(x, index)]
    return [x, m, index], outputs, [given, M / 4, np.arange(5)[::-1]]


def convolutions() -> Case:
    made = [pt.signal.convolve1d(x, x[:n], mode=mode) for mode in ("full", "valid", "same")]
    rows = pt.signal.convolve1d(m, x[None, :n])
    return [x, m, n], [*made, *pt.grad(made[1].sum(), [x]), rows], [M[0], M, 2]


def convolution_with_nothing() -> Case:
    return [x], [pt.signal.convolve1d(x, x[:0])], [X]


def axes() -> Case:
    dropped = pt.tensor("d", shape=(1, None, None))
    outputs = [
        t.dimshuffle(2, "x", 0, 1),
        m.T,
        dropped.dimshuffle(2, 1),
        t.reshape((4, 6)),
        t.reshape((n, -1)),
    ]
    outputs += [pt.join_dims(t, 1, 2), pt.split_dims(x[:4], (2, n), 0), m.flatten(), pt.expand_dims(x, 1)]
    return [t, m, x, dropped, n], outputs, [T, M, X, T[:1], 2]


def lengths() -> Case:
    return [t, n], [t.shape, t.shape[1] * n, pt.stack([n, t.shape[0]]), pt.shape(n), t.size], [T, 3]


def reductions() -> Case:
    outputs = [
        function(t, axis=axis) for function in (pt.sum, pt.max, pt.min, pt.prod) for axis in (0, (0, 2), None)
    ]
    outputs += [pt.all(t > 1, axis=1), pt.any(t > 30), pt.argmax(t, axis=2), pt.argmax(t), pt.cumsum(t, 1)]
    outputs += [pt.cumprod(m, 0), pt.max(x), pt.mean(m, axis=0)]
    return [t, m, x], outputs, [T, M, X]


def reductions_of_bytes() -> Case:
    narrow = [Sum(dtype="int8", acc_dtype="int8"), Prod(dtype="int16"), Sum(), Max(axis=0), Min(axis=0)]
    outputs = [op(bytes_) for op in narrow] + [pt.sum(bytes_ > 0), bytes_.mean()]
    return [bytes_], outputs, [np.array([100, 100, -128, 7], "int8")]


def largest_of_nothing_with_a_start() -> Case:
    i = pt.ivector("i")
    return (
        [x, i, m],
        [Max(0, initial=True)(x), Min(0, initial=True)(i), Max(1, initial=True)(m)],
        [X[:0], [], M],
    )


def largest_of_nothing() -> Case:
    return [x], [pt.max(x)], [X[:0]]


def order() -> Case:
    outputs = [pt.sort(x), pt.sort(m, axis=0), ArgSortOp("stable", 0)(x), pt.argmax(m, axis=(0, 1))]
    outputs += [ArgSortOp("quicksort", 1)(m % 3), ArgSortOp("quicksort", 0)(pt.tile(x, 60))]
    return [x, m], outputs, [X, M % 5]


def new_tensors() -> Case:
    outputs = [
        pt.alloc(x[1], n, 2),
        pt.alloc(x, n, x.shape[0]),
        pt.arange(n),
        pt.arange(1, n * 2, 2),
        pt.eye(n, 2, 1),
    ]
    outputs += [
        pt.arange(0.5, n, 0.25),
        pt.zeros((n, 0)),
        AllocEmpty("float64")(n, 3).shape,
        pt.arange(n, dtype="int8"),
    ]
    return [x, n], outputs, [X, 3]


def joined_and_split() -> Case:
    parts = pt.split(x, pt.stack([n, x.shape[0] - n]), n_splits=2)
    outputs = [
        pt.concatenate([m, m[:1]]),
        pt.join(1, m, m * 2),
        *parts,
        pt.concatenate([bytes_, index]),
        pt.stack([x, x]),
    ]
    return [m, x, n, bytes_, index], outputs, [M, X, 2, np.ones(2, "int8"), [1, 2]]


def split_into_known_lengths() -> Case:
    """What is built on a part knows its length: an index that is out of bounds is refused, others are not."""
    known = pt.tensor("known", shape=(5,), dtype="float64")
    first, second = pt.split(known, [2, 3], n_splits=2)
    return [known], [first, second[2], second[-3], pt.join(0, second, first)], [X]


def split_that_does_not_fit() -> Case:
    return [x, n], pt.split(x, pt.stack([n, n]), n_splits=2), [X, 2]


def diagonals() -> Case:
    outputs = [pt.diagonal(m, k) for k in (-1, 0, 2)] + [
        pt.diagonal(t, 1, 1, 2),
        pt.diagonal(t, -1, 0, 2),
        pt.diag(x),
    ]
    return [m, t, x], outputs, [M, T, X]


def parts() -> Case:
    outputs = [
        x[n],
        x[-1],
        x[1:n],
        x[::-1],
        t[:, n, ::2],
        t[..., 0],
        m[n:, None, 1],
        x[n : x.shape[0] - 1],
        x[10:],
    ]
    return [x, m, t, n], outputs, [X, M, T, 2]


def part_out_of_range() -> Case:
    return [x, n], [x[n]], [X, 5]


def gathered() -> Case:
    grid = pt.lmatrix("grid")
    outputs = [
        x[index],
        m[index],
        m[:, index],
        t[index, :, index],
        t[0, index],
        x[grid],
        m[index, n],
        x[x > 0],
        m[m > 0],
    ]
    outputs += [t[:, grid, n], pt.nonzero(x)[0], x[bytes_]]
    given = [X, M, T, 1, [1, 0, -1], [[0, 1], [2, 0]], np.array([0, -1], "int8")]
    return [x, m, t, n, index, grid, bytes_], outputs, given


def changed() -> Case:
    outputs = [
        x[n].set(5.0),
        x[1:3].inc(x[:2]),
        m[:, 0].set(1.0),
        m[n, ::2].inc(2),
        x[index].inc(1.0),
        x[index].set(x[:3]),
    ]
    outputs += [
        m[index].inc(m[0]),
        m[:, index].set(0),
        x[x > 0].set(9.0),
        bytes_[1:].inc(100),
        bytes_[index].set(3),
    ]
    return [x, m, n, index, bytes_], outputs, [X, M, 1, [0, 2, 0], np.array([100, 101, -5], "int8")]


def products() -> Case:
    small = pt.matrix("small", dtype="int8")
    outputs = [
        pt.dot(m, m.T),
        m @ x[:4],
        x[:3] @ m,
        pt.dot(x, x),
        pt.outer(x, x),
        small @ small,
        blas._dot22(m, m.T),
    ]
    outputs += [
        blas.gemv_no_inplace(x[:3], 2.0, m, x[:4], 0.5),
        t @ m.T,
        pt.matmul(t, t.mT),
        t[:, :, :3] @ pt.ones((1, 3, 3)),
    ]
    return [m, x, t, small], outputs, [M, np.arange(5.0), T, np.full((2, 2), 100, "int8")]


def equations() -> Case:
    square = m @ m.T + 4 * pt.eye(3)
    many = t[:, :, :3] @ t[:, :, :3].mT + pt.eye(3)
    low = pt.linalg.cholesky(square)
    outputs = [
        low,
        pt.linalg.inv(square),
        pt.linalg.det(square),
        *pt.linalg.slogdet(square),
        pt.linalg.cholesky(many),
    ]
    outputs += [
        pt.linalg.solve(square, m),
        pt.linalg.solve(square, m[:, 0], b_ndim=1),
        pt.linalg.cho_solve((low, True), m),
    ]
    outputs += [
        pt.linalg.solve_triangular(low, m, lower=True),
        pt.linalg.solve(square, m, assume_a="pos"),
        pt.linalg.inv(many),
    ]
    outputs += [
        pt.linalg.solve_triangular(low.T, m, trans=1),
        pt.linalg.det(many),
        pt.linalg.cholesky(-square),
    ]
    return [m, t], outputs, [M, T / 7]


def factors_and_their_exchanges() -> Case:
    factors, pivots = pt.linalg.lu_factor(m[:, 2::-1] + pt.eye(3))
    orders = [pt.linalg.pivot_to_permutation(pivots, inverse) for inverse in (False, True)]
    return [m], [factors, pivots, *orders, pt.linalg.lu_factor(pt.zeros((2, 2)))[0]], [M]


def equations_of_two_matrices() -> Case:
    square = m @ m.T
    return [m, t], [pt.linalg.solve_sylvester(square, t[0, :3, :3] + 9 * pt.eye(3), square)], [M, T]


def equations_with_one_triangle() -> Case:
    indefinite = m + m.T - 5 * pt.eye(3)
    given = [
        pt.linalg.solve(indefinite + junk, m, assume_a=kind, lower=lower)
        for kind in ("sym", "her")
        for lower, junk in ((True, 7 * pt.triu(m, 1)), (False, 7 * pt.tril(m, -1)))
    ]
    return [m], given, [M]


def blocks_on_a_diagonal() -> Case:
    small = pt.matrix("small", dtype="int8")
    blocks = pt.linalg.block_diag(m, small, x[None], x[:0][None], m[:0])
    outputs = [blocks, pt.grad(pt.sqr(blocks).sum(), m), pt.linalg.block_diag(t, t[:1, :1])]
    return [m, small, x, t], outputs, [M, np.full((2, 2), 100, "int8"), X, T]


def eigenvectors() -> Case:
    outputs = [*pt.linalg.eigh(m), *pt.linalg.eigh(m.T, lower=False, driver="evd"), pt.linalg.eigh(t)[0]]
    return [m, t], outputs, [np.cos(np.arange(2500.0)).reshape(50, 50), np.sin(T[:, :, :3])]


def eigenvectors_of_what_is_not_a_number() -> Case:
    return [m], [pt.linalg.eigh(m)[0]], [np.full((3, 3), np.nan)]


def inverse_of_a_singular_matrix() -> Case:
    return [m], [pt.linalg.inv(m)], [np.ones((3, 3))]


def inverse_of_singular_matrices() -> Case:
    return [t], [pt.linalg.inv(t)], [np.ones((2, 3, 3))]


def inverse_of_what_is_not_a_number() -> Case:
    return [m], [pt.linalg.inv(m)], [np.full((3, 3), np.nan)]


def graphs_held_by_ops() -> Case:
    held = OpFromGraph([x], [pt.exp(x).sum(), Assert("not below 9")(x, x[0] < 9)])
    outputs = [*held(x), pt.special.softmax(m, axis=1), pt.special.log_softmax(m), pt.logsumexp(m, axis=0)]
    return [x, m], outputs, [X, M]


def branches() -> Case:
    long, short = ifelse(n > 1, [x, m], [x[:2], m[:, :1]])
    return [x, m, n], [long, short, ifelse(n > 2, n, -n)], [X, M, 1]


def condition_that_holds() -> Case:
    return [x, n], [CheckAndRaise(KeyError, "no")(x, n > 0, n < 9) * 2], [X, 3]


def condition_that_does_not_hold() -> Case:
    return [x, n], [CheckAndRaise(KeyError, "no")(x, n > 0, n < 9) * 2], [X, 10]


def length_that_is_as_specified() -> Case:
    return [m, n], [pt.specify_shape(m, (n, None)), pt.specify_broadcastable(m[:1], 0) + m], [M, 3]


def length_that_is_not_as_specified() -> Case:
    return [m, n], [pt.specify_shape(m, (n, None)) + 1], [M, 2]


CASES: list[Callable[[], Case]] = [
    axes,
    lengths,
    reductions,
    reductions_of_bytes,
    largest_of_nothing_with_a_start,
    largest_of_nothing,
    order,
    places_in_a_sorted_vector,
    convolutions,
    convolution_with_nothing,
    new_tensors,
    joined_and_split,
    split_into_known_lengths,
    split_that_does_not_fit,
    diagonals,
    parts,
    part_out_of_range,
    gathered,
    changed,
    products,
    equations,
    equations_with_one_triangle,
    equations_of_two_matrices,
    factors_and_their_exchanges,
    blocks_on_a_diagonal,
    eigenvectors,
    eigenvectors_of_what_is_not_a_number,
    inverse_of_a_singular_matrix,
    inverse_of_singular_matrices,
    inverse_of_what_is_not_a_number,
    graphs_held_by_ops,
    branches,
    condition_that_holds,
    condition_that_does_not_hold,
    length_that_is_as_specified,
    length_that_is_not_as_specified,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_engine_gives_what_perform_gives(case: Callable[[], Case]) -> None:
    inputs, outputs, values = case()
    given = [
        np.asarray(value, dtype=variable.type.dtype) for variable, value in zip(inputs, values, strict=True)
    ]
    agree(inputs, outputs, given)


def test_a_check_keeps_its_message_and_its_class() -> None:
    f = by_engine([x], [CheckAndRaise(KeyError, "x must be above 0")(x, pt.all(x > 0))])
    with pytest.raises(KeyError, match="x must be above 0"):
        f(np.zeros(1))


def test_what_a_rule_does_not_take_is_left_to_pytensor_and_comes_out_right() -> None:
    again = AdvancedIncSubtensor((0,), ignore_duplicates=True)(x, x[:2], index)
    outputs = [ArgSortOp("heapsort", 0)(x), again, pt.sum(pt.cast(bytes_, "complex64"))]
    values = [X, np.array([1, 1]), np.array([1, -1], "int8")]
    # A complex number is left with what is computed from it.
    assert len(left_to_pytensor(by_engine([x, index, bytes_], outputs))) == 4
    agree([x, index, bytes_], outputs, values, whole=False)
