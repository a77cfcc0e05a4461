"""`polygamma`: derivatives of any order of the logarithm of the gamma function, which SciPy computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import scalar
from engine.errors import ComplexError
from engine.scalar.promotion import COMPLEX, INTEGERS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import elemwise

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


_POLYGAMMA = elemwise(scalar.polygamma)


def polygamma(n: Any, x: Any) -> TensorVariable:
    """Return derivative number n + 1 of the logarithm of the gamma function at `x`: `psi` for an `n` of 0.

    Both broadcast. The result has the dtype of `x`, float64 for integers. Raises TypeError for an `n` that is
    no integer and for a complex `x`.
    """
    n, x = as_tensor_variable(n), as_tensor_variable(x)
    if n.type.dtype not in INTEGERS:
        raise TypeError(f"Applying polygamma: n has dtype {n.type.dtype}; it must be discrete, an integer")
    if x.type.dtype in COMPLEX:
        raise ComplexError("Applying polygamma: complex argument not supported")
    return _POLYGAMMA(n, x)
