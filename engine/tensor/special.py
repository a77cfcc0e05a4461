"""Special functions under SciPy's names, made of those of `engine.tensor.math`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import engine.scalar.special as scalar
from engine.tensor.elemwise import elemwise
from engine.tensor.math import add, gamma, gammaln, logaddexp, logit, sub

if TYPE_CHECKING:
    from engine.inner.special import log_softmax, logsumexp, softmax, xlog1py, xlogy
    from engine.tensor.variable import TensorVariable

__all__ = [
    "beta",
    "betaln",
    "factorial",
    "log_softmax",
    "logaddexp",
    "logit",
    "logsumexp",
    "poch",
    "softmax",
    "xlog1py",
    "xlogy",
]


beta = elemwise(scalar.beta)
poch = elemwise(scalar.poch)


def factorial(n: Any) -> TensorVariable:
    """Return the factorial of `n`; gamma(n + 1) if it is not whole."""
    return gamma(add(n, 1))


def betaln(a: Any, b: Any) -> TensorVariable:
    """Return the logarithm of the beta function."""
    return sub(add(gammaln(a), gammaln(b)), gammaln(add(a, b)))


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("engine.inner.special"), name)
    from engine.paths import find  # few programs ask for such a name

    return find(__name__, name)
