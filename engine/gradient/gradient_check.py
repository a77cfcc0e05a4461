"""Gradients by central finite differences: `numeric_grad`, and `verify_grad`, which compares with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import engine.tensor
from engine.errors import GradientError
from engine.gradient.reverse import grad
from engine.graph.reference import evaluate
from engine.scalar.promotion import INEXACT

Evaluator = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
_TOLERANCE = {"float64": 1e-6, "float32": 2e-2}
_STEP = {dtype: float(np.cbrt(np.finfo(dtype).eps)) for dtype in ("float64", "float32", "float16")}
_MANY = 1000
"""More evaluations than this are worth a compilation."""


def verify_grad(
    fun: Callable[..., Any],
    pt: Sequence[Any],
    n_tests: int = 2,
    rng: np.random.Generator | None = None,
    eps: float | None = None,
    out_type: str | None = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    mode: Any = None,
    cast_to_output_type: bool = False,
    no_debug_ref: bool = True,
) -> None:
    """Check the gradient of `fun`, from tensor variables to one, at the float arrays `pt`.

    The cost is the sum of the result with random weights, drawn `n_tests` times from `rng`. The step of
    the differences is `eps`, by default the cube root of the machine epsilon of the coarsest dtype.
    With a `mode` both are compiled in it; without, the reference implementations compute them, or, if there
    are many elements, a function compiled with few rewrites. With
    `cast_to_output_type` and an `out_type` the result is cast to that dtype; `no_debug_ref` is PyTensor's and
    decides nothing.
    Raises GradientError for a difference above `abs_tol` plus `rel_tol` times the larger of both values
    (default 1e-6, or 0.02 with a float32); ValueError for a gradient whose shape is not that of its
    argument.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    arrays = [np.array(value) for value in pt]
    variables = [
        engine.tensor.tensor(None, a.dtype, [1 if n == 1 else None for n in a.shape]) for a in arrays
    ]
    output = fun(*variables)
    if cast_to_output_type and out_type is not None:
        output = engine.tensor.cast(output, out_type)
    weights = output.type.clone(shape=(None,) * output.type.ndim).make_variable()
    gradients = grad(engine.tensor.sum(output * weights), variables, disconnected_inputs="ignore")
    if mode is None and 2 * n_tests * sum(array.size for array in arrays) > _MANY:
        mode = "FAST_COMPILE"
    value = _evaluator(variables, [output], mode)
    slopes = _evaluator([*variables, weights], gradients, mode)
    shape = value(arrays)[0].shape
    coarsest = _coarsest([*(a.dtype.name for a in arrays), output.type.dtype])
    step = _STEP[coarsest] if eps is None else eps
    tolerances = [_TOLERANCE[coarsest] if given is None else given for given in (abs_tol, rel_tol)]
    for _ in range(n_tests):
        drawn = (rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)).astype(output.type.dtype)
        found = slopes([*arrays, drawn])
        for position in range(len(arrays)):
            expected = _differences(value, arrays, position, step, drawn)
            _compare(position, expected, found[position], *tolerances)


class numeric_grad:
    """The gradient of `f`, a function of arrays, at the float arrays `pt`: its result is summed.

    `gf` has an array for each of `pt`, or is one if `pt` is no list. The step of the differences is `eps`, by
    default that of the coarsest dtype in `type_eps`.
    """

    type_eps = _STEP

    def __init__(self, f: Callable[..., Any], pt: Any, eps: float | None = None) -> None:
        arrays = [np.array(value) for value in (pt if isinstance(pt, list | tuple) else [pt])]
        step = _STEP[_coarsest([array.dtype.name for array in arrays])] if eps is None else eps

        def value(given: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
            return [np.asarray(f(*given))]

        one = np.ones(())
        slopes = [_differences(value, arrays, position, step, one) for position in range(len(arrays))]
        self.gf: Any = slopes if isinstance(pt, list | tuple) else slopes[0]


def _coarsest(dtypes: Sequence[str]) -> str:
    """Return the dtype of floats with the fewest digits."""
    found = [np.finfo(dtype) for dtype in dtypes if dtype in INEXACT]
    return min(found, key=lambda each: each.bits).dtype.name


def _evaluator(variables: Sequence[Any], outputs: Sequence[Any], mode: Any) -> Evaluator:
    """Return a function of arrays, those of `variables`, that gives the values of `outputs`."""
    if mode is None:
        return lambda arrays: evaluate(variables, outputs, arrays)
    # `function` is above this package.
    make: Any = import_module("engine.functions").function
    compiled = make(list(variables), list(outputs), mode=mode, on_unused_input="ignore")
    return lambda arrays: compiled(*arrays)


def _differences(
    value: Evaluator,
    arrays: Sequence[np.ndarray],
    position: int,
    step: float,
    weights: np.ndarray,
) -> np.ndarray:
    """Return the slopes of the weighted sum of the first of `value` along the elements of
    `arrays[position]`.
    """
    array = arrays[position]
    slopes = np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        ends = []
        for direction in (step, -step):
            moved = array.copy()
            moved[index] += direction
            values = [*arrays[:position], moved, *arrays[position + 1 :]]
            result = value(values)[0]
            ends.append((float(moved[index]), result.astype("float64")))
        (above, high), (below, low) = ends
        slopes[index] = np.sum((high - low) * weights) / (above - below)
    return slopes


def _compare(position: int, expected: np.ndarray, found: np.ndarray, abs_tol: float, rel_tol: float) -> None:
    if found.shape != expected.shape:
        raise ValueError(
            f"Checking the gradient for argument {position} of shape {expected.shape}: it has shape "
            f"{found.shape}"
        )
    difference = np.abs(expected - found)
    allowed = abs_tol + rel_tol * np.maximum(np.abs(expected), np.abs(found))
    if difference.size and not np.all(difference <= allowed):
        index = np.unravel_index(
            int(np.argmax(np.nan_to_num(difference - allowed, nan=np.inf))), difference.shape
        )
        place = tuple([int(i) for i in index])
        raise GradientError(position, place, float(expected[place]), float(found[place]))
