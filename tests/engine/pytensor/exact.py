"""Graphs of PyTensor's computed with numbers of 500 digits: the truth where two float64 results differ.

So many digits that 1 - p is no zero where p differs from 1 by a number as small as a float64 can be. An
array of floats is a numpy array of mpmath's numbers, one of integers or bools is numpy's own. The graph is
taken as it was written: rewrites change float64 results, but not exact ones. Raises KeyError or
NotImplementedError for an Op that PyMC's densities do not have, and for a loop that may end early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import mpmath
import numpy as np
import pytensor.scalar as ps
import pytensor.scalar.math as psm
from mpmath import inf, mp, mpf, nan
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor

mp.dps = 500
Array = np.ndarray
EXACTLY = np.vectorize(lambda value: mpf(float(value)), otypes=[object])


def exact(value: Any) -> Any:
    """The numbers of `value`, floats as mpmath's."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return array
    return EXACTLY(array) if array.size else array.astype(object)


def compute(given: dict[Any, Any], outputs: Sequence[Any]) -> list[Any]:
    """The values of `outputs`, `given` those of the inputs."""
    values = {variable: exact(value) for variable, value in given.items()}
    for node in io_toposort(list(given), outputs):
        inputs = [exact(v.data) if isinstance(v, Constant) else values[v] for v in node.inputs]
        values.update(zip(node.outputs, _results(node, inputs), strict=True))
    return [values[output] for output in outputs]


def _results(node: Any, inputs: list[Any]) -> list[Any]:
    op, dtype = node.op, node.outputs[0].type.dtype
    if isinstance(op, OpFromGraph):
        return compute(dict(zip(op.fgraph.inputs, inputs, strict=True)), op.fgraph.outputs)
    if isinstance(op, Elemwise | ps.ScalarOp):
        found = _elementwise(getattr(op, "scalar_op", op), dtype, inputs)
    elif isinstance(op, CAReduce):
        found = _reduced(op, inputs[0])
    elif isinstance(op, Scan):
        return _looped(op, inputs)
    elif isinstance(op, Blockwise):
        found = _batched(op.core_op, op.batch_ndim(node), inputs)
        if isinstance(found, list):
            return found
    elif isinstance(op, CheckAndRaise | ScalarFromTensor | TensorFromScalar):
        found = inputs[0]
    elif isinstance(op, Alloc):
        found = np.broadcast_to(inputs[0], [int(length) for length in inputs[1:]]).copy()
    elif isinstance(op, MakeVector):
        found = np.array([np.asarray(item)[()] for item in inputs], object if dtype[:5] == "float" else dtype)
    elif isinstance(op, Join):
        found = np.concatenate(inputs, axis=op.axis)
    elif type(op).__name__ in CORE:
        found = CORE[type(op).__name__](op, *inputs)
    else:
        return _performed(node, inputs)
    return [found if dtype.startswith("float") else np.asarray(found).astype(dtype)]


def _elementwise(op: Any, dtype: str, inputs: list[Any]) -> Any:
    if isinstance(op, ps.Cast):
        is_number = dtype.startswith("float")
        return exact(inputs[0].astype(float)) if is_number and inputs[0].dtype != object else inputs[0]
    if dtype.startswith("float"):
        inputs = [exact(value.astype(float)) if value.dtype.kind in "iu" else value for value in inputs]
    return np.asarray(SCALAR[type(op)](*inputs))


def _reduced(op: Any, x: Any) -> Any:
    axis = op.axis if op.axis is not None else tuple(range(x.ndim))
    functions = {"Sum": np.sum, "Prod": np.prod, "Max": np.max, "Min": np.min, "All": np.all, "Any": np.any}
    return np.asarray(functions[type(op).__name__](x, axis=axis))


def _batched(op: Any, count: int, inputs: list[Any]) -> Any:
    function = CORE[type(op).__name__]
    batch = np.broadcast_shapes(*[value.shape[:count] for value in inputs])
    full = [np.broadcast_to(value, batch + value.shape[count:]) for value in inputs]
    rows = [function(op, *[value[place] for value in full]) for place in np.ndindex(batch)]
    if isinstance(rows[0], tuple):
        return [np.stack(part).reshape(batch + part[0].shape) for part in zip(*rows, strict=True)]
    return np.stack(rows).reshape(batch + rows[0].shape)


def _looped(op: Any, inputs: list[Any]) -> list[Any]:
    """What a loop gives, each step computed as a graph. Buffers must have room for all steps."""
    info, steps = op.info, int(inputs[0])
    if info.as_while or info.n_untraced_sit_sot:
        raise NotImplementedError("a loop that may end early, or carries other things than arrays")
    buffers = [*op.outer_mitmot(inputs), *op.outer_mitsot(inputs), *op.outer_sitsot(inputs)]
    buffers = [buffer.copy() for buffer in buffers]
    taps = [*info.mit_mot_in_slices, *info.mit_sot_in_slices, *info.sit_sot_in_slices]
    begins = [max(0, -min(places)) for places in taps]
    mapped: list[list[Any]] = [[] for _ in range(info.n_nit_sot)]
    for step in range(steps):
        now = [begin + step for begin in begins]
        given = [sequence[step] for sequence in op.outer_seqs(inputs)]
        given += [b[at + tap] for b, at, places in zip(buffers, now, taps, strict=True) for tap in places]
        given += op.outer_non_seqs(inputs)
        results = compute(dict(zip(op.fgraph.inputs, given, strict=True)), op.fgraph.outputs)
        written = [*op.inner_mitmot_outs_grouped(results)]
        written += [[value] for value in (*op.inner_mitsot_outs(results), *op.inner_sitsot_outs(results))]
        places = [*info.mit_mot_out_slices, *[(0,)] * (len(buffers) - info.n_mit_mot)]
        for buffer, at, offsets, values in zip(buffers, now, places, written, strict=True):
            for offset, value in zip(offsets, values, strict=True):
                buffer[at + offset] = np.asarray(value)[()]
        for rows, value in zip(mapped, op.inner_nitsot_outs(results), strict=True):
            rows.append(value)
    return [*buffers, *[np.stack(rows) for rows in mapped]]


def _performed(node: Any, inputs: list[Any]) -> list[Any]:
    """What the Op's own `perform` makes of arrays of objects: right for what only moves elements."""
    if isinstance(node.op, IncSubtensor | AdvancedIncSubtensor):
        inputs = [inputs[0].astype(object), *inputs[1:]]
    cells = [[None] for _ in node.outputs]
    node.op.perform(node, inputs, cells)
    return [exact(cell[0]) for cell in cells]


def _cholesky(op: Any, a: Any) -> Any:
    n = len(a)
    factor = np.full((n, n), mpf(0), object)
    for j in range(n):
        rest = a[j, j] - sum(factor[j, :j] ** 2)
        if not rest > 0:
            return np.full((n, n), nan, object)
        factor[j, j] = mpmath.sqrt(rest)
        for i in range(j + 1, n):
            factor[i, j] = (a[i, j] - sum(factor[i, :j] * factor[j, :j])) / factor[j, j]
    return factor if op.lower else factor.T


def _triangular(a: Any, b: Any, lower: bool) -> Any:
    x, n = b.astype(object), len(a)
    for i in range(n) if lower else range(n - 1, -1, -1):
        for k in range(i) if lower else range(i + 1, n):
            x[i] = x[i] - a[i, k] * x[k]
        x[i] = x[i] / a[i, i]
    return x


def _solved(a: Any, b: Any) -> Any:
    a, b, n = a.astype(object), b.astype(object), len(a)
    for i in range(n):
        pivot = max(range(i, n), key=lambda row: abs(a[row, i]))
        a[[i, pivot]], b[[i, pivot]] = a[[pivot, i]], b[[pivot, i]]
        for row in range(i + 1, n):
            factor = a[row, i] / a[i, i]
            a[row], b[row] = a[row] - factor * a[i], b[row] - factor * b[i]
    return _triangular(a, b, False)


def _eigh(op: Any, a: Any) -> tuple[Any, Any]:
    """The eigenvalues of a symmetric matrix, the least first, and its eigenvectors in columns."""
    if not all(mpmath.isfinite(value) for value in a.flat):
        return np.full(len(a), nan, object), np.full(a.shape, nan, object)
    values, vectors = mpmath.eigsy(mpmath.matrix(a.tolist()))
    return np.array(values.tolist(), object)[:, 0], np.array(vectors.tolist(), object)


def _cho_solved(op: Any, factor: Any, b: Any) -> Any:
    lower = factor if op.lower else factor.T
    return _triangular(lower.T, _triangular(lower, b, True), False)


def _diagonal_matrix(op: Any, values: Any) -> Any:
    matrix = exact(np.zeros((len(values), len(values))))
    np.fill_diagonal(matrix, values)
    return matrix


def _softmax(op: Any, x: Any) -> Any:
    powers = ONE[mpmath.exp](x - np.max(x, axis=op.axis, keepdims=True))
    return powers / np.sum(powers, axis=op.axis, keepdims=True)


def _log(x: Any) -> Any:
    return mpmath.log(x) if x > 0 else -inf if x == 0 else nan


def _divided(a: Any, b: Any) -> Any:
    return a / b if b != 0 else nan if a == 0 or a != a else mpmath.sign(a) * inf


class _Elementwise(dict[Any, Any]):
    """numpy functions of mpmath's, made when they are first used."""

    def __missing__(self, function: Any) -> Any:
        self[function] = np.frompyfunc(function, 1, 1)
        return self[function]


ONE = _Elementwise()
CORE: dict[str, Callable[..., Any]] = {
    "Cholesky": _cholesky,
    "CholeskySolve": _cho_solved,
    "SolveTriangular": lambda op, a, b: _triangular(a, b, op.lower),
    "Solve": lambda op, a, b: _solved(a, b),
    "MatrixInverse": lambda op, a: _solved(a, exact(np.eye(len(a)))),
    "Eigh": _eigh,
    "Eye": lambda op, rows, columns, k: np.eye(int(rows), int(columns), int(k)).astype(op.dtype),
    "Dot": lambda op, a, b: np.dot(a, b),
    "ExtractDiag": lambda op, x: np.diagonal(x, op.offset, op.axis1, op.axis2).copy(),
    "AllocDiag": _diagonal_matrix,
    "ARange": lambda op, *limits: np.arange(*[int(limit) for limit in limits]),
    "Softmax": _softmax,
    "LogSoftmax": lambda op, x: ONE[_log](_softmax(op, x)),
}
SCALAR: dict[type, Callable[..., Any]] = {
    ps.Add: lambda *inputs: reduce(np.add, inputs),
    ps.Mul: lambda *inputs: reduce(np.multiply, inputs),
    ps.Sub: np.subtract,
    ps.TrueDiv: np.frompyfunc(_divided, 2, 1),
    ps.Neg: np.negative,
    ps.Abs: np.abs,
    ps.Sqr: lambda x: x * x,
    ps.Reciprocal: ONE[lambda x: _divided(mpf(1), x)],
    ps.Pow: np.frompyfunc(mpmath.power, 2, 1),
    ps.Sqrt: ONE[mpmath.sqrt],
    ps.Sign: ONE[mpmath.sign],
    ps.Exp: ONE[mpmath.exp],
    ps.Expm1: ONE[mpmath.expm1],
    ps.Log: ONE[_log],
    ps.Log1p: ONE[lambda x: _log(1 + x)],
    ps.Floor: ONE[mpmath.floor],
    ps.Tanh: ONE[mpmath.tanh],
    ps.Cos: ONE[mpmath.cos],
    ps.Sin: ONE[mpmath.sin],
    ps.Maximum: np.maximum,
    ps.Minimum: np.minimum,
    ps.LT: np.less,
    ps.LE: np.less_equal,
    ps.GT: np.greater,
    ps.GE: np.greater_equal,
    ps.EQ: np.equal,
    ps.NEQ: np.not_equal,
    ps.AND: lambda *inputs: reduce(np.logical_and, inputs),
    ps.OR: lambda *inputs: reduce(np.logical_or, inputs),
    ps.Invert: np.logical_not,
    ps.IsNan: ONE[mpmath.isnan],
    ps.IsInf: ONE[mpmath.isinf],
    ps.Identity: lambda x: x,
    ps.Second: lambda x, y: np.broadcast_arrays(x, y)[1].copy(),
    ps.Switch: lambda condition, x, y: np.where(np.asarray(condition, bool), x, y),
    ps.Clip: lambda x, low, high: np.where(x < low, low, np.where(x > high, high, x)),
    psm.Sigmoid: ONE[lambda x: 1 / (1 + mpmath.exp(-x))],
    psm.Softplus: ONE[lambda x: mpmath.log1p(mpmath.exp(x)) if x < 1000 else x],
    psm.Log1mexp: ONE[lambda x: mpmath.log(-mpmath.expm1(x)) if x < 0 else -inf],
    psm.GammaLn: ONE[lambda x: mpmath.loggamma(x) if x > 0 else inf],
    psm.GammaInc: np.frompyfunc(lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), 2, 1),
    psm.GammaIncC: np.frompyfunc(lambda a, x: mpmath.gammainc(a, x, regularized=True), 2, 1),
    psm.Psi: ONE[mpmath.digamma],
    psm.TriGamma: ONE[lambda x: mpmath.polygamma(1, x)],
    psm.Erf: ONE[mpmath.erf],
    psm.Erfc: ONE[mpmath.erfc],
}
