"""The operations in numpy, and in SciPy where numpy has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import special

from operations import OPERATIONS

Array = np.ndarray


def build(name: str, arrays: Sequence[Array]) -> tuple[Callable[..., Any], list[Array]]:
    """Return the operation `name` and its arguments."""
    compute = OPERATIONS[name].compute
    return lambda *arguments: compute(FUNCTIONS, *arguments), list(arrays)


def softmax(m: Array) -> Array:
    """Return the softmax of each row."""
    shifted = np.exp(m - m.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def logsumexp(m: Array) -> Array:
    """Return the logarithm of the sum of exponentials of each row."""
    highest = m.max(axis=-1)
    return np.log(np.exp(m - highest[:, None]).sum(axis=-1)) + highest


def scatter_add(x: Array, index: Array, y: Array) -> Array:
    """Return `x` with each `y` added where `index` says."""
    result = x.copy()
    np.add.at(result, index, y)
    return result


SAME = (
    "exp log log1p expm1 tanh sin sqrt sum mean max prod cumsum clip where concatenate argmax dot sort ravel"
).split()
FUNCTIONS = SimpleNamespace(
    **{name: getattr(np, name) for name in SAME},
    sigmoid=special.expit,
    softplus=lambda x: np.logaddexp(x.dtype.type(0.0), x),
    erf=special.erf,
    softmax=softmax,
    logsumexp=logsumexp,
    scatter_add=scatter_add,
)
