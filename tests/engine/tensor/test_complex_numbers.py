"""Complex numbers: dtypes, values beside numpy's, gradients beside differences, and that no part is dropped."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import engine
import engine.tensor as pt
from engine.compiling.key import encode_graph
from engine.errors import ComplexError, NullGradientError
from engine.gradient import pushforward
from engine.graph import FrozenFunctionGraph

pytestmark = pytest.mark.usefixtures("kernels_once")

Z = pt.zvector("z")
X = pt.dvector("x")
Z_VALUE = np.array([1 + 2j, -0.5j, 3, -2 - 1j])
X_VALUE = np.arange(4.0) - 1
W = np.array([1.3 - 0.2j, 0.4j, 2, -1])

EXPRESSIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "arithmetic": (lambda z, x: -z / (z + 1) * x - 2j, lambda z, x: -z / (z + 1) * x - 2j),
    "power": (lambda z, x: z**2 + pt.pow(z, x), lambda z, x: z**2 + np.power(z, x)),
    "functions": (
        lambda z, x: pt.exp(z) + pt.log(z) * pt.sqrt(z),
        lambda z, x: np.exp(z) + np.log(z) * np.sqrt(z),
    ),
    "error functions": (
        lambda z, x: pt.erf(z) * (1 - pt.erfc(z)),
        lambda z, x: special.erf(z) * (1 - special.erfc(z)),
    ),
    "trigonometry": (lambda z, x: pt.sin(z) * pt.tanh(z), lambda z, x: np.sin(z) * np.tanh(z)),
    "magnitude": (lambda z, x: abs(z) + x, lambda z, x: abs(z) + x),
    "parts": (lambda z, x: z.real - z.imag * x, lambda z, x: z.real - z.imag * x),
    "angle": (lambda z, x: pt.angle(z), lambda z, x: np.angle(z)),
    "made of parts": (lambda z, x: pt.complex(x, x**2), lambda z, x: x + 1j * x**2),
    "polar": (lambda z, x: pt.complex_from_polar(x, x), lambda z, x: x * np.exp(1j * x)),
    "equality": (lambda z, x: pt.eq(z, 3), lambda z, x: z == 3),
    "order": (lambda z, x: (z > 1) & (z <= x), lambda z, x: (z > 1) & (z <= x)),
    "extremes": (lambda z, x: pt.maximum(z, x) + pt.max(z), lambda z, x: np.maximum(z, x) + z.max()),
    "sign": (lambda z, x: pt.sign(z * x), lambda z, x: np.sign(z * x)),
    "rounding": (lambda z, x: pt.round(z / 2), lambda z, x: np.round(z / 2)),
    "truth": (lambda z, x: pt.all(z) | pt.any(0 * z), lambda z, x: np.array(True)),
    "isnan": (lambda z, x: pt.isnan(z) | pt.isfinite(z), lambda z, x: np.isnan(z) | np.isfinite(z)),
    "choice": (lambda z, x: pt.switch(x > 0, z, 1j), lambda z, x: np.where(x > 0, z, 1j)),
    "sum": (lambda z, x: pt.sum(z), lambda z, x: z.sum()),
    "product": (lambda z, x: pt.prod(z) + pt.cumsum(z), lambda z, x: z.prod() + z.cumsum()),
    "moments": (lambda z, x: pt.mean(z) + pt.var(z), lambda z, x: z.mean() + z.var()),
    "dot": (lambda z, x: pt.dot(z, x) + pt.dot(z, z), lambda z, x: z @ x + z @ z),
    "outer": (lambda z, x: pt.outer(z, x).T, lambda z, x: np.outer(z, x).T),
    "views": (lambda z, x: z.conj()[::-1].reshape((2, 2)), lambda z, x: z.conj()[::-1].reshape(2, 2)),
    "join": (lambda z, x: pt.concatenate([z, x, z[1:]]), lambda z, x: np.concatenate([z, x, z[1:]])),
    "stack": (lambda z, x: pt.stack([z[0], x[0], 1j]), lambda z, x: np.stack([z[0], x[0], 1j])),
    "take": (lambda z, x: z[np.array([0, 2, 0])], lambda z, x: z[[0, 2, 0]]),
    "mask": (lambda z, x: z[x > 0], lambda z, x: z[x > 0]),
    "set": (lambda z, x: z[1:].set(5j)[:3].inc(x[0]), lambda z, x: np.array([z[0] - 1, 5j - 1, 5j - 1, 5j])),
    "full": (lambda z, x: pt.full((2, 3), z[0]), lambda z, x: np.full((2, 3), z[0])),
    "diagonal": (lambda z, x: pt.diag(z), lambda z, x: np.diag(z)),
    "nan_to_num": (lambda z, x: pt.nan_to_num(z / 0), lambda z, x: np.nan_to_num(z / np.complex128(0))),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_values_and_dtypes_are_numpys(name: str) -> None:
    ours, numpys = EXPRESSIONS[name]
    output = ours(Z, X)
    with np.errstate(all="ignore"):
        due = np.asarray(numpys(Z_VALUE, X_VALUE))
    for mode in ("FAST_RUN", "NUMPY"):
        found = engine.function([Z, X], output, mode=mode, on_unused_input="ignore")(Z_VALUE, X_VALUE)
        assert found.dtype == output.dtype == due.dtype
        np.testing.assert_allclose(found, due, atol=1e-12)


def test_python_numbers_take_the_dtype_of_single_precision() -> None:
    c, x = pt.cvector("c"), pt.fvector("x")
    assert (c * 2.5).dtype == (c + 1j).dtype == (x * 1j).dtype == "complex64"
    assert (X * 1j).dtype == (pt.lvector() * 1j).dtype == (c * X).dtype == "complex128"
    assert abs(c).dtype == c.real.dtype == "float32"
    assert pt.complex(x, x).dtype == pt.complex(pt.bvector(), x).dtype == "complex64"
    assert pt.complex(x, pt.lvector()).dtype == "complex128"


def test_a_loop_has_complex_states_and_the_real_part_of_a_graph_stays_compiled() -> None:
    totals = engine.scan(
        lambda z, p: p * z, sequences=[Z], outputs_info=[pt.constant(1 + 0j)], return_updates=False
    )
    f = engine.function([Z, X], [totals, pt.sum(pt.exp(X) * 2)])
    found, real = f(Z_VALUE, X_VALUE)
    np.testing.assert_allclose(found, np.cumprod(Z_VALUE))
    np.testing.assert_allclose(real, np.sum(np.exp(X_VALUE) * 2))
    program = f._compiled.runner.program
    assert {use.kind for use in program.callbacks} == {"reference"}
    assert program.kernels


def test_a_shared_variable_is_updated() -> None:
    state = engine.shared(Z_VALUE)
    engine.function([], [], updates=[(state, state * 1j)])()
    np.testing.assert_allclose(state.get_value(), Z_VALUE * 1j)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "remainder": lambda z: z % 2,
    "whole quotient": lambda z: z // 2,
    "rounding": lambda z: pt.floor(z),
    "arctan2": lambda z: pt.arctan2(z, 1),
    "gamma": lambda z: pt.gamma(z),
    "condition": lambda z: pt.switch(z, 1, 2),
    "cast": lambda z: z.astype("float64"),
    "bool": lambda z: pt.cast(z, "bool"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_defined_is_refused(name: str) -> None:
    with pytest.raises(ComplexError, match="complex"):
        REFUSED[name](Z)


def test_no_imaginary_part_is_dropped() -> None:
    for drop in (
        lambda: pt.sum(Z, dtype="float64"),
        lambda: pt.sum(Z, acc_dtype="float64", dtype="complex128"),
        lambda: pt.constant(1j, dtype="float64"),
        lambda: pt.dvector().type.filter(np.array([1j])),
        lambda: pt.dscalar().type.filter(1j, allow_downcast=True),
        lambda: X[:1].set(Z[:1]),
    ):
        with pytest.raises(TypeError, match=r"imaginary|complex"):
            drop()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_a_mean_as_real_numbers_is_that_of_the_real_parts_and_warns_as_numpy_does(dtype: str) -> None:
    at = np.array([1 + 2j, 3.0, 0.5 - 1j, 2j])
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
        mean = pt.mean(Z, dtype=dtype)
    due = pt.mean(X, dtype=dtype)
    assert mean.type == due.type
    assert engine.function([Z], mean)(at) == engine.function([X], due)(at.real)
    (slope,) = engine.grad(pt.real(mean), [Z], disconnected_inputs="ignore")
    np.testing.assert_array_equal(slope.eval({Z: at}).imag, 0)


COSTS: dict[str, Callable[[Any], Any]] = {
    "magnitude": lambda z: pt.sum(abs(z)),
    "square": lambda z: pt.sum(pt.real(z * z * W)),
    "functions": lambda z: pt.sum(pt.imag(pt.exp(z) * W + pt.log(z) * pt.sqrt(z))),
    "error functions": lambda z: pt.sum(pt.imag(pt.erf(z) * W + pt.log(pt.erfc(z / 4)))),
    "conjugate": lambda z: pt.real(pt.dot(z.conj(), W * z)),
    "quotient": lambda z: pt.sum(pt.imag(W / z + z**3)),
    "angle": lambda z: pt.sum(pt.angle(z) * np.arange(4)),
    "indices": lambda z: pt.sum(abs(pt.concatenate([z[1:], z])[::2] * 1j) ** 2),
    "matrices": lambda z: pt.real(pt.sum(pt.dot(z.reshape((2, 2)), z.reshape((2, 2))) * W.reshape(2, 2))),
    "set": lambda z: pt.real(z[1:].set(z[0] * 2j)[2:].inc(z[0]).sum() * (1 + 1j)),
    "rows": lambda z: pt.sum(abs(z[np.array([0, 2, 0])] + pt.switch(pt.eq(z.real[0], 9), z[0], 1j)) ** 2),
    "one part is real": lambda z: pt.sum(abs(pt.stack([z[0], z.real[1], pt.sum(z.imag * W)])) ** 2),
}


def difference_quotients(f: Callable[[Any], Any], z: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient for the real parts plus i times that for the imaginary parts."""
    found = np.zeros(z.shape, complex)
    for position in np.ndindex(z.shape):
        for direction in (1, 1j):
            change = np.zeros(z.shape, complex)
            change[position] = step * direction
            found[position] += direction * (f(z + change) - f(z - change)) / (2 * step)
    return found


@pytest.mark.parametrize("name", COSTS)
def test_gradients_are_those_for_both_parts(name: str) -> None:
    cost = COSTS[name](Z)
    value = Z_VALUE + (0.1 + 0.3j)
    found = engine.function([Z], engine.grad(cost, Z))(value)
    assert found.dtype == "complex128"
    due = difference_quotients(engine.function([Z], cost), value)
    np.testing.assert_allclose(found, due, rtol=1e-5, atol=1e-6)


def test_the_gradient_for_a_real_variable_is_real() -> None:
    cost = pt.sum(abs(pt.complex(X, X**2) * W) + pt.real(pt.dot(X, W * X) / 4))
    found = engine.function([X], engine.grad(cost, X))(X_VALUE + 0.3)
    assert found.dtype == "float64"
    due = difference_quotients(lambda z: engine.function([X], cost)(z.real), X_VALUE + 0.3)
    np.testing.assert_allclose(found, due.real, rtol=1e-5, atol=1e-6)


def test_derivatives_that_are_not_there_are_refused() -> None:
    with pytest.raises(NullGradientError, match="complex"):
        engine.grad(pt.real(pt.prod(Z)), Z)
    with pytest.raises(NullGradientError, match="complex"):
        pushforward(pt.sum(abs(Z * X)), X, X)
    with pytest.raises(TypeError, match="must be real"):
        engine.grad(pt.sum(Z), Z)


def test_constants_are_told_apart_bit_by_bit_in_keys_and_graphs() -> None:
    zeros = [complex(0.0, 0.0), complex(0.0, -0.0), complex(-0.0, 0.0)]
    constants = [pt.constant(np.full(2, zero)) for zero in zeros]
    keys = {encode_graph(FrozenFunctionGraph.from_io([Z], [Z[:2] * c])) for c in constants}
    assert len(keys) == 3
    assert pickle.loads(pickle.dumps(constants[1])).signature() == constants[1].signature()


HALF = pt.vector("h", dtype="float16")
HALVES = np.array([1, 2.5, -3, 1000], "float16")


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda h: h * 2.5 + 1, lambda h: h * np.float16(2.5) + np.float16(1)),
        (
            lambda h: pt.sqrt(abs(h)) - pt.exp(h / 200),
            lambda h: np.sqrt(abs(h)) - np.exp(h / np.float16(200)),
        ),
        (lambda h: pt.sum(h) * h, lambda h: h.sum(dtype="float32").astype("float16") * h),
        (lambda h: h.astype("float32") * 3, lambda h: h.astype("float32") * 3),
        (
            lambda h: pt.exp(h.astype("float64")).astype("float16"),
            lambda h: np.exp(h.astype("float64")).astype("float16"),
        ),
        (lambda h: pt.concatenate([h[::2], h])[1:].set(0), lambda h: np.array([1, 0, 0, 0, 0, 0], "float16")),
        (lambda h: h < 2, lambda h: h < 2),
        (lambda h: pt.mean(h * 60), lambda h: (h * np.float16(60)).mean()),
    ],
)
def test_float16_has_the_values_of_numpys_functions(ours: Any, numpys: Any) -> None:
    with np.errstate(all="ignore"):
        due = numpys(HALVES)
    found = engine.function([HALF], ours(HALF))(HALVES)
    assert found.dtype == due.dtype
    np.testing.assert_array_equal(found, due)


def test_gradients_of_float16_are_float16() -> None:
    gradient = engine.grad(pt.sum(HALF**2), HALF)
    assert gradient.dtype == "float16"
    np.testing.assert_array_equal(engine.function([HALF], gradient)(HALVES), 2 * HALVES)
